/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c: what several threads have to do with each other: objects that others free, resize and ask for,
 * children of one parent, and shared reaps.
 *
 *     mail     objects on their way: who takes one out of its cell has it for a moment, and puts it back, or
 *              frees it by free(). Meanwhile its owner goes on with its reap; it takes back what it is about
 *              to end, but what is older than a mark may be abroad when the mark is gone back to
 *     public   reap 0 of each thread, whose children others make. Its gate is closed while the owner has a
 *              mark open that it may go back to: what is there then is older, and must stay
 *     loose    objects of two shared reaps, which belong to nobody
 */
#include "fuzz_ops.h"

#include <malloc.h>
#include <sched.h>

#if FUZZ_SANITIZED
#define free hoard_free
#define realloc hoard_realloc
#define malloc_usable_size hoard_usable_size
#endif

enum { MAIL = 32, LOOSE = 64, SHARED = 2, ANSWERS = 8, ROUNDS = 300, PATIENCE = 300 };

static _Atomic(struct object *) mail[MAIL];
static _Atomic(int) gates[THREADS]; /* how many are about to make a child; -1: closed */
static void *publics[THREADS];
static _Atomic(unsigned) calling; /* a call's number and thread, of whose public reap others make children */
static _Atomic(unsigned) answers; /* threads that do */
static unsigned threads;

/* --- mail ------------------------------------------------------------------------------------ */

static int where(const struct object *object) { return atomic_load(&object->where); }

static bool post(struct object *object, unsigned from)
{
    for (unsigned i = 0; i < MAIL; i++) {
        struct object *none = NULL;
        if (atomic_compare_exchange_strong(&mail[(from + i) % MAIL], &none, object)) return true;
    }
    return false;
}

void do_send(const struct record *rec)
{
    struct object *object = live_object(rec);
    if (rec->extra & 6 && node_of(rec)) object = node_of(rec)->newest;
    if (!object || where(object) != HOME || object == me->held || me->nest) return;
    struct node *node = object->reap == NONE ? NULL : &me->nodes[object->reap];
    object->owner = node ? node->handle : NULL;
    bool may_move = node && rec->extra & 1 && node->depth == 0 && !node->user_memory && !node->shared;
    object->movable = !node || (may_move && !object->builder);
    SAY("send(o[%u]); /* others may free it%s */", slot_of(object), object->movable ? ", or resize it" : "");
    atomic_store(&object->where, ABROAD);
    if (post(object, rec->size))
        me->abroad++;
    else
        atomic_store(&object->where, HOME);
}

static void free_foreign(struct object *object, bool by_any)
{
    void *at = object->at;
    bool hoards = object->hoards, reaps = object->owner;
    errno = MY_ERRNO;
    if (by_any) {
        int result = reapFreeAny(at);
        CHECK(result == (reaps ? 0 : -1) && (reaps ? ERRNO_STAYS : errno == ENOENT),
              "reapFreeAny by another thread gives %d, errno %d", result, errno);
    }
    if (by_any && reaps)
        ;
    else if (hoards)
        hoard_free(at);
    else
        free(at);
    atomic_store(&object->where, GONE);
}

static void ask_foreign(const struct object *object, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        size_t size = malloc_usable_size(object->at);
        CHECK(size == object->usable, "malloc_usable_size by another thread is %zu of %zu", size,
              object->usable);
        if (!object->owner) continue;
        size = reapUsableSize(object->at);
        CHECK(size == object->usable, "reapUsableSize by another thread is %zu of %zu", size, object->usable);
    }
}

static void find_foreign(const struct object *object, size_t at)
{
    void *owner;
    size_t inside = object->usable ? at % object->usable : 0; /* with harden a block of no byte has none */
    int result = reap_of(object->at + inside, &owner);
    CHECK(owner == object->owner && result == (object->owner ? 0 : -1),
          "reapOf by another thread: another reap");
}

