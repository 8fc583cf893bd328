/* SPDX-License-Identifier: Apache-2.0 */
/* check_chunk_map.c: the map of chunks: which arena has which part of it, and the memory of its bits. No
 * arena is behind the addresses here, since the map does not look. */
#include "support/check_backend.h"

#include "arena/chunk_map.h"

enum { FAR_APART = 3 };
static const uintptr_t four_gib = (uintptr_t)1 << 32;

static char *arena(uintptr_t high, unsigned number)
{
    return (char *)(high * four_gib + number * (uintptr_t)ARENA);
}

/* The start bits of an address, as a free reads them. */
static uint64_t window(const void *address)
{
    uint64_t bits;
    memcpy(&bits, chunk_map_starts(address), sizeof bits);
    volatile uint64_t all = bits; /* or the compiler reads the half that is asked for */
    return all;
}

TEST(a_part_is_the_first_arena_s_that_asks)
{
    ck_assert(chunk_map_claim(arena(1, 5) + 8192));
    ck_assert(chunk_map_claim(arena(1, 5) + 3 * 8192));
    ck_assert(!chunk_map_claim(arena(2, 5)));
    ck_assert(chunk_map_claim(arena(2, 6)));
    ck_assert(!chunk_map_claim(arena(1, 6)));
    chunk_map_forget(arena(2, 5)); /* which has none */
    ck_assert(!chunk_map_claim(arena(2, 5)));
    chunk_map_forget(arena(1, 5));
    ck_assert(chunk_map_claim(arena(2, 5)));
    ck_assert(!chunk_map_claim(arena(1, 5)));
}

/* The first and the last arena, whose bits are beside those of none, and one in between. */
TEST(each_unit_of_an_arena_has_bits, .times = 3)
{
    static const unsigned numbers[] = {0, 7, CHUNK_MAP_ARENAS - 1};
    char *from = arena(FAR_APART, numbers[_i]);
    ck_assert(chunk_map_claim(from));
    for (char *at = from; at < from + ARENA; at += 512) {
        ck_assert_uint_eq(*chunk_map_lives(at), 0);
        ck_assert_uint_eq((uint32_t)window(at), 0);
        ck_assert_ptr_eq(chunk_map_starts(at + 496), chunk_map_starts(at));
        *chunk_map_starts(at) = *chunk_map_lives(at) = UINT32_MAX;
    }
    ck_assert_uint_eq((uint32_t)window(from + ARENA - 16), UINT32_MAX);
    chunk_map_forget(from);
    ck_assert(chunk_map_claim(arena(FAR_APART + 1, numbers[_i]))); /* finds none of these */
    for (char *at = from; at < from + ARENA; at += 512) {
        ck_assert_uint_eq((uint32_t)window(at), 0);
        ck_assert_uint_eq(*chunk_map_lives(at), 0);
    }
}

TEST(an_entry_is_for_a_kib_below_the_same_high_half)
{
    char *at = arena(1, 9) + 5 * 1024;
    ck_assert_ptr_eq(chunk_map_entry(at), chunk_map_entry(at + 1023));
    ck_assert_ptr_eq(chunk_map_entry(at) + 1, chunk_map_entry(at + 1024));
    ck_assert_ptr_eq(chunk_map_entry(at), chunk_map_entry(at + four_gib));
    ck_assert(chunk_map_is_near(at, arena(1, 0)) && chunk_map_is_near(arena(1, CHUNK_MAP_ARENAS - 1), at));
    ck_assert(!chunk_map_is_near(at, at + four_gib) && !chunk_map_is_near(at, at - four_gib));
}

int main(void) { return run_tests((struct suite){.begin = start_arenas}); }
