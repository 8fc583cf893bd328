/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_mark.c: marks: what goes with a rewind, what stays, and where objects come from meanwhile. */
#include "support/reap_fixture.h"

static char order[100];

static void note(void *arg) { strcat(order, arg); }

/* --- one mark -------------------------------------------------------------------------------- */

TEST(a_rewind_frees_what_came_after)
{
    reap_mark mark;
    void *owner, *older[50], *younger[2000];
    for (int i = 0; i < 50; i++) older[i] = memset(reapMalloc(&reap, 100), i, 100);
    struct reap_stats before = stats();
    reapMark(&reap, &mark);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) younger[i] = memset(reapMalloc(&reap, 200), 99, 200);
        ck_assert_ptr_nonnull(reapMalloc(&reap, 500000));
        for (int i = 0; i < 2000; i += 3) reapFree(&reap, younger[i]);
        assert_valid(reap);
        reapRewind(&reap, &mark);
        assert_valid(reap);
        ck_assert_uint_eq(stats().live_objects, before.live_objects);
        ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
        ck_assert_uint_eq(stats().chunk_bytes, before.chunk_bytes);
        ck_assert_int_eq(reapOf(younger[1], &owner), -1);
    }
    for (int i = 0; i < 50; i++) ck_assert_int_eq(((char *)older[i])[99], i);
    void *first = reapMalloc(&reap, 10);
    if (!apart_on) ck_assert_ptr_eq(first, younger[0]);
    reapUnmark(&reap, &mark);
    ck_assert_uint_eq(stats().live_objects, before.live_objects + 1);
}

/* After the last mark was closed the hole stays, and comes before the gaps. Allocates until one is used. */
static char *spend_hole(size_t size)
{
    char *object = reapMalloc(&reap, size), *before = object;
    for (int i = 0; i < 10000 && object >= before; i++) {
        before = object;
        object = reapMalloc(&reap, size);
    }
    return object;
}

/* While a mark is open free memory is left alone, and nothing grows across the mark; afterwards both are
 * as they were. */
TEST(objects_come_from_the_bump_pointer_only, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    reap_mark mark;
    char *objects[20], *last = NULL;
    for (int i = 0; i < 20; i++) objects[i] = last = reapMalloc(&reap, 64);
    for (int i = 0; i < 19; i += 2) reapFree(&reap, objects[i]);
    reapMark(&reap, &mark);
    for (int i = 0; i < 10; i++) {
        char *object = reapMalloc(&reap, 64);
        ck_assert(object > last);
        last = object;
        reapFree(&reap, objects[1]);
        objects[1] = reapMalloc(&reap, 16);
        ck_assert(objects[1] > last);
        last = objects[1];
    }
    char *old = objects[19], *grown = reapRealloc(&reap, old, 128);
    ck_assert(grown > last);
    reapUnmark(&reap, &mark);
    ck_assert(spend_hole(64) <= objects[19]);
}

/* Fills the hole of a reap to its last unit. */
static void fill(void *handle)
{
    struct reap_front *front = handle;
    while (front->bump < front->end) reapMalloc(&handle, 16);
}

/* A mark where the first chunk is full to its last unit, after which the reap's memory is used anew in one of
 * these ways. An object that does not fit into the chunk must not lie behind it. */
