/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c: objects that grow at their end. Two for each reap, so that they are in each other's way.
 *
 * In the model the object of a builder is one of the reap's objects, of the builder's room, of which only
 * the length is filled. What a call has appended is looked at, and then filled as in other objects.
 */
#include "fuzz_ops.h"

#include <stdarg.h>
#include <wchar.h>

enum { TEXT = 5000, ROOM_MIN = 256, LONG = 1 << 20 };

/* One call: what it is of, and how things were before. */
struct growth {
    struct node *node;
    struct builder *builder;
    struct object *object; /* the builder's, or an empty slot */
    reap_builder before;
    size_t n;     /* bytes to append */
    bool limited; /* before: the function of a limit may take it away */
};

#define BUILDER (&growth.builder->is)
#define NAMES index_of(growth.node), (unsigned)(growth.builder - me->builders)

static bool is_empty(const reap_builder *is) { return !is->data && !is->length && !is->room; }

static void check_builder(const struct builder *builder)
{
    const struct object *object = builder->object;
    if (!object) {
        CHECK(is_empty(&builder->is), "an empty builder is not zeros");
        return;
    }
    CHECK(builder->is.data == (char *)object->at, "a builder's data is not its object");
    CHECK(builder->is.length == object->filled, "a builder's length is %zu of %zu", builder->is.length,
          object->filled);
    CHECK(builder->is.room == object->size, "a builder's room is %zu of %zu", builder->is.room, object->size);
    CHECK(builder->is.length < builder->is.room, "a builder has no room for the zero");
    CHECK(builder->is_cut || object->at[object->filled] == 0, "no zero behind a builder's object");
    check_filled(object, object->filled);
}

/* An object above LONG grows by little: each look reads all of it. */
static bool begin(const struct record *rec, struct growth *growth, size_t n)
{
    growth->node = node_of(rec);
    if (!growth->node || me->held) return false;
    growth->builder = &me->builders[index_of(growth->node) * 2 + (rec->extra & 1)];
    growth->object = growth->builder->object ? growth->builder->object : empty_slot(rec);
    if (!growth->object) return false;
    if (growth->builder->object && atomic_load(&growth->object->where) != HOME) return false;
    check_builder(growth->builder);
    growth->before = growth->builder->is;
    if (growth->before.length > LONG && n > TEXT && n <= PTRDIFF_MAX) n %= TEXT;
    growth->n = n;
    growth->limited = is_limited(index_of(growth->node));
    if (growth->builder->object)
        me->held = growth->object;
    else
        atomic_store(&growth->object->where, RESERVED);
    me->asked = index_of(growth->node);
    size_t need;
    me->needed = __builtin_add_overflow(growth->before.length + 1, n, &need) ? SIZE_MAX : need;
    errno = 0;
    return true;
}

/* The call is over, and no function of a limit runs any more. */
static void returned(struct growth *growth)
{
    me->asked = NONE;
    me->held = NULL;
    me->needed = 0;
    if (!growth->builder->object) atomic_store(&growth->object->where, EMPTY);
}

/* It was refused: all is as before. */
static void check_as_before(const struct growth *growth, size_t need)
{
    const struct builder *builder = growth->builder;
    const reap_builder *is = &builder->is, *before = &growth->before;
    size_t had = builder->object ? builder->object->usable : 0;
    CHECK(is->data == before->data && is->length == before->length && is->room == before->room,
          "a call that failed has changed the builder");
    check_builder(builder);
    size_t more = need > PTRDIFF_MAX ? 0 : usable_for(need) - had;
    if (need <= PTRDIFF_MAX) CHECK(need > before->room, "an append that needs no memory is refused");
    check_refused(index_of(growth->node), NONE, more, 0, need);
}

/* The room doubles where nothing refuses that. */
static size_t room_for(size_t room, size_t need)
{
    if (need <= room) return room;
    size_t twice = room < ROOM_MIN ? ROOM_MIN : 2 * room;
    return need < twice ? twice : need;
}

static void check_room(const struct growth *growth, size_t need)
{
    size_t room = growth->builder->is.room, expected = room_for(growth->before.room, need);
    CHECK(room == expected || (room == need && growth->limited), "a builder's room is %zu, and not %zu", room,
          expected);
    CHECK(room != growth->before.room || growth->builder->is.data == growth->before.data,
          "a builder's object has moved without need");
}

