/* SPDX-License-Identifier: Apache-2.0 */
/* check_parts.c: one thread as many processors in a shared reap, with and without sections: what each of
 * them makes and frees, beside a model; misuse; and what goes back when no thread has an id any more.
 * (check_reap_shared has several threads, check_visits counts atomic instructions.) */
#include "support/check_reap.h"

#include "reap/reap_stats.h"
#include "vcpu.h"

enum { SLOTS = 400, STEPS = 30000, CHUNKS = 1 << 20 };

static void *reap, *other;

static bool begin(int i)
{
    if (!vcpu_start(i % VCPU_PATHS == VCPU_FAST ? VCPU_FAST : VCPU_LOCKED, NULL)) return false;
    vcpu_be(0);
    reap = new_shared(NULL, 0);
    other = new_shared(NULL, 0);
    return true;
}

static void end(void)
{
    assert_valid(reap);
    reapDestroy(&reap);
    reapDestroy(&other);
}

static unsigned count_parts(void *handle)
{
    unsigned n = 0;
    FOR_EACH_PART(part, (struct reap *)(uintptr_t)reap_behind(handle)) n++;
    return n;
}

/* Each processor of some makes an object, and so its part. */
static void make_parts(unsigned processors)
{
    for (unsigned id = 0; id < processors; id++) {
        vcpu_be(id);
        ck_assert_ptr_nonnull(reapMalloc(&reap, 16));
    }
    ck_assert_uint_eq(count_parts(reap), processors);
}

/* --- a model --------------------------------------------------------------------------------- */

static struct {
    unsigned char *at;
    size_t size;
    unsigned char fill;
} slots[SLOTS];
static unsigned live;
static size_t bytes_live;
static unsigned seed;

static unsigned any(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

static size_t rounded(size_t size) { return size == 0 ? 16 : (size + 15) / 16 * 16; }

static void fill(unsigned i, void *at, size_t size)
{
    ck_assert_ptr_nonnull(at);
    slots[i].at = at;
    slots[i].size = size;
    slots[i].fill = (unsigned char)any(256);
    memset(at, slots[i].fill, size);
    live++;
    bytes_live += rounded(size);
}

static void look_at(unsigned i)
{
    void *owner;
    ck_assert_uint_eq(reapUsableSize(slots[i].at), rounded(slots[i].size));
    for (size_t k = 0; k < slots[i].size; k += 1 + slots[i].size / 16)
        ck_assert_uint_eq(slots[i].at[k], slots[i].fill);
    if (any(8) > 0) return;
    ck_assert_int_eq(reapOf(slots[i].at + any((unsigned)slots[i].size + 1) / 2, &owner), 0);
    ck_assert_ptr_eq(owner, reap);
}

static void forget(unsigned i)
{
    live--;
    bytes_live -= rounded(slots[i].size);
    slots[i].at = NULL;
}

static size_t any_size(void)
{
    return any(200) == 0 ? 20000 + any(100000) : any(10) == 0 ? any(5000) : any(300);
}

static void make(unsigned i)
{
    size_t size = any_size();
    switch (any(6)) {
    case 0: fill(i, reapCalloc(&reap, 1, size), size); break;
    case 1: fill(i, reapAlignedAlloc(&reap, (size_t)16 << any(5), size), size); break;
    case 2: fill(i, reapRealloc(&reap, NULL, size), size); break;
    default: fill(i, reapMalloc(&reap, size), size);
    }
}

static void remake(unsigned i)
{
    size_t size = any_size(), kept = size < slots[i].size ? size : slots[i].size;
    bool by_reap = any(4) > 0;
    if (size == 0 && !by_reap) size = 1;
    unsigned char *at = by_reap ? reapRealloc(&reap, slots[i].at, size) : hoard_realloc(slots[i].at, size);
    ck_assert_ptr_nonnull(at);
    for (size_t k = 0; k < kept; k += 1 + kept / 16) ck_assert_uint_eq(at[k], slots[i].fill);
    forget(i);
    fill(i, at, size);
}

static void unmake(unsigned i)
{
    void *owner, *at = slots[i].at;
    if (any(3))
        reapFree(&reap, at);
    else
        hoard_free(at);
    if (any(16) == 0) ck_assert_int_eq(reapOf(at, &owner), -1);
    forget(i);
}

static void step(void)
{
    unsigned i = any(SLOTS);
    if (!slots[i].at) {
        make(i);
        return;
    }
    look_at(i);
    if (any(3) == 0)
        remake(i);
    else
        unmake(i);
}

static int count_one(void *object, size_t size, void *sum)
{
    ck_assert_uint_eq(reapUsableSize(object), size);
    *(size_t *)sum += size;
    return 0;
}

static int free_one(void *object, size_t size, void *at)
{
    (void)size;
    if (object == at) reapFree(&reap, object);
    return 0;
}

static void nothing(void *arg) { (void)arg; }

static void walk_and_free(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!slots[i].at) continue;
        ck_assert_int_eq(reapWalk(&reap, free_one, slots[i].at), 0);
        forget(i);
        return;
    }
}

