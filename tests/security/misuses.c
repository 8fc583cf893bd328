/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of heap misuse, as a table: `misuses list` prints it, `misuses KIND SIZE` commits one.
 *
 * The program is linked to no malloc of ours, so that any malloc can be preloaded. With REAPS it is linked to
 * libreap, its blocks are objects of a reap, and the table has the misuses of handles as well.
 */
#include "security/misuses.h"

#include <malloc.h>
#include <sys/mman.h>

enum { SMALL = 64, MEDIUM = 8192, LARGE = 1 << 20, PAGE = 4096 };

#ifdef REAPS
#include "reap.h"
static void *reap;
static void *take(size_t size) { return reapMalloc(&reap, OPAQUE(size)); }
static void *take_zeroed(size_t size) { return reapCalloc(&reap, 1, OPAQUE(size)); }
static void give(void *block) { reapFree(&reap, OPAQUE(block)); }
static void *resize(void *block, size_t size) { return reapRealloc(&reap, OPAQUE(block), OPAQUE(size)); }
static size_t room_of(void *block) { return reapUsableSize(OPAQUE(block)); }
#else
static void *take(size_t size) { return malloc(OPAQUE(size)); }
static void *take_zeroed(size_t size) { return calloc(1, OPAQUE(size)); }
static void give(void *block) { free(OPAQUE(block)); }
static void *resize(void *block, size_t size) { return realloc(OPAQUE(block), OPAQUE(size)); }
static size_t room_of(void *block) { return malloc_usable_size(OPAQUE(block)); }
#endif

/* --- what all kinds use ------------------------------------------------------------------------------ */

/* How many blocks of a size are enough to come round: more than a page or a cache of any malloc here has. */
static size_t many(size_t size) { return size <= SMALL ? 3000 : size <= MEDIUM ? 300 : 20; }

/* Live blocks, one behind the other where the malloc puts them so. The victim is one of the middle. */
enum { FIELD = 33, MIDDLE = 16 };
static struct piece field[FIELD];

static unsigned char *set_up(size_t size)
{
    for (size_t i = 0; i < FIELD; i++) field[i] = piece_of(take(size), size);
    return field[MIDDLE].start;
}

static bool others_are_whole(void)
{
    for (size_t i = 0; i < FIELD; i++)
        if (i != MIDDLE && !piece_is_whole(field[i])) return false;
    return true;
}

static void take_down(void)
{
    for (size_t i = 0; i < FIELD; i++)
        if (i != MIDDLE) give(field[i].start);
}

/* Frees every second block of the field, so that no malloc keeps the victim's place for the lack of free ones
 * beside. */
static void thin_out(void)
{
    for (size_t i = 1; i < FIELD; i += 2) {
        give(field[i].start);
        field[i].size = 0;
    }
}

/* Allocates and frees what others would, and looks whether two live blocks share bytes. `live` is somebody's.
 */
static void look_around(size_t size, struct piece live)
{
    static struct piece blocks[3000];
    for (unsigned round = 0; round < 3; round++) {
        size_t wanted = round == 1 ? size / 2 + 1 : size, n = many(size);
        for (size_t i = 0; i < n; i++) blocks[i] = piece_of(take(wanted), wanted);
        for (size_t i = 0; i < n; i++)
            if (!piece_is_whole(blocks[i])) missed("two live blocks share bytes");
        if (!piece_is_whole(live)) missed("somebody's live bytes were given away");
        for (size_t i = 0; i < n; i++) give(blocks[i].start);
    }
    if (!piece_is_whole(live)) missed("somebody's live bytes were changed");
}

/* Allocates and frees until a block lies at `place` again. Returns false if 20,000 blocks or 64 MiB did not.
 */
