/* SPDX-License-Identifier: Apache-2.0 */
/* objects.c: calls that make, free and look at objects of reaps. */
#include "fuzz_ops.h"

#include <stdarg.h>

/* --- allocation ------------------------------------------------------------------------------ */

struct made {
    struct node *node;
    struct object *object;
    size_t size;
};

static bool begin(const struct record *rec, struct made *made)
{
    made->node = node_of(rec);
    made->object = empty_slot(rec);
    if (!made->node || !made->object) return false;
    me->asked = index_of(made->node);
    made->size = size_in(me->asked, rec->size);
    atomic_store(&made->object->where, RESERVED);
    errno = 0;
    return true;
}

/* The reap that was asked may have been cleared by a function of its limit, and be as it was. */
static bool end(struct made *made, void *at, size_t size)
{
    int reap = me->asked;
    me->asked = NONE;
    atomic_store(&made->object->where, EMPTY);
    if (!at) {
        check_refused(reap, NONE, size > PTRDIFF_MAX ? 0 : usable_for(size), 0, size);
        return false;
    }
    CHECK(size <= PTRDIFF_MAX, "an impossible size was given");
    object_enter(made->object, reap, at, size);
    return true;
}

#define HANDLE handle_of(made.node)
#define NAMES slot_of(made.object), index_of(made.node)

void do_malloc(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    SAY("o[%u] = reapMalloc(&r[%d], %zu);", NAMES, made.size);
    end(&made, reapMalloc(HANDLE, made.size), made.size);
}

void do_malloc_called(const struct record *rec)
{
    struct made made;
    void *(*volatile call)(void **reap, size_t size) = reapMalloc;
    if (!begin(rec, &made)) return;
    SAY("o[%u] = (reapMalloc)(&r[%d], %zu);", NAMES, made.size);
    end(&made, call(HANDLE, made.size), made.size);
}

static bool is_zero(const unsigned char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != 0) return false;
    return true;
}

void do_calloc(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    size_t n = 1 + rec->extra % 4, size = rec->extra & 0x80 ? made.size : made.size / n;
    SAY("o[%u] = reapCalloc(&r[%d], %zu, %zu);", NAMES, n, size);
    unsigned char *at = reapCalloc(HANDLE, n, size);
    if (__builtin_mul_overflow(n, size, &size)) size = SIZE_MAX;
    CHECK(!at || is_zero(at, size), "reapCalloc: not zero");
    end(&made, at, size);
}

void do_aligned(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    size_t alignment = (size_t)1 << rec->extra % 17;
    if (rec->extra >= 250) alignment = rec->extra == 250 ? 0 : 24;
    SAY("o[%u] = reapAlignedAlloc(&r[%d], %zu, %zu);", NAMES, alignment, made.size);
    void *at = reapAlignedAlloc(HANDLE, OPAQUE_POINTER(alignment), made.size);
    if (rec->extra >= 250) {
        CHECK(!at && errno == EINVAL, "reapAlignedAlloc: an alignment of %zu is taken", alignment);
        me->asked = NONE;
        atomic_store(&made.object->where, EMPTY);
        return;
    }
    CHECK((uintptr_t)at % alignment == 0, "reapAlignedAlloc: not aligned to %zu", alignment);
    end(&made, at, made.size);
}

/* A text of the length, which is made less where that is needed. */
static const char *text_of(size_t *length)
{
    static __thread char text[5000];
    if (*length > sizeof text - 1) *length = sizeof text - 1;
    for (size_t i = 0; i < *length; i++) text[i] = (char)('a' + (i + *length) % 26);
    text[*length] = '\0';
    return text;
}

static void end_text(struct made *made, char *at, const char *text, size_t length, bool terminated)
{
    CHECK(!at || memcmp(at, text, length) == 0, "not a copy");
    CHECK(!at || !terminated || !at[length], "a copy without an end");
    end(made, at, length + terminated);
}

void do_strdup(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    const char *text = text_of(&made.size);
    SAY("o[%u] = reapStrdup(&r[%d], /* a text of */ text(%zu));", NAMES, made.size);
    end_text(&made, reapStrdup(HANDLE, text), text, made.size, true);
}

