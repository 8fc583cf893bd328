/* SPDX-License-Identifier: Apache-2.0 */
/* trace_format.h: a trace of allocations, as libreap-trace writes it and reader.h reads it.
 *
 * A trace is a file of blocks behind one head, and, while it is being written or if its process did not come
 * to its end, a second file FILE.live, which has what is not in a block yet. All numbers are little-endian.
 *
 *     FILE        trace_head | trace_block, packed bytes | trace_block, packed bytes | ...
 *     FILE.live   slot 0 | slot 1 | ...      each TRACE_SLOT bytes: trace_slot, events
 *
 * A block has the events of one slot, packed by LZ4; or, of the slots TRACE_STACKS and TRACE_MODULES, what is
 * said below. A thread uses one slot, and no other does, until the thread ends. A slot's blocks are numbered
 * from 0. A slot that has been written out is empty, and gets the next number: so a slot in FILE.live counts
 * only if the file has no block of that number.
 *
 * An event is a byte, enum trace_kind | TRACE_STACKED, then numbers (varint.h):
 *
 *     time      nanoseconds since the slot's last event, or since the block's `start`
 *     thread    TRACE_THREAD alone: its id; it is the first event of a thread in a slot
 *     object    address, as a difference to the last address in the block, folded (varint.h)
 *     pool      its address, the same way; of events of pools
 *     size      bytes; of events with a size
 *     stack     number of a stack, if TRACE_STACKED is set
 *
 * Events of all slots are in the order of their times: what makes memory has the time after the call, and
 * what ends it the time before, so no two objects are at one place at a time. realloc that moves is two
 * events, TRACE_LIFT with the old address and TRACE_LAND with the new one, in the slot's order; the object is
 * the same. What ends a pool has the time after the call, for a pool's own functions run in it: a pool's
 * memory may be seen in another pool before. Its address, too: so a TRACE_POOL_END that no TRACE_POOL_ENDING
 * of its slot announced to the pool that is there now ends nothing.
 *
 * What frees, resizes or moves may be of an object that no event has made: of hoard_malloc's family, which is
 * not watched (libreap uses it itself, also in calls in which a pool's own functions run), and that
 * libreap-malloc's free and realloc take, too.
 *
 * TRACE_STACKS: for each stack, in the order of their numbers from 0: a varint n, then n addresses, each as
 * the folded difference to the one before (from 0), innermost first. TRACE_MODULES: lines "BASE END PATH",
 * hexadecimal: what was mapped where, as far as it is new.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <stdint.h>

#define TRACE_MAGIC "reaptrc"
#define TRACE_LIVE_MAGIC 0x4556494cu  /* "LIVE" */
#define TRACE_BLOCK_MAGIC 0x4b434c42u /* "BLCK" */

enum {
    TRACE_VERSION = 1,
    TRACE_SLOT = 1 << 16,
    TRACE_SLOTS = 4096,
    TRACE_STACKS = 0, /* the slot of stacks, of modules, the first of a thread */
    TRACE_MODULES = 1,
    TRACE_THREADS = 2,
    TRACE_DEPTH = 64, /* frames of a stack, at most */
    TRACE_ARGUMENTS = 4096,
    TRACE_STACKED = 0x80
};

enum trace_kind {
    TRACE_THREAD,      /* time, thread */
    TRACE_ALLOC,       /* time, object, size */
    TRACE_FREE,        /* time, object */
    TRACE_RESIZE,      /* time, object, size: in its place */
    TRACE_LIFT,        /* time, object */
    TRACE_LAND,        /* time, object, size */
    TRACE_POOL,        /* time, object (the pool), pool (its parent, 0: none): begins */
    TRACE_POOL_CLEAR,  /* time, object (the pool) */
    TRACE_POOL_END,    /* time, object (the pool) */
    TRACE_POOL_ALLOC,  /* time, object, pool, size */
    TRACE_POOL_ADOPT,  /* time, object (the pool), pool (its new parent) */
    TRACE_POOL_MARK,   /* time, object (the pool), size (the mark's number) */
    TRACE_POOL_REWIND, /* time, object (the pool), size (the mark's number) */
    TRACE_HELD,        /* time, size: bytes of the process in memory (RSS) */
    TRACE_POOL_ENDING, /* time, object (the pool): before what the slot's TRACE_POOL_END tells; older traces
                          have none */
    TRACE_KINDS
};

static inline int trace_has_size(unsigned kind)
{
    return kind == TRACE_ALLOC || kind == TRACE_RESIZE || kind == TRACE_LAND || kind == TRACE_POOL_ALLOC ||
           kind == TRACE_POOL_MARK || kind == TRACE_POOL_REWIND;
}

static inline int trace_has_pool(unsigned kind)
{
    return kind == TRACE_POOL || kind == TRACE_POOL_ALLOC || kind == TRACE_POOL_ADOPT;
}

/* Times are nanoseconds of CLOCK_MONOTONIC. */
struct trace_head {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint64_t start;     /* a time before the first event */
    uint64_t live;      /* where FILE.live is in the process's memory */
    uint32_t depth;     /* frames of a stack, at most; 0: there are none */
    uint32_t arguments; /* bytes of the command line that follows, each argument ended by a 0 */
};

/* Fowler, Noll and Vo's sum (FNV-1a) of the packed bytes. */
static inline uint32_t trace_check(const char *bytes, uint32_t size)
{
    uint32_t sum = 2166136261u;
    for (uint32_t i = 0; i < size; i++) sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
    return sum;
}

struct trace_block {
    uint32_t magic;
    uint32_t slot;
    uint64_t number;
    uint64_t start;
    uint64_t end; /* time of its last event */
    uint32_t unpacked;
    uint32_t packed;
    uint32_t check; /* trace_check of the packed bytes */
    uint32_t zero;
};

/* The process stores to `used` once for each event, when the event is whole, by an instruction of four bytes,
 * and never else: a tool that sees stores finds each event by it. `begun` begins the next block, by one of
 * eight. */
struct trace_slot {
    uint32_t magic;
    uint32_t zero;
    uint64_t number;
    uint64_t start;
    uint64_t end;
    union {
        uint32_t used; /* bytes of events behind this */
        uint64_t begun;
    };
    char events[];
};

enum { TRACE_ROOM = TRACE_SLOT - (int)sizeof(struct trace_slot) };

#endif
