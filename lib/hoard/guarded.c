/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/guarded.h"

#include "base/options.h"
#include "base/report.h"
#include "base/sanitizer.h"
#include "hoard/guarded_map.h"
#include "hoard/malloc_fast.h"
#include "hoard/redirect.h"
#include "hoard/user_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEAD_MAX = 16384,           /* headers of freed objects */
    KEPT_MAX = 4 * 1024 * 1024, /* bytes of freed objects */
    NAME_MAX_KEPT = 48,         /* bytes of a reap's name, its end included */
    HARDENED_ZONE = 16,         /* bytes of harden's zone, if redzone is less */
    ZONE_BYTE = 0xa5,
    FREED_BYTE = 0xdf
};

struct apart {
    char header[GUARDED_HEADER];
    struct guarded_node node; /* the object's piece */
    char *block;
    size_t size;      /* bytes that were asked for */
    const void *reap; /* its reap, now or before: for a line only */
    char reap_name[NAME_MAX_KEPT];
};

bool guarded_on;
static bool foreign; /* objects come from the process's malloc */
static bool keep;    /* keep freed objects for a while */
static size_t zone;  /* bytes behind each object */
static bool watched; /* a tool watches the program */

/* With libreap-malloc the process's malloc is this library, and no tool watches its blocks. */
void guarded_start(void)
{
    zone = align_up(options.redzone, BLOCK_UNIT);
    if (options.harden && zone < HARDENED_ZONE) zone = HARDENED_ZONE;
    guarded_on = options.bypass || zone != 0;
    foreign = options.bypass && !redirect_on;
    watched = sanitizer_running();
    keep = watched ? !foreign : options.harden; /* tools keep blocks of their own malloc themselves */
    if (guarded_on) user_memory_begin_apart();
}

bool guarded_is_foreign(void) { return foreign; }

static struct apart *of_node(struct guarded_node *node)
{
    return (struct apart *)((char *)node - offsetof(struct apart, node));
}

static char *object_of(const struct apart *apart) { return (char *)apart->node.start; }

/* --- blocks ---------------------------------------------------------------------------------- */

static void *take_block(size_t alignment, size_t size)
{
    if (!foreign) return hoard_aligned(alignment, size, NULL);
    return alignment <= BLOCK_UNIT ? malloc(size) : aligned_alloc(alignment, align_up(size, alignment));
}

static void give_block(char *block)
{
    if (foreign)
        free(block);
    else
        hoard_free_fast(block, "reapFree");
}

/* The front zone's bytes. */
static size_t front(size_t alignment)
{
    if (foreign && zone == 0) return 0;
    return align_up(zone > BLOCK_UNIT ? zone : BLOCK_UNIT, alignment);
}

size_t guarded_room(const void *header)
{
    const struct apart *apart = header;
    return apart->node.end - apart->node.start;
}

/* --- zones ----------------------------------------------------------------------------------- */

static bool is_filled(const char *at, size_t size, int byte)
{
    return size == 0 || ((unsigned char)*at == byte && memcmp(at, at + 1, size - 1) == 0);
}

/* Calls fn for each zone of an object of `size` bytes. False: fn returned false for one of them. */
static bool each_zone(const struct apart *apart, size_t size, bool (*fn)(char *at, size_t size))
{
    ASSERT(apart->node.start >= (uintptr_t)apart->block &&
           apart->node.start + size <= apart->node.end + zone);
    char *object = object_of(apart), *end = object + size;
    bool done = object == apart->block || fn(apart->block, (size_t)(object - apart->block));
    return fn(end, (size_t)((char *)apart->node.end + zone - end)) && done;
}

static bool fill(char *at, size_t size)
{
    memset(at, ZONE_BYTE, size);
    return true;
}

static bool hide(char *at, size_t size)
{
    sanitizer_hide(at, size);
    return true;
}

static bool show(char *at, size_t size)
{
    sanitizer_show(at, size);
    return true;
}

/* Between these two a tool lets this thread touch the zones, and no other thread hides them. */
static void begin_zones(const struct apart *apart, size_t size)
{
    if (!watched) return;
    guarded_map_hold();
    each_zone(apart, size, show);
}

static void end_zones(const struct apart *apart, size_t size)
{
    if (!watched) return;
    each_zone(apart, size, hide);
    guarded_map_let_go();
}

static bool is_untouched(char *at, size_t size) { return is_filled(at, size, ZONE_BYTE); }

void *guarded_alloc(size_t alignment, size_t size, void **object, size_t *held)
{
    size_t before = front(alignment);
    if (size > SIZE_LIMIT - zone - before - alignment) return no_memory();
    struct apart *apart = hoard_malloc_fast(sizeof *apart);
    char *block = apart ? take_block(alignment, before + size + zone) : NULL;
    if (!block) {
        if (apart) hoard_free_fast(apart, "reapMalloc");
        return no_memory();
    }
    *apart = (struct apart){.block = block, .size = size};
    apart->node.start = (uintptr_t)block + before;
    apart->node.end = apart->node.start + size;
    apart->node.chunk = apart->header;
    if (zone != 0) each_zone(apart, size, fill);
    guarded_map_add(&apart->node);
    ASSERT(apart->node.start % alignment == 0 && apart->header == (char *)apart);
    *object = block + before;
    *held = before + size + zone;
    return apart->header;
}

