/* SPDX-License-Identifier: Apache-2.0 */
#include "user.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OVERFLOW_UID = 65534 };

/* Reads the start of a file of the kernel's; "" where there is no file. */
static void read_start(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
}

static uid_t overflow_uid(void)
{
    char text[16];
    read_start("/proc/sys/kernel/overflowuid", text, sizeof text);
    return *text ? (uid_t)strtoul(text, NULL, 10) : OVERFLOW_UID;
}

/* The map of users of a namespace that has all: from 0 on, to 0 on, 2^32 - 1 of them. */
static bool has_all_users(void)
{
    char text[64];
    read_start("/proc/self/uid_map", text, sizeof text);
    return strcmp(text, "         0          0 4294967295\n") == 0;
}

bool user_is_trusted(uid_t user)
{
    if (user != 0 && user != geteuid()) return false;
    return user != overflow_uid() || has_all_users();
}