void do_strndup(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    const char *text = text_of(&made.size);
    size_t n = rec->extra * 16u, length = n < made.size ? n : made.size;
    SAY("o[%u] = reapStrndup(&r[%d], text(%zu), %zu);", NAMES, made.size, n);
    end_text(&made, reapStrndup(HANDLE, text, n), text, length, true);
}

void do_memdup(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    const char *text = text_of(&made.size);
    SAY("o[%u] = reapMemdup(&r[%d], text(%zu), %zu);", NAMES, made.size, made.size);
    end_text(&made, reapMemdup(HANDLE, text, made.size), text, made.size, false);
}

void do_printf(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    const char *text = text_of(&made.size);
    SAY("o[%u] = reapPrintf(&r[%d], \"%%s\", text(%zu));", NAMES, made.size);
    end_text(&made, reapPrintf(HANDLE, "%s", text), text, made.size, true);
}

static char *printed(void **handle, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *at = reapVprintf(handle, format, args);
    va_end(args);
    return at;
}

void do_vprintf(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    const char *text = text_of(&made.size);
    SAY("o[%u] = printed(&r[%d], \"%%s\", text(%zu)); /* by reapVprintf */", NAMES, made.size);
    end_text(&made, printed(HANDLE, "%s", text), text, made.size, true);
}

void do_realloc_null(const struct record *rec)
{
    struct made made;
    if (!begin(rec, &made)) return;
    SAY("o[%u] = reapRealloc(&r[%d], NULL, %zu);", NAMES, made.size);
    end(&made, reapRealloc(HANDLE, NULL, made.size), made.size);
}

/* Many of a size, in what is free of a range of slots: as a table, a list or a parser's nodes are made. */
void do_fill(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    struct record one = *rec;
    one.size &= 0x7fff; /* no large ones */
    SAY("for (int i = 0; i <= %u; i++) /* where nothing is */ o[(%u + i) %% %u] = reapMalloc(&r[%d], %zu);",
        rec->extra, rec->slot % me->program->slots, me->program->slots, index_of(node), size_of(one.size));
    me->silent = true;
    for (unsigned i = 0; i <= rec->extra; i++, one.slot++) {
        struct object *object = &me->objects[one.slot % me->program->slots];
        one.slot = (uint16_t)slot_of(object);
        if (atomic_load(&object->where) == EMPTY) do_malloc(&one);
    }
    me->silent = false;
}

/* --- freeing --------------------------------------------------------------------------------- */

static void free_one(struct object *object)
{
    if (!object || object == me->held || object->reap == NONE) return;
    if (atomic_load(&object->where) != HOME) return;
    void *at = object->at, *handle = me->nodes[object->reap].handle; /* a copy is enough */
    check_filled(object, object->filled);
    SAY("reapFree(&r[%d], o[%u]);", object->reap, slot_of(object));
    object_leave(object);
    reapFree(spelled(&handle), at);
}

void do_free(const struct record *rec) { free_one(reaps_object(rec)); }

void do_free_newest(const struct record *rec)
{
    struct node *node = node_of(rec);
    for (unsigned i = 0; node && node->newest && i <= (rec->extra % 8u == 0); i++) free_one(node->newest);
}

void do_free_oldest(const struct record *rec)
{
    struct node *node = node_of(rec);
    for (unsigned i = 0; node && node->oldest && i <= (rec->extra % 8u == 0); i++) free_one(node->oldest);
}

/* As many, the newest first, or the oldest. */
static void free_many(const struct record *rec, bool newest)
{
    struct node *node = node_of(rec);
    struct object *object;
    if (!node) return;
    SAY("for (int i = 0; i <= %u; i++) reapFree(&r[%d], /* the %s of its objects */);", rec->extra,
        index_of(node), newest ? "newest" : "oldest");
    me->silent = true;
    for (unsigned i = 0; i <= rec->extra && (object = newest ? node->newest : node->oldest); i++)
        free_one(object);
    me->silent = false;
}

void do_unwind(const struct record *rec) { free_many(rec, true); }
void do_drain(const struct record *rec) { free_many(rec, false); }

