/* SPDX-License-Identifier: Apache-2.0 */
#include "arena/superblock.h"

#include "base/options.h"
#include "base/report.h"

#include <string.h>
#include <sys/auxv.h>

uint64_t superblock_cookie;

void superblock_init(void)
{
    /* The kernel gives 16 random bytes before any code runs. libc makes its own guards of some of them;
     * therefore they are mixed, so that free blocks do not show them. */
    uint64_t random[2] = {(uintptr_t)&random, 0};
    const void *kernels = (const void *)getauxval(AT_RANDOM);
    if (kernels != NULL) memcpy(random, kernels, sizeof random);
    uint64_t mixed = (random[0] ^ (random[1] >> 7)) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
    mixed ^= mixed << 17;
    /* The last byte is 0x80 to 0xaf, the one before it 0x80 to 0xff. No text or address has these bytes; a
     * double with them is a negative number close to 0. */
    uint64_t last = 0x80 + (mixed & 0xff) % 0x30, before = 0x80 | (mixed >> 8 & 0x7f);
    superblock_cookie = last << 56 | before << 48 | (mixed >> 16 & 0xffffffff) << 16;
    ASSERT((superblock_cookie & 0xffff) == 0 && superblock_cookie >> 60 >= 8);
}

/* They look free. So a free of a block that was never handed out is found. */
static void write_stubs(struct superblock *sb, const struct sizeclass *class)
{
    struct stub *stubs = (struct stub *)(void *)(sb->origin + BLOCK_BIAS);
    char *start = stubs->block;
    for (unsigned i = 0; i < class->capacity; i++)
        stubs[i] = (struct stub){.link = superblock_cookie, .block = start + i * class->size};
}

void superblock_format(struct superblock *sb, unsigned class)
{
    ASSERT(class != 0 && class < CLASSES && sizeclasses[class].size != 0);
    ASSERT(!list_holds(&sb->link));
    sb->class = (uint8_t) class;
    sb->inverse = sb->kind == SLOT_BLOCKS ? sizeclasses[class].inverse : 0;
    if (sb->kind == SLOT_WIDE) write_stubs(sb, &sizeclasses[class]);
    sb->group = GROUP_EMPTY;
    atomic_store_explicit(&sb->pending, 0, memory_order_relaxed);
    uint64_t word = (uint64_t)BLOCK_BIAS << 32 | (uint64_t)sizeclasses[class].capacity << 16;
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
}

bool superblock_clears;

void superblock_clear(struct superblock *sb, size_t bytes)
{
    char *first = sb->origin + BLOCK_BIAS;
    memset(sb->kind == SLOT_WIDE ? ((struct stub *)(void *)first)->block : first, 0, bytes);
}

void superblock_serve(struct superblock *sb, unsigned class)
{
    ASSERT(superblock_live(sb) == 0 && !superblock_has_pending(sb));
    ASSERT(superblock_slots(sb) == sizeclasses[class].slots);
    if (UNLIKELY(superblock_clears)) {
        size_t carved = (word_carve(word_read(sb)) - BLOCK_BIAS) / sizeclass_step(superblock_class(sb));
        superblock_clear(sb, carved * superblock_class(sb)->size);
    }
    sb->kind = (uint8_t)superblock_kind_of(class);
    superblock_format(sb, class);
}

unsigned superblock_group_of(const struct superblock *sb, uint64_t word)
{
    ASSERT(word_free(word) <= superblock_class(sb)->capacity);
    return (unsigned)((uint64_t)word_free(word) * GROUP_EMPTY * superblock_class(sb)->capacity_inverse >> 32);
}

unsigned superblock_regroup_at(const struct superblock *sb, unsigned group)
{
    ASSERT(group < GROUPS);
    unsigned capacity = superblock_class(sb)->capacity;
    /* the least count whose group is greater; superblocks of few blocks skip groups */
    return group >= GROUP_EMPTY ? capacity + 1 : ((group + 1) * capacity + GROUP_EMPTY - 1) / GROUP_EMPTY;
}

void *superblock_pop(struct superblock *sb)
{
    const struct sizeclass *class = superblock_class(sb);
    uint64_t word = word_read(sb);
    char *block;
    if (word_first(word) != 0) {
        block = block_at(sb, word_first(word));
        if (UNLIKELY(!block_looks_free(block))) superblock_written(block);
        word = (word - 0x10000 - word_first(word)) | (block_link(block) & 0xffff);
    } else if (word_carve(word) <= class->carve_limit) {
        block = block_at(sb, word_carve(word));
        word += class->carve_step;
    } else {
        return NULL;
    }
    ASSERT(superblock_has_number(sb, block_number(sb, block)) &&
           word_free(word) < superblock_class(sb)->capacity);
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
    return block;
}

