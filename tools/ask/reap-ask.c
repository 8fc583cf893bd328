/* SPDX-License-Identifier: Apache-2.0 */
/* reap-ask: asks a running process about its reaps. See reap-ask(1).
 *
 *     reap-ask [-t SECONDS] PROCESS|ADDRESS [QUESTION [ARGUMENT...]]
 *
 * Status 0: an answer is on standard output. 1: there is none, and a line on standard error says why. 2:
 * wrong usage.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "user.h"

enum { QUESTION = 4096, SECONDS = 10, SECONDS_MOST = 3600 };

static const char usage[] =
    "usage: reap-ask [-t SECONDS] PROCESS|ADDRESS [QUESTION [ARGUMENT...]]\n"
    "asks a running process about its reaps: reap-ask 4711 tree\n"
    "  PROCESS    its number, if it listens at @reap.NUMBER\n"
    "  ADDRESS    a path, or @NAME for an abstract address\n"
    "  QUESTION   help, tree, tags, usage, json, or what the program adds; help if none is given\n"
    "A process with libreap-ask.so (in LD_PRELOAD, say) listens if it is started with\n"
    "REAP_OPTIONS=ask=@reap.%p in its environment, or calls reapListen.\n";

static void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("reap-ask: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(status);
}

/* Reads a number from 1 to `most`, and nothing else. 0 if the text is no such number. */
static long number_of(const char *text, long most)
{
    char *end;
    if (*text < '0' || *text > '9') return 0;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 && number <= most ? number : 0;
}

/* --- the address ----------------------------------------------------------------------------- */

static bool is_number(const char *text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

/* The process of a number, or 0 for an address. Ends the program if no process has the number. */
static long process_of(const char *whom)
{
    if (!is_number(whom)) return 0;
    long process = number_of(whom, 1L << 30);
    if (process == 0 || (kill((pid_t)process, 0) != 0 && errno == ESRCH))
        fail(1, "there is no process %s", whom);
    return process;
}

static socklen_t make_address(struct sockaddr_un *to, const char *address)
{
    size_t length = strlen(address);
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || strcmp(address, "@") == 0) fail(2, "an address has a name");
    if (length >= sizeof to->sun_path) fail(1, "the address is too long: %s", address);
    memcpy(to->sun_path, address, length);
    if (*address != '@') return sizeof *to;
    to->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static void fail_to_connect(const char *whom, long process, const char *address)
{
    const char *why = strerror(errno);
    bool is_nobody = errno == ECONNREFUSED || errno == ENOENT;
    if (errno == EACCES || errno == EPERM) fail(1, "this user may not ask %s: %s", whom, why);
    if (errno == EAGAIN) fail(1, "%s is too busy to answer: too many ask it", whom);
    if (!is_nobody) fail(1, "%s cannot be asked: %s", address, why);
    if (process != 0)
        fail(1,
             "process %s does not listen at %s: it must have libreap-ask (preloaded, linked, or with "
             "mod_reap), and have been started with REAP_OPTIONS=ask=@reap.%%p in its environment, or have "
             "called reapListen(\"@reap.%%p\")",
             whom, address);
    fail(1, "nobody listens at %s", address);
}

/* Anybody may listen at a name that is free. So the answer must come from the process whose number was given,
 * and from this user or root; root trusts who listens at the address that it gives. */
static void check_who_listens(int fd, const char *whom, long process)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        fail(1, "%s cannot be asked: %s", whom, strerror(errno));
    if (process != 0 && peer.pid != process)
        fail(1, "it is process %ld of user %lu that listens at @reap.%ld", (long)peer.pid,
             (unsigned long)peer.uid, process);
    if (geteuid() == 0 || user_is_trusted(peer.uid)) return;
    if (peer.uid == geteuid())
        fail(1, "this user may not ask %s: process %ld is of some user who has no number of its own here",
             whom, (long)peer.pid);
    fail(1, "this user may not ask %s: process %ld is user %lu's, so only user %lu and root may ask it", whom,
         (long)peer.pid, (unsigned long)peer.uid, (unsigned long)peer.uid);
}