enum { BY_CLEAR, BY_REWIND, BY_END, BY_END_OF_CHILD, BY_CLEAR_IN_LIMIT, BY_CLEAR_OPEN, WAYS };
TEST(a_mark_in_a_full_chunk, .times = WAYS)
{
    needs(!apart_on, "objects lie apart");
    void *r, *parent = NULL;
    reap_mark mark;
    if (_i == BY_END_OF_CHILD) reapCreate(&parent, NULL);
    reapCreate(&r, &parent);
    if (_i == BY_CLEAR_IN_LIMIT) ck_assert_int_eq(reapSetLimit(&r, 1 << 20), 0);
    fill(r);
    if (_i == BY_CLEAR_IN_LIMIT) ck_assert_int_eq(reapSetLimit(&r, 0), 0);
    reapMark(&r, &mark);
    if (_i == BY_REWIND) reapRewind(&r, &mark);
    if (_i != BY_CLEAR_OPEN) reapUnmark(&r, &mark);
    if (_i == BY_END || _i == BY_END_OF_CHILD) {
        reapDestroy(&r);
        reapCreate(&r, &parent);
    } else {
        reapFreeAll(&r);
    }
    assert_valid(r);
    for (size_t size = 16; size <= REAP_LARGE; size *= 2) {
        char *object = memset(reapMalloc(&r, size), 1, size);
        void *owner;
        ck_assert_int_eq(reapOf(object + size - 1, &owner), 0);
        ck_assert_ptr_eq(owner, r);
    }
    assert_valid(r);
    reapDestroy(parent ? &parent : &r);
}

/* An older object before the mark leaves a free block there: the bump pointer stays. */
TEST(older_objects_stay_freed, .modes = NOT_IN_PARTS)
{
    reap_mark mark;
    char *a = reapMalloc(&reap, 64), *b = reapMalloc(&reap, 64);
    reapMark(&reap, &mark);
    reapFree(&reap, b);
    assert_valid(reap);
    char *c = reapMalloc(&reap, 64);
    ck_assert(c == b + 64 || apart_on);
    reapFree(&reap, c);
    char *again = reapMalloc(&reap, 64);
    ck_assert(again == c || apart_on);
    reapRewind(&reap, &mark);
    ck_assert_uint_eq(stats().live_objects, 1);
    reapUnmark(&reap, &mark);
    assert_valid(reap);
    reapTrim(&reap, 0);
    again = reapMalloc(&reap, 64);
    ck_assert(again == b || apart_on); /* joined with the hole */
    reapFree(&reap, a);
}

TEST(children_and_functions_go_with_a_rewind)
{
    reap_mark mark;
    void *older, *child, *grandchild;
    order[0] = '\0';
    reapCreate(&older, &reap);
    reapOnDestroy(&older, note, (void *)"o");
    reapOnDestroy(&reap, note, (void *)"1");
    reapOnDestroy(&reap, note, (void *)"2");
    reapMark(&reap, &mark);
    reapCreate(&child, &reap);
    reapCreate(&grandchild, &child);
    reapOnDestroy(&grandchild, note, (void *)"g");
    reapOnDestroy(&child, note, (void *)"c");
    reapOnDestroy(&reap, note, (void *)"3");
    reapOnDestroy(&reap, note, (void *)"4");
    ck_assert_int_eq(reapCancelOnDestroy(&reap, note, (void *)"1"), 0);
    reapRewind(&reap, &mark);
    ck_assert_str_eq(order, "gc43");
    ck_assert_uint_eq(stats().children, 1);
    reapCreate(&child, &reap);
    reapOnDestroy(&child, note, (void *)"d");
    reapOnDestroy(&reap, note, (void *)"5");
    reapUnmark(&reap, &mark); /* these stay */
    reapMark(&reap, &mark);
    reapRewind(&reap, &mark);
    ck_assert_str_eq(order, "gc43");
    reapFreeAll(&reap);
    ck_assert_str_eq(order, "gc43do52");
}

/* A child in the memory of one that was born after a mark is older than the next mark. */
TEST(a_child_is_not_as_old_as_the_last_one)
{
    reap_mark mark;
    void *child;
    for (int i = 0; i < 20; i++) {
        reapMark(&reap, &mark);
        reapCreate(&child, &reap);
        reapDestroy(&child);
        reapUnmark(&reap, &mark);
        reapCreate(&child, &reap);
        reapMark(&reap, &mark);
        reapRewind(&reap, &mark);
        ck_assert_uint_eq(stats().children, 1);
        reapUnmark(&reap, &mark);
        reapDestroy(&child);
    }
}

