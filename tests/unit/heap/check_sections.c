/* SPDX-License-Identifier: Apache-2.0 */
/* check_sections.c: what the restartable sections compute, on every machine. The area is this program's own:
 * no kernel knows it, so nothing is restarted, ids change when a test says so, and emulators and Valgrind,
 * which have no rseq, run the same instructions. That sections are restarted is check_migrate's matter; that
 * they are described rightly, rseq_sections.py's. */
#include "support/check_backend.h"

#include "heap/heap_remote.h"
#include "heap/heap_table.h"
#include "hoard/init.h"
#include "hoard/malloc_fast.h"
#include "os/pages.h"

#include <ucontext.h>

#if RSEQ_AVAILABLE

enum { CLASS = 5, CLASS_64 = 4, ID = 7, OTHER = 4095 };

static _Thread_local _Alignas(32) struct {
    uint32_t cpu_id_start, rseq_id;
    const struct section *section;
    uint32_t flags, node_id, mm_cid, unused;
} area;

/* struct rseq_cs, as the kernel has it. */
struct section {
    uint32_t version, flags;
    uintptr_t start, length, abort;
};

static struct superblock *sb;

static void act_as(uint32_t id) { area.rseq_id = id; }

static void setup(void)
{
    use_path(2, NULL);
    hoard_start();
    cpu.section_at = (char *)&area.section - (char *)__builtin_thread_pointer();
    rseq_id_at = (char *)&area.rseq_id - (char *)__builtin_thread_pointer();
    cpu.ids = IDS_MAX;
    sizeclass_open_fast();
    act_as(ID);
}

/* A fresh superblock that no heap knows: active on ID and owned by it. */
static void make_superblock(void)
{
    bool clean;
    sb = arena_take(1, SLOT_BLOCKS, ARENA_PLAIN, &clean);
    ck_assert_ptr_nonnull(sb);
    memset(slot_start(sb), 0x5a, SUPERBLOCK);
    superblock_format(sb, CLASS);
    sb->role = (union superblock_role){.owner = ID, .heap = ID, .regroup_at = HEAP_NEVER};
    heap_rows[ID].active[CLASS] = heap_entry(sb);
}

static void setup_superblock(void)
{
    setup();
    make_superblock();
}

static void *carve_one(void)
{
    void *block = superblock_pop(sb);
    ck_assert_ptr_nonnull(block);
    return block;
}

/* --- rseq_store ------------------------------------------------------------------------------- */

TEST(a_store_is_made_by_its_id_alone_and_over_what_was_expected)
{
    static const uint32_t ids[] = {0, 1, ID, OTHER};
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        uint64_t at[3] = {1, 0x123456789abcdef0, 3}, value = UINT64_C(0xfedcba9876543210) + i;
        act_as(ids[i]);
        ck_assert_uint_eq(rseq_id(), ids[i]);
        ck_assert_int_eq(rseq_store(ids[i] + 1, &at[1], at[1], value), RSEQ_MOVED);
        ck_assert_int_eq(rseq_store(ids[i], &at[1], at[1] + ((uint64_t)1 << 32), value), RSEQ_CHANGED);
        ck_assert_uint_eq(at[1], 0x123456789abcdef0);
        ck_assert_int_eq(rseq_store(ids[i], &at[1], at[1], value), RSEQ_DONE);
        ck_assert_uint_eq(at[0], 1);
        ck_assert_uint_eq(at[1], value);
        ck_assert_uint_eq(at[2], 3);
    }
}

/* --- pop and carve --------------------------------------------------------------------------- */

TEST(without_an_active_superblock_there_is_no_block)
{
    act_as(OTHER);
    ck_assert_ptr_null(heap_pop(CLASS));
    ck_assert_ptr_null(heap_carve(CLASS));
    act_as(ID);
    ck_assert_ptr_null(heap_pop(CLASS + 1));
    ck_assert_ptr_null(heap_pop(CLASS)); /* nothing was freed */
    ck_assert_uint_eq(word_free(sb->word), sizeclasses[CLASS].capacity);
}