static void resize_foreign(struct object *object, size_t size)
{
    size_t common = size < object->size ? size : object->size;
    bool mine = object >= me->objects && object < me->objects + SLOTS;
    if (mine || !object->movable || size > 1 << 20) return;
    errno = 0;
    unsigned char *at = realloc(object->at, size), *old = object->at;
    CHECK(at || errno == ENOMEM, "realloc by another thread: errno %d", errno);
    if (!at) return;
    object->at = at;
    check_filled(object, common);
    object->usable = malloc_usable_size(at);
    if (at != old || !object->owner || object->usable < object->size)
        object->size = size; /* else it is as wide as before */
    CHECK(object->usable >= object->size, "realloc by another thread has given too little");
    fill(object);
}

void do_receive(const struct record *rec)
{
    struct object *object = me->nest ? NULL : atomic_exchange(&mail[rec->slot % MAIL], NULL);
    if (!object) return;
    check_filled(object, object->filled);
    SAY("/* gets %p, and does %u with it */", (void *)object->at, rec->extra % 8u);
    switch (rec->extra % 8) {
    case 0:
    case 1:
    case 2: free_foreign(object, rec->size & 1); return;
    case 3:
    case 4: ask_foreign(object, 1 + rec->size % 256u); break;
    case 5: find_foreign(object, rec->size); break;
    default: resize_foreign(object, size_of(rec->size));
    }
    check_filled(object, object->filled);
    if (!post(object, rec->slot)) free_foreign(object, false);
}

/* --- taking back ----------------------------------------------------------------------------- */

static bool take_out(struct object *object)
{
    for (unsigned i = 0; i < MAIL; i++) {
        struct object *expected = object;
        if (atomic_compare_exchange_strong(&mail[i], &expected, NULL)) return true;
    }
    return false;
}

static void take_back(struct object *object)
{
    while (where(object) == ABROAD) {
        if (take_out(object)) {
            object_home(object);
            return;
        }
        sched_yield();
    }
    if (where(object) == GONE) object_gone(object);
}

void recall(int reap, unsigned depth, bool movable)
{
    for (unsigned i = 0; fuzz_threaded && i < me->program->slots; i++) {
        struct object *object = &me->objects[i];
        if (where(object) <= HOME || object->reap != reap) continue;
        if (object->depth >= depth && (!movable || object->movable)) take_back(object);
    }
}

/* Within a function that a call has called, the calling thread may hold what the others wait for. */
bool recall_below(int top, unsigned depth, bool movable)
{
    if (fuzz_threaded && (me->nest || me->met != NONE)) return !any_abroad();
    for (int i = 0; fuzz_threaded && i < REAPS; i++)
        if (me->nodes[i].handle && is_below(i, top)) recall(i, i == top ? depth : 0, movable);
    return true;
}

bool any_abroad(void) { return me->abroad > 0; }

void recall_all(void)
{
    for (unsigned i = 0; i < me->program->slots; i++)
        if (where(&me->objects[i]) > HOME) take_back(&me->objects[i]);
}

/* --- children that others make --------------------------------------------------------------- */

static bool may_enter(_Atomic(int) *gate)
{
    int inside = atomic_load(gate);
    while (inside >= 0)
        if (atomic_compare_exchange_weak(gate, &inside, inside + 1)) return true;
    return false;
}

