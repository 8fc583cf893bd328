/* SPDX-License-Identifier: Apache-2.0 */
/* life.c: names, functions at the end, marks, limits; and looking at all of a reap. */
#include "fuzz_ops.h"

/* --- names ----------------------------------------------------------------------------------- */

void do_name(const struct record *rec)
{
    static __thread char name[4200];
    struct node *node = node_of(rec);
    if (!node) return;
    struct node next = {.name_size = rec->extra % 4 ? rec->size % 40 : rec->size % 4100,
                        .name_seed = rec->extra};
    bool takes_away = rec->slot % 8 == 0;
    if (rec->slot % 4 == 1) /* a name that many have */
        next = (struct node){.name_size = 5 + rec->extra % 3, .name_seed = rec->extra % 3};
    name_of(&next, name);
    SAY("reapSetName(&r[%d], %stext(%u)%s);", index_of(node), takes_away ? "NULL /* " : "", next.name_size,
        takes_away ? " */" : "");
    errno = 0;
    int result = reapSetName(handle_of(node), takes_away ? NULL : name);
    if (result != 0) {
        CHECK(result == -1, "reapSetName gives %d", result);
        if (next.name_size > 4095)
            CHECK(errno == ENAMETOOLONG, "reapSetName: errno %d", errno);
        else
            CHECK(errno == ENOMEM && node->bounded, "reapSetName: refused, errno %d", errno);
        return;
    }
    CHECK(takes_away || next.name_size <= 4095, "reapSetName takes a name of %u", next.name_size);
    node->named = !takes_away;
    node->name_size = next.name_size;
    node->name_seed = next.name_seed;
}

/* --- functions at the end -------------------------------------------------------------------- */

/* The newest children of a reap above this order are gone, as far as they had to go. */
static void newer_are_gone(int parent, uint64_t order, unsigned depth)
{
    for (int i = 0; i < REAPS; i++) {
        struct node *node = &me->nodes[i];
        if (node->handle && node->parent == parent && node->order > order &&
            (node->born >= depth || node->doomed))
            forget_reap(i);
    }
}

/* A function of a reap runs: what goes before is gone. */
static void gone_before(int reap, const struct ending *ending)
{
    newer_are_gone(reap, 0, reap == ending->top ? ending->depth : 0);
    for (int i = reap; i != ending->top; i = me->nodes[i].parent) me->nodes[i].doomed = true;
    for (int i = reap; i != ending->top; i = me->nodes[i].parent)
        newer_are_gone(me->nodes[i].parent, me->nodes[i].order, 0);
}

static void going(int reap, int top, int step)
{
    for (; reap != top; reap = me->nodes[reap].parent) me->nodes[reap].going += (unsigned)step;
}

static void at_end(void *arg)
{
    struct cleanup *cleanup = arg;
    CHECK(cleanup->world == me, "a function of another thread's reap is called, or of none");
    int reap = cleanup->reap;
    CHECK(me->ending_depth > 0, "a function of reapOnDestroy is called, and no reap ends");
    struct ending ending = me->endings[me->ending_depth - 1];
    struct node *node = &me->nodes[reap];
    CHECK(node->handle && is_below(reap, ending.top), "a function is called of a reap that does not end");
    CHECK(node->cleanups == cleanup, "functions are called out of order");
    CHECK(reap != ending.top || cleanup->depth >= ending.depth,
          "a function is called that is older than the mark");
    gone_before(reap, &ending);
    node->cleanups = cleanup->next;
    struct record does = cleanup->does;
    cleanup->world = NULL;
    going(reap, ending.top, 1);
    SAY("/* a function of r[%d] runs { */", reap);
    run_nested(does, reap);
    SAY("/* } */");
    going(reap, ending.top, -1);
}