void superblock_written(void *block)
{
    report_misuse("malloc", block, "memory was written to after it was freed");
}

unsigned superblock_push(struct superblock *sb, void *block)
{
    ASSERT(superblock_has_number(sb, block_number(sb, block)));
    uint64_t word = word_read(sb);
    ASSERT(block_number(sb, block) < word_carve(word) && word_free(word) < superblock_class(sb)->capacity);
    block_set_link(block, word_first(word));
    word = (word - word_first(word) + 0x10000) | block_number(sb, block);
    __atomic_store_n(&sb->word, word, __ATOMIC_RELEASE);
    return word_free(word);
}

/* The number of waiting blocks, above the chain in the pending word. */
enum { WAITING_SHIFT = 48 };
static const uint64_t CHAIN_BITS = ((uint64_t)1 << WAITING_SHIFT) - 1;

static struct chain chain_unpack(uint64_t pending)
{
    return (struct chain){
        .first = pending & 0xffff, .count = pending >> 16 & 0xffff, .last = pending >> 32 & 0xffff};
}

unsigned superblock_put_pending(struct superblock *sb, const struct chain *chain)
{
    ASSERT(chain->count != 0 && superblock_has_number(sb, chain->first) &&
           superblock_has_number(sb, chain->last));
    uint64_t old = atomic_load_explicit(&sb->pending, memory_order_relaxed);
    struct chain joined;
    uint64_t new;
    do {
        struct chain there = chain_unpack(old);
        block_set_link(block_at(sb, chain->last), there.first);
        joined = (struct chain){chain->first, there.count != 0 ? there.last : chain->last,
                                there.count + chain->count};
        ASSERT(joined.count <= superblock_class(sb)->capacity);
        new = joined.first | (uint64_t)joined.count << 16 | (uint64_t)joined.last << 32 | (old & ~CHAIN_BITS);
    } while (!atomic_compare_exchange_weak_explicit(&sb->pending, &old, new, memory_order_seq_cst,
                                                    memory_order_relaxed));
    return joined.count;
}

/* Returns after how many more pending blocks the heap looks at them: f of the superblock, at most a quarter.
 * With a greater step, the pending blocks that the heap has not seen and the free blocks that it allows could
 * together be a whole superblock, and one live block could hold each of them (bound.md). With notes, one
 * block may free a whole line, whose blocks count only then: so the heap looks more often. */
static unsigned pending_step(const struct superblock *sb)
{
    unsigned capacity = superblock_class(sb)->capacity;
    unsigned eighths = options.empty_fraction < 2 ? options.empty_fraction : 2;
    unsigned step = sb->role.sharing != SHARING_NONE ? capacity / 16 : capacity * eighths / GROUP_EMPTY;
    return step != 0 ? step : 1;
}

bool superblock_pending_is_due(const struct superblock *sb, unsigned after, unsigned count)
{
    ASSERT(count != 0 && after >= count);
    return after % pending_step(sb) < count || superblock_live(sb) == 0;
}

bool superblock_pending_is_much(const struct superblock *sb)
{
    return chain_unpack(atomic_load(&sb->pending)).count >= pending_step(sb);
}

bool superblock_free_unowned(struct superblock *sb, void *block)
{
    ASSERT(sb->role.owner == OWNER_NONE);
    if (sb->role.sharing == SHARING_NONE) return superblock_push(sb, block) >= sb->role.regroup_at;
    struct chain chain = chain_of_block(sb, block);
    return superblock_pending_is_due(sb, superblock_put_pending(sb, &chain), 1);
}

bool superblock_has_pending(const struct superblock *sb)
{
    return (atomic_load(&sb->pending) & CHAIN_BITS) != 0;
}

bool superblock_pending_is_worth(const struct superblock *sb, unsigned class)
{
    unsigned count = chain_unpack(atomic_load_explicit(&sb->pending, memory_order_relaxed)).count;
    return 2 * count * sizeclasses[class].size > sizeclasses[class].carve_run;
}

struct chain superblock_take_pending(struct superblock *sb)
{
    uint64_t old = atomic_load_explicit(&sb->pending, memory_order_seq_cst);
    while ((old & CHAIN_BITS) != 0 &&
           !atomic_compare_exchange_weak_explicit(&sb->pending, &old, old & ~CHAIN_BITS, memory_order_acquire,
                                                  memory_order_relaxed))
        continue;
    ASSERT(((old & 0xffff) == 0) == ((old >> 16 & 0xffff) == 0));
    return chain_unpack(old);
}