/* The object's place in the model, as it is after the call. What was there before is checked. */
static void settle(struct growth *growth)
{
    struct object *object = growth->object;
    reap_builder *is = &growth->builder->is;
    size_t filled = growth->before.length;
    if (!growth->builder->object) {
        object->builder = growth->builder;
        growth->builder->object = object;
        object_place(object, index_of(growth->node), is->data, is->room);
        object->filled = 0;
        new_seed(object);
    } else if (is->data != growth->before.data || is->room != growth->before.room) {
        object_replaced(object, is->data, is->room);
        object->filled = filled;
    }
    growth->builder->is_cut = false;
    check_filled(object, filled);
}

/* True when the n bytes are there: the caller looks at them, and fills. */
static bool end(struct growth *growth, bool done)
{
    size_t need = me->needed;
    returned(growth);
    if (!done) {
        check_as_before(growth, need);
        return false;
    }
    const reap_builder *is = &growth->builder->is;
    CHECK(need <= PTRDIFF_MAX, "an impossible length was given");
    CHECK(is->length == need - 1, "a builder's length is %zu for %zu", is->length, need - 1);
    CHECK(is->data[is->length] == 0, "no zero behind a builder's object");
    check_room(growth, need);
    settle(growth);
    return true;
}

static void fill_growth(struct growth *growth)
{
    growth->object->filled = growth->builder->is.length;
    fill_from(growth->object, growth->before.length);
    check_builder(growth->builder);
}

static void end_text(struct growth *growth, int result, const void *text)
{
    CHECK(result == 0 || result == -1, "an append gives %d", result);
    if (!end(growth, result == 0)) return;
    CHECK(memcmp(growth->builder->is.data + growth->before.length, text, growth->n) == 0,
          "what was appended is not there");
    fill_growth(growth);
}

static const char *text_of(size_t length)
{
    static __thread char text[TEXT + 1];
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + (i + length) % 26);
    text[length] = '\0';
    return text;
}

static size_t length_of(const struct record *rec)
{
    size_t n = size_of(rec->size);
    return n > TEXT ? n % TEXT : n;
}

void do_append(const struct record *rec)
{
    struct growth growth;
    size_t n = length_of(rec), size = size_of(rec->size);
    if (size > PTRDIFF_MAX) n = size; /* refused, before a byte is read */
    if (!begin(rec, &growth, n)) return;
    const char *text = text_of(n > TEXT ? 0 : n);
    SAY("reapAppend(&r[%d], &b[%u], text(%zu), %zu);", NAMES, n, n);
    end_text(&growth, reapAppend(handle_of(growth.node), BUILDER, text, OPAQUE_POINTER(n)), text);
}

void do_append_string(const struct record *rec)
{
    struct growth growth;
    size_t n = length_of(rec);
    if (!begin(rec, &growth, n)) return;
    const char *text = text_of(n);
    SAY("reapAppendString(&r[%d], &b[%u], text(%zu));", NAMES, n);
    end_text(&growth, reapAppendString(handle_of(growth.node), BUILDER, text), text);
}

static int appended(void **handle, reap_builder *builder, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = reapVappendf(handle, builder, format, args);
    va_end(args);
    return result;
}

void do_appendf(const struct record *rec)
{
    struct growth growth;
    size_t n = length_of(rec);
    if (!begin(rec, &growth, n)) return;
    const char *text = text_of(n);
    bool by_list = rec->extra & 2;
    SAY("%s(&r[%d], &b[%u], \"%%s\", text(%zu));", by_list ? "appended" : "reapAppendf", NAMES, n);
    int result = by_list ? appended(handle_of(growth.node), BUILDER, "%s", text)
                         : reapAppendf(handle_of(growth.node), BUILDER, "%s", text);
    end_text(&growth, result, text);
}

/* What vsnprintf refuses: there is no such character. */
void do_appendf_wrong(const struct record *rec)
{
    struct growth growth;
    if (!begin(rec, &growth, 0)) return;
    SAY("reapAppendf(&r[%d], &b[%u], \"%%lc\", (wint_t)0x7fffffff);", NAMES);
    int result = reapAppendf(handle_of(growth.node), BUILDER, "%lc", (wint_t)0x7fffffff);
    returned(&growth);
    CHECK(result == -1 && errno == EILSEQ, "reapAppendf of no character gives %d, errno %d", result, errno);
    CHECK(memcmp(BUILDER, &growth.before, sizeof growth.before) == 0, "reapAppendf has changed the builder");
    check_builder(growth.builder);
}

