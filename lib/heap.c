#include "heap.h"

#include "arena.h"
#include "global.h"
#include "options.h"
#include "pages.h"

#include <errno.h>

enum { NEVER = UINT16_MAX }; /* a regroup_at that no count reaches */

struct heap {
    struct lock lock;
    uint16_t id;
    bool orphan;            /* its threads stayed behind in the parent of a fork */
    uint32_t superblocks;   /* a, in superblocks: in bins, active and empty */
    uint32_t free_eighths;  /* a - u as recorded, in eighths of superblocks */
    _Atomic(struct superblock *) posted;
    struct list empty;
    uint64_t with[GROUP_EMPTY]; /* the classes that have superblocks in the group */
    struct bin bins[CLASSES];
    struct heap_counts counts;
};

struct heap_row heap_rows[IDS_MAX];

static _Atomic(struct heap *) heap_table[IDS_MAX];
static struct lock heap_table_lock; /* before all heaps' locks in rank */
static _Atomic unsigned heap_made; /* ids below this may have a heap */
static __thread uint16_t heap_of_thread __attribute__((tls_model("initial-exec"))); /* plus one; locked path */

_Static_assert(sizeof(struct heap_row) == 1 << 9, "the fast path shifts ids by 9");
_Static_assert((int)IDS_MAX <= (int)OWNER_NONE, "ids fit a role");
_Static_assert(offsetof(struct superblock, word) == 0 && offsetof(struct superblock, origin) == 8,
               "the fast path knows where these are");

/* --- heaps and their locks ------------------------------------------------------------------- */

static COLD struct heap *heap_create(unsigned id)
{
    lock_take(&heap_table_lock);
    struct heap *heap = atomic_load(&heap_table[id]);
    if (heap == NULL && (heap = pages_metadata(sizeof *heap)) != NULL) {
        heap->id = (uint16_t)id;
        atomic_store(&heap_table[id], heap);
        if (atomic_load(&heap_made) <= id) atomic_store(&heap_made, id + 1);
    }
    lock_give(&heap_table_lock);
    return heap;
}

static struct heap *heap_get(unsigned id)
{
    struct heap *heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
    return LIKELY(heap != NULL) ? heap : heap_create(id);
}

/* Threads are dealt onto twice as many heaps as there are CPUs (ASPLOS 2000, section 3.3). */
static unsigned locked_id(void)
{
    static _Atomic unsigned turn;
    if (heap_of_thread == 0) {
        unsigned heaps = options.heaps == HEAPS_SINGLE ? 1 : 2 * cpu.count;
        heaps = heaps < IDS_MAX ? heaps : IDS_MAX;
        heap_of_thread = (uint16_t)(atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % heaps + 1);
    }
    return heap_of_thread - 1u;
}

static struct heap *heap_mine(void) { return heap_get(cpu.ids != 0 ? cpu_id() : locked_id()); }

static struct heap *heap_lock_mine(void)
{
    struct heap *heap = heap_mine();
    if (heap == NULL) return NULL;
    lock_take(&heap->lock);
    heap->orphan = false;
    return heap;
}

/* Locks the heap that a superblock is on; NULL (nothing is locked) when that is the global heap. As in the paper's free, what was
 * read before the lock is read again under it. */
static struct heap *heap_lock_of(struct superblock *sb)
{
    for (;;) {
        unsigned id = __atomic_load_n(&sb->role.heap, __ATOMIC_ACQUIRE);
        if (id == HEAP_GLOBAL) return NULL;
        struct heap *heap = heap_get(id);
        lock_take(&heap->lock);
        if (__atomic_load_n(&sb->role.heap, __ATOMIC_RELAXED) == id) return heap;
        lock_give(&heap->lock);
    }
}

static struct superblock **slot_of(const struct heap *heap, unsigned class)
{
    return &heap_rows[heap->id].active[class];
}

static bool is_active(const struct heap *heap, const struct superblock *sb)
{
    return *slot_of(heap, sb->class) == sb;
}

/* --- restartable edits ----------------------------------------------------------------------- */

