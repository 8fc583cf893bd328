/* launch RESULT PRELOAD COMMAND...: runs a command, its output to the file RESULT, with PRELOAD ("" for
 * none) preloaded, and prints its peak resident memory in KiB.
 *
 * The kernel counts what a process held before its exec too: a fork of a driver of 20 MB would never
 * show less. This program is small, starts the command and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (out < 0 || dup2(out, 1) < 0) _exit(126);
        if (*argv[2]) setenv("LD_PRELOAD", argv[2], 1);
        execv(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) return 1;
    printf("%ld\n", usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
