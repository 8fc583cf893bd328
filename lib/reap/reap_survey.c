/* SPDX-License-Identifier: Apache-2.0 */
/* reap_survey.c: walks over the tree of reaps, while other threads create and destroy some.
 *
 * All chunks are frozen while the walk reads a reap, so that the memory stays even if the reap ends. Between
 * two reaps nothing is frozen, and whatever the walk knows may have ended. Therefore it remembers, for each
 * level of its path, a few of the siblings that come next. Siblings are listed newest first, and a new one
 * becomes the first: so what comes next at a visit is still what comes next later, less those that ended.
 */
#include "reap/reap_survey.h"

#include "reap.h"

#include <pthread.h>
#include <string.h>

#include "base/options.h"
#include "base/report.h"
#include "reap/reap_shared.h"
#include "reap/reap_stats.h"
#include "reap/reap_tree.h"
#include "region/reap_chunk.h"

enum {
    BATCH = 64,
    INDENT = 2,
    DEEP = 40,         /* levels; further ones are numbered: a tree may be very deep */
    PATH = 32,         /* levels of which the walk remembers the siblings: the last ones */
    AHEAD = 8,         /* siblings that it remembers */
    CHILDREN = 1 << 24 /* a list that changes while it is counted must end some time */
};

/* --- one reap -------------------------------------------------------------------------------- */

/* The next reaps of a list of children; NULL behind the last one. */
struct ahead {
    struct reap *reaps[AHEAD];
};

/* A place of the walk, as it was when the walk came there. */
struct step {
    unsigned depth;
    struct reap *reap, *parent;
    struct ahead siblings;
};

/* The data of a reap that other threads may use, and end. It is read while all chunks are frozen, and shown
 * afterwards, because fn may allocate. */
struct sight {
    struct reap_view view;
    struct ahead children;
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
    if (!name || !chunk_is_readable(name, sizeof *name)) return;
    size_t room = name->room < REAP_NAME_MAX ? name->room : REAP_NAME_MAX - 1;
    if (!chunk_is_readable(name->text, room)) return;
    memcpy(text, name->text, room);
    text[room] = '\0';
}

/* Follows a link to a child of this parent. NULL: the link led to the end, or to what is no such child any
 * more. */
static struct reap *follow(struct reap *const *link, const struct reap *parent)
{
    struct reap *child = __atomic_load_n(link, __ATOMIC_RELAXED);
    return child && is_reap(child) && child->parent == parent ? child : NULL;
}

static size_t count_children(const struct reap *parent)
{
    size_t count = 0;
    struct reap *child = follow(&parent->children, parent);
    for (; child && count < CHILDREN; child = follow(&child->next, parent)) count++;
    return count;
}

static void read_ahead(struct reap *const *link, const struct reap *parent, struct ahead *ahead)
{
    struct reap *reap = parent ? follow(link, parent) : NULL;
    for (unsigned i = 0; i < AHEAD; i++) {
        ahead->reaps[i] = reap;
        if (reap) reap = follow(&reap->next, parent);
    }
}

static double age_of(const struct reap *reap)
{
    uint32_t now = atomic_load_explicit(&reap_seconds, memory_order_relaxed), made = reap->made_at;
    return made != 0 && made <= now ? (double)(now - made) : -1;
}

static void read_step(struct reap *reap, unsigned depth, struct step *step)
{
    step->depth = depth;
    step->reap = reap;
    step->parent = reap->parent;
    read_ahead(&reap->next, step->parent, &step->siblings);
}

static void read_sight(struct reap *reap, unsigned depth, struct sight *sight)
{
    struct reap *parent = reap->parent;
    bool is_below = parent && is_reap(parent);
    sight->view = (struct reap_view){.reap = reap_handle(reap),
                                     .parent = is_below ? reap_handle(parent) : NULL,
                                     .name = sight->name,
                                     .depth = depth,
                                     .age = age_of(reap)};
    reap_stats_of_others(reap, &sight->view.stats);
    sight->view.stats.children = count_children(reap);
    read_ahead(&reap->children, reap, &sight->children);
    read_name(reap, sight->name);
    sight->above[0] = '\0';
    if (is_below) read_name(parent, sight->above);
}

/* Reads the data of a reap, which must still be below the parent (if one is given). False: it has ended, or
 * moved. */
static bool look_at(struct reap *reap, const struct reap *parent, unsigned depth, struct step *step,
                    struct sight *sight)
{
    chunk_freeze();
    bool is = is_reap(reap) && (!parent || reap->parent == parent);
    if (is) {
        read_step(reap, depth, step);
        if (sight) read_sight(reap, depth, sight);
    }
    chunk_thaw();
    return is;
}

