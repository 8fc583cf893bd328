/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: what must be where. */
#include "fuzz_ops.h"

#if !FUZZ_PUBLIC
#include "reap/reap_shared.h"
#include "reap/validate.h"
#endif

/* --- what records name ----------------------------------------------------------------------- */

/* Small, up to 600, a page, a large one, a few of up to 34 MB; at the edges of powers of two; and some that
 * nobody has. */
size_t size_of(uint16_t value)
{
    size_t low = value & 0xfff;
    switch (value >> 12) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6: return low % 129;
    case 7:
    case 8:
    case 9: return low % 601;
    case 10:
    case 11: return low;
    case 12: return low * 8;
    case 13: return low * 64;
    case 14: return ((size_t)1 << low % 19) + (low >> 5) % 35 - 17 * (low % 19 > 4);
    default:
        if (low % 64 == REST) return 1 + low / 64;
        if (low % 64 == 0) return (low & 64 ? SIZE_MAX : PTRDIFF_MAX) - low / 128;
        if (low % 64 == 32) return low * 8300;
        return low * 1024;
    }
}

/* The bytes of a reap's hole. */
static size_t left_in(const void *handle)
{
#if FUZZ_PUBLIC
    const struct reap_front *front = handle;
    return handle ? (size_t)(front->end - front->bump) : 0;
#else
    const struct reap *reap = handle;
    return handle && handle_is_plain(handle) ? (size_t)(reap->bump_max - reap->bump) : 0;
#endif
}

/* Beside those some that fill a reap's hole to its last unit, or miss it by one. */
size_t size_in(int reap, uint16_t value)
{
    static const int beside[] = {0, 0, -15, -16, 0, 0, 0, 1};
    size_t left = value >> 12 == 15 && value % 64 == REST && reap >= 0 ? left_in(me->nodes[reap].handle) : 0;
    if (left > 32768) return left / 2; /* an object with a chunk of its own would leave it as it is */
    return left <= 16 ? (left ? left : size_of(value)) : left + (size_t)beside[value / 64 % 8];
}

int index_of(const struct node *node) { return (int)(node - me->nodes); }
unsigned slot_of(const struct object *object) { return (unsigned)(object - me->objects); }

struct node *node_of(const struct record *rec)
{
    struct node *node = &me->nodes[rec->reap % me->program->reaps];
    return node->handle ? node : NULL;
}

/* What a call is given for a handle: its address, or the handle itself, whose first word is the handle again.
 */
void **spelled(void **handle) { return me->by_self ? (void **)*handle : handle; }
void **handle_of(struct node *node) { return spelled(&node->handle); }

enum { PROBES = 8 };

static struct object *slot_near(const struct record *rec, unsigned i)
{
    return &me->objects[(rec->slot + i) % me->program->slots];
}

static int where(const struct object *object)
{
    return atomic_load_explicit(&object->where, memory_order_acquire);
}

struct object *empty_slot(const struct record *rec)
{
    for (unsigned i = 0; i < PROBES; i++)
        if (where(slot_near(rec, i)) == EMPTY) return slot_near(rec, i);
    return NULL;
}

struct object *live_object(const struct record *rec)
{
    for (unsigned i = 0; i < PROBES; i++)
        if (where(slot_near(rec, i)) == HOME) return slot_near(rec, i);
    return NULL;
}

struct object *reaps_object(const struct record *rec)
{
    for (unsigned i = 0; i < PROBES; i++) {
        struct object *object = slot_near(rec, i);
        if (where(object) == HOME && object->reap != NONE) return object;
    }
    return NULL;
}

/* --- contents -------------------------------------------------------------------------------- */

size_t usable_for(size_t size) { return size == 0 ? 16 : (size + 15) / 16 * 16; }

static uint64_t word(const struct object *object, size_t i)
{
    return object->seed ^ i * UINT64_C(0x9e3779b97f4a7c15);
}

/* Objects are aligned to 16. */
typedef uint64_t __attribute__((may_alias)) any_word;

void new_seed(struct object *object)
{
    object->seed = (++me->serial << 4 | me->number) * UINT64_C(0xbf58476d1ce4e5b9);
}

void fill_from(struct object *object, size_t from)
{
    for (size_t i = from; i < object->filled; i++)
        object->at[i] = (unsigned char)(word(object, i / 8) >> i % 8 * 8);
}

void fill(struct object *object)
{
    size_t size = object->filled = object->usable;
    any_word *words = (any_word *)object->at;
    new_seed(object);
    for (size_t i = 0; i < size / 8; i++) words[i] = word(object, i);
    uint64_t value = word(object, size / 8);
    memcpy(object->at + size / 8 * 8, &value, size % 8);
}

