/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_limit.c: limits: what they let through, whom they are shared with, and what gives back. */

#include "support/reap_fixture.h"

enum { LIMIT = 1 << 20 };

/* Fills a reap with objects of one size until it is refused. */
static size_t fill(void **handle, size_t size)
{
    size_t bytes = 0;
    for (void *object; (object = reapMalloc(handle, size)); bytes += reapUsableSize(object))
        memset(object, 1, size);
    ck_assert_int_eq(errno, ENOMEM);
    assert_valid(*handle);
    return bytes;
}

/* --- one reap -------------------------------------------------------------------------------- */

/* A reap alone gets its limit to the last unit, whatever the sizes; and again after a clear. */
TEST(a_limit_is_met_exactly)
{
    static const size_t sizes[] = {16, 48, 1000, 5000, 40000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t each = (sizes[i] + 15) / 16 * 16, limit = 3 * 300000 + 7 * i;
        ck_assert_int_eq(reapSetLimit(&reap, limit), 0);
        ck_assert_uint_eq(stats().limit, limit);
        ck_assert_uint_eq(fill(&reap, sizes[i]), limit / each * each);
        ck_assert_uint_eq(fill(&reap, 16), (limit % each) / 16 * 16);
        ck_assert_uint_eq(stats().live_bytes, limit / 16 * 16);
        reapFreeAll(&reap);
        ck_assert_uint_eq(stats().limit, limit);
    }
    ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
    ck_assert_uint_eq(stats().limit, 0);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 4 * 300000));
}

TEST(each_call_is_limited)
{
    reapMalloc(&reap, 100);
    ck_assert_int_eq(reapSetLimit(&reap, 1000), 0);
    char *object = reapMalloc(&reap, 400);
    errno = 0;
    ck_assert_ptr_null(reapCalloc(&reap, 10, 100));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(reapCalloc(&reap, 10, 10000));
    ck_assert_ptr_null(reapMalloc(&reap, errno ? SIZE_MAX : 1));
    ck_assert_ptr_null(reapRealloc(&reap, NULL, 1000));
    ck_assert_ptr_null(reapRealloc(&reap, object, 1000));
    ck_assert_ptr_null(reapRealloc(&reap, object, 100000));
    ck_assert_ptr_null(reapAlignedAlloc(&reap, 4096, 500));
    ck_assert_ptr_null(reapPrintf(&reap, "%500s", "x"));
    ck_assert_ptr_null(reapMemdup(&reap, errno ? "" : NULL, 100000));
    ck_assert_uint_eq(stats().live_bytes, 112 + 400);
    ck_assert_ptr_nonnull(reapAlignedAlloc(&reap, 4096, 400)); /* what aligning takes is not counted */
    object = reapRealloc(&reap, object, 464);                  /* nor is the copy while it is made */
    ck_assert_ptr_nonnull(object);
    ck_assert_uint_eq(stats().live_bytes, 112 + 464 + 400);
    ck_assert_ptr_null(reapMalloc(&reap, 17));
    object = reapRealloc(&reap, object, 400);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 80));
    ck_assert_ptr_null(reapMalloc(&reap, 1));
    reapFree(&reap, object);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 400));
}

/* Also when it moves to another part of a shared reap, because a mark is open. */
TEST(a_copy_is_not_counted_behind_a_mark)
{
    enum { N = 8 };
    char *objects[N];
    for (int i = 0; i < N; i++) objects[i] = memset(reapMalloc(&reap, 400), 'a' + i, 400);
    for (int i = 0; i < N; i++) {
        struct reap_mark mark;
        size_t live = stats().live_bytes;
        ck_assert_int_eq(reapSetLimit(&reap, live + 64), 0);
        reapMark(&reap, &mark);
        ck_assert_ptr_null(reapRealloc(&reap, objects[i], 465));
        ck_assert_int_eq(errno, ENOMEM);
        char *object = reapRealloc(&reap, objects[i], 464);
        ck_assert_ptr_nonnull(object);
        ck_assert_int_eq(object[399], 'a' + i);
        ck_assert_uint_eq(stats().live_bytes, live + 64);
        ck_assert_ptr_null(reapMalloc(&reap, 1));
        assert_valid(reap);
        reapUnmark(&reap, &mark);
    }
}