void do_public_child(const struct record *rec)
{
    struct node *node = &me->nodes[rec->reap % me->program->reaps];
    unsigned target = rec->extra % threads;
    if (target == me->number || node->is_public || me->nest || node->going) return;
    if (node->handle && (rec->slot % 4 || node->entered)) return;
    if (node->handle && !recall_below(index_of(node), 0, true)) return; /* limits above it may go */
    if (!may_enter(&gates[target])) return;
    bool adopts = node->handle != NULL;
    if (!adopts) begin_node(node);
    SAY(adopts ? "reapAdopt(&r[%d], &public[%u]);" : "reapCreate(&r[%d], &public[%u]);", index_of(node),
        target);
    for (unsigned i = 0; !adopts && i < rec->size % 8u; i++) { /* some come and go, and one stays */
        reapCreate(&node->handle, spelled(&publics[target]));
        reapDestroy(&node->handle);
    }
    if (!adopts) {
        reapCreate(&node->handle, spelled(&publics[target]));
        CHECK(node->handle, "reapCreate: no reap");
    } else if (reapAdopt(handle_of(node), spelled(&publics[target])) != 0) {
        CHECK(errno == ENOMEM, "reapAdopt: errno %d", errno);
        adopts = false;
    }
    if (adopts || node->parent == NONE) {
        node->parent = ELSEWHERE;
        node->parent_handle = publics[target];
        node->born = 0;
    }
    atomic_fetch_sub(&gates[target], 1);
    CHECK(reapParent(handle_of(node)) == node->parent_handle,
          "reapParent of a child of another thread's reap");
}

/* A mark that will be gone back to, perhaps: nobody makes children meanwhile. */
void do_quiet_mark(const struct record *rec)
{
    struct node *node = &me->nodes[0];
    struct record mark = {.reap = 0, .extra = rec->extra};
    int nobody = 0;
    if (me->nest || !node->is_public || node->quiet != MARKS || node->depth == MARKS) return;
    if (!atomic_compare_exchange_strong(&gates[me->number], &nobody, -1)) return;
    node->quiet = node->depth;
    do_mark(&mark);
    if (rec->extra & 1) do_rewind(&mark); /* all that others have made is older, and stays */
}

/* Marks are opened and closed while the other threads make children; and a quiet one is gone back to now and
 * then. All children are older than that one, and outlive it. */
void do_busy_marks(const struct record *rec)
{
    static _Atomic(unsigned) number;
    struct node *node = &me->nodes[0];
    struct record tries = {.reap = 0, .extra = rec->extra % 2, .slot = rec->slot};
    struct record innermost = {.reap = 0, .extra = 1};
    unsigned nobody = 0, mine = atomic_fetch_add(&number, 1) % 1000000 * THREADS + THREADS + me->number;
    if (me->nest || !node->is_public || node->quiet != MARKS || node->depth == MARKS) return;
    if (!atomic_compare_exchange_strong(&calling, &nobody, mine)) return;
    for (unsigned i = 0, rounds = ROUNDS / (1 + node->objects / 64); i < rounds; i++) {
        do_tries(&tries);
        for (unsigned j = 0; j < PATIENCE && node->quiet == MARKS; j++) do_quiet_mark(&innermost);
        if (node->quiet != MARKS) do_unmark(&innermost);
        if (atomic_load(&answers) == 0) sched_yield();
    }
    atomic_store(&calling, 0);
}

static void check_and_destroy(void **child, void **parent)
{
    if (!*child) return;
    CHECK(reapParent(child) == *parent, "a child made beside marks has another parent");
    void *object = reapMalloc(child, 100);
    CHECK(object, "no memory");
    memset(object, 0, 100);
    reapDestroy(child);
}

/* Another thread asks for children: some of them live for a while. */
void answer_call(void)
{
    void *made[ANSWERS] = {NULL};
    unsigned call = atomic_load(&calling), target = call % THREADS;
    if (call == 0 || target == me->number || me->entered_depth) return;
    fuzz_running = "children beside marks";
    atomic_fetch_add(&answers, 1);
    for (unsigned i = 0; atomic_load(&calling) == call; i++) {
        if (!may_enter(&gates[target])) {
            sched_yield();
            continue;
        }
        check_and_destroy(&made[i % ANSWERS], &publics[target]);
        reapCreate(&made[i % ANSWERS], &publics[target]);
        atomic_fetch_sub(&gates[target], 1);
    }
    for (unsigned i = 0; i < ANSWERS; i++) check_and_destroy(&made[i], &publics[target]);
    atomic_fetch_sub(&answers, 1);
}

void no_longer_unowned(struct node *node)
{
    if (!node->is_public || node->quiet == MARKS || node->depth > node->quiet) return;
    node->quiet = MARKS;
    atomic_store(&gates[me->number], 0);
}

