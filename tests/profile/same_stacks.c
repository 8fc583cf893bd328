/* SPDX-License-Identifier: Apache-2.0 */
/* A library to preload: at each call of malloc, calloc and realloc the stack by the profile's rows has to be
 * that by libgcc's unwinder, frame by frame; else the program is aborted. At exit a line is appended to the
 * file SAME_STACKS: NAME ALL BY-ROWS DEEPEST. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/profile/profile_table.h"
#include "tools/profile/profile_unwind.h"

#define SEEN __attribute__((visibility("default")))
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

static __thread bool is_busy __attribute__((tls_model("initial-exec")));
static unsigned long all, by_rows, deepest;

static void say(const char *what, void *const *frames, unsigned depth)
{
    dprintf(2, "%s:", what);
    for (unsigned i = 0; i < depth; i++) dprintf(2, " %p", frames[i]);
    dprintf(2, "\n");
}

static __attribute__((noinline)) void compare(void)
{
    void *rows[PROFILE_DEPTH], *true_ones[PROFILE_DEPTH];
    int error = errno;
    if (is_busy) return;
    is_busy = true;
    unsigned depth = profile_unwind_by_rows(rows, PROFILE_DEPTH, profile_loads());
    unsigned true_depth = profile_unwind_by_libgcc(true_ones, PROFILE_DEPTH);
    if (depth != 0 && (depth != true_depth || memcmp(rows, true_ones, depth * sizeof *rows) != 0)) {
        say("by rows", rows, depth);
        say("by libgcc", true_ones, true_depth);
        abort();
    }
    __atomic_add_fetch(&all, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&by_rows, depth != 0, __ATOMIC_RELAXED);
    if (true_depth > deepest) deepest = true_depth;
    is_busy = false;
    errno = error;
}

SEEN void *malloc(size_t size)
{
    compare();
    return __libc_malloc(size);
}
SEEN void *calloc(size_t n, size_t size)
{
    compare();
    return __libc_calloc(n, size);
}
SEEN void *realloc(void *block, size_t size)
{
    compare();
    return __libc_realloc(block, size);
}

/* Also for programs that want to know which way a stack is found. */
SEEN unsigned long stacks_by_rows(void);
unsigned long stacks_by_rows(void) { return __atomic_load_n(&by_rows, __ATOMIC_RELAXED); }

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("SAME_STACKS");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0) return;
    dprintf(fd, "%s %lu %lu %lu\n", program_invocation_short_name, all, by_rows, deepest);
    close(fd);
}
