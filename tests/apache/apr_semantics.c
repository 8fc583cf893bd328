/* SPDX-License-Identifier: Apache-2.0 */
/* apr_semantics.c: main, and the life of pools: tree, order of cleanups, user data. */
#include "apr_semantics.h"

#include <stdarg.h>

void section(const char *name) { say("--- %s", name); }

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void must(apr_status_t status)
{
    if (status == APR_SUCCESS) return;
    say("unexpected status %d", status);
    exit(1);
}

apr_pool_t *pool_below(apr_pool_t *parent)
{
    apr_pool_t *pool;
    must(apr_pool_create(&pool, parent));
    return pool;
}

apr_status_t say_plain(void *name)
{
    say("plain %s", (char *)name);
    return APR_SUCCESS;
}

apr_status_t say_child(void *name)
{
    say("child %s", (char *)name);
    return APR_SUCCESS;
}

void note(apr_pool_t *pool, const char *name) { apr_pool_cleanup_register(pool, name, say_plain, say_child); }

/* --- the tree -------------------------------------------------------------------------------- */

static void show_tree(void)
{
    apr_pool_t *top = pool_below(NULL), *middle = pool_below(top), *leaf = pool_below(middle);
    apr_pool_t *global = apr_pool_parent_get(top);
    section("tree");
    say("top has a parent: %d; that one has: %d", global != NULL, apr_pool_parent_get(global) != NULL);
    say("parents right: %d", apr_pool_parent_get(leaf) == middle && apr_pool_parent_get(middle) == top);
    say("ancestor: %d %d %d %d", apr_pool_is_ancestor(top, leaf), apr_pool_is_ancestor(leaf, top),
        apr_pool_is_ancestor(leaf, leaf), apr_pool_is_ancestor(global, leaf));
    say("of NULL: %d %d %d", apr_pool_is_ancestor(NULL, leaf), apr_pool_is_ancestor(leaf, NULL),
        apr_pool_is_ancestor(NULL, NULL));
    say("allocator inherited: %d", apr_pool_allocator_get(leaf) == apr_pool_allocator_get(global));
    apr_pool_tag(top, "top");
    apr_pool_tag(top, NULL);
    apr_pool_tag(leaf, "leaf");
    apr_pool_clear(leaf);
    say("parent kept by clear: %d", apr_pool_parent_get(leaf) == middle);
    apr_pool_destroy(top);
}

static void show_unmanaged(void)
{
    apr_pool_t *own, *core, *given, *below;
    apr_allocator_t *allocator;
    section("unmanaged");
    must(apr_pool_create_unmanaged(&own));
    must(apr_pool_create_core(&core));
    must(apr_allocator_create(&allocator));
    must(apr_pool_create_unmanaged_ex(&given, NULL, allocator));
    say("parents: %d %d %d", apr_pool_parent_get(own) != NULL, apr_pool_parent_get(core) != NULL,
        apr_pool_parent_get(given) != NULL);
    say("owners: %d %d %d", apr_allocator_owner_get(apr_pool_allocator_get(own)) == own,
        apr_allocator_owner_get(apr_pool_allocator_get(core)) == core,
        apr_allocator_owner_get(apr_pool_allocator_get(given)) == given);
    say("allocator: %d", apr_pool_allocator_get(given) == allocator);
    below = pool_below(own);
    say("child's allocator: %d", apr_pool_allocator_get(below) == apr_pool_allocator_get(own));
    note(own, "unmanaged");
    note(below, "child of unmanaged");
    note(given, "unmanaged with an allocator given");
    apr_pool_destroy(own);
    apr_pool_destroy(core);
    apr_pool_destroy(given);
    apr_allocator_destroy(allocator);
}

static void show_ends(void)
{
    apr_pool_t *pool = pool_below(NULL), *elder = pool_below(pool), *younger = pool_below(pool);
    section("order of an end");
    note(pool, "pool 1");
    note(pool_below(elder), "grandchild");
    note(elder, "elder");
    note(younger, "younger");
    note(pool, "pool 2");
    apr_pool_pre_cleanup_register(pool, "pre 1", say_plain);
    apr_pool_pre_cleanup_register(pool, "pre 2", say_plain);
    apr_pool_pre_cleanup_register(elder, "pre of elder", say_plain);
    apr_pool_clear(pool);
    say("cleared");
    note(pool, "after clear");
    note(pool_below(pool), "child after clear");
    apr_pool_destroy(pool);
    say("destroyed");
}

