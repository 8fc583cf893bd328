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

struct loading {
    struct replay *replay;
    struct lives *lives;
    bool keeps_pools, is_full;
    uint64_t ids[REPLAY_THREADS];
    uint64_t *last[2]; /* by number, of objects and of pools: the latest op, plus 1 */
    uint32_t room[2];
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
    added->after[0] = is_pool ? 0 : take_turn(loading, 0, op->number, added->thread);
    added->after[1] = loading->keeps_pools ? take_turn(loading, 1, pool, added->thread) : 0;
    replay->n++;
    uint32_t *most = is_pool ? &replay->n_pools : &replay->n_objects;
    if (op->number >= *most) *most = op->number + 1;
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
        op.size = object->size;
        op.pool = loading->keeps_pools ? object->pool : 0;
        if (change == LIVES_DIED && op.pool && ends_pool) op.kind = REPLAY_READ;
    }
    add(loading, &op, event, is_pool);
}

static bool load(struct replay *replay, const char *path, bool keeps_pools)
{
    static struct lives lives;
    static struct loading loading;
    struct reader_event event;
    struct reader *reader = reader_open(path, stderr);
    if (!reader) return false;
    loading = (struct loading){.replay = replay, .lives = &lives, .keeps_pools = keeps_pools};
    bool has = lives_begin(&lives, told, &loading);
    while (has && !lives.no_memory && !loading.is_full && reader_next(reader, &event)) {
        lives_take(&lives, &event);
        if (lives.bytes > replay->most_bytes) replay->most_bytes = lives.bytes;
    }
    has = has && !lives.no_memory && !loading.is_full;
    if (!has) fprintf(stderr, "%s: too long, or of too many threads, for a replay\n", path);
    if (has && replay->n == 0) fprintf(stderr, "%s: has nothing to replay\n", path);
    reader_close(reader);
    return has && replay->n > 0;
}

static void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return at;
    perror("replay");
    return NULL;
}

struct replay *replay_load(const char *path, bool keeps_pools)
{
    int status = 0;
    struct replay *replay = shared(sizeof *replay);
    if (!replay || !(replay->ops = shared(ROOM))) return NULL;
    replay->room = ROOM / sizeof *replay->ops;
    pid_t child = fork();
    if (child == 0) {
        replay->is_whole = load(replay, path, keeps_pools);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) perror("replay");
    return replay->is_whole && status == 0 ? replay : NULL;
}
