/* SPDX-License-Identifier: Apache-2.0 */
/* apr_semantics_memory.c: allocators, memory, strings, and what happens when there is no more. */
#include "apr_semantics.h"

#include <apr_network_io.h>
#include <apr_portable.h>
#include <stdint.h>
#include <sys/resource.h>

/* In headers a macro, in the library a function as well, for programs compiled against old headers;
 * in parentheses it is the function. */
extern void *(apr_pcalloc)(apr_pool_t *pool, apr_size_t size);

static void show_node(const apr_memnode_t *node)
{
    const char *base = (const char *)node;
    say("node: index %u, first %ld, end %ld, next %d", node->index, (long)(node->first_avail - base),
        (long)(node->endp - base), node->next != NULL);
}

static apr_memnode_t *use_node(apr_allocator_t *allocator, apr_size_t size)
{
    apr_memnode_t *node = apr_allocator_alloc(allocator, size);
    show_node(node);
    memset(node->first_avail, 'n', (size_t)(node->endp - node->first_avail));
    node->first_avail += size; /* as users of nodes do */
    return node;
}

static void show_nodes(apr_allocator_t *allocator)
{
    static const apr_size_t size[] = {0, 1, 4000, 8152, 8153, 12288, 81920, 200000, 3000000};
    enum { SIZES = sizeof size / sizeof size[0] };
    apr_memnode_t *list = NULL, *node;
    for (int i = 0; i < SIZES; i++) {
        say("align %lu: %lu", (unsigned long)size[i], (unsigned long)apr_allocator_align(allocator, size[i]));
        node = use_node(allocator, size[i]);
        node->next = list;
        list = node;
    }
    apr_allocator_free(allocator, list);
    /* Which of the freed nodes is used again, if any, is the allocator's affair. */
    node = apr_allocator_alloc(allocator, 4000);
    say("again: %d %d", node->first_avail + 4000 <= node->endp, node->next != NULL);
    apr_allocator_free(allocator, node);
}

void show_allocators(void)
{
    apr_allocator_t *allocator;
    apr_thread_mutex_t *mutex;
    apr_pool_t *pool, *other;
    section("allocators");
    must(apr_allocator_create(&allocator));
    say("fresh: %d %d", apr_allocator_owner_get(allocator) != NULL,
        apr_allocator_mutex_get(allocator) != NULL);
    show_nodes(allocator);
    apr_allocator_max_free_set(allocator, 16384);
    show_nodes(allocator);
    apr_allocator_max_free_set(allocator, APR_ALLOCATOR_MAX_FREE_UNLIMITED);
    say("too much: %lu %d", (unsigned long)apr_allocator_align(allocator, SIZE_MAX),
        apr_allocator_alloc(allocator, SIZE_MAX) != NULL);
    must(apr_pool_create_ex(&pool, NULL, NULL, allocator));
    must(apr_pool_create_ex(&other, pool, NULL, NULL));
    apr_allocator_owner_set(allocator, pool);
    must(apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, pool));
    apr_allocator_mutex_set(allocator, mutex);
    say("set: %d %d", apr_allocator_owner_get(allocator) == pool,
        apr_allocator_mutex_get(allocator) == mutex);
    say("used: %d %d", apr_pool_allocator_get(pool) == allocator, apr_pool_allocator_get(other) == allocator);
    show_nodes(allocator);
    apr_pool_destroy(other);
    apr_pool_destroy(pool); /* and the allocator, which it owns */
}

enum { OBJECTS = 2000, SIZES = 300 };

/* Fills objects of many sizes, looks at all of them afterwards: sum of what was seen. */
static unsigned long fill_and_sum(apr_pool_t *pool)
{
    unsigned char *object[OBJECTS];
    unsigned long sum = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        object[i] = apr_palloc(pool, 1 + i % SIZES);
        memset(object[i], (int)(i & 0xff), 1 + i % SIZES);
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        for (unsigned k = 0; k < 1 + i % SIZES; k++) sum += object[i][k];
    return sum;
}

static int all_zero(const char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (object[i]) return 0;
    return 1;
}

