/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/common/elf_names.h"

enum { MEMORY = 1 << 27, ROOM = 1 << 18 /* for places: a power of two */ };

static struct {
    char *memory;
    size_t used;
    struct report report;
    uint32_t *hashes;
    uint32_t *frames;
    uint32_t n_frames;
} own;

void *report_memory(size_t size)
{
    size = (size + 15) / 16 * 16;
    if (!own.memory || size > MEMORY - own.used) return NULL;
    own.used += size;
    return own.memory + own.used - size;
}

/* The number of the place that returns to this address. When there is no room, the last one stands for it. */
static uint32_t find_place(uintptr_t address)
{
    uint32_t i = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 40) % ROOM;
    for (; own.hashes[i]; i = (i + 1) % ROOM)
        if (own.report.places[own.hashes[i] - 1].address == address) return own.hashes[i] - 1;
    if (own.report.n_places == ROOM / 2) return ROOM / 2 - 1;
    own.report.places[own.report.n_places].address = address;
    own.hashes[i] = ++own.report.n_places;
    return own.report.n_places - 1;
}

/* Under the lock of the table. The call is before the address to which it returns. */
static void copy_stack(const struct profile_stack *stack, void *const *frames, const char *name, void *unused)
{
    (void)unused;
    if (own.report.n_stacks == PROFILE_STACKS || PROFILE_FRAMES - own.n_frames < stack->depth) return;
    struct report_stack *to = &own.report.stacks[own.report.n_stacks++];
    *to = (struct report_stack){.places = own.frames + own.n_frames, .depth = stack->depth};
    to->name = name;
    to->is_malloc = stack->is_malloc;
    to->all = stack->all;
    to->live = stack->live;
    for (unsigned i = 0; i < stack->depth; i++)
        own.frames[own.n_frames++] = find_place((uintptr_t)frames[i] - 1);
}

/* The function's name in its file, or what ld.so knows; NULL: none. */
static const char *function_of(const void *address, const struct profile_map *map, const char *path)
{
    Dl_info info;
    const struct elf_names *names = *path ? elf_names_of(path) : NULL;
    const char *name = NULL;
    if (names && elf_names_inode(names) == map->inode)
        name = elf_names_at(names, elf_names_address(names, (uintptr_t)address - map->begin + map->offset));
    return name ? name : dladdr(address, &info) ? info.dli_sname : NULL;
}

static const char *path_of(const struct profile_map *map)
{
    return map && *map->path == '/' ? map->path : "";
}

bool symbol_write(uintptr_t address, const struct profile_map *map, char *text, size_t size)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
    const void *at = (void *)address;
    Dl_info info;
    const char *path = path_of(map), *name = function_of(at, map, path);
    uintptr_t offset = *path ? address - map->begin + map->offset : 0;
    if (!*path && !name && dladdr(at, &info) && *info.dli_fname) {
        path = info.dli_fname;
        offset = address - (uintptr_t)info.dli_fbase;
    }
    const char *slash = strrchr(path, '/');
    if (name)
        snprintf(text, size, "%.400s", name);
    else if (*path)
        snprintf(text, size, "%.200s+0x%zx", slash ? slash + 1 : path, offset);
    else
        snprintf(text, size, "0x%zx", address);
    return name;
}

static void name_place(struct report_place *place, bool names_functions)
{
    char text[512];
    const struct profile_map *map = profile_map_of((void *)place->address);
    place->file = path_of(map);
    if (!names_functions) return;
    place->is_known = symbol_write(place->address, map, text, sizeof text);
    char *copy = report_memory(strlen(text) + 1);
    place->function = copy ? strcpy(copy, text) : "?";
}

const struct report *report_make(bool names_functions)
{
    own.memory =
        mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own.memory == MAP_FAILED) own.memory = NULL;
    own.used = own.n_frames = 0;
    own.report = (struct report){.n_stacks = 0};
    own.report.stacks = report_memory(PROFILE_STACKS * sizeof *own.report.stacks);
    own.report.places = report_memory(ROOM * sizeof *own.report.places);
    own.hashes = report_memory(ROOM * sizeof *own.hashes);
    own.frames = report_memory(PROFILE_FRAMES * sizeof *own.frames);
    if (!own.frames || !profile_maps_read()) {
        report_drop();
        return NULL;
    }
    profile_table_walk(copy_stack, NULL);
    for (uint32_t i = 0; i < own.report.n_places; i++) name_place(&own.report.places[i], names_functions);
    elf_names_forget();
    return &own.report;
}

void report_drop(void)
{
    if (own.memory) munmap(own.memory, MEMORY);
    own.memory = NULL;
    profile_maps_drop();
}