static void show_middle_child(void)
{
    apr_pool_t *pool = pool_below(NULL), *child[5];
    static const char *const name[] = {"a", "b", "c", "d", "e"};
    section("children that go out of order");
    for (int i = 0; i < 5; i++) note(child[i] = pool_below(pool), name[i]);
    apr_pool_destroy(child[2]);
    apr_pool_destroy(child[4]);
    apr_pool_destroy(child[0]);
    note(pool_below(pool), "f");
    apr_pool_destroy(pool);
}

void show_life(void)
{
    show_tree();
    show_unmanaged();
    show_ends();
    show_middle_child();
}

/* --- cleanups -------------------------------------------------------------------------------- */

static apr_pool_t *at_hand; /* what the cleanups below work on */

static apr_status_t registers_more(void *name)
{
    say_plain(name);
    apr_pool_cleanup_register(at_hand, "registered meanwhile", say_plain, say_child);
    say("allocates meanwhile: %d", apr_palloc(at_hand, 100) != NULL);
    return APR_SUCCESS;
}

static apr_status_t kills_another(void *name)
{
    say_plain(name);
    apr_pool_cleanup_kill(at_hand, "victim", say_plain);
    return APR_SUCCESS;
}

static void show_changes_meanwhile(void)
{
    section("cleanups that change cleanups");
    at_hand = pool_below(NULL);
    note(at_hand, "first");
    apr_pool_cleanup_register(at_hand, "registers", registers_more, apr_pool_cleanup_null);
    note(at_hand, "victim");
    note(at_hand, "between");
    apr_pool_cleanup_register(at_hand, "kills", kills_another, apr_pool_cleanup_null);
    apr_pool_clear(at_hand);
    apr_pool_pre_cleanup_register(at_hand, "pre registers", registers_more);
    apr_pool_destroy(at_hand);
}

static apr_status_t fails(void *name)
{
    say_plain(name);
    return APR_EGENERAL;
}

static void show_kill_and_run(void)
{
    apr_pool_t *pool = pool_below(NULL);
    section("kill and run");
    say("null: %d", apr_pool_cleanup_null(pool));
    note(pool, "a");
    note(pool, "b");
    note(pool, "a");
    apr_pool_pre_cleanup_register(pool, "a", say_plain);
    apr_pool_cleanup_kill(pool, "a", say_child);
    apr_pool_cleanup_kill(pool, "never registered", say_plain);
    apr_pool_cleanup_kill(pool, "a", say_plain);
    apr_pool_cleanup_kill(NULL, "a", say_plain);
    say("run: %d", apr_pool_cleanup_run(pool, (void *)"b", say_plain));
    apr_pool_cleanup_register(pool, "failing", fails, fails);
    say("run: %d", apr_pool_cleanup_run(pool, (void *)"failing", fails) == APR_EGENERAL);
    say("run of what is not there: %d", apr_pool_cleanup_run(pool, (void *)"loose", say_plain));
    apr_pool_cleanup_register(NULL, "nowhere", say_plain, say_child);
    apr_pool_pre_cleanup_register(NULL, "nowhere", say_plain);
    apr_pool_child_cleanup_set(NULL, "nowhere", say_plain, say_child);
    apr_pool_destroy(pool);
}

static apr_status_t destroys_sibling(void *sibling)
{
    say("destroying a sibling");
    apr_pool_destroy(sibling);
    return APR_SUCCESS;
}

static apr_pool_t *late;
static char *of_late; /* an object of late, made during the cleanup */

static apr_status_t makes_child(void *name)
{
    say_plain(name);
    late = pool_below(at_hand);
    of_late = apr_pstrdup(late, "text of the late child");
    note(late, "late child");
    return APR_SUCCESS;
}

static apr_status_t makes_bare_child(void *name)
{
    say_plain(name);
    late = pool_below(at_hand);
    return APR_SUCCESS;
}

/* The pool never had anything but its cleanup, and the child gets its first object after the clear. */
static void show_bare_pool_with_late_child(void)
{
    section("a late child in a bare pool");
    at_hand = pool_below(NULL);
    apr_pool_cleanup_register(at_hand, "makes", makes_bare_child, apr_pool_cleanup_null);
    apr_pool_clear(at_hand);
    say("%s", apr_pstrdup(late, "text of the late child"));
    note(late, "late child");
    apr_pool_clear(at_hand);
    apr_pool_destroy(at_hand);
}