static void show_sizes(apr_pool_t *pool)
{
    static const apr_size_t size[] = {0, 1, 7, 8, 9, 64, 8000, 8192, 9000, 100000, 5000000};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        char *object = apr_palloc(pool, size[i]);
        memset(object, 'x', size[i]);
        say("%lu: aligned %d, zeroed %d %d", (unsigned long)size[i], (uintptr_t)object % 8 == 0,
            all_zero((apr_pcalloc)(pool, size[i]), size[i]), all_zero(apr_pcalloc(pool, size[i]), size[i]));
    }
}

static void show_debug_forms(void)
{
    apr_pool_t *pool, *core, *unmanaged;
    must(apr_pool_create_ex_debug(&pool, NULL, NULL, NULL, "here:1"));
    must(apr_pool_create_core_ex_debug(&core, NULL, NULL, "here:2"));
    must(apr_pool_create_unmanaged_ex_debug(&unmanaged, NULL, NULL, "here:3"));
    say("debug: %d %d %d", apr_pool_parent_get(pool) != NULL, apr_pool_parent_get(core) != NULL,
        apr_pool_parent_get(unmanaged) != NULL);
    say("debug: %d %d", apr_palloc_debug(pool, 10, "here:4") != NULL,
        all_zero(apr_pcalloc_debug(core, 10, "here:5"), 10));
    note(pool, "debug clear");
    apr_pool_clear_debug(pool, "here:6");
    note(pool, "debug destroy");
    apr_pool_destroy_debug(pool, "here:7");
    apr_pool_destroy_debug(core, "here:8");
    apr_pool_destroy_debug(unmanaged, "here:9");
}