/* Room that one part of a shared reap has drawn ahead serves the objects of the others. */
TEST(a_growing_object_gets_all_room)
{
    enum { N = 16 };
    char *objects[N];
    size_t live = N * 208;
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 208);
    for (int i = 0; i < N; i++) {
        size_t most = LIMIT - live + 208;
        for (int k = 0; k < N; k++) reapFree(&reap, reapMalloc(&reap, 100)); /* this part keeps room */
        ck_assert_ptr_null(reapRealloc(&reap, objects[i], most + 1));
        objects[i] = reapRealloc(&reap, objects[i], most);
        ck_assert_ptr_nonnull(objects[i]);
        ck_assert_uint_eq(stats().live_bytes, LIMIT);
        objects[i] = reapRealloc(&reap, objects[i], 208);
    }
    ck_assert_uint_eq(stats().live_bytes, live);
}

/* A limit below what lives is refused and changes nothing; one at that is not. */
TEST(a_limit_below_what_lives)
{
    for (int i = 0; i < 100; i++) reapMalloc(&reap, 100);
    ck_assert_int_eq(reapSetLimit(&reap, 100 * 112 - 1), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(stats().limit, 0);
    ck_assert_int_eq(reapSetLimit(&reap, 100 * 112), 0);
    ck_assert_ptr_null(reapMalloc(&reap, 1));
    ck_assert_int_eq(reapSetLimit(&reap, 100), -1);
    ck_assert_uint_eq(stats().limit, 100 * 112);
    ck_assert_int_eq(reapSetLimit(&reap, 101 * 112), 0);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 100));
    ck_assert_ptr_null(reapMalloc(&reap, 1));
}

/* Most objects of a limited reap are bumped as those of any other: `end` moves in steps. */
TEST(the_fast_path_goes_on)
{
    const struct reap *r = reap;
    const char *end = NULL;
    int steps = 0;
    needs(!apart_on, "all objects are watched");
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    for (int i = 0; i < LIMIT / 64; i++) {
        ck_assert_ptr_nonnull(reapMalloc(&reap, 64));
        steps += r->end != end;
        end = r->end;
    }
    ck_assert_int_lt(steps, 200);
}

/* The newest chunk has more room than the limit leaves. */
TEST(a_trim_leaves_the_limit)
{
    enum { N = LIMIT * 3 / 4 / 112, OLD = N / 2, PART = 16 };
    static void *objects[N];
    ck_assert_int_eq(reapSetLimit(&reap, N * 112), 0);
    for (int i = 0; i < N; i++) objects[i] = reapMalloc(&reap, 100);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < OLD; i += PART) reapFree(&reap, objects[i]);
        reapTrim(&reap, 0);
        for (int i = 0; i < OLD; i += PART) ck_assert_ptr_nonnull(objects[i] = reapMalloc(&reap, 100));
        ck_assert_ptr_null(reapMalloc(&reap, 100));
        ck_assert_uint_eq(stats().live_bytes, N * 112);
    }
}

/* --- several reaps --------------------------------------------------------------------------- */

TEST(a_limit_holds_for_those_below)
{
    void *children[20], *grandchild;
    size_t all = 0;
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    for (int i = 0; i < 20; i++) {
        reapCreate(&children[i], &reap);
        for (int k = 0; k < 100; k++) ck_assert_ptr_nonnull(reapMalloc(&children[i], 100));
        all += (size_t)100 * 112;
    }
    reapCreate(&grandchild, &children[7]);
    all += fill(&grandchild, 1000);
    ck_assert_uint_le(all, LIMIT);
    ck_assert_uint_ge(all + 1008, LIMIT - LIMIT / 16);
    ck_assert_uint_eq(stats_of(grandchild).live_bytes, all - (size_t)20 * 100 * 112);
    reapDestroy(&grandchild);
    ck_assert_uint_ge(fill(&children[3], 10000), LIMIT - LIMIT / 16 - (size_t)20 * 100 * 112 - 10000);
    reapFreeAll(&children[3]);
    for (int i = 0; i < 20; i++) reapDestroy(&children[i]);
    assert_valid(reap);
    ck_assert_uint_eq(fill(&reap, 16), LIMIT); /* nothing is lost */
}