static apr_status_t clears_own_pool(void *name)
{
    say_plain(name);
    apr_pool_clear(at_hand);
    apr_pool_cleanup_register(at_hand, "makes after that", makes_child, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

static void show_clear_in_own_clear(void)
{
    section("a cleanup that clears its own pool");
    at_hand = pool_below(NULL);
    note(at_hand, "first");
    say("%s", apr_pstrdup(at_hand, "text"));
    apr_pool_cleanup_register(at_hand, "clears", clears_own_pool, apr_pool_cleanup_null);
    apr_pool_clear(at_hand);
    memset(apr_palloc(at_hand, 20000), 'x', 20000);
    memset(apr_palloc(pool_below(at_hand), 20000), 'x', 20000);
    say("%s, %s", of_late, apr_pstrdup(late, "and is used"));
    apr_pool_destroy(at_hand);
}

static apr_status_t registers_early_one(void *name)
{
    apr_pool_pre_cleanup_register(at_hand, name, say_plain);
    return APR_SUCCESS;
}

/* More than one block of records, so that a clear has some to give back. */
static void show_late_pre_cleanups(void)
{
    section("pre-cleanups that come too late wait for the next clear");
    at_hand = pool_below(NULL);
    for (int i = 0; i < 30; i++)
        apr_pool_cleanup_register(at_hand, i % 2 ? "odd" : "even", registers_early_one,
                                  apr_pool_cleanup_null);
    apr_pool_clear(at_hand);
    say("cleared");
    for (int i = 0; i < 30; i++) note(at_hand, "usual");
    apr_pool_clear(at_hand);
    say("cleared");
    apr_pool_destroy(at_hand);
}

static void show_pools_meanwhile(void)
{
    apr_pool_t *pool = pool_below(NULL), *sibling = pool_below(pool), *child = pool_below(pool);
    section("cleanups that make and destroy pools");
    note(sibling, "sibling");
    apr_pool_cleanup_register(child, sibling, destroys_sibling, apr_pool_cleanup_null);
    apr_pool_clear(pool);
    at_hand = pool;
    apr_pool_pre_cleanup_register(pool, "pre makes", makes_child);
    apr_pool_clear(pool);
    apr_pool_cleanup_register(pool, "makes", makes_child, apr_pool_cleanup_null);
    apr_pool_clear(pool);
    say("a child made by a cleanup stays until the next clear");
    say("with its %s, %s", of_late, apr_pstrdup(late, "and is used"));
    apr_pool_clear(pool);
    apr_pool_destroy(pool);
}

static void get(apr_pool_t *pool, const char *key)
{
    void *data = (void *)"unset";
    must(apr_pool_userdata_get(&data, key, pool));
    say("%s: %s", key, data ? (char *)data : "NULL");
}

static apr_status_t reads_user_data(void *key)
{
    get(at_hand, key);
    return APR_SUCCESS;
}

static void show_user_data(void)
{
    apr_pool_t *pool = pool_below(NULL);
    char key[] = "key";
    section("user data");
    at_hand = pool;
    get(pool, "key");
    must(apr_pool_userdata_set("one", key, say_plain, pool));
    key[0] = 'x';
    get(pool, "key");
    get(pool, "xey");
    must(apr_pool_userdata_set("two", "key", say_plain, pool));
    must(apr_pool_userdata_setn("three", "other", NULL, pool));
    get(pool, "key");
    get(pool, "other");
    must(apr_pool_userdata_setn(NULL, "other", NULL, pool));
    get(pool, "other");
    apr_pool_cleanup_register(pool, "key", reads_user_data, apr_pool_cleanup_null);
    apr_pool_clear(pool);
    get(pool, "key");
    must(apr_pool_userdata_setn("four", "key", say_plain, pool));
    get(pool, "key");
    apr_pool_destroy(pool);
}

void show_cleanups(void)
{
    show_changes_meanwhile();
    show_kill_and_run();
    show_pools_meanwhile();
    show_bare_pool_with_late_child();
    show_clear_in_own_clear();
    show_late_pre_cleanups();
    show_user_data();
}

int main(void)
{
    must(apr_initialize());
    show_life();
    show_cleanups();
    show_allocators();
    show_memory();
    show_strings();
    show_exec();
    show_subprocesses();
    show_threads();
    apr_terminate();
    show_counted_initialization();
    return 0;
}