/* --- several --------------------------------------------------------------------------------- */

TEST(marks_nest)
{
    enum { DEEP = 300 };
    static reap_mark marks[DEEP];
    static size_t live[DEEP];
    for (int i = 0; i < DEEP; i++) {
        live[i] = stats().live_bytes;
        reapMark(&reap, &marks[i]);
        for (int k = 0; k < i % 7; k++) reapMalloc(&reap, (size_t)(i * 131 % 3000));
        if (i % 50 == 7) reapMalloc(&reap, 100000);
    }
    for (int i = DEEP - 1; i >= 0; i -= 17) { /* those in between are over with the outer one */
        reapRewind(&reap, &marks[i]);
        ck_assert_uint_eq(stats().live_bytes, live[i]);
        assert_valid(reap);
        if (i % 2) reapUnmark(&reap, &marks[i]);
        assert_valid(reap);
    }
    reapUnmark(&reap, &marks[0]);
    assert_valid(reap);
}

/* What marks hold back, they hold back no longer than they are open. */
TEST(what_marks_held_back_is_used_again)
{
    enum { N = 40 };
    reap_mark outer, inner;
    char *objects[N];
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 64);
    reapMark(&reap, &outer);
    char *object = reapMalloc(&reap, 64);
    reapMark(&reap, &inner);
    reapFree(&reap, object);
    char *last = reapMalloc(&reap, 64);
    ck_assert(last != object || apart_on);
    char *grown = reapRealloc(&reap, objects[N - 1], 80);
    ck_assert_ptr_ne(grown, objects[N - 1]); /* not across the mark */
    for (int i = 0; i < N - 1; i++) reapFree(&reap, objects[i]);
    reapUnmark(&reap, &inner);
    assert_valid(reap);
    reapUnmark(&reap, &outer);
    assert_valid(reap);
    size_t held = stats().chunk_bytes;
    for (int i = 0; i < N - 1; i++) reapMalloc(&reap, 64);
    if (reap_mode != MODE_PARTS && !apart_on) ck_assert_uint_eq(stats().chunk_bytes, held);
}

/* With a mark in a reap in heap mode, whose hole lies between objects: no gap is used, and no chunk goes
 * back, before the mark is closed. */
TEST(gaps_and_empty_chunks_wait, .modes = NOT_IN_PARTS)
{
    enum { N = 2000 };
    static char *objects[N];
    needs(!apart_on, "objects lie apart");
    reap_mark mark;
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < N; i += 2) reapFree(&reap, objects[i]);
    reapTrim(&reap, 0);
    objects[0] = reapMalloc(&reap, 100); /* in the first of these gaps */
    struct reap_stats before = stats();
    reapMark(&reap, &mark);
    assert_valid(reap);
    for (int i = 0; i < 10; i++) {
        char *object = reapMalloc(&reap, 100);
        for (int k = 2; k < N; k += 2) ck_assert_ptr_ne(object, objects[k]);
    }
    for (int i = 1; i < N; i += 2) reapFree(&reap, objects[i]);
    assert_valid(reap);
    size_t chunks = stats().chunks;
    ck_assert_uint_ge(chunks, before.chunks);
    reapUnmark(&reap, &mark);
    assert_valid(reap);
    ck_assert_uint_lt(stats().chunks, chunks);
    ck_assert_uint_eq(stats().live_objects, 11);
}

TEST(a_clear_closes_all_marks, .modes = NOT_IN_PARTS)
{
    reap_mark outer, inner;
    reapMark(&reap, &outer);
    for (int i = 0; i < 500; i++) reapMalloc(&reap, 100);
    reapMark(&reap, &inner);
    reapFreeAll(&reap);
    assert_valid(reap);
    void *object = reapMalloc(&reap, 64), *next = reapMalloc(&reap, 64);
    reapFree(&reap, object);
    void *again = reapMalloc(&reap, 64);
    ck_assert(again == object || apart_on);
    reapFree(&reap, next);
}

