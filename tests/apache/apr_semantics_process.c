/* SPDX-License-Identifier: Apache-2.0 */
/* apr_semantics_process.c: forks, subprocesses, threads, and APR's own beginning and end. */
#include "apr_semantics.h"

#include <apr_thread_proc.h>
#include <apr_time.h>
#include <signal.h>
#include <stdatomic.h>

static apr_pool_t *exec_pool;

static apr_status_t child_registers(void *name)
{
    say_child(name);
    apr_pool_cleanup_register(exec_pool, "registered before exec", say_plain, say_child);
    return APR_SUCCESS;
}

static void in_forked_child(void)
{
    apr_pool_cleanup_for_exec();
    say("again:");
    apr_pool_cleanup_for_exec();
    apr_pool_destroy(exec_pool);
    say("child ends");
    _exit(0);
}

void show_exec(void)
{
    apr_pool_t *elder, *younger, *unmanaged;
    pid_t child;
    section("cleanups before exec");
    exec_pool = pool_below(NULL);
    elder = pool_below(exec_pool);
    younger = pool_below(exec_pool);
    must(apr_pool_create_unmanaged(&unmanaged));
    note(exec_pool, "pool 1");
    note(exec_pool, "pool 2");
    apr_pool_cleanup_register(exec_pool, "registers", say_plain, child_registers);
    note(elder, "elder");
    note(younger, "younger");
    note(pool_below(elder), "grandchild");
    note(unmanaged, "unmanaged");
    apr_pool_pre_cleanup_register(exec_pool, "pre", say_plain);
    apr_pool_child_cleanup_set(exec_pool, "pool 1", say_plain, say_plain);
    apr_pool_child_cleanup_set(exec_pool, "not there", say_plain, say_plain);
    if ((child = fork()) == 0) in_forked_child();
    waitpid(child, NULL, 0);
    say("in the parent:");
    apr_pool_destroy(exec_pool);
    apr_pool_destroy(unmanaged);
}

enum behaviour { ENDS_AT_ONCE, SLEEPS, IGNORES_TERM, ENDS_LATE_ON_TERM, ENDS_SOON };

static void late_end(int signal)
{
    (void)signal;
    usleep(300000);
    _exit(0);
}

/* Tells through ready that signals are arranged for. */
static void behave(enum behaviour behaviour, int ready)
{
    if (behaviour == ENDS_AT_ONCE) _exit(0);
    if (behaviour == IGNORES_TERM) signal(SIGTERM, SIG_IGN);
    if (behaviour == ENDS_LATE_ON_TERM) signal(SIGTERM, late_end);
    if (write(ready, "r", 1) != 1) _exit(1);
    if (behaviour == ENDS_SOON) {
        usleep(500000);
        _exit(0);
    }
    for (;;) sleep(60);
}

static void start(apr_pool_t *pool, apr_proc_t *process, enum behaviour behaviour, apr_kill_conditions_e how)
{
    int ready[2];
    char byte;
    must(pipe(ready) ? APR_EGENERAL : APR_SUCCESS);
    memset(process, 0, sizeof *process);
    process->pid = fork();
    if (process->pid == 0) behave(behaviour, ready[1]);
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) usleep(100000); /* it has ended, or is about to */
    close(ready[0]);
    apr_pool_note_subprocess(pool, process, how);
}

static const char *coarsely(apr_time_t took)
{
    if (took < 40000) return "no time";
    if (took < 2000000) return "a little";
    return took < 2900000 ? "more than a little" : "three seconds";
}

/* How long a pool's end took, and whether its processes are gone and waited for. */
static void end_and_say(apr_pool_t *pool, apr_proc_t *process, int processes)
{
    apr_time_t began = apr_time_now(), took;
    apr_pool_clear(pool);
    took = apr_time_now() - began;
    say("took %s", coarsely(took));
    for (int i = 0; i < processes; i++) {
        int there = kill(process[i].pid, 0) == 0;
        say("process %d: %s", i, there ? "runs" : "gone");
        if (!there) continue;
        kill(process[i].pid, SIGKILL);
        waitpid(process[i].pid, NULL, 0);
    }
}

