/* SPDX-License-Identifier: Apache-2.0 */
/* reap_survey.c: walks over the tree of reaps, while other threads create and destroy some.
 *
 * All chunks are frozen while the walk reads a reap and the list of its children, so that their memory stays
 * even if they end. Between two reaps nothing is frozen, and whatever the walk knows may have ended. So it
 * looks at each reap of a list again before it visits it:
 *
 *     words   | reaps to start with | mark | children of one of them | mark | children of one of those |
 *                                                                             at ^                  end ^
 *
 * Thus a reap that stays, below reaps that stay, is visited once. One that comes or goes meanwhile may be
 * missing.
 */
#include "reap/reap_survey.h"

#include "reap.h"

#include <pthread.h>
#include <string.h>

#include "base/options.h"
#include "base/report.h"
#include "os/pages.h"
#include "reap/reap_shared.h"
#include "reap/reap_stats.h"
#include "reap/reap_tree.h"
#include "region/interned.h"
#include "region/reap_chunk.h"

enum {
    INDENT = 2,
    DEEP = 40,   /* levels; further ones are numbered: a tree may be very deep */
    WORDS = 512, /* without a mapping */
    TRIES = 1000 /* to read a list that other threads change */
};

/* --- one reap -------------------------------------------------------------------------------- */

/* The data of a reap that other threads may use, and end. It is read while all chunks are frozen, and shown
 * afterwards, because fn may allocate. */
struct sight {
    struct reap_view view;
    char name[REAP_NAME_MAX], above[REAP_NAME_MAX];
};

static bool is_reap(const struct reap *reap)
{
    const struct reap_chunk *chunk = chunk_of(reap, NULL);
    return chunk && reap_chunk_is_live(chunk) && chunk->owner == reap &&
           (reap->tag == reap_tag(reap) || reap_is_shared(reap));
}

static void read_name(const struct reap *reap, char *text)
{
    const struct reap_name *name = reap->name;
    *text = '\0';
    if (!name || (!interned_is(name) && !chunk_is_readable(name, sizeof *name))) return;
    size_t room = name->room < REAP_NAME_MAX ? name->room : REAP_NAME_MAX - 1;
    if (!interned_is(name) && !chunk_is_readable(name->text, room)) return;
    memcpy(text, name->text, room);
    text[room] = '\0';
}

static double age_of(const struct reap *reap)
{
    uint32_t now = atomic_load_explicit(&reap_seconds, memory_order_relaxed), made = reap->made_at;
    return made != 0 && made <= now ? (double)(now - made) : -1;
}

static void read_sight(struct reap *reap, struct sight *sight)
{
    struct reap *parent = reap->parent;
    bool is_below = parent && is_reap(parent);
    sight->view = (struct reap_view){.reap = reap_handle(reap),
                                     .parent = is_below ? reap_handle(parent) : NULL,
                                     .name = sight->name,
                                     .age = age_of(reap)};
    reap_stats_of_others(reap, &sight->view.stats);
    read_name(reap, sight->name);
    sight->above[0] = '\0';
    if (is_below) read_name(parent, sight->above);
}

/* --- a list of children ---------------------------------------------------------------------- */

/* Where reaps are noted: as many as there is room for, and the count of all. */
struct list_of_reaps {
    struct reap **reaps;
    size_t count, room;
};

static void note(struct list_of_reaps *list, struct reap *reap)
{
    if (list->count < list->room) list->reaps[list->count] = reap;
    list->count++;
}

static bool is_child(const struct reap *reap, const struct reap *parent)
{
    return is_reap(reap) && __atomic_load_n(&reap->parent, __ATOMIC_RELAXED) == parent;
}

static struct reap *load(struct reap *const *link) { return __atomic_load_n(link, __ATOMIC_RELAXED); }

/* Is this the end of the list? A reap may have left it, and may be about to come in again at its beginning:
 * then it has no next one either, and none before it. */
static bool is_last(const struct reap *reap, const struct reap *parent)
{
    return !load(&reap->next) && (load(&reap->prev) || load(&parent->children) == reap);
}

/* Forgets the last reaps that have left the list. A reap in a list is alive. So `gone`, to which the last
 * one's link leads, has left it; and if the link still leads there, the last one has, too. */
static void step_back(struct list_of_reaps *list, const struct reap *parent, const struct reap *gone)
{
    if (list->count > 0 && load(&list->reaps[list->count - 1]->next) == gone) list->count--;
    while (list->count > 0 && !is_child(list->reaps[list->count - 1], parent)) list->count--;
}

/* Frozen: notes the children of a reap. Some may be noted twice. Stops where there is no room. */
static void list_children(const struct reap *parent, struct list_of_reaps *list)
{
    for (unsigned tries = 0; list->count <= list->room;) {
        const struct reap *last = list->count > 0 ? list->reaps[list->count - 1] : NULL;
        struct reap *child = load(last ? &last->next : &parent->children);
        if (child && is_child(child, parent)) {
            if (list->count == list->room) {
                list->count++;
                return;
            }
            note(list, child);
        } else {
            if (!child && (!last || (is_child(last, parent) && is_last(last, parent)))) return;
            if (++tries == TRIES || !is_reap(parent)) return;
            step_back(list, parent, child);
        }
    }
}

