/* SPDX-License-Identifier: Apache-2.0 */
/* Random allocations and frees in doc/reap-in-300-lines.c, beside a table of what lives: contents, no
 * overlap, reuse, and bytes held. reap_in_300_lines.sh compiles it with sanitizers, which see that all chunks
 * are given back. Arguments: a seed; or "twice" or "inner" for a free that ends the program. */
#include "../../doc/reap-in-300-lines.c"

#include <stdio.h>

enum { OBJECTS = 2000, STEPS = 200000 };
static struct {
    unsigned char *at;
    size_t size;
    unsigned char byte;
} object[OBJECTS];
static size_t live, most_live, most_held;
static uint64_t state;

static size_t below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

static void wrong(const char *what)
{
    printf("wrong: %s\n", what);
    exit(1);
}

/* Units that objects have. An object of which one unit is another's has overlapped. */
static bool *used_units(const void *at)
{
    static struct {
        uintptr_t chunk;
        bool used[REAP_UNITS];
    } table[4096];
    uintptr_t chunk = (uintptr_t)at / REAP_SIZE;
    for (size_t i = chunk % 4096;; i = (i + 1) % 4096) {
        if (table[i].chunk == 0) table[i].chunk = chunk;
        if (table[i].chunk == chunk) return table[i].used;
    }
}

static void use(size_t i, bool is_used)
{
    size_t first = reap_unit(object[i].at), units = reap_units(object[i].size);
    if (first + units >= REAP_UNITS) wrong("an object reaches beyond its chunk");
    for (size_t unit = first; unit < first + units; unit++) {
        bool *used = &used_units(object[i].at)[unit];
        if (*used == is_used) wrong("two objects overlap");
        *used = is_used;
    }
}

static void look(size_t i)
{
    for (size_t n = 0; n < object[i].size; n++)
        if (object[i].at[n] != object[i].byte) wrong("an object's bytes have changed");
}

static size_t any_size(void)
{
    size_t kind = below(100);
    return kind < 80 ? below(500) : kind < 98 ? below(4000) : below(REAP_LARGE) + 1;
}

static void make(struct reap *reap, size_t i)
{
    object[i].size = any_size();
    object[i].byte = (unsigned char)below(256);
    if (!(object[i].at = reapMalloc(reap, object[i].size))) wrong("no memory");
    if ((uintptr_t)object[i].at % REAP_UNIT) wrong("an object is not aligned");
    use(i, true);
    memset(object[i].at, object[i].byte, object[i].size);
    live += reap_units(object[i].size) * REAP_UNIT;
}

static void forget(size_t i)
{
    use(i, false);
    live -= reap_units(object[i].size) * REAP_UNIT;
    object[i].at = NULL;
}

static void drop(struct reap *reap, size_t i)
{
    void *at = object[i].at;
    look(i);
    forget(i);
    reapFree(reap, at);
}

/* Each unit between the first and the last one lies in one block, a live bit has a start bit, and what is
 * counted as listed is on lists. */
static void validate(const struct reap *reap)
{
    size_t bytes = 0, held = 0, on_lists = 0;
    for (const struct reap_chunk *chunk = reap->chunks; chunk; chunk = chunk->next, held += REAP_SIZE) {
        size_t end = chunk->first;
        if (!bitmap_get(chunk->starts, end)) wrong("a chunk has no first block");
        for (size_t unit = end; unit < REAP_END; unit = end) {
            end = reap_block_end(chunk, unit);
            bool is_region = chunk->state == REAP_CHUNK_REGION;
            if (is_region ? unit < chunk->top : bitmap_get(chunk->lives, unit))
                bytes += (end - unit) * REAP_UNIT;
        }
        if (end != REAP_END) wrong("a block ends behind its chunk");
        for (size_t i = 0; i < REAP_UNITS / 64; i++)
            if (chunk->lives[i] & ~chunk->starts[i]) wrong("an object lives that does not start");
    }
    for (size_t list = 0; list < sizeof reap->freelists / sizeof *reap->freelists; list++)
        for (const struct reap_block *block = reap->freelists[list]; block; block = block->next)
            on_lists += block->units;
    if (bytes != live) wrong("the live bits count other bytes than the table");
    if (held != reap->held) wrong("the chunks are not what is held");
    if (on_lists != reap->listed) wrong("the lists have not what is counted");
}

/* Rounds of random frees and allocations: the number that lives goes up and down. */
static void replay(struct reap *reap)
{
    size_t target = 0;
    for (size_t step = 0; step < STEPS; step++) {
        if (step % 20000 == 0) target = below(3) == 0 ? OBJECTS / 10 : OBJECTS;
        size_t i = below(OBJECTS);
        if (object[i].at) drop(reap, i);
        if (!object[i].at && i < target) make(reap, i);
        if (live > most_live) most_live = live;
        if (reap->held > most_held) most_held = reap->held;
        if (step < 300 || step % 500 == 0) validate(reap);
    }
}

int main(int argc, char **argv)
{
    struct reap *reap = reapNew();
    if (argc < 2 || !reap) return 2;
    if (strcmp(argv[1], "twice") == 0 || strcmp(argv[1], "inner") == 0) {
        char *one = reapMalloc(reap, 100);
        reapMalloc(reap, 100);
        if (argv[1][0] == 't') reapFree(reap, one);
        reapFree(reap, argv[1][0] == 't' ? one : one + REAP_UNIT);
        return 0;
    }
    state = strtoull(argv[1], NULL, 10);
    for (int round = 0; round < 2; round++) {
        replay(reap);
        for (size_t i = 0; i < OBJECTS; i++)
            if (object[i].at) look(i), forget(i);
        reapFreeAll(reap);
        validate(reap);
        if (reap->held != REAP_SIZE) wrong("reapFreeAll keeps chunks");
    }
    /* All that was freed is used again: no generation needs more chunks than the first one, but for one. */
    size_t first = 0;
    for (int generation = 0; generation < 20; generation++) {
        static void *same[5000];
        for (size_t i = 0; i < 5000; i++)
            memset(same[i] = reapMalloc(reap, 100 + i % 7 * 16), generation, 100);
        if (first == 0) first = reap->held;
        if (reap->held > first + REAP_SIZE) wrong("what was freed is not used again");
        for (size_t i = 0; i < 5000; i++) reapFree(reap, same[i * 7919 % 5000]);
        if (reap->held > first / 2) wrong("chunks without objects do not go back");
    }
    printf("at most %zu bytes lived, and %zu were held\n", most_live, most_held);
    if (most_held > most_live * 3 + 4 * REAP_SIZE) wrong("too much is held");
    reapDestroy(reap);
    return 0;
}
