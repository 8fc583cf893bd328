/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lives.h"
#include "reader.h"

/* Address space for ops: pages come when they are touched. */
static const size_t ROOM = (size_t)1 << 33;

/* An object that is freed after its last use, by its serial; of those with one last use, the next one's. */
struct early {
    uint64_t address, last, next; /* last 0: it ends when it does */
    uint32_t number;              /* of who began; 0: it has not, or has ended */
};

struct loading {
    struct replay *replay;
    struct lives *lives;
    bool keeps_pools, is_full;
    uint64_t ids[REPLAY_THREADS];
    uint64_t *last[2]; /* by number, of objects and of pools: the latest op, plus 1 */
    uint32_t room[2];
    struct early *early;
    uint64_t n_early; /* serials below that are in the table */
    uint64_t *ending; /* by last use: the first serial; 0: none */
    uint64_t n_ended; /* last uses that are over */
    uint64_t less;    /* bytes that have ended early, and not in the trace */
};

static unsigned thread_of(struct loading *loading, uint64_t id)
{
    struct replay *replay = loading->replay;
    for (unsigned i = 0; i < replay->n_threads; i++)
        if (loading->ids[i] == id) return i;
    if (replay->n_threads == REPLAY_THREADS) {
        loading->is_full = true;
        return 0;
    }
    loading->ids[replay->n_threads] = id;
    return replay->n_threads++;
}

/* The latest op of a number, which this op takes the place of; 0: none, or one of this thread, which comes
 * before. */
static uint64_t take_turn(struct loading *loading, int which, uint32_t number, unsigned thread)
{
    if (number == 0) return 0;
    if (number >= loading->room[which]) {
        uint32_t room = number < 1u << 30 ? 2 * number + 1024 : number + 1;
        uint64_t *grown = realloc(loading->last[which], room * sizeof *grown);
        loading->is_full |= !grown;
        if (!grown) return 0;
        for (uint32_t i = loading->room[which]; i < room; i++) grown[i] = 0;
        loading->last[which] = grown;
        loading->room[which] = room;
    }
    uint64_t before = loading->last[which][number];
    loading->last[which][number] = loading->replay->n + 1;
    return before > 0 && loading->replay->ops[before - 1].thread != thread ? before : 0;
}

static void add(struct loading *loading, const struct replay_op *op, const struct reader_event *event,
                bool is_pool)
{
    struct replay *replay = loading->replay;
    if (replay->n == replay->room || loading->is_full) {
        loading->is_full = true;
        return;
    }
    struct replay_op *added = &replay->ops[replay->n];
    *added = *op;
    added->thread = (uint16_t)thread_of(loading, event->thread);
    uint32_t pool = is_pool ? op->number : op->pool;
    /* A pool begins after its parent, which another thread may have made. */
    added->after[0] = take_turn(loading, is_pool, is_pool ? op->pool : op->number, added->thread);
    added->after[1] = loading->keeps_pools ? take_turn(loading, 1, pool, added->thread) : 0;
    replay->n++;
    uint32_t *most = is_pool ? &replay->n_pools : &replay->n_objects;
    if (op->number >= *most) *most = op->number + 1;
}

/* --- objects that end early ---------------------------------------------------------------------------- */

static bool read_early(struct loading *loading, const char *path)
{
    unsigned long long serial, address, last;
    FILE *from = fopen(path, "r");
    bool has = from != NULL;
    while (has && fscanf(from, "%llu %llx %llu\n", &serial, &address, &last) == 3) {
        uint64_t room = (serial > last ? serial : last) + 1;
        if (room > loading->n_early) {
            struct early *early = realloc(loading->early, 2 * room * sizeof *early);
            if (early) loading->early = early;
            uint64_t *ending = early ? realloc(loading->ending, 2 * room * sizeof *ending) : NULL;
            has = ending != NULL;
            if (!has) break;
            loading->ending = ending;
            for (uint64_t i = loading->n_early; i < 2 * room; i++)
                early[i] = (struct early){0}, ending[i] = 0;
            loading->n_early = 2 * room;
        }
        loading->early[serial] = (struct early){.address = address, .last = last};
    }
    has = has && feof(from) && loading->n_early > 0;
    if (!has) fprintf(stderr, "%s: is nothing that reap-analyse --early writes\n", path);
    if (from) fclose(from);
    return has;
}

/* The entry of a live object; NULL: it ends when it does. */
static struct early *early_of(struct loading *loading, const struct lives_object *object)
{
    struct early *early = object->serial < loading->n_early ? &loading->early[object->serial] : NULL;
    return early && early->last > 0 ? early : NULL;
}

/* Frees what was used last before the object of this serial began. */
static void end_early(struct loading *loading, uint64_t serial, const struct reader_event *event)
{
    for (; loading->n_ended < serial && loading->n_ended < loading->n_early; loading->n_ended++)
        for (uint64_t i = loading->ending[loading->n_ended]; i; i = loading->early[i].next) {
            uint32_t number = loading->early[i].number;
            if (number == 0) continue;
            const struct lives_object *object = &loading->lives->table[number];
            struct replay_op op = {.kind = REPLAY_FREE, .number = number};
            op.pool = loading->keeps_pools ? object->pool : 0;
            op.size = object->size;
            add(loading, &op, event, false);
            loading->early[i].number = 0;
            loading->replay->n_early++;
            loading->less += object->size;
        }
}