/* --- shared reaps ---------------------------------------------------------------------------- */

static struct {
    _Atomic(int) state; /* 0: nothing; 1: an object; 2: a thread has it */
    int which;
    struct object object;
} loose[LOOSE];
static void *shared[SHARED];

static bool seize(unsigned i, int state)
{
    return atomic_compare_exchange_strong(&loose[i].state, &state, 2);
}

static void fill_loose(unsigned i, void *at, size_t size)
{
    struct object *object = &loose[i].object;
    void *owner;
    object->at = at;
    object->size = size;
    object->usable = reapUsableSize(at);
    CHECK(object->usable == usable_for(size), "reapUsableSize is %zu of %zu in a shared reap", object->usable,
          size);
    CHECK(reap_of(at, &owner) == 0 && owner == shared[loose[i].which],
          "reapOf names another reap than the shared one");
    fill(object);
}

void do_loose_alloc(const struct record *rec)
{
    unsigned i = rec->slot % LOOSE;
    size_t size = size_of(rec->size & 0x7fff);
    if (me->nest || !seize(i, 0)) return;
    loose[i].which = rec->extra % SHARED;
    void **handle = spelled(&shared[loose[i].which]);
    SAY("loose[%u] = reapMalloc(&shared[%d], %zu);", i, loose[i].which, size);
    void *at = rec->extra & 4   ? reapCalloc(handle, 1, size)
               : rec->extra & 8 ? reapAlignedAlloc(handle, 64, size)
                                : reapMalloc(handle, size);
    CHECK(at || errno == ENOMEM, "a shared reap: errno %d", errno);
    if (at) fill_loose(i, at, size);
    atomic_store(&loose[i].state, at ? 1 : 0);
}

/* A text in pieces, in memory that others take from meanwhile. */
void do_loose_build(const struct record *rec)
{
    unsigned i = rec->slot % LOOSE, pieces = rec->size % 64u;
    size_t size = 1 + rec->slot % 200u;
    reap_builder line = {0};
    char piece[200];
    if (me->nest || !seize(i, 0)) return;
    loose[i].which = rec->extra % SHARED;
    void **handle = spelled(&shared[loose[i].which]);
    SAY("for (int i = 0; i < %u; i++) reapAppend(&shared[%d], &line, ..., %zu); loose[%u] = reapFinish(...);",
        pieces, loose[i].which, size, i);
    memset(piece, (int)('a' + i % 26), size);
    for (unsigned j = 0; j < pieces; j++) {
        int result = rec->extra & 4 ? reapAppendf(handle, &line, "%.*s", (int)size, piece)
                                    : reapAppend(handle, &line, piece, size);
        CHECK(result == 0 || errno == ENOMEM, "an append in a shared reap: errno %d", errno);
        if (result != 0) break;
        CHECK(line.data[line.length] == 0, "no zero behind a builder's object in a shared reap");
    }
    size_t length = line.length;
    for (size_t j = 0; j < length; j++)
        CHECK(line.data[j] == piece[0], "what was appended in a shared reap is not there");
    char *at = reapFinish(handle, &line);
    CHECK(at || errno == ENOMEM, "reapFinish in a shared reap: errno %d", errno);
    CHECK(!at || (strlen(at) == length && !line.data), "reapFinish in a shared reap: another length");
    if (at) fill_loose(i, at, length + 1);
    atomic_store(&loose[i].state, at ? 1 : 0);
}

void do_loose_free(const struct record *rec)
{
    unsigned i = rec->slot % LOOSE;
    if (me->nest || !seize(i, 1)) return;
    check_filled(&loose[i].object, SIZE_MAX);
    bool by_any = rec->extra & 2;
    SAY("%s(loose[%u]);", rec->extra & 1 ? by_any ? "reapFreeAny" : "free" : "reapFree", i);
    if (rec->extra & 1 && by_any)
        CHECK(reapFreeAny(loose[i].object.at) == 0, "reapFreeAny, shared");
    else if (rec->extra & 1)
        free(loose[i].object.at);
    else
        reapFree(spelled(&shared[loose[i].which]), loose[i].object.at);
    atomic_store(&loose[i].state, 0);
}

