/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation at the edges of a process's and a thread's life: while the program is relocated, before
 * any constructor, in constructors, in thread-specific destructors, at exit. */
#include "preload_early.h"
#include "support/expect.h"

static char *relocation_block, *preinit_block, *constructor_block;
static int destructor_runs;

static int twice(int x) { return 2 * x; }

/* Runs while ld.so relocates this program: the preload is relocated by then, but nobody's
 * constructor has run. */
__attribute__((used)) static int (*resolve(void))(int)
{
    relocation_block = malloc(OPAQUE((size_t)100));
    strcpy(relocation_block, "relocation");
    free(malloc(OPAQUE((size_t)1 << 20)));
    return twice;
}
int resolved_twice(int x) __attribute__((ifunc("resolve")));

static void preinit(void) { preinit_block = strdup("preinit"); }
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(void) = preinit;

__attribute__((constructor)) static void construct(void) { constructor_block = strdup("constructor"); }

static void last(void)
{
    free(constructor_block);
    free(malloc(OPAQUE((size_t)5000)));
}

static void thread_specific(void *value)
{
    char *block = malloc(OPAQUE((size_t)300));
    memset(block, 1, 300);
    free(block);
    free(value);
    __atomic_fetch_add(&destructor_runs, 1, __ATOMIC_RELAXED);
}

static void *thread(void *key)
{
    pthread_setspecific(*(pthread_key_t *)key, strdup("thread specific"));
    early_work_under_lock();
    return strdup("from the thread");
}

int main(void)
{
    EXPECT(resolved_twice(21) == 42);
    EXPECT(relocation_block && strcmp(relocation_block, "relocation") == 0);
    EXPECT(preinit_block && strcmp(preinit_block, "preinit") == 0);
    EXPECT(constructor_block && strcmp(constructor_block, "constructor") == 0);
    EXPECT(early_block && strcmp(early_block, "made before main") == 0);
    free(relocation_block);
    free(preinit_block);
    atexit(last);

    pthread_key_t key;
    pthread_key_create(&key, thread_specific);
    for (int i = 0; i < 200; i++) {
        pthread_t id;
        void *result;
        EXPECT(pthread_create(&id, NULL, thread, &key) == 0);
        pthread_join(id, &result);
        EXPECT(strcmp(result, "from the thread") == 0);
        free(result);
    }
    EXPECT(destructor_runs == 200);
    return expect_status();
}
