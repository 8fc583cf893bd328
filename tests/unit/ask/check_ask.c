/* SPDX-License-Identifier: Apache-2.0 */
/* check_ask.c: a process that is asked through its socket: addresses, forks, clients that misbehave, and a
 * program that closes what is not its own. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "reap_ask.h"
#include "support/check_reap.h"

/* --- a client -------------------------------------------------------------------------------- */

/* Connects to "@name" or a path, with "%d" for a process. -1 and errno. */
static int connect_to(const char *address, pid_t process)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = (size_t)snprintf(to.sun_path, sizeof to.sun_path, address, (int)process);
    socklen_t size = sizeof to;
    if (*address == '@') {
        to.sun_path[0] = '\0';
        size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    if (connect(fd, (struct sockaddr *)&to, size) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Reads to the end, for 10 seconds at most. -1: no end. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t got = 0;
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&ready, 1, 10000) == 1 ? recv(fd, text + got, size - 1 - got, 0) : -1;
        if (n <= 0) {
            text[got] = '\0';
            return n == 0 ? (ssize_t)got : -1;
        }
        got += (size_t)n;
    }
}

/* The answer; "" if there is none. */
static const char *ask(const char *address, pid_t process, const char *question)
{
    static char text[1 << 20];
    char line[256];
    int fd = connect_to(address, process);
    text[0] = '\0';
    if (fd < 0) return "";
    size_t n = (size_t)snprintf(line, sizeof line, "%s\n", question);
    ssize_t sent = send(fd, line, n, MSG_NOSIGNAL);
    bool refuses = sent < 0 && (errno == EPIPE || errno == ECONNRESET); /* and says why, before it reads */
    if (read_all(fd, text, sizeof text) < 0 && strncmp(text, "reap: only", 10) != 0) text[0] = '\0';
    if (sent != (ssize_t)n && !refuses) text[0] = '\0';
    close(fd);
    return text;
}

static const char name_of[] = "@reap-check.%d";

static bool answers(pid_t process) { return strstr(ask(name_of, process, "help"), "\ntree: ") != NULL; }

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static double age_seen;

static int see_age(const struct reap_view *view, void *arg)
{
    (void)arg;
    age_seen = view->age;
    return 0;
}

static double age_of(void **reap)
{
    ck_assert_int_eq(reapSurvey(reap, see_age, NULL), 0);
    return age_seen;
}

static double seconds_since(uint64_t start) { return (double)(now_ms() - start) / 1000; }