static enum cpu_result store(struct heap *heap, void *at, uint64_t expected, uint64_t value)
{
    if (cpu.ids != 0) return cpu_store(heap->id, at, expected, value);
    __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); /* the lock keeps all others out */
    return CPU_DONE;
}

static void role_set(struct superblock *sb, union superblock_role role)
{
    __atomic_store_n(&sb->role.bits, role.bits, __ATOMIC_RELEASE);
}

static void set_regroup_at(struct superblock *sb, unsigned count)
{
    union superblock_role role = sb->role;
    role.regroup_at = (uint16_t)count;
    role_set(sb, role);
}

static void set_owner(struct superblock *sb, unsigned owner)
{
    union superblock_role role = sb->role;
    role.owner = (uint16_t)owner;
    role_set(sb, role);
}

static unsigned owner_of(const struct heap *heap) { return cpu.ids != 0 ? heap->id : OWNER_NONE; }

/* Makes an owned superblock quiet, if this thread still has the heap's id. */
static bool detach(struct heap *heap, struct superblock *sb)
{
    union superblock_role role = sb->role;
    role.owner = OWNER_NONE;
    return store(heap, &sb->role.bits, sb->role.bits, role.bits) == CPU_DONE;
}

static void detach_surely(struct heap *heap, struct superblock *sb)
{
    if (detach(heap, sb)) return;
    set_owner(sb, OWNER_NONE);
    cpu_fence();
}

/* Moves what is pending to the free list of an active or owned superblock. False: this thread has another id now. */
static bool collect(struct heap *heap, struct superblock *sb)
{
    struct chain chain = superblock_take_pending(sb);
    if (chain.count == 0) return true;
    for (;;) {
        uint64_t word = word_read(sb);
        enum cpu_result result = store(heap, &sb->word, word, superblock_spliced(sb, word, &chain));
        if (result == CPU_DONE) return true;
        if (result == CPU_MOVED) {
            superblock_put_pending(sb, &chain);
            return false;
        }
    }
}

/* --- bins, accounts, the invariant ----------------------------------------------------------- */

static void bin_in(struct heap *heap, struct superblock *sb, unsigned group)
{
    bin_add(&heap->bins[sb->class], sb, group);
    heap->with[group] |= (uint64_t)1 << sb->class;
    heap->free_eighths += group;
}

static void bin_out(struct heap *heap, struct superblock *sb)
{
    struct bin *bin = &heap->bins[sb->class];
    bin_remove(bin, sb);
    if ((bin->mask >> sb->group & 1) == 0) heap->with[sb->group] &= ~((uint64_t)1 << sb->class);
    heap->free_eighths -= sb->group;
}

static void empty_in(struct heap *heap, struct superblock *sb)
{
    superblock_absorb(sb);
    list_push(&heap->empty, &sb->link);
    sb->group = GROUP_EMPTY;
    heap->free_eighths += GROUP_EMPTY;
}

static struct superblock *empty_out(struct heap *heap)
{
    struct list_node *node = list_pop(&heap->empty);
    if (node == NULL) return NULL;
    heap->free_eighths -= GROUP_EMPTY;
    return LIST_ENTRY(node, struct superblock, link);
}

/* Files an owned superblock that is neither active nor on a list by what is free in it now. A free
 * that comes between the look at the word and the new threshold sees either itself above the
 * threshold or is seen by the second look. */
static void file(struct heap *heap, struct superblock *sb)
{
    for (;;) {
        unsigned group = superblock_group_of(sb, word_read(sb));
        if (group == GROUP_EMPTY && detach(heap, sb)) {
            empty_in(heap, sb);
            return;
        }
        if (group == GROUP_EMPTY) group--; /* cannot be made quiet from here; it stays of its class */
        unsigned at = superblock_regroup_at(sb, group);
        set_regroup_at(sb, at);
        if (word_free(word_read(sb)) >= at && group < GROUP_EMPTY - 1) continue;
        bin_in(heap, sb, group);
        return;
    }
}

static bool holds_too_much(const struct heap *heap)
{
    return heap->free_eighths > GROUP_EMPTY * options.slack &&
           heap->free_eighths > options.empty_fraction * heap->superblocks;
}

