/* SPDX-License-Identifier: Apache-2.0 */
/* apr_fork.c: a thread that ends a pool may be amid it when another one forks, and the child may end the same
 * pool, as exit() does with apr_terminate. Here hoard_free is that moment: each call forks, and the child
 * ends all pools. */
#include <apr_allocator.h>
#include <apr_general.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hoard.h"

static apr_pool_t *above;
static int is_on, forks, bad;

void hoard_free(void *block)
{
    int status = 0, was_on = is_on;
    ((void (*)(void *))dlsym(RTLD_NEXT, "hoard_free"))(block);
    is_on = 0;
    pid_t pid = was_on ? fork() : -1;
    if (pid == 0) {
        apr_pool_destroy(above);
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid) forks++, bad += status != 0;
    is_on = was_on;
}

static apr_status_t nothing(void *data) { return data ? APR_SUCCESS : APR_EGENERAL; }

static void use(apr_pool_t *pool, apr_size_t size)
{
    apr_allocator_t *allocator = apr_pool_allocator_get(pool);
    for (int i = 0; i < 60; i++) apr_pool_cleanup_register(pool, &forks, nothing, nothing);
    apr_allocator_free(allocator, apr_allocator_alloc(allocator, size));
}

int main(void)
{
    apr_pool_t *pool;
    apr_allocator_t *allocator;
    if (apr_initialize() || apr_pool_create(&above, NULL) || apr_allocator_create(&allocator)) return 1;
    if (apr_pool_create_ex(&pool, above, NULL, allocator)) return 1;
    apr_allocator_owner_set(allocator, pool);
    use(pool, 20000);
    is_on = 1;
    apr_pool_clear(pool);
    use(pool, 26000);
    apr_pool_destroy(above);
    printf("%d forks, %d children ended badly\n", forks, bad);
    return forks < 8 || bad;
}