static void listen_here(void)
{
    ck_assert_int_eq(reapListen("@reap-check.%p"), 0);
    ck_assert(answers(getpid()));
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* --- addresses ------------------------------------------------------------------------------- */

static void assert_refused(const char *address, int error)
{
    errno = 0;
    ck_assert_int_eq(reapListen(address), -1);
    ck_assert_int_eq(errno, error);
}

TEST(addresses_are_checked)
{
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = '\0';
    assert_refused("", EINVAL);
    assert_refused("@", EINVAL);
    assert_refused(longer, ENAMETOOLONG);
    longer[107] = '\0';
    memcpy(longer + 100, "%p%p%p", 6);
    longer[0] = '@';
    assert_refused(longer, ENAMETOOLONG);
    assert_refused("/nowhere/at/all", ENOENT);
    listen_here();
    errno = 0;
    ck_assert_int_eq(reapListen("@reap-check.%p"), 0);
    ck_assert_int_eq(errno, 0);
    assert_refused("@reap-check-2.%p", EBUSY);
    ck_assert(answers(getpid()));
}

/* A directory of the test's own. */
static char directory[64], path[80];

static void make_directory(void)
{
    strcpy(directory, "/tmp/reap-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
}

static bool exists(const char *name)
{
    struct stat is;
    return lstat(name, &is) == 0;
}

/* Runs in a child; its exit status. */
static int in_child(int (*body)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        exit(body());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "a signal: %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int listen_at_path(void) { return reapListen(path) == 0 ? 0 : errno; }

static int listen_and_die(void)
{
    if (reapListen(path) == 0) _exit(0);
    _exit(1);
}

TEST(a_path_is_this_users_and_goes_at_exit)
{
    struct stat is;
    make_directory();
    umask(0);
    ck_assert_int_eq(in_child(listen_at_path), 0);
    ck_assert(!exists(path));
    ck_assert_int_eq(in_child(listen_and_die), 0);
    ck_assert(exists(path)); /* and nobody is there */
    ck_assert_int_eq(reapListen(path), 0);
    ck_assert_ptr_nonnull(strstr(ask(path, 0, "help"), "tree"));
    ck_assert_int_eq(stat(path, &is), 0);
    ck_assert(S_ISSOCK(is.st_mode));
    ck_assert_uint_eq(is.st_mode & 0777, 0600);
    ck_assert_int_eq(in_child(listen_at_path), EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(ask(path, 0, "help"), "tree"));
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0); /* nothing else is in it */
}

TEST(a_file_is_not_replaced)
{
    make_directory();
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_eq(write(fd, "precious", 8), 8);
    close(fd);
    assert_refused(path, EEXIST);
    struct stat is;
    ck_assert_int_eq(stat(path, &is), 0);
    ck_assert(S_ISREG(is.st_mode) && is.st_size == 8);
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0);
}

static int listen_at_fixed_name(void) { return reapListen("@reap-check-fixed") == 0 ? 0 : errno; }

TEST(a_name_in_use_is_refused)
{
    ck_assert_int_eq(reapListen("@reap-check-fixed"), 0);
    ck_assert_int_eq(in_child(listen_at_fixed_name), EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(ask("@reap-check-fixed", 0, "help"), "tree"));
}

/* --- users ----------------------------------------------------------------------------------- */

/* A process in a user namespace of its own, in which `map` gives users their numbers, listens until it is
 * killed. 0: the system has no such namespace for it. */
static pid_t listen_in_namespace(const char *map)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = unshare(CLONE_NEWUSER) == 0 ? open("/proc/self/uid_map", O_WRONLY) : -1;
        bool has_map = fd >= 0 && (!*map || write(fd, map, strlen(map)) == (ssize_t)strlen(map));
        byte = has_map && reapListen("@reap-check.%p") == 0;
        if (write(ready[1], &byte, 1) == 1) pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    if (byte) return pid;
    stop(pid);
    return 0;
}

/* Without a number there, every user has the same one, and may be anybody. */
TEST(users_without_a_number_are_strangers)
{
    char expected[128], map[64];
    pid_t pid = listen_in_namespace("");
    needs(pid != 0, "no user namespaces");
    snprintf(expected, sizeof expected,
             "reap: only root may ask process %d: its user has no number of its own here\n", (int)pid);
    ck_assert_str_eq(ask(name_of, pid, "help"), expected);
    stop(pid);
    snprintf(map, sizeof map, "1000 %u 1", (unsigned)geteuid());
    pid = listen_in_namespace(map);
    needs(pid != 0, "no user namespaces with users");
    ck_assert(answers(pid));
    stop(pid);
}

/* --- forks ----------------------------------------------------------------------------------- */

static int alone_with_a_child(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    reapMalloc(&reap, 100000);
    for (int i = 0; i < 1000; i++) {
        if (answers(getpid())) return 0;
        usleep(20000);
    }
    return 1;
}

static int grandchild(void)
{
    if (alone_with_a_child() != 0) return 1;
    pid_t pid = fork();
    int status;
    if (pid == 0) _exit(alone_with_a_child());
    return waitpid(pid, &status, 0) != pid || status != 0;
}

TEST(children_listen_by_themselves)
{
    listen_here();
    ck_assert_int_eq(in_child(alone_with_a_child), 0);
    ck_assert_int_eq(in_child(grandchild), 0);
    ck_assert(answers(getpid()));
}

/* It tells no time either: nobody would count the seconds. */
static int is_silent(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    reapMalloc(&reap, 100000);
    usleep(300000);
    if (age_of(&reap) >= 0) return 2;
    return reapListen("@reap-check-other.%p") != 0 || age_of(&reap) >= 0;
}

/* The child of a process at a fixed address does not listen there, and may listen elsewhere. Once the parent
 * has gone, the address is free, though the child is there. */
static int fixed_parent(void)
{
    int pipes[2];
    char byte;
    if (pipe(pipes) != 0 || reapListen("@reap-check-fixed") != 0) return 1;
    if (fork() == 0) {
        byte = (char)is_silent();
        if (write(pipes[1], &byte, 1) == 1) pause();
        _exit(1);
    }
    return read(pipes[0], &byte, 1) != 1 ? 1 : byte;
}