/* The emptiest superblock that is at least f empty, off its list, quiet; or NULL. */
static struct superblock *take_emptiest(struct heap *heap)
{
    struct superblock *sb = empty_out(heap);
    for (unsigned group = GROUP_EMPTY; sb == NULL && group-- > options.empty_fraction;) {
        if (heap->with[group] == 0) continue;
        sb = bin_emptiest(&heap->bins[__builtin_ctzll(heap->with[group])]);
        bin_out(heap, sb);
        detach_surely(heap, sb);
    }
    return sb;
}

static void keep_invariant(struct heap *heap)
{
    while (holds_too_much(heap)) {
        struct superblock *sb = take_emptiest(heap);
        if (sb == NULL) return;
        heap->superblocks--;
        heap->counts.transfers++;
        global_give(sb);
    }
}

static void regroup(struct heap *heap, struct superblock *sb)
{
    if (!list_holds(&sb->link) || sb->group == GROUP_EMPTY) return;
    unsigned group = superblock_group_of(sb, word_read(sb));
    if (group <= sb->group) return;
    bin_out(heap, sb);
    file(heap, sb);
    keep_invariant(heap);
}

void heap_regroup(struct superblock *sb)
{
    struct heap *heap = heap_lock_of(sb);
    if (heap == NULL) return;
    heap->counts.slow_frees++;
    regroup(heap, sb);
    lock_give(&heap->lock);
}

/* --- posted superblocks ---------------------------------------------------------------------- */

/* Pending blocks at which a superblock is posted: the f of it, so that its heap takes notice. */
static bool crosses_post(const struct superblock *sb, unsigned before, unsigned after)
{
    unsigned at = superblock_class(sb)->capacity * options.empty_fraction / GROUP_EMPTY;
    at = at != 0 ? at : 1;
    return before < at && after >= at;
}

static void post(struct superblock *sb)
{
    if (atomic_exchange_explicit(&sb->posted, 1, memory_order_acq_rel) != 0) return;
    unsigned id = __atomic_load_n(&sb->role.heap, __ATOMIC_ACQUIRE);
    if (id == HEAP_GLOBAL) {
        global_post(sb);
        return;
    }
    struct heap *heap = heap_get(id);
    struct superblock *first = atomic_load_explicit(&heap->posted, memory_order_relaxed);
    do
        sb->posted_next = first;
    while (!atomic_compare_exchange_weak_explicit(&heap->posted, &first, sb, memory_order_release,
                                                  memory_order_relaxed));
}

static struct superblock *take_posted(struct heap *heap)
{
    if (atomic_load_explicit(&heap->posted, memory_order_relaxed) == NULL) return NULL;
    return atomic_exchange_explicit(&heap->posted, NULL, memory_order_acquire);
}

/* Off the list of posted ones: the next. From here on it may be posted anew. */
static struct superblock *unpost(struct superblock *sb)
{
    struct superblock *next = sb->posted_next;
    atomic_store_explicit(&sb->posted, 0, memory_order_release);
    return next;
}

static bool is_on(const struct heap *heap, const struct superblock *sb)
{
    return sb->role.heap == heap->id && (list_holds(&sb->link) || is_active(heap, sb));
}

/* Collects what was posted to this thread's heap. What has left it is its new heap's to find. */
static bool collect_posted(struct heap *heap)
{
    bool mine = true;
    struct superblock *next, *sb = take_posted(heap);
    for (; sb != NULL; sb = next) {
        next = unpost(sb);
        if (!is_on(heap, sb)) {
            if (sb->role.heap != heap->id && atomic_load_explicit(&sb->pending, memory_order_relaxed) != 0) post(sb);
        } else if (mine && (mine = collect(heap, sb))) {
            regroup(heap, sb);
        } else {
            post(sb);
        }
    }
    return mine;
}

/* --- taking back from the heaps of others ---------------------------------------------------- */