/* Leaves out what is there twice. The table has room for twice as many. */
static void leave_out_doubles(struct list_of_reaps *list, struct reap **table, size_t size)
{
    size_t count = 0;
    memset(table, 0, size * sizeof *table);
    for (size_t i = 0; i < list->count; i++) {
        size_t at = (uintptr_t)list->reaps[i] / CHUNK_MIN * 0x9e3779b97f4a7c15u % size;
        while (table[at] && table[at] != list->reaps[i]) at = (at + 1) % size;
        if (table[at]) continue;
        table[at] = list->reaps[count++] = list->reaps[i];
    }
    list->count = count;
}

/* --- the walk -------------------------------------------------------------------------------- */

/* Before the children of a reap: where the walk is in the list that has the reap. */
struct mark {
    size_t start, at, end;
    struct reap *parent;
};
enum { MARK = sizeof(struct mark) / sizeof(void *) };

struct walk {
    struct reap **words;
    size_t room;
    size_t start, at, end; /* of the innermost list: its first reap, the next one to visit, behind the last */
    struct reap *parent;   /* of these reaps; undefined at depth 0 */
    unsigned depth;
    struct sight sight;
    struct reap *few[WORDS];
};

static void begin(struct walk *walk)
{
    walk->words = walk->few;
    walk->room = WORDS;
    walk->start = walk->at = walk->end = 0;
    walk->parent = NULL;
    walk->depth = 0;
}

static void end(struct walk *walk)
{
    if (walk->words != walk->few) pages_unmap(walk->words, walk->room * sizeof(void *));
}

static bool grow(struct walk *walk, size_t needs)
{
    size_t room = walk->room;
    while (room < needs) room *= 2;
    size_t bytes = align_up(room * sizeof(void *), PAGE);
    struct reap **words = pages_map(bytes, PAGE);
    if (!words) return false;
    memcpy(words, walk->words, walk->end * sizeof(void *));
    end(walk);
    walk->words = words;
    walk->room = bytes / sizeof(void *);
    return true;
}

/* The room for the children of the reap that the walk visits: behind a mark. A third of it is for them, as
 * leave_out_doubles needs the rest. */
static struct list_of_reaps room_for_list(const struct walk *walk)
{
    size_t start = walk->end + MARK;
    return (struct list_of_reaps){.reaps = walk->words + start,
                                  .room = walk->room > start ? (walk->room - start) / 3 : 0};
}

static bool grow_for(struct walk *walk, const struct list_of_reaps *list)
{
    return grow(walk,
                walk->end + MARK + 3 * (list->count > list->room * 2 ? list->count : list->room * 2) + 3);
}

/* Reads a reap, and the list of its children. *is false: it has ended, or moved. Returns false when there is
 * no memory for the list. */
static bool look_at(struct walk *walk, struct reap *reap, struct list_of_reaps *children, bool *is)
{
    for (;;) {
        *children = room_for_list(walk);
        chunk_freeze();
        *is = walk->depth == 0 ? is_reap(reap) : is_child(reap, walk->parent);
        if (*is) {
            read_sight(reap, &walk->sight);
            list_children(reap, children);
        }
        chunk_thaw();
        if (children->count <= children->room) break;
        if (!grow_for(walk, children)) return false;
    }
    size_t size = 2 * children->count;
    if (children->count > 1) leave_out_doubles(children, children->reaps + children->room, size);
    walk->sight.view.depth = walk->depth;
    walk->sight.view.stats.children = children->count;
    return true;
}

static void go_down(struct walk *walk, struct reap *reap, const struct list_of_reaps *children)
{
    struct mark mark = {walk->start, walk->at, walk->end, walk->parent};
    memcpy(walk->words + walk->end, &mark, sizeof mark);
    walk->start = walk->at = walk->end + MARK;
    walk->end = walk->at + children->count;
    walk->parent = reap;
    walk->depth++;
    ASSERT(walk->words + walk->at == children->reaps && walk->end <= walk->room);
}

static void go_up(struct walk *walk)
{
    struct mark mark;
    memcpy(&mark, walk->words + walk->start - MARK, sizeof mark);
    walk->start = mark.start;
    walk->at = mark.at;
    walk->end = mark.end;
    walk->parent = mark.parent;
    walk->depth--;
}

/* What a walk calls for each reap. */
typedef int see_reap(const struct sight *sight, void *arg);

/* Visits the reaps of the first list and all below them in preorder, newest children first, without
 * recursion. Returns what `see` returned last, or -1 and ENOMEM. */