TEST(a_child_leaves_a_fixed_address_to_its_parent)
{
    ck_assert_int_eq(in_child(fixed_parent), 0);
    ck_assert_str_eq(ask("@reap-check-fixed", 0, "help"), "");
    ck_assert_int_eq(errno, ECONNREFUSED);
    ck_assert_int_eq(reapListen("@reap-check-fixed"), 0);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
}

static void slow(FILE *out, const char *args, void *arg)
{
    (void)args, (void)arg;
    usleep(200000);
    fputs("slow", out);
}

/* A child of a process that answers has a copy of the client's socket: the client must see the answer's end
 * while the child is there. */
TEST(a_fork_while_a_client_waits)
{
    char text[64];
    listen_here();
    ck_assert_int_eq(reapAnswer("slow", slow, NULL), 0);
    for (int i = 0; i < 5; i++) {
        int fd = connect_to(name_of, getpid());
        ck_assert_int_eq(send(fd, "slow\n", 5, 0), 5);
        usleep(50000);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            for (;;) pause();
        }
        ck_assert_int_eq(read_all(fd, text, sizeof text), 4);
        close(fd);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
}

static atomic_bool over;

static void *keep_asking(void *arg)
{
    pid_t process = *(pid_t *)arg;
    char text[4096];
    while (!over) {
        int fd = connect_to(name_of, process);
        if (fd < 0) continue;
        if (send(fd, "usage\n", 6, MSG_NOSIGNAL) == 6) read_all(fd, text, sizeof text);
        close(fd);
    }
    return NULL;
}

static int allocate_a_little(void)
{
    void *reap;
    for (int i = 0; i < 20; i++) {
        reapCreate(&reap, NULL);
        reapMalloc(&reap, 100000);
        reapDestroy(&reap);
    }
    return 0;
}

TEST(forks_while_it_is_asked)
{
    pthread_t asks;
    pid_t me = getpid();
    listen_here();
    pthread_create(&asks, NULL, keep_asking, &me);
    for (unsigned i = 0; i < shorter(300, 50); i++) ck_assert_int_eq(in_child(allocate_a_little), 0);
    over = true;
    pthread_join(asks, NULL);
    ck_assert(answers(getpid()));
}

/* --- clients that misbehave ------------------------------------------------------------------ */

TEST(silent_clients_hold_nobody_up)
{
    enum { SILENT = 20 };
    int silent[SILENT];
    char byte;
    listen_here();
    uint64_t start = now_ms();
    for (int i = 0; i < SILENT; i++) {
        silent[i] = connect_to(name_of, getpid());
        ck_assert_int_ge(silent[i], 0);
        if (i % 2 == 0) ck_assert_int_eq(send(silent[i], "tre", 3, 0), 3);
    }
    ck_assert(answers(getpid()));
    ck_assert_uint_lt(now_ms() - start, 15000); /* one after the other: 40 s */
    for (int i = 0; i < SILENT; i++) {
        struct pollfd ready = {.fd = silent[i], .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, 15000), 1); /* cut off */
        ck_assert_int_le(recv(silent[i], &byte, 1, 0), 0);
        close(silent[i]);
    }
}

static void long_answer(FILE *out, const char *args, void *arg)
{
    (void)args, (void)arg;
    for (int i = 0; i < 1000000; i++) fputs("a long answer\n", out);
}

TEST(a_client_that_does_not_read_is_cut_off)
{
    static char text[14 * 1000000 + 1];
    listen_here();
    ck_assert_int_eq(reapAnswer("long", long_answer, NULL), 0);
    int fd = connect_to(name_of, getpid());
    ck_assert_int_eq(send(fd, "long\n", 5, 0), 5);
    usleep(200000);
    ck_assert(answers(getpid())); /* beside it */
    struct pollfd gone = {.fd = fd, .events = POLLRDHUP};
    ck_assert_int_eq(poll(&gone, 1, 20000), 1);
    ssize_t n = read_all(fd, text, sizeof text);
    ck_assert_msg(n < 14000000, "all %zd bytes came", n);
    close(fd);
    fd = connect_to(name_of, getpid());
    ck_assert_int_eq(send(fd, "long\n", 5, 0), 5);
    ck_assert_int_eq(read_all(fd, text, sizeof text), 14000000);
    close(fd);
}

