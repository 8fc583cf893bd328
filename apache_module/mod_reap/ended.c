/* SPDX-License-Identifier: Apache-2.0 */
#include "ended.h"

#include <errno.h>
#include <http_config.h>
#include <http_log.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

APLOG_USE_MODULE(reap);

static bool listens;

/* Signals of several deaths may be one: all children are looked at. */
static void note_deaths(int number)
{
    int error = errno;
    struct board_slot *slots;
    (void)number;
    for (size_t n = board_slots(&slots); n--; slots++) {
        siginfo_t death = {.si_pid = 0};
        struct rusage usage; /* which libc's waitid does not ask for */
        pid_t pid = __atomic_load_n(&slots->pid, __ATOMIC_ACQUIRE);
        if (!pid || syscall(SYS_waitid, P_PID, pid, &death, WEXITED | WNOHANG | WNOWAIT, &usage) != 0 ||
            death.si_pid != pid)
            continue;
        slots->signal = death.si_code == CLD_EXITED ? 0 : death.si_status;
        slots->peak = (uint64_t)usage.ru_maxrss * 1024;
    }
    errno = error;
}

void ended_in_child(void)
{
    if (listens) signal(SIGCHLD, SIG_DFL);
    listens = false;
}

static apr_status_t end(void *data)
{
    (void)data;
    ended_in_child();
    return APR_SUCCESS;
}

/* Another module's handler stays. */
void ended_begin(apr_pool_t *pool)
{
    struct sigaction own = {.sa_handler = note_deaths, .sa_flags = SA_RESTART | SA_NOCLDSTOP}, other;
    if (sigaction(SIGCHLD, NULL, &other) != 0 || other.sa_handler != SIG_DFL) return;
    listens = sigaction(SIGCHLD, &own, NULL) == 0;
    apr_pool_cleanup_register(pool, NULL, end, apr_pool_cleanup_null);
}

static uint64_t less(uint64_t more, uint64_t bytes) { return more > bytes ? more - bytes : 0; }

static uint64_t held(const struct board_request *request, uint64_t peak)
{
    (void)peak;
    return request->sampled > request->bytes ? request->sampled : request->bytes;
}

/* The child had its most while the request ran, or else that tells nothing of it. */
static uint64_t growth(const struct board_request *request, uint64_t peak)
{
    return peak > request->peak ? less(peak, request->rss) : 0;
}

/* The request with at least twice as much as any other; NULL: there is none. */
static const struct board_request *outstanding(const struct board_request *each, size_t n, uint64_t peak,
                                               uint64_t (*value)(const struct board_request *, uint64_t))
{
    const struct board_request *most = NULL;
    uint64_t first = 0, second = 0;
    for (; n--; each++) {
        uint64_t bytes = each->pid ? value(each, peak) : 0;
        if (bytes > first) {
            second = first;
            first = bytes;
            most = each;
        } else if (bytes > second) {
            second = bytes;
        }
    }
    return first / 2 >= second ? most : NULL;
}

static const struct board_request *accuse(const struct board_slot *slot, const struct board_request *served,
                                          size_t n, const struct board_request *only)
{
    if (slot->fatal || only) return slot->fatal ? slot->fatal : only;
    const struct board_request *most = outstanding(served, n, slot->peak, held);
    if (most && slot->peak && less(slot->peak, most->rss) / 2 <= held(most, 0)) return most;
    return outstanding(served, n, slot->peak, growth);
}

static void tell_request(const struct board_slot *slot, const struct board_request *request,
                         const struct board_end *end, server_rec *server)
{
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                 "child %ld served %s %s of %s from %s for %.1f s: %" APR_UINT64_T_FMT
                 " bytes by the heap profile, "
                 "%" APR_UINT64_T_FMT " of pools when somebody looked; the RSS grew by %" APR_UINT64_T_FMT,
                 (long)end->pid, request->method, request->uri, request->host, request->client,
                 (double)(end->time - request->time) / 1e6, request->sampled, request->bytes,
                 growth(request, slot->peak));
}

static void tell(const struct board_slot *slot, const struct board_end *end, server_rec *server)
{
    static const char *const whys[] = {"", ", for ReapLimitHard", ", for want of memory", ""};
    const struct board_request *largest = &end->largest;
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                 "child %ld ended%s in the midst of %u request%s, signal %d, with %" APR_UINT64_T_FMT
                 " kB resident at most; %s%s%s%s%s%s",
                 (long)end->pid, whys[end->why], end->requests, end->requests == 1 ? "" : "s", end->signal,
                 slot->peak / 1024, largest->pid ? "of them stands out " : "none of them stands out",
                 largest->method, largest->pid ? " " : "", largest->uri, largest->pid ? " from " : "",
                 largest->client);
}

void ended_tell(struct board_slot *slot, server_rec *server)
{
    struct board_request *served;
    const struct board_request *only = NULL;
    size_t n = board_served(slot, &served), ran = 0;
    struct board_end end = {
        .pid = slot->pid, .time = apr_time_now(), .signal = slot->signal, .rss = slot->peak};
    end.why = !slot->fatal ? END_KILLED : slot->limit ? END_HARD : END_MEMORY;
    end.limit = slot->fatal ? slot->limit : 0;
    end.uptime = end.time - slot->since;
    for (size_t i = 0; i < n; i++) {
        struct board_request request = served[i];
        if (!request.pid) continue;
        only = end.requests++ ? NULL : &served[i];
        request.bytes = held(&request, 0);
        board_insert(end.ran, &ran, sizeof end.ran / sizeof *end.ran, &request);
    }
    const struct board_request *largest = accuse(slot, served, n, only);
    if (largest) {
        end.largest = *largest;
        end.bytes = end.largest.bytes = held(largest, 0);
    }
    tell(slot, &end, server);
    for (size_t i = 0; i < n; i++)
        if (served[i].pid) tell_request(slot, &served[i], &end, server);
    board_note_end(&end);
    board_release(slot);
}
