/* SPDX-License-Identifier: Apache-2.0 */
/* check_backend.h: what the Check programs share, those for reaps too; and the headers that most of them
 * need.
 *
 * Options are read once in a process, so a test that chooses a path must be the first in its process
 * to allocate: those programs need Check's fork mode, which is the default. */
#ifndef CHECK_BACKEND_H
#define CHECK_BACKEND_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/superblock.h"
#include "hoard.h"

/* --- chance ---------------------------------------------------------------------------------- */

/* REAP_TEST_SEED, or another one in each run; printed, so that a failure can be repeated. */
uint64_t random_seed(void);

/* How often a test does what it does by chance: its own number; an eighth of it where time is short; and not
 * more than REAP_TEST_STEPS, where a tool makes each step slow. */
unsigned steps_of(unsigned preset);

/* Returns true if a tool has the program that it watches do less (REAP_TEST_STEPS). */
bool is_slowed(void);

/* One of two numbers. make check sets REAP_TEST_SHORT and takes the second; make check-long, and a program
 * started by hand, take the first. */
unsigned shorter(unsigned full, unsigned brief);

static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static inline unsigned random_below(uint64_t *state, unsigned n)
{
    return (unsigned)(random_next(state) % n);
}

/* --- paths ----------------------------------------------------------------------------------- */

enum { PATHS = 3, POLICIES = 10 };

/* Has the allocator of this process take path i: rseq with concurrency ids, rseq with CPU numbers, or
 * locked; from PATHS on, another way for threads to get their heaps; and at last with CPUs that share no
 * cache. `more` are further options, or NULL. The path's name in REAP_OPTIONS. */
const char *use_path(int i, const char *more);

/* Has the arenas ready for a test that goes no higher. Nothing is purged but when the test asks for it. */
void start_arenas(void);

/* --- what there is --------------------------------------------------------------------------- */

/* Returns true if each of n bytes has the value. */
bool all_bytes(const void *bytes, size_t n, unsigned char value);

/* Where a block lies. */
struct superblock *superblock_of(const void *block);

/* What stands for a live block in its heap: the stub of a wide one, or the block itself. */
void *stub_of(const void *block);

struct hoard_stats stats_now(void);
size_t live_bytes(void);
size_t held_bytes(void);

/* Once all is freed: nothing lives, the accounts are right, and the OS can have back the last byte. */
void assert_all_comes_back(void);

/* --- processors ------------------------------------------------------------------------------ */

/* How many CPUs this program was started with. */
unsigned cpus_at_start(void);

/* Keeps this thread on the i-th of them, counted round and round. */
void pin_to(unsigned i);

/* --- threads beside the test ------------------------------------------------------------------- */

/* Threads that go on until is_over is set: end_threads sets it, and waits for them. 16 at most. */
extern atomic_bool is_over;
void start_threads(unsigned n, void *(*body)(void *arg), void *arg);
void end_threads(void);

/* Several threads at once, to their end. */
void in_threads(unsigned n, void *(*body)(void *arg), void *arg);

/* One thread, to its end. Returns what it does. */
void *in_thread(void *(*body)(void *arg), void *arg);

/* --- what a machine may lack ------------------------------------------------------------------- */

/* A test that cannot run here ends by one of these: it has a line of its own, and is counted as skipped.
 * A program all of whose tests are skipped is skipped itself. */
#define skip_test(why)                                                                                       \
    do {                                                                                                     \
        note_skip(why, __func__);                                                                            \
        return;                                                                                              \
    } while (0)
#define needs(condition, why)                                                                                \
    do {                                                                                                     \
        if (!(condition)) skip_test(why);                                                                    \
    } while (0)
#define needs_rseq() needs(has_rseq(), "no restartable sequences here")
#define needs_cpus(n) needs(cpus_at_start() >= (n), "fewer than " #n " CPUs here")

/* Starts the allocator. Returns true if this process has restartable sequences on its path. */
bool has_rseq(void);

/* "skipped: why: test", once in a test; from a child of the test's too. */
void note_skip(const char *why, const char *test);

/* --- a child whose last words are heard ------------------------------------------------------ */

struct outcome {
    int status;      /* as wait tells it */
    char text[4096]; /* what it wrote to standard error */
};

/* Runs fn in a child; one that returns has ended well. */
struct outcome run_child(void (*fn)(void *arg), void *arg);

/* In a child: ends it with a word when something is not as it should be. */
void expect(bool right, const char *what);

/* The number of lines in the text. */
unsigned lines_of(const char *text);

/* Returns true if it has aborted after exactly one line, which is "reap: call(pointer): what". */
bool is_misuse(const struct outcome *outcome, const char *call, const void *pointer, const char *what);

/* Holds that this, done in a child with the pointer, ends so; or well. */
#define assert_misuse(fn, pointer, call, what)                                                               \
    do {                                                                                                     \
        struct outcome outcome_ = run_child(fn, pointer);                                                    \
        ck_assert_msg(is_misuse(&outcome_, call, pointer, what), "%s: %s: %s", call, what, outcome_.text);   \
    } while (0)
#define assert_ends_well(fn, arg)                                                                            \
    do {                                                                                                     \
        struct outcome outcome_ = run_child(fn, arg);                                                        \
        ck_assert_msg(outcome_.status == 0, "status %x: %s", (unsigned)outcome_.status, outcome_.text);      \
    } while (0)

/* --- a program ------------------------------------------------------------------------------- */

enum { SKIPPED = 77 };

/* What reapCreate makes in a test of reaps: an ordinary reap; a shared one; or a shared one whose objects
 * come from several parts in turn, as if many threads made them. */
enum reap_mode { MODE_ORDINARY, MODE_SHARED, MODE_PARTS, MODES };
extern enum reap_mode reap_mode;

/* Sets of modes. Where objects come from parts, addresses do not follow each other, and numbers of bytes do
 * not repeat. */
enum {
    ORDINARY = 1 << MODE_ORDINARY,
    IN_PARTS = 1 << MODE_PARTS,
    ALL_MODES = (1 << MODES) - 1,
    NOT_IN_PARTS = ALL_MODES - IN_PARTS,
    NOT_ORDINARY = ALL_MODES - ORDINARY
};

/* How a test is run; zero is: once, in all modes of its program, between its program's functions. */
struct how {
    unsigned times;        /* so often, and `_i` counts from 0 */
    unsigned times_shared; /* so often where reaps are shared, if that is another number */
    unsigned modes;        /* in these alone */
    bool apart;            /* without `begin` and `end`; its tag is "apart" (CK_EXCLUDE_TAGS) */
};

/* Begins a test: its body follows. Behind the name is how it is run:
 *     TEST(a_fork_finds_them_whole, .times = 2, .modes = ORDINARY)
 * Each is a case of its own, for CK_RUN_CASE, in other modes than the ordinary one with a word more. */
#define TEST(name, ...)                                                                                      \
    static const TTest *name;                                                                                \
    static __attribute__((constructor)) void name##_is_a_test(void)                                          \
    {                                                                                                        \
        add_test(name, (struct how){__VA_ARGS__});                                                           \
    }                                                                                                        \
    START_TEST(name)

void add_test(const TTest *test, struct how how);

/* What the tests of a program share; zero is: ordinary reaps, a minute for each test. */
struct suite {
    void (*begin)(void), (*end)(void); /* before and after each test, in its process */
    unsigned modes;
    double seconds;
};

/* Runs the tests of this program; the exit status, which is SKIPPED if all of them were. */
int run_tests(struct suite suite);

#endif