static void in_a_mark(void)
{
    reap_mark mark;
    reapMark(&reap, &mark);
    for (unsigned n = any(50); n > 0; n--) {
        vcpu_be(any(4));
        if (!reapMalloc(&reap, any(400))) abort();
    }
    for (unsigned i = 0; i < SLOTS; i += 50)
        if (slots[i].at) unmake(i);
    reapRewind(&reap, &mark);
    reapUnmark(&reap, &mark);
}

static void below_a_limit(void)
{
    ck_assert_int_eq(reapSetLimit(&reap, bytes_live + 1000), 0);
    vcpu_be(any(4));
    ck_assert_ptr_null(reapMalloc(&reap, 2000));
    void *object = reapMalloc(&reap, 100);
    vcpu_be(any(4));
    ck_assert_ptr_nonnull(object);
    reapFree(&reap, object);
    ck_assert_int_eq(reapSetLimit(&reap, 0), 0);
}

static void to_and_fro(void)
{
    for (unsigned i = any(SLOTS); i < SLOTS; i++) {
        if (!slots[i].at) continue;
        unsigned char *at = reapMove(slots[i].at, &reap, &other);
        vcpu_be(any(4));
        slots[i].at = reapMove(at, &other, &reap);
        look_at(i);
        return;
    }
}

static void in_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < 200; i++) {
            vcpu_be(any(4));
            step();
        }
        _exit(reap_is_valid(reap_behind(reap), NULL) ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* A call that needs the whole reap. */
static void look_at_all(void)
{
    size_t sum = 0;
    switch (any(9)) {
    case 0:
        ck_assert_int_eq(reapWalk(&reap, count_one, &sum), 0);
        ck_assert_uint_eq(sum, bytes_live);
        break;
    case 1: in_a_mark(); break;
    case 2: below_a_limit(); break;
    case 3: to_and_fro(); break;
    case 4: walk_and_free(); break;
    case 5: reapTrim(&reap, 0); break;
    case 6:
        ck_assert_int_eq(reapOnDestroy(&reap, nothing, &sum), 0);
        ck_assert_int_eq(reapCancelOnDestroy(&reap, nothing, &sum), 0);
        break;
    case 7:
        if (any(20) == 0) in_a_child();
        break;
    default:
        if (any(10) > 0) break;
        reapFreeAll(&reap);
        for (unsigned i = 0; i < SLOTS; i++)
            if (slots[i].at) forget(i);
    }
    struct reap_stats stats = stats_of(reap);
    ck_assert_uint_eq(stats.live_objects, live);
    ck_assert_uint_eq(stats.live_bytes, bytes_live);
    ck_assert_uint_eq(stats.chunk_bytes, reapHeldBytes(&reap));
}

TEST(random_calls, .times = 4 * VCPU_PATHS)
{
    unsigned processors = _i / VCPU_PATHS % 2 ? 40 : 3;
    needs(begin(_i), vcpu_lacks);
    seed = (unsigned)_i + 1;
    for (unsigned n = 0; n < steps_of(STEPS); n++) {
        if (any(20) == 0) vcpu_be(any(processors));
        if (any(300) == 0)
            look_at_all();
        else
            step();
        if (n % 500 == 0) assert_valid(reap);
    }
    ck_assert_uint_gt(count_parts(reap), 1);
    end();
}

/* --- memory ---------------------------------------------------------------------------------- */

/* One processor costs what an ordinary reap does, and a table; a second one gets a part when it allocates,
 * and not with its first frees. */
TEST(a_part_comes_with_its_processor, .times = VCPU_PATHS)
{
    needs(begin(_i), vcpu_lacks);
    void *object = reapMalloc(&reap, 100);
    ck_assert_uint_eq(count_parts(reap), 1);
    ck_assert_uint_le(reapHeldBytes(&reap), 8192 + 80);
    vcpu_be(203); /* of more ids than there are CPUs some share a part: this one is not the first's */
    reapFree(&reap, object);
    ck_assert_uint_eq(count_parts(reap), 1);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 100));
    ck_assert_uint_eq(count_parts(reap), 2);
    ck_assert_uint_le(reapHeldBytes(&reap), 2 * 8192 + 300);
    end();
}

