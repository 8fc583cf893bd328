/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include "process.h"

#include <ap_mpm.h>
#include <apr_shm.h>
#include <apr_strings.h>
#include <errno.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

APLOG_USE_MODULE(reap);

enum { GROWTH_TAGS = 64, TAG_LENGTH = 40 };

struct growth_tag {
    char name[TAG_LENGTH];
    uint64_t bytes;
};

struct growth {
    apr_time_t time; /* 0: none yet */
    unsigned n;
    struct growth_tag tags[GROWTH_TAGS];
};

struct shared {
    pthread_mutex_t looking, lock;
    apr_time_t began;
    uint64_t counts[COUNTERS];
    apr_time_t minute; /* when somebody last said what holds most; 0: never */
    apr_time_t taken;  /* the snapshot; 0: none yet */
    apr_interval_time_t life;
    size_t lengths[DOCUMENTS];
    struct board_point points[BOARD_POINTS];
    unsigned n_points; /* ever; the last is at n_points - 1, modulo */
    struct growth base, next;
    struct {
        pid_t pid; /* 0: nobody's */
        apr_time_t until, gone;
    } turn;
    struct {
        struct board_pressure seen, told;
        apr_time_t next; /* when it may be told; 0: there was no look */
    } pressure;
    struct board_end ends[BOARD_ENDS];
    uint64_t n_ends; /* ever; the last is at n_ends - 1, modulo */
    struct board_request largest[BOARD_LARGEST];
    size_t n_largest;
    int said_by; /* the generation that had the first word, and 1 */
    struct board_slot slots[];
};

/* What a restart, which loads this module anew, has to find again. */
struct retained {
    size_t size;          /* of the shared memory; another module's version may want another */
    size_t slots, served; /* requests of each slot, behind all slots */
    struct shared *shared;
    int file;
    char address[64];
};

static struct retained *board; /* NULL: none */
static struct board_slot *own;

/* --- making it ----------------------------------------------------------------------------------- */

static bool make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    return pthread_mutexattr_init(&attributes) == 0 &&
           pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(mutex, &attributes) == 0;
}

/* The administrator's own option for questions has its address; a process listens at one only. */
static void choose_address(char *address, size_t size)
{
    const char *options = getenv("REAP_OPTIONS"), *ask = options ? strstr(options, "ask=") : NULL;
    size_t length = ask ? strcspn(ask + 4, ",: ") : 0;
    unsigned number;
    apr_generate_random_bytes((unsigned char *)&number, sizeof number);
    apr_snprintf(address, size, "@reap-httpd.%ld.%08x.%%p", (long)getpid(), number);
    if (length && length < size && memmem(ask + 4, length, "%p", 2))
        apr_cpystrn(address, ask + 4, length + 1);
}

static size_t size_of(size_t slots, size_t served)
{
    return sizeof(struct shared) +
           slots * (sizeof(struct board_slot) + served * sizeof(struct board_request));
}

static bool make_board(struct retained *made, size_t slots, apr_pool_t *pool)
{
    apr_shm_t *memory;
    int threads = 1;
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_THREADS, &threads);
    made->slots = slots;
    made->served = threads < 1 ? 1 : threads < 64 ? (size_t)threads : 64;
    made->size = size_of(slots, made->served);
    if (apr_shm_create(&memory, made->size + 64, NULL, pool) != APR_SUCCESS) return false;
    uintptr_t start = ((uintptr_t)apr_shm_baseaddr_get(memory) + 63) & ~(uintptr_t)63;
    struct shared *shared = (struct shared *)start;
    made->file = memfd_create("mod_reap", MFD_CLOEXEC);
    if (made->file < 0) return false;
    memset(shared, 0, sizeof *shared); /* the slots are many, and zeros as they come */
    shared->began = apr_time_now();
    choose_address(made->address, sizeof made->address);
    if (!make_mutex(&shared->looking) || !make_mutex(&shared->lock)) return false;
    made->shared = shared;
    return true;
}

