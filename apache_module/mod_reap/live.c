/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include "library.h"
#include "process.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <http_config.h>
#include <http_core.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern module AP_MODULE_DECLARE_DATA reap_module;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct live *list; /* the newest first */
static size_t entries;
static unsigned requests;
static unsigned *counter = &requests;
static struct board_slot *slot; /* the child's own */
static apr_pool_t *all_pools;
static _Thread_local struct live *entered;

/* --- coming and going ---------------------------------------------------------------------------- */

static void count(int change) { __atomic_fetch_add(counter, (unsigned)change, __ATOMIC_RELAXED); }

static apr_status_t leave(void *data)
{
    struct live *live = data;
    pthread_mutex_lock(&lock);
    *live->ref = live->next;
    if (live->next) live->next->ref = live->ref;
    entries--;
    pthread_mutex_unlock(&lock);
    if (live->served) __atomic_store_n(&live->served->pid, 0, __ATOMIC_RELEASE);
    if (live->is_request) count(-1);
    if (entered == live) entered = NULL;
    return APR_SUCCESS;
}

static void join(struct live *live)
{
    live->since = apr_time_now();
    pthread_mutex_lock(&lock);
    live->next = list;
    live->ref = &list;
    if (list) list->ref = &live->next;
    list = live;
    entries++;
    pthread_mutex_unlock(&lock);
    if (live->is_request) count(1);
    apr_pool_pre_cleanup_register(live->pool, live, leave);
}

static void cut(char *to, const char *text, size_t size)
{
    size_t n = strnlen(text, size - 1);
    memcpy(to, text, n);
    to[n] = 0;
}

static void describe(struct board_request *to, const struct live *live, apr_time_t time, size_t bytes)
{
    to->time = time;
    to->bytes = bytes;
    cut(to->method, live->method, sizeof to->method);
    cut(to->uri, live->uri, sizeof to->uri);
    cut(to->host, live->host, sizeof to->host);
    cut(to->client, live->client, sizeof to->client);
    to->is_denied = live->denied != 0;
    to->is_closed = live->is_ended && !live->denied;
}

/* What the child is resident with, as of a quarter of a second ago at most, since most requests take less. */
static void note_resident(struct board_request *request)
{
    static apr_time_t asked;
    static uint64_t rss, peak;
    if (request->time - __atomic_load_n(&asked, __ATOMIC_RELAXED) > APR_USEC_PER_SEC / 4) {
        __atomic_store_n(&asked, request->time, __ATOMIC_RELAXED);
        __atomic_store_n(&rss, (uint64_t)process_resident(getpid()), __ATOMIC_RELAXED);
        __atomic_store_n(&peak, (uint64_t)process_own_peak(), __ATOMIC_RELAXED);
    }
    request->rss = __atomic_load_n(&rss, __ATOMIC_RELAXED);
    request->peak = __atomic_load_n(&peak, __ATOMIC_RELAXED);
}

