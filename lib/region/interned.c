/* SPDX-License-Identifier: Apache-2.0 */
/* interned.c: names that many reaps have, once in the process. */
#include "region/interned.h"

#include <string.h>

enum {
    STORE = 4096, /* bytes */
    ALIGN = 8,    /* bytes; no name takes less */
    LONGEST = 48, /* bytes of a text, its end included */
    TABLE = 1024, /* places */
    CACHE = 64    /* places */
};
static_assert(STORE / ALIGN <= TABLE / 2, "searches of the table must end soon");

static SPARSE _Alignas(64) char store[STORE];
static _Atomic(uint32_t) used; /* bytes of the store */
static SPARSE _Atomic(struct reap_name *) table[TABLE];
static SPARSE _Atomic(struct reap_name *) cache[CACHE];
static SPARSE _Atomic(uint32_t) seen[CACHE]; /* the hash of the last text here that was not found */

static uint32_t hash(const char *text, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

bool interned_is(const struct reap_name *name) { return (uintptr_t)name - (uintptr_t)store < STORE; }

/* A new name in the store; NULL: there is no room. */
static struct reap_name *make(const char *text, size_t size)
{
    size_t bytes = (sizeof(struct reap_name) + size + ALIGN - 1) / ALIGN * ALIGN;
    uint32_t at = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (at + bytes > STORE) return NULL;
    } while (!atomic_compare_exchange_weak(&used, &at, at + (uint32_t)bytes));
    struct reap_name *name = (struct reap_name *)(store + at);
    name->room = (uint16_t)size;
    name->given = true;
    memcpy(name->text, text, size);
    return name;
}

/* Searches the table from the text's place on. At its end, which is the first empty place, it puts the new
 * name, if there is to be one. Two threads may both make it: then one copy is never used. */
static struct reap_name *search(const char *text, size_t size, uint32_t h, bool is_to_be)
{
    for (size_t i = 0; i < TABLE; i++) {
        _Atomic(struct reap_name *) *place = &table[(h + i) % TABLE];
        struct reap_name *name = atomic_load_explicit(place, memory_order_acquire);
        if (!name) {
            struct reap_name *made = is_to_be ? make(text, size) : NULL;
            if (!made) return NULL;
            if (atomic_compare_exchange_strong(place, &name, made)) return made;
        }
        if (strcmp(name->text, text) == 0) return name;
    }
    return NULL;
}

static NOINLINE struct reap_name *find_slowly(const char *text, size_t slot)
{
    size_t size = strnlen(text, LONGEST) + 1;
    if (size > LONGEST) return NULL;
    uint32_t h = hash(text, size);
    bool comes_again = atomic_exchange_explicit(&seen[h % CACHE], h, memory_order_relaxed) == h;
    struct reap_name *name = search(text, size, h, comes_again);
    if (name) atomic_store_explicit(&cache[slot], name, memory_order_release);
    return name;
}

struct reap_name *interned_find(const char *text)
{
    size_t slot = ((uintptr_t)text ^ (uintptr_t)text >> 6) % CACHE;
    struct reap_name *name = atomic_load_explicit(&cache[slot], memory_order_acquire);
    if (LIKELY(name && strcmp(name->text, text) == 0)) return name;
    return find_slowly(text, slot);
}
