/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include "board.h"
#include "library.h"
#include "live.h"
#include "pools.h"
#include "process.h"
#include "settings.h"
#include "strike.h"

#include <ap_mpm.h>
#include <apr_buckets.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <fcntl.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <mpm_common.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <util_filter.h>

APLOG_USE_MODULE(reap);

static const apr_interval_time_t shortest_rest = APR_USEC_PER_SEC, shortest_wait = APR_USEC_PER_SEC / 20;
static const apr_interval_time_t longest_drain = 60 * APR_USEC_PER_SEC;

enum state { OFF, SERVES, DRAINS, CLOSES, ENDS };

static enum state state;
static server_rec *server;
static struct child_settings settings;
static bool is_threaded;
static apr_time_t began;
static unsigned connections; /* of clients */
static unsigned promising;   /* those of them whose last response promises another one */
static unsigned requests;    /* that have ended */

static enum state now_in(void) { return __atomic_load_n(&state, __ATOMIC_SEQ_CST); }

static bool go_on(enum state from, enum state to)
{
    return __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* --- the pipe of event and worker ---------------------------------------------------------------- */

enum { DESCRIPTORS = 1024, PIPES = 64 };

struct pipe_end {
    int descriptor;
    ino_t node;
};

static bool was_open[DESCRIPTORS];
static struct pipe_end pipes[PIPES]; /* those that the MPM reads from, one for each bucket of listeners */
static unsigned n_pipes;
static ap_pod_t *own_pipe;

static bool is_read_end(int descriptor, ino_t *node)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
    *node = status.st_ino;
    return (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static int before_mpm(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *main_server)
{
    ino_t node;
    (void)pool, (void)log, (void)temporary, (void)main_server;
    for (int i = 0; i < DESCRIPTORS; i++) was_open[i] = is_read_end(i, &node);
    return OK;
}

static int after_mpm(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *main_server)
{
    ino_t node;
    (void)pool, (void)log, (void)temporary, (void)main_server;
    n_pipes = 0;
    for (int i = 0; i < DESCRIPTORS && n_pipes < PIPES; i++)
        if (!was_open[i] && is_read_end(i, &node)) pipes[n_pipes++] = (struct pipe_end){i, node};
    return OK;
}

/* The one that this child has not closed, or -1. */
static int mpm_descriptor(void)
{
    int found = -1;
    for (unsigned i = 0; i < n_pipes; i++) {
        ino_t node;
        if (!is_read_end(pipes[i].descriptor, &node) || node != pipes[i].node) continue;
        if (found >= 0) return -1;
        found = pipes[i].descriptor;
    }
    return found;
}

/* --- the end ------------------------------------------------------------------------------------- */

static void signal_main_thread(int number) { syscall(SYS_tgkill, getpid(), getpid(), number); }

static bool is_stopping(void)
{
    int now = AP_MPMQ_RUNNING;
    return ap_mpm_query(AP_MPMQ_MPM_STATE, &now) == APR_SUCCESS && now == AP_MPMQ_STOPPING;
}

/* The main thread waits for a word from the pipe that was there. This signal is the one by which the MPM
 * interrupts it; it may come just before the read, so it comes until it was heard. */
static void end_threaded(void)
{
    apr_os_file_t ours;
    int theirs = mpm_descriptor();
    if (theirs < 0 || apr_os_file_get(&ours, own_pipe->pod_in) != APR_SUCCESS ||
        ap_mpm_podx_signal(own_pipe, AP_MPM_PODX_GRACEFUL) != APR_SUCCESS ||
        dup3(ours, theirs, O_CLOEXEC) < 0)
        return;
    for (int patience = 200; patience-- && !is_stopping(); apr_sleep(shortest_wait))
        signal_main_thread(SIGTERM);
}

static void end(void)
{
    if (!go_on(DRAINS, ENDS) && !go_on(CLOSES, ENDS)) return;
    if (is_threaded)
        end_threaded();
    else
        signal_main_thread(AP_SIG_GRACEFUL);
}

/* --- looks --------------------------------------------------------------------------------------- */

/* The bytes that the limit is for, and what they are. A PSS is no more than the RSS, and costs much more. */
static int64_t size_now(const char **what)
{
    int64_t resident = process_resident(getpid()), proportional = -1;
    *what = "RSS";
    if (resident > settings.limit) proportional = process_proportional(getpid());
    if (proportional < 0) return resident;
    *what = "PSS";
    return proportional;
}

/* Until who has a connection has asked once more, or his time is over. */
static apr_interval_time_t drain_time(void)
{
    apr_interval_time_t longest = 0;
    for (const server_rec *each = server; each; each = each->next)
        if (each->keep_alive && each->keep_alive_timeout > longest) longest = each->keep_alive_timeout;
    longest += APR_USEC_PER_SEC;
    return longest < longest_drain ? longest : longest_drain;
}

static void tell(int64_t size, const char *what, unsigned n)
{
    struct text tags = {.data = NULL}, largest = live_largest(10);
    if (!library_lacks()) tags = pools_largest_tags(NULL, 10);
    ap_log_error(
        APLOG_MARK, APLOG_WARNING, 0, server,
        "child %ld holds %" APR_INT64_T_FMT " bytes (%s), over ReapChildLimit %" APR_INT64_T_FMT
        ", after %u request%s; it ends when its requests have; largest pools: %s; largest requests: %s",
        (long)getpid(), size, what, settings.limit, n, n == 1 ? "" : "s", tags.data ? tags.data : "unknown",
        largest.data ? largest.data : "unknown");
    text_free(&tags);
    text_free(&largest);
    if (board_takes_minute()) strike_tell(server, NULL);
}

/* Whether it is within the limit. If not, and it is its turn, it goes on. */
static bool look(unsigned n)
{
    const char *what;
    int64_t size = size_now(&what);
    apr_time_t now = apr_time_now();
    if (size <= settings.limit) return true;
    if (!board_take_turn(now + drain_time() + longest_drain)) return false;
    board_note_end(&(struct board_end){.pid = getpid(),
                                       .time = now,
                                       .uptime = now - began,
                                       .bytes = (uint64_t)size,
                                       .limit = (uint64_t)settings.limit,
                                       .requests = n});
    tell(size, what, n);
    go_on(SERVES, DRAINS);
    return false;
}

/* --- the thread ---------------------------------------------------------------------------------- */

static bool is_at_work, is_over; /* the thread; and the child */

/* False when the child goes, which waits for the thread's present work. */
static bool begin_work(void)
{
    __atomic_store_n(&is_at_work, true, __ATOMIC_SEQ_CST);
    return !__atomic_load_n(&is_over, __ATOMIC_SEQ_CST) && !is_stopping();
}

static void rest(apr_interval_time_t time)
{
    __atomic_store_n(&is_at_work, false, __ATOMIC_RELEASE);
    apr_sleep(time);
}

static void serve(void)
{
    unsigned looked_at = 0;
    while (now_in() == SERVES && begin_work()) {
        apr_time_t begin = apr_time_now();
        unsigned n = __atomic_load_n(&requests, __ATOMIC_RELAXED);
        if (n != looked_at && n >= settings.after && look(n)) looked_at = n;
        apr_interval_time_t time = 100 * (apr_time_now() - begin);
        rest(now_in() == DRAINS ? 0 : time > shortest_rest ? time : shortest_rest);
    }
}

static void drain(void)
{
    apr_time_t until = apr_time_now() + drain_time();
    while (now_in() == DRAINS && begin_work()) {
        bool is_free = !__atomic_load_n(&connections, __ATOMIC_RELAXED);
        if (is_free || (is_threaded && apr_time_now() > until)) go_on(DRAINS, CLOSES);
        rest(shortest_wait);
    }
}

static void close_all(void)
{
    apr_time_t until = apr_time_now() + drain_time();
    while (now_in() == CLOSES && begin_work()) {
        bool is_free = !__atomic_load_n(&promising, __ATOMIC_SEQ_CST);
        if (is_free || apr_time_now() > until) end();
        rest(shortest_wait);
    }
}

static void *run(void *nothing)
{
    serve();
    drain();
    close_all();
    __atomic_store_n(&is_at_work, false, __ATOMIC_RELEASE);
    return nothing;
}

/* Signals are the main thread's. */
static bool start(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* The child may end in a signal's handler, so that this waits a tenth of a second at most. */
static apr_status_t stop(void *data)
{
    (void)data;
    __atomic_store_n(&is_over, true, __ATOMIC_SEQ_CST);
    for (int patience = 100; patience-- && __atomic_load_n(&is_at_work, __ATOMIC_SEQ_CST);) apr_sleep(1000);
    return APR_SUCCESS;
}

/* NULL, or why children are not ended. */
static const char *start_watching(apr_pool_t *pool)
{
    const char *what;
    int64_t size = size_now(&what);
    if (!board_is_open()) return "there is no shared memory";
    if (size > settings.limit)
        return apr_psprintf(
            pool, "a child has %" APR_INT64_T_FMT " bytes (%s) when it begins, more than %" APR_INT64_T_FMT,
            size, what, settings.limit);
    if (is_threaded && (mpm_descriptor() < 0 || ap_mpm_podx_open(pool, &own_pipe) != APR_SUCCESS))
        return apr_psprintf(pool, "the pipe by which %s ends a child is not known", ap_show_mpm());
    state = SERVES;
    if (start()) return NULL;
    state = OFF;
    return "a child could not start a thread";
}

void child_begin(apr_pool_t *pool, server_rec *main_server)
{
    int threaded = 0;
    server = main_server;
    settings = settings_of_child(main_server);
    if (!settings.limit || ap_exists_config_define("DEBUG") || ap_exists_config_define("ONE_PROCESS")) return;
    ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded);
    is_threaded = threaded != AP_MPMQ_NOT_SUPPORTED;
    began = apr_time_now();
    const char *lacks = start_watching(pool);
    if (lacks && board_is_first_word())
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server, "ReapChildLimit: no child is ended: %s", lacks);
    apr_pool_pre_cleanup_register(pool, NULL, stop);
}

/* --- connections and requests -------------------------------------------------------------------- */

static void promise(conn_rec *c)
{
    apr_table_setn(c->notes, "reap-promises", "1");
    __atomic_fetch_add(&promising, 1, __ATOMIC_SEQ_CST);
}

static void keep_promise(conn_rec *c)
{
    if (!apr_table_get(c->notes, "reap-promises")) return;
    apr_table_unset(c->notes, "reap-promises");
    __atomic_fetch_sub(&promising, 1, __ATOMIC_SEQ_CST);
}

static apr_status_t leave(void *connection)
{
    keep_promise(connection);
    __atomic_fetch_sub(&connections, 1, __ATOMIC_RELAXED);
    return APR_SUCCESS;
}

static int pre_connection(conn_rec *c, void *socket)
{
    (void)socket;
    if (now_in() == OFF || c->master) return OK;
    __atomic_fetch_add(&connections, 1, __ATOMIC_RELAXED);
    apr_pool_cleanup_register(c->pool, c, leave, apr_pool_cleanup_null);
    return OK;
}

/* Whether the client has sent its next request before it has this answer. A body may be read yet. */
static bool has_sent_more(request_rec *r)
{
    if (apr_table_get(r->headers_in, "Content-Length") || apr_table_get(r->headers_in, "Transfer-Encoding"))
        return false;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    bool has = ap_get_brigade(r->connection->input_filters, brigade, AP_MODE_SPECULATIVE, APR_NONBLOCK_READ,
                              1) == APR_SUCCESS &&
               !APR_BRIGADE_EMPTY(brigade);
    apr_brigade_destroy(brigade);
    return has;
}

/* The client hears that this is the last answer: by a header that is there in errors and redirects as well,
 * since httpd leaves out the chunks of an answer when the connection itself is said to close. Who has sent
 * more gets more, until the child waits only for those to whom another answer is promised. */
static int post_read_request(request_rec *r)
{
    conn_rec *c = r->connection;
    if (now_in() < DRAINS || c->master) return DECLINED;
    keep_promise(c);
    if (apr_table_get(r->headers_in, "Upgrade")) return DECLINED;
    if (has_sent_more(r)) {
        promise(c);
        if (now_in() < CLOSES) return DECLINED;
        keep_promise(c);
    }
    apr_table_setn(r->err_headers_out, "Connection", "close");
    return DECLINED;
}

static int log_transaction(request_rec *r)
{
    (void)r;
    if (now_in() != OFF) __atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
    return DECLINED;
}

static int pre_close_connection(conn_rec *c)
{
    if (now_in() == DRAINS && !is_threaded && !c->master) end();
    return OK;
}

void child_register(void)
{
    static const char *const mpms[] = {"event.c", "worker.c", NULL}, *const core[] = {"core.c", NULL};
    ap_hook_open_logs(before_mpm, NULL, mpms, APR_HOOK_REALLY_FIRST);
    ap_hook_open_logs(after_mpm, mpms, core, APR_HOOK_REALLY_FIRST);
    ap_hook_pre_connection(pre_connection, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_post_read_request(post_read_request, NULL, NULL, APR_HOOK_LAST);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_close_connection(pre_close_connection, NULL, NULL, APR_HOOK_MIDDLE);
}