bool board_open(server_rec *server)
{
    static const char key[] = "mod_reap board";
    int children = 1;
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &children);
    size_t slots = 2 * (size_t)children + 16; /* those of older generations beside the new */
    struct retained *found = ap_retained_data_get(key);
    if (!found) found = ap_retained_data_create(key, sizeof *found);
    if (!found->shared && !make_board(found, slots, server->process->pool)) {
        ap_log_error(APLOG_MARK, APLOG_ERR, APR_FROM_OS_ERROR(errno), server,
                     "ReapStatus: no shared memory; reap-status shows nothing");
        return false;
    }
    if (found->size != size_of(found->slots, found->served)) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     "ReapStatus: the module is another than before the restart; stop and start httpd");
        return false;
    }
    board = found;
    return true;
}

bool board_is_open(void) { return board; }

const char *board_address(void) { return board->address; }

/* --- locks --------------------------------------------------------------------------------------- */

/* A child that ended in the middle leaves data that is copied and shown, and no pointers: it is used. */
static bool taken(pthread_mutex_t *mutex, int result)
{
    if (result == EOWNERDEAD) result = pthread_mutex_consistent(mutex);
    return result == 0;
}

static bool take(void)
{
    return board && taken(&board->shared->lock, pthread_mutex_lock(&board->shared->lock));
}

static void release(void) { pthread_mutex_unlock(&board->shared->lock); }

bool board_is_watched(void)
{
    if (!take()) return false;
    bool is_watched = board->shared->taken && apr_time_now() - board->shared->taken < 60 * APR_USEC_PER_SEC;
    release();
    return is_watched;
}

bool board_begin_look(apr_interval_time_t wait)
{
    struct timespec until;
    if (!board) return false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(wait % APR_USEC_PER_SEC) * 1000;
    until.tv_sec += (time_t)(wait / APR_USEC_PER_SEC) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_t *mutex = &board->shared->looking;
    return taken(mutex, wait ? pthread_mutex_timedlock(mutex, &until) : pthread_mutex_trylock(mutex));
}

void board_end_look(void) { pthread_mutex_unlock(&board->shared->looking); }

/* --- slots --------------------------------------------------------------------------------------- */

static apr_status_t leave(void *data)
{
    (void)data;
    board_release(own);
    own = NULL;
    return APR_SUCCESS;
}

/* Takes a slot that is free, or whose child has ended without leaving. */
static bool claim(struct board_slot *slot)
{
    pid_t pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);
    if (pid && !process_is_gone(pid)) return false;
    return __atomic_compare_exchange_n(&slot->pid, &pid, getpid(), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void board_join(apr_pool_t *pool, int generation)
{
    for (size_t i = 0; board && !own && i < board->slots; i++)
        if (claim(&board->shared->slots[i])) own = &board->shared->slots[i];
    if (!own) return;
    memset(&own->generation, 0, sizeof *own - offsetof(struct board_slot, generation));
    own->generation = generation;
    own->since = apr_time_now();
    struct board_request *served;
    size_t n = board_served(own, &served);
    memset(served, 0, n * sizeof *served);
    apr_pool_cleanup_register(pool, NULL, leave, apr_pool_cleanup_null);
}

struct board_slot *board_own_slot(void) { return own; }

size_t board_slots(struct board_slot **slots)
{
    *slots = board ? board->shared->slots : NULL;
    return board ? board->slots : 0;
}

size_t board_served(const struct board_slot *slot, struct board_request **served)
{
    struct board_slot *slots = board->shared->slots, *end = slots + board->slots;
    *served = (struct board_request *)end + (size_t)(slot - slots) * board->served;
    return board->served;
}

void board_release(struct board_slot *slot)
{
    if (slot) __atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
}

/* --- children that end --------------------------------------------------------------------------- */

bool board_take_turn(apr_time_t until)
{
    apr_time_t now = apr_time_now();
    if (!take()) return false;
    struct shared *shared = board->shared;
    if (shared->turn.pid && !shared->turn.gone && process_is_gone(shared->turn.pid)) shared->turn.gone = now;
    bool is_free =
        now > shared->turn.until || (shared->turn.gone && now - shared->turn.gone > 2 * APR_USEC_PER_SEC);
    if (is_free) {
        shared->turn.pid = getpid();
        shared->turn.until = until;
        shared->turn.gone = 0;
    }
    release();
    return is_free;
}

void board_note_end(const struct board_end *end)
{
    if (!take()) return;
    board->shared->ends[board->shared->n_ends++ % BOARD_ENDS] = *end;
    release();
    board_count(end->why == END_CHILD_LIMIT ? COUNT_ENDED : COUNT_KILLED);
}

size_t board_ends(struct board_end *ends)
{
    size_t n = 0;
    if (!take()) return 0;
    for (uint64_t all = board->shared->n_ends; n < BOARD_ENDS && n < all; n++)
        ends[n] = board->shared->ends[(all - 1 - n) % BOARD_ENDS];
    release();
    return n;
}

bool board_is_first_word(void)
{
    int generation = 0;
    ap_mpm_query(AP_MPMQ_GENERATION, &generation);
    return !board ||
           __atomic_exchange_n(&board->shared->said_by, generation + 1, __ATOMIC_RELAXED) != generation + 1;
}

/* --- the largest requests ------------------------------------------------------------------------ */

static bool is_same(const struct board_request *a, const struct board_request *b)
{
    size_t path = strcspn(a->uri, "?");
    return path == strcspn(b->uri, "?") && memcmp(a->uri, b->uri, path) == 0 &&
           strcmp(a->method, b->method) == 0 && strcmp(a->host, b->host) == 0;
}

static void drop_old(struct shared *shared, apr_time_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < shared->n_largest; i++)
        if (now - shared->largest[i].time < 600 * APR_USEC_PER_SEC)
            shared->largest[kept++] = shared->largest[i];
    shared->n_largest = kept;
}

