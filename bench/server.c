/* SPDX-License-Identifier: Apache-2.0 */
/* A server that searches, for whichever malloc is preloaded: server MODEL NUMBER [offset[=BYTES]] [short].
 * Written anew after what McDowell, Eggers and Gribble (PPoPP 2003, sections 3, 4.2 and 5) tell of theirs:
 * a request has 15,000 allocations, half of one size, a third of another one; what a server looks up is in
 * memory.
 *
 *     mt       NUMBER threads, each with a request from its beginning to its end
 *     mp       NUMBER processes that do the same, each with a heap of its own
 *     event    a request is cut into eleven stages; NUMBER threads take up to 8 requests that are at the
 *              same stage, one after the other, of 32 that are under way. So most objects are freed by
 *              another thread than the one that allocated them
 *
 * offset moves the stack of each thread or process by so many bytes more than the one before (their 5.3):
 * stacks begin at multiples of a page, so their tops share sets of a first-level cache. They moved by
 * pages, in a cache whose ways had eight of these; a way has one today, so without BYTES it is a way
 * divided by NUMBER. What that gains needs threads at once on one core.
 *
 * An operation is a request. sum is that of all answers, the same with each malloc, model and number;
 * allocations is how many there were.
 */
#include "server_search.h"
#include "workers.h"

#include <alloca.h>
#include <pthread.h>
#include <sys/wait.h>

enum { REQUESTS = 1000, REQUESTS_SHORT = 4, UNDER_WAY = 32, AT_ONCE = 8 };

static int requests = REQUESTS, number;

/* --- three models ----------------------------------------------------------------------------- */

/* The next one that comes, or NULL. */
static struct request *accept_request(void)
{
    int next = atomic_fetch_add(&shared->next, 1);
    if (next >= requests) return NULL;
    struct request *request = take(sizeof *request);
    *request = (struct request){.size = sizeof *request,
                                .number = (uint64_t)next,
                                .allocations = 1,
                                .state = 2463534242u + (uint32_t)next * 2654435761u};
    return request;
}

static void serve_whole(void)
{
    for (struct request *request; (request = accept_request()) != NULL;)
        for (int i = 0; i < STAGES; i++) search_stages[i](request);
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct request *first[STAGES], **last[STAGES];
    int n[STAGES], under_way;
} queues = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void queue_put(struct request *request)
{
    int stage = request->stage;
    request->next = NULL;
    if (queues.n[stage]++ == 0) queues.last[stage] = &queues.first[stage];
    *queues.last[stage] = request;
    queues.last[stage] = &request->next;
}

/* So many of the stage at which most wait; 0 when all is done. */
static int queue_get(struct request *some[])
{
    int most = 0, n = 0;
    for (;;) {
        for (int i = 0; i < STAGES; i++)
            if (queues.n[i] > queues.n[most]) most = i;
        if (queues.n[most] > 0 || queues.under_way == 0) break;
        pthread_cond_wait(&queues.changed, &queues.lock);
    }
    for (; n < AT_ONCE && queues.n[most] > 0; queues.n[most]--) {
        some[n++] = queues.first[most];
        queues.first[most] = queues.first[most]->next;
    }
    return n;
}

static void serve_events(void)
{
    struct request *some[AT_ONCE];
    pthread_mutex_lock(&queues.lock);
    for (int n; (n = queue_get(some)) > 0; pthread_cond_broadcast(&queues.changed)) {
        pthread_mutex_unlock(&queues.lock);
        for (int i = 0; i < n; i++) {
            int stage = some[i]->stage++;
            search_stages[stage](some[i]);
            if (stage == STAGES - 1) some[i] = accept_request();
        }
        pthread_mutex_lock(&queues.lock);
        for (int i = 0; i < n; i++) {
            if (some[i] != NULL)
                queue_put(some[i]);
            else
                queues.under_way--;
        }
    }
    pthread_mutex_unlock(&queues.lock);
}

static void (*serve)(void);
static size_t offset;

/* Below bytes that nobody uses. */
static __attribute__((noinline)) void serve_shifted(int index)
{
    volatile char *unused = alloca((size_t)index * offset + 1);
    *unused = 0;
    serve();
    *unused = 1;
}

static void mt(void)
{
    serve = serve_whole;
    on_threads(serve_shifted, number);
}

static void mp(void)
{
    serve = serve_whole;
    for (int i = 0; i < number; i++) {
        pid_t child = fork();
        measure_need(child >= 0, "no process");
        if (child != 0) continue;
        serve_shifted(i);
        _exit(0);
    }
    for (int i = 0, status; i < number; i++)
        measure_need(wait(&status) > 0 && status == 0, "a process did not end well");
}

static void event(void)
{
    struct request *request;
    serve = serve_events;
    for (; queues.under_way < UNDER_WAY && (request = accept_request()) != NULL; queues.under_way++)
        queue_put(request);
    on_threads(serve_shifted, number);
}

/* A way of the first-level cache, divided by the threads. */
static size_t usual_offset(void)
{
    long size = sysconf(_SC_LEVEL1_DCACHE_SIZE), ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
    size_t way = size > 0 && ways > 0 ? (size_t)(size / ways) : 4096;
    return way / (size_t)number / USE_LINE * USE_LINE;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } models[] = {{"mt", mt}, {"mp", mp}, {"event", event}};
    number = argc > 2 ? atoi(argv[2]) : 1;
    measure_need(number > 0 && number <= THREADS_MAX, "1 to 256 threads or processes");
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "short") == 0)
            requests = REQUESTS_SHORT;
        else if (strcmp(argv[i], "offset") == 0)
            offset = usual_offset();
        else if (strncmp(argv[i], "offset=", 7) == 0)
            offset = (size_t)atol(argv[i] + 7);
    }
    search_begin();
    for (size_t i = 0; argc > 1 && i < sizeof models / sizeof *models; i++)
        if (strcmp(argv[1], models[i].name) == 0) {
            uint64_t start = measure_now();
            models[i].run();
            measure_print(measure_now() - start, (uint64_t)requests);
            measure_print_named("sum", (long long)(shared->sum % 1000000007));
            measure_print_named("allocations", (long long)shared->allocations / requests);
            measure_print_named("offset", (long long)offset);
            return 0;
        }
    measure_need(0, "usage: server mt|mp|event NUMBER [offset[=BYTES]] [short]");
}