TEST(pop_takes_the_latest_freed)
{
    void *blocks[20];
    for (unsigned i = 0; i < 20; i++) blocks[i] = carve_one();
    for (unsigned i = 0; i < 20; i++) superblock_push(sb, blocks[i]);
    for (unsigned i = 20; i-- > 0;) {
        uint64_t before = sb->word;
        ck_assert_ptr_eq(heap_pop(CLASS), blocks[i]);
        ck_assert_uint_eq(*(uint64_t *)blocks[i], 0);
        ck_assert_uint_eq(word_first(sb->word), i > 0 ? block_number(sb, blocks[i - 1]) : 0);
        ck_assert_uint_eq(word_free(sb->word), word_free(before) - 1);
        ck_assert_uint_eq(word_carve(sb->word), word_carve(before));
        ck_assert(superblock_is_valid(sb));
    }
    ck_assert_ptr_null(heap_pop(CLASS));
    ck_assert_uint_eq(heap_rows[OTHER].active[CLASS], 0);
}

static void pop_what_was_written(void *arg)
{
    (void)arg;
    char *block = carve_one();
    superblock_push(sb, block);
    block[7] ^= 1;
    heap_pop(CLASS);
}

TEST(pop_sees_what_was_written_to)
{
    struct outcome said = run_child(pop_what_was_written, NULL);
    void *block = block_at(sb, BLOCK_BIAS);
    ck_assert(is_misuse(&said, "malloc", block, "memory was written to after it was freed"));
}

/* Every block comes once, wherever runs of fresh ones end; carve and pop leave a word that is valid. */
TEST(carve_and_pop_give_each_block_once)
{
    unsigned capacity = sizeclasses[CLASS].capacity, carved = 0;
    for (unsigned i = 0; i < capacity; i++) {
        uint64_t before = sb->word;
        char *block = heap_pop(CLASS);
        if (block == NULL) {
            block = heap_carve(CLASS);
            carved++;
            ck_assert_ptr_eq(block, block_at(sb, word_carve(before)));
        }
        ck_assert_ptr_nonnull(block);
        ck_assert_uint_eq(*(uint64_t *)block, 0);
        ck_assert_uint_eq(word_free(sb->word), capacity - i - 1);
        ck_assert(superblock_is_valid(sb));
        memset(block, 0x77, sizeclasses[CLASS].size); /* its own, and nobody's else */
    }
    ck_assert_uint_gt(carved, 0);
    ck_assert_ptr_null(heap_pop(CLASS));
    ck_assert_ptr_null(heap_carve(CLASS));
}

TEST(carve_keeps_to_pop_while_something_is_free)
{
    superblock_push(sb, carve_one());
    uint64_t word = sb->word;
    ck_assert_ptr_null(heap_carve(CLASS));
    ck_assert_uint_eq(sb->word, word);
}

/* --- free ------------------------------------------------------------------------------------ */

TEST(the_owner_frees_into_the_word)
{
    void *blocks[20];
    for (unsigned i = 0; i < 20; i++) blocks[i] = carve_one();
    for (unsigned i = 0; i < 20; i++) {
        uint64_t before = sb->word;
        heap_free(sb, blocks[i]);
        ck_assert_uint_eq(block_link(blocks[i]), word_first(before));
        ck_assert_uint_eq(word_first(sb->word), block_number(sb, blocks[i]));
        ck_assert_uint_eq(word_free(sb->word), word_free(before) + 1);
        ck_assert_uint_eq(word_carve(sb->word), word_carve(before));
        ck_assert(superblock_is_valid(sb));
    }
    ck_assert_uint_eq(atomic_load(&sb->pending), 0);
}

TEST(what_others_free_is_not_in_the_word)
{
    void *blocks[] = {carve_one(), carve_one(), carve_one()};
    uint64_t word = sb->word;
    act_as(OTHER);
    heap_free(sb, blocks[0]);
    heap_batch_deliver();
    act_as(ID);
    superblock_set_owner(sb, OWNER_NONE);
    heap_free(sb, blocks[1]);
    heap_batch_deliver();
    ck_assert_uint_eq(sb->word, word);
    struct chain pending = superblock_take_pending(sb);
    ck_assert_uint_eq(pending.count, 2);
    ck_assert_uint_eq(pending.first, block_number(sb, blocks[1]));
    ck_assert_uint_eq(pending.last, block_number(sb, blocks[0]));
    superblock_set_owner(sb, ID);
    heap_free(sb, blocks[2]);
    ck_assert_uint_eq(word_first(sb->word), block_number(sb, blocks[2]));
}

