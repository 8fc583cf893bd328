/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"

#include "base/options.h"
#include "os/rseq.h"
#include "support/check_backend.h"
#include "vcpu.h"

unsigned load_size = LOAD_SIZE;

static const struct sizeclass *load_class(void) { return &sizeclasses[sizeclass_of(load_size)]; }

static unsigned capacity(void) { return load_class()->capacity; }

static void **blocks;
static size_t blocks_most;

static void room_for(size_t n)
{
    blocks = calloc(n, sizeof *blocks);
    if (blocks == NULL) abort();
    blocks_most = n;
}

static size_t f_of_superblock(void) { return capacity() * options.empty_fraction / 8; } /* blocks */

static void fill(size_t from, size_t to, size_t size)
{
    for (size_t i = from; i < to; i++) blocks[i] = vcpu_malloc(size);
}

static void empty(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (blocks[i] != NULL) vcpu_free(blocks[i]), blocks[i] = NULL;
}

void load_finish(void)
{
    vcpu_be(0);
    empty(0, blocks_most);
    free(blocks);
}

/* Processor 2i allocates, 2i+1 frees; all pairs at once. */
static void run_pairs(unsigned processors, size_t bytes)
{
    size_t n = bytes / load_size, share = n / (processors / 2);
    room_for(n);
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < processors / 2; i++)
            vcpu_be(2 * i), fill(i * share, (i + 1) * share, load_size);
        for (unsigned i = 0; i < processors / 2; i++) vcpu_be(2 * i + 1), empty(i * share, (i + 1) * share);
    }
}

/* Each frees what the one before it allocated, and allocates as much for the next: private heaps with
 * ownership hold `bytes` on every one of them. */
static void run_round(unsigned processors, size_t bytes)
{
    size_t n = bytes / load_size;
    room_for(n);
    for (unsigned turn = 0; turn < processors + 4; turn++) {
        vcpu_be(turn % processors);
        empty(0, n);
        fill(0, n, load_size);
    }
}

/* Each allocates everything and is never heard of again; processor 0 frees it, but for a block in each
 * sixteenth of a superblock until the next has come, and allocates other sizes in between. */
static void run_ended(unsigned processors, size_t bytes)
{
    size_t n = bytes / load_size;
    room_for(n);
    for (unsigned id = 1; id < processors; id++) {
        vcpu_be(0);
        empty(0, n);
        vcpu_be(id);
        fill(0, n, load_size);
        vcpu_be(0);
        for (size_t i = 0; i < n; i++)
            if (i % (capacity() / 16) != 0) empty(i, i + 1);
        for (size_t i = 0; i < n / 8; i++)
            if (blocks[i] == NULL) blocks[i] = vcpu_malloc(1024);
    }
}

/* The most that heaps may keep: of each full superblock its heap frees as many as are not recorded beyond f,
 * and another as many as are not queued; then the next heap allocates what was freed. */
static void thin_out(size_t from, size_t to, unsigned id)
{
    unsigned own = capacity() * (options.empty_fraction + 1) / 8 - 1;
    unsigned others = cpu.ids != 0 ? (options.empty_fraction < 2 ? capacity() / 8 : capacity() / 4) - 1
                                   : 0; /* nothing pends under locks */
    vcpu_be(id);
    for (size_t i = from; i + capacity() <= to; i += capacity()) empty(i, i + own);
    vcpu_be(id == 0);
    for (size_t i = from; i + capacity() <= to; i += capacity()) empty(i + own, i + own + others);
}

static void run_worst(unsigned processors, size_t bytes)
{
    size_t max = bytes / load_size * 16, n = 0;
    room_for(max);
    for (unsigned id = 0; id < processors; id++) {
        size_t more = (bytes - ledger.live) / (load_class()->slots * SUPERBLOCK) * capacity();
        if (n + more > max) break;
        vcpu_be(id);
        fill(n, n + more, load_size);
        thin_out(n, n + more, id);
        n += more;
    }
}

/* Of each superblock another processor frees f, and no more; then all others allocate what was freed. */
static void prepare_growing(unsigned processors, size_t bytes)
{
    (void)processors;
    room_for(2 * bytes / load_size);
    vcpu_be(0);
    fill(0, bytes / load_size, load_size);
}

static void run_growing(unsigned processors, size_t bytes)
{
    size_t n = bytes / load_size, more = n / capacity() * f_of_superblock();
    vcpu_be(1);
    for (size_t i = 0; i + capacity() <= n; i += capacity()) empty(i, i + f_of_superblock());
    unsigned growers = processors > 2 ? processors - 2 : 1;
    for (unsigned id = 0; id < growers; id++) {
        vcpu_be(processors > 2 ? 2 + id : 1);
        fill(n + more * id / growers, n + more * (id + 1) / growers, load_size);
    }
}

/* Every superblock comes to be at the threshold, and then is emptied block by block. */
static void prepare_shrinking(unsigned processors, size_t bytes)
{
    size_t n = bytes / load_size, share = n / processors;
    room_for(n);
    for (unsigned id = 0; id < processors; id++) {
        vcpu_be(id);
        fill(id * share, (id + 1) * share, load_size);
        for (size_t i = id * share; i < (id + 1) * share; i++)
            if (i % capacity() < f_of_superblock()) empty(i, i + 1);
    }
}

static void run_shrinking(unsigned processors, size_t bytes)
{
    size_t share = bytes / load_size / processors;
    for (unsigned id = 0; id < processors; id++) vcpu_be(id), empty(id * share, (id + 1) * share);
}