void do_extend(const struct record *rec)
{
    struct growth growth;
    if (!begin(rec, &growth, size_in(rec->reap % me->program->reaps, rec->size))) return;
    size_t n = growth.n;
    SAY("reapExtend(&r[%d], &b[%u], %zu);", NAMES, n);
    char *bytes = reapExtend(handle_of(growth.node), BUILDER, OPAQUE_POINTER(n));
    if (!end(&growth, bytes != NULL)) return;
    CHECK(bytes == growth.builder->is.data + growth.before.length, "reapExtend gives another place");
    fill_growth(&growth);
}

/* Bytes of the object itself, which moves perhaps: a part of it, or the rest up to the next zero. */
void do_append_own(const struct record *rec)
{
    static __thread char copy[TEXT + 1];
    struct growth growth;
    if (!begin(rec, &growth, 0)) return;
    size_t length = growth.before.length, from = length ? rec->slot % (length + 1) : 0;
    bool of_string = rec->extra & 2 && !growth.builder->is_cut;
    const char *own = growth.before.data ? growth.before.data + from : NULL;
    if (growth.before.data)
        growth.n = of_string ? strnlen(own, TEXT) : rec->size % (length - from + 1) % TEXT;
    if (!growth.before.data || growth.n == TEXT) {
        returned(&growth);
        return;
    }
    me->needed += growth.n;
    memcpy(copy, own, growth.n);
    SAY("%s(&r[%d], &b[%u], b[%u].data + %zu, %zu);", of_string ? "reapAppendString" : "reapAppend", NAMES,
        (unsigned)(growth.builder - me->builders), from, growth.n);
    end_text(&growth,
             of_string ? reapAppendString(handle_of(growth.node), BUILDER, own)
                       : reapAppend(handle_of(growth.node), BUILDER, own, growth.n),
             copy);
}

/* The program takes bytes from the end; the zero is there again after the next call. */
void do_cut(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    struct builder *builder = &me->builders[index_of(node) * 2 + (rec->extra & 1)];
    struct object *object = builder->object;
    if (!object || object == me->held || atomic_load(&object->where) != HOME) return;
    check_builder(builder);
    object->filled = rec->extra & 2 ? 0 : rec->size % (object->filled + 1);
    SAY("b[%u].length = %zu;", (unsigned)(builder - me->builders), object->filled);
    builder->is.length = object->filled;
    builder->is_cut = true;
}

/* It is an object as others are from now on. */
static void finished(struct growth *growth, char *data)
{
    struct object *object = growth->object;
    size_t length = growth->before.length, size = length + 1;
    size_t kept = usable_for(growth->before.room), usable = reapUsableSize(data);
    CHECK(data[length] == 0, "reapFinish: no zero");
    if (usable != usable_for(size)) { /* there was no memory to take less */
        CHECK(growth->limited && usable == kept, "reapFinish leaves %zu bytes for %zu", usable, size);
        size = growth->before.room;
    }
    if (growth->builder->object) {
        object->builder = NULL;
        growth->builder->object = NULL;
        unsigned char *old = object->at;
        object->at = (unsigned char *)data;
        check_filled(object, length);
        object->at = old;
        object_resized(object, data, size);
    } else {
        object_enter(object, index_of(growth->node), data, size);
    }
}

void do_finish(const struct record *rec)
{
    struct growth growth;
    if (!begin(rec, &growth, 0)) return;
    SAY("o[%u] = reapFinish(&r[%d], &b[%u]);", slot_of(growth.object), NAMES);
    char *data = reapFinish(handle_of(growth.node), BUILDER);
    returned(&growth);
    if (!data) {
        CHECK(!growth.builder->object, "reapFinish gives no object of a builder that has one");
        check_as_before(&growth, 1);
        return;
    }
    CHECK(is_empty(BUILDER), "reapFinish: the builder is not empty");
    growth.builder->is_cut = false;
    finished(&growth, data);
}