/* --- the batch ------------------------------------------------------------------------------ */

/* Blocks of 64 bytes of ID's that OTHER has freed. */
static void fill_batch(void **blocks, unsigned n)
{
    superblock_format(sb, CLASS_64);
    for (unsigned i = 0; i < n; i++) blocks[i] = carve_one();
    act_as(OTHER);
    for (unsigned i = 0; i < n; i++) heap_free(sb, blocks[i]);
}

TEST(an_outbox_gives_the_latest_back_and_each_once)
{
    enum { N = 20 };
    void *blocks[N];
    fill_batch(blocks, N);
    act_as(ID);
    ck_assert_ptr_null(heap_batch_pop(CLASS_64));
    act_as(OTHER);
    ck_assert_ptr_null(heap_batch_pop(CLASS_64 + 1));
    for (unsigned i = N; i-- > 0;) {
        ck_assert_uint_eq(heap_batches[OTHER].of[CLASS_64] / HEAP_BATCH_ONE, i + 1);
        ck_assert_ptr_eq(heap_batch_pop(CLASS_64), blocks[i]);
    }
    ck_assert_uint_eq(heap_batches[OTHER].of[CLASS_64], 0);
    ck_assert_ptr_null(heap_batch_pop(CLASS_64));
}

TEST(a_closed_outbox_gives_nothing)
{
    void *blocks[2];
    fill_batch(blocks, 2);
    heap_batches[OTHER].of[CLASS_64] |= HEAP_BATCH_CLOSED;
    uint64_t word = heap_batches[OTHER].of[CLASS_64];
    ck_assert_ptr_null(heap_batch_pop(CLASS_64));
    ck_assert_uint_eq(heap_batches[OTHER].of[CLASS_64], word);
}

static void pop_from_batch(void *arg)
{
    (void)arg;
    heap_batch_get(CLASS_64);
}

/* The first word, and the one that leads to the next block, which is not followed. */
TEST(an_outbox_sees_what_was_written_to)
{
    void *blocks[2];
    fill_batch(blocks, 2);
    uint64_t word[2];
    memcpy(word, blocks[1], sizeof word);
    for (unsigned i = 0; i < 2; i++) {
        ((uint64_t *)blocks[1])[i] = 0x1234;
        assert_misuse(pop_from_batch, blocks[1], "malloc", "memory was written to after it was freed");
        memcpy(blocks[1], word, sizeof word);
    }
    ck_assert_ptr_eq(heap_batch_get(CLASS_64), blocks[1]);
}

/* Of the first wide class: a superblock has twice as many. */
enum { KEPT = 13 };
static struct stub *stubs[KEPT + 1];

static void setup_stubs(void)
{
    bool clean;
    setup();
    sb = arena_take(sizeclasses[CLASS_WIDE].slots, SLOT_WIDE, ARENA_PLAIN, &clean);
    ck_assert_ptr_nonnull(sb);
    superblock_format(sb, CLASS_WIDE);
    ck_assert_uint_eq(superblock_class(sb)->capacity, 2 * KEPT);
    sb->role = (union superblock_role){.owner = ID, .heap = ID, .regroup_at = HEAP_NEVER};
    heap_rows[ID].active[CLASS_WIDE] = heap_entry(sb);
    for (unsigned i = 0; i <= KEPT; i++) {
        stubs[i] = carve_one();
        stubs[i]->link = 0;
    }
}

