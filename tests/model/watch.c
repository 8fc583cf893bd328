/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that -fsanitize=thread has the library call. They are only ever called by the one thread of a
 * test, but do what they stand for with the order that was asked for all the same. */
#include "watch.h"

#include <string.h>

#include "base/lock.h"
#include "heap/global_heap.h"

struct watched watched;

static const volatile void *global_lock, *latest_lock;

void watch_start(void)
{
    global_heap_fork_prepare(); /* which takes that lock and nothing else */
    global_heap_fork_parent();
    global_lock = latest_lock;
    watched = (struct watched){0};
}

static void note_lock(const volatile void *at)
{
    latest_lock = at;
    watched.locks++;
    watched.global_locks += at == global_lock;
}

/* The 4-byte words that are compared and exchanged are those of locks. (But for one of heaps=thread, which no
 * test that counts asks for.) */
static void note_exchanged(const volatile void *at, size_t size, uint64_t from, uint64_t to, bool done)
{
    watched.atomics++;
    if (done && size == sizeof(uint32_t) && from == LOCK_FREE && to == LOCK_HELD) note_lock(at);
}

enum { ORDER = __ATOMIC_SEQ_CST };

#define WORD(bits) uint##bits##_t
#define RMW(bits, name, operation)                                                                           \
    WORD(bits) __tsan_atomic##bits##_##name(volatile WORD(bits) * at, WORD(bits) value, int order);          \
    WORD(bits) __tsan_atomic##bits##_##name(volatile WORD(bits) * at, WORD(bits) value, int order)           \
    {                                                                                                        \
        (void)order;                                                                                         \
        watched.atomics++;                                                                                   \
        return operation(at, value, ORDER);                                                                  \
    }

#define COMPARE(bits, name)                                                                                  \
    int __tsan_atomic##bits##_##name(volatile WORD(bits) * at, WORD(bits) * expected, WORD(bits) value,      \
                                     int done_order, int failed_order);                                      \
    int __tsan_atomic##bits##_##name(volatile WORD(bits) * at, WORD(bits) * expected, WORD(bits) value,      \
                                     int done_order, int failed_order)                                       \
    {                                                                                                        \
        (void)done_order, (void)failed_order;                                                                \
        WORD(bits) from = *expected;                                                                         \
        bool done = __atomic_compare_exchange_n(at, expected, value, false, ORDER, ORDER);                   \
        note_exchanged(at, sizeof *at, from, value, done);                                                   \
        return done;                                                                                         \
    }

/* As clang calls it: what was there before is the answer. */
#define COMPARE_VALUE(bits)                                                                                  \
    WORD(bits)                                                                                               \
    __tsan_atomic##bits##_compare_exchange_val(volatile WORD(bits) * at, WORD(bits) expected,                \
                                               WORD(bits) value, int done_order, int failed_order);          \
    WORD(bits)                                                                                               \
    __tsan_atomic##bits##_compare_exchange_val(volatile WORD(bits) * at, WORD(bits) expected,                \
                                               WORD(bits) value, int done_order, int failed_order)           \
    {                                                                                                        \
        (void)done_order, (void)failed_order;                                                                \
        WORD(bits) before = expected;                                                                        \
        bool done = __atomic_compare_exchange_n(at, &before, value, false, ORDER, ORDER);                    \
        note_exchanged(at, sizeof *at, expected, value, done);                                               \
        return before;                                                                                       \
    }

#define ATOMICS(bits)                                                                                        \
    WORD(bits) __tsan_atomic##bits##_load(const volatile WORD(bits) * at, int order);                        \
    WORD(bits) __tsan_atomic##bits##_load(const volatile WORD(bits) * at, int order)                         \
    {                                                                                                        \
        (void)order;                                                                                         \
        return __atomic_load_n(at, ORDER);                                                                   \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile WORD(bits) * at, WORD(bits) value, int order);                 \
    void __tsan_atomic##bits##_store(volatile WORD(bits) * at, WORD(bits) value, int order)                  \
    {                                                                                                        \
        watched.atomics += order == ORDER;                                                                   \
        __atomic_store_n(at, value, ORDER);                                                                  \
    }                                                                                                        \
    RMW(bits, exchange, __atomic_exchange_n)                                                                 \
    RMW(bits, fetch_add, __atomic_fetch_add)                                                                 \
    RMW(bits, fetch_sub, __atomic_fetch_sub)                                                                 \
    RMW(bits, fetch_and, __atomic_fetch_and)                                                                 \
    RMW(bits, fetch_or, __atomic_fetch_or)                                                                   \
    RMW(bits, fetch_xor, __atomic_fetch_xor)                                                                 \
    COMPARE(bits, compare_exchange_strong)                                                                   \
    COMPARE(bits, compare_exchange_weak)                                                                     \
    COMPARE_VALUE(bits)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) { watched.atomics += order == ORDER; }

/* That is the compiler's alone. */
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) { (void)order; }

/* What is not atomic is not counted. */
#define PLAIN(name)                                                                                          \
    void __tsan_##name(void *at);                                                                            \
    void __tsan_##name(void *at) { (void)at; }
#define PLAINS(size)                                                                                         \
    PLAIN(read##size)                                                                                        \
    PLAIN(write##size)                                                                                       \
    PLAIN(unaligned_read##size)                                                                              \
    PLAIN(unaligned_write##size)
PLAINS(1)
PLAINS(2)
PLAINS(4)
PLAINS(8)
PLAINS(16)

#define RANGE(name)                                                                                          \
    void __tsan_##name(void *at, size_t size);                                                               \
    void __tsan_##name(void *at, size_t size) { (void)at, (void)size; }
RANGE(read_range)
RANGE(write_range)

/* clang's, since its release 15. */
void *__tsan_memset(void *at, int byte, size_t size);
void *__tsan_memset(void *at, int byte, size_t size) { return memset(at, byte, size); }
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }

void __tsan_init(void);
void __tsan_init(void) {}

void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from) { (void)from; }
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
