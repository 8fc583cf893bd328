/* SPDX-License-Identifier: Apache-2.0 */
/* next.h: the functions behind this library's, of the next library that has the name.
 *
 * dlsym may allocate before malloc's own name is known. Such a block comes from a small table of this
 * library, is never used twice, and its free does nothing.
 *
 * Threads: any.
 */
#ifndef NEXT_H
#define NEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The next function of a name; NULL if there is none. */
#define NEXT(function) NEXT_NAMED(function, #function)
#define NEXT_NAMED(function, name)                                                                           \
    __extension__({                                                                                          \
        static void *real_;                                                                                  \
        void *now_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);                                              \
        if (__builtin_expect(now_ == NULL, 0)) {                                                             \
            now_ = next_find(name);                                                                          \
            __atomic_store_n(&real_, now_, __ATOMIC_RELAXED);                                                \
        }                                                                                                    \
        (__typeof__(&(function)))now_;                                                                       \
    })

void *next_find(const char *name);

/* True while this thread is in next_find: then malloc's family uses the table. */
extern __thread bool next_finding;

/* A zeroed block of the table, aligned to 16; NULL if it is full. */
void *next_early(size_t size);
bool next_is_early(const void *block);
size_t next_early_size(const void *block);

#endif
