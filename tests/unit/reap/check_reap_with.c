/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_with.c: reaps made with options: in buffers and shared memory, on a source of chunks, on huge
 * pages. */
#include <stdalign.h>

#include "support/reap_fixture.h"

static void *with;

/* --- sizes, limit, name ---------------------------------------------------------------------- */

TEST(options_are_followed)
{
    struct reap_options options = {.size = sizeof options, .flags = flags_of_mode()};
    ck_assert_int_eq(reapCreateWith(&with, &reap, &options), 0);
    ck_assert_uint_eq(stats_of(with).chunk_bytes, 8192);
    ck_assert_ptr_eq(reapParent(&with), reap);
    reapDestroy(&with);
    options.first_chunk = 100000;
    options.max_chunk = 16384;
    options.limit = 200000;
    options.name = "with options";
    ck_assert_int_eq(reapCreateWith(&with, &reap, &options), 0);
    ck_assert_str_eq(reapName(&with), "with options");
    ck_assert_uint_eq(stats_of(with).limit, 200000);
    size_t first = stats_of(with).chunk_bytes, chunks = 1, objects = 0;
    ck_assert_uint_ge(first, 100000);
    while (reapMalloc(&with, 1000)) objects++;
    ck_assert_uint_eq(objects, 200000 / 1008);
    chunks = stats_of(with).chunks;
    ck_assert_uint_ge(chunks, 2);
    size_t table = reap_mode == MODE_ORDINARY ? 0 : 80;
    ck_assert_uint_le(stats_of(with).chunk_bytes, first + (chunks - 1) * 16384 + table);
    reapFreeAll(&with);
    ck_assert_str_eq(reapName(&with), "with options");
    reapDestroy(&with);
}

/* What a burst needed is not kept, however big chunks may be; what each round uses is. */
TEST(a_big_chunk_goes_after_a_burst)
{
    struct reap_options options = {.size = sizeof options, .flags = flags_of_mode(), .max_chunk = 64 << 20};
    ck_assert_int_eq(reapCreateWith(&with, NULL, &options), 0);
    for (int i = 0; i < 40000; i++) reapMalloc(&with, 1000);
    for (int round = 0; round < 3; round++) {
        reapFreeAll(&with);
        for (int i = 0; i < 100; i++) reapMalloc(&with, 1000);
    }
    ck_assert_uint_le(stats_of(with).chunk_bytes, 1 << 20);
    options.max_chunk = options.first_chunk = 2 << 20;
    void *both;
    ck_assert_int_eq(reapCreateWith(&both, NULL, &options), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4000; i++) reapMalloc(&both, 1000);
        size_t held = stats_of(both).chunk_bytes;
        reapFreeAll(&both);
        if (reap_mode != MODE_PARTS && !apart_on) ck_assert_uint_eq(stats_of(both).chunk_bytes, held);
    }
    reapDestroy(&both);
    reapDestroy(&with);
}

static void *no_chunk(size_t size, void *arg) { return size && arg ? NULL : NULL; }

