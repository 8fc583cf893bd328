/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/apart.h"

#include "base/options.h"
#include "base/report.h"
#include "base/sanitizer.h"
#include "hoard/malloc_fast.h"
#include "hoard/redirect.h"
#include "hoard/user_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 16,                  /* bytes; an object has whole ones */
    ZONE = 16,                  /* bytes on each side */
    DEAD_MAX = 16384,           /* headers of freed objects */
    KEPT_MAX = 4 * 1024 * 1024, /* bytes of freed objects */
    NAME_MAX_KEPT = 48,         /* bytes of a reap's name, its end included */
    ZONE_BYTE = 0xa5,
    FREED_BYTE = 0xdf
};

struct apart {
    struct apart_entry entry;
    char *block;
    size_t size;      /* bytes that the program may touch */
    const void *reap; /* its reap, now or before: for a line only */
    char reap_name[NAME_MAX_KEPT];
};

static bool foreign; /* blocks come from the process's malloc, which is not this library's */
static bool watched; /* a tool watches the program */
static size_t zone;  /* ZONE, or 0 without harden */

/* Of libreap-trace, which sees calls, and not what reap.h does inline. */
extern const char reap_trace_is_here[] __attribute__((weak, visibility("default")));

/* Tools keep freed blocks of their own malloc themselves, and look at what is written round them. */
void apart_start(void)
{
    watched = sanitizer_running();
    foreign = (watched || options.bypass) && !redirect_on;
    zone = options.harden && !watched ? ZONE : 0;
    bool is_due = watched || options.bypass || options.harden || reap_trace_is_here;
    apart_on = is_due && apart_table_start();
    if (!apart_on) return;
    user_memory_begin_apart();
    if (zone != 0) atexit(apart_check_freed);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void *take_memory(size_t alignment, size_t size)
{
    if (!foreign) return hoard_aligned(alignment, size, NULL);
    return alignment <= UNIT ? malloc(size) : aligned_alloc(alignment, align_up(size, alignment));
}

static void give_memory(const struct apart *apart)
{
    if (watched && !foreign) { /* defined: free reads the first bytes */
        size_t size = (size_t)(apart->entry.object - apart->block) + apart->entry.room;
        sanitizer_show(apart->block, size);
        sanitizer_use(apart->block, size);
    }
    if (foreign)
        free(apart->block);
    else
        hoard_free_fast(apart->block, "reapFree");
}

/* --- zones ----------------------------------------------------------------------------------- */

/* The first byte in `size` bytes that is not `byte`; NULL: there is none. */
static const char *first_other(const char *at, size_t size, int byte)
{
    if (size == 0 || ((unsigned char)*at == byte && memcmp(at, at + 1, size - 1) == 0)) return NULL;
    while ((unsigned char)*at == byte) at++;
    return at;
}

/* What is behind the bytes that the program may touch. */
static void close_rest(struct apart *apart, size_t size)
{
    char *rest = apart->entry.object + size;
    if (zone != 0) memset(rest, ZONE_BYTE, apart->entry.room - size + zone);
    if (watched) sanitizer_hide(rest, apart->entry.room - size);
}

/* The first byte that was written to: in a zone or the rest, or in a freed object. */
static const char *first_written(const struct apart *apart, size_t size)
{
    const char *object = apart->entry.object;
    if (zone == 0 || (apart->entry.is_dead && !apart->entry.waits)) return NULL;
    if (apart->entry.is_dead) return first_other(object, apart->entry.room, FREED_BYTE);
    const char *before = first_other(apart->block, (size_t)(object - apart->block), ZONE_BYTE);
    return before ? before : first_other(object + size, apart->entry.room - size + zone, ZONE_BYTE);
}

/* Another thread may ask for the usable size meanwhile, and touch the rest. */
bool apart_is_intact(const void *header)
{
    const struct apart *apart = header;
    size_t size = __atomic_load_n(&apart->size, __ATOMIC_ACQUIRE);
    if (LIKELY(first_written(apart, size) == NULL)) return true;
    return size < __atomic_load_n(&apart->size, __ATOMIC_ACQUIRE) && apart_is_intact(header);
}

/* The lock is for threads that ask for the size at once: a tool takes what it is shown for undefined. */
void apart_widen(void *header, size_t size)
{
    struct apart *apart = header;
    ASSERT(size <= apart->entry.room && !apart->entry.is_dead);
    apart_hold();
    size_t before = apart->size;
    if (size > before && watched) sanitizer_show(apart->entry.object + before, size - before);
    if (size > before) __atomic_store_n(&apart->size, size, __ATOMIC_RELEASE);
    apart_let_go();
}

/* The rest is closed before it counts as the rest: the child of a fork may look in between. */
void apart_set_size(void *header, size_t size)
{
    struct apart *apart = header;
    apart_widen(apart, size);
    close_rest(apart, size);
    __atomic_store_n(&apart->size, size, __ATOMIC_RELEASE);
}

void apart_use(const void *object) { sanitizer_use((void *)(uintptr_t)object, UNIT); }

/* --- allocation and free --------------------------------------------------------------------- */

void *apart_alloc(size_t alignment, size_t size, void **object, size_t *held)
{
    size_t before = foreign && zone == 0 ? 0 : align_up(ZONE, alignment);
    if (alignment > SIZE_LIMIT / 4 || size > SIZE_LIMIT / 4) return no_memory();
    size_t room = align_up(size + (size == 0), UNIT);
    struct apart *apart = hoard_malloc_fast(sizeof *apart);
    char *block = apart ? take_memory(alignment, before + room + zone) : NULL;
    if (!block) {
        if (apart) hoard_free_fast(apart, "reapMalloc");
        return no_memory();
    }
    *apart = (struct apart){.entry = {.object = block + before, .room = room}, .block = block, .size = size};
    if (watched && !foreign) {
        sanitizer_hide(block, before);
        sanitizer_alloc(apart->entry.object, size);
    }
    if (zone != 0) memset(block, ZONE_BYTE, before);
    close_rest(apart, size);
    apart_enter(&apart->entry);
    *object = apart->entry.object;
    *held = before + room + zone;
    return apart;
}

static void give_up_more_than(size_t count, size_t bytes)
{
    char line[APART_LINE];
    for (struct apart *apart; (apart = (struct apart *)apart_exhume(count, bytes)) != NULL;) {
        if (UNLIKELY(first_written(apart, 0) != NULL)) {
            apart_tell(apart, "memory was written to after it was freed", line, sizeof line);
            report_misuse("reapFree", apart->entry.object, line);
        }
        if (apart->entry.waits) give_memory(apart);
        hoard_free_fast(apart, "reapFree");
    }
}

void apart_free(void *header)
{
    struct apart *apart = header;
    bool waits = (watched ? !foreign : zone != 0) && apart->entry.room <= KEPT_MAX / 4;
    ASSERT(!apart->entry.is_dead);
    if (watched && !foreign) sanitizer_free(apart->entry.object, apart->entry.room);
    if (waits && zone != 0) memset(apart->entry.object, FREED_BYTE, apart->entry.room);
    const struct apart whole = *apart;
    apart_bury(&apart->entry, waits); /* from here on another thread may give up the header */
    if (!waits) give_memory(&whole);  /* from here on it may be another's memory */
    give_up_more_than(DEAD_MAX, KEPT_MAX);
}

void apart_check_freed(void) { give_up_more_than(0, 0); }

/* --- a line about an object ------------------------------------------------------------------- */

void apart_note(void *header, const void *reap, const char *name)
{
    struct apart *apart = header;
    size_t length = strnlen(name, sizeof apart->reap_name - 1);
    apart->reap = reap;
    memcpy(apart->reap_name, name, length);
    apart->reap_name[length] = '\0';
}

void apart_tell(const void *header, const char *what, char *line, size_t room)
{
    const struct apart *apart = header;
    size_t n = report_format(line, room, "%s", what);
    if (zone == 0) return;
    const char *object = apart->entry.object, *written = first_written(apart, apart->size);
    bool is_before = written && written < object;
    n += report_format(line + n, room - n, "; object of %zu bytes", apart->size);
    if (written)
        n += report_format(line + n, room - n, ", first changed byte at offset %s%zu", is_before ? "-" : "",
                           (size_t)(is_before ? object - written : written - object));
    if (apart->reap)
        report_format(line + n, room - n, ", reap %p%s%s", apart->reap, *apart->reap_name ? " " : "",
                      apart->reap_name);
}