static bool comes_again(size_t size, const unsigned char *place)
{
    enum { BATCH = 20 };
    size_t blocks = (size_t)64 << 20 > 20000 * size ? 20000 : ((size_t)64 << 20) / size;
    bool again = false;
    for (size_t done = 0; done < blocks && !again; done += BATCH) {
        unsigned char *batch[BATCH];
        for (size_t i = 0; i < BATCH; i++) {
            batch[i] = take(size);
            again |= batch[i] <= place && place < batch[i] + size;
        }
        for (size_t i = 0; i < BATCH; i++) give(batch[i]);
    }
    return again;
}

/* Frees that happen meanwhile: enough for a cache to be over. */
static void others_go_on(size_t size)
{
    unsigned char *blocks[100];
    size_t n = size < LARGE ? 100 : 16;
    for (size_t i = 0; i < n; i++) blocks[i] = take(size);
    for (size_t i = 0; i < n; i++) give(blocks[i]);
}

/* A thread that waits for its turn: it was made before the block was free, so that its own memory lies
 * elsewhere. */
static pthread_t thread;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *gives(void *block)
{
    pthread_mutex_lock(&turn);
    give(block);
    return NULL;
}

static void another_thread_for(void *block)
{
    pthread_mutex_lock(&turn);
    if (pthread_create(&thread, NULL, gives, block) != 0) abort();
}

static void give_by_another_thread(void)
{
    pthread_mutex_unlock(&turn);
    pthread_join(thread, NULL);
}

static const struct piece nobodys; /* no bytes */

/* --- frees ------------------------------------------------------------------------------------------- */

enum { AT_ONCE, ANOTHER_BETWEEN, HUNDRED_BETWEEN, BY_ANOTHER_THREAD, BY_ENDED_THREAD, BY_REALLOC, REUSED };

static void free_twice(size_t size, long how)
{
    unsigned char *block = set_up(size);
    if (how == BY_ENDED_THREAD || how == BY_ANOTHER_THREAD) another_thread_for(block);
    if (how == BY_ENDED_THREAD)
        give_by_another_thread();
    else
        give(block);
    struct piece live = nobodys;
    if (how == ANOTHER_BETWEEN) give(take(size)), give(field[0].start), field[0] = piece_of(take(size), size);
    if (how == HUNDRED_BETWEEN) others_go_on(size);
    if (how == REUSED) thin_out();
    if (how == REUSED)
        for (size_t i = 0; i < many(size) && live.start != block; i++) live = piece_of(take(size), size);
    if (how == BY_ANOTHER_THREAD)
        give_by_another_thread();
    else if (how == BY_REALLOC)
        live = piece_of(resize(block, size * 2), size * 2);
    else
        give(block);
    look_around(size, live);
    if (!others_are_whole()) missed("a neighbour's bytes were changed");
    if (how == REUSED && live.start == block) missed("the new owner's block was freed");
    harmless("no block was given out twice");
}

/* A free of an address in or near a live block. */
static void free_near(size_t size, long offset)
{
    unsigned char *block = set_up(size);
    if (offset == -1) offset = (long)(size / 2);
    if (offset == -2) offset = (long)size;
    give(block + offset);
    look_around(size, field[MIDDLE]);
    if (!others_are_whole()) missed("a neighbour's bytes were changed");
    harmless("the free had no effect");
}

static void free_before(size_t size, long offset) { free_near(size, -offset * 16); }

static void free_near_by_thread(size_t size, long offset)
{
    unsigned char *block = set_up(size);
    another_thread_for(block + offset);
    give_by_another_thread();
    look_around(size, field[MIDDLE]);
    harmless("the free had no effect");
}

static void resize_near(size_t size, long offset)
{
    unsigned char *block = set_up(size);
    unsigned char *moved = resize(block + offset, size * 2);
    look_around(size, piece_of(moved, size * 2));
    if (moved) missed("it was resized");
    harmless("it was refused");
}

enum { STACK, STATIC, FORGED, CODE, MAPPED, WILD, LOW, TOP };