void board_insert(struct board_request *all, size_t *n, size_t most, const struct board_request *request)
{
    size_t at = 0, end;
    while (at < *n && all[at].bytes > request->bytes && !is_same(&all[at], request)) at++;
    if (at == most || (at < *n && all[at].bytes > request->bytes)) return;
    for (end = at; end < *n && !is_same(&all[end], request);) end++;
    if (end == *n && end < most) ++*n;
    if (end == most) end--;
    memmove(&all[at + 1], &all[at], (end - at) * sizeof *all);
    all[at] = *request;
}

void board_note_largest(const struct board_request *request)
{
    if (!take()) return;
    drop_old(board->shared, request->time);
    board_insert(board->shared->largest, &board->shared->n_largest, BOARD_LARGEST, request);
    release();
}

size_t board_largest(struct board_request *largest)
{
    if (!take()) return 0;
    drop_old(board->shared, apr_time_now());
    size_t n = board->shared->n_largest;
    memcpy(largest, board->shared->largest, n * sizeof *largest);
    release();
    return n;
}

/* --- counters ------------------------------------------------------------------------------------ */

void board_count(enum board_counter which)
{
    if (board) __atomic_fetch_add(&board->shared->counts[which], 1, __ATOMIC_RELAXED);
}

uint64_t board_counted(enum board_counter which)
{
    return board ? __atomic_load_n(&board->shared->counts[which], __ATOMIC_RELAXED) : 0;
}