TEST(limits_nest)
{
    void *inner, *below, *outside;
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    reapCreate(&inner, &reap);
    reapCreate(&below, &inner);
    reapCreate(&outside, &reap);
    ck_assert_int_eq(reapSetLimit(&inner, LIMIT / 4), 0);
    ck_assert_uint_le(fill(&below, 100), LIMIT / 4);
    ck_assert_uint_ge(stats_of(below).live_bytes, LIMIT / 4 - LIMIT / 64 - 112);
    size_t bytes = fill(&outside, 100) + stats_of(below).live_bytes;
    ck_assert_uint_le(bytes, LIMIT);
    ck_assert_uint_ge(bytes, LIMIT - LIMIT / 16 - 112);
    reapFreeAll(&below);
    ck_assert_uint_ge(fill(&below, 16), LIMIT / 4 - LIMIT / 16); /* what outside has left of the outer one */
    ck_assert_int_eq(reapSetLimit(&inner, 0), 0);
    assert_valid(reap);
    assert_valid(below);
    reapDestroy(&outside);
    ck_assert_uint_ge(fill(&below, 1000) + stats_of(below).live_bytes, LIMIT / 2);
    ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
    assert_valid(below);
    ck_assert_ptr_nonnull(reapMalloc(&below, LIMIT));
}

/* A limit that comes later counts what is there already. */
TEST(a_limit_counts_what_was_there)
{
    void *child, *grandchild;
    reapCreate(&child, &reap);
    reapCreate(&grandchild, &child);
    reapMalloc(&reap, 1600);
    reapMalloc(&child, 1600);
    void *object = reapMalloc(&grandchild, 1600);
    ck_assert_int_eq(reapSetLimit(&grandchild, 2000), 0);
    ck_assert_int_eq(reapSetLimit(&reap, 4799), -1);
    ck_assert_int_eq(reapSetLimit(&reap, 4800), 0);
    ck_assert_ptr_null(reapMalloc(&child, 1));
    ck_assert_ptr_null(reapMalloc(&grandchild, 1));
    reapFree(&grandchild, object);
    ck_assert_uint_ge(fill(&child, 16), 1600 - 4800 / 16);
    reapDestroy(&child);
    ck_assert_uint_eq(fill(&reap, 16), 3200);
}

/* --- what others have freed ------------------------------------------------------------------ */