static void free_foreign(size_t size, long what)
{
    static _Alignas(16) unsigned char text[4096];
    static _Alignas(16) uint64_t forged[512];
    _Alignas(16) unsigned char local[256];
    struct piece live = nobodys;
    void *pointer = NULL;
    set_up(size);
    switch (what) {
    case STACK: live = piece_of(local, sizeof local), pointer = local + 64; break;
    case STATIC: live = piece_of(text, sizeof text), pointer = text + 64; break;
    case FORGED: /* what a chunk's header of glibc's would be */
        for (size_t i = 0; i < 512; i += 2) forged[i] = 0, forged[i + 1] = 0x51;
        pointer = forged + 16;
        break;
    case CODE: pointer = (void *)((uintptr_t)&set_up & ~(uintptr_t)15); break;
    case MAPPED: {
        void *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        live = piece_of(mapped, 1 << 20), pointer = (char *)mapped + PAGE;
        break;
    }
    case WILD: pointer = (void *)0x123456789000; break;
    case LOW: pointer = (void *)0x40; break;
    case TOP: pointer = (void *)0xdeadbeefdeadbee0; break;
    }
    give(pointer);
    for (size_t i = 0; what == FORGED && i < 3000; i++) {
        unsigned char *block = take(size);
        if ((unsigned char *)forged <= block && block < (unsigned char *)(forged + 512))
            missed("static memory was given out as a block");
    }
    look_around(size, live);
    harmless("the free had no effect");
}

/* --- writes and reads outside ------------------------------------------------------------------------ */

enum { LOOP = 0, COPY = 10000, UNDER = 100000 };

static void write_out(size_t size, long how)
{
    static unsigned char source[PAGE];
    memset(source, 'X', sizeof source);
    bool under = how >= UNDER;
    size_t n = (size_t)(how % UNDER % COPY);
    unsigned char *block = set_up(size), *to = OPAQUE(under ? block - n : block + size);
    size_t room = under ? 0 : room_of(block) - size;
    if (how % UNDER >= COPY)
        memcpy(to, OPAQUE(&source[0]), OPAQUE(n));
    else
        for (size_t i = 0; i < n; i++) ((volatile unsigned char *)to)[under ? n - 1 - i : i] = 'X';
    bool hurt = !others_are_whole();
    give(block);
    take_down();
    look_around(size, nobodys);
    if (hurt) missed("a neighbour's bytes were changed");
    if (n <= room) harmless("the bytes lie in the block's own room");
    missed("bytes outside were changed, and nobody looked");
}

static void read_out(size_t size, long how)
{
    static unsigned char seen[PAGE];
    bool under = how >= UNDER;
    size_t n = (size_t)(how % UNDER);
    unsigned char *block = set_up(size);
    memcpy(seen, OPAQUE(under ? block - n : block + size), OPAQUE(n));
    for (size_t i = 0; i < FIELD; i++)
        if (i != MIDDLE && piece_is_seen(field[i], seen, n)) missed("a neighbour's bytes were read");
    harmless("nobody's bytes were read");
}

/* --- use after free ---------------------------------------------------------------------------------- */

enum {
    FIRST = 0,
    LAST = 1,
    ALL = 2,
    OF = 10
}; /* plus OF times: at once, after others, after growth, after shrinking */

static unsigned char *gone(size_t size, long when)
{
    unsigned char *block = set_up(size);
    if (when < 2)
        give(block);
    else if (resize(block, when == 2 ? size * 4 : size / 4) == block && when == 2)
        harmless("it grew in its place");
    if (when == 1) others_go_on(size);
    return block;
}

static void write_freed(size_t size, long how)
{
    long what = how % OF, when = how / OF;
    unsigned char *block = gone(size, when);
    size_t from = what == LAST ? size - 8 : 0, to = what == FIRST ? 8 : size;
    if (when == 3) {
        from = size / 2; /* what a smaller block has no claim to */
        if (room_of(block) >= size) harmless("the block kept its room");
    }
    memset(OPAQUE(block + from), 'X', OPAQUE(to - from));
    thin_out();
    bool again = comes_again(size, block + from);
    look_around(size, nobodys);
    if (!others_are_whole()) missed("a neighbour's bytes were changed");
    if (again) missed("nobody looked, and the memory was given out again");
    harmless("nobody got this memory");
}