/* So that it is known for what the child died. */
static void note_served(struct live *live)
{
    struct board_request *served;
    size_t n = slot ? board_served(slot, &served) : 0;
    for (size_t i = 0; !live->served && i < n; i++) {
        pid_t none = 0;
        if (__atomic_compare_exchange_n(&served[i].pid, &none, slot->pid, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            live->served = &served[i];
    }
    if (!live->served) return;
    describe(live->served, live, live->since, 0);
    live->served->sampled = 0;
    note_resident(live->served);
}

struct live *live_begin_request(request_rec *r, bool is_listed)
{
    struct live *live = apr_pcalloc(r->pool, sizeof *live);
    if (!live) return NULL;
    *live = (struct live){
        .pool = r->pool,
        .is_request = true,
        .is_listed = is_listed,
        .method = r->method,
        .uri = r->unparsed_uri ? r->unparsed_uri : "",
        .host = ap_get_server_name(r),
        .client = r->useragent_ip ? r->useragent_ip : "",
        .protocol = r->protocol ? r->protocol : "",
        .top = r,
    };
    ap_set_module_config(r->request_config, &reap_module, live);
    join(live);
    note_served(live);
    return live;
}

void live_begin_connection(conn_rec *c)
{
    struct live *live = apr_pcalloc(c->pool, sizeof *live);
    if (!live) return;
    live->pool = c->pool;
    live->client = c->client_ip ? c->client_ip : "";
    live->method = c->master ? "stream" : "connection";
    join(live);
}

struct live *live_of(const request_rec *r)
{
    while (r->main || r->prev) r = r->main ? r->main : r->prev;
    return ap_get_module_config(r->request_config, &reap_module);
}

/* Whoever asks notes it for who finds the child dead. */
static size_t held_now(const struct live *live)
{
    size_t bytes = library_held(live->pool);
    if (live->served) __atomic_store_n(&live->served->bytes, bytes, __ATOMIC_RELAXED);
    return bytes;
}

size_t live_look(struct live *live)
{
    size_t bytes = held_now(live);
    if (bytes > live->peak) __atomic_store_n(&live->peak, bytes, __ATOMIC_RELAXED);
    return bytes;
}

struct live_others live_look_at_others(const struct live *live, const conn_rec *client)
{
    struct live_others others = {.n = 1};
    size_t own = library_held(live->pool);
    pthread_mutex_lock(&lock);
    for (const struct live *each = list; each; each = each->next) {
        if (!each->is_request || each == live || each->top->connection->master != client) continue;
        size_t bytes = library_held(each->pool);
        bool is_going = __atomic_load_n(&each->is_ended, __ATOMIC_RELAXED);
        if (is_going) others.going += bytes;
        others.n += !is_going;
        others.has_larger |= !is_going && bytes > own;
    }
    pthread_mutex_unlock(&lock);
    return others;
}

unsigned live_requests(void) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

void live_begin_child(struct board_slot *own, apr_pool_t *uppermost)
{
    slot = own;
    all_pools = uppermost;
    counter = &own->requests;
}

/* --- the sum for the curve -------------------------------------------------------------------- */

/* A request stays in the list as long as its memory is there. */
static size_t look_at_all(void)
{
    size_t bytes, over = 0;
    for (struct live *live = list; live; live = live->next) {
        live->noted = live->is_request ? held_now(live) : 0;
        if (live->is_over) over += live->noted;
    }
    bytes = library_held(all_pools);
    return bytes > over ? bytes - over : 0;
}

bool live_note_bytes(struct live *over)
{
    apr_time_t now = apr_time_now();
    if (!slot) return false;
    pthread_mutex_lock(&lock);
    bool is_fresh = over && now - slot->looked < APR_USEC_PER_SEC;
    uint64_t bytes = slot->bytes;
    if (over) over->is_over = true;
    if (is_fresh) {
        bytes -= bytes < over->noted ? bytes : over->noted;
    } else {
        bytes = look_at_all();
        slot->looked = now;
    }
    __atomic_store_n(&slot->bytes, bytes, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return !is_fresh;
}

/* --- the largest so far -------------------------------------------------------------------------- */

enum { LARGEST = 10 };

static struct board_request largest[LARGEST];
static size_t n_largest;

/* One that was noted within a minute as holding no less: by a hash of URL, host and method, so that one may
 * hide another for that long. */
static bool is_noted(const struct live *live, size_t bytes, apr_time_t now)
{
    static struct {
        unsigned hash;
        size_t bytes;
        apr_time_t until;
    } noted[256], *known;
    apr_ssize_t host = APR_HASH_KEY_STRING, method = host;
    unsigned hash = 3 * apr_hashfunc_default(live->host, &host) +
                    5 * apr_hashfunc_default(live->method, &method) + live->is_ended;
    for (const char *c = live->uri; *c && *c != '?'; c++) hash = 33 * hash + (unsigned char)*c;
    known = &noted[hash % 256];
    bool is_known = __atomic_load_n(&known->hash, __ATOMIC_RELAXED) == hash &&
                    __atomic_load_n(&known->bytes, __ATOMIC_RELAXED) >= bytes &&
                    __atomic_load_n(&known->until, __ATOMIC_RELAXED) > now;
    if (is_known) return true;
    __atomic_store_n(&known->hash, hash, __ATOMIC_RELAXED);
    __atomic_store_n(&known->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&known->until, now + 60 * APR_USEC_PER_SEC, __ATOMIC_RELAXED);
    return false;
}

void live_note_largest(const struct live *live, size_t bytes)
{
    apr_time_t now = apr_time_now();
    if (is_noted(live, bytes, now)) return;
    struct board_request request = {.pid = getpid()};
    describe(&request, live, now, bytes);
    if (slot && live->is_listed) board_note_largest(&request);
    if (bytes <= __atomic_load_n(&largest[LARGEST - 1].bytes, __ATOMIC_RELAXED)) return;
    pthread_mutex_lock(&lock);
    board_insert(largest, &n_largest, LARGEST, &request);
    pthread_mutex_unlock(&lock);
}

struct text live_largest(size_t n)
{
    struct text text = {.data = NULL};
    struct board_request request = {.pid = getpid()};
    pthread_mutex_lock(&lock);
    for (const struct live *live = list; live; live = live->next) {
        if (!live->is_request) continue;
        describe(&request, live, live->since, library_held(live->pool));
        board_insert(largest, &n_largest, LARGEST, &request);
    }
    for (size_t i = 0; i < n && i < n_largest && largest[i].bytes; i++)
        text_printf(&text, "%s%s %s %zu", i ? ", " : "", largest[i].method, largest[i].uri,
                    (size_t)largest[i].bytes);
    pthread_mutex_unlock(&lock);
    return text;
}

/* --- copies -------------------------------------------------------------------------------------- */

/* A request's first line may be 8 KB; no page wants more than this. */
enum { LONGEST_URI = 300 };

static void add_uri(struct text *text, const char *uri)
{
    char cut[LONGEST_URI + sizeof "..."];
    if (strlen(uri) > LONGEST_URI) {
        memcpy(cut, uri, LONGEST_URI);
        strcpy(cut + LONGEST_URI, "...");
        uri = cut;
    }
    text_json(text, uri);
}

static char *owner_of(const struct live *live)
{
    struct text text = {.data = NULL};
    if (live->is_request)
        text_printf(&text, "%s %.*s from %s", live->method, LONGEST_URI, live->uri, live->client);
    else
        text_printf(&text, "%s from %s", live->method, live->client);
    return text.data;
}

static char *row_of(const struct live *live, apr_time_t now, size_t bytes)
{
    struct text text = {.data = NULL};
    size_t peak = __atomic_load_n(&live->peak, __ATOMIC_RELAXED);
    text_printf(&text, "{\"pid\":%ld,\"method\":", (long)getpid());
    text_json(&text, live->method);
    text_puts(&text, ",\"uri\":");
    add_uri(&text, live->uri);
    text_json_field(&text, "host", live->host);
    text_json_field(&text, "client", live->client);
    text_json_field(&text, "protocol", live->protocol);
    text_printf(&text, ",\"age\":%.3f,\"bytes\":%zu,\"peak\":%zu}", (double)(now - live->since) / 1e6, bytes,
                peak > bytes ? peak : bytes);
    return text.data;
}

static void copy(struct live_copy *to, const struct live *live, apr_time_t now)
{
    size_t bytes = live->is_request ? held_now(live) : 0;
    *to = (struct live_copy){
        .reap = apr_pool_reap ? *apr_pool_reap(live->pool) : NULL,
        .is_request = live->is_request,
        .bytes = bytes,
        .owner = live->is_request && !live->is_listed ? NULL : owner_of(live),
        .host = live->is_request && live->is_listed ? strdup(live->host) : NULL,
        .json = live->is_request && live->is_listed ? row_of(live, now, bytes) : NULL,
    };
}

struct live_copy *live_copy_all(size_t *n)
{
    apr_time_t now = apr_time_now();
    *n = 0;
    pthread_mutex_lock(&lock);
    struct live_copy *copies = entries ? malloc(entries * sizeof *copies) : NULL;
    for (const struct live *live = copies ? list : NULL; live; live = live->next)
        copy(&copies[(*n)++], live, now);
    pthread_mutex_unlock(&lock);
    return copies;
}

void live_free_copies(struct live_copy *copies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(copies[i].owner);
        free(copies[i].host);
        free(copies[i].json);
    }
    free(copies);
}

/* --- this thread's ------------------------------------------------------------------------------- */

void live_enter(struct live *live)
{
    entered = live;
    if (live) __atomic_store_n(&live->refused, 0, __ATOMIC_RELAXED);
}

/* The lock may be this very thread's. */
static bool try_lock(void)
{
    for (int patience = 1000; pthread_mutex_trylock(&lock) != 0; sched_yield())
        if (!patience--) return false;
    return true;
}

void live_name_pool(const void *reap, char *text, size_t size)
{
    *text = 0;
    if (!try_lock()) return;
    for (const struct live *live = list; live; live = live->next)
        if (live->is_request && *apr_pool_reap(live->pool) == reap)
            apr_snprintf(text, size, " of %s %.100s", live->method, live->uri);
    pthread_mutex_unlock(&lock);
}

/* A request may end in another thread than the one that entered it. */
const struct live *live_entered(void)
{
    if (!try_lock()) return NULL;
    const struct live *live = list;
    while (live && live != entered) live = live->next;
    pthread_mutex_unlock(&lock);
    return live;
}