/* A limit does not count what free() gave back in another reap, which has yet to look. */
TEST(what_others_have_freed_is_free, .times = 6)
{
    void *inner, *one, *other, *outside;
    reapCreate(&inner, &reap);
    reapCreate(&one, &inner);
    reapCreate(&other, &inner);
    reapCreate(&outside, &reap);
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    ck_assert_int_eq(reapSetLimit(&inner, LIMIT * 3 / 4), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) reapFreeAny(reapMalloc(&one, 100));
        char *object = reapMalloc(&one, LIMIT / 2);
        reapFreeAny(object);
        ck_assert_ptr_nonnull(object = reapMalloc(&other, LIMIT / 2));
        ck_assert_ptr_null(reapMalloc(&other, LIMIT / 2));
        assert_valid(reap);
        reapFreeAny(object);
        ck_assert_ptr_nonnull(object = reapMalloc(&outside, LIMIT * 3 / 4));
        ck_assert_ptr_null(reapMalloc(&other, LIMIT * 5 / 16));
        ck_assert_ptr_nonnull(reapMalloc(&other, LIMIT / 8));
        reapFree(&outside, object);
        if (_i == 0) ck_assert_uint_eq(stats_of(one).live_bytes, 0);
        if (_i == 1) reapFreeAll(&one);
        if (_i == 2) ck_assert_int_eq(reapAdopt(&one, &outside), 0);
        if (_i == 3) ck_assert_int_eq(reapSetLimit(&inner, round % 2 ? LIMIT * 3 / 4 : 0), 0);
        if (_i == 4) ck_assert_ptr_nonnull(reapMalloc(&one, LIMIT / 16));
        assert_valid(inner);
        assert_valid(reap);
        reapFreeAll(&other);
        if (_i == 3 && round % 2 == 0) reapSetLimit(&inner, LIMIT * 3 / 4);
        reapFreeAll(&one);
        assert_valid(reap);
    }
    reapDestroy(&inner);
    ck_assert_uint_eq(stats_of(outside).live_bytes, 0);
    reapDestroy(&outside);
    ck_assert_uint_eq(fill(&reap, 16), LIMIT); /* nothing is lost, nor there twice */
}

/* Nor does a limit that comes later, or that a reap comes below. */
TEST(what_was_freed_before_the_limit_is_free)
{
    void *child, *top;
    reapCreate(&child, &reap);
    reapCreate(&top, NULL);
    reapFreeAny(reapMalloc(&child, LIMIT));
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT / 2), 0);
    ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
    reapFreeAny(reapMalloc(&child, LIMIT));
    ck_assert_int_eq(reapSetLimit(&top, LIMIT / 2), 0);
    ck_assert_int_eq(reapAdopt(&child, &top), 0);
    reapFreeAny(reapMalloc(&child, LIMIT / 4));
    void *object = reapMalloc(&reap, LIMIT * 3 / 8);
    ck_assert_ptr_nonnull(object = reapMove(object, &reap, &top));
    reapFreeAny(object);
    ck_assert_int_eq(reapSetLimit(&top, LIMIT / 4), 0);
    ck_assert_int_eq(reapAdopt(&child, NULL), 0);
    assert_valid(top);
    reapDestroy(&child);
    ck_assert_uint_eq(fill(&top, 16), LIMIT / 4);
    reapDestroy(&top);
}

/* --- the function ---------------------------------------------------------------------------- */

struct met {
    void *reap;
    size_t size;
    int calls;
    void *to_free;
};

static void on_limit(void **handle, size_t size, void *arg)
{
    struct met *met = arg;
    met->reap = *handle;
    met->size = size;
    met->calls++;
    ck_assert_ptr_null(reapMalloc(handle, LIMIT)); /* does not come here again */
    if (met->to_free) reapFree(handle, met->to_free);
    met->to_free = NULL;
}

TEST(the_function_is_called_and_the_call_tried_again)
{
    struct met met = {0};
    void *child;
    reapOnLimit(&reap, on_limit, &met);
    ck_assert_ptr_nonnull(reapMalloc(&reap, LIMIT));
    reapFreeAll(&reap);
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    met.to_free = reapMalloc(&reap, LIMIT / 2);
    ck_assert_ptr_nonnull(reapMalloc(&reap, LIMIT / 2));
    ck_assert_int_eq(met.calls, 0);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 1001));
    ck_assert_int_eq(met.calls, 1);
    ck_assert_uint_eq(met.size, 1001);
    ck_assert_ptr_eq(met.reap, reap);
    ck_assert_ptr_null(reapMalloc(&reap, LIMIT / 2));
    ck_assert_int_eq(met.calls, 2);
    reapCreate(&child, &reap);
    ck_assert_int_eq(reapSetLimit(&child, LIMIT), 0);
    ck_assert_ptr_null(reapMalloc(&child, LIMIT / 2 + 1)); /* it is the parent's limit that is met */
    ck_assert_int_eq(met.calls, 3);
    ck_assert_ptr_eq(met.reap, reap);
    ck_assert_ptr_null(reapMalloc(&child, LIMIT + 1)); /* and here its own, which has no function */
    ck_assert_int_eq(met.calls, 3);
    reapOnLimit(&reap, NULL, NULL);
    ck_assert_ptr_null(reapMalloc(&reap, LIMIT / 2));
    ck_assert_int_eq(met.calls, 3);
}