void do_on_destroy(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || node->is_public) return;
    struct cleanup *cleanup = me->cleanups;
    while (cleanup < me->cleanups + CLEANUPS && cleanup->world) cleanup++;
    if (cleanup == me->cleanups + CLEANUPS) return;
    struct record does = {.op = rec->extra, .reap = rec->reap, .slot = rec->slot, .size = rec->size};
    does.extra = (uint8_t)(rec->size * 7 + rec->slot);
    if (rec->slot % 4 == 0) does.reap = (uint8_t)(rec->size / 16);
    if (me->nest) does.op = 0; /* else it might go on for ever */
    SAY("reapOnDestroy(&r[%d], at_end, &c[%u]); /* which does %s on r[%u] */", index_of(node),
        (unsigned)(cleanup - me->cleanups), ops[does.op % op_count].name, does.reap % me->program->reaps);
    errno = 0;
    if (reapOnDestroy(handle_of(node), at_end, cleanup) != 0) {
        CHECK(errno == ENOMEM && node->bounded, "reapOnDestroy: refused, errno %d", errno);
        return;
    }
    *cleanup = (struct cleanup){me, index_of(node), node->depth, does, node->cleanups};
    node->cleanups = cleanup;
}

void do_cancel(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    struct cleanup **link = &node->cleanups, none;
    for (unsigned i = 0; *link && (*link)->next && i < rec->extra % 3u; i++) link = &(*link)->next;
    struct cleanup *cleanup = *link;
    if (!cleanup) {
        CHECK(reapCancelOnDestroy(handle_of(node), at_end, &none) == -1 && errno == ENOENT,
              "reapCancelOnDestroy");
        return;
    }
    SAY("reapCancelOnDestroy(&r[%d], at_end, &c[%u]);", index_of(node), (unsigned)(cleanup - me->cleanups));
    CHECK(reapCancelOnDestroy(handle_of(node), at_end, cleanup) == 0, "reapCancelOnDestroy does not know it");
    *link = cleanup->next;
    cleanup->world = NULL;
}

/* --- marks ----------------------------------------------------------------------------------- */

void do_mark(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || node->depth == MARKS || (fuzz_threaded && me->nest && any_abroad())) return;
    recall(index_of(node), 0, true);
    SAY("reapMark(&r[%d], &m[%d][%u]);", index_of(node), index_of(node), node->depth);
    reapMark(handle_of(node), &node->marks[node->depth]);
    node->pending = 0;
    node->depth++;
}

/* The innermost mark mostly. */
static unsigned chosen_mark(const struct record *rec, const struct node *node)
{
    unsigned back = rec->extra % 4 ? 0 : rec->extra / 4u % node->depth;
    return node->depth - 1 - back;
}

void do_rewind(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || !node->depth || me->ending_depth > NEST || me->asked != NONE || me->held) return;
    unsigned mark = chosen_mark(rec, node);
    int reap = index_of(node);
    if (node->is_public && mark < node->quiet) return;
    if (!may_end(reap, mark, true) || !recall_below(reap, mark + 1, false)) return;
    SAY("reapRewind(&r[%d], &m[%d][%u]);", reap, reap, mark);
    me->endings[me->ending_depth++] = (struct ending){.top = reap, .depth = mark + 1, .rewinds = true};
    node->going++;
    reapRewind(handle_of(node), &node->marks[mark]);
    node->going--;
    me->ending_depth--;
    newer_are_gone(reap, 0, mark + 1);
    CHECK(!node->cleanups || node->cleanups->depth <= mark, "a function since the mark was not called");
    forget_objects(node, mark + 1);
    node->pending = 0;
    if (node->depth > mark) node->depth = mark + 1;
}

/* Returns true if a reap is going back to a mark, or to a later one: then the mark must stay open. */
static bool is_going_back(int reap, unsigned mark)
{
    for (unsigned i = 0; i < me->ending_depth; i++)
        if (me->endings[i].top == reap && me->endings[i].rewinds && mark < me->endings[i].depth) return true;
    return false;
}

struct unmarking {
    struct node *node;
    unsigned mark;
};

static void unmark_wrongly(void *arg)
{
    struct unmarking *it = arg;
    reapUnmark(handle_of(it->node), &it->node->marks[it->mark]);
}

