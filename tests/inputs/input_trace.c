/* SPDX-License-Identifier: Apache-2.0 */
/* input_trace.c: a trace, which reap-analyse and bench/replay read: to its end, with its objects and stacks.
 * Whatever is in it, that ends, within 1 GiB, and nothing ends that has not begun (told). Chance also changes
 * a block's events and makes its sum right again, so that what is behind the sums is reached.
 */
#include <lz4.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "inputs/inputs.h"
#include "lives.h"
#include "reader.h"

const char *const input_name = "trace";

static struct lives lives;

/* What a listener relies on, a replay above all: only what lives changes or ends, nothing begins twice, and a
 * pool begins after its parent and ends after its objects, also where a trace says something else. */
static struct seen {
    bool lives;
    uint32_t pool, objects; /* of an object; of a pool */
} * objects, *pools;
static uint32_t n_objects, n_pools;

static struct seen *seen_at(struct seen **table, uint32_t *n, uint32_t number)
{
    if (number >= *n) {
        uint32_t room = 2 * number + 1024;
        *table = realloc(*table, room * sizeof **table);
        if (!*table) abort();
        memset(*table + *n, 0, (room - *n) * sizeof **table);
        *n = room;
    }
    return &(*table)[number];
}

static void need(bool holds, const char *what, uint32_t number)
{
    if (holds) return;
    printf("%s: %u\n", what, number);
    fflush(stdout);
    abort();
}

static void told_object(enum lives_change change, uint32_t number)
{
    struct seen *object = seen_at(&objects, &n_objects, number);
    need(number != 0, "an object without a number", number);
    need(object->lives == (change != LIVES_BORN), "an object begins twice, or ends and has not begun",
         number);
    if (change == LIVES_RESIZED) return;
    object->lives = change == LIVES_BORN;
    if (object->lives) object->pool = lives.table[number].pool;
    if (!object->pool) return;
    struct seen *pool = seen_at(&pools, &n_pools, object->pool);
    need(pool->lives, "an object's pool does not live", number);
    pool->objects += object->lives ? 1 : UINT32_MAX;
}

static void told_pool(enum lives_change change, uint32_t number, uint32_t parent)
{
    need(parent == 0 || seen_at(&pools, &n_pools, parent)->lives, "a pool's parent does not live", number);
    struct seen *pool = seen_at(&pools, &n_pools, number);
    need(number != 0 && number != parent, "a pool without a number, or its own parent", number);
    need(pool->lives == (change != LIVES_POOL_BORN), "a pool begins twice, or ends and has not begun",
         number);
    need(pool->objects == 0, "a pool ends before its objects", number);
    pool->lives = change != LIVES_POOL_DIED;
}

static void told(enum lives_change change, uint32_t number, uint64_t was, const struct reader_event *event,
                 void *arg)
{
    (void)event, (void)arg;
    if (change >= LIVES_POOL_BORN)
        told_pool(change, number, (uint32_t)was);
    else
        told_object(change, number);
}

static void forget(void)
{
    if (objects) memset(objects, 0, n_objects * sizeof *objects);
    if (pools) memset(pools, 0, n_pools * sizeof *pools);
}