/* Takes a superblock off the row or the bin it is on and stops its owner's frees; quiet after cpu_fence. */
static void pull(struct heap *heap, struct superblock *sb, struct list *pulled)
{
    if (is_active(heap, sb))
        __atomic_store_n(slot_of(heap, sb->class), NULL, __ATOMIC_RELEASE);
    else
        bin_out(heap, sb);
    set_owner(sb, OWNER_NONE);
    heap->superblocks--;
    list_push(pulled, &sb->link);
}

static size_t give_pulled(struct heap *heap, struct list *pulled)
{
    size_t n = 0;
    if (!list_is_empty(pulled) && cpu.ids != 0) cpu_fence(); /* one for all */
    for (struct list_node *node; (node = list_pop(pulled)) != NULL; n++)
        global_give(LIST_ENTRY(node, struct superblock, link));
    heap->counts.transfers += n;
    return n;
}

/* Every superblock of a locked heap goes to the global heap. */
static size_t give_all(struct heap *heap)
{
    struct list pulled = {NULL};
    for (unsigned class = 1; class < CLASSES; class++) {
        struct superblock *sb = *slot_of(heap, class);
        if (sb != NULL) pull(heap, sb, &pulled);
        while ((sb = bin_emptiest(&heap->bins[class])) != NULL) pull(heap, sb, &pulled);
    }
    for (struct superblock *sb; (sb = empty_out(heap)) != NULL; heap->superblocks--) list_push(&pulled, &sb->link);
    return give_pulled(heap, &pulled);
}

/* What others have freed into a locked heap that is not this thread's goes to the global heap. */
static size_t give_posted(struct heap *heap)
{
    struct list pulled = {NULL};
    struct superblock *next, *sb = take_posted(heap);
    for (; sb != NULL; sb = next) {
        next = unpost(sb);
        if (sb->role.heap == heap->id && list_holds(&sb->link) && sb->group != GROUP_EMPTY) pull(heap, sb, &pulled);
    }
    return give_pulled(heap, &pulled);
}

/* Before memory is asked of the OS: what lies idle on other heaps. Only tries their locks, since it holds one. */
static bool scavenge(const struct heap *mine)
{
    size_t n = 0;
    unsigned made = atomic_load_explicit(&heap_made, memory_order_acquire);
    for (unsigned id = 0; id < made; id++) {
        struct heap *heap = atomic_load_explicit(&heap_table[id], memory_order_acquire);
        if (heap == NULL || heap == mine) continue;
        if (!heap->orphan && atomic_load_explicit(&heap->posted, memory_order_relaxed) == NULL) continue;
        if (!lock_try(&heap->lock)) continue;
        n += heap->orphan ? give_all(heap) : give_posted(heap);
        heap->orphan = false;
        lock_give(&heap->lock);
    }
    return n != 0;
}

void heap_give_all(void)
{
    for (unsigned id = 0; id < atomic_load(&heap_made); id++) {
        struct heap *heap = atomic_load(&heap_table[id]);
        if (heap == NULL) continue;
        lock_take(&heap->lock);
        give_all(heap);
        lock_give(&heap->lock);
    }
    global_collect();
}

/* --- malloc ---------------------------------------------------------------------------------- */

static struct superblock *from_arena(unsigned class)
{
    bool clean;
    enum superblock_kind kind = class >= CLASS_CHUNK ? SLOT_CHUNKS : SLOT_BLOCKS;
    struct superblock *sb = arena_take(1, 1, kind, &clean);
    if (sb != NULL) superblock_format(sb, class);
    return sb;
}

static struct superblock *from_empty(struct heap *heap, unsigned class)
{
    struct superblock *sb = empty_out(heap);
    if (sb == NULL) return NULL;
    sb->kind = class >= CLASS_CHUNK ? SLOT_CHUNKS : SLOT_BLOCKS;
    superblock_format(sb, class);
    heap->superblocks--;
    return sb;
}

