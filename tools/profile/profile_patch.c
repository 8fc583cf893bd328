/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile_maps.h"
#include "profile_own.h"
#include "profile_unwind.h"

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, DATA = R_X86_64_GLOB_DAT, POINTER = R_X86_64_64 };
#elif defined(__aarch64__)
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA = R_AARCH64_GLOB_DAT, POINTER = R_AARCH64_ABS64 };
#else
#error "the words that ld.so writes have other names here"
#endif

enum { CALLS = 128 };

struct object {
    uintptr_t base, begin, end; /* its addresses */
    uintptr_t relro, relro_end; /* pages that become read-only */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2]; /* of data and of calls */
    size_t counts[2];
};

static const struct profile_call *calls[CALLS]; /* those that this process has */
static unsigned n_calls;
static uintptr_t core; /* the base of the object that defines hoard_malloc; 0: there is none */
static size_t page;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_on;
static uint32_t seen;   /* objects that were loaded so far */
static bool is_partial; /* ld.so was at work on one of them */

/* --- the functions --------------------------------------------------------------------------- */

static uintptr_t home_of(void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) ? (uintptr_t)info.dli_fbase : 0;
}

/* An executable at a fixed address that takes a function's address has one for it, in its own text: a jump by
 * the word that is to be changed here. To the whole process that is the function, but to whom calls it. */
static bool is_jump(void *function)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return function && dladdr1(function, &info, (void **)(void *)&symbol, RTLD_DL_SYMENT) && symbol &&
           symbol->st_shndx == SHN_UNDEF;
}

static bool is_in(void *function, const struct link_map *map)
{
    Dl_info info;
    void *home = NULL;
    return function && dladdr1(function, &info, &home, RTLD_DL_LINKMAP) && home == map;
}

/* The function that calls of this name come to: the first object's that defines it. */
static void *find_function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!is_jump(found)) return found;
    found = NULL;
    for (const struct link_map *map = _r_debug.r_map; map && !found; map = map->l_next) {
        void *object = *map->l_name ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (!object) continue;
        found = dlsym(object, name); /* of this object, or of one that it needs */
        if (is_jump(found) || !is_in(found, map)) found = NULL;
        dlclose(object);
    }
    return found;
}

static void find_calls(const struct profile_call *list)
{
    for (; list->name && n_calls < CALLS; list++) {
        void *real = find_function(list->name);
        if (!real || (list->in_core && home_of(real) != core)) continue;
        *list->real = real;
        calls[n_calls++] = list;
    }
}

static void find_all_calls(void)
{
    if (n_calls != 0) return;
    core = home_of(find_function("hoard_malloc"));
    page = (size_t)sysconf(_SC_PAGESIZE);
    find_calls(profile_mallocs);
    if (core) find_calls(profile_reaps);
}

static const struct profile_call *call_named(const char *name)
{
    for (unsigned i = 0; i < n_calls; i++)
        if (calls[i]->name[0] == name[0] && strcmp(calls[i]->name, name) == 0) return calls[i];
    return NULL;
}

/* --- one object ------------------------------------------------------------------------------ */

/* ld.so has made addresses of most of these numbers, but not in each object. */
static uintptr_t address_in(const struct object *object, ElfW(Addr) number)
{
    return number < object->base ? object->base + number : number;
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = address_in(object, entry->d_un.d_ptr);
        size_t count = entry->d_un.d_val / sizeof(ElfW(Rela));
        if (entry->d_tag == DT_SYMTAB) object->symbols = (const void *)at;
        if (entry->d_tag == DT_STRTAB) object->strings = (const void *)at;
        if (entry->d_tag == DT_RELA) object->tables[0] = (const void *)at;
        if (entry->d_tag == DT_JMPREL) object->tables[1] = (const void *)at;
        if (entry->d_tag == DT_RELASZ) object->counts[0] = count;
        if (entry->d_tag == DT_PLTRELSZ) object->counts[1] = count;
    }
}

static struct object read_object(const struct dl_phdr_info *info)
{
    struct object object = {.base = info->dlpi_addr, .begin = UINTPTR_MAX};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = object.base + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_DYNAMIC) dynamic = (const void *)begin;
        if (part->p_type == PT_LOAD && begin < object.begin) object.begin = begin;
        if (part->p_type == PT_LOAD && end > object.end) object.end = end;
        if (part->p_type != PT_GNU_RELRO) continue;
        object.relro = begin & ~(page - 1);
        object.relro_end = end & ~(page - 1);
    }
    if (dynamic) read_dynamic(&object, dynamic);
    return object;
}

static bool write_word(uintptr_t *word, uintptr_t value, bool is_protected)
{
    void *start = (void *)((uintptr_t)word & ~(page - 1));
    if (is_protected && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (is_protected) mprotect(start, page, PROT_READ);
    return true;
}

static void patch_word(const struct object *object, uintptr_t *word, unsigned type,
                       const struct profile_call *call)
{
    const struct profile_map *map = profile_map_of(word);
    bool in_relro = (uintptr_t)word - object->relro < object->relro_end - object->relro;
    if (!map || map->may_execute || (!map->may_write && !in_relro)) return;
    if (map->may_write && in_relro) {
        is_partial = true;
        return;
    }
    uintptr_t value = __atomic_load_n(word, __ATOMIC_RELAXED), real = (uintptr_t)*call->real;
    uintptr_t instead = (uintptr_t)call->instead;
    bool waits = type == SLOT && value - object->begin < object->end - object->begin && value != real;
    if (is_on && (value == real || waits))
        write_word(word, instead, in_relro);
    else if (!is_on && value == instead)
        write_word(word, real, in_relro);
}

static void patch_table(const struct object *object, const ElfW(Rela) * table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned type = (unsigned)ELF64_R_TYPE(table[i].r_info);
        if (type != SLOT && type != DATA && (type != POINTER || table[i].r_addend != 0)) continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(table[i].r_info)];
        const struct profile_call *call = call_named(object->strings + symbol->st_name);
        if (call) patch_word(object, (uintptr_t *)(object->base + table[i].r_offset), type, call);
    }
}

/* The core's own calls stay, and this library's. */
static int patch_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    struct object object = read_object(info);
    seen = (uint32_t)info->dlpi_adds;
    bool is_kept = profile_is_own((void *)object.begin) || (core && object.begin == core) ||
                   (core && core - object.begin < object.end - object.begin);
    if (is_kept || !object.symbols || !object.strings) return 0;
    for (int i = 0; i < 2; i++)
        if (object.tables[i]) patch_table(&object, object.tables[i], object.counts[i]);
    return 0;
}

/* --- all of them ----------------------------------------------------------------------------- */

static bool patch_all(void)
{
    if (!profile_maps_read()) return false;
    is_partial = false;
    dl_iterate_phdr(patch_object, NULL);
    profile_maps_drop();
    return true;
}

bool profile_patch(bool on)
{
    pthread_mutex_lock(&mutex);
    find_all_calls();
    is_on = on;
    bool done = patch_all();
    pthread_mutex_unlock(&mutex);
    return done;
}

uint64_t profile_patch_new(void)
{
    if (!is_on || pthread_mutex_trylock(&mutex) != 0) return 0;
    uint64_t loads = profile_loads();
    if (is_on && (loads >> 32 != seen || is_partial)) patch_all();
    pthread_mutex_unlock(&mutex);
    return loads;
}

void profile_patch_lock(void) { pthread_mutex_lock(&mutex); }
void profile_patch_unlock(void) { pthread_mutex_unlock(&mutex); }