/* Zones and size agree at any moment: the child of a fork may check an object of a thread that it does not
 * have. */
static void set_size(struct apart *apart, size_t size)
{
    ASSERT(size <= guarded_room(apart) || zone == 0);
    if (size > apart->size) __atomic_store_n(&apart->size, size, __ATOMIC_RELEASE);
    if (zone != 0) each_zone(apart, size, fill);
    __atomic_store_n(&apart->size, size, __ATOMIC_RELEASE);
}

void guarded_set_size(void *header, size_t size)
{
    struct apart *apart = header;
    begin_zones(apart, size);
    set_size(apart, size);
    end_zones(apart, size);
}

bool guarded_is_intact(const void *header)
{
    const struct apart *apart = header;
    if (zone == 0) return true;
    size_t size = __atomic_load_n(&apart->size, __ATOMIC_ACQUIRE);
    begin_zones(apart, size);
    bool intact = each_zone(apart, size, is_untouched);
    end_zones(apart, size);
    if (LIKELY(intact) || size >= __atomic_load_n(&apart->size, __ATOMIC_ACQUIRE)) return intact;
    return guarded_is_intact(header); /* another thread asked for its usable size meanwhile, and may use it */
}

/* --- a line about an object ------------------------------------------------------------------- */

void guarded_note(void *header, const void *reap, const char *name)
{
    struct apart *apart = header;
    if (reap) apart->reap = reap;
    if (!name) return;
    size_t length = strnlen(name, sizeof apart->reap_name - 1);
    memcpy(apart->reap_name, name, length);
    apart->reap_name[length] = '\0';
}

/* The first byte in [from, to) that is not `byte`; NULL: there is none. */
static const char *first_changed(const char *from, const char *to, int byte)
{
    while (from < to && (unsigned char)*from == byte) from++;
    return from < to ? from : NULL;
}

/* The first changed byte in a zone of a live object, or in a freed one. */
static const char *first_written(const struct apart *apart)
{
    const char *object = object_of(apart), *end = (char *)apart->node.end;
    if (watched) sanitizer_show(object_of(apart), apart->node.dead ? apart->node.kept : 0);
    if (apart->node.dead) return first_changed(object, object + apart->node.kept, FREED_BYTE);
    if (watched) each_zone(apart, apart->size, show);
    const char *before = first_changed(apart->block, object, ZONE_BYTE);
    return before ? before : first_changed(object + apart->size, end + zone, ZONE_BYTE);
}

void guarded_tell(const void *header, const char *what, char *line, size_t room)
{
    const struct apart *apart = header;
    const char *object = object_of(apart), *written = zone != 0 ? first_written(apart) : NULL;
    bool is_before = written && written < object;
    size_t n = report_format(line, room, "%s", what);
    if (zone == 0) return;
    n += report_format(line + n, room - n, "; object of %zu bytes", apart->size);
    if (written)
        n += report_format(line + n, room - n, ", first changed byte at offset %s%zu", is_before ? "-" : "",
                           (size_t)(is_before ? object - written : written - object));
    if (apart->reap)
        report_format(line + n, room - n, ", reap %p%s%s", apart->reap, *apart->reap_name ? " " : "",
                      apart->reap_name);
}

/* --- the dead -------------------------------------------------------------------------------- */

static void check_kept(const struct apart *apart)
{
    char line[GUARDED_LINE];
    if (watched) sanitizer_show(object_of(apart), apart->node.kept);
    if (is_filled(object_of(apart), apart->node.kept, FREED_BYTE)) return;
    guarded_tell(apart->header, "memory was written to after it was freed", line, sizeof line);
    report_misuse("reapFree", object_of(apart), line);
}

static void give_up(struct apart *apart)
{
    if (apart->node.kept) {
        check_kept(apart);
        if (watched) each_zone(apart, apart->size, show);
        give_block(apart->block);
    }
    hoard_free_fast(apart, "reapFree");
}

static void give_up_more_than(size_t count, size_t bytes)
{
    struct guarded_node *node;
    while ((node = guarded_map_exhume(count, bytes)) != NULL) give_up(of_node(node));
}

void guarded_free(void *header)
{
    struct apart *apart = header;
    ASSERT(!apart->node.dead);
    size_t room = guarded_room(header), kept = keep && room <= KEPT_MAX / 4 ? room : 0;
    if (kept) {
        if (watched) sanitizer_show(object_of(apart), room);
        memset(object_of(apart), FREED_BYTE, room);
        if (watched) sanitizer_hide(object_of(apart), room);
    } else if (watched && !foreign) {
        each_zone(apart, apart->size, show);
        sanitizer_show(object_of(apart), room);
    }
    char *block = apart->block;
    guarded_map_bury(&apart->node, kept); /* another thread may give up the dead piece from here on */
    if (!kept) give_block(block);         /* and may have its memory from malloc from here on */
    give_up_more_than(DEAD_MAX, KEPT_MAX);
}

void guarded_check_freed(void) { give_up_more_than(0, 0); }
