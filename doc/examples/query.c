/* SPDX-License-Identifier: Apache-2.0 */
/* query.c: a database's query: threads that group rows in hash tables, in one region with a limit.
 *
 *     cc -o query query.c $(pkg-config --cflags --libs reap-malloc) -lpthread
 *     ./query 8 256                threads, and MiB of memory for a query
 *
 * Linked to libreap-malloc: the tables know nothing of reaps, and use malloc, realloc and free. A query's
 * threads have entered its region, which is shared. Where its tables would pass the limit, one of them gets
 * NULL, and the query ends in order: all threads stop, and the region goes with all that is in it. What
 * outlives it, the cache of answers, is made in the heap: reapEnter(NULL).
 *
 * The limit is on the bytes that live. That the process has hardly more, the last line tells: its memory at
 * the peak, and after the last query.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <reap.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, FEWEST = 1024 };

/* --- a table that knows nothing of reaps ------------------------------------------------------- */

struct group {
    uint64_t key, rows;
};

struct table {
    uint32_t *slots; /* the number of a group, and 1 more; 0: none. Twice as many as there may be groups */
    struct group *groups; /* in the order in which they came */
    size_t room, count;
};

static size_t first_slot(const struct table *table, uint64_t key)
{
    return ((key * 0x9e3779b97f4a7c15) >> 32) * (table->room * 2) >> 32;
}

static size_t next_slot(const struct table *table, size_t at)
{
    return at + 1 < table->room * 2 ? at + 1 : 0;
}

static void put_slot(struct table *table, uint64_t key, uint32_t number)
{
    size_t at = first_slot(table, key);
    while (table->slots[at]) at = next_slot(table, at);
    table->slots[at] = number + 1;
}

/* The groups are moved as they are, the slots are made anew. */
static bool grow(struct table *table)
{
    size_t room = table->room ? table->room + table->room / 2 : FEWEST;
    struct group *groups = realloc(table->groups, room * sizeof *groups);
    if (!groups) return false;
    table->groups = groups;
    uint32_t *slots = calloc(room * 2, sizeof *slots);
    if (!slots) return false;
    free(table->slots);
    table->slots = slots;
    table->room = room;
    for (size_t i = 0; i < table->count; i++) put_slot(table, groups[i].key, (uint32_t)i);
    return true;
}

static bool count_row(struct table *table, uint64_t key)
{
    if (table->count == table->room && !grow(table)) return false;
    size_t at = first_slot(table, key);
    for (; table->slots[at]; at = next_slot(table, at)) {
        struct group *group = &table->groups[table->slots[at] - 1];
        if (group->key != key) continue;
        group->rows++;
        return true;
    }
    table->groups[table->count] = (struct group){key, 1};
    table->slots[at] = (uint32_t)++table->count;
    return true;
}

/* --- a query -------------------------------------------------------------------------------------- */

struct query {
    void *region;
    uint64_t rows, keys; /* of each thread; the keys that a row may have */
    _Atomic uint64_t done, groups;
    _Atomic int error; /* of the first thread that failed: the others stop */
};

struct worker {
    pthread_t thread;
    struct query *query;
    uint64_t chance;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct query *query = worker->query;
    struct table table = {NULL, NULL, 0, 0};
    uint64_t row = 0;
    reapEnter(&query->region);
    for (; row < query->rows && !atomic_load_explicit(&query->error, memory_order_relaxed); row++) {
        worker->chance = worker->chance * 6364136223846793005 + 1442695040888963407;
        if (count_row(&table, (worker->chance >> 20) % query->keys)) continue;
        int none = 0;
        atomic_compare_exchange_strong(&query->error, &none, errno);
    }
    reapLeave();
    atomic_fetch_add(&query->done, row);
    atomic_fetch_add(&query->groups, table.count);
    return NULL; /* the table goes with the region */
}

static char *cached; /* the last answer */

/* Makes the answer in the region, and puts a copy into the cache, which outlives the region. */
static void answer(struct query *query, const char *name)
{
    enum { ROOM = 100 };
    reapEnter(&query->region);
    char *text = malloc(ROOM);
    if (text) {
        snprintf(text, ROOM, "%s: %" PRIu64 " groups of %" PRIu64 " rows", name, query->groups, query->done);
        reapEnter(NULL);
        free(cached);
        cached = strdup(text);
        reapLeave();
    }
    reapLeave();
}

/* Returns 0, or why there is no answer. */
static int run(const char *name, unsigned threads, size_t limit, uint64_t rows, uint64_t keys, uint64_t *done)
{
    static struct worker workers[THREADS_MAX];
    struct query query = {.rows = rows, .keys = keys};
    struct reap_options options = {
        .size = sizeof options, .limit = limit, .name = name, .flags = REAP_SHARED};
    unsigned begun = 0;
    if (reapCreateWith(&query.region, NULL, &options) != 0) return errno;
    for (; begun < threads; begun++) {
        workers[begun] = (struct worker){.query = &query, .chance = begun + 1};
        int error = pthread_create(&workers[begun].thread, NULL, work, &workers[begun]);
        if (error) {
            query.error = error;
            break;
        }
    }
    for (unsigned i = 0; i < begun; i++) pthread_join(workers[i].thread, NULL);
    if (!query.error) answer(&query, name);
    reapDestroy(&query.region);
    *done += query.done;
    return query.error;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static double resident_mib(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    size_t mib = argc > 2 ? (size_t)atoi(argv[2]) : 256;
    if (threads == 0 || threads > THREADS_MAX || mib == 0) return fprintf(stderr, "query: THREADS MIB\n"), 2;
    uint64_t done = 0;
    double begin = seconds();

    /* A few groups of many rows fit. Where each row is a group, there are too many. */
    int few = run("few", threads, mib << 20, 1000000 / threads, 5000, &done);
    int many = run("many", threads, mib << 20, UINT64_MAX, UINT64_MAX, &done);
    int again = run("again", threads, mib << 20, 1000000 / threads, 100, &done);
    double took = seconds() - begin, peak = peak_mib();
    printf("few: %s; many: %s; again: %s\n", strerror(few), strerror(many), strerror(again));
    printf("%s\n", cached ? cached : "no answer");
    printf(
        "%u threads, %.1f million rows a second; %.0f MiB at the peak: %.2f of the limit; %.0f afterwards\n",
        threads, (double)done / took / 1e6, peak, peak / (double)mib, resident_mib());
    free(cached);
    return few == 0 && many == ENOMEM && again == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