static void read_freed(size_t size, long when)
{
    static unsigned char seen[LARGE];
    unsigned char *block = gone(size, when);
    size_t from = when == 3 ? size / 2 : 0;
    memcpy(seen, OPAQUE(block + from), OPAQUE(size - from));
    if (piece_is_seen(field[MIDDLE], seen, size < PAGE ? size - from : PAGE))
        missed("the old contents were read");
    harmless("the old contents were gone");
}

/* The next owner, at once or after some. NULL if nobody got the place. */
static struct piece next_owner(size_t size, const unsigned char *block, size_t patience)
{
    struct piece next = nobodys;
    for (size_t i = 0; i < patience && next.start != block; i++) next = piece_of(take(size), size);
    return next.start == block ? next : nobodys;
}

static void write_owned(size_t size, long patience)
{
    unsigned char *block = set_up(size);
    give(block);
    if (patience > 1) thin_out(), others_go_on(size);
    struct piece next = next_owner(size, block, patience > 1 ? many(size) : 1);
    memset(OPAQUE(block), 'X', OPAQUE(size));
    if (!piece_is_whole(next)) missed("the new owner's bytes were changed");
    look_around(size, nobodys);
    harmless("nobody had got this memory");
}

static void read_owned(size_t size, long patience)
{
    static unsigned char seen[LARGE];
    unsigned char *block = set_up(size);
    give(block);
    if (patience > 1) thin_out(), others_go_on(size);
    struct piece next = next_owner(size, block, patience > 1 ? many(size) : 1);
    memcpy(seen, OPAQUE(block), OPAQUE(size));
    if (next.start && piece_is_seen(next, seen, size < PAGE ? size : PAGE))
        missed("the new owner's bytes were read");
    harmless("nobody had got this memory");
}

/* --- contents of fresh blocks ------------------------------------------------------------------------ */

enum { AGAIN, AFTER_OTHERS, GROWN, ZEROED };

static void fresh(size_t size, long how)
{
    unsigned char *block = set_up(size);
    struct piece secret = field[MIDDLE];
    give(block);
    if (how != AGAIN) thin_out();
    if (how == AFTER_OTHERS) others_go_on(size);
    if (how == ZEROED) memset(OPAQUE(block), 'X', OPAQUE(size));
    for (size_t i = 0; i < many(size); i++) {
        unsigned char *next = how == ZEROED ? take_zeroed(size) : take(how == GROWN ? size / 2 : size);
        if (how == GROWN) next = resize(next, size);
        for (size_t k = 0; how == ZEROED && k < size; k++)
            if (next[k]) missed("calloc's memory is not zero");
        if (how != ZEROED && piece_is_seen(secret, next, size < PAGE ? size : PAGE))
            missed("the old contents were read");
    }
    harmless("no old contents were read");
}

/* --- size 0 and impossible sizes --------------------------------------------------------------------- */

static void zero_freed(size_t size, long how)
{
    unsigned char *block = take(0);
    if (how == BY_REALLOC) {
        block = take(64);
        if (resize(block, 0) == block) harmless("it stays a block");
    } else
        give(block);
    if (!block) harmless("there is no block of size 0");
    give(block);
    look_around(8, nobodys);
    look_around(64, nobodys);
    (void)size;
    harmless("no block was given out twice");
}

static void zero_written(size_t size, long n)
{
    (void)size;
    write_out(0, n);
}

enum {
    ALL_BITS,
    HALF,
    ALMOST,
    PRODUCT,
    SMALL_PRODUCT,
    RESIZED,
    RESIZED_PRODUCT,
    ALIGNED,
    HUGE_ALIGNMENT,
    ODD_ALIGNMENT
};

