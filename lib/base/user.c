/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user.h"

#include "base/parse.h"
#include "base/small_file.h"

#include <string.h>
#include <unistd.h>

enum { OVERFLOW_UID = 65534 };

static uid_t overflow_uid(void)
{
    char text[16];
    const char *at = text;
    size_t number;
    size_t size = small_file_read("/proc/sys/kernel/overflowuid", text, sizeof text);
    return parse_number(&at, text + size, UINT32_MAX, &number) ? (uid_t)number : OVERFLOW_UID;
}

/* The map of users of a namespace that has all: from 0 on, to 0 on, 2^32 - 1 of them. */
static bool has_all_users(void)
{
    char text[64];
    small_file_read("/proc/self/uid_map", text, sizeof text);
    return strcmp(text, "         0          0 4294967295\n") == 0;
}

bool user_is_trusted(uid_t user)
{
    if (user != 0 && user != geteuid()) return false;
    return user != overflow_uid() || has_all_users();
}
