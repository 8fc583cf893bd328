/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_name.h"

#include "base/report.h"

#include <string.h>
#include <unistd.h>

bool process_name(const char *given, char *name, size_t size)
{
    size_t n = 0;
    *name = '\0';
    for (const char *at = given; *at != '\0'; at++) {
        bool is_process = at[0] == '%' && at[1] == 'p';
        char plain[2] = {*at, '\0'};
        n += is_process ? report_format(name + n, size - n, "%u", (unsigned)getpid())
                        : report_format(name + n, size - n, "%s", plain);
        at += is_process;
    }
    return n + 1 < size;
}

bool process_name_has_number(const char *given) { return strstr(given, "%p") != NULL; }