/* Few superblocks on each heap would all be active, or given up at once. */
size_t load_bytes(const struct load *load, unsigned processors, size_t bytes)
{
    size_t least = load->run == run_shrinking ? (size_t)processors * 8 * load_class()->slots * SUPERBLOCK : 0;
    return bytes > least ? bytes : least;
}

enum { SMALL = 16, TURNS = 64 };

static void one_each(unsigned processors, unsigned turns)
{
    for (unsigned turn = 0; turn < turns; turn++) {
        for (unsigned id = 0; id < processors; id++) vcpu_be(id), fill(id, id + 1, SMALL);
        for (unsigned id = 0; id < processors; id++) vcpu_be(id), empty(id, id + 1);
    }
}

static void run_active(unsigned processors, size_t bytes)
{
    (void)bytes;
    room_for(processors);
    one_each(processors, TURNS);
}

static void run_passive(unsigned processors, size_t bytes)
{
    (void)bytes;
    room_for(processors);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        vcpu_be(turn % processors);
        fill(0, processors, SMALL);
        for (unsigned id = 0; id < processors; id++) vcpu_be(id), empty(id, id + 1);
        one_each(processors, 1);
    }
}

/* Each in turn fills up what there is, and frees half of all objects, whoever had them: so superblocks go
 * from heap to heap with blocks of many heaps living in them. */
static void run_handed(unsigned processors, size_t bytes)
{
    static const unsigned sizes[] = {16, 48, 112};
    size_t n = bytes / 64;
    uint64_t random = 88172645463325252u;
    room_for(n);
    for (unsigned turn = 0; turn < processors || turn < 16; turn++) {
        vcpu_be(turn % processors);
        for (size_t i = 0; i < n && ledger.live + 112 <= bytes; i++)
            if (blocks[i] == NULL) blocks[i] = vcpu_malloc(sizes[random_below(&random, 3)]);
        unsigned kept = random_below(&random, 2); /* in runs of eight, so that whole lines come free */
        for (size_t i = 0; i < n; i++)
            if ((i / 8 + kept) % 2 == 0 || random_below(&random, 16) == 0) empty(i, i + 1);
    }
}

static size_t small_size(uint64_t *random)
{
    static const unsigned limits[] = {16, 32, 48, 80, 112, 224, 256, 1024};
    unsigned limit = limits[random_below(random, 8)];
    return limit - random_below(random, 16);
}

/* Objects are born, passed on and die anywhere; their number swells and shrinks, so that superblocks change
 * hands partly used. */
static void run_mixed_as(unsigned processors, size_t bytes, bool moving)
{
    size_t n = bytes / 160, steps = 12 * n;
    uint64_t random = 88172645463325252u;
    room_for(n);
    unsigned id = 0;
    for (size_t step = 0; step < steps; step++) {
        if (step % 16 == 0) {
            id = random_below(&random, processors);
            unsigned epoch = moving ? (unsigned)(step / n) : 0;
            vcpu_be_thread(id, (id + epoch) % processors);
        }
        bool shrink = step / n % 3 == 2;
        size_t i = random_below(&random, (unsigned)n);
        if (blocks[i] != NULL)
            empty(i, i + 1);
        else if (!shrink && ledger.live + 1024 <= bytes)
            blocks[i] = vcpu_malloc(small_size(&random));
    }
}

static void run_mixed(unsigned processors, size_t bytes) { run_mixed_as(processors, bytes, false); }

static void run_moving(unsigned processors, size_t bytes) { run_mixed_as(processors, bytes, true); }

const struct load load_pairs = {
    .name = "pairs", .what = "producers and consumers in pairs", .classes = 1, .share = 1, .run = run_pairs};
const struct load load_round = {.name = "round",
                                .what = "producers and consumers in a circle",
                                .classes = 1,
                                .share = 1,
                                .run = run_round};
const struct load load_ended = {
    .name = "ended", .what = "heaps whose threads have ended", .classes = 2, .share = 1, .run = run_ended};
const struct load load_worst = {.name = "worst",
                                .what = "the most that the invariant lets heaps keep",
                                .classes = 1,
                                .share = 1,
                                .run = run_worst};
const struct load load_growing = {.name = "growing",
                                  .what = "frees of f of each superblock, and growth from there",
                                  .classes = 1,
                                  .share = 1,
                                  .run = run_growing,
                                  .prepare = prepare_growing};
const struct load load_shrinking = {.name = "shrinking",
                                    .what = "frees, of superblocks that are f empty; no slack",
                                    .classes = 1,
                                    .share = 1,
                                    .run = run_shrinking,
                                    .prepare = prepare_shrinking,
                                    .options = "slack=0"};
const struct load load_active = {
    .name = "active", .what = "active-false of the thesis", .classes = 1, .share = 4, .run = run_active};
const struct load load_passive = {
    .name = "passive", .what = "passive-false of the thesis", .classes = 1, .share = 4, .run = run_passive};
const struct load load_handed = {.name = "handed",
                                 .what = "superblocks handed on partly used",
                                 .classes = 3,
                                 .share = 4,
                                 .run = run_handed};
const struct load load_mixed = {
    .name = "mixed", .what = "eight sizes, passed on at random", .classes = 8, .share = 4, .run = run_mixed};
const struct load load_moving = {.name = "moving",
                                 .what = "the same, by threads that change processors",
                                 .classes = 8,
                                 .share = 4,
                                 .run = run_moving};
const struct load *const loads[] = {&load_pairs,   &load_round,     &load_ended,  &load_worst,
                                    &load_growing, &load_shrinking, &load_active, &load_passive,
                                    &load_handed,  &load_mixed,     &load_moving, NULL};