static _Noreturn void changed(const struct object *object, size_t at)
{
    failed(__FILE__, __LINE__, "an object has changed: %p, %zu bytes, at byte %zu", (void *)object->at,
           object->size, at);
}

void check_filled(const struct object *object, size_t size)
{
    size_t n = size < object->filled ? size : object->filled;
    const any_word *words = (const any_word *)object->at;
    for (size_t i = 0; i < n / 8; i++)
        if (words[i] != word(object, i)) changed(object, i * 8);
    uint64_t value = word(object, n / 8);
    if (memcmp(object->at + n / 8 * 8, &value, n % 8) != 0) changed(object, n / 8 * 8);
}

/* --- objects --------------------------------------------------------------------------------- */

static void link_newest(struct object *object, struct node *node)
{
    object->newer = NULL;
    object->older = node->newest;
    if (node->newest) node->newest->newer = object;
    node->newest = object;
    if (!node->oldest) node->oldest = object;
    node->live += object->counted = object->usable;
    node->objects++;
}

static void unlink_object(struct object *object)
{
    if (object->reap == NONE) return;
    struct node *node = &me->nodes[object->reap];
    *(object->newer ? &object->newer->older : &node->newest) = object->older;
    *(object->older ? &object->older->newer : &node->oldest) = object->newer;
    node->live -= object->counted;
    node->objects--;
}

/* reapOf looks at a reap that its thread changes just now: memory stays meanwhile, and each word that it
 * reads is checked before it is used, whatever time it is of. So ThreadSanitizer is told not to look at its
 * reads. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#else
#define AnnotateIgnoreReadsBegin(file, line) ((void)0)
#define AnnotateIgnoreReadsEnd(file, line) ((void)0)
#endif

int reap_of(const void *pointer, void **owner)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    int result = reapOf(pointer, owner);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return result;
}

static void measure(struct object *object)
{
    CHECK((uintptr_t)object->at % 16 == 0, "not aligned to 16: %p", (void *)object->at);
    if (object->reap == NONE) {
#if FUZZ_SANITIZED
        object->usable = hoard_usable_size(object->at);
#else
        extern size_t malloc_usable_size(void *block);
        object->usable = object->hoards ? hoard_usable_size(object->at) : malloc_usable_size(object->at);
#endif
        CHECK(object->usable >= object->size, "usable size %zu of a block of %zu", object->usable,
              object->size);
        return;
    }
    void *owner;
    object->usable = reapUsableSize(object->at);
    CHECK(object->usable == usable_for(object->size), "reapUsableSize is %zu of an object of %zu",
          object->usable, object->size);
    CHECK(reap_of(object->at + object->usable - 1, &owner) == 0, "reapOf knows no owner of a live object");
    CHECK(owner == me->nodes[object->reap].handle, "reapOf names another reap");
}

void object_place(struct object *object, int reap, void *at, size_t size)
{
    object->reap = reap;
    object->at = at;
    object->size = size;
    object->hoards = false;
    object->depth = reap == NONE ? 0 : me->nodes[reap].depth;
    measure(object);
    if (reap != NONE) link_newest(object, &me->nodes[reap]);
    atomic_store_explicit(&object->where, HOME, memory_order_release);
}

void object_enter(struct object *object, int reap, void *at, size_t size)
{
    object_place(object, reap, at, size);
    fill(object);
}

void object_replaced(struct object *object, void *at, size_t size)
{
    bool moved = at != object->at;
    struct node *node = object->reap == NONE ? NULL : &me->nodes[object->reap];
    if (node && moved) unlink_object(object);
    if (node && !moved) node->live -= object->counted;
    object->at = at;
    object->size = size;
    measure(object);
    if (node && moved) object->depth = node->depth;
    if (node && moved) link_newest(object, node);
    if (node && !moved) node->live += object->counted = object->usable;
}

void object_resized(struct object *object, void *at, size_t size)
{
    object_replaced(object, at, size);
    fill(object);
}

/* Its builder begins anew, as the program has to see to. */
static void forget_builder(struct object *object)
{
    *object->builder = (struct builder){{NULL, 0, 0}, NULL, false};
    object->builder = NULL;
}

void object_leave(struct object *object)
{
    unlink_object(object);
    if (object->builder) forget_builder(object);
    atomic_store_explicit(&object->where, EMPTY, memory_order_release);
}

void object_to(struct object *object, int reap, unsigned depth)
{
    unlink_object(object);
    object->reap = reap;
    object->depth = depth;
    link_newest(object, &me->nodes[reap]);
}

