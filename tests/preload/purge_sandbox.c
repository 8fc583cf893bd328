/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-purge.sh, with purge_thread=1. A child of fork that needs little has no thread of the
 * library's, so that it may enter a sandbox, as sshd's does. One that needs much has that thread, enters a
 * sandbox, which ends it at calls that read what machine this is, and allocates on two CPUs. Ends with 77
 * where there is one CPU, or no seccomp. */
#include "support/expect.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { MUCH = 6 << 20 };

static void allocate(void)
{
    for (size_t size = 16; size < 200000; size += size / 2) free(OPAQUE(malloc(size)));
}

/* The process may run on the n-th of its CPUs only. False: there are not so many. */
static int run_on(const cpu_set_t *all, int n)
{
    cpu_set_t one;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, all) || n-- != 0) continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        return sched_setaffinity(0, sizeof one, &one) == 0;
    }
    return 0;
}

static int enter_sandbox(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int has_threads(unsigned n)
{
    struct stat tasks = {0};
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == n + 2; /* . and .. */
}

static int child(const cpu_set_t *all)
{
    allocate();
    EXPECT(has_threads(1));
    free(OPAQUE(malloc(MUCH)));
    allocate();
    EXPECT(has_threads(2));
    if (!enter_sandbox()) return 77;
    if (!run_on(all, 1)) return 77;
    allocate();
    return expect_status();
}

int main(void)
{
    cpu_set_t all;
    int status = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || !run_on(&all, 0)) return 77;
    allocate();
    EXPECT(has_threads(2));
    pid_t pid = fork();
    if (pid == 0) _exit(child(&all));
    EXPECT(waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status)) printf("the child in its sandbox ends by signal %d\n", WTERMSIG(status));
    EXPECT(WIFEXITED(status));
    return expect_status() ? expect_status() : WEXITSTATUS(status);
}
