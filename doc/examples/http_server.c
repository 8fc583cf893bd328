/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c: a reap for each request. POST a text and the answer counts its words; GET /status shows who
 * holds what.
 *
 *     cc -o http_server http_server.c $(pkg-config --cflags --libs reap libmicrohttpd)
 *     ./http_server 8080 & curl --data-binary @http_server.c http://127.0.0.1:8080/
 *
 *     server                          limit for all: beyond it, 503
 *       request ...                   limit for each: beyond it, 413
 *         receiving | counting        a child for each phase
 *
 * Whatever way a request ends, also when the client goes away in the middle of it, one reapDestroy in
 * completed() is all there is to clean up. That is why nothing below frees on its way out of an error.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <reap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REQUEST_LIMIT = 256 * 1024,
    SERVER_LIMIT = 1024 * 1024,
    GRACE = 5, /* seconds that requests have to end in when the server stops */
};

struct request {
    void *reap;      /* of the request; this struct lies in it, too */
    void *receiving; /* phase 1: the body comes in */
    char *body;
    size_t length;
    unsigned refused; /* 413 or 503, to be answered when all has arrived; else 0 */
};

/* One thread serves all, so that /status may look into all. With more, a thread could look into its own. */
static void *server;
static unsigned long refused; /* requests */

/* The request's own limit was met: it is too large. Called before the allocation that met it fails. */
static void too_large(void **reap, size_t size, void *arg)
{
    struct request *request = arg;
    (void)reap, (void)size;
    request->refused = MHD_HTTP_CONTENT_TOO_LARGE;
}

static struct request *begin_request(void)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .limit = REQUEST_LIMIT, .name = "request"},
                        phase = {.size = sizeof phase, .name = "receiving"};
    if (reapCreateWith(&reap, &server, &options) != 0) return NULL;
    struct request *request = reapCalloc(&reap, 1, sizeof *request);
    if (!request || reapCreateWith(&request->receiving, &reap, &phase) != 0) {
        reapDestroy(&reap);
        return NULL;
    }
    request->reap = reap;
    reapOnLimit(&request->reap, too_large, request);
    return request;
}

/* libmicrohttpd's last word on a request: answered, timed out, or the client is gone. */
static void completed(void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode how)
{
    struct request *request = *state;
    (void)arg, (void)connection, (void)how;
    if (!request) return;
    void *reap = request->reap; /* a copy: the handle must not lie in what is destroyed */
    reapDestroy(&reap);
}

/* An allocation failed. If it was not the request's own limit, the server has no room at the moment. What the
 * request held is others' from now on, though the answer has to wait for the rest of the body. */
static void refuse(struct request *request)
{
    if (!request->refused) request->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    reapDestroy(&request->receiving);
    refused++;
}

/* Grows in place, where the bump pointer is; the difference is what counts against the limits. */
static void receive(struct request *request, const char *data, size_t size)
{
    char *body = reapRealloc(&request->receiving, request->body, request->length + size + 1);
    if (!body) {
        refuse(request);
        return;
    }
    memcpy(body + request->length, data, size);
    request->length += size;
    body[request->length] = '\0';
    request->body = body;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The words are in a table of their own reap, and only the answer is in the request's. NULL: no memory. */
static const char *count_words(struct request *request)
{
    void *counting;
    char **words = NULL, *rest = NULL;
    size_t n = 0, room = 0, distinct = 0;
    reapCreate(&counting, &request->reap);
    if (!counting) return NULL;
    for (char *word, *text = request->body; (word = strtok_r(text, " \t\r\n", &rest)); text = NULL) {
        if (n == room) words = reapRealloc(&counting, words, (room = 2 * room + 64) * sizeof *words);
        if (!words) return NULL; /* the old table is still there, and goes with the request */
        words[n++] = word;
    }
    if (n) qsort(words, n, sizeof *words, compare);
    for (size_t i = 0; i < n; i++) distinct += i == 0 || strcmp(words[i - 1], words[i]) != 0;
    reapDestroy(&counting);
    return reapPrintf(&request->reap, "%zu words, %zu distinct\n", n, distinct);
}

/* The text is libc's malloc's; the request frees it at its end all the same. */
static const char *report(struct request *request)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fprintf(out, "%lu refused\n", refused);
    reapReport(&server, out);
    if (fclose(out) == 0 && reapOnDestroy(&request->reap, free, text) == 0) return text;
    return free(text), NULL;
}

/* The text stays where it is until completed(). */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result reply(struct MHD_Connection *connection, struct request *request, const char *url)
{
    int is_status = strcmp(url, "/status") == 0;
    if (!is_status && !request->body && !request->refused) return answer(connection, 404, "POST a text\n");
    if (!request->refused) {
        const char *text = is_status ? report(request) : count_words(request);
        if (text) return answer(connection, MHD_HTTP_OK, text);
        refuse(request);
    }
    return answer(connection, request->refused, "refused\n");
}

/* Called once with the headers, then for each piece of the body, then once more for the reply. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    struct request *request = *state;
    (void)arg, (void)method, (void)version;
    if (!request) {
        *state = request = begin_request();
        if (request) return MHD_YES;
        refused++;
        return answer(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "refused\n");
    }
    if (*size == 0) return reply(connection, request, url);
    if (!request->refused) receive(request, data, *size);
    *size = 0;
    return MHD_YES;
}

/* No new connections; those that are open have GRACE seconds, then they are closed. */
static void stop(struct MHD_Daemon *daemon)
{
    MHD_socket listening = MHD_quiesce_daemon(daemon);
    if (listening != MHD_INVALID_SOCKET) close(listening);
    for (int tenth = 0; tenth < 10 * GRACE; tenth++) {
        if (MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections == 0) break;
        usleep(100000);
    }
    MHD_stop_daemon(daemon);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 8080)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct reap_options options = {.size = sizeof options, .limit = SERVER_LIMIT, .name = "server"};
    if (reapCreateWith(&server, NULL, &options) != 0) return perror("reapCreateWith"), EXIT_FAILURE;

    sigset_t signals; /* blocked in all threads, and waited for */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                         handle, NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_NOTIFY_COMPLETED, completed,
                         NULL, MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
    if (!daemon) return fprintf(stderr, "http_server: cannot listen there\n"), EXIT_FAILURE;
    printf("listening on port %d\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);

    int signal;
    sigwait(&signals, &signal);
    stop(daemon);
    struct reap_stats stats;
    reapStats(&server, &stats);
    printf("%lu refused; %zu requests and %zu bytes left\n", refused, stats.children, stats.live_bytes);
    reapDestroy(&server);
    return EXIT_SUCCESS;
}