TEST(marks_and_limits)
{
    reap_mark mark;
    ck_assert_int_eq(reapSetLimit(&reap, 100000), 0);
    reapMalloc(&reap, 1000);
    reapMark(&reap, &mark);
    for (int round = 0; round < 5; round++) {
        size_t objects = 0;
        while (reapMalloc(&reap, 1000)) objects++;
        ck_assert_uint_eq(objects, 98000 / 1008 + 1);
        reapRewind(&reap, &mark);
        assert_valid(reap);
    }
    reapUnmark(&reap, &mark);
    assert_valid(reap);
}

/* --- what marks cost ------------------------------------------------------------------------- */

/* A reap in heap mode has no new chunk for each mark; nor does it look at all of its chunks for each. */
TEST(a_mark_costs_no_chunk, .times = FROMS, .times_shared = FROM_SOURCE)
{
    enum { ROUNDS = 4096, OLDER = 200 };
    void *r = reap_from(_i), *older[OLDER];
    for (int i = 0; i < OLDER; i++) older[i] = reapMalloc(&r, 64);
    for (int i = 0; i < OLDER; i += 3) reapFree(&r, older[i]);
    reapFree(&r, reapMalloc(&r, 3000));
    for (int i = 0; i < ROUNDS; i++) {
        reap_mark mark;
        reapMark(&r, &mark);
        void *object = reapMalloc(&r, 64);
        ck_assert_ptr_nonnull(object);
        if (i % 5 == 0) reapFree(&r, older[i % OLDER / 3 * 3 + 1]), older[i % OLDER / 3 * 3 + 1] = NULL;
        if (i % 3 == 0) reapRewind(&r, &mark);
        reapUnmark(&r, &mark);
        if (i % 7 == 0 && i % 3 != 0) reapFree(&r, object);
        if (i % 64 == 0) assert_valid(r);
    }
    ck_assert_uint_le(stats_of(r).chunk_bytes, 2 * 1024 * 1024);
    reapDestroy(&r);
}

/* What a mark found open is not swept anew for each hole: a chunk comes to be open a constant number of
 * times. */
TEST(a_mark_makes_no_sweep, .modes = NOT_IN_PARTS)
{
    enum { ROUNDS = 12000 };
    void *r = reap_from(FROM_MODE), *short_lived[4] = {NULL};
    unsigned opened = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct reap *it = reap_behind(r);
        const struct list_node *node = it->heap ? it->own->listed.first : NULL;
        for (; node; node = node->next) opened++;
        reap_mark mark;
        reapMark(&r, &mark);
        reapUnmark(&r, &mark);
        short_lived[i % 4] = reapMalloc(&r, 16);
        reapMalloc(&r, 1000);
        if (i >= 4) reapFree(&r, short_lived[(i + 1) % 4]);
    }
    struct reap_stats stats = stats_of(r);
    ck_assert_uint_le(stats.chunk_bytes, stats.live_bytes / 8 * 9);
    ck_assert_uint_le(opened, ROUNDS / 4 + stats.chunks * 12);
    reapDestroy(&r);
}

/* In a full buffer an object finds what was freed before a mark and while it was open. */
TEST(a_full_buffer_has_what_marks_dropped, .modes = ORDINARY)
{
    enum { OBJECTS = 2000 };
    needs(!apart_on, "objects lie apart");
    void *r = reap_from(FROM_BUFFER), *objects[OBJECTS];
    reap_mark mark;
    for (int i = 0; i < OBJECTS; i++) objects[i] = reapMalloc(&r, 300);
    while (reapMalloc(&r, 300)) {
    }
    while (reapMalloc(&r, 1)) {
    }
    for (int round = 0; round < 6; round++) {
        for (int i = round; i < OBJECTS; i += 40) reapFree(&r, objects[i]);
        reapMark(&r, &mark);
        for (int i = round + 20; i < OBJECTS; i += 40) reapFree(&r, objects[i]);
        reapUnmark(&r, &mark);
        for (int i = round; i < OBJECTS; i += 20) ck_assert_ptr_nonnull(objects[i] = reapMalloc(&r, 300));
    }
    assert_valid(r);
    reapDestroy(&r);
}