/* What no whole trace has, event by event, with the objects and bytes that live afterwards. */
static void follow_lies(void)
{
    enum { A = 0x1000, B = 0x2000, C = 0x3000, P = 0x10000, Q = 0x20000, R = 0x30000 };
    static const struct {
        enum trace_kind kind;
        uint32_t slot;
        uint64_t object, pool, size, live, bytes, unknown;
    } lies[] = {
        {TRACE_FREE, 0, A, 0, 0, 0, 0, 1},           /* of what never began */
        {TRACE_RESIZE, 0, A, 0, 8, 0, 0, 2},         /* the same */
        {TRACE_LIFT, 0, A, 0, 0, 0, 0, 3},           /* the same */
        {TRACE_LAND, 0, A, 0, 16, 1, 16, 3},         /* so it begins here */
        {TRACE_POOL_ALLOC, 0, B, P, 32, 2, 48, 3},   /* in a pool that nobody began */
        {TRACE_LIFT, 0, B, 0, 0, 2, 48, 3},          /* on its way to another place */
        {TRACE_POOL_END, 1, P, 0, 0, 1, 16, 3},      /* its pool ends meanwhile */
        {TRACE_ALLOC, 1, C, 0, 64, 2, 80, 3},        /* and another object has its number */
        {TRACE_LAND, 0, B, 0, 8, 3, 88, 3},          /* which it must not move */
        {TRACE_FREE, 1, C, 0, 0, 2, 24, 3},          /* nor take from its place */
        {TRACE_LIFT, 0, A, 0, 0, 2, 24, 3},          /* its place is free from here on */
        {TRACE_ALLOC, 1, A, 0, 128, 3, 152, 3},      /* and another one's */
        {TRACE_LAND, 0, C, 0, 16, 3, 152, 3},        /* who keeps it */
        {TRACE_FREE, 1, A, 0, 0, 2, 24, 3},          /* so this is known */
        {TRACE_POOL, 0, Q, R, 0, 2, 24, 3},          /* a child before its parent */
        {TRACE_POOL_ADOPT, 0, R, Q, 0, 2, 24, 3},    /* a circle */
        {TRACE_POOL_ALLOC, 0, P, Q, 256, 3, 280, 3}, /* in the child */
        {TRACE_POOL, 0, R, Q, 0, 2, 24, 3},          /* begins again, below its own child */
        {TRACE_POOL_END, 0, Q, 0, 0, 2, 24, 3},      /* which is over */
        {TRACE_POOL_CLEAR, 0, Q, 0, 0, 2, 24, 3},    /* twice */
        {TRACE_POOL_ENDING, 3, P, 0, 0, 2, 24, 3},   /* a pool that nobody began begins */
        {TRACE_POOL, 2, P, 0, 0, 2, 24, 3},          /* it has ended, and another one has its place */
        {TRACE_POOL_ALLOC, 2, Q, P, 32, 3, 56, 3},   /* of the other one, */
        {TRACE_POOL_END, 3, P, 0, 0, 3, 56, 3},      /* which lives on when the first one's end is told */
        {TRACE_FREE, 2, Q, 0, 0, 2, 24, 3},          /* so this is known */
        {TRACE_POOL_ALLOC, 2, Q, P, 32, 3, 56, 3},   /* until */
        {TRACE_POOL_ENDING, 4, P, 0, 0, 3, 56, 3},   /* any thread */
        {TRACE_POOL_END, 4, P, 0, 0, 2, 24, 3},      /* ends it */
    };
    if (!lives_begin(&lives, told, NULL)) abort();
    for (uint32_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct reader_event event = {.kind = lies[i].kind, .slot = lies[i].slot, .time = i + 1};
        event.object = lies[i].object, event.pool = lies[i].pool, event.size = lies[i].size;
        event.stack = READER_NO_STACK;
        lives_take(&lives, &event);
        need(lives.objects == lies[i].live && lives.bytes == lies[i].bytes &&
                 lives.unknown == lies[i].unknown,
             "after a lie other objects live", i);
    }
    lives_end(&lives);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    setrlimit(RLIMIT_AS, &limit);
#endif
    (void)argc, (void)argv;
    follow_lies();
    return 0;
}

/* Unpacks a block, changes some bytes of it, and packs it again, with its sum. */
size_t input_change(uint8_t *bytes, size_t size, size_t room, size_t (*draw)(size_t below))
{
    static char events[TRACE_SLOT], packed[LZ4_COMPRESSBOUND(TRACE_SLOT)];
    struct trace_head head;
    struct trace_block block;
    if (size < sizeof head) return size;
    memcpy(&head, bytes, sizeof head);
    size_t at = sizeof head + head.arguments;
    block.packed = UINT32_MAX;
    for (size_t skip = draw(8); at + sizeof block < size; skip--) {
        memcpy(&block, bytes + at, sizeof block);
        if (skip == 0 || block.packed > size) break;
        at += sizeof block + block.packed;
    }
    if (at + sizeof block >= size || block.packed > size - at - sizeof block) return size;
    uint8_t *from = bytes + at + sizeof block;
    int n = LZ4_decompress_safe((char *)from, events, (int)block.packed, sizeof events);
    if (n <= 0) return size;
    for (size_t i = draw(8); i > 0; i--) events[draw((size_t)n)] = (char)draw(256);
    if (draw(4) == 0) n = 1 + (int)draw((size_t)n);
    int m = LZ4_compress_default(events, packed, n, sizeof packed);
    size_t behind = size - at - sizeof block - block.packed;
    if (size + (size_t)m > room) return size;
    memmove(from + m, from + block.packed, behind);
    memcpy(from, packed, (size_t)m);
    block.unpacked = (uint32_t)n;
    block.packed = (uint32_t)m;
    block.check = trace_check(packed, block.packed);
    memcpy(bytes + at, &block, sizeof block);
    return at + sizeof block + (size_t)m + behind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    char path[64], text[512];
    const uint64_t *frames;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || !nowhere || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct reader *reader = reader_open(path, nowhere);
    if (reader) {
        struct reader_event event;
        if (!lives_begin(&lives, told, NULL)) abort();
        forget();
        while (reader_next(reader, &event)) lives_take(&lives, &event);
        for (uint32_t i = 0; i < reader_stacks(reader) + 2; i++)
            for (unsigned n = reader_stack(reader, i, &frames); n > 0; n--)
                reader_frame(reader, frames[n - 1], text, sizeof text);
        if (!reader_command(reader)) abort();
        lives_end(&lives);
        reader_close(reader);
    }
    close(fd);
    return 0;
}