unsigned superblock_waiting(const struct superblock *sb)
{
    return (unsigned)(atomic_load_explicit(&sb->pending, memory_order_relaxed) >> WAITING_SHIFT);
}

void superblock_add_waiting(struct superblock *sb, int n)
{
    if (n != 0) atomic_fetch_add(&sb->pending, (uint64_t)(int64_t)n << WAITING_SHIFT);
    ASSERT(superblock_waiting(sb) <= superblock_class(sb)->capacity);
}

uint64_t superblock_spliced(struct superblock *sb, uint64_t word, const struct chain *chain)
{
    ASSERT(chain->count != 0 && word_free(word) + chain->count <= superblock_class(sb)->capacity);
    ASSERT(superblock_has_number(sb, chain->first) && superblock_has_number(sb, chain->last));
    block_set_link(block_at(sb, chain->last), word_first(word));
    return (word - word_first(word) + ((uint64_t)chain->count << 16)) | chain->first;
}

struct superblock *superblock_take_queued(_Atomic(struct superblock *) *list)
{
    if (atomic_load_explicit(list, memory_order_relaxed) == NULL) return NULL;
    return atomic_exchange_explicit(list, NULL, memory_order_acquire);
}

unsigned superblock_absorb(struct superblock *sb)
{
    ASSERT(sb->role.owner == OWNER_NONE);
    struct chain chain = superblock_take_pending(sb);
    if (chain.count != 0)
        __atomic_store_n(&sb->word, superblock_spliced(sb, word_read(sb), &chain), __ATOMIC_RELEASE);
    ASSERT_WALK(superblock_class(sb)->capacity, superblock_is_valid(sb));
    return chain.count;
}

/* Follows a list of `count` links from block `number`. Returns true if `block` is on it; for NULL, if it ends
 * there, as one with a circle does not, and ends the program where a block of it was written to. */
static bool follow_links(const struct superblock *sb, unsigned number, unsigned count, const void *block)
{
    for (; count > 0 && superblock_has_number(sb, number); count--) {
        char *at = block_at(sb, number);
        if (at == block) return true;
        if (!block_looks_free(at) && block == NULL) superblock_written(at);
        number = block_link(at) & 0xffff;
    }
    return block == NULL && count == 0 && number == 0;
}

static unsigned uncarved(const struct superblock *sb, uint64_t word)
{
    ASSERT(word_carve(word) >= BLOCK_BIAS && word_carve(word) <= SUPERBLOCK + BLOCK_BIAS);
    const struct sizeclass *class = superblock_class(sb);
    return class->capacity - (word_carve(word) - BLOCK_BIAS) / sizeclass_step(class);
}

bool superblock_has_free(const struct superblock *sb, const void *block)
{
    ASSERT(superblock_has_number(sb, block_number(sb, block)));
    uint64_t word = word_read(sb);
    struct chain pending = chain_unpack(atomic_load_explicit(&sb->pending, memory_order_acquire));
    if (block_number(sb, block) >= word_carve(word)) return true;
    return (word_free(word) > uncarved(sb, word) &&
            follow_links(sb, word_first(word), word_free(word) - uncarved(sb, word), block)) ||
           follow_links(sb, pending.first, pending.count, block);
}

unsigned superblock_live(const struct superblock *sb)
{
    unsigned capacity = superblock_class(sb)->capacity;
    uint64_t pending = atomic_load_explicit(&sb->pending, memory_order_relaxed);
    unsigned unused =
        word_free(word_read(sb)) + chain_unpack(pending).count + (unsigned)(pending >> WAITING_SHIFT);
    return unused < capacity ? capacity - unused : 0;
}

bool superblock_is_valid(const struct superblock *sb)
{
    uint64_t word = word_read(sb);
    struct chain pending = chain_unpack(atomic_load_explicit(&sb->pending, memory_order_acquire));
    unsigned fresh = uncarved(sb, word);
    if (fresh > word_free(word) ||
        word_free(word) + pending.count + superblock_waiting(sb) > superblock_class(sb)->capacity)
        return false;
    unsigned listed = word_free(word) - fresh;
    if ((listed == 0) != (word_first(word) == 0)) return false;
    return follow_links(sb, word_first(word), listed, NULL) &&
           follow_links(sb, pending.first, pending.count, NULL);
}