void do_loose_resize(const struct record *rec)
{
    unsigned i = rec->slot % LOOSE;
    size_t size = size_of(rec->size & 0x7fff);
    if (me->nest || !seize(i, 1)) return;
    struct object *object = &loose[i].object;
    check_filled(object, SIZE_MAX);
    SAY("loose[%u] = %s(loose[%u], %zu);", i, rec->extra & 1 ? "realloc" : "reapRealloc", i, size);
    void **handle = spelled(&shared[loose[i].which]);
    unsigned char *at = rec->extra & 1 ? realloc(object->at, size) : reapRealloc(handle, object->at, size);
    CHECK(at || errno == ENOMEM, "a shared reap: errno %d", errno);
    if (at) {
        object->at = at;
        check_filled(object, size < object->size ? size : object->size);
        fill_loose(i, at, size);
    }
    atomic_store(&loose[i].state, 1);
}

void do_loose_move(const struct record *rec)
{
    unsigned i = rec->slot % LOOSE;
    if (me->nest || !seize(i, 1)) return;
    int from = loose[i].which, to = rec->extra % SHARED;
    SAY("loose[%u] = reapMove(loose[%u], &shared[%d], &shared[%d]);", i, i, from, to);
    void *at = reapMove(loose[i].object.at, spelled(&shared[from]), &shared[to]);
    CHECK(at || errno == ENOMEM, "a shared reap: errno %d", errno);
    if (at) {
        loose[i].which = to;
        loose[i].object.at = at;
        check_filled(&loose[i].object, SIZE_MAX);
    }
    atomic_store(&loose[i].state, 1);
}

static int count_bytes(void *object, size_t size, void *sum)
{
    CHECK(reapUsableSize(object) == size, "reapWalk in a shared reap shows another size");
    *(size_t *)sum += size;
    return 0;
}

/* One thread at a time, since marks nest. Nothing is rewound: the objects that came meanwhile are others'. */
static void mark_for_a_while(void **handle, unsigned which, unsigned size)
{
    static _Atomic(int) marked[SHARED];
    reap_mark outer, inner;
    if (atomic_exchange(&marked[which], 1)) return;
    reapMark(handle, &outer);
    void *object = reapMalloc(handle, size);
    reapMark(handle, &inner);
    reapFree(handle, object);
    reapUnmark(handle, &outer);
    atomic_store(&marked[which], 0);
}

static void no_function(void *arg) { (void)arg; }

/* A function of its own, for tsan.supp. */
static __attribute__((noinline)) void in_forked_child(unsigned size)
{
    struct reap_stats stats;
    for (unsigned i = 0; i < SHARED; i++) {
        reapFree(&shared[i], reapMalloc(&shared[i], size));
        size_t sum = 0;
        if (reapWalk(&shared[i], count_bytes, &sum) != 0 || reapStats(&shared[i], &stats) != 0) _exit(1);
        if (stats.live_bytes != sum) _exit(2);
        reapDestroy(&shared[i]);
    }
    _exit(0);
}

/* The child finds the shared reaps whole, whatever other threads do in them. */
static void fork_and_use(unsigned size)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) in_forked_child(size);
    CHECK(pid < 0 || (waitpid(pid, &status, 0) == pid && status == 0),
          "the child of a fork beside shared reaps ends with %x", (unsigned)status);
}