/* --- a tree ---------------------------------------------------------------------------------- */

/* What a walk calls for each reap. */
typedef int see_reap(const struct sight *sight, void *arg);

struct walk {
    struct step path[PATH]; /* the step of a level is at the level modulo PATH */
    unsigned depth;
    struct sight sight;
};

static struct step *step_of(struct walk *walk, unsigned depth) { return &walk->path[depth % PATH]; }

/* Moves to the first of these reaps, of level `depth`, that is still there. */
static bool move_to(struct walk *walk, const struct ahead *ahead, const struct reap *parent, unsigned depth)
{
    for (unsigned i = 0; i < AHEAD && ahead->reaps[i]; i++) {
        if (!look_at(ahead->reaps[i], parent, depth, step_of(walk, depth), &walk->sight)) continue;
        walk->depth = depth;
        return true;
    }
    return false;
}

static bool move_down(struct walk *walk)
{
    const struct step here = *step_of(walk, walk->depth);
    struct ahead children = walk->sight.children;
    if (!children.reaps[0]) return false;
    if (move_to(walk, &children, here.reap, walk->depth + 1)) return true;
    /* Those have all ended: once more from the newest. */
    chunk_freeze();
    if (is_reap(here.reap)) read_ahead(&here.reap->children, here.reap, &children);
    chunk_thaw();
    return move_to(walk, &children, here.reap, walk->depth + 1);
}

static bool move_along(struct walk *walk)
{
    const struct step here = *step_of(walk, walk->depth);
    struct step again;
    if (move_to(walk, &here.siblings, here.parent, walk->depth)) return true;
    if (!here.siblings.reaps[AHEAD - 1]) return false;
    /* Those have all ended: further ones may be there. */
    return look_at(here.reap, here.parent, walk->depth, &again, NULL) &&
           move_to(walk, &again.siblings, here.parent, walk->depth);
}

/* Moves to the parent's level, without another visit. False: the path is lost. */
static bool move_up(struct walk *walk)
{
    struct reap *parent = step_of(walk, walk->depth)->parent;
    struct step *step = step_of(walk, --walk->depth);
    return step->depth == walk->depth || look_at(parent, NULL, walk->depth, step, NULL);
}

/* Moves to the next reap in preorder. False: there is none. */
static bool move_on(struct walk *walk)
{
    if (move_down(walk)) return true;
    while (walk->depth > 0) {
        if (move_along(walk)) return true;
        if (!move_up(walk)) return false;
    }
    return false;
}

/* Shows the tree of top in preorder, newest children first, without recursion. */
static int walk_tree(struct reap *top, see_reap *see, void *arg)
{
    struct walk walk = {.depth = 0};
    int result = 0;
    if (!look_at(top, NULL, 0, step_of(&walk, 0), &walk.sight)) return 0;
    do result = see(&walk.sight, arg);
    while (result == 0 && move_on(&walk));
    return result;
}

/* --- all trees ------------------------------------------------------------------------------- */

/* Roots found by one walk over the chunks, from number `skip` on. */
struct roots {
    struct reap *reaps[BATCH];
    size_t count;
    size_t skip;
};

static int collect_root(void *memory, size_t size, void *arg)
{
    const struct reap_chunk *chunk = memory;
    struct roots *roots = arg;
    (void)size;
    if (!reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner) || chunk->owner->parent)
        return 0;
    if (roots->skip > 0) {
        roots->skip--;
        return 0;
    }
    roots->reaps[roots->count++] = chunk->owner;
    return roots->count == BATCH;
}

static int walk_all(see_reap *see, void *arg)
{
    struct roots roots;
    size_t seen = 0;
    int result = 0;
    do {
        roots.count = 0;
        roots.skip = seen;
        chunk_freeze();
        chunk_walk(collect_root, &roots);
        chunk_thaw();
        for (size_t i = 0; i < roots.count && result == 0; i++)
            result = walk_tree(roots.reaps[i], see, arg);
        seen += roots.count;
    } while (roots.count == BATCH && result == 0);
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
    if (left_at_exit) walk_all(say_left, NULL);
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
    survey(handle, "reapReport", print, out);
}

int reapSurvey(void **handle, int (*fn)(const struct reap_view *view, void *arg), void *arg)
{
    REAP_NOT_NULL(fn, "reapSurvey");
    struct surveyor surveyor = {fn, arg};
    return survey(handle, "reapSurvey", show, &surveyor);
}