static void nothing(void *arg) { (void)arg; }

/* Records take the gaps behind the hole, and then its end; the mark is open all the same. */
TEST(records_may_take_the_end_of_a_marked_hole, .times = 2, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    static char buffer[8192];
    void *r, *last;
    reap_mark mark;
    r = reap_with(NULL, .buffer = buffer, .buffer_size = sizeof buffer);
    if (_i) reapMalloc(&r, 16); /* so that what records take is even once, and odd once */
    void *hole = reapMalloc(&r, 640), *behind = reapMalloc(&r, 640);
    for (size_t size = sizeof buffer; !(last = reapMalloc(&r, size));) size -= 16;
    reapFree(&r, behind);
    reapFree(&r, hole);
    ck_assert_ptr_eq(reapMalloc(&r, 16), hole);
    reapMark(&r, &mark);
    reapFree(&r, last);
    while (reapOnDestroy(&r, nothing, NULL) == 0) assert_valid(r);
    reapRewind(&r, &mark);
    assert_valid(r);
    reapUnmark(&r, &mark);
    assert_valid(r);
    reapDestroy(&r);
}

/* Records come from the gaps of objects that were freed while marks are open; but not from what lies before a
 * mark at a chunk's end: `behind` units, or none, are left of the hole at the mark. */
TEST(records_do_not_go_beyond_a_mark, .times = 4, .modes = ORDINARY)
{
    needs(!apart_on, "objects lie apart");
    unsigned behind = (unsigned)_i;
    void *r, *last[2];
    reap_mark mark;
    reapCreate(&r, NULL);
    void *old = reapMalloc(&r, 100);
    for (int i = 0; i < 100; i++) reapMalloc(&r, 100);
    reapFree(&r, old); /* heap mode */
    const struct reap *it = reap_behind(r);
    while (it->current == NULL || (size_t)(it->bump_max - it->bump) / 16 != behind + 4) reapMalloc(&r, 16);
    for (int i = 0; i < 2; i++) last[i] = reapMalloc(&r, 32);
    size_t end = it->current->end_unit;
    ck_assert_uint_eq(reap_unit(it->bump) + behind, end);
    reapMark(&r, &mark);
    void *younger = behind > 0 ? reapMalloc(&r, (size_t)behind * 16) : NULL;
    do reapMalloc(&r, 16);
    while (it->bump != it->bump_max); /* of another chunk */
    for (int i = 0; i < 2; i++) reapFree(&r, last[i]);
    reapFree(&r, younger);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(reapOnDestroy(&r, nothing, NULL), 0);
        assert_valid(r);
    }
    reapRewind(&r, &mark);
    assert_valid(r);
    reapUnmark(&r, &mark);
    assert_valid(r);
    reapDestroy(&r);
}

/* --- a parser with a mark for each value ----------------------------------------------------- */

struct value {
    size_t count; /* of an array's elements, or a string's bytes */
    void *data;
    double number;
};

enum { UNMARKED, NESTED, ATTEMPTS };
static int marks;

static struct value *parse(void **r, const char **text);

/* Reads a number into memory of its own first, as parsers do; NULL: there is none. */
static struct value *number(void **r, const char **text)
{
    size_t length = strspn(*text, "0123456789.");
    char *copy = reapStrndup(r, *text, 16), *end;
    struct value *value = reapCalloc(r, 1, sizeof *value);
    value->number = strtod(copy, &end);
    reapFree(r, copy);
    if (length == 0) return NULL;
    *text += length;
    return value;
}

