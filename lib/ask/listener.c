/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c: the thread that answers questions from outside (reapListen, option ask), and the seconds by
 * which reaps have ages.
 *
 * One thread serves all clients. It never waits for one of them: it reads and writes what it can, and cuts
 * off those that make no progress. It answers a question as a whole, before the first byte of the answer goes
 * out.
 *
 *     client    ---- question, a line ---->    asking, until the line's end or the deadline
 *               <----- answer, end --------    answering, until all of it is out or the deadline
 *
 * Fork: a child closes what it inherited, so that its parent's address and clients stay the parent's. It
 * listens by itself if the address has %p.
 */
#include "reap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ask/endpoint.h"
#include "ask/questions.h"
#include "ask/text.h"
#include "base/options.h"
#include "base/process_name.h"
#include "base/report.h"
#include "base/user.h"
#include "hoard/init.h"
#include "os/pages.h"
#include "reap/misuse.h"
#include "region/reap_types.h"

enum {
    CLIENTS = 8,           /* at once; */
    WAITING = 16,          /* this many more wait */
    QUESTION = 4096,       /* bytes, with the line's end */
    QUESTION_MS = 1000,    /* from the connection to the line's end */
    PROGRESS_MS = 1000,    /* between two bytes of the answer */
    ANSWER_MS = 60 * 1000, /* for all of it */
    PAUSE_MS = 500,        /* when the process has no descriptors, or has closed the socket */
    SECOND_MS = 1000,
};

struct client {
    struct endpoint endpoint;
    bool answers;
    uint64_t deadline, end; /* in ms: of the next progress, of all */
    size_t length, sent;
    struct text text;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the address and what follows */
static char given[ENDPOINT_NAME];                         /* with %p, as the user gave it; "": none */
static char address[ENDPOINT_NAME];
static struct endpoint listener = NO_ENDPOINT;
static bool runs;     /* this process has the thread, */
static bool is_ahead; /* or it is just starting, with the socket that reapListen has opened */
static pid_t owner;   /* of the address */

/* The thread's own; and a forked child's, which forgets them. */
static struct client clients[CLIENTS] = {[0 ... CLIENTS - 1] = {.endpoint = NO_ENDPOINT}};
static SPARSE char questions[CLIENTS][QUESTION]; /* apart: every forked child writes to the clients' pages */
static uint64_t start_ms, pause_until;

static struct service service;

/* --- the address ----------------------------------------------------------------------------- */

/* The value of the option, up to the next comma. The program may change its environment later. */
static void read_option(void)
{
    static bool is_read;
    size_t size = options.ask && !is_read ? strcspn(options.ask, ",") : 0;
    is_read = true;
    if (size == 0 || given[0]) return;
    service.starts_with_child = true; /* the user wants to ask each process, also one that is idle */
    if (size < sizeof given)
        memcpy(given, options.ask, size);
    else
        report_line("REAP_OPTIONS: ask=%.200s is too long", options.ask);
}

/* Opens the socket. 0, or an error number. */
static int open_listener(void)
{
    if (!process_name(given, address, sizeof address)) return ENAMETOOLONG;
    int error = endpoint_listen(&listener, address, WAITING);
    if (error == 0) owner = getpid();
    return error;
}

static void complain(int error)
{
    if (error == EADDRINUSE)
        report_line("ask=%s: another process has this address, so nobody can ask this one", address);
    else
        report_line("ask=%s: %s, so nobody can ask this process", address, strerrordesc_np(error));
}

/* --- clients --------------------------------------------------------------------------------- */

static void hang_up(struct client *client)
{
    endpoint_hang_up(&client->endpoint);
    text_drop(&client->text);
}

/* Gives a client this line in the place of an answer. */
static void refuse(struct client *client, const char *line)
{
    endpoint_write(&client->endpoint, line, strlen(line));
    hang_up(client);
}

static void refuse_user(struct client *client)
{
    char line[128];
    unsigned me = geteuid(), process = (unsigned)getpid();
    if (user_is_trusted(me))
        report_format(line, sizeof line, "reap: only user %u and root may ask process %u\n", me, process);
    else
        report_format(line, sizeof line,
                      "reap: only root may ask process %u: its user has no number of its own here\n",
                      process);
    refuse(client, line);
}

/* Accepts a client. False: there is none, or no room for it. */
static bool accept_one(uint64_t now)
{
    struct client *client = clients;
    while (client < clients + CLIENTS && client->endpoint.fd >= 0) client++;
    if (client == clients + CLIENTS) return false;
    int error = endpoint_accept(&listener, &client->endpoint);
    bool is_usual = error == EAGAIN || error == EINTR || error == ECONNABORTED;
    if (error != 0 && !is_usual) pause_until = now + PAUSE_MS;
    if (error != 0) return false;
    client->answers = false;
    client->deadline = client->end = now + QUESTION_MS;
    client->length = client->sent = 0;
    if (!endpoint_is_trusted(&client->endpoint)) refuse_user(client);
    return true;
}

static void write_answer(struct client *client, uint64_t now)
{
    size_t rest = client->text.size - client->sent;
    ssize_t n = rest > 0 ? endpoint_write(&client->endpoint, client->text.bytes + client->sent, rest) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0 || (size_t)n == rest) {
        hang_up(client);
        return;
    }
    client->sent += (size_t)n;
    client->deadline = now + PROGRESS_MS < client->end ? now + PROGRESS_MS : client->end;
}