static void impossible(size_t size, long what)
{
    (void)size;
    struct piece live = piece_of(take(64), 64);
    void *got = NULL;
    errno = 0;
    switch (what) {
    case ALL_BITS: got = take(SIZE_MAX); break;
    case HALF: got = take((size_t)PTRDIFF_MAX + 1); break;
    case ALMOST: got = take(SIZE_MAX - 32); break;
    case RESIZED: got = resize(live.start, SIZE_MAX - 8); break;
#ifdef REAPS
    case PRODUCT: got = reapCalloc(&reap, OPAQUE((size_t)1 << 33), (size_t)1 << 33); break;
    case SMALL_PRODUCT: got = reapCalloc(&reap, OPAQUE(SIZE_MAX / 8 + 2), 8); break;
    case ALIGNED: got = reapAlignedAlloc(&reap, 64, OPAQUE(SIZE_MAX - 63)); break;
    case HUGE_ALIGNMENT: got = reapAlignedAlloc(&reap, OPAQUE((size_t)1 << 63), 64); break;
    case ODD_ALIGNMENT: got = reapAlignedAlloc(&reap, OPAQUE((size_t)48), 64); break;
#else
    case PRODUCT: got = calloc(OPAQUE((size_t)1 << 33), (size_t)1 << 33); break;
    case SMALL_PRODUCT: got = calloc(OPAQUE(SIZE_MAX / 8 + 2), 8); break;
    case RESIZED_PRODUCT: got = reallocarray(live.start, OPAQUE(SIZE_MAX / 8 + 2), 8); break;
    case ALIGNED: got = aligned_alloc(64, OPAQUE(SIZE_MAX - 63)); break;
    case HUGE_ALIGNMENT: got = memalign(OPAQUE((size_t)1 << 63), 64); break;
    case ODD_ALIGNMENT: errno = posix_memalign(&got, OPAQUE((size_t)48), 64); break;
#endif
    }
    if (got) missed("it was granted");
    look_around(64, live);
    harmless(errno ? "refused with errno" : "refused without errno");
}

/* --- reaps alone ------------------------------------------------------------------------------------- */
#ifdef REAPS
enum { DESTROY_TWICE, ALLOCATE, CLEAR, CHILD_OF, FREE_IN, RESIZE_IN, CHILD_USED, NULL_HANDLE, FORGED_HANDLE };

/* Ordinary reaps lie 128 behind a multiple of 1024, and reapMalloc knows them by that bit. */
static void handle(size_t size, long what)
{
    static _Alignas(1024) uint64_t forged[512];
    void *copy = NULL, *parent = NULL, *made = NULL;
    set_up(size);
    if (what == CHILD_USED) reapCreate(&parent, NULL);
    reapCreate(&copy, what == CHILD_USED ? &parent : NULL);
    struct piece object = piece_of(reapMalloc(&copy, size), size);
    void *stale = OPAQUE(copy);
    if (what == CHILD_USED)
        reapDestroy(&parent);
    else if (what < NULL_HANDLE)
        reapDestroy(&copy);
    if (what == NULL_HANDLE) stale = NULL;
    if (what >= FORGED_HANDLE) stale = forged + (what - FORGED_HANDLE);
    stale = OPAQUE(stale);
    switch (what) {
    case DESTROY_TWICE: reapDestroy(&stale); break;
    case CLEAR: reapFreeAll(&stale); break;
    case CHILD_OF: reapCreate(&made, &stale); break;
    case FREE_IN: reapFree(&stale, object.start); break;
    case RESIZE_IN: made = reapRealloc(&stale, object.start, size * 2); break;
    default: made = reapMalloc(&stale, size);
    }
    look_around(size, nobodys);
    missed(made ? "a reap that is none gave memory" : "the call came back");
}