/* One that only frees gets a part with some of its frees, so that the objects wait and the other part's lines
 * stay where they are; but not below a limit, for which what is free must count at once. */
TEST(one_that_only_frees_has_a_part, .times = 2 * VCPU_PATHS)
{
    enum { FREES = 40 };
    void *objects[FREES];
    bool limited = _i >= VCPU_PATHS;
    needs(begin(_i), vcpu_lacks);
    if (limited) ck_assert_int_eq(reapSetLimit(&reap, 1 << 20), 0);
    for (unsigned i = 0; i < FREES; i++) objects[i] = reapMalloc(&reap, 16 + i % 4 * 16);
    vcpu_be(1);
    for (unsigned i = 0; i < FREES; i++) {
        reapFree(&reap, objects[i]);
        if (i < 8) ck_assert_uint_eq(count_parts(reap), 1);
    }
    ck_assert_uint_eq(count_parts(reap), limited ? 1 : 2);
    const struct reap *known = reap_behind(reap);
    ck_assert_int_eq(reap_is_pending(objects[FREES - 1]), !limited);
    ck_assert_int_eq(known->remote != 0, !limited);
    ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    vcpu_be(0);
    objects[0] = reapMalloc(&reap, 16);
    vcpu_be(1);
    ck_assert_ptr_nonnull(reapMalloc(&reap, 16)); /* now it has a part in any case */
    reapFree(&reap, objects[0]);
    ck_assert_int_eq(known->remote != 0, !limited);
    end();
}

/* An object that waits on another part's list has words of the list. One of 16 bytes has no room for a third,
 * and the objects behind it stay as they were. */
TEST(what_waits_writes_to_nothing_else, .times = VCPU_PATHS)
{
    enum { OBJECTS = 64 };
    unsigned char *objects[OBJECTS];
    needs(begin(_i), vcpu_lacks);
    make_parts(2);
    vcpu_be(0);
    for (unsigned i = 0; i < OBJECTS; i++) objects[i] = memset(reapMalloc(&reap, 16), (int)i, 16);
    vcpu_be(1);
    for (unsigned i = 0; i < OBJECTS; i += 2) reapFree(&reap, objects[i]);
    for (unsigned i = 1; i < OBJECTS; i += 2)
        for (unsigned k = 0; k < 16; k++) ck_assert_uint_eq(objects[i][k], i);
    end();
}

/* Another part's object waits, in whatever state its chunk is. */
TEST(what_is_in_a_quiet_chunk_waits_too, .times = VCPU_PATHS)
{
    enum { OBJECTS = 60000, KEPT = 500 };
    static void *objects[OBJECTS];
    unsigned quiet = 0;
    needs(begin(_i), vcpu_lacks);
    make_parts(2);
    vcpu_be(0);
    for (unsigned i = 0; i < OBJECTS; i++) objects[i] = reapMalloc(&reap, 16);
    for (unsigned i = 0; i < OBJECTS; i++)
        if (i % (OBJECTS / KEPT)) reapFree(&reap, objects[i]);
    vcpu_be(1);
    for (unsigned i = 0; i < OBJECTS; i += OBJECTS / KEPT) {
        const struct reap_chunk *chunk = chunk_of(objects[i], NULL);
        quiet += chunk->state == REAP_CHUNK_QUIET;
        reapFree(&reap, objects[i]);
        ck_assert(reap_is_pending(objects[i]));
    }
    ck_assert_uint_gt(quiet, KEPT / 2);
    end();
}

/* What other processors free goes back, although the one that allocated never comes again: by way of the
 * parts' lists, and where the one that frees has no part at first. */