TEST(options_that_make_no_sense)
{
    alignas(1024) char small[2048];
    struct reap_options good = {.size = sizeof good}, options[8];
    for (int i = 0; i < 8; i++) options[i] = good;
    options[0].size = 0;
    options[1].size = sizeof good + 8;
    options[2].flags = 1u << 31;
    options[3].first_chunk = (size_t)2 << 30;
    options[4].max_chunk = (size_t)2 << 30;
    options[5].source.take = no_chunk;
    options[6].buffer = small;
    options[6].buffer_size = sizeof small;
    options[7].buffer = small;
    for (int i = 0; i < 8; i++) {
        with = &with;
        errno = 0;
        ck_assert_int_eq(reapCreateWith(&with, NULL, &options[i]), -1);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(with);
    }
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    good.name = name;
    ck_assert_int_eq(reapCreateWith(&with, &reap, &good), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert_ptr_null(with);
    ck_assert_uint_eq(stats().children, 0);
}

/* --- a buffer -------------------------------------------------------------------------------- */

/* All of it is in the buffer, however it lies; objects large and small; and what is freed is used again. */
static void live_in(char *buffer, size_t size)
{
    size_t ends = 2 * 1023, rest = 111, reaps = 1536 + 8 + size / 64; /* whole KiBs; objects; bitmaps too */
    size_t own = ends + rest + reaps + (reap_mode != MODE_ORDINARY ? REAP_FACE : 0);
    void *owner, *copy;
    with = reap_with(&reap, .flags = flags_of_mode(), .buffer = buffer, .buffer_size = size);
    ck_assert((char *)with > buffer && (char *)with < buffer + size);
    for (int round = 0; round < 3; round++) {
        size_t bytes = 0;
        char *object, *last = NULL;
        while ((object = reapMalloc(&with, 100))) {
            ck_assert(object > buffer && object + 100 <= buffer + size);
            memset(object, round, 100);
            bytes += 112;
            last = object;
        }
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_uint_ge(bytes + own, size);
        ck_assert_int_eq(reapOf(last + 50, &owner), 0);
        ck_assert_ptr_eq(owner, with);
        reapFree(&with, last);
        ck_assert_ptr_eq(reapCalloc(&with, 10, 10), last);
        ck_assert_uint_eq(stats_of(with).chunks, 1);
        reapFreeAll(&with);
    }
    size_t large = (size - own) / 16 * 16;
    copy = reapMalloc(&with, large);
    ck_assert_ptr_nonnull(copy);
    copy = reapRealloc(&with, copy, large / 2);
    ck_assert_ptr_nonnull(copy);
    ck_assert_ptr_nonnull(reapRealloc(&with, copy, large));
    ck_assert_ptr_null(reapMalloc(&with, size));
    ck_assert_ptr_null(reapAlignedAlloc(&with, 64, errno ? SIZE_MAX - 5 : 1));
    const void *handle = with;
    reapDestroy(&with);
    reapOf(copy, &owner);
    ck_assert_ptr_ne(owner, handle);
    memset(buffer, 0, size);
}

TEST(a_reap_in_a_buffer, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    static char in_static[100000];
    char on_stack[4096 + 1023];
    live_in(on_stack, 4096);
    for (size_t i = 0; i < 1024; i += 100) live_in(on_stack + i, sizeof on_stack - i);
    live_in(in_static + 8, sizeof in_static - 8);
    char *in_malloc = malloc(3000000);
    live_in(in_malloc, 3000000);
    free(in_malloc);
    void *object = reapMalloc(&reap, 50000);
    live_in(object, 50000); /* in another reap */
}

/* A reap in shared memory: what a child process puts there its parent finds. */
TEST(a_reap_in_shared_memory, .modes = ORDINARY)
{
    size_t size = 1 << 20;
    /* The child's Memcheck knows what is in there, the parent's does not. */
    needs(!apart_on, "all objects are watched");
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    with = reap_with(NULL, .buffer = shared, .buffer_size = size);
    char **words = reapCalloc(&with, 1000, sizeof *words);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) words[i] = reapPrintf(&with, "word %d", i);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(words[999], "word 999");
    ck_assert_uint_eq(stats_of(with).live_objects, 1001);
    for (int i = 0; i < 1000; i++) reapFree(&with, words[i]);
    ck_assert_uint_eq(stats_of(with).live_objects, 1);
    reapDestroy(&with);
    munmap(shared, size);
}

/* --- a source -------------------------------------------------------------------------------- */

struct pile {
    size_t taken, given, bytes;
    size_t refuse; /* chunks that it still gives; 0: all */
};

static void *take(size_t size, void *arg)
{
    struct pile *pile = arg;
    ck_assert_uint_eq(size % 4096, 0);
    if (pile->refuse && pile->taken == pile->refuse) return NULL;
    pile->taken++;
    pile->bytes += size;
    return aligned_alloc(4096, size);
}

static void give(void *chunk, size_t size, void *arg)
{
    struct pile *pile = arg;
    pile->given++;
    pile->bytes -= size;
    memset(chunk, 0xee, size); /* it is ours again */
    free(chunk);
}

