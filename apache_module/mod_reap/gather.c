/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

#include "answer.h"
#include "library.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <scoreboard.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An answer of the greatest length has 2000 rows; more than this is no answer. */
static const size_t longest_reply = 4 << 20;
static const apr_interval_time_t most_time = APR_USEC_PER_SEC;
enum { ROWS_OF_ALL = 8000 };

/* --- who there is -------------------------------------------------------------------------------- */

static const process_score *score_of(pid_t pid)
{
    const global_score *global = ap_exists_scoreboard_image() ? ap_scoreboard_image->global : NULL;
    for (int i = 0; global && i < global->server_limit; i++)
        if (ap_scoreboard_image->parent[i].pid == pid) return &ap_scoreboard_image->parent[i];
    return NULL;
}

static bool is_stopping(const struct child *child)
{
    const process_score *score = score_of(child->pid);
    return !score || score->quiescing || child->generation != ap_scoreboard_image->global->running_generation;
}

/* From the slots of the board, which know the children of older generations too. */
static bool list_children(struct look *look)
{
    struct board_slot *slots;
    size_t n = board_slots(&slots);
    look->children = calloc(n ? n : 1, sizeof *look->children);
    if (!look->children) return false;
    for (size_t i = 0; i < n; i++) {
        pid_t pid = __atomic_load_n(&slots[i].pid, __ATOMIC_ACQUIRE);
        if (!pid) continue;
        if (process_is_gone(pid)) {
            board_release(&slots[i]);
            continue;
        }
        look->children[look->n++] = (struct child){
            .pid = pid,
            .generation = slots[i].generation,
            .since = slots[i].since,
            .state = CHILD_SILENT,
            .requests = slots[i].requests,
            .socket = -1,
            .slot = &slots[i],
        };
    }
    return true;
}

/* --- asking -------------------------------------------------------------------------------------- */

static socklen_t address_of(pid_t pid, struct sockaddr_un *address)
{
    const char *name = board_address(), *number = strstr(name, "%p");
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path, sizeof address->sun_path, "%.*s%ld%s", (int)(number - name), name,
                     (long)pid, number + 2);
    if (*address->sun_path != '@') return sizeof *address;
    *address->sun_path = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

static void end_conversation(struct child *child)
{
    if (child->socket >= 0) close(child->socket);
    child->socket = -1;
}

/* Anybody may listen at a name that is free. */
static bool is_child(const struct child *child)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(child->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == child->pid &&
           (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0);
}

static void ask(struct child *child, const char *question)
{
    struct sockaddr_un address;
    socklen_t size = address_of(child->pid, &address);
    ssize_t n = (ssize_t)strlen(question);
    child->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (child->socket < 0) return;
    if (connect(child->socket, (struct sockaddr *)&address, size) != 0 || !is_child(child) ||
        send(child->socket, question, (size_t)n, MSG_NOSIGNAL) != n)
        end_conversation(child);
}

static void ask_all(struct look *look)
{
    unsigned rows = look->n > ROWS_OF_ALL / ANSWER_ROWS ? ROWS_OF_ALL / (unsigned)look->n : ANSWER_ROWS;
    char question[32];
    snprintf(question, sizeof question, "apache %u\n", rows);
    for (size_t i = 0; i < look->n && !library_lacks(); i++) ask(&look->children[i], question);
}

void gather_ask_to_tell(pid_t pid)
{
    struct child child = {.pid = pid, .socket = -1};
    if (!library_lacks()) ask(&child, "apache " ANSWER_TELL "\n");
    end_conversation(&child);
}