void do_unmark(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || !node->depth) return;
    unsigned mark = chosen_mark(rec, node);
    if (is_going_back(index_of(node), mark)) {
        SAY("reapUnmark(&r[%d], &m[%d][%u]); /* a mistake, in a child */", index_of(node), index_of(node),
            mark);
        must_die("reapUnmark", &node->marks[mark], unmark_wrongly, &(struct unmarking){node, mark});
        return;
    }
    SAY("reapUnmark(&r[%d], &m[%d][%u]);", index_of(node), index_of(node), mark);
    reapUnmark(handle_of(node), &node->marks[mark]);
    node->depth = mark;
    no_longer_unowned(node);
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && me->nodes[i].parent == index_of(node) && me->nodes[i].born > mark)
            me->nodes[i].born = mark;
    for (struct object *o = node->newest; o && o->depth > mark; o = o->older) o->depth = mark;
    for (struct cleanup *c = node->cleanups; c && c->depth > mark; c = c->next) c->depth = mark;
}

/* Tries, as a parser makes them: a mark, some objects, and back again, many times. In a reap whose children
 * others make nothing is gone back to, so that these stay. */
static void try_once(struct node *node, const struct record *rec)
{
    reap_mark mark;
    unsigned count = rec->size % 4u;
    size_t size = 1 + rec->slot % 300u;
    char *made[4];
    reapMark(handle_of(node), &mark);
    for (unsigned i = 0; i < count; i++)
        if ((made[i] = reapMalloc(handle_of(node), size))) memset(made[i], (int)i, size);
    for (unsigned i = 0; i < count; i++)
        CHECK(!made[i] || (made[i][0] == (char)i && made[i][size - 1] == (char)i),
              "an object has changed in a try");
    if (!node->is_public) reapRewind(handle_of(node), &mark);
    for (unsigned i = 0; node->is_public && i < count; i++) reapFree(handle_of(node), made[i]);
    reapUnmark(handle_of(node), &mark);
}

void do_tries(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || node->depth == MARKS || me->nest || is_limited(index_of(node))) return;
    if (fuzz_threaded) recall(index_of(node), 0, true);
    SAY("for (int i = 0; i <= %u; i++) a_try(&r[%d]); /* mark, %u times reapMalloc of %u, %s */", rec->extra,
        index_of(node), rec->size % 4u, 1 + rec->slot % 300u,
        node->is_public ? "reapFree, unmark" : "rewind, unmark");
    for (unsigned i = 0; i <= rec->extra; i++) try_once(node, rec);
    node->pending = 0;
}

/* --- full chunks ----------------------------------------------------------------------------- */

/* Fills a hole to its last unit, and changes the reap's state without an allocation in between: what has no
 * room must not look to a fast way like what has nothing but its first chunk. */
void do_brim(const struct record *rec)
{
    static op_fn *const steps[] = {do_mark, do_rewind,  do_unmark, do_clear,
                                   do_mark, do_destroy, do_limit,  do_trim};
    struct record one = *rec;
    if (rec->extra % 4 == 0) do_destroy(&one);
    (rec->extra & 4 ? do_create : do_create_with)(&one);
    one.size = 0xf000 | REST;
    for (unsigned i = 0; i < 3; i++) do_malloc(&one);
    for (unsigned i = 0, step = rec->size; i < 2 + rec->extra / 8u % 4; i++, step /= 8) {
        one.extra = (uint8_t)(step * 37);
        steps[step % 8](&one);
    }
    do_create(&one);
}

/* --- limits ---------------------------------------------------------------------------------- */

/* Nobody else may be in the reap or below it, as who resizes an object of it would be. */
static void set_limit(struct node *node, size_t limit)
{
    int reap = index_of(node);
    if (!recall_below(reap, 0, true)) return;
    SAY("reapSetLimit(&r[%d], %zu);", reap, limit);
    errno = 0;
    int result = reapSetLimit(handle_of(node), limit);
    node->pending = 0;
    if (result == 0) {
        CHECK(!limit || any_abroad() || live_below(reap) <= limit / 16 * 16,
              "reapSetLimit: a limit below what lives");
        node->limit = limit;
        return;
    }
    CHECK(result == -1 && errno == ENOMEM, "reapSetLimit gives %d, errno %d", result, errno);
    if (any_abroad()) return;
    CHECK(limit && live_below(reap) + pending_below(reap) > limit / 16 * 16,
          "reapSetLimit refuses %zu for %zu", limit, live_below(reap));
}