/* Uses three quarters of the stack that a thread of the program would have. */
static size_t default_stack(void)
{
    pthread_attr_t attributes;
    size_t size = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size;
}

static void go_deep(FILE *out, const char *args, void *arg)
{
    (void)args, (void)arg;
    size_t size = default_stack() / 4 * 3;
    volatile char *deep = __builtin_alloca(size);
    for (size_t i = size; i > 0; i -= i < 4096 ? i : 4096) deep[i - 1] = 1;
    fputs("deep", out);
}

TEST(a_function_has_the_stack_of_any_thread)
{
    listen_here();
    ck_assert_uint_ge(default_stack(), MIB);
    ck_assert_int_eq(reapAnswer("deep", go_deep, NULL), 0);
    ck_assert_str_eq(ask(name_of, getpid(), "deep"), "deep");
}

TEST(odd_questions)
{
    static char huge[1 << 20], text[4096];
    listen_here();
    memset(huge, 'x', sizeof huge);
    int fd = connect_to(name_of, getpid());
    send(fd, huge, sizeof huge, MSG_NOSIGNAL);
    read_all(fd, text, sizeof text);
    ck_assert_str_eq(text, "reap: this question is too long: 4095 bytes are the most\n");
    close(fd);

    fd = connect_to(name_of, getpid());
    memset(huge, 'x', 4095);
    huge[4095] = '\n';
    ck_assert_int_eq(send(fd, huge, 4096, 0), 4096); /* the longest question */
    ck_assert_int_gt(read_all(fd, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "no such question"));
    close(fd);

    for (int seed = 0; seed < 64; seed++) {
        for (int i = 0; i < 300; i++) huge[i] = (char)(seed * 131 + i * i * 7);
        huge[299] = '\n';
        fd = connect_to(name_of, getpid());
        send(fd, huge, 300, MSG_NOSIGNAL);
        read_all(fd, text, sizeof text);
        for (const char *c = text; *c; c++) ck_assert(*c == '\n' || (*c >= ' ' && *c <= '~'));
        close(fd);
    }

    fd = connect_to(name_of, getpid()); /* no end of line, but an end */
    ck_assert_int_eq(send(fd, "help", 4, 0), 4);
    shutdown(fd, SHUT_WR);
    ck_assert_int_gt(read_all(fd, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "\ntree: "));
    close(fd);

    fd = connect_to(name_of, getpid()); /* in pieces, and more behind it */
    for (const char *c = "help\nhelp\nand more"; *c; c++) {
        if (send(fd, c, 1, MSG_NOSIGNAL) != 1) break;
        usleep(2000);
    }
    ck_assert_int_gt(read_all(fd, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "\ntree: "));
    close(fd);
    ck_assert(answers(getpid()));
}

TEST(clients_that_leave)
{
    listen_here();
    ck_assert_int_eq(reapAnswer("long", long_answer, NULL), 0);
    ck_assert_int_eq(reapAnswer("slow", slow, NULL), 0);
    for (int i = 0; i < 30; i++) {
        static const char *const questions[] = {"", "lo", "long\n", "slow\n", "tree\n"};
        int fd = connect_to(name_of, getpid());
        ck_assert_int_ge(fd, 0);
        const char *question = questions[i % 5];
        if (*question) ck_assert_int_gt(send(fd, question, strlen(question), MSG_NOSIGNAL), 0);
        if (i % 3 == 0) usleep(10000);
        close(fd);
    }
    ck_assert(answers(getpid()));
}

static atomic_int right;

static void *ask_often(void *arg)
{
    pid_t process = *(pid_t *)arg;
    for (int i = 0; i < 100; i++) {
        char text[4096] = "";
        int fd = connect_to(name_of, process);
        if (fd >= 0 && send(fd, "help\n", 5, MSG_NOSIGNAL) == 5) read_all(fd, text, sizeof text);
        if (fd >= 0) close(fd);
        right += strstr(text, "\ntree: ") != NULL;
    }
    return NULL;
}