void show_memory(void)
{
    apr_pool_t *pool = pool_below(NULL);
    section("memory");
    show_sizes(pool);
    for (int i = 0; i < 3; i++) {
        say("sum: %lu", fill_and_sum(pool));
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
    show_debug_forms();
}

static void show_long_strings(apr_pool_t *pool)
{
    static const int length[] = {0,   1,    30,   31,   32,   510,  511,    512,
                                 513, 1023, 1024, 8000, 8191, 8192, 100000, 3000000};
    for (size_t i = 0; i < sizeof length / sizeof length[0]; i++) {
        char *before = apr_psprintf(pool, "%s", "before");
        char *text = apr_psprintf(pool, "%*d", length[i], 7);
        char *after = apr_psprintf(pool, "%s", "after");
        say("%d: %lu, %lu blanks, %s, %s %s", length[i], (unsigned long)strlen(text),
            (unsigned long)strspn(text, " "), text + strspn(text, " "), before, after);
    }
}

static void show_formats(apr_pool_t *pool)
{
    apr_sockaddr_t *address;
    apr_uint32_t bytes = 123456;
    apr_off_t offset = 123456789;
    apr_size_t size = 1234;
    apr_status_t status = APR_ENOENT;
    apr_os_thread_t thread = apr_os_thread_current();
    const char *volatile no_text = NULL;
    char decimal[32];
    must(apr_sockaddr_info_get(&address, "127.0.0.1", APR_INET, 8080, 0, pool));
    say("%s", apr_psprintf(pool, "%pI %pA", address, &address->sa.sin.sin_addr));
    say("%s", apr_psprintf(pool, "%pB %pF %pS", &bytes, &offset, &size));
    say("%s", apr_psprintf(pool, "%pm, %pp", &status, (void *)0x1234));
    snprintf(decimal, sizeof decimal, "%lu", (unsigned long)thread);
    say("thread: %d", !strcmp(apr_psprintf(pool, "%pT", &thread), decimal));
    say("%s", apr_psprintf(pool, "%5d|%-5d|%05d|%x|%X|%o|%c|%%|%s", 42, 42, 42, 255, 255, 8, 'c', "s"));
    say("%s", apr_psprintf(pool, "%.3s|%10.2f|%s", "abcdef", 3.14159, no_text));
    say("%s", apr_psprintf(pool, "%" APR_INT64_T_FMT " %" APR_SIZE_T_FMT, APR_INT64_C(-9000000000), size));
    say("empty: %lu", (unsigned long)strlen(apr_psprintf(pool, "%s", "")));
}

static int aborts;

static int count_abort(int status)
{
    say("abort function called with APR_ENOMEM: %d", status == APR_ENOMEM);
    return ++aborts;
}

static void show_exhaustion(void)
{
    apr_pool_t *pool, *child;
    volatile apr_size_t too_much = SIZE_MAX;
    section("exhaustion");
    must(apr_pool_create_ex(&pool, NULL, count_abort, NULL));
    must(apr_pool_create(&child, pool));
    say("inherited: %d", apr_pool_abort_get(child) == count_abort);
    say("NULL: %d", apr_palloc(child, too_much) == NULL);
    say("NULL: %d", apr_palloc(child, too_much / 4) == NULL);
    say("NULL: %d", (apr_pcalloc)(child, too_much / 4) == NULL);
    apr_pool_clear(child);
    say("kept by clear: %d", apr_pool_abort_get(child) == count_abort);
    apr_pool_abort_set(NULL, child);
    say("unset: %d", apr_pool_abort_get(child) == NULL);
    say("NULL: %d", apr_palloc(child, too_much) == NULL);
    say("usable: %d; aborts: %d", apr_palloc(child, 100) != NULL, aborts);
    apr_pool_destroy(pool);
}

/* A string that the address space has no room for, and then a pool; in a process of its own. */
static void show_long_string_refused(void)
{
    struct rlimit limit = {.rlim_cur = 300 << 20, .rlim_max = 300 << 20};
    pid_t child = fork();
    int status;
    if (child == 0) {
        apr_pool_t *pool, *child_pool;
        must(apr_pool_create_ex(&pool, NULL, count_abort, NULL));
        must(apr_pool_create(&child_pool, pool));
        setrlimit(RLIMIT_AS, &limit);
        say("NULL: %d", apr_psprintf(pool, "%*d", 900 << 20, 7) == NULL);
        say("usable: %s", apr_psprintf(pool, "%d", 7));
        for (int i = 0; i < 1000; i++) must(apr_pool_create(&child_pool, pool));
        while (apr_pool_create(&child_pool, pool) == APR_SUCCESS) continue;
        say("no pool: %d", child_pool == NULL);
        apr_pool_clear(pool);
        say("a pool: %d", apr_pool_create(&child_pool, pool) == APR_SUCCESS);
        _exit(0);
    }
    waitpid(child, &status, 0);
    say("ended: %d", status);
}

/* As long as the pool has room at hand, and longer; each is a string of its own. */
static void show_copies(apr_pool_t *pool)
{
    static const char bytes[] = "seven\0bytes";
    const char *volatile none = NULL;
    char *text[] = {apr_pstrdup(pool, bytes),
                    apr_pstrmemdup(pool, bytes, sizeof bytes - 1),
                    apr_pmemdup(pool, bytes, sizeof bytes),
                    apr_pstrmemdup(pool, bytes, 3),
                    apr_pstrmemdup(pool, bytes, 0),
                    apr_pstrdup(pool, "")};
    say("%s, %d, %d, %s, \"%s\", \"%s\"", text[0], strcmp(text[1] + strlen("seven") + 1, "bytes"),
        memcmp(text[2], bytes, sizeof bytes), text[3], text[4], text[5]);
    say("of no bytes: %d", apr_pmemdup(pool, bytes, 0) != text[5]);
    say("NULL: %d %d %d", apr_pstrdup(pool, none) == NULL, apr_pmemdup(pool, none, 10) == NULL,
        apr_pstrmemdup(pool, none, 10) == NULL);
    for (int length = 1; length < 3000000; length += 1 + length / 3) {
        char *blanks = apr_psprintf(pool, "%*d", length, 7), *one = apr_pstrdup(pool, blanks);
        char *two = apr_pstrmemdup(pool, blanks, (apr_size_t)length - 1);
        say("%d: %d %lu %lu %d", length, strcmp(one, blanks), (unsigned long)strlen(two),
            (unsigned long)strspn(two, " "), memcmp(apr_pmemdup(pool, one, 1), blanks, 1));
    }
}

void show_strings(void)
{
    apr_pool_t *pool = pool_below(NULL);
    section("strings");
    show_copies(pool);
    show_long_strings(pool);
    show_formats(pool);
    apr_pool_destroy(pool);
    show_exhaustion();
    show_long_string_refused();
}