static void *use_it(void *shared)
{
    ck_assert_ptr_nonnull(reapMalloc(&shared, 100));
    return NULL;
}

static void find_it_met(void **handle, size_t size, void *arg)
{
    ++*(int *)arg;
    ck_assert_ptr_null(reapMalloc(handle, size)); /* does not come here again */
}

/* A move out of a shared reap: refused, that leaves both reaps as they were. */
TEST(the_function_is_called_in_a_move, .modes = ORDINARY)
{
    void *shared = new_shared(NULL, 0), *object = reapMalloc(&shared, 2000);
    int calls = 0;
    ck_assert_int_eq(reapSetLimit(&reap, 1000), 0);
    reapOnLimit(&reap, find_it_met, &calls);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(reapMove(object, &shared, &reap));
        ck_assert_int_eq(calls, i + 1);
        ck_assert_uint_eq(((struct reap_face *)shared)->depth, 0);
        in_threads(1, use_it, shared);
        assert_valid(shared);
        assert_valid(reap);
    }
    ck_assert_int_eq(reapSetLimit(&reap, 10000), 0);
    ck_assert_ptr_nonnull(reapMove(object, &shared, &reap));
    ck_assert_int_eq(calls, 3);
    reapOnLimit(&reap, NULL, NULL);
    reapDestroy(&shared);
}

static void clear(void **handle, size_t size, void *arg)
{
    (void)size;
    ++*(int *)arg;
    reapFreeAll(handle);
}

TEST(the_function_clears_the_reap)
{
    int calls = 0;
    reapSetLimit(&reap, LIMIT);
    reapOnLimit(&reap, clear, &calls);
    for (int i = 0; i < 5 * LIMIT / 1008 + 5; i++) ck_assert_ptr_nonnull(reapMalloc(&reap, 1000));
    ck_assert_int_eq(calls, 5);
    ck_assert_ptr_nonnull(reapMalloc(&reap, LIMIT));
    ck_assert_int_eq(calls, 6);
    assert_valid(reap);
}

static void lift(void **handle, size_t size, void *arg)
{
    (void)size, (void)arg;
    ck_assert_int_eq(reapSetLimit(handle, 0), 0);
}

/* A limit that is met by an object that moves, and lifted by its function: rooms of others below it come
 * back, and the limit above is charged all the same. */
TEST(a_limit_is_lifted_while_an_object_moves)
{
    enum { INNER = 64 * 1024 };
    void *inner, *others[8], *source;
    size_t moved = 0;
    reapCreate(&source, NULL);
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    for (int round = 0; round < 400; round++) {
        reapCreate(&inner, &reap);
        if (reapSetLimit(&inner, INNER) != 0) break;
        for (int i = 0; i < 8; i++) {
            reapCreate(&others[i], &inner);
            reapMalloc(&others[i], 16); /* and it has room */
        }
        reapOnLimit(&inner, lift, NULL);
        size_t size = INNER - 8 * 16;
        if (reapMove(reapMalloc(&source, size), &source, &inner)) moved += size;
        ck_assert_uint_le(moved, LIMIT);
        assert_valid(inner);
    }
    assert_valid(reap);
    ck_assert_uint_gt(moved, LIMIT / 2);
    reapDestroy(&source);
}

/* --- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 100 };

static _Atomic(size_t) together, refusals;
static struct {
    void *_Atomic object; /* for whichever thread frees it, or NULL */
    _Atomic(unsigned) freed;
} given[THREADS];

static void free_given(unsigned whose)
{
    void *object = atomic_exchange(&given[whose].object, NULL);
    if (!object) return;
    reapFreeAny(object);
    given[whose].freed++;
}