/* Answers a question whose line has ended. */
static void answer(struct client *client, uint64_t now)
{
    FILE *out = text_begin(&client->text);
    if (out) {
        questions_answer(questions[client - clients], out);
        text_end(&client->text, out);
    }
    if (!out || (client->text.is_cut && !client->text.bytes)) {
        refuse(client, "reap: no memory for this answer\n");
        return;
    }
    client->answers = true;
    client->end = now + ANSWER_MS;
    client->deadline = now + PROGRESS_MS;
    write_answer(client, now);
}

static void read_question(struct client *client, uint64_t now)
{
    char *to = questions[client - clients] + client->length;
    ssize_t n = endpoint_read(&client->endpoint, to, QUESTION - client->length);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0 || (n == 0 && client->length == 0)) {
        hang_up(client);
        return;
    }
    client->length += (size_t)n;
    char *end = memchr(to, '\n', (size_t)n);
    if (!end && n > 0 && client->length < QUESTION) return;
    if (!end && client->length == QUESTION) {
        refuse(client, "reap: this question is too long: 4095 bytes are the most\n");
        return;
    }
    *(end ? end : to) = '\0';
    answer(client, now);
}

/* --- the thread ------------------------------------------------------------------------------ */

static void count_seconds(uint64_t now)
{
    uint32_t seconds = (uint32_t)((now - start_ms) / SECOND_MS) + 1;
    atomic_store_explicit(&reap_seconds, seconds, memory_order_relaxed);
}

/* The clock goes on in forked children, whose reaps have times of their parent's. */
static void start_clock(void)
{
    if (start_ms == 0) start_ms = pages_clock();
    count_seconds(pages_clock());
}

static void pause_ms(unsigned ms)
{
    const struct timespec time = {.tv_nsec = (long)ms * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Waits until there is something to do, a second passes, or the first deadline. ready[CLIENTS] is the
 * listener's. poll refuses at once where the process may have fewer descriptors than it is asked about
 * (RLIMIT_NOFILE), as in the sandboxes of some servers: nobody is answered then. */
static void wait_for_work(struct pollfd ready[CLIENTS + 1], uint64_t now)
{
    uint64_t wait = SECOND_MS - (now - start_ms) % SECOND_MS;
    bool has_room = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        const struct client *client = &clients[i];
        bool is = client->endpoint.fd >= 0;
        ready[i] = (struct pollfd){.fd = client->endpoint.fd, .events = client->answers ? POLLOUT : POLLIN};
        if (!is) has_room = true;
        if (is && client->deadline < now + wait) wait = client->deadline > now ? client->deadline - now : 0;
    }
    bool listens = has_room && now >= pause_until;
    ready[CLIENTS] = (struct pollfd){.fd = listens ? listener.fd : -1, .events = POLLIN};
    if (poll(ready, CLIENTS + 1, (int)wait) >= 0) return;
    if (errno != EINTR) pause_ms(PAUSE_MS);
    for (unsigned i = 0; i <= CLIENTS; i++) ready[i].revents = 0;
}

static void serve(const struct pollfd ready[CLIENTS + 1])
{
    uint64_t now = pages_clock();
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *client = &clients[i];
        if (client->endpoint.fd < 0) continue;
        if (ready[i].revents != 0)
            (client->answers ? write_answer : read_question)(client, now);
        else if (now >= client->deadline)
            hang_up(client);
    }
    if (ready[CLIENTS].revents != 0)
        for (unsigned i = 0; i < CLIENTS && accept_one(now); i++) continue;
}