void do_free_null(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    SAY("reapFree(&r[%d], NULL);", index_of(node));
    reapFree(handle_of(node), NULL);
    CHECK(reapUsableSize(NULL) == 0, "reapUsableSize(NULL)");
}

/* --- resizing -------------------------------------------------------------------------------- */

static void resize(struct object *object, size_t size)
{
    if (!object || me->held || object->builder) return;
    if (object->reap == NONE || atomic_load(&object->where) != HOME) return;
    size_t had = object->usable, common = size < object->size ? size : object->size;
    check_filled(object, object->filled);
    me->asked = object->reap;
    me->held = object;
    errno = 0;
    SAY("o[%u] = reapRealloc(&r[%d], o[%u], %zu);", slot_of(object), object->reap, slot_of(object), size);
    void *at = reapRealloc(handle_of(&me->nodes[object->reap]), object->at, size);
    me->asked = NONE;
    me->held = NULL;
    if (!at) {
        size_t more = size > PTRDIFF_MAX ? 0 : usable_for(size);
        check_filled(object, object->filled);
        check_refused(object->reap, NONE, more > had ? more - had : 0, 0, size);
        return;
    }
    CHECK(size <= PTRDIFF_MAX, "an impossible size was given");
    unsigned char *old = object->at;
    object->at = at;
    check_filled(object, common);
    object->at = old;
    object_resized(object, at, size);
}

void do_realloc(const struct record *rec)
{
    struct object *object = reaps_object(rec);
    if (object && rec->extra % 4 == 0) /* a little more, or less */
        resize(object, object->size + rec->extra / 4 > 32 ? object->size + rec->extra / 4 - 32 : 0);
    else
        resize(object, size_of(rec->size));
}

void do_realloc_newest(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    size_t size = size_in(index_of(node), rec->size);
    resize(node->newest, size + (node->newest && size <= PTRDIFF_MAX ? node->newest->usable : 0));
}

/* --- to another reap ------------------------------------------------------------------------- */

void do_move(const struct record *rec)
{
    struct object *object = reaps_object(rec);
    struct node *to = node_of(rec);
    if (!object || !to || me->held || object->builder) return;
    int from = object->reap, target = index_of(to);
    size_t bytes = object->usable;
    check_filled(object, object->filled);
    me->asked = target;
    me->held = object;
    errno = 0;
    SAY("o[%u] = reapMove(o[%u], &r[%d], &r[%d]);", slot_of(object), slot_of(object), from, target);
    void *at = reapMove(object->at, handle_of(&me->nodes[from]), handle_of(to));
    me->asked = NONE;
    me->held = NULL;
    if (!at) {
        check_filled(object, object->filled);
        check_refused(target, from, bytes, 0, bytes);
        return;
    }
    CHECK(from != target || at == object->at, "moved within a reap");
    object->at = at;
    if (from != target) object_to(object, target, to->depth);
    check_filled(object, object->filled);
    CHECK(reapUsableSize(at) == bytes, "reapMove has changed the size from %zu to %zu", bytes,
          reapUsableSize(at));
}

/* --- looking --------------------------------------------------------------------------------- */

void do_usable(const struct record *rec)
{
    struct object *object = reaps_object(rec);
    if (!object) return;
    size_t size = reapUsableSize(object->at);
    CHECK(size == object->usable, "reapUsableSize is %zu of %zu", size, object->usable);
    check_filled(object, object->filled);
}

void do_of(const struct record *rec)
{
    struct object *object = live_object(rec);
    void *owner = &owner, *expected;
    if (!object) return;
    size_t at = object->usable ? rec->size % object->usable : 0;
    expected = object->reap == NONE ? NULL : me->nodes[object->reap].handle;
    SAY("reapOf((char *)o[%u] + %zu, &owner);", slot_of(object), at);
    errno = 0;
    int result = reap_of(object->at + at, &owner);
    CHECK(owner == expected && result == (expected ? 0 : -1), "reapOf names another reap");
    CHECK(expected || errno == ENOENT, "reapOf: errno %d", errno);
}
