/* SPDX-License-Identifier: Apache-2.0 */
/* reap_survey.c: walks over the tree of reaps, while other threads create and destroy some.
 *
 * A survey first collects what it has to show, and shows it afterwards, when it holds no lock: fn may
 * allocate. While it collects, all chunks are frozen, and each list of reaps on the way down is locked. So
 * each reap that it reads is alive, and stays where it is, but its own thread goes on: reap_stats.c checks
 * each word of its chunks.
 *
 *     collected   | sight, name | sight, name | ...      a list of roots at a time, parents before children
 *
 * Thus a reap that stays, below reaps that stay, is visited once. One that comes or goes meanwhile may be
 * missing.
 */
#include "reap/reap_stats.h"

#include <pthread.h>
#include <string.h>

#include "base/options.h"
#include "base/report.h"
#include "hoard/user_memory.h"
#include "os/pages.h"
#include "reap/reap_shared.h"
#include "reap/reap_tree.h"
#include "region/reap_chunk.h"

enum {
    INDENT = 2,
    DEEP = 40,        /* levels; further ones are numbered: a tree may be very deep */
    ROOM = 256 * 1024 /* bytes to collect in, at first; only pages that are written take memory */
};

/* --- one reap -------------------------------------------------------------------------------- */

/* What is shown of a reap. */
struct sight {
    struct reap_view view; /* its name is undefined until it is shown */
    size_t size;           /* bytes, with the name */
    size_t above;          /* the parent's sight is this number of bytes before this one; 0: no parent */
    char name[];
};
enum { SIGHT_MAX = sizeof(struct sight) + REAP_NAME_MAX };

/* Copies a name that the reap's own thread may change. Its memory may be used anew already. */
static size_t read_name(const struct reap *reap, char *text)
{
    const char *name = __atomic_load_n(&reap->name, __ATOMIC_RELAXED);
    const struct reap_name *copy = reap_name_around(name);
    size_t room = program_left(name);
    bool is_constant = room != 0;
    *text = '\0';
    if (!name || (!is_constant && !chunk_is_readable(copy, sizeof *copy))) return 0;
    if (!is_constant) room = __atomic_load_n(&copy->room, __ATOMIC_RELAXED); /* once: it may change */
    if (room >= REAP_NAME_MAX) room = REAP_NAME_MAX - 1;
    if (is_constant) room = strnlen(name, room);
    if (!is_constant && !chunk_is_readable(name, room)) return 0;
    memcpy(text, name, room);
    text[room] = '\0';
    return strlen(text);
}

static double age_of(const struct reap *reap)
{
    uint32_t now = atomic_load_explicit(&reap_seconds, memory_order_relaxed), made = reap->made_at;
    return made != 0 && made <= now ? (double)(now - made) : -1;
}

/* --- collecting ------------------------------------------------------------------------------ */

struct survey {
    char *bytes;
    size_t room, used;
    size_t last;  /* the sight collected last */
    unsigned top; /* depth of the first reaps of a walk */
};

static struct sight *sight_at(const struct survey *survey, size_t at)
{
    return (struct sight *)(void *)(survey->bytes + at);
}

/* The place of the sight of a reap's parent: above the last one, as far as the depths say. */
static size_t parent_of(const struct survey *survey, unsigned depth)
{
    size_t at = survey->last;
    while (sight_at(survey, at)->view.depth >= depth) at -= sight_at(survey, at)->above;
    return at;
}

/* False: there is no room. */
static bool collect(struct reap *reap, unsigned depth, void *arg)
{
    struct survey *survey = arg;
    if (survey->room - survey->used < SIGHT_MAX) return false;
    struct sight *sight = sight_at(survey, survey->used);
    depth += survey->top;
    *sight = (struct sight){.view = {.reap = reap_handle(reap),
                                     .parent = reap->parent ? reap_handle(reap->parent) : NULL,
                                     .age = age_of(reap),
                                     .depth = depth}};
    if (depth > 0) {
        size_t above = parent_of(survey, depth);
        sight->above = survey->used - above;
        sight_at(survey, above)->view.stats.children++;
    }
    reap_stats_of(reap, &sight->view.stats);
    sight->size = align_up(sizeof *sight + read_name(reap, sight->name) + 1, _Alignof(struct sight));
    survey->last = survey->used;
    survey->used += sight->size;
    return true;
}

/* Collects what is below a list's reap, or the roots in it; `top` is the depth of the first ones. */
static bool collect_list(struct reap_list *list, struct survey *survey, unsigned top)
{
    survey->top = top;
    reap_tree_lock_below(list);
    bool done = reap_tree_walk(list, collect, survey);
    reap_tree_unlock_below(list);
    survey->top = 0;
    return done;
}

/* A reap that stays because the caller uses it, or because of the frozen user memory it is in. */
static bool collect_tree(struct reap *top, struct survey *survey)
{
    return collect(top, 0, survey) && collect_list(&top->below, survey, 1);
}

