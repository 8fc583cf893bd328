/* SPDX-License-Identifier: Apache-2.0 */
/* check_reap_hidden.c: memory that a large object gives back while it shrinks is not hidden from who gets it.
 * The sanitizer is this program's own: a byte for each 16, for one object. */
#include "support/check_reap.h"

enum { KEPT = 64 * 1024, MOST = 2 * 1024 * 1024 };

/* The sanitizer's calls, which the library finds by these names. */
void __asan_poison_memory_region(const volatile void *at, size_t size);
void __asan_unpoison_memory_region(const volatile void *at, size_t size);
void __asan_describe_address(void *at);

static const char *watched; /* NULL: nothing is */
static bool hidden[MOST / 16];
static size_t lost_from, lost_to; /* of the object's chunk, what the backend has taken back */
static unsigned hidden_when_lost, hidden_later;

static void mark(const volatile void *at, size_t size, bool hides)
{
    for (size_t i = 0; i < size && watched; i += 16) {
        size_t offset = (size_t)((const volatile char *)at + i - watched);
        if (offset >= MOST) continue;
        hidden[offset / 16] = hides;
        hidden_later += hides && offset >= lost_from && offset < lost_to;
    }
}

void __asan_poison_memory_region(const volatile void *at, size_t size) { mark(at, size, true); }
void __asan_unpoison_memory_region(const volatile void *at, size_t size) { mark(at, size, false); }
void __asan_describe_address(void *at) { (void)at; }

bool __real_chunk_resize(void *chunk, size_t size, size_t *got);
bool __wrap_chunk_resize(void *chunk, size_t size, size_t *got);

/* Another thread may have the memory as soon as this returns. */
bool __wrap_chunk_resize(void *chunk, size_t size, size_t *got)
{
    size_t before = ((struct reap_chunk *)chunk)->size;
    bool done = __real_chunk_resize(chunk, size, got);
    if (chunk != watched || *got >= before) return done;
    lost_from = *got;
    lost_to = before;
    for (size_t at = lost_from; at < lost_to; at += 16) hidden_when_lost += hidden[at / 16];
    return done;
}

/* Within eleven slots, to eight, to an object that ends with the eighth, to five, and within them. Sizes are
 * multiples of 16. */
TEST(what_goes_back_is_shown_before)
{
    static const size_t sizes[] = {690 * 1000, 500 * 1000, 8 * KEPT - REAP_HEADER, 300 * 1000, 299 * 1008};
    void *reap;
    reapCreate(&reap, NULL);
    char *object = reapMalloc(&reap, 700 * 1000);
    ck_assert_ptr_nonnull(object);
    watched = object - REAP_HEADER;
    memset(hidden, true, sizeof hidden); /* all that the object does not use */
    memset(hidden, false, (700 * 1000 + REAP_HEADER) / 16);
    unsigned lost = 0;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        lost_from = lost_to = 0;
        ck_assert_ptr_eq(reapRealloc(&reap, object, sizes[i]), object);
        lost += lost_to > lost_from;
        ck_assert_uint_eq(hidden_when_lost, 0);
        ck_assert_uint_eq(hidden_later, 0);
        const struct reap_chunk *chunk = (const void *)watched;
        for (size_t at = REAP_HEADER; at < chunk->size; at += 16)
            ck_assert_int_eq(hidden[at / 16], at >= REAP_HEADER + sizes[i]);
    }
    ck_assert_uint_ge(lost, 2);
    watched = NULL;
    reapDestroy(&reap);
}

int main(void) { return run_tests((struct suite){0}); }
