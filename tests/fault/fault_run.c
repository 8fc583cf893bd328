/* SPDX-License-Identifier: Apache-2.0 */
/* fault_run.c: runs a program, as it is, again and again: each time the n-th of some system calls fails in
 * it, for every n until none does.
 *
 *     fault_run CALLS WHICH [STEP] PROGRAM ARGUMENT...
 *     CALLS    of mmap, munmap, mremap, madvise, membarrier, openat, sched_getaffinity, by commas; or all
 *     WHICH    one: the n-th call alone. on: that one and all later ones. crash: as on, but see below
 *     STEP     every n that is a multiple of it (1)
 *
 * With crash the program may say no (exit with any status, or abort): it just must not crash.
 *
 * Of mmap those that are ours alone, by their flags; of openat files of the kernel (/sys, /proc); of
 * membarrier to register, since a fence that is refused ends the program by intent. Prints how many failures
 * there were.
 *
 * By a seccomp filter that asks this process (SECCOMP_RET_USER_NOTIF, Linux 5.5): no root is needed. Exit
 * status 77 where a sandbox of one's own is not to be had. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, SECONDS = 120 };

static const struct call {
    const char *name;
    int number, error;
} calls[] = {
    {"mmap", SYS_mmap, ENOMEM},
    {"munmap", SYS_munmap, ENOMEM},
    {"mremap", SYS_mremap, ENOMEM},
    {"madvise", SYS_madvise, EINVAL},
    {"membarrier", SYS_membarrier, EPERM},
    {"openat", SYS_openat, EMFILE},
    {"sched_getaffinity", SYS_sched_getaffinity, EPERM},
};
enum { CALLS = sizeof calls / sizeof *calls };
static bool chosen[CALLS];

static void die(const char *what)
{
    perror(what);
    exit(errno == EPERM || errno == EINVAL || errno == ENOSYS || errno == EBUSY ? SKIPPED : 99);
}

static void choose(const char *list)
{
    for (unsigned i = 0; i < CALLS; i++) {
        const char *at = strstr(list, calls[i].name);
        size_t size = strlen(calls[i].name);
        bool whole = at != NULL && (at == list || at[-1] == ',') && (at[size] == ',' || at[size] == '\0');
        chosen[i] = whole || strcmp(list, "all") == 0;
    }
}

/* Which of the calls are asked about; the listener's descriptor. */
static int install_filter(void)
{
    struct sock_filter code[2 * CALLS + 3];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < CALLS; i++) {
        if (!chosen[i]) continue;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("PR_SET_NO_NEW_PRIVS");
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (fd < 0) die("seccomp");
    return (int)fd;
}

static void send_fd(int socket, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1) _exit(99);
}

static int receive_fd(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = -1;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL) return -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* What it preloads is for it, not for us. */
static void become(int socket, char **argv)
{
    const char *preload = getenv("FAULT_PRELOAD");
    if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
    send_fd(socket, install_filter());
    execvp(argv[0], argv);
    _exit(98);
}

static struct {
    unsigned long after, times;    /* the plan */
    unsigned long asked, injected; /* in this run */
} faults;

static bool is_kernels_file(pid_t pid, uint64_t path)
{
    char text[8] = "";
    struct iovec here = {text, sizeof text - 1}, there = {(void *)(uintptr_t)path, sizeof text - 1};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0) return false;
    return strncmp(text, "/sys/", 5) == 0 || strncmp(text, "/proc/", 6) == 0;
}

static bool is_ours(const struct seccomp_notif *asked)
{
    const __u64 *args = asked->data.args;
    switch (asked->data.nr) {
    case SYS_mmap:
        return args[2] == (PROT_READ | PROT_WRITE) &&
               args[3] == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    case SYS_membarrier: return args[0] == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ;
    case SYS_openat: return is_kernels_file((pid_t)asked->pid, args[1]);
    default: return true;
    }
}

static int error_for(const struct seccomp_notif *asked)
{
    if (!is_ours(asked)) return 0;
    unsigned long n = faults.asked++;
    if (n < faults.after || n - faults.after >= faults.times) return 0;
    faults.injected++;
    for (unsigned i = 0; i < CALLS; i++)
        if (calls[i].number == asked->data.nr) return calls[i].error;
    return 0;
}

static void answer_one(int listener)
{
    struct seccomp_notif asked = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return; /* it has been killed meanwhile */
    struct seccomp_notif_resp answer = {.id = asked.id, .error = -error_for(&asked)};
    if (answer.error == 0) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* Until it and all its children have ended. */
static bool answer_all(int listener)
{
    time_t end = time(NULL) + SECONDS;
    for (;;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        if (poll(&ready, 1, 1000) < 0 && errno != EINTR) die("poll");
        if (ready.revents & POLLIN)
            answer_one(listener);
        else if (ready.revents != 0)
            return true;
        if (time(NULL) > end) return false;
    }
}

static int run_once(char **argv)
{
    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) die("socketpair");
    pid_t pid = fork();
    if (pid == 0) become(ends[1], argv);
    close(ends[1]);
    int listener = receive_fd(ends[0]);
    close(ends[0]);
    if (listener >= 0 && !answer_all(listener)) {
        fprintf(stderr, "it stands still\n");
        kill(pid, SIGKILL);
    }
    if (waitpid(pid, &status, 0) != pid) die("waitpid");
    if (listener < 0) exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    close(listener);
    return status;
}

static bool is_right(int status, bool may_fail)
{
    if (!may_fail) return status == 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) != 98 : WTERMSIG(status) == SIGABRT;
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "fault_run: CALLS WHICH [STEP] PROGRAM ...\n"), 99;
    choose(argv[1]);
    bool may_fail = strcmp(argv[2], "crash") == 0;
    unsigned long step = strtoul(argv[3], NULL, 10), injected = 0, asked = 0, runs = 0;
    char **program = argv + (step != 0 ? 4 : 3);
    faults.times = strcmp(argv[2], "one") == 0 ? 1 : -1ul;
    do {
        faults.asked = faults.injected = 0;
        int status = run_once(program);
        if (!is_right(status, may_fail))
            return fprintf(stderr, "%s: %s fails after %lu: status %#x\n", program[0], argv[1], faults.after,
                           (unsigned)status),
                   1;
        runs++;
        injected += faults.injected;
        asked += faults.asked;
        faults.after += step != 0 ? step : 1;
    } while (faults.injected != 0);
    fprintf(stderr, "%s: %s, %s: %lu failures in %lu calls, %lu runs\n", program[0], argv[1], argv[2],
            injected, asked, runs);
    return injected != 0 ? 0 : 99;
}