void object_home(struct object *object)
{
    me->abroad--;
    if (object->reap != NONE) { /* it may have another size now */
        me->nodes[object->reap].live += object->usable - object->counted;
        if (object->usable != object->counted) me->nodes[object->reap].pending += object->counted;
        object->counted = object->usable;
    }
    atomic_store_explicit(&object->where, HOME, memory_order_release);
}

void object_gone(struct object *object)
{
    me->abroad--;
    if (object->reap != NONE) me->nodes[object->reap].pending += object->usable;
    object_leave(object);
}

void reclaim(void)
{
    for (unsigned i = 0; me->abroad && i < me->program->slots; i++)
        if (where(&me->objects[i]) == GONE) object_gone(&me->objects[i]);
}

/* --- the tree -------------------------------------------------------------------------------- */

bool is_below(int reap, int top)
{
    for (; reap >= 0; reap = me->nodes[reap].parent)
        if (reap == top) return true;
    return false;
}

size_t live_below(int top)
{
    size_t bytes = 0;
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && is_below(i, top)) bytes += me->nodes[i].live;
    return bytes;
}

/* Returns true if a reap below top goes when top is ended, or rewound. */
static bool goes(int reap, int top, unsigned depth)
{
    if (reap == top) return depth == 0;
    while (me->nodes[reap].parent != top) reap = me->nodes[reap].parent;
    return me->nodes[reap].born > depth || depth == 0;
}

/* depth 0: all of it; else what was made since so many marks were open. */
bool may_end(int top, unsigned depth, bool rewinds)
{
    struct node *node = &me->nodes[top];
    if (node->going || (node->entered && !rewinds)) return false;
    for (int i = 0; i < REAPS; i++) {
        struct node *it = &me->nodes[i];
        if (!it->handle || !is_below(i, top)) continue;
        if (i != top && it->going) return false;
        if (i != top && it->entered && (!rewinds || goes(i, top, depth))) return false;
        if (i != top && it->is_public) return false;
    }
    return true;
}

void forget_objects(struct node *node, unsigned depth)
{
    for (struct object *older, *object = node->newest; object && (!depth || object->depth >= depth);
         object = older) {
        older = object->older;
        CHECK(where(object) == HOME, "the driver: an object is abroad");
        object_leave(object);
    }
}

void forget_reap(int reap)
{
    struct node *node = &me->nodes[reap];
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && me->nodes[i].parent == reap) forget_reap(i);
    CHECK(!node->cleanups, "a function of reapOnDestroy was not called");
    forget_objects(node, 0);
    node->handle = NULL;
}

/* --- limits ---------------------------------------------------------------------------------- */

void check_limits(void)
{
    for (int i = 0; i < REAPS; i++) {
        const struct node *node = &me->nodes[i];
        if (!node->handle || !node->limit || node->is_public || any_abroad()) continue;
        size_t live = live_below(i);
        CHECK(live <= node->limit / 16 * 16, "a limit is exceeded: %zu bytes live below %zu", live,
              node->limit);
    }
}

size_t pending_below(int top)
{
    size_t bytes = 0;
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && is_below(i, top)) bytes += me->nodes[i].pending;
    return bytes;
}

bool is_limited(int reap)
{
    for (; reap >= 0; reap = me->nodes[reap].parent)
        if (me->nodes[reap].limit || me->nodes[reap].bounded) return true;
    return reap == ELSEWHERE;
}

static unsigned reaps_below(int top)
{
    unsigned count = 0;
    for (int i = 0; i < REAPS; i++) count += me->nodes[i].handle && is_below(i, top);
    return count;
}

static bool may_refuse(int reap, int from, size_t more, unsigned newcomers)
{
    int i = reap;
    if (any_abroad()) return true; /* what others have freed counts until it is noticed */
    for (; i >= 0; i = me->nodes[i].parent) {
        if (from >= 0 && is_below(from, i)) return false;
        if (me->nodes[i].is_public) return true;
        size_t limit = me->nodes[i].limit, room = limit / 16 * 16;
        if (!limit) continue;
        if (reaps_below(i) + newcomers > 1) room -= limit / 16 / 16 * 16;
        if (live_below(i) + pending_below(i) + more > room) return true;
    }
    return i == ELSEWHERE;
}

void check_refused(int reap, int from, size_t more, unsigned newcomers, size_t size)
{
    CHECK(errno == ENOMEM, "refused with errno %d", errno);
    if (size > PTRDIFF_MAX / 2) return; /* no computer has that */
    if (reap >= 0 && me->nodes[reap].bounded) return;
    if (reap == NONE) CHECK(size >= 1 << 20, "malloc of %zu bytes is refused", size);
    if (reap == NONE) return;
    CHECK(may_refuse(reap, from, more, newcomers), "refused without a reason: %zu bytes", more);
}