/* True: the object has been freed before, so this is not done. */
static bool is_over(struct loading *loading, enum lives_change change, uint32_t number,
                    const struct reader_event *event)
{
    const struct lives_object *object = &loading->lives->table[number];
    if (change == LIVES_BORN) end_early(loading, object->serial, event);
    struct early *early = early_of(loading, object);
    if (!early) return false;
    if (change == LIVES_BORN && early->address != object->address) {
        early->last = 0; /* two threads in another order, or it will move */
    } else if (change == LIVES_BORN) {
        uint64_t last = early->last > object->serial ? early->last : object->serial;
        early->number = number;
        early->next = loading->ending[last];
        loading->ending[last] = object->serial;
    }
    if (change == LIVES_BORN) return false;
    bool is = early->number == 0;
    if (change == LIVES_DIED) early->number = 0;
    return is;
}

static void told(enum lives_change change, uint32_t number, uint64_t was, const struct reader_event *event,
                 void *loading_)
{
    struct loading *loading = loading_;
    bool is_pool = change >= LIVES_POOL_BORN;
    bool ends_pool =
        event->kind == TRACE_POOL_END || event->kind == TRACE_POOL_CLEAR || event->kind == TRACE_POOL;
    static const enum replay_kind kinds[] = {
        [LIVES_BORN] = REPLAY_NEW,           [LIVES_RESIZED] = REPLAY_RESIZE,
        [LIVES_DIED] = REPLAY_FREE,          [LIVES_POOL_BORN] = REPLAY_POOL,
        [LIVES_POOL_DIED] = REPLAY_POOL_END, [LIVES_POOL_CLEARED] = REPLAY_POOL_CLEAR};
    struct replay_op op = {.kind = (uint8_t)kinds[change], .number = number};
    if (is_pool && !loading->keeps_pools) return;
    if (is_pool) {
        op.pool = (uint32_t)was;
    } else {
        const struct lives_object *object = &loading->lives->table[number];
        if (loading->early && is_over(loading, change, number, event)) {
            loading->less += change == LIVES_DIED ? -object->size : object->size - was;
            return;
        }
        op.size = object->size;
        op.pool = loading->keeps_pools ? object->pool : 0;
        if (change == LIVES_DIED && op.pool && ends_pool) op.kind = REPLAY_READ;
    }
    add(loading, &op, event, is_pool);
}

/* Each thread's ops become a list. */
static void link_ops(struct replay *replay)
{
    for (unsigned i = 0; i < replay->n_threads; i++) replay->first[i] = replay->n;
    for (uint64_t i = replay->n; i-- > 0;) {
        struct replay_op *op = &replay->ops[i];
        uint64_t ahead = replay->first[op->thread] - i;
        op->next = ahead < UINT32_MAX ? (uint32_t)ahead : UINT32_MAX;
        replay->first[op->thread] = i;
    }
}

static bool load(struct replay *replay, const char *path, bool keeps_pools, const char *early)
{
    static struct lives lives;
    static struct loading loading;
    struct reader_event event;
    struct reader *reader = reader_open(path, stderr);
    if (!reader) return false;
    loading = (struct loading){.replay = replay, .lives = &lives, .keeps_pools = keeps_pools};
    bool has = (!early || read_early(&loading, early)) && lives_begin(&lives, told, &loading);
    while (has && !lives.no_memory && !loading.is_full && reader_next(reader, &event)) {
        lives_take(&lives, &event);
        if (lives.bytes - loading.less > replay->most_bytes) replay->most_bytes = lives.bytes - loading.less;
    }
    has = has && !lives.no_memory && !loading.is_full;
    if (!has) fprintf(stderr, "%s: too long, or of too many threads, for a replay\n", path);
    if (has && replay->n == 0) fprintf(stderr, "%s: has nothing to replay\n", path);
    reader_close(reader);
    link_ops(replay);
    return has && replay->n > 0;
}

static struct replay *map(int file, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) perror("replay");
    return at == MAP_FAILED ? NULL : at;
}

struct replay *replay_load(const char *path, bool keeps_pools, const char *early)
{
    int status = 0, file = memfd_create("replay", 0);
    struct replay *replay = file >= 0 && ftruncate(file, (off_t)ROOM) == 0 ? map(file, ROOM) : NULL;
    if (!replay) return NULL;
    replay->room = (ROOM / 2 - sizeof *replay) / sizeof *replay->ops;
    replay->file = file;
    pid_t child = fork();
    if (child == 0) {
        replay->is_whole = load(replay, path, keeps_pools, early);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) perror("replay");
    return replay->is_whole && status == 0 ? replay : NULL;
}

struct replay *replay_attach(int file)
{
    struct replay *head = map(file, sizeof *head);
    if (!head) return NULL;
    return map(file, (size_t)((char *)replay_least(head, head->n / REPLAY_WINDOW + 1, 0) - (char *)head));
}