/* Its children are each process's own: what one of them leaves is nothing to the other. */
TEST(children_of_a_reap_in_shared_memory, .modes = ORDINARY)
{
    enum { SIZE = 64 * 1024, LIVES = 200 };
    char *shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *below = NULL, *lives[LIVES];
    int status;
    with = reap_with(NULL, .buffer = shared, .buffer_size = SIZE);
    pid_t child = fork();
    if (child == 0) {
        void *others[64];
        for (int i = 0; i < 64; i++) reapCreate(&others[i], NULL);
        reapCreate(&below, &with);
        reapDestroy(&below);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    for (int i = 0; i < LIVES; i++) reapCreate(&lives[i], NULL);
    reapCreate(&below, &with);
    for (int i = 0; i < LIVES; i++) ck_assert_ptr_ne(lives[i], below); /* it is nobody else's memory */
    for (int i = 0; i < LIVES; i++) assert_valid(lives[i]);
    assert_valid(below);
    reapDestroy(&below);
    for (int i = 0; i < LIVES; i++) reapDestroy(&lives[i]);
    assert_valid(with);
    reapDestroy(&with);
    munmap(shared, SIZE);
}

TEST(a_reap_on_a_source, .modes = NOT_IN_PARTS)
{
    struct pile pile = {0};
    void *owner, *objects[3000];
    with = reap_with(&reap, .flags = flags_of_mode(), .source = {take, give, &pile});
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3000; i++) objects[i] = memset(reapMalloc(&with, 200), i, 200);
        char *large = reapMalloc(&with, 100000), *aligned = reapAlignedAlloc(&with, 16384, 60000);
        ck_assert_uint_eq((uintptr_t)aligned % 16384, 0);
        large = reapRealloc(&with, memset(large, 1, 100000), 300000);
        ck_assert_int_eq(large[99999], 1);
        if (!apart_on) ck_assert_uint_eq(stats_of(with).chunk_bytes, pile.bytes);
        if (!apart_on) ck_assert_uint_eq(stats_of(with).chunks, pile.taken - pile.given);
        ck_assert_int_eq(reapOf((char *)objects[1500] + 10, &owner), 0);
        ck_assert_ptr_eq(owner, with);
        for (int i = 0; i < 3000; i++) ck_assert_int_eq(*(unsigned char *)objects[i], i & 255);
        for (int i = 0; i < 3000; i++) reapFree(&with, objects[i]);
        if (!apart_on) ck_assert_uint_eq(stats_of(with).chunk_bytes, pile.bytes);
        reapFreeAll(&with);
    }
    char *moved = reapMove(reapMalloc(&with, 50000), &with, &reap);
    ck_assert_int_eq(reapOf(moved, &owner), 0);
    ck_assert_ptr_eq(owner, reap);
    reapDestroy(&with);
    ck_assert_uint_eq(pile.taken, pile.given);
    ck_assert_uint_eq(pile.bytes, 0);
}

TEST(a_source_runs_dry, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    struct pile pile = {.refuse = 3};
    struct reap_options options = {
        .size = sizeof options, .flags = flags_of_mode(), .source = {take, give, &pile}};
    ck_assert_int_eq(reapCreateWith(&with, &reap, &options), 0);
    while (reapMalloc(&with, 500)) {
    }
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(pile.taken, 3);
    ck_assert_ptr_null(reapMalloc(&with, 500000));
    assert_valid(with);
    reapDestroy(&with);
    ck_assert_uint_eq(pile.given, 3);
    pile = (struct pile){.refuse = 1, .taken = 1};
    ck_assert_int_eq(reapCreateWith(&with, &reap, &options), -1);
    ck_assert_int_eq(errno, ENOMEM);
}