TEST(memory_goes_back_without_its_processor, .times = VCPU_PATHS)
{
    enum { OBJECTS = 60000, SIZE = 200 };
    static void *objects[OBJECTS];
    needs(begin(_i), vcpu_lacks);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < OBJECTS; i++) {
            vcpu_be(i % 2 ? 3 : 0);
            objects[i] = reapMalloc(&reap, SIZE);
        }
        ck_assert_uint_gt(reapHeldBytes(&reap), (size_t)OBJECTS * SIZE);
        vcpu_be(1);
        if (round > 0) reapFree(&reap, reapMalloc(&reap, SIZE));
        ck_assert_uint_eq(count_parts(reap), 2 + round);
        for (unsigned i = 0; i < OBJECTS; i++) reapFree(&reap, objects[i]);
        /* of each: a chunk with the hole, and one with the objects that wait */
        ck_assert_uint_le(reapHeldBytes(&reap), 2 * (REAP_PART_PENDING + 32 * 1024 + 2 * (size_t)CHUNKS));
        ck_assert_uint_eq(stats_of(reap).live_objects, 0);
        ck_assert_uint_le(reapHeldBytes(&reap), 2 * (size_t)CHUNKS);
    }
    end();
}

/* Objects are replaced at random, by four processors. Each part then is as an ordinary reap with a quarter of
 * the objects. */
TEST(parts_are_no_multiple_of_what_lives, .times = VCPU_PATHS)
{
    enum { OBJECTS = 5000, ROUNDS = 100, EACH = 1000 };
    static void *objects[OBJECTS];
    size_t parts = 0, most = 0;
    needs(begin(_i), vcpu_lacks);
    seed = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned n = 0; n < EACH; n++) {
            unsigned i = any(OBJECTS);
            vcpu_be(any(4));
            reapFree(&reap, objects[i]);
            objects[i] = reapMalloc(&reap, 16 + any(2000));
        }
        struct reap_stats stats = stats_of(reap);
        size_t part = stats.chunk_bytes * 100 / stats.live_bytes;
        if (round < ROUNDS / 4) continue;
        parts += part;
        if (part > most) most = part;
    }
    ck_assert_uint_le(parts / (ROUNDS - ROUNDS / 4), 180);
    ck_assert_uint_le(most, 200);
    end();
}

/* A look from outside may find a part in the midst of a change, and then leaves the rest of it out. */
TEST(a_look_at_a_part_that_changes, .times = VCPU_PATHS)
{
    struct reap_stats stats;
    needs(begin(_i), vcpu_lacks);
    make_parts(2);
    const struct reap *known = reap_behind(reap);
    struct reap *hidden = reap_next_part(known);
    reap_stats_of(known, &stats);
    ck_assert_uint_eq(stats.chunks, 2);
    ck_assert_uint_eq(stats.live_objects, 2);
    reap_first_chunk(hidden)->owner = NULL;
    reap_stats_of(known, &stats);
    ck_assert_uint_eq(stats.chunks, 1);
    ck_assert_uint_eq(stats.live_objects, 1);
    reap_first_chunk(hidden)->owner = hidden;
    end();
}

/* --- the program sees one reap ----------------------------------------------------------------- */

static int count_views(const struct reap_view *view, void *count)
{
    ck_assert_uint_eq(view->stats.live_objects, 3);
    ck_assert_uint_eq(view->stats.children, 0);
    ++*(unsigned *)count;
    return 0;
}

/* Hidden children are no children, and their objects are the reap's. */
TEST(nobody_sees_parts, .times = VCPU_PATHS)
{
    void *objects[3], *owner, *child;
    unsigned views = 0;
    needs(begin(_i), vcpu_lacks);
    for (unsigned id = 0; id < 3; id++) {
        vcpu_be(id);
        objects[id] = reapMalloc(&reap, 100);
    }
    ck_assert_uint_eq(count_parts(reap), 3);
    for (unsigned id = 0; id < 3; id++) {
        ck_assert_int_eq(reapOf(objects[id], &owner), 0);
        ck_assert_ptr_eq(owner, reap);
    }
    ck_assert_uint_eq(stats_of(reap).children, 0);
    ck_assert_int_eq(reapSurvey(&reap, count_views, &views), 0);
    ck_assert_uint_eq(views, 1);
    reapCreate(&child, &reap);
    ck_assert_uint_eq(stats_of(reap).children, 1);
    ck_assert_ptr_eq(reapParent(&child), reap);
    ck_assert_ptr_null(reapParent(&reap));
    end();
}

/* --- marks ------------------------------------------------------------------------------------- */

static char *filled(unsigned id, size_t size, char with)
{
    vcpu_be(id);
    return memset(reapMalloc(&reap, size), with, size);
}

