/* SPDX-License-Identifier: Apache-2.0 */
/* launch RESULT PRELOAD [NAME=VALUE]... COMMAND...: runs a command by its path, its output to the file
 * RESULT, with PRELOAD ("" for none) preloaded and the names in its environment, and prints what it and its
 * children used: peak resident memory in KiB, user and system time in microseconds, minor page faults.
 *
 * The kernel counts what a process held before its exec too: a fork of a driver of 20 MB would never
 * show less. This program is small, starts the command and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long microseconds(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (out < 0 || dup2(out, 1) < 0) _exit(126);
        if (*argv[2]) setenv("LD_PRELOAD", argv[2], 1);
        for (argv += 3; *argv && strchr(*argv, '=') != NULL; argv++) putenv(*argv);
        if (*argv == NULL) _exit(126);
        execv(*argv, argv);
        perror(*argv);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) return 1;
    printf("%ld %lld %lld %ld\n", usage.ru_maxrss, microseconds(usage.ru_utime), microseconds(usage.ru_stime),
           usage.ru_minflt);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