/* --- all of a reap --------------------------------------------------------------------------- */

struct tally {
    size_t bytes, objects;
    int reap;
};

/* Objects of a reap, by address: an open table, made anew for each look. */
enum { TABLE = 16384 };
static __thread const struct object *table[TABLE];

static unsigned hash(const void *at) { return (unsigned)((uintptr_t)at / 16 * 2654435761u) % TABLE; }

static int tally_object(void *at, size_t size, void *arg)
{
    struct tally *tally = arg;
    unsigned i = hash(at);
    while (table[i] && table[i]->at != at) i = (i + 1) % TABLE;
    CHECK(table[i], "reapWalk shows an object that is not alive: %p, %zu bytes", at, size);
    CHECK(table[i]->usable == size, "reapWalk shows %zu bytes of %zu", size, table[i]->usable);
    tally->bytes += size;
    tally->objects++;
    return 0;
}

static bool tabulate(const struct node *node)
{
    memset(table, 0, sizeof table);
    for (const struct object *object = node->newest; object; object = object->older) {
        if (where(object) != HOME) return false;
        check_filled(object, object->filled);
        unsigned i = hash(object->at);
        while (table[i]) i = (i + 1) % TABLE;
        table[i] = object;
    }
    return true;
}

size_t children_of(int reap)
{
    size_t count = 0;
    for (int i = 0; i < REAPS; i++) count += me->nodes[i].handle && me->nodes[i].parent == reap;
    return count;
}

void name_of(const struct node *node, char *text)
{
    for (unsigned i = 0; i < node->name_size; i++) text[i] = (char)('a' + (node->name_seed + i) % 26);
    text[node->name_size] = '\0';
}

static void check_name(struct node *node)
{
    char text[4200];
    const char *name = reapName(handle_of(node));
    name_of(node, text);
    if (node->named)
        CHECK(name && strcmp(name, text) == 0, "reapName is not what reapSetName was given");
    else
        CHECK(!name, "reapName of a reap without a name");
}

void look_at_all(void)
{
    struct reap_stats stats;
    for (int i = 0; i < REAPS; i++) {
        if (!me->nodes[i].handle) continue;
        reapStats(handle_of(&me->nodes[i]), &stats);
        me->nodes[i].pending = 0;
    }
}

static void check_validity(void *handle)
{
#if !FUZZ_PUBLIC
    if (any_abroad()) return;
    look_at_all(); /* equations are of all below */
    const char *why = NULL;
    const struct reap *reap = handle_is_plain(handle) ? handle : ((struct reap_face *)handle)->reap;
    CHECK(reap_is_valid(reap, &why), "does not hold: %s", why);
#else
    (void)handle;
#endif
}

void check_node(struct node *node)
{
    struct reap_stats stats;
    struct tally tally = {0, 0, index_of(node)};
    if (!node->is_public) check_validity(node->handle);
    CHECK(reapStats(handle_of(node), &stats) == 0, "reapStats");
    node->pending = 0;
    CHECK(stats.limit == node->limit, "reapStats: a limit of %zu for %zu", stats.limit, node->limit);
    CHECK(reapParent(handle_of(node)) == node->parent_handle, "reapParent");
    if (!node->is_public)
        CHECK(stats.children == children_of(index_of(node)), "reapStats: %zu children for %zu",
              stats.children, children_of(index_of(node)));
    CHECK(stats.peak_chunk_bytes >= stats.chunk_bytes, "reapStats: the peak is less than what is held");
    check_name(node);
    if (!tabulate(node)) return; /* some are abroad */
    CHECK(stats.live_bytes == node->live, "reapStats: %zu bytes live for %zu", stats.live_bytes, node->live);
    CHECK(stats.live_objects == node->objects, "reapStats: %zu objects for %zu", stats.live_objects,
          node->objects);
    CHECK(reapWalk(handle_of(node), tally_object, &tally) == 0, "reapWalk gives what fn did not");
    CHECK(tally.bytes == node->live && tally.objects == node->objects, "reapWalk leaves out %zu objects",
          node->objects - tally.objects);
}

void check_all(void)
{
    reclaim();
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle) check_node(&me->nodes[i]);
    for (unsigned i = 0; i < me->program->slots; i++)
        if (where(&me->objects[i]) == HOME) check_filled(&me->objects[i], me->objects[i].filled);
}