static struct value *string(void **r, const char **text)
{
    struct value *value = reapCalloc(r, 1, sizeof *value);
    value->count = strcspn(*text + 1, "\"");
    value->data = reapStrndup(r, *text + 1, value->count);
    *text += value->count + 2;
    return value;
}

/* An array grows by a third when it is full, and its old place is a gap. */
static struct value *array(void **r, const char **text)
{
    struct value *value = reapCalloc(r, 1, sizeof *value);
    size_t room = 0;
    for (++*text; **text != ']'; *text += **text == ',') {
        if (value->count == room) {
            room += room / 3 + 2;
            value->data = reapRealloc(r, value->data, room * sizeof(struct value *));
        }
        struct value *element = parse(r, text);
        ((struct value **)value->data)[value->count++] = element;
    }
    ++*text;
    return value;
}

static struct value *parse(void **r, const char **text)
{
    reap_mark mark;
    if (marks != UNMARKED) reapMark(r, &mark);
    struct value *value = number(r, text);
    if (!value && marks != UNMARKED) reapRewind(r, &mark);
    if (marks == ATTEMPTS) reapUnmark(r, &mark);
    if (!value) value = **text == '[' ? array(r, text) : string(r, text);
    if (marks == NESTED) reapUnmark(r, &mark);
    return value;
}

static size_t write_text(char *text, int depth, uint64_t *chance)
{
    size_t length = (size_t)sprintf(text, "[");
    for (unsigned i = 0, n = 2 + random_below(chance, 12); i < n; i++) {
        if (i) text[length++] = ',';
        if (depth > 0)
            length += write_text(text + length, depth - 1, chance);
        else if (i % 2)
            length += (size_t)sprintf(text + length, "%u.25", random_below(chance, 10000));
        else
            length += (size_t)sprintf(text + length, "\"%.*s\"", 1 + (int)random_below(chance, 30),
                                      "a string of thirty-two characters");
    }
    return length + (size_t)sprintf(text + length, "]");
}

static size_t bytes_parsed(const char *text, int with)
{
    void *r = reap_from(FROM_MODE);
    marks = with;
    struct value *value = parse(&r, &text);
    ck_assert_int_eq(*text, 0);
    ck_assert_uint_ge(value->count, 2);
    size_t bytes = stats_of(r).peak_chunk_bytes;
    reapDestroy(&r);
    return bytes;
}

TEST(a_parser_may_mark_each_value)
{
    static char text[8 * 1024 * 1024];
    uint64_t chance = 3;
    size_t length = write_text(text, (int)shorter(5, 4), &chance), plain = bytes_parsed(text, UNMARKED);
    ck_assert_uint_lt(length, sizeof text);
    ck_assert_uint_le(bytes_parsed(text, NESTED), plain * 4);
    ck_assert_uint_le(bytes_parsed(text, ATTEMPTS), plain * 4);
}

/* A chunk that came with the mark and holds records stays, empty. */
TEST(records_outlive_a_rewind)
{
    reap_mark mark;
    static char name[3000];
    memset(name, 'n', sizeof name - 1);
    reapMark(&reap, &mark);
    for (int i = 0; i < 100; i++) reapMalloc(&reap, 100);
    ck_assert_int_eq(reapSetName(&reap, name), 0);
    for (int i = 0; i < 500; i++) reapMalloc(&reap, 100);
    for (int round = 0; round < 3; round++) {
        reapRewind(&reap, &mark);
        assert_valid(reap);
        ck_assert_str_eq(reapName(&reap), name);
        ck_assert_uint_eq(stats().live_objects, 0);
        for (int i = 0; i < 500; i++) memset(reapMalloc(&reap, 100), 1, 100);
    }
    reapUnmark(&reap, &mark);
    ck_assert_str_eq(reapName(&reap), name);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
