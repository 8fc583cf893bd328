/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of many shapes, each of which allocates, so that same_stacks compares its stack. Compiled in several
 * ways by unwind.sh, and with -DWORDS=N as a module whose code for each N is the same but for the size of a
 * frame.
 *
 *     shapes MODULE MODULE      ends with 0, and prints the modules' loads at an address where the other one
 * was
 */
#ifndef WORDS
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

void shapes_of_cxx(void);
unsigned long stacks_by_rows(void);
#pragma weak stacks_by_rows /* of same_stacks */

#define SHAPE __attribute__((noinline)) static
static void *volatile sink;
static volatile size_t one = 1;

SHAPE void allocate(void)
{
    void *block = malloc(one);
    sink = block;
    free(block);
}

SHAPE void with_alloca(size_t n)
{
    char *bytes = alloca(n * one);
    memset(bytes, 1, n);
    allocate();
    sink = bytes;
}

SHAPE void with_array(size_t n)
{
    volatile char bytes[n * one];
    bytes[0] = 1;
    allocate();
    bytes[n - 1] = 2;
    if (n > 8) with_array(n - 7);
}

SHAPE void with_large(void)
{
    volatile char bytes[100000];
    bytes[0] = 1;
    allocate();
    bytes[99999] = 1;
}

SHAPE void with_aligned(void)
{
    _Alignas(64) volatile char bytes[128];
    bytes[0] = 1;
    allocate();
    with_alloca(100);
    bytes[1] = 1;
}

SHAPE size_t deep(size_t n)
{
    allocate();
    return n ? deep(n - 1) * one + n : 0;
}

SHAPE size_t many(size_t a, size_t b, size_t c, size_t d, size_t e, size_t f, size_t g, size_t h, size_t i)
{
    allocate();
    return a + b + c + d + e + f + g + h + i;
}
SHAPE size_t with_pushes(size_t n)
{
    allocate();
    return many(n, n, n, n, n, n, many(1, 2, 3, 4, 5, 6, 7, 8, n), many(n, 2, 3, 4, 5, 6, 7, 8, 9), n + one);
}

/* Registers that are saved on one path only, and several ends. */
SHAPE int with_paths(int n)
{
    if (n == 0) return 1;
    int x = n * 3 + (int)one, y = n * 5, z = n * 7;
    if (n % 2) {
        allocate();
        x += y;
        if (n % 3) return x + z;
    }
    allocate();
    return with_paths(n - 1) + x + y + z;
}

/* A call that is the last instruction of its function. */
static jmp_buf place;
SHAPE _Noreturn void leave(void)
{
    allocate();
    longjmp(place, 1);
}
SHAPE _Noreturn void last_call(void) { leave(); }

SHAPE void clean(char **bytes) { free(*bytes); }
SHAPE void with_cleanup(void)
{
    __attribute__((cleanup(clean))) char *bytes = malloc(one);
    bytes[0] = 1;
    allocate();
}

static int compare(const void *a, const void *b)
{
    allocate();
    return *(const int *)a - *(const int *)b;
}
static void visit(const void *node, VISIT visit, int depth)
{
    allocate();
    (void)node, (void)visit, (void)depth;
}
SHAPE void from_libc(void)
{
    int numbers[] = {5, 3, 1, 4, 2, 9, 8}, key = 4;
    void *tree = NULL;
    qsort(numbers, 7, sizeof *numbers, compare);
    bsearch(&key, numbers, 7, sizeof *numbers, compare);
    for (int i = 0; i < 7; i++) tsearch(&numbers[i], &tree, compare);
    twalk(tree, visit);
    char *text = NULL;
    if (asprintf(&text, "%d%s%.20f", key, "text", 0.1 * key) > 0) free(text);
}

static void on_signal(int number)
{
    (void)number;
    with_alloca(40);
    with_paths(4);
}
SHAPE void with_signals(void)
{
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigaltstack(&other, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
}

static ucontext_t here, there;
static void in_context(void) { with_paths(5); }
SHAPE void with_contexts(void)
{
    static char stack[1 << 16];
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, in_context, 0);
    swapcontext(&here, &there);
}

SHAPE void all(void)
{
    for (size_t n = 1; n < 3000; n += 97) with_alloca(n);
    with_alloca(70000);
    with_array(300);
    with_large();
    with_aligned();
    deep(200);
    with_pushes(3);
    with_paths(12);
    with_cleanup();
    from_libc();
    shapes_of_cxx();
}

static void *in_thread(void *unused)
{
    for (int i = 0; i < 20; i++) all();
    return unused;
}

/* Times that a module has come where the other one was, and that rows did not fit. */
static unsigned again, unfit;
SHAPE void with_modules(char *const *paths)
{
    uintptr_t last = 0;
    for (int i = 0; i < 60; i++) {
        void *module = dlopen(paths[i % 2], RTLD_NOW);
        void (*call)(void (*)(void)) = NULL;
        if (module) *(void **)&call = dlsym(module, "call");
        if (!call) abort();
        unsigned long before = stacks_by_rows();
        call(allocate);
        call(allocate);
        unfit += stacks_by_rows() - before < 2;
        again += (uintptr_t)call == last;
        last = (uintptr_t)call;
        dlclose(module);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    if (argc != 3 || !stacks_by_rows) return 2;
    with_modules(argv + 1);
    all();
    if (setjmp(place) == 0) last_call();
    with_signals();
    with_contexts();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, in_thread, NULL);
    with_modules(argv + 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%u %u\n", again, unfit);
    atexit(allocate);
    return 0;
}
#else
void call(void (*fn)(void));
void call(void (*fn)(void))
{
    volatile long words[WORDS];
    words[0] = 1;
    fn();
    words[1] = words[0];
}
#endif