static int visit_all(struct walk *walk, see_reap *see, void *arg)
{
    struct list_of_reaps children;
    bool is;
    for (;;) {
        while (walk->at == walk->end) {
            if (walk->depth == 0) return 0;
            go_up(walk);
        }
        struct reap *reap = walk->words[walk->at++];
        if (!look_at(walk, reap, &children, &is)) return -1;
        if (!is) continue;
        int result = see(&walk->sight, arg);
        if (result != 0) return result;
        if (children.count > 0) go_down(walk, reap, &children);
    }
}

static int walk_tree(struct reap *top, see_reap *see, void *arg)
{
    struct walk walk;
    begin(&walk);
    walk.words[walk.end++] = top;
    int result = visit_all(&walk, see, arg);
    end(&walk);
    return result;
}

static int note_root(void *memory, size_t size, void *arg)
{
    const struct reap_chunk *chunk = memory;
    (void)size;
    if (!reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner) || chunk->owner->parent)
        return 0;
    note(arg, chunk->owner);
    return 0;
}

/* Makes all roots the first list. False: no memory. */
static bool list_roots(struct walk *walk)
{
    for (;;) {
        struct list_of_reaps roots = {.reaps = walk->words, .room = walk->room};
        chunk_freeze();
        chunk_walk(note_root, &roots);
        chunk_thaw();
        if (roots.count <= roots.room) {
            walk->end = roots.count;
            return true;
        }
        if (!grow(walk, 2 * roots.count)) return false;
    }
}

static int walk_all(see_reap *see, void *arg)
{
    struct walk walk;
    begin(&walk);
    int result = list_roots(&walk) ? visit_all(&walk, see, arg) : -1;
    end(&walk);
    return result;
}

/* --- what sees them -------------------------------------------------------------------------- */

/* Writes the line of a reap that is left at exit, when the program's standard error may be closed already. */
static int say_left(const struct sight *sight, void *arg)
{
    const char *name = sight->name, *above = sight->above;
    const struct reap_stats *stats = &sight->view.stats;
    (void)arg;
    report_end();
    char live[REPORT_BYTES], held[REPORT_BYTES];
    report_line("never destroyed: %.100s%s%p%s%.100s: %zu objects, %s, %s", name, *name ? " " : "",
                sight->view.reap, *above ? " below " : "", above, stats->live_objects,
                report_bytes(live, stats->live_bytes, "bytes"),
                report_bytes(held, stats->chunk_bytes, "held"));
    return 0;
}

static int print(const struct sight *sight, void *arg)
{
    FILE *out = arg;
    const struct reap_view *view = &sight->view;
    const struct reap_stats *stats = &view->stats;
    fprintf(out, "%*s", (int)(view->depth < DEEP ? view->depth : DEEP) * INDENT, "");
    if (view->depth > DEEP) fprintf(out, "[%u] ", view->depth);
    char limit[40] = "";
    if (stats->limit) report_format(limit, sizeof limit, ", limit %zu", stats->limit);
    fprintf(out, "%s%s%p: %zu objects, %zu bytes, %zu chunks, %zu held, %zu at most%s\n", view->name,
            *view->name ? " " : "", view->reap, stats->live_objects, stats->live_bytes, stats->chunks,
            stats->chunk_bytes, stats->peak_chunk_bytes, limit);
    return 0;
}

/* A function of the program. */
struct surveyor {
    int (*fn)(const struct reap_view *view, void *arg);
    void *arg;
};

static int show(const struct sight *sight, void *arg)
{
    const struct surveyor *surveyor = arg;
    return surveyor->fn(&sight->view, surveyor->arg);
}

/* --- the calls ------------------------------------------------------------------------------- */

/* A destructor lists the reaps: it runs after the functions that the program has registered with atexit. */
static bool left_at_exit;

__attribute__((destructor)) static void say_all_left(void)
{
    if (left_at_exit && walk_all(say_left, NULL) != 0)
        report_line("never destroyed: there is no memory to list all reaps");
}

void reap_survey_start(void)
{
    if (!options.leaks) return;
    report_keep_stderr();
    left_at_exit = true;
}

/* Walks a tree, or all. Functions may be cancellation points, and a shared reap is held. */
static int survey(void **handle, const char *call, see_reap *see, void *arg)
{
    int state, result;
    if (!handle) return walk_all(see, arg);
    HELD struct reap *reap = reap_hold(handle, call);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    result = walk_tree(reap, see, arg);
    pthread_setcancelstate(state, NULL);
    return result;
}

void reapReport(void **handle, FILE *out)
{
    REAP_NOT_NULL(out, "reapReport");
    if (survey(handle, "reapReport", print, out) != 0) fprintf(out, "(no memory for the rest)\n");
}

int reapSurvey(void **handle, int (*fn)(const struct reap_view *view, void *arg), void *arg)
{
    REAP_NOT_NULL(fn, "reapSurvey");
    struct surveyor surveyor = {fn, arg};
    return survey(handle, "reapSurvey", show, &surveyor);
}