static void show_one(const char *name, enum behaviour behaviour, apr_kill_conditions_e how)
{
    apr_pool_t *pool = pool_below(NULL);
    apr_proc_t process;
    say("%s:", name);
    start(pool, &process, behaviour, how);
    end_and_say(pool, &process, 1);
    apr_pool_destroy(pool);
}

/* All in one pool: they share one grace. */
static void show_together(void)
{
    apr_pool_t *pool = pool_below(NULL);
    apr_proc_t process[4];
    say("together:");
    start(pool, &process[0], SLEEPS, APR_KILL_ALWAYS);
    start(pool, &process[1], IGNORES_TERM, APR_KILL_AFTER_TIMEOUT);
    start(pool, &process[2], IGNORES_TERM, APR_KILL_AFTER_TIMEOUT);
    start(pool, &process[3], SLEEPS, APR_KILL_NEVER);
    end_and_say(pool, process, 4);
    apr_pool_destroy(pool);
}

void show_subprocesses(void)
{
    section("subprocesses");
    show_one("never", SLEEPS, APR_KILL_NEVER);
    show_one("always", IGNORES_TERM, APR_KILL_ALWAYS);
    show_one("after timeout, ended before", ENDS_AT_ONCE, APR_KILL_AFTER_TIMEOUT);
    show_one("after timeout, obeys", SLEEPS, APR_KILL_AFTER_TIMEOUT);
    show_one("after timeout, obeys late", ENDS_LATE_ON_TERM, APR_KILL_AFTER_TIMEOUT);
    show_one("just wait", ENDS_SOON, APR_JUST_WAIT);
    show_one("only once", ENDS_LATE_ON_TERM, APR_KILL_ONLY_ONCE);
    show_together();
}

enum { THREADS = 4, ROUNDS = 2000 };

static atomic_uint ended;

static apr_status_t count_end(void *counter)
{
    atomic_fetch_add((atomic_uint *)counter, 1);
    return APR_SUCCESS;
}

/* Makes children of one parent, which other threads do as well, and destroys most of them. */
static void *APR_THREAD_FUNC make_children(apr_thread_t *self, void *parent)
{
    (void)self;
    for (unsigned i = 0; i < ROUNDS; i++) {
        apr_pool_t *child = pool_below(parent), *grandchild = pool_below(child);
        memset(apr_palloc(grandchild, 50 + i % 1000), 'g', 50 + i % 1000);
        apr_pool_cleanup_register(grandchild, &ended, count_end, apr_pool_cleanup_null);
        if (i % 2) apr_pool_clear(child);
        if (i % 16) apr_pool_destroy(child);
    }
    return NULL;
}

void show_threads(void)
{
    apr_pool_t *keeper = pool_below(NULL), *parent = pool_below(NULL);
    apr_thread_t *thread[THREADS];
    apr_status_t status;
    section("threads");
    for (int i = 0; i < THREADS; i++)
        must(apr_thread_create(&thread[i], NULL, make_children, parent, keeper));
    for (int i = 0; i < THREADS; i++) must(apr_thread_join(&status, thread[i]));
    say("ended so far: %u", atomic_load(&ended));
    apr_pool_destroy(parent);
    say("ended: %u", atomic_load(&ended));
    apr_pool_destroy(keeper);
}

void show_counted_initialization(void)
{
    apr_pool_t *pool, *global, *unmanaged;
    section("initialization");
    say("ended: %d", apr_pool_create_unmanaged(&unmanaged) == APR_ENOPOOL && !unmanaged);
    must(apr_pool_initialize());
    must(apr_pool_initialize());
    pool = pool_below(NULL);
    global = apr_pool_parent_get(pool);
    say("global pool: %d %d", apr_pool_parent_get(global) != NULL,
        apr_allocator_owner_get(apr_pool_allocator_get(global)) == global);
    say("its mutex: %d", apr_allocator_mutex_get(apr_pool_allocator_get(global)) != NULL);
    must(apr_pool_create_unmanaged(&unmanaged));
    note(pool, "below the global pool");
    note(global, "global");
    note(unmanaged, "unmanaged");
    apr_pool_terminate();
    say("still there: %d", apr_palloc(pool, 10) != NULL);
    apr_pool_terminate();
    say("terminated");
    apr_pool_terminate();
    apr_pool_destroy(unmanaged);
    must(apr_initialize());
    note(pool_below(NULL), "in the second life");
    apr_terminate();
}