TEST(many_at_once)
{
    pid_t me = getpid();
    listen_here();
    in_threads(16, ask_often, &me);
    ck_assert_int_eq(right, 1600);
}

/* --- the program around it ------------------------------------------------------------------- */

/* Counts descriptors. */
static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(no_descriptor_is_left)
{
    bool had[1024];
    for (int fd = 0; fd < 1024; fd++) had[fd] = fcntl(fd, F_GETFD) >= 0;
    listen_here();
    usleep(50000);
    int before = descriptors();
    for (int i = 0; i < 100; i++) ck_assert(answers(getpid()));
    for (int i = 0; i < 500 && descriptors() > before; i++) usleep(20000);
    ck_assert_int_le(descriptors(), before);
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !had[fd]) ck_assert(fd >= 100 && flags & FD_CLOEXEC);
    }
}

/* A program closes all descriptors and opens others under their numbers: the library leaves those alone, and
 * listens again. In a child, which has no message for Check that would need a descriptor: gives the line that
 * fails. */
#define OR_LINE(condition)                                                                                   \
    if (!(condition)) return __LINE__ - lines_before
static int close_all_descriptors(void)
{
    enum { lines_before = __LINE__ };
    int pair[2], number = -1;
    char byte;
    OR_LINE(reapListen("@reap-check.%p") == 0 && answers(getpid()));
    for (int fd = 3; fd < 1024; fd++)
        if (close(fd) == 0) number = fd;
    OR_LINE(number >= 100);
    OR_LINE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    OR_LINE(dup2(pair[0], number) == number);
    OR_LINE(send(pair[1], "x", 1, 0) == 1);
    bool again = false;
    for (int i = 0; i < 100 && !again; i++, usleep(50000)) again = answers(getpid());
    OR_LINE(again);
    OR_LINE(recv(number, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x');
    return 0;
}

TEST(the_program_closes_all_descriptors)
{
    int line = in_child(close_all_descriptors);
    ck_assert_msg(line == 0, "in line %d of close_all_descriptors", line);
}

TEST(reaps_have_ages)
{
    void *before, *after;
    reapCreate(&before, NULL);
    listen_here();
    reapCreate(&after, NULL);
    ck_assert(age_of(&before) < 0);
    uint64_t start = now_ms();
    double age = age_of(&after);
    ck_assert(age >= 0 && age <= 1 + seconds_since(start));
    for (int i = 0; i < 200 && age < 2; i++, age = age_of(&after)) usleep(100000);
    ck_assert(age >= 2 && age <= 1 + seconds_since(start));
    ck_assert(age_of(&before) < 0);
    ck_assert_ptr_nonnull(strstr(ask(name_of, getpid(), "json"), "\"age\": null}"));
}

static sig_atomic_t signals;
static pthread_t signalled;

static void note_signal(int number)
{
    (void)number;
    signals++;
    signalled = pthread_self();
}

TEST(signals_go_to_the_programs_threads)
{
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    signal(SIGUSR1, note_signal);
    listen_here();
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1);
    usleep(100000);
    ck_assert_int_eq(signals, 0);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    ck_assert_int_eq(signals, 1);
    ck_assert(pthread_equal(signalled, pthread_self()));
}

/* exit() while a question is answered. */
static void *arg_that_goes;

static void use_arg(FILE *out, const char *args, void *arg)
{
    (void)args, (void)arg;
    for (int i = 0; i < 100; i++) {
        fprintf(out, "%p\n", arg_that_goes);
        usleep(1000);
        if (!arg_that_goes) abort();
    }
}

static int exit_while_asked(void)
{
    arg_that_goes = &arg_that_goes;
    pid_t me = getpid();
    pthread_t asks;
    if (reapListen("@reap-check.%p") != 0 || reapAnswer("use", use_arg, NULL) != 0) return 1;
    int fd = connect_to(name_of, getpid());
    if (send(fd, "use\n", 4, 0) != 4) return 2;
    pthread_create(&asks, NULL, keep_asking, &me);
    usleep(30000);
    return 0;
}

TEST(a_process_ends_while_it_is_asked)
{
    for (unsigned i = 0; i < shorter(30, 5); i++) ck_assert_int_eq(in_child(exit_while_asked), 0);
}

int main(void) { return run_tests((struct suite){0}); }