enum { OTHER_REAP, MALLOCS, CLEARED, DESTROYED, REWOUND };

static void stale_object(size_t size, long what)
{
    void *other = NULL, *live = NULL;
    reap_mark mark;
    reapCreate(&other, NULL);
    set_up(size);
    if (what == REWOUND) reapMark(&other, &mark);
    struct piece object = piece_of(what == MALLOCS ? malloc(size) : reapMalloc(&other, size), size);
    if (what == CLEARED) reapFreeAll(&other);
    if (what == DESTROYED) reapDestroy(&other);
    if (what == REWOUND) reapRewind(&other, &mark);
    if (other) live = reapMalloc(&other, 32);
    give(object.start);
    look_around(size, what == OTHER_REAP || what == MALLOCS ? object : nobodys);
    harmless(live ? "the free had no effect" : "the free had no effect, and no other reap is there");
}

/* A use of an object after its reap was cleared or destroyed. */
static void use_stale(size_t size, long how)
{
    static unsigned char seen[LARGE];
    void *other = NULL;
    reapCreate(&other, NULL);
    struct piece object = piece_of(reapMalloc(&other, size), size);
    if (how % OF == CLEARED)
        reapFreeAll(&other);
    else
        reapDestroy(&other);
    if (how >= OF) {
        memset(OPAQUE(object.start), 'X', OPAQUE(size));
        if (!other) reapCreate(&other, NULL);
        void *kept = reap;
        reap = other;
        bool again = comes_again(size, object.start);
        look_around(size, nobodys);
        reap = kept;
        if (again) missed("nobody looked, and the memory was given out again");
        harmless("nobody got this memory");
    }
    memcpy(seen, OPAQUE(object.start), OPAQUE(size));
    if (piece_is_seen(object, seen, size < PAGE ? size : PAGE)) missed("the old contents were read");
    harmless("the old contents were gone");
}
#endif

/* --- the table --------------------------------------------------------------------------------------- */

#define OUT(name, what, flags)                                                                               \
    {"write-" name "-1-loop", what " by 1 byte, loop", write_out, (flags) + 1, true},                        \
        {"write-" name "-1-copy", what " by 1 byte, memcpy", write_out, (flags) + COPY + 1, true},           \
        {"write-" name "-8-loop", what " by 8 bytes, loop", write_out, (flags) + 8, true},                   \
        {"write-" name "-8-copy", what " by 8 bytes, memcpy", write_out, (flags) + COPY + 8, true},          \
        {"write-" name "-32-loop", what " by 32 bytes, loop", write_out, (flags) + 32, true},                \
        {"write-" name "-32-copy", what " by 32 bytes, memcpy", write_out, (flags) + COPY + 32, true},       \
        {"write-" name "-page-loop", what " by a page, loop", write_out, (flags) + PAGE, true},              \
    {                                                                                                        \
        "write-" name "-page-copy", what " by a page, memcpy", write_out, (flags) + COPY + PAGE, true        \
    }

