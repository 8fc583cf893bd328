/* SPDX-License-Identifier: Apache-2.0 */
/* input_options.c: REAP_OPTIONS. The first byte chooses: a list of options, or a topology. What was read is
 * shown again, and what is shown must be read without complaint. */

#include "base/options.h"
#include "inputs/inputs.h"

const char *const input_name = "options";

static unsigned counted;
static void count(unsigned cpu, unsigned core, unsigned cache)
{
    if (cpu >= OPTION_CPUS || core >= OPTION_CPUS || cache >= OPTION_CACHES) abort();
    counted++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    char *text = malloc(size);
    if (!text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 4 == 0) {
        unsigned before = counted;
        bool is_one = options_topology(text, strlen(text), NULL);
        if (options_topology(text, strlen(text), count) != is_one) abort();
        if (is_one && counted == before) abort();
    } else {
        struct options read = options;
        char line[256];
        options_parse(text, &read);
        struct options kept = options;
        options = read; /* what shows them */
        for (unsigned i = 0; options_show(i, line, sizeof line); i++)
            if (memchr(line, '\0', sizeof line) == NULL || strchr(line, '=') == NULL) abort();
        for (unsigned i = 0; options_show(i, line, 5); i++) /* no room */
            if (memchr(line, '\0', 5) == NULL) abort();
        options = kept;
    }
    free(text);
    return 0;
}