TEST(a_buffer_then_a_source, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    static char buffer[8192];
    struct pile pile = {0};
    with = reap_with(NULL, .flags = flags_of_mode(), .buffer = buffer, .buffer_size = sizeof buffer,
                     .source = {take, give, &pile});
    reapMalloc(&with, 1000);
    ck_assert_uint_eq(pile.taken, 0);
    ck_assert_ptr_nonnull(reapMalloc(&with, 100000));
    ck_assert_uint_eq(pile.taken, 1);
    for (int i = 0; i < 100; i++) reapMalloc(&with, 1000);
    ck_assert_uint_gt(pile.taken, 1);
    reapDestroy(&with);
    ck_assert_uint_eq(pile.taken, pile.given);
}

/* Chunks are never bigger than what was asked for, but for what does not fit. */
TEST(chunks_of_the_least_size, .modes = NOT_IN_PARTS)
{
    static const size_t asked[] = {1, 4096, 8192, 8193, 16384, 100000};
    struct pile pile = {0};
    struct reap_options options = {
        .size = sizeof options, .flags = flags_of_mode(), .source = {take, give, &pile}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        options.max_chunk = asked[i];
        size_t most = asked[i] < 8192 ? 8192 : asked[i];
        ck_assert_int_eq(reapCreateWith(&with, NULL, &options), 0);
        for (size_t n = 0; n < 200; n++) {
            size_t before = stats_of(with).chunk_bytes;
            reapMalloc(&with, 1000);
            ck_assert_uint_le(stats_of(with).chunk_bytes - before, most);
        }
        reapDestroy(&with);
        ck_assert_uint_eq(pile.bytes, 0);
    }
}

/* A name that the empty first chunk has no room for stays, where a chunk of the source has. */
TEST(a_long_name_in_a_small_buffer, .modes = NOT_IN_PARTS)
{
    static alignas(4096) char buffer[4096];
    char name[4096];
    struct pile pile = {0};
    struct reap_options options = {
        .size = sizeof options, .flags = flags_of_mode(), .buffer = buffer, .buffer_size = sizeof buffer};
    options.source = (struct reap_source){take, give, &pile};
    for (size_t length = 2000; length < sizeof name; length += 97) {
        memset(name, 'a', length);
        name[length] = '\0';
        ck_assert_int_eq(reapCreateWith(&with, &reap, &options), 0);
        ck_assert_int_eq(reapSetName(&with, name), 0);
        size_t held = stats_of(with).chunk_bytes;
        if (held == sizeof buffer) held += REAP_FIRST_SIZE; /* for what a round needs beside the name */
        for (int round = 0; round < 5; round++) {
            reap_mark mark;
            reapFreeAll(&with);
            ck_assert_str_eq(reapName(&with), name);
            ck_assert_uint_eq(stats_of(with).live_objects, 0);
            ck_assert_uint_le(stats_of(with).chunk_bytes, held);
            if (round == 3) reapSetLimit(&with, 100000);
            reapMark(&with, &mark);
            for (int i = 0; i < round * 20; i++) memset(reapMalloc(&with, 500), i, 500);
            reapRewind(&with, &mark);
            if (round % 2) reapUnmark(&with, &mark);
            for (int i = 0; i < 20; i++) reapFree(&with, memset(reapMalloc(&with, 500), i, 500));
            ck_assert_str_eq(reapName(&with), name);
        }
        reapFreeAll(&with);
        reapDestroy(&with);
        ck_assert_uint_eq(pile.taken, pile.given);
    }
}

/* Address space that no memory is behind until it is used; NULL where there is little of either, or a tool
 * looks at each access. */
static char *wide_buffer(size_t size, size_t used)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t free_pages = (size_t)sysconf(_SC_AVPHYS_PAGES);
    if (free_pages * 4096 < used || is_slowed()) return NULL;
    char *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return buffer == MAP_FAILED ? NULL : buffer;
}

