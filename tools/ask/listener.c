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
 * Start: with the option ask when the library is loaded, or at a call of reapListen. Where the option is
 * given, and nobody loads the library, nobody listens.
 *
 * Fork: a child closes what it inherited, so that its parent's address and clients stay the parent's. It
 * listens by itself if the address has %p: at once where the option gave it; else at its first call that
 * needs memory, since most children exec.
 */
#include "reap_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>

#include "endpoint.h"
#include "hoard.h"
#include "process.h"
#include "questions.h"
#include "reap.h"
#include "text.h"
#include "tools/common/numbered_name.h"
#include "user.h"

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
    struct own_file endpoint;
    bool answers;
    uint64_t deadline, end; /* in ms: of the next progress, of all */
    size_t length, sent;
    struct text text;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the address and what follows */
static char given[ENDPOINT_NAME];                         /* with %p, as the user gave it; "": none */
static char address[ENDPOINT_NAME];
static struct own_file listener = NO_OWN_FILE;
static bool runs;      /* this process has the thread */
static bool by_option; /* the user wants to ask each process, also one that is idle */
static pid_t owner;    /* of the address */

/* The thread's own; and a forked child's, which forgets them. */
static struct client clients[CLIENTS] = {[0 ... CLIENTS - 1] = {.endpoint = NO_OWN_FILE}};
static char questions[CLIENTS][QUESTION]; /* apart: every forked child writes to the clients' pages */
static uint64_t start_ms, pause_until;

/* --- the address ----------------------------------------------------------------------------- */

/* Opens the socket. 0, or an error number. */
static int open_listener(void)
{
    if (!numbered_name(address, sizeof address, given, strlen(given))) return ENAMETOOLONG;
    int error = endpoint_listen(&listener, address, WAITING);
    if (error == 0) owner = getpid();
    return error;
}

static void complain(int error)
{
    if (error == EADDRINUSE)
        process_say("ask=%s: another process has this address, so nobody can ask this one", address);
    else
        process_say("ask=%s: %s, so nobody can ask this process", address, strerrordesc_np(error));
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
    unsigned me = geteuid();
    int process = getpid();
    if (user_is_trusted(me))
        snprintf(line, sizeof line, "reap: only user %u and root may ask process %d\n", me, process);
    else
        snprintf(line, sizeof line,
                 "reap: only root may ask process %d: its user has no number of its own here\n", process);
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

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void count_seconds(uint64_t now) { reapSetClock((uint32_t)((now - start_ms) / SECOND_MS) + 1); }

/* The clock goes on in forked children, whose reaps have times of their parent's. */
static void start_clock(void)
{
    uint64_t now = clock_ms();
    if (start_ms == 0) start_ms = now;
    count_seconds(now);
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
        bool is_used = client->endpoint.fd >= 0;
        ready[i] = (struct pollfd){.fd = client->endpoint.fd, .events = client->answers ? POLLOUT : POLLIN};
        if (!is_used) has_room = true;
        if (is_used && client->deadline < now + wait)
            wait = client->deadline > now ? client->deadline - now : 0;
    }
    bool listens = has_room && now >= pause_until;
    ready[CLIENTS] = (struct pollfd){.fd = listens ? listener.fd : -1, .events = POLLIN};
    if (poll(ready, CLIENTS + 1, (int)wait) >= 0) return;
    if (errno != EINTR) pause_ms(PAUSE_MS);
    for (unsigned i = 0; i <= CLIENTS; i++) ready[i].revents = 0;
}

static void serve(const struct pollfd ready[CLIENTS + 1])
{
    uint64_t now = clock_ms();
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
    if (!own_file_is_open(&listener)) {
        listener.fd = -1;
        open_listener();
    }
    pthread_mutex_unlock(&mutex);
}

static void *listen_and_answer(void *unused)
{
    (void)unused;
    struct pollfd ready[CLIENTS + 1];
    pid_t me = getpid();
    uint64_t looked = clock_ms();
    while (getpid() == me) { /* a function of the program may have forked, and returned in the child */
        uint64_t now = clock_ms();
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

/* Listens at the address in `given`. 0, or an error number. */
static int start(void)
{
    int error = open_listener();
    if (error != 0) return error;
    start_clock();
    error = process_start_thread("reap-ask", listen_and_answer);
    if (error == 0) {
        runs = true;
    } else {
        own_file_close(&listener);
        reapSetClock(0);
    }
    return error;
}

/* The same, for the option, whose user sees no result. */
static void start_or_complain(void)
{
    int state, error; /* connect is a cancellation point */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    error = start();
    if (error != 0) complain(error);
    pthread_setcancelstate(state, NULL);
}

/* In a forked child, which may have called reapListen meanwhile. If a thread is within that call, which may
 * be this one, as it allocates, then later. */
static void start_later(void)
{
    if (pthread_mutex_trylock(&mutex) != 0) {
        hoard_call_later(start_later);
        return;
    }
    if (given[0] && !runs) start_or_complain();
    pthread_mutex_unlock(&mutex);
}

/* Nothing is locked here: the child has one thread. What another thread of the parent was about to change
 * stays as it was, or is forgotten. */
static void in_forked_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&mutex, &fresh, sizeof mutex);
    own_file_close(&listener);
    for (struct client *client = clients; client < clients + CLIENTS; client++) {
        own_file_close(&client->endpoint);
        client->text = (struct text){.bytes = NULL};
    }
    runs = false;
    if (strstr(given, "%p") && by_option) {
        start_or_complain();
    } else if (strstr(given, "%p")) {
        hoard_call_later(start_later);
    } else {
        given[0] = '\0';
        if (start_ms != 0) reapSetClock(0); /* nobody counts the seconds */
    }
}

/* The questions' handler comes first: the thread that this one starts answers them. */
static bool survives_fork(void)
{
    static bool is_registered;
    if (!is_registered)
        is_registered = questions_survive_fork() && pthread_atfork(NULL, NULL, in_forked_child) == 0;
    return is_registered;
}

static int listen_at(const char *asked)
{
    if (!*asked || strcmp(asked, "@") == 0) return EINVAL;
    if (strlen(asked) >= sizeof given) return ENAMETOOLONG;
    if (!survives_fork()) return ENOMEM;
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
    NOT_NULL(asked, "reapListen");
    int state; /* connect is a cancellation point */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&mutex);
    int error = listen_at(asked);
    pthread_mutex_unlock(&mutex);
    pthread_setcancelstate(state, NULL);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

/* The option: the address stays, and another one is refused, also where nobody can listen at it now: children
 * may. */
__attribute__((constructor)) static void listen_by_option(void)
{
    size_t size;
    const char *option = process_option(&size);
    if (!option) return;
    pthread_mutex_lock(&mutex);
    if (size >= sizeof given) {
        process_say("REAP_OPTIONS: ask=%.200s is too long", option);
    } else if (survives_fork() && !given[0]) {
        memcpy(given, option, size);
        by_option = true;
        start_or_complain();
    }
    pthread_mutex_unlock(&mutex);
}

__attribute__((destructor)) static void end(void)
{
    if (owner != getpid()) return;
    questions_end();
    endpoint_unlink(address);
}