/* Gives an object to the other threads, and frees theirs. */
static void give_and_free(unsigned me, void *object)
{
    free_given(me);
    atomic_store(&given[me].object, object);
    for (unsigned i = 0; i < THREADS; i++)
        if (i != me) free_given(i);
}

/* What the threads together believe to have is never more than the limit: each counts before it frees and
 * after it has got. */
static void *take_and_give(void *unused)
{
    static atomic_uint threads;
    void *mine;
    unsigned me = threads++ % THREADS;
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = 0;
        unsigned gone = 0;
        given[me].freed = 0;
        reapCreate(&mine, &reap);
        for (int i = 0; i < 200; i++) {
            void *object = reapMalloc(&mine, (size_t)(i * 37 % 500) + 1);
            if (!object) {
                refusals++;
                break;
            }
            bytes += reapUsableSize(object);
            size_t size = reapUsableSize(object), all = atomic_fetch_add(&together, size) + size;
            ck_assert_uint_le(all, LIMIT / 8);
            if (i % 3) continue;
            bytes -= reapUsableSize(object);
            together -= reapUsableSize(object);
            if (i % 6)
                give_and_free(me, object), gone++;
            else
                reapFree(&mine, object);
        }
        while (given[me].freed < gone) give_and_free(me, NULL);
        together -= bytes;
        reapDestroy(&mine);
    }
    return unused;
}

/* It would be added to what the limit allows. Without one it waits for the program to want it again. */
TEST(what_large_objects_free_below_a_limit_goes_back, .modes = ORDINARY, .times = 2)
{
    enum { OBJECTS = 12, BYTES = 5 << 20, UNUSED = 4 << 20 };
    void *objects[OBJECTS];
    needs(!apart_on, "all objects are watched");
    ck_assert_int_eq(reapSetLimit(&reap, _i == 0 ? 64 << 20 : 0), 0);
    for (unsigned i = 0; i < OBJECTS; i++) ck_assert_ptr_nonnull(objects[i] = reapMalloc(&reap, BYTES));
    for (unsigned i = 0; i < OBJECTS; i += 2) {
        reapFree(&reap, objects[i]);
        if (_i == 0) ck_assert_uint_le(arena_held().unused, UNUSED);
    }
    for (unsigned i = 1; i < OBJECTS; i += 2)
        ck_assert_ptr_nonnull(objects[i] = reapRealloc(&reap, objects[i], BYTES / 8));
    if (_i == 0)
        ck_assert_uint_le(arena_held().unused, UNUSED);
    else
        ck_assert_uint_gt(arena_held().unused, UNUSED);
    reapFreeAll(&reap);
    ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
}

TEST(threads_share_a_limit)
{
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT / 8), 0);
    in_threads(THREADS, take_and_give, NULL);
    assert_valid(reap);
    ck_assert_uint_eq(fill(&reap, 16), LIMIT / 8);
}

/* --- the equations --------------------------------------------------------------------------- */

TEST(validity_notices_each_broken_equation)
{
    struct reap *r = reap;
    void *child;
    reapCreate(&child, &reap);
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    for (int i = 0; i < 10; i++) reapMalloc(&reap, 100);
    BREAKS(reap_share(r)->drawn += 16, reap_share(r)->drawn -= 16);
    BREAKS(reap_share(r)->room -= 16, reap_share(r)->room += 16);
    BREAKS(reap_share(r)->left += 16, reap_share(r)->left -= 16);
    BREAKS(reap_share(r)->slack += 16, reap_share(r)->slack -= 16);
    BREAKS(reap_share(r)->limiter = NULL, reap_share(r)->limiter = r);
    if (!apart_on) BREAKS(r->end += 16, r->end -= 16);
    struct reap *c = child;
    BREAKS(reap_share(c)->extra += 16, reap_share(c)->extra -= 16);
    BREAKS(reap_share(c)->limiter = NULL, reap_share(c)->limiter = r);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