/* Calls that need the whole of a shared reap. */
void do_loose_whole(const struct record *rec)
{
    void **handle = spelled(&shared[rec->slot % SHARED]);
    if (me->nest) return;
    SAY("whole(&shared[%u], %u);", rec->slot % (unsigned)SHARED, rec->extra % 16u);
    switch (rec->extra % 16) {
    case 0: fork_and_use(rec->size % 5000u); break;
    case 1:
    case 2: reapTrim(handle, rec->size); break;
    case 3:
    case 4:
        CHECK(reapOnDestroy(handle, no_function, me) == 0 || errno == ENOMEM, "reapOnDestroy, shared");
        reapCancelOnDestroy(handle, no_function, me);
        break;
    case 5:
    case 6:
        if (me->entered_depth) break; /* perhaps in another shared one, or below the heap in it */
        reapEnterQuietly(handle);
        reapLeave();
        break;
    case 7:
    case 8: CHECK(reapHeldBytes(handle) >= 8192, "reapHeldBytes, shared"); break;
    default: mark_for_a_while(handle, rec->slot % (unsigned)SHARED, rec->size % 5000u);
    }
}

void do_loose_look(const struct record *rec)
{
    void **handle = spelled(&shared[rec->slot % SHARED]), *child = NULL;
    struct reap_stats stats;
    size_t sum = 0;
    if (me->nest) return;
    SAY("look(&shared[%u], %u);", rec->slot % (unsigned)SHARED, rec->extra % 4u);
    switch (rec->extra % 4) {
    case 0:
        CHECK(reapStats(handle, &stats) == 0 && stats.live_bytes >= 16 * stats.live_objects,
              "reapStats, shared");
        break;
    case 1: CHECK(reapWalk(handle, count_bytes, &sum) == 0, "reapWalk, shared"); break;
    case 2: CHECK(reapSetName(handle, rec->size % 2 ? "one" : NULL) == 0, "reapSetName, shared"); break;
    default:
        reapCreate(&child, handle);
        CHECK(child && reapParent(&child) == *handle, "a child of a shared reap");
        if (reapMalloc(&child, rec->size)) reapFreeAll(&child);
        reapDestroy(&child);
    }
}

/* --- begin and end --------------------------------------------------------------------------- */

static void *new_shared(size_t limit)
{
    void *handle;
    struct reap_options options = {.size = sizeof options, .flags = REAP_SHARED, .limit = limit};
    CHECK(reapCreateWith(&handle, NULL, &options) == 0, "reapCreateWith, shared");
    return handle;
}

void threads_begin(struct world *worlds, const struct program *program)
{
    threads = program->threads;
    for (unsigned i = 0; i < SHARED; i++) shared[i] = new_shared(program->slots % 2 ? 60000 : 0);
    for (unsigned i = 0; i < threads; i++) {
        struct node *node = &worlds[i].nodes[0];
        atomic_store(&gates[i], 0);
        me = &worlds[i];
        begin_node(node);
        reapCreate(&node->handle, NULL);
        node->is_public = true;
        publics[i] = node->handle;
    }
}

/* The other threads have ended. */
static void end_shared(void)
{
    size_t objects[SHARED] = {0};
    struct reap_stats stats;
    for (unsigned i = 0; i < LOOSE; i++) {
        if (atomic_load(&loose[i].state) != 1) continue;
        check_filled(&loose[i].object, SIZE_MAX);
        objects[loose[i].which]++;
    }
    for (int i = 0; i < SHARED; i++) {
        CHECK(reapStats(&shared[i], &stats) == 0, "reapStats, shared");
        CHECK(stats.live_objects == objects[i], "%zu objects in a shared reap for %zu", stats.live_objects,
              objects[i]);
        CHECK(stats.children == 0, "a shared reap has %zu children", stats.children);
        reapDestroy(&shared[i]);
    }
}

void threads_end(struct world *worlds)
{
    struct reap_stats stats;
    end_shared();
    for (unsigned i = 0; i < threads && !fuzz_leaves; i++) {
        me = &worlds[i];
        CHECK(reapStats(&publics[i], &stats) == 0, "reapStats");
        CHECK(stats.children == children_of(0), "a public reap has %zu children for %zu", stats.children,
              children_of(0));
        me->nodes[0].is_public = false;
        end_reap(0, true);
        take_charges_back();
    }
}