static void receive(struct child *child)
{
    char bytes[16384];
    ssize_t n;
    while ((n = recv(child->socket, bytes, sizeof bytes, 0)) > 0) {
        text_add(&child->reply, bytes, (size_t)n);
        if (child->reply.failed || child->reply.length > longest_reply) break;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    end_conversation(child);
}

/* Waits for one of them, until the deadline. False when none is left, or no time. */
static bool wait_for_some(struct look *look, struct pollfd *polled, apr_time_t deadline)
{
    nfds_t n = 0;
    apr_interval_time_t left = deadline - apr_time_now();
    for (size_t i = 0; i < look->n; i++)
        if (look->children[i].socket >= 0)
            polled[n++] = (struct pollfd){.fd = look->children[i].socket, .events = POLLIN};
    if (!n || left <= 0) return false;
    if (poll(polled, n, (int)(left / 1000) + 1) <= 0) return true;
    for (size_t i = 0, p = 0; i < look->n; i++) {
        struct child *child = &look->children[i];
        if (child->socket >= 0 && polled[p++].revents) receive(child);
    }
    return true;
}

static bool hear_all(struct look *look)
{
    apr_time_t deadline = apr_time_now() + most_time;
    struct pollfd *polled = calloc(look->n + 1, sizeof *polled);
    if (!polled) return false;
    while (wait_for_some(look, polled, deadline)) continue;
    for (size_t i = 0; i < look->n; i++) end_conversation(&look->children[i]);
    free(polled);
    return true;
}

/* --- reading an answer --------------------------------------------------------------------------- */

static bool read_sums(const char *fields, struct pool_sums *sums, int *end)
{
    unsigned long long pools, bytes, live, objects, chunks, inherited;
    if (sscanf(fields, "%llu\t%llu\t%llu\t%llu\t%llu\t%llu%n", &pools, &bytes, &live, &objects, &chunks,
               &inherited, end) != 6)
        return false;
    *sums = (struct pool_sums){pools, bytes, live, objects, chunks, inherited};
    return true;
}

static void read_tag(struct pool_tags *tags, const char *fields)
{
    struct pool_sums sums;
    int end = 0;
    if (read_sums(fields, &sums, &end) && fields[end] == '\t') pool_tags_add(tags, fields + end + 1, &sums);
}

static void read_malloc(struct look *look, const char *fields)
{
    unsigned long long bytes, objects;
    int end = 0;
    if (sscanf(fields, "%llu\t%llu%n", &bytes, &objects, &end) == 2 && fields[end] == '\t' &&
        strchr(fields + end + 1, '\t'))
        pool_tags_add(&look->mallocs, fields + end + 1,
                      &(struct pool_sums){.bytes = bytes, .objects = objects});
}

static void read_request(struct look *look, const char *fields)
{
    char *json;
    uint64_t bytes = strtoull(fields, &json, 10);
    if (look->n_rows == look->row_room) {
        size_t room = look->row_room ? 2 * look->row_room : 64;
        struct live_row *more = realloc(look->rows, room * sizeof *more);
        if (!more) return;
        look->rows = more;
        look->row_room = room;
    }
    if (*json == '\t') look->rows[look->n_rows++] = (struct live_row){bytes, json + 1};
}

static void read_process(struct child *child, const char *fields)
{
    long long since, rss, pss;
    if (sscanf(fields, "%d\t%lld\t%lld\t%lld\t%u\t%ld", &child->generation, &since, &rss, &pss,
               &child->requests, &child->cpu) != 6)
        return;
    child->since = since;
    child->rss = rss;
    child->pss = pss;
    __atomic_store_n(&child->slot->pss, pss, __ATOMIC_RELAXED);
}

static void read_omitted(struct child *child, const char *fields)
{
    unsigned long long pools, bytes;
    if (sscanf(fields, "%llu\t%llu", &pools, &bytes) != 2) return;
    child->omitted_pools = pools;
    child->omitted_bytes = bytes;
}

/* The rows keep their line ends, as one text. */
static void read_row(struct child *child, const char *line, size_t length)
{
    size_t at = (size_t)(line - child->reply.data);
    if (!child->rows_end) child->rows = at;
    child->rows_end = at + length;
}

static bool begins(const char *line, const char *word, const char **fields)
{
    size_t n = strlen(word);
    *fields = line + n + 1;
    return strncmp(line, word, n) == 0 && line[n] == '\t';
}

static void read_line(struct look *look, struct child *child, char *line, size_t length)
{
    const char *fields;
    int end;
    if (begins(line, "row", &fields)) {
        read_row(child, line, length);
        return;
    }
    line[length] = 0;
    if (begins(line, "tag", &fields))
        read_tag(&look->tags, fields);
    else if (begins(line, "malloc", &fields))
        read_malloc(look, fields);
    else if (begins(line, "host", &fields))
        read_tag(&look->hosts, fields);
    else if (begins(line, "request", &fields))
        read_request(look, fields);
    else if (begins(line, "backend", &fields))
        child->backend = fields;
    else if (begins(line, "pools", &fields))
        read_sums(fields, &child->pools, &end);
    else if (begins(line, "process", &fields))
        read_process(child, fields);
    else if (begins(line, "omitted", &fields))
        read_omitted(child, fields);
}

static bool is_whole(const struct text *reply)
{
    static const char end[] = "\nend\n";
    size_t n = sizeof end - 1;
    return !reply->failed && reply->length > n && memcmp(reply->data + reply->length - n, end, n) == 0;
}

static void read_reply(struct look *look, struct child *child)
{
    char *line = child->reply.data, *end;
    if (!is_whole(&child->reply)) return;
    for (; (end = strchr(line, '\n')); line = end + 1) read_line(look, child, line, (size_t)(end - line));
    child->state = is_stopping(child) ? CHILD_STOPPING : CHILD_ANSWERS;
    pools_add(&look->pools, &child->pools);
}

/* --- all of it ----------------------------------------------------------------------------------- */

static void add_up(struct look *look, struct child *child)
{
    if (child->state == CHILD_SILENT) {
        child->rss = process_resident(child->pid);
        child->pss = process_proportional(child->pid);
        if (child->pss < 0) child->pss = __atomic_load_n(&child->slot->pss, __ATOMIC_RELAXED);
    }
    if (child->pss > child->rss) child->pss = child->rss; /* from another moment */
    if (child->rss > 0) look->rss += child->rss;
    if (child->pss <= 0) child->pss = -1;
    look->is_pss_known &= child->pss > 0;
    if (child->pss > 0) look->pss += child->pss;
    child->outside = -1;
    int64_t pools = (int64_t)child->pools.bytes;
    if (child->pools.pools) child->outside = child->rss > pools ? child->rss - pools : 0;
    if (child->outside >= 0) look->outside += child->outside;
    look->requests += child->requests;
    look->cpu += child->cpu;
}

/* What children have from the first process is there once, and in the pools of each. */
static void set_outside(struct look *look)
{
    int64_t shared = (int64_t)look->pools.inherited, pools = (int64_t)look->pools.bytes - shared, n = 0;
    for (size_t i = 0; i < look->n; i++) n += look->children[i].pools.pools > 0;
    if (n && look->is_pss_known) look->outside = look->pss - pools - shared / n;
    if (!n || look->outside < 0) look->outside = n ? 0 : -1;
}

static int by_bytes(const void *a, const void *b)
{
    const struct live_row *one = a, *other = b;
    return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

bool look_take(struct look *look)
{
    long begin = process_thread_cpu();
    *look = (struct look){.is_pss_known = true};
    if (!list_children(look)) return false;
    ask_all(look);
    if (!hear_all(look)) return false;
    for (size_t i = 0; i < look->n; i++) {
        read_reply(look, &look->children[i]);
        add_up(look, &look->children[i]);
    }
    set_outside(look);
    pool_tags_sort(&look->tags);
    pool_tags_sort(&look->mallocs);
    pool_tags_sort(&look->hosts);
    if (look->n_rows) qsort(look->rows, look->n_rows, sizeof *look->rows, by_bytes);
    look->cpu += process_thread_cpu() - begin;
    return true;
}

void look_free(struct look *look)
{
    for (size_t i = 0; i < look->n; i++) text_free(&look->children[i].reply);
    free(look->children);
    free(look->rows);
    pool_tags_free(&look->tags);
    pool_tags_free(&look->mallocs);
    pool_tags_free(&look->hosts);
    *look = (struct look){.n = 0};
}