TEST(half_a_superblock_of_stubs_is_kept_last_in_first_out)
{
    setup_stubs();
    char *start = stubs[0]->block;
    for (unsigned i = 0; i < KEPT; i++) ck_assert(heap_keep(sb, stubs[i]));
    ck_assert(!heap_keep(sb, stubs[KEPT]));
    ck_assert_uint_eq(stubs[KEPT]->link, 0);
    act_as(OTHER);
    ck_assert_ptr_null(heap_kept_get(CLASS_WIDE));
    ck_assert(heap_keep(sb, stubs[KEPT]));
    ck_assert(superblock_block_looks_free(sb, stubs[KEPT]));
    act_as(ID);
    for (unsigned i = KEPT; i-- > 0;) {
        ck_assert(superblock_block_looks_free(sb, stubs[i]));
        ck_assert_ptr_eq(heap_pop_wide(CLASS_WIDE), stubs[i]);
        ck_assert_uint_eq(stubs[i]->link, 0);
        ck_assert_ptr_eq(stubs[i]->block, start + i * superblock_class(sb)->size);
    }
    ck_assert_uint_eq(heap_batches[ID].of[CLASS_WIDE], 0);
    ck_assert_ptr_null(heap_kept_get(CLASS_WIDE));
    heap_free(sb, stubs[0]);
    ck_assert_ptr_eq(heap_pop_wide(CLASS_WIDE), stubs[0]); /* the active superblock's */
}

TEST(what_is_kept_is_closed_and_goes_home)
{
    setup_stubs();
    uint64_t *line = &heap_batches[ID].of[CLASS_WIDE];
    ck_assert(heap_keep(sb, stubs[0]) && heap_keep(sb, stubs[1]));
    *line |= HEAP_BATCH_CLOSED;
    uint64_t word = *line;
    ck_assert_ptr_null(heap_kept_get(CLASS_WIDE));
    ck_assert(!heap_keep(sb, stubs[2]));
    ck_assert_uint_eq(*line, word);
    *line &= ~HEAP_BATCH_CLOSED;
    ck_assert(heap_keep_nothing(ID));
    ck_assert(!heap_keep_nothing(ID));
    ck_assert_uint_eq(superblock_take_pending(sb).count, 2);
    ck_assert(sb->queued);
}

static void pop_kept(void *arg)
{
    (void)arg;
    heap_kept_get(CLASS_WIDE);
}

TEST(a_kept_stub_sees_what_was_written_to)
{
    setup_stubs();
    ck_assert(heap_keep(sb, stubs[0]) && heap_keep(sb, stubs[1]));
    uint64_t link = stubs[1]->link;
    stubs[1]->link = 0x1234;
    assert_misuse(pop_kept, stubs[1], "malloc", "memory was written to after it was freed");
    stubs[1]->link = link;
    ck_assert_ptr_eq(heap_kept_get(CLASS_WIDE), stubs[1]);
}

/* --- all of it ------------------------------------------------------------------------------- */

/* One thread that is on another id every few calls: frees are others' mostly, superblocks pass on. */
TEST(a_thread_that_moves_all_the_time, .apart = true)
{
    enum { LIVE = 3000, IDS = 5 };
    static struct {
        unsigned char *block;
        size_t size;
        unsigned char fill;
    } live[LIVE];
    setup();
    uint64_t random = random_seed();
    for (unsigned step = 0, steps = steps_of(200000); step < steps; step++) {
        unsigned i = random_below(&random, LIVE);
        if (step % 3 == 0) act_as(random_below(&random, IDS));
        ck_assert(all_bytes(live[i].block, live[i].size, live[i].fill));
        hoard_free(live[i].block);
        live[i].size = random_below(&random, random_below(&random, 50) != 0 ? 200 : 40000);
        live[i].fill = (unsigned char)step;
        live[i].block = hoard_malloc(live[i].size);
        ck_assert_ptr_nonnull(live[i].block);
        memset(live[i].block, live[i].fill, live[i].size);
    }
    ck_assert(heap_is_valid());
    for (unsigned i = 0; i < LIVE; i++) hoard_free(live[i].block);
    ck_assert(heap_is_valid());
    struct heap_totals totals = heap_totals();
    ck_assert_uint_ge(totals.heaps, 2);
    ck_assert_uint_gt(totals.counts.remote_frees, 0);
}

/* --- pages ----------------------------------------------------------------------------------- */

static unsigned pages_touched, pages_touched_in_sections;