static const struct {
    const char *name, *what;
    void (*run)(size_t size, long argument);
    long argument;
    bool sized; /* small, medium and large; else once */
} kinds[] = {
    {"", "Frees of what is free", NULL, 0, false},
    {"twice", "freed twice, at once", free_twice, AT_ONCE, true},
    {"twice-another", "freed twice, another block between", free_twice, ANOTHER_BETWEEN, true},
    {"twice-hundred", "freed twice, a hundred frees between", free_twice, HUNDRED_BETWEEN, true},
    {"twice-by-thread", "freed, then by another thread", free_twice, BY_ANOTHER_THREAD, true},
    {"twice-after-thread", "freed by a thread that ended, then again", free_twice, BY_ENDED_THREAD, true},
    {"twice-realloc", "freed, then resized", free_twice, BY_REALLOC, true},
    {"twice-reused", "freed twice, with a new owner between", free_twice, REUSED, true},
    {"zero-twice", "size 0, freed twice", zero_freed, AT_ONCE, false},
    {"zero-realloc", "resized to 0, then freed", zero_freed, BY_REALLOC, false},

    {"", "Frees of what is no block", NULL, 0, false},
    {"interior-1", "1 byte inside (misaligned)", free_near, 1, true},
    {"interior-8", "8 bytes inside (misaligned)", free_near, 8, true},
    {"interior-16", "16 bytes inside", free_near, 16, true},
    {"interior-middle", "the middle of a block", free_near, -1, true},
    {"interior-thread", "16 bytes inside, by another thread", free_near_by_thread, 16, true},
    {"interior-realloc", "16 bytes inside, resized", resize_near, 16, true},
    {"behind", "the address behind a block", free_near, -2, true},
    {"before", "16 bytes before a block", free_before, 1, true},
    {"foreign-stack", "the stack", free_foreign, STACK, false},
    {"foreign-static", "static memory", free_foreign, STATIC, false},
    {"foreign-forged", "static memory with a forged header", free_foreign, FORGED, false},
    {"foreign-code", "a function", free_foreign, CODE, false},
    {"foreign-mapped", "inside a mapping of the program", free_foreign, MAPPED, false},
    {"foreign-wild", "an address without memory", free_foreign, WILD, false},
    {"foreign-low", "0x40", free_foreign, LOW, false},
    {"foreign-top", "an address that cannot be", free_foreign, TOP, false},

    {"", "Writes behind a block", NULL, 0, false},
    OUT("over", "behind", 0),
    {"write-zero-1", "size 0, by 1 byte", zero_written, 1, false},
    {"write-zero-8", "size 0, by 8 bytes", zero_written, 8, false},
    {"write-zero-32", "size 0, by 32 bytes", zero_written, 32, false},
    {"", "Writes before a block", NULL, 0, false},
    OUT("under", "before", UNDER),

    {"", "Reads outside", NULL, 0, false},
    {"read-over-8", "behind by 8 bytes", read_out, 8, true},
    {"read-over-page", "behind by a page", read_out, PAGE, true},
    {"read-under-8", "before by 8 bytes", read_out, UNDER + 8, true},
    {"read-under-page", "before by a page", read_out, UNDER + PAGE, true},

    {"", "Writes after free", NULL, 0, false},
    {"write-freed-first", "the first 8 bytes", write_freed, FIRST, true},
    {"write-freed-last", "the last 8 bytes", write_freed, LAST, true},
    {"write-freed-all", "all bytes", write_freed, ALL, true},
    {"write-freed-first-later", "the first 8 bytes, after a hundred frees", write_freed, FIRST + OF, true},
    {"write-freed-all-later", "all bytes, after a hundred frees", write_freed, ALL + OF, true},
    {"write-freed-grown", "all bytes, after it was moved to grow", write_freed, ALL + 2 * OF, true},
    {"write-freed-shrunk", "the tail, after it shrank", write_freed, ALL + 3 * OF, true},
    {"write-owned", "all bytes, after the next allocation", write_owned, 1, true},
    {"write-owned-later", "all bytes, after it was reused at last", write_owned, 2, true},
    {"write-calloc", "all bytes, then calloc", fresh, ZEROED, true},

    {"", "Reads after free, and of old contents", NULL, 0, false},
    {"read-freed", "all bytes", read_freed, 0, true},
    {"read-freed-later", "all bytes, after a hundred frees", read_freed, 1, true},
    {"read-freed-grown", "all bytes, after it was moved to grow", read_freed, 2, true},
    {"read-freed-shrunk", "the tail, after it shrank", read_freed, 3, true},
    {"read-owned", "all bytes, after the next allocation", read_owned, 1, true},
    {"read-owned-later", "all bytes, after it was reused at last", read_owned, 2, true},
    {"fresh", "a fresh block, at once", fresh, AGAIN, true},
    {"fresh-later", "a fresh block, after a hundred frees", fresh, AFTER_OTHERS, true},
    {"fresh-grown", "what a block grew by", fresh, GROWN, true},

    {"", "Impossible sizes", NULL, 0, false},
    {"size-all-bits", "malloc, all bits", impossible, ALL_BITS, false},
    {"size-half", "malloc, half of all addresses", impossible, HALF, false},
    {"size-almost", "malloc, 32 below all bits", impossible, ALMOST, false},
    {"size-product", "calloc, a product that wraps to 0", impossible, PRODUCT, false},
    {"size-small-product", "calloc, a product that wraps to 8", impossible, SMALL_PRODUCT, false},
    {"size-resized", "realloc, almost all bits", impossible, RESIZED, false},
#ifndef REAPS
    {"size-resized-product", "reallocarray, a product that wraps", impossible, RESIZED_PRODUCT, false},
#endif
    {"size-aligned", "aligned_alloc, a sum that wraps", impossible, ALIGNED, false},
    {"alignment-huge", "memalign, an alignment of 2^63", impossible, HUGE_ALIGNMENT, false},
    {"alignment-odd", "posix_memalign, an alignment of 48", impossible, ODD_ALIGNMENT, false},
#ifdef REAPS
    {"", "Handles", NULL, 0, false},
    {"handle-destroy", "destroyed twice", handle, DESTROY_TWICE, true},
    {"handle-malloc", "destroyed, then asked for memory", handle, ALLOCATE, true},
    {"handle-clear", "destroyed, then cleared", handle, CLEAR, true},
    {"handle-child", "destroyed, then made a parent", handle, CHILD_OF, true},
    {"handle-free", "destroyed, then an object freed in it", handle, FREE_IN, true},
    {"handle-realloc", "destroyed, then an object resized in it", handle, RESIZE_IN, true},
    {"handle-with-parent", "destroyed with its parent, then asked for memory", handle, CHILD_USED, true},
    {"handle-null", "NULL, asked for memory", handle, NULL_HANDLE, false},
    {"handle-forged", "static memory, asked for memory", handle, FORGED_HANDLE, false},
    {"handle-forged-reap", "static memory where a reap may lie, the same", handle, FORGED_HANDLE + 16, false},
    {"", "Objects of others", NULL, 0, false},
    {"object-other", "freed in another reap", stale_object, OTHER_REAP, true},
    {"object-mallocs", "a block of malloc", stale_object, MALLOCS, true},
    {"object-cleared", "freed after its reap was cleared", stale_object, CLEARED, true},
    {"object-destroyed", "freed after its reap was destroyed", stale_object, DESTROYED, true},
    {"object-rewound", "freed after a rewind", stale_object, REWOUND, true},
    {"write-cleared", "written after its reap was cleared", use_stale, CLEARED + OF, true},
    {"write-destroyed", "written after its reap was destroyed", use_stale, DESTROYED + OF, true},
    {"read-cleared", "read after its reap was cleared", use_stale, CLEARED, true},
    {"read-destroyed", "read after its reap was destroyed", use_stale, DESTROYED, true},
#endif
};

int main(int argc, char **argv)
{
    size_t n = sizeof kinds / sizeof *kinds;
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < n; i++) printf("%s|%s|%d\n", kinds[i].name, kinds[i].what, kinds[i].sized);
        return 0;
    }
    if (argc != 3) return 2;
    size_t size = strcmp(argv[2], "medium") == 0 ? MEDIUM : strcmp(argv[2], "large") == 0 ? LARGE : SMALL;
#ifdef REAPS
    reapCreate(&reap, NULL);
#endif
    give(take(size)); /* a process that has begun */
    if (strcmp(argv[1], "none") == 0) harmless("nothing was done");
    for (size_t i = 0; i < n; i++)
        if (kinds[i].run && strcmp(argv[1], kinds[i].name) == 0) kinds[i].run(size, kinds[i].argument);
    return 2;
}