/* The program may have closed the socket with all its descriptors. */
static void reopen(void)
{
    pthread_mutex_lock(&mutex);
    if (!endpoint_is_open(&listener)) {
        listener.fd = -1;
        open_listener();
    }
    pthread_mutex_unlock(&mutex);
}

static bool begin(void)
{
    pthread_mutex_lock(&mutex);
    bool serves = is_ahead || (!runs && given[0]);
    int error = serves && !is_ahead ? open_listener() : 0;
    if (error != 0) complain(error);
    is_ahead = false;
    if (serves) runs = error == 0;
    start_clock();
    pthread_mutex_unlock(&mutex);
    return serves && error == 0;
}

static void *listen_and_answer(void *unused)
{
    (void)unused;
    struct pollfd ready[CLIENTS + 1];
    if (!begin()) return NULL;
    pid_t me = getpid();
    uint64_t looked = pages_clock();
    while (getpid() == me) { /* a function of the program may have forked, and returned in the child */
        uint64_t now = pages_clock();
        count_seconds(now);
        wait_for_work(ready, now);
        serve(ready);
        if (now - looked < SECOND_MS) continue;
        looked = now;
        reopen();
    }
    return NULL;
}

/* --- starting and ending --------------------------------------------------------------------- */

static bool is_wanted(void)
{
    read_option();
    return given[0] && !runs;
}

/* Nothing is locked here: the child has one thread. What another thread of the parent was about to change
 * stays as it was, or is forgotten. */
static void in_forked_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&mutex, &fresh, sizeof mutex);
    questions_fork_child();
    endpoint_close(&listener);
    for (struct client *client = clients; client < clients + CLIENTS; client++) {
        endpoint_close(&client->endpoint);
        client->text = (struct text){.bytes = NULL};
    }
    runs = is_ahead = false;
    if (process_name_has_number(given)) return;
    given[0] = '\0';
    atomic_store_explicit(&reap_seconds, 0, memory_order_relaxed); /* nobody counts them */
}

static struct service service = {.name = "reap-ask",
                                 .run = listen_and_answer,
                                 .is_wanted = is_wanted,
                                 .in_forked_child = in_forked_child};

__attribute__((constructor)) static void listener_start(void) { service_register(&service); }

__attribute__((destructor)) static void listener_end(void)
{
    if (owner != getpid()) return;
    questions_end();
    endpoint_unlink(address);
}

/* Listens at the address in `given`. 0, or an error number. */
static int start(void)
{
    int error = open_listener();
    if (error != 0) return error;
    start_clock();
    error = service_start(&service);
    if (error == 0)
        runs = is_ahead = true;
    else
        endpoint_close(&listener);
    return error;
}

static int listen_at(const char *asked)
{
    if (!*asked || strcmp(asked, "@") == 0) return EINVAL;
    if (strlen(asked) >= sizeof given) return ENAMETOOLONG;
    if (!hoard_survives_fork()) return ENOMEM;
    if (given[0] && strcmp(given, asked) != 0) return EBUSY;
    if (runs) return 0;
    bool is_new = !given[0];
    memcpy(given, asked, strlen(asked) + 1);
    int error = start();
    if (error != 0 && is_new) given[0] = '\0';
    return error;
}

int reapListen(const char *asked)
{
    REAP_NOT_NULL(asked, "reapListen");
    int state; /* connect is a cancellation point */
    hoard_start_late();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&mutex);
    int error = listen_at(asked);
    pthread_mutex_unlock(&mutex);
    pthread_setcancelstate(state, NULL);
    if (error == 0) return 0;
    errno = error;
    return -1;
}