static uintptr_t instruction_of(const ucontext_t *context)
{
#ifdef __x86_64__
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static void give_page(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    pages_touched++;
    pages_touched_in_sections += instruction_of(context) - area.section->start < area.section->length;
    if (mprotect((void *)((uintptr_t)info->si_addr & -PAGE), PAGE, PROT_READ | PROT_WRITE) != 0) abort();
}

/* While the kernel looks for a page, another thread may take the superblock and unmap it: the section would
 * start again, but the kernel ends the process before. */
TEST(no_section_touches_a_fresh_page)
{
    static char *blocks[SUPERBLOCK / 16];
    needs(!is_slowed(), "under an emulator a handler has registers of earlier");
    struct sigaction action = {.sa_sigaction = give_page, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
    ck_assert_int_eq(mprotect(slot_start(sb), SUPERBLOCK, PROT_NONE), 0);
    unsigned n = 0, capacity = sizeclasses[CLASS].capacity;
    for (char *block; (block = heap_pop(CLASS)) != NULL || (block = heap_carve(CLASS)) != NULL; n++)
        blocks[n] = block;
    ck_assert_uint_eq(n, capacity);
    ck_assert_uint_ge(pages_touched, SUPERBLOCK / PAGE - 1);
    ck_assert_uint_eq(pages_touched_in_sections, 0);
    for (unsigned i = 0; i < n; i++) heap_free(sb, blocks[i]);
    ck_assert_uint_eq(word_free(word_read(sb)), capacity);
}

/* A run that the heap cannot free as its own, since the thread has another id by then, goes the long way. */
TEST(a_run_is_freed_by_its_owner_alone)
{
    char *first = heap_carve_one(CLASS), *second = heap_carve_one(CLASS), *third = heap_carve_one(CLASS);
    ck_assert(first != NULL && second != NULL && third != NULL);
    block_set_link(second, block_number(sb, third));
    uint64_t before = word_read(sb);
    act_as(OTHER);
    ck_assert_int_eq(heap_give(sb, block_number(sb, second), third, 2), RSEQ_MOVED);
    ck_assert_uint_eq(word_read(sb), before);
    act_as(ID);
    heap_free(sb, first);
    ck_assert_int_eq(heap_give(sb, block_number(sb, second), third, 2), RSEQ_DONE);
    ck_assert_uint_eq(word_free(word_read(sb)), sizeclasses[CLASS].capacity);
    ck_assert_ptr_eq(heap_pop(CLASS), second);
    ck_assert_ptr_eq(heap_pop(CLASS), third);
    ck_assert_ptr_eq(heap_pop(CLASS), first);
    ck_assert_ptr_null(heap_pop(CLASS));
}

/* A word is stored over what was expected, and to the active superblock of this heap alone. */
TEST(a_word_is_stored_to_the_active_superblock)
{
    uint64_t entry = heap_entry(sb), word = word_read(sb);
    ck_assert_int_eq(heap_store_word(CLASS, entry, word + 1, 0), RSEQ_CHANGED);
    act_as(OTHER);
    ck_assert_int_eq(heap_store_word(CLASS, entry, word, 0), RSEQ_CHANGED);
    act_as(ID);
    ck_assert_int_eq(heap_store_word(CLASS_64, entry, word, 0), RSEQ_CHANGED);
    ck_assert_uint_eq(word_read(sb), word);
    ck_assert_int_eq(heap_store_word(CLASS, entry, word, word + sizeclasses[CLASS].carve_step), RSEQ_DONE);
    ck_assert_uint_eq(word_read(sb), word + sizeclasses[CLASS].carve_step);
}

/* One that has no owner gets blocks from elsewhere in time: its fresh ones come one by one. */
TEST(without_an_owner_no_run_is_carved)
{
    sb->role.owner = OWNER_NONE;
    uint64_t word = word_read(sb);
    ck_assert_ptr_nonnull(heap_carve(CLASS));
    ck_assert_uint_eq(word_read(sb), word + sizeclasses[CLASS].carve_step);
    sb->role.owner = ID;
    ck_assert_ptr_nonnull(heap_carve(CLASS));
    ck_assert_uint_ne(word_first(word_read(sb)), 0);
}

int main(void) { return run_tests((struct suite){.begin = setup_superblock}); }

#else

int main(void) { return 77; }

#endif