/* The reap's own table of the buffer has half a gigabyte. */
TEST(a_mark_beyond_64_gigabytes, .modes = NOT_IN_PARTS)
{
    const size_t gigabyte = (size_t)1 << 30, size = 70 * gigabyte;
    reap_mark first, outer, inner;
    char *buffer = wide_buffer(size, 2 * gigabyte);
    needs(buffer && !apart_on, "not enough memory for the tables of 64 GiB, or a tool watches");
    with = reap_with(NULL, .flags = flags_of_mode(), .buffer = buffer, .buffer_size = size);
    reapMark(&with, &first);
    ck_assert_ptr_nonnull(reapMalloc(&with, 66 * gigabyte));
    char *older = reapMalloc(&with, 100);
    reapMark(&with, &outer);
    char *middle = reapMalloc(&with, 100);
    reapMark(&with, &inner);
    char *younger = reapMalloc(&with, 100);
    ck_assert_ptr_ne(reapRealloc(&with, middle, 200), middle);
    reapRewind(&with, &inner);
    ck_assert_ptr_eq(reapMalloc(&with, 100), younger);
    reapUnmark(&with, &inner);
    reapRewind(&with, &outer);
    ck_assert_ptr_eq(reapMalloc(&with, 100), middle);
    ck_assert_ptr_ne(reapRealloc(&with, older, 200), older);
    reapUnmark(&with, &outer);
    reapRewind(&with, &first);
    ck_assert_uint_eq(stats_of(with).live_objects, 0);
    reapDestroy(&with);
    munmap(buffer, size);
}

/* More chunks at once than may be lent are refused, and those that are there go on. */
TEST(the_table_is_full, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    struct pile pile = {0};
    with = reap_with(&reap, .flags = flags_of_mode(), .max_chunk = 8192, .source = {take, give, &pile});
    while (reapMalloc(&with, 4000)) {
    }
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(stats_of(with).chunks, 4096);
    ck_assert_uint_eq(stats_of(with).chunk_bytes, pile.bytes);
    reapDestroy(&with);
    ck_assert_uint_eq(pile.taken, pile.given);
}

/* --- huge pages ------------------------------------------------------------------------------ */

enum { HUGE_PAGE = 2 << 20 };

/* Chunks of 2 MiB, at such an address, of reserved huge pages where there are any. */
static void *take_huge(size_t size, void *arg)
{
    (void)arg;
    size = (size + HUGE_PAGE - 1) & -(size_t)HUGE_PAGE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (chunk != MAP_FAILED) return chunk;
    char *wide = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (wide == MAP_FAILED) return NULL;
    chunk = (char *)(((uintptr_t)wide + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);
    if (chunk > wide) munmap(wide, (size_t)(chunk - wide));
    munmap(chunk + size, (size_t)(wide + HUGE_PAGE - chunk));
    madvise(chunk, size, MADV_HUGEPAGE);
    return chunk;
}

static void give_huge(void *chunk, size_t size, void *arg)
{
    (void)arg;
    munmap(chunk, (size + HUGE_PAGE - 1) & -(size_t)HUGE_PAGE);
}

TEST(a_reap_on_huge_pages, .modes = NOT_IN_PARTS)
{
    needs(!apart_on, "objects lie apart");
    with = reap_with(NULL, .flags = flags_of_mode(), .first_chunk = HUGE_PAGE, .max_chunk = HUGE_PAGE,
                     .source = {take_huge, give_huge, NULL});
    for (int i = 0; i < 50000; i++) memset(reapMalloc(&with, 100), i, 100);
    ck_assert_uint_eq(stats_of(with).chunk_bytes, 3 * HUGE_PAGE);
    ck_assert_uint_eq(stats_of(with).chunks, 3);
    ck_assert_uint_eq((uintptr_t)reap_behind(with) % HUGE_PAGE, REAP_HEADER);
    reapDestroy(&with);
}

/* --- who is there ---------------------------------------------------------------------------- */

TEST(a_report_of_all_finds_them)
{
    static char buffer[8192], text[10000];
    with = reap_with(NULL, .buffer = buffer, .buffer_size = sizeof buffer, .name = "in a buffer");
    FILE *out = fmemopen(text, sizeof text, "w");
    reapReport(NULL, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "in a buffer"));
    reapDestroy(&with);
}

int main(void) { return run_tests((struct suite){.begin = setup, .end = teardown, .modes = ALL_MODES}); }