/* A superblock with free blocks that is on no list: owned (from the bin), or quiet and new to the heap. */
static struct superblock *choose(struct heap *heap, unsigned class)
{
    struct superblock *sb = bin_fullest(&heap->bins[class], 1);
    if (sb != NULL) {
        bin_out(heap, sb);
        return sb;
    }
    sb = from_empty(heap, class);
    if (sb == NULL && (sb = global_take(class)) != NULL) heap->counts.transfers++;
    if (sb == NULL && scavenge(heap)) sb = global_take(class);
    if (sb == NULL) sb = from_arena(class);
    if (sb == NULL) return NULL;
    heap->superblocks++;
    role_set(sb, (union superblock_role){.owner = (uint16_t)owner_of(heap), .heap = heap->id, .regroup_at = NEVER});
    return sb;
}

enum refill { REFILLED, RETRY, EXHAUSTED };

/* Exchanges the active superblock. The old one's threshold is set before it leaves the row: a free on
 * this id is either done before the exchange, and file sees it, or starts after it and sees the
 * threshold. */
static enum refill install(struct heap *heap, struct superblock *old, struct superblock *sb)
{
    set_regroup_at(sb, NEVER);
    if (old != NULL) set_regroup_at(old, superblock_regroup_at(old, 0));
    enum cpu_result result =
        store(heap, slot_of(heap, sb->class), (uint64_t)(uintptr_t)old, (uint64_t)(uintptr_t)sb);
    if (result == CPU_DONE) {
        if (old != NULL) file(heap, old);
        keep_invariant(heap);
        return REFILLED;
    }
    if (old != NULL) set_regroup_at(old, NEVER);
    file(heap, sb);
    return RETRY;
}

static bool has_free(const struct superblock *sb)
{
    uint64_t word = word_read(sb);
    return word_first(word) != 0 || word_carve(word) <= superblock_class(sb)->carve_limit;
}

static enum refill refill(struct heap *heap, unsigned class)
{
    struct superblock *old = *slot_of(heap, class);
    if (old != NULL) {
        if (!has_free(old) && !collect(heap, old)) return RETRY;
        if (has_free(old)) return REFILLED; /* by others' frees, or by another thread of this id */
    }
    if (!collect_posted(heap)) return RETRY;
    struct superblock *sb = choose(heap, class);
    return sb != NULL ? install(heap, old, sb) : EXHAUSTED;
}

static void *pop_active(struct heap *heap, unsigned class)
{
    if (cpu.ids == 0) return superblock_pop(*slot_of(heap, class));
    void *block = heap_pop(class);
    return block != NULL ? block : heap_carve(class);
}

/* On the locked path: not only when there is nothing left. */
static void *pop_locked(struct heap *heap, unsigned class)
{
    struct superblock *sb = cpu.ids == 0 ? *slot_of(heap, class) : NULL;
    return sb != NULL ? superblock_pop(sb) : NULL;
}

void *heap_malloc_slow(unsigned class)
{
    void *block = cpu.ids != 0 ? heap_carve(class) : NULL;
    enum refill result = RETRY;
    while (block == NULL && result != EXHAUSTED) {
        struct heap *heap = heap_lock_mine();
        if (heap == NULL) break;
        block = pop_locked(heap, class);
        if (block == NULL) {
            heap->counts.slow_mallocs++;
            result = refill(heap, class);
            if (result == REFILLED) block = pop_active(heap, class);
        }
        lock_give(&heap->lock);
    }
    if (block == NULL)
        errno = ENOMEM;
    else if (cpu.ids == 0)
        *(uint64_t *)block = 0;
    return block;
}

/* --- free ------------------------------------------------------------------------------------ */

static void free_locked(struct superblock *sb, void *block)
{
    for (;;) {
        struct heap *heap = heap_lock_of(sb);
        if (heap == NULL) {
            if (global_free(sb, block)) return;
            continue; /* it has just gone to a heap */
        }
        if (superblock_push(sb, block) >= sb->role.regroup_at) {
            heap->counts.slow_frees++;
            regroup(heap, sb);
        }
        lock_give(&heap->lock);
        return;
    }
}

void heap_free_slow(struct superblock *sb, void *block)
{
    if (cpu.ids == 0) {
        free_locked(sb, block);
        return;
    }
    struct heap *mine = heap_mine();
    if (mine != NULL) mine->counts.remote_frees++;
    struct chain chain = chain_of_block(sb, block);
    unsigned after = superblock_put_pending(sb, &chain);
    if (crosses_post(sb, after - 1, after)) post(sb);
}

