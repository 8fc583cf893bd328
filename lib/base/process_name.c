/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_name.h"

#include "base/report.h"

#include <string.h>
#include <unistd.h>

bool process_name(const char *given, char *name, size_t size)
{
    char number[24];
    const char *at = given;
    size_t n = 0, length = report_format(number, sizeof number, "%u", (unsigned)getpid());
    while (*at != '\0') {
        bool is_process = at[0] == '%' && at[1] == 'p';
        size_t more = is_process ? length : 1;
        if (more >= size - n) break;
        memcpy(name + n, is_process ? number : at, more);
        n += more;
        at += is_process ? 2 : 1;
    }
    name[n] = '\0';
    return *at == '\0';
}

bool process_name_has_number(const char *given) { return strstr(given, "%p") != NULL; }