/* Older objects of hidden children stay, where they do not move; what is made or moved since goes, with what
 * processors made that came since. */
TEST(a_mark_holds_for_all_parts, .times = VCPU_PATHS)
{
    reap_mark outer, inner;
    needs(begin(_i), vcpu_lacks);
    char *old[4], *freed = filled(1, 50, 9);
    for (unsigned id = 0; id < 4; id++) old[id] = filled(id, 100, (char)id);
    reapMark(&reap, &outer);
    vcpu_be(2);
    reapFree(&reap, freed);
    for (unsigned id = 0; id < 8; id++) filled(id, 200, 1);
    ck_assert_uint_eq(count_parts(reap), 4);
    reapMark(&reap, &inner);
    vcpu_be(3);
    char *moved = reapRealloc(&reap, old[1], 5000); /* younger than both marks from now on */
    ck_assert_ptr_ne(moved, old[1]);
    ck_assert_int_eq(moved[99], 1);
    ck_assert_ptr_eq(reapRealloc(&reap, old[2], 50), old[2]);
    ck_assert_uint_eq(stats_of(reap).live_objects, 12);
    reapRewind(&reap, &inner);
    ck_assert_uint_eq(stats_of(reap).live_objects, 11);
    reapRewind(&reap, &outer);
    ck_assert_uint_eq(stats_of(reap).live_objects, 3);
    ck_assert_uint_eq(stats_of(reap).live_bytes, 112 + 64 + 112);
    reapUnmark(&reap, &outer);
    for (unsigned id = 4; id < 8; id++) filled(id, 200, 1);
    ck_assert_uint_eq(count_parts(reap), 8);
    for (unsigned id = 0; id < 4; id++)
        if (id != 1) ck_assert_int_eq(old[id][49], (char)id);
    reapFreeAll(&reap);
    reapMark(&reap, &outer);
    reapFreeAll(&reap); /* which closes it */
    filled(5, 100, 1);
    ck_assert_uint_eq(reap_own_part(reap_next_part(reap_behind(reap)))->barred, false);
    end();
}

/* --- limits ------------------------------------------------------------------------------------ */

enum { LIMIT = 100000, OBJECT = 112 };

/* Fills the reap to its limit, by four processors in turn. Returns the objects. */
static unsigned fill_to_limit(void **objects)
{
    unsigned n = 0;
    do vcpu_be(n % 4);
    while ((objects[n] = reapMalloc(&reap, OBJECT)) && ++n);
    for (unsigned id = 0; id < 4; id++) {
        vcpu_be(id);
        ck_assert_ptr_null(reapMalloc(&reap, OBJECT));
        ck_assert_int_eq(errno, ENOMEM);
    }
    return n;
}

/* All of a limit can be used, from whichever parts; the room that a part has drawn is the others' when they
 * need it. The limit may be the reap's own, or that of the reap above. */
TEST(a_limit_is_exact_for_all_parts, .times = 3 * VCPU_PATHS)
{
    void *objects[LIMIT / OBJECT + 1], *parent;
    needs(begin(_i), vcpu_lacks);
    reapCreate(&parent, NULL);
    bool own = _i / VCPU_PATHS;
    if (_i / VCPU_PATHS > 1) make_parts(3), reapFreeAll(&reap);
    if (!own) ck_assert_int_eq(reapAdopt(&reap, &parent), 0);
    ck_assert_int_eq(reapSetLimit(own ? &reap : &parent, LIMIT), 0);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert_uint_eq(fill_to_limit(objects), LIMIT / OBJECT);
        assert_valid(own ? reap : parent);
        if (round == 1) {
            reapFreeAll(&reap);
            continue;
        }
        for (unsigned i = 0; i < LIMIT / OBJECT; i++) {
            vcpu_be(i % 5);
            reapFree(&reap, objects[i]);
        }
    }
    ck_assert_uint_eq(stats_of(reap).live_objects, 0);
    assert_valid(own ? reap : parent);
    if (!own) ck_assert_int_eq(reapAdopt(&reap, NULL), 0);
    reapDestroy(&parent);
    end();
}

static unsigned called;
static void *sacrifice;

static void make_room(void **met, size_t size, void *arg)
{
    ck_assert_ptr_eq(*met, reap);
    ck_assert_uint_eq(size, OBJECT);
    ck_assert_ptr_eq(arg, &called);
    called++;
    reapFree(&reap, sacrifice);
    sacrifice = NULL;
}