static size_t new_limit(const struct record *rec, size_t live)
{
    if (rec->extra % 3 == 0) return 0;
    size_t more = rec->extra % 4 ? rec->size : rec->size / 64;
    return live / 2 + rec->extra / 4 % 3 * (live / 2) + more + 1;
}

void do_limit(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || node->is_public) return;
    set_limit(node, new_limit(rec, live_below(index_of(node))));
}

static void free_some(struct node *node, unsigned count, bool by_free)
{
    for (struct object *older, *object = node->newest; object && count; object = older) {
        older = object->older;
        if (object == me->held || atomic_load(&object->where) != HOME) continue;
        struct record rec = {.slot = (uint16_t)slot_of(object), .reap = (uint8_t)index_of(node)};
        if (by_free)
            heap_free(&rec);
        else
            do_free(&rec);
        count--;
    }
}

/* Other reaps change below a call: not those that it is about. */
static void change_others(const struct record *rec)
{
    void (*const changes[])(const struct record *rec) = {do_adopt, do_limit, do_clear, do_destroy};
    struct record other = {.reap = (uint8_t)rec->size, .slot = rec->size, .extra = (uint8_t)(rec->slot >> 2)};
    changes[rec->slot % 4](&other);
}

/* What the function of a limit does: with other threads it may not touch other reaps. */
static void met_action(struct node *node, const struct record *rec)
{
    size_t live = live_below(index_of(node));
    struct record same = {.reap = (uint8_t)index_of(node)};
    switch (rec->extra % 8) {
    case 1:
    case 2: free_some(node, 1 + rec->extra / 8u, false); break;
    case 3: free_some(node, 1 + rec->extra / 8u, true); break;
    case 4:
        if (me->asked == index_of(node) && !me->held) do_clear(&same);
        break;
    case 5: set_limit(node, node->limit + 16 * (rec->size + 1u)); break;
    case 6: set_limit(node, 0); break;
    case 7: set_limit(node, live + 16); break;
    default:
        if (!fuzz_threaded && rec->slot & 8) change_others(rec); /* else it refuses */
    }
}

static void at_limit(void **handle, size_t size, void *arg)
{
    struct node *node = arg;
    CHECK(node >= me->nodes && node < me->nodes + REAPS, "a limit's function runs in another thread");
    CHECK(node->handle && *handle == node->handle, "a limit's function is given another reap");
    CHECK(node->on_limit && node->limit, "a limit's function is called without a limit");
    CHECK(me->asked >= 0 && is_below(me->asked, index_of(node)),
          "a limit's function of another reap is called");
    CHECK(!me->needed || size <= usable_for(me->needed), "a limit's function is called for %zu bytes of %zu",
          size, me->needed);
    CHECK(me->met == NONE, "a limit's function is called within itself");
    int asked = me->asked;
    me->met = index_of(node);
    SAY("/* the function of r[%d]'s limit runs, for %zu bytes { */", index_of(node), size);
    met_action(node, &node->at_limit);
    SAY("/* } */");
    me->met = NONE;
    me->asked = asked;
}

void do_on_limit(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || node->is_public || me->met != NONE) return;
    node->on_limit = rec->slot % 8 != 0;
    node->at_limit = *rec;
    SAY("reapOnLimit(&r[%d], %s, &node); /* action %u */", index_of(node),
        node->on_limit ? "at_limit" : "NULL", rec->extra % 8u);
    reapOnLimit(handle_of(node), node->on_limit ? at_limit : NULL, node);
}

/* --- looking --------------------------------------------------------------------------------- */

