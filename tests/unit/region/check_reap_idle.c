/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_idle.c: reaps in which little is. */
#include "support/check_reap.h"

#include "support/resident.h"

enum { IDLE = 10000, OBJECTS = 3, OBJECT = 40 };

/* Bytes each: of an ordinary reap, which is a child, 1 KiB and a little. A shared one takes a page, its face
 * is on a second one, and each further part has a page. */
static const size_t most[MODES] = {1300, 8800, 17000};

static void *parent, *reaps[IDLE];

/* Whether there may be huge pages; where they are always, nothing is promised. */
static const char *const options[] = {"thp=grown", "thp=never", "thp=system"};
enum { A_PAGE = 4300 };
enum { OPTIONS = sizeof options / sizeof *options };

static void begin(int i)
{
    if (sysconf(_SC_PAGESIZE) != 4 * KIB) _exit(0); /* nothing is promised */
    if (reap_mode != MODE_PARTS) use_path(0, options[i]);
    reapCreate(&parent, NULL);
    memset(reaps, 1, sizeof reaps);
}

static void fill(void **reap)
{
    reapCreate(reap, &parent);
    for (int k = 0; k < OBJECTS; k++) memset(reapMalloc(reap, OBJECT), 1, OBJECT);
}

static void assert_small(size_t before, size_t each)
{
    size_t after = resident();
    ck_assert_uint_ne(before, 0);
    ck_assert_uint_le((after - before) / IDLE, each);
}

TEST(an_idle_reap_costs_little, .times = OPTIONS)
{
    begin(_i);
    size_t before = resident();
    for (int i = 0; i < IDLE; i++) fill(&reaps[i]);
    assert_small(before, most[reap_mode]);
}

/* Where siblings needed more, first chunks are larger; the arenas of small objects have huge pages. */
TEST(and_one_of_large_siblings_in_a_large_program, .times = OPTIONS, .modes = NOT_IN_PARTS)
{
    enum { BLOCKS = 48000, SIZE = 1000, LARGE = 30 };
    static void *blocks[BLOCKS];
    begin(_i);
    for (int i = 0; i < LARGE; i++) {
        fill(&reaps[i]);
        for (int k = 0; k < 1000; k++) reapMalloc(&reaps[i], OBJECT);
    }
    for (int i = 0; i < LARGE; i++) reapDestroy(&reaps[i]);
    for (int i = 0; i < BLOCKS; i++) ck_assert_ptr_nonnull(blocks[i] = hoard_calloc(1, SIZE));
    size_t before = resident();
    for (int i = 0; i < IDLE; i++) fill(&reaps[i]);
    ck_assert_uint_ge(stats_of(reaps[IDLE - 1]).chunk_bytes, REAP_FIRST_SIZE);
    assert_small(before, reap_mode == MODE_ORDINARY ? A_PAGE : most[reap_mode]);
}

int main(void) { return run_tests((struct suite){.modes = ALL_MODES}); }