static int collect_users_root(void *memory, size_t size, void *survey)
{
    const struct reap_chunk *chunk = memory;
    (void)size;
    if (!reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner) || chunk->owner->parent)
        return 0;
    return !collect_tree(chunk->owner, survey);
}

/* Collects a tree. NULL: a list of roots, or (ROOT_LISTS) those in user memory. False: there is no room. */
static bool collect_all(struct survey *survey, struct reap *top, unsigned n)
{
    bool done;
    survey->used = 0;
    if (!top && n < ROOT_LISTS && !reap_tree_is_any(&reap_roots[n].list)) return true;
    chunk_freeze();
    if (top)
        done = collect_tree(top, survey);
    else if (n < ROOT_LISTS)
        done = collect_list(&reap_roots[n].list, survey, 0);
    else
        done = user_memory_walk(collect_users_root, survey) == 0;
    chunk_thaw();
    return done;
}

/* --- showing --------------------------------------------------------------------------------- */

typedef int see_reap(const struct reap_view *view, void *arg);

static int show_all(const struct survey *survey, see_reap *see, void *arg)
{
    int result = 0;
    for (size_t at = 0; at < survey->used && result == 0; at += sight_at(survey, at)->size) {
        struct sight *sight = sight_at(survey, at);
        sight->view.name = sight->name;
        result = see(&sight->view, arg);
    }
    return result;
}

static bool room_for_views(struct survey *survey, size_t room)
{
    if (survey->bytes) pages_unmap(survey->bytes, survey->room);
    survey->bytes = pages_map(room, PAGE);
    survey->room = room;
    return survey->bytes != NULL;
}

/* Shows a tree, or all (NULL). Returns what `see` returned last, or -1 and ENOMEM. */
static int walk(struct reap *top, see_reap *see, void *arg)
{
    struct survey survey = {NULL, 0, 0, 0, 0};
    int result = 0;
    bool is_room =
        room_for_views(&survey, ROOM) || room_for_views(&survey, ROOM / 16); /* few addresses left */
    for (unsigned n = 0; is_room && result == 0 && n <= (top ? 0 : ROOT_LISTS); n++) {
        while (is_room && !collect_all(&survey, top, n)) is_room = room_for_views(&survey, 2 * survey.room);
        if (is_room) result = show_all(&survey, see, arg);
    }
    if (!is_room) return -1;
    pages_unmap(survey.bytes, survey.room);
    return result;
}

/* --- what sees them -------------------------------------------------------------------------- */

/* Writes the line of a reap that is left at exit, when the program's standard error may be closed already. */
static int say_left(const struct reap_view *view, void *arg)
{
    const struct sight *sight = (const void *)((const char *)view - offsetof(struct sight, view));
    const struct sight *parent = (const void *)((const char *)sight - sight->above);
    const char *name = view->name, *above = parent != sight ? parent->name : "";
    const struct reap_stats *stats = &view->stats;
    (void)arg;
    report_end();
    char live[REPORT_BYTES], held[REPORT_BYTES];
    report_line("never destroyed: %.100s%s%p%s%.100s: %zu objects, %s, %s", name, *name ? " " : "",
                view->reap, *above ? " below " : "", above, stats->live_objects,
                report_bytes(live, stats->live_bytes, "bytes"),
                report_bytes(held, stats->chunk_bytes, "held"));
    return 0;
}

static int print_view(const struct reap_view *view, void *arg)
{
    FILE *out = arg;
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

/* --- the calls ------------------------------------------------------------------------------- */

/* A destructor lists the reaps: it runs after the functions that the program has registered with atexit. */
static bool left_at_exit;

__attribute__((destructor)) static void say_all_left(void)
{
    if (left_at_exit && walk(NULL, say_left, NULL) != 0)
        report_line("never destroyed: there is no memory to list all reaps");
}

void reap_survey_start(void) { left_at_exit = options.leaks; }

/* Walks a tree, or all. Functions may be cancellation points, and a shared reap is held. */
static int survey(void **handle, const char *call, see_reap *see, void *arg)
{
    int state, result;
    if (!handle) return walk(NULL, see, arg);
    HELD struct reap *reap = reap_hold(handle, call);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    result = walk(reap, see, arg);
    pthread_setcancelstate(state, NULL);
    return result;
}

void reapReport(void **handle, FILE *out)
{
    REAP_NOT_NULL(out, "reapReport");
    if (survey(handle, "reapReport", print_view, out) != 0) fprintf(out, "(no memory for the rest)\n");
}

int reapSurvey(void **handle, int (*fn)(const struct reap_view *view, void *arg), void *arg)
{
    REAP_NOT_NULL(fn, "reapSurvey");
    return survey(handle, "reapSurvey", fn, arg);
}

void reapSetClock(uint32_t seconds) { atomic_store_explicit(&reap_seconds, seconds, memory_order_relaxed); }