bool board_takes_minute(void)
{
    static apr_time_t own_minute;
    apr_time_t *minute = board ? &board->shared->minute : &own_minute, now = apr_time_now();
    apr_time_t last = __atomic_load_n(minute, __ATOMIC_RELAXED);
    return (!last || now - last >= 60 * APR_USEC_PER_SEC) &&
           __atomic_compare_exchange_n(minute, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool board_note_pressure(struct board_pressure *counts)
{
    apr_time_t now = apr_time_now();
    const struct board_pressure new = *counts;
    if (!take()) return false;
    struct board_pressure *seen = &board->shared->pressure.seen, *told = &board->shared->pressure.told;
    apr_time_t *next = &board->shared->pressure.next;
    bool has_grown = new.high > seen->high || new.max > seen->max || new.killed > seen->killed;
    bool tells = *next && has_grown && now >= *next;
    if (tells)
        *counts =
            (struct board_pressure){new.high - told->high, new.max - told->max, new.killed - told->killed};
    if (!*next || tells) {
        *next = tells ? now + 60 * APR_USEC_PER_SEC : now;
        *told = new;
    }
    *seen = new;
    release();
    return tells;
}

uint64_t board_recent_excesses(double *seconds)
{
    *seconds = 0;
    if (!take()) return 0;
    const struct shared *shared = board->shared;
    const struct board_point none = {.time = shared->began}, *oldest = &none;
    if (shared->n_points > BOARD_POINTS) oldest = &shared->points[shared->n_points % BOARD_POINTS];
    uint64_t recent = board_counted(COUNT_EXCESSES) - oldest->excesses;
    *seconds = (double)(apr_time_now() - oldest->time) / 1e6;
    release();
    return recent;
}

/* --- the snapshot -------------------------------------------------------------------------------- */

static char *read_document(enum document document, size_t *length)
{
    off_t start = 0;
    for (int i = 0; i < (int)document; i++) start += (off_t)board->shared->lengths[i];
    *length = board->shared->lengths[document];
    char *data = malloc(*length + 1);
    if (!data) return NULL;
    if (pread(board->file, data, *length, start) != (ssize_t)*length) {
        free(data);
        return NULL;
    }
    data[*length] = 0;
    return data;
}

char *board_document(enum document document, bool late, size_t *length)
{
    char *data = NULL;
    if (!take()) return NULL;
    apr_interval_time_t life = board->shared->life, age = apr_time_now() - board->shared->taken;
    if (late && life < 3 * APR_USEC_PER_SEC) life = 3 * APR_USEC_PER_SEC;
    if (board->shared->taken && age >= 0 && age < life) data = read_document(document, length);
    release();
    return data;
}

void board_keep_documents(const struct text *documents, apr_interval_time_t life)
{
    off_t end = 0;
    bool written = true;
    if (!take()) return;
    for (int i = 0; i < DOCUMENTS; i++) {
        const struct text *text = &documents[i];
        written &= !text->failed && text->data &&
                   pwrite(board->file, text->data, text->length, end) == (ssize_t)text->length;
        board->shared->lengths[i] = text->length;
        end += (off_t)text->length;
    }
    written &= ftruncate(board->file, end) == 0;
    board->shared->taken = written ? apr_time_now() : 0;
    board->shared->life = life;
    release();
}

/* --- the curve ----------------------------------------------------------------------------------- */

static void keep_most(struct board_point *noted, const struct board_point *point)
{
    if (point->bytes > noted->bytes) noted->bytes = point->bytes;
    if (point->rss > noted->rss) noted->rss = point->rss;
    if (point->requests > noted->requests) noted->requests = point->requests;
}

void board_add_point(const struct board_point *point)
{
    if (!take()) return;
    struct shared *shared = board->shared;
    const struct board_point *last = &shared->points[(shared->n_points + BOARD_POINTS - 1) % BOARD_POINTS];
    if (!shared->n_points || point->time - last->time >= 5 * APR_USEC_PER_SEC || point->time < last->time) {
        struct board_point *noted = &shared->points[shared->n_points++ % BOARD_POINTS];
        *noted = *point;
        noted->excesses = board_counted(COUNT_EXCESSES);
    } else {
        keep_most(&shared->points[(shared->n_points + BOARD_POINTS - 1) % BOARD_POINTS], point);
    }
    release();
}

size_t board_history(struct board_point *points)
{
    size_t n = 0;
    if (!take()) return 0;
    unsigned end = board->shared->n_points, begin = end > BOARD_POINTS ? end - BOARD_POINTS : 0;
    while (begin < end) points[n++] = board->shared->points[begin++ % BOARD_POINTS];
    release();
    return n;
}

/* --- growth -------------------------------------------------------------------------------------- */

static void note_growth(struct growth *growth, const struct pool_tags *tags)
{
    growth->time = apr_time_now();
    growth->n = 0;
    for (size_t i = 0; i < tags->n && growth->n < GROWTH_TAGS; i++) {
        if (strlen(tags->tags[i].name) >= TAG_LENGTH) continue;
        struct growth_tag *tag = &growth->tags[growth->n++];
        apr_cpystrn(tag->name, tags->tags[i].name, TAG_LENGTH);
        tag->bytes = tags->tags[i].sums.bytes;
    }
}

double board_growth(const struct pool_tags *now, struct pool_tags *earlier)
{
    if (!take()) return 0;
    struct growth *base = &board->shared->base, *next = &board->shared->next;
    apr_time_t time = apr_time_now();
    if (!base->time) note_growth(base, now);
    if (!next->time || time - next->time >= 60 * APR_USEC_PER_SEC) {
        if (next->time) *base = *next;
        note_growth(next, now);
    }
    for (unsigned i = 0; i < base->n; i++)
        pool_tags_add(earlier, base->tags[i].name, &(struct pool_sums){.bytes = base->tags[i].bytes});
    double seconds = (double)(time - base->time) / 1e6;
    release();
    return seconds;
}