/* The function runs once for an allocation, in whichever part that is, and may use objects of others. */
TEST(functions_of_limits_know_no_parts, .times = VCPU_PATHS)
{
    void *objects[LIMIT / OBJECT + 1];
    needs(begin(_i), vcpu_lacks);
    ck_assert_int_eq(reapSetLimit(&reap, LIMIT), 0);
    ck_assert_uint_eq(fill_to_limit(objects), LIMIT / OBJECT);
    reapOnLimit(&reap, make_room, &called);
    for (unsigned id = 0; id < 4; id++) {
        vcpu_be(id);
        called = 0;
        sacrifice = objects[40 + (id + 1) % 4];
        ck_assert_ptr_nonnull(reapMalloc(&reap, OBJECT));
        ck_assert_uint_eq(called, 1);
        ck_assert_ptr_null(reapMalloc(&reap, OBJECT));
        ck_assert_uint_eq(called, 2);
    }
    reapOnLimit(&reap, NULL, NULL);
    end();
}

/* --- misuse ---------------------------------------------------------------------------------- */

static void *handle;

static void free_it(void *object) { reapFree(&handle, object); }
static void free_it_elsewhere(void *object)
{
    vcpu_be(2);
    reapFree(&handle, object);
}
static void hoard_free_it(void *object) { hoard_free(object); }
static void resize_it(void *object)
{
    vcpu_be(2);
    reapRealloc(&handle, object, 1000);
}
static void measure_it(void *object) { reapUsableSize(object); }

static void assert_is_freed(void *object)
{
    for (unsigned id = 0; id < 3; id++) {
        vcpu_be(id);
        assert_misuse(free_it, object, "reapFree", "freed twice");
        assert_misuse(free_it_elsewhere, object, "reapFree", "freed twice");
        assert_misuse(hoard_free_it, object, "hoard_free", "not a live object");
        assert_misuse(resize_it, object, "reapRealloc", "not a live object");
        assert_misuse(measure_it, object, "reapUsableSize", "not a live object");
    }
}

/* At once: while the freed object waits on the list of its part, and later. */
TEST(freed_by_another_processor, .times = VCPU_PATHS)
{
    static const size_t sizes[] = {16, 40, 1000, 3000};
    void *objects[4], *more[100], *owner;
    needs(begin(_i), vcpu_lacks);
    handle = reap;
    make_parts(3);
    vcpu_be(0);
    for (unsigned i = 0; i < 4; i++) objects[i] = reapMalloc(&reap, sizes[i]);
    for (unsigned i = 0; i < 100; i++) {
        more[i] = reapMalloc(&reap, 100);
        if (i % 10 == 0) ck_assert_ptr_nonnull(reapMalloc(&reap, 100)); /* its chunk stays */
    }
    vcpu_be(1);
    for (unsigned i = 0; i < 4; i++) {
        reapFree(&reap, objects[i]);
        ck_assert_int_eq(reapOf(objects[i], &owner), -1);
        assert_is_freed(objects[i]);
        vcpu_be(1);
    }
    for (unsigned i = 0; i < 100; i++) reapFree(&reap, more[i]);
    assert_is_freed(more[0]);
    assert_is_freed(more[99]);
    ck_assert_uint_eq(stats_of(reap).live_objects, 3 + 10);
    assert_is_freed(more[50]);
    end();
}

TEST(no_objects_of_the_reap, .times = VCPU_PATHS)
{
    needs(begin(_i), vcpu_lacks);
    handle = reap;
    char *object = reapMalloc(&reap, 100), *stranger = reapMalloc(&other, 100);
    vcpu_be(1);
    char *second = reapMalloc(&reap, 100), *third = reapMalloc(&other, 100);
    for (unsigned id = 0; id < 3; id++) {
        vcpu_be(id);
        assert_misuse(free_it, object + 16, "reapFree", "not the start of an object");
        assert_misuse(free_it, second + 16, "reapFree", "not the start of an object");
        assert_misuse(free_it, object + 1, "reapFree", "not the start of an object");
        assert_misuse(free_it, stranger, "reapFree", "an object of another reap");
        assert_misuse(free_it, third, "reapFree", "an object of another reap");
        assert_misuse(resize_it, third, "reapRealloc", "an object of another reap");
        assert_misuse(free_it, &object, "reapFree", "not a reap's object");
    }
    end();
}

int main(void) { return run_tests((struct suite){.seconds = 120}); }
