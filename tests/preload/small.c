/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-small.sh: prints how many KiB of memory this process has for itself (Anonymous of
 * smaps_rollup), once it has allocated a little. It uses no stdio, which would allocate a buffer.
 */
#include "support/expect.h"

#include <fcntl.h>

int main(void)
{
    static char text[4096];
    for (size_t size = 20; size <= 1000; size *= 7) {
        char *object = malloc(OPAQUE(size));
        EXPECT(object != NULL);
        memset(object, 1, size);
        free(object);
    }
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    if (file < 0) return 77;
    for (size_t n = 0; n < sizeof text - 1;) {
        ssize_t more = read(file, text + n, sizeof text - 1 - n);
        if (more <= 0) break;
        n += (size_t)more;
    }
    const char *figure = strstr(text, "\nAnonymous:");
    if (figure == NULL) return 77;
    figure += strcspn(figure, "0123456789");
    size_t size = strcspn(figure, " ");
    EXPECT(write(1, figure, size) == (ssize_t)size && write(1, "\n", 1) == 1);
    return expect_status();
}