bool heap_block_is_free(struct superblock *sb, void *block)
{
    struct heap *heap = heap_lock_of(sb);
    if (heap == NULL) return superblock_has_free(sb, block);
    unsigned owner = sb->role.owner;
    if (owner != OWNER_NONE) {
        set_owner(sb, OWNER_NONE);
        cpu_fence();
    }
    struct superblock **slot = slot_of(heap, sb->class);
    bool active = *slot == sb;
    if (active && cpu.ids != 0) { /* mallocs go on in the row */
        __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
        cpu_fence();
    }
    bool is_free = superblock_has_free(sb, block);
    if (owner != OWNER_NONE) set_owner(sb, owner);
    if (active) __atomic_store_n(slot, sb, __ATOMIC_RELEASE);
    lock_give(&heap->lock);
    return is_free;
}

/* --- totals and checks ----------------------------------------------------------------------- */

static void add_counts(struct heap_counts *sum, const struct heap_counts *counts)
{
    sum->slow_mallocs += counts->slow_mallocs;
    sum->slow_frees += counts->slow_frees;
    sum->remote_frees += counts->remote_frees;
    sum->transfers += counts->transfers;
}

struct heap_totals heap_totals(void)
{
    struct heap_totals totals = {0};
    for (unsigned id = 0; id < atomic_load(&heap_made); id++) {
        struct heap *heap = atomic_load(&heap_table[id]);
        if (heap == NULL) continue;
        totals.heaps++;
        totals.superblocks += heap->superblocks;
        add_counts(&totals.counts, &heap->counts);
    }
    return totals;
}

static bool accounts_add_up(const struct heap *heap)
{
    uint32_t superblocks = 0, eighths = 0;
    for (unsigned class = 1; class < CLASSES; class++) {
        superblocks += *slot_of(heap, class) != NULL;
        for (unsigned group = 0; group < GROUP_EMPTY; group++) {
            const struct list_node *node = heap->bins[class].groups[group].first;
            if ((node != NULL) != (heap->with[group] >> class & 1)) return false;
            for (; node != NULL; node = node->next) {
                const struct superblock *sb = LIST_ENTRY(node, struct superblock, link);
                if (sb->group != group || sb->class != class || sb->role.heap != heap->id) return false;
                if (!superblock_is_valid(sb)) return false;
                superblocks++;
                eighths += group;
            }
        }
    }
    for (const struct list_node *node = heap->empty.first; node != NULL; node = node->next) {
        superblocks++;
        eighths += GROUP_EMPTY;
    }
    return superblocks == heap->superblocks && eighths == heap->free_eighths && !holds_too_much(heap);
}

bool heap_is_valid(void)
{
    for (unsigned id = 0; id < atomic_load(&heap_made); id++) {
        const struct heap *heap = atomic_load(&heap_table[id]);
        if (heap != NULL && !accounts_add_up(heap)) return false;
    }
    return true;
}

/* --- fork ------------------------------------------------------------------------------------ */

static void for_each_heap(void (*fn)(struct heap *heap))
{
    for (unsigned id = 0; id < atomic_load(&heap_made); id++) {
        struct heap *heap = atomic_load(&heap_table[id]);
        if (heap != NULL) fn(heap);
    }
}

static void heap_lock(struct heap *heap) { lock_take(&heap->lock); }

static void heap_unlock(struct heap *heap) { lock_give(&heap->lock); }

static void heap_orphan(struct heap *heap)
{
    lock_reset(&heap->lock);
    heap->orphan = true;
}

void heap_fork_prepare(void)
{
    lock_take(&heap_table_lock);
    for_each_heap(heap_lock);
    global_fork_prepare();
}

void heap_fork_parent(void)
{
    global_fork_parent();
    for_each_heap(heap_unlock);
    lock_give(&heap_table_lock);
}

void heap_fork_child(void)
{
    global_fork_child();
    for_each_heap(heap_orphan);
    lock_reset(&heap_table_lock);
}