static int connect_to(const char *whom, long seconds)
{
    char address[64];
    struct sockaddr_un to;
    long process = process_of(whom);
    snprintf(address, sizeof address, "@reap.%ld", process);
    const char *name = process != 0 ? address : whom;
    socklen_t size = make_address(&to, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(1, "no socket: %s", strerror(errno));
    struct timeval most = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (connect(fd, (struct sockaddr *)&to, size) != 0) fail_to_connect(whom, process, name);
    check_who_listens(fd, whom, process);
    return fd;
}

/* --- question and answer --------------------------------------------------------------------- */

/* Joins the words to one line. Returns its length. */
static size_t make_question(char *line, char **words)
{
    size_t length = 0;
    for (; *words; words++) {
        size_t size = strlen(*words);
        if (strchr(*words, '\n')) fail(2, "a question is one line");
        if (length + size + 2 > QUESTION) fail(2, "the question is too long: 4095 bytes are the most");
        if (length > 0) line[length++] = ' ';
        memcpy(line + length, *words, size);
        length += size;
    }
    line[length++] = '\n';
    return length;
}

static void send_question(int fd, const char *line, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, line, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EPIPE) return; /* it refuses, and says why */
        if (n < 0) fail(1, "the question did not get through: %s", strerror(errno));
        line += n;
        length -= (size_t)n;
    }
}

/* Names are those of another program, maybe of another user's: they shall not tell a terminal to do
 * things. So control characters become question marks, also those of two bytes (C1). */
static void make_harmless(char *text, size_t size)
{
    static unsigned char before;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
        if (is_control || (before == 0xc2 && c >= 0x80 && c < 0xa0)) text[i] = '?';
        before = c;
    }
}

static void print(char *text, size_t size)
{
    if (isatty(STDOUT_FILENO)) make_harmless(text, size);
    if (fwrite(text, 1, size, stdout) != size) fail(1, "the answer cannot be written: %s", strerror(errno));
}

/* Returns true if the answer begins with a refusal: "reap: ". The lines of the question `usage` do so too. */
static bool refuses(const char *start, size_t size)
{
    static const char *const refusals[] = {"reap: no such question", "reap: only ", "reap: no memory",
                                           "reap: this question", "reap: profile:"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (size >= strlen(refusals[i]) && memcmp(start, refusals[i], strlen(refusals[i])) == 0) return true;
    return false;
}

/* Copies the answer to standard output, or a refusal to standard error. Returns the program's status. */
static int copy_answer(int fd, const char *whom, long seconds)
{
    static char text[64 * 1024];
    bool is_first = true, is_refusal = false;
    for (;;) {
        ssize_t n = recv(fd, text, sizeof text, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) fail(1, "%s gave no answer in %ld s", whom, seconds);
        if (n < 0) fail(1, "the answer broke off: %s", strerror(errno));
        if (n == 0) break;
        if (is_first) is_refusal = refuses(text, (size_t)n);
        is_first = false;
        if (is_refusal) {
            make_harmless(text, (size_t)n);
            fprintf(stderr, "reap-ask: %.*s", (int)n, text);
        } else {
            print(text, (size_t)n);
        }
    }
    if (fflush(stdout) != 0) fail(1, "the answer cannot be written: %s", strerror(errno));
    return is_refusal;
}

int main(int argc, char **argv)
{
    static char help_word[] = "help", *help[] = {help_word, NULL};
    char line[QUESTION];
    long seconds = SECONDS;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0;
    for (int option; (option = getopt(argc, argv, "+ht:")) != -1;) {
        if (option == 't') seconds = number_of(optarg, SECONDS_MOST);
        if (option == 't' && seconds == 0) fail(2, "-t takes seconds, 1 to 3600: %s", optarg);
        if (option == 'h') return fputs(usage, stdout) < 0;
        if (option == '?') return fputs(usage, stderr), 2;
    }
    if (optind == argc) return fputs(usage, stderr), 2;
    const char *whom = argv[optind];
    size_t length = make_question(line, optind + 1 < argc ? argv + optind + 1 : help);
    int fd = connect_to(whom, seconds);
    send_question(fd, line, length);
    return copy_answer(fd, whom, seconds);
}