void do_check(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node || me->ending_depth) return;
    SAY("look_at(&r[%d]);", index_of(node));
    reclaim();
    check_node(node);
}

void check_touched(const struct record *rec)
{
    if (fuzz_all || rec->size % 64 == 0) do_check(rec);
}

void do_check_all(const struct record *rec)
{
    (void)rec;
    if (!me->ending_depth) check_all();
}

void do_stats(const struct record *rec)
{
    struct node *node = node_of(rec);
    struct reap_stats stats;
    if (!node) return;
    SAY("reapStats(&r[%d], &stats);", index_of(node));
    reclaim();
    CHECK(reapStats(handle_of(node), &stats) == 0, "reapStats");
    node->pending = 0;
    CHECK(stats.live_bytes >= 16 * stats.live_objects, "reapStats: objects without bytes");
}

enum { DEPOT = 104 * 1024 /* bytes at most */ };

/* What a reap keeps goes back; its objects are looked at afterwards. */
void do_trim(const struct record *rec)
{
    struct node *node = node_of(rec);
    struct reap_stats before, after;
    size_t keep = rec->extra % 4 ? (size_t)rec->size * 16 : 0;
    if (!node) return;
    SAY("reapTrim(&r[%d], %zu);", index_of(node), keep);
    reclaim();
    CHECK(reapStats(handle_of(node), &before) == 0, "reapStats");
    node->pending = 0;
    size_t given = reapTrim(handle_of(node), keep);
    CHECK(reapStats(handle_of(node), &after) == 0, "reapStats");
    if (me->program->threads > 1) return; /* others free objects of it, and make children */
    /* The statistics have the chunk for the next child at the size that the next one gets. What the thread
     * keeps of reaps that have ended goes back as well (reap_depot.h). */
    CHECK(after.chunk_bytes + given <= before.chunk_bytes + 32768 + DEPOT &&
              after.chunk_bytes + given + 32768 >= before.chunk_bytes,
          "reapTrim gives back %zu of %zu, and %zu are left", given, before.chunk_bytes, after.chunk_bytes);
    CHECK(after.live_bytes == before.live_bytes && after.live_objects == before.live_objects,
          "reapTrim changes what lives");
}

struct walk {
    struct node *node;
    unsigned stop, every, count;
};

static int step(void *at, size_t size, void *arg)
{
    struct walk *walk = arg;
    (void)size;
    walk->count++;
    for (struct object *o = walk->node->newest; o && walk->every && walk->count % walk->every == 0;
         o = o->older) {
        if (o->at != at || o == me->held || atomic_load(&o->where) != HOME) continue;
        check_filled(o, o->filled);
        SAY("reapFree(&r[%d], o[%u]); /* in reapWalk */", index_of(walk->node), slot_of(o));
        object_leave(o);
        reapFree(&walk->node->handle, at);
        break;
    }
    return walk->count == walk->stop ? 77 : 0;
}

void do_walk(const struct record *rec)
{
    struct node *node = node_of(rec);
    if (!node) return;
    struct walk walk = {node, rec->size % 100, rec->extra % 8, 0};
    for (struct object *o = node->newest; o; o = o->older)
        if (atomic_load(&o->where) != HOME) return;
    SAY("reapWalk(&r[%d], step, ...); /* stops at %u, frees each %uth */", index_of(node), walk.stop,
        walk.every);
    int result = reapWalk(handle_of(node), step, &walk);
    CHECK(result == (walk.stop && walk.count == walk.stop ? 77 : 0), "reapWalk gives %d", result);
    node->pending = 0;
}

void do_report(const struct record *rec)
{
    static FILE *out;
    struct node *node = node_of(rec);
    if (!node || me->number || !FUZZ_FIGURES) return;
    if (!out) out = fopen("/dev/null", "w");
    SAY("reapReport(&r[%d], stderr);", index_of(node));
    if (out) reapReport(rec->extra % 8 || fuzz_threaded ? handle_of(node) : NULL, out);
    if (out && rec->extra % 8 == 1) hoard_report(out);
}
