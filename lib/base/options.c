/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "base/lock.h"
#include "base/parse.h"
#include "base/report.h"

#include <string.h>
#include <sys/auxv.h>

#define AT(field) offsetof(struct options, field)

bool options_topology(const char *text, size_t size,
                      void (*each)(unsigned cpu, unsigned core, unsigned cache))
{
    const char *end = text + size;
    size_t core, cache;
    unsigned cpu = 0;
    do {
        if (cpu == OPTION_CPUS || !parse_number(&text, end, OPTION_CPUS, &core)) return false;
        if (!parse_character(&text, end, '.') || !parse_number(&text, end, OPTION_CACHES, &cache))
            return false;
        if (each != NULL) each(cpu, (unsigned)core, (unsigned)cache);
        cpu++;
    } while (parse_character(&text, end, ':'));
    return text == end;
}

/* Each option: its name and its field of struct options; its words, whose numbers are the field's values, and
 * the first is the default; or what help calls its text; or its bounds and the default; its meaning.
 * The N of a word is in the field behind. */
static const struct option {
    const char *name;
    size_t at;
    const char *words, *text;
    unsigned min, max, preset;
    const char *meaning;
} table[] = {
    {"stats", AT(stats), NULL, NULL, 0, 1, 0, "1: a report at exit on standard error"},
    {"heaps", AT(heaps), "cid|cpu|core|thread|dynamic:N|roundrobin|single", NULL, 0, 0, 0,
     "which heap a thread uses"},
    {"path", AT(path), "auto|locked", NULL, 0, 0, 0, "locked: heaps have locks, no restartable sequences"},
    {"lock", AT(lock), "both|spin|block", NULL, 0, 0, 0, "how a thread waits for a lock"},
    {"topology", AT(topology), NULL, "TEXT", 0, 0, 0, "core and cache of each CPU"},
    {"empty_fraction", AT(empty_fraction), NULL, NULL, 1, 4, 2, "f in eighths (the papers' f = 1/4)"},
    {"slack", AT(slack), NULL, NULL, 0, 1024, 4, "the papers' K, in superblocks"},
    {"purge_ms", AT(purge_ms), NULL, NULL, 0, 3600000, 500,
     "milliseconds before unused memory goes back to the OS"},
    {"purge_thread", AT(purge_thread), "auto|0|1", NULL, 0, 0, 0,
     "1: a thread of the library gives unused memory back; auto: if the program asks for it"},
    {"thp", AT(thp), "grown|system|never|always", NULL, 0, 0, 0, "huge pages behind arenas and mappings"},
    {"names", AT(names), NULL, NULL, 0, 1, 1,
     "0: mappings get no names, and the library does not call prctl"},
    {"memory_limit", AT(memory_limit), "purge|refuse|ignore", NULL, 0, 0, 0,
     "what happens near the limit of the control group"},
    {"ask", AT(ask), NULL, "ADDRESS", 0, 0, 0,
     "where libreap-ask listens: a path, or @NAME for an abstract socket (%p: process)"},
    {"leaks", AT(leaks), NULL, NULL, 0, 1, 0, "1: a line at exit for each reap that was never destroyed"},
    {"bypass", AT(bypass), NULL, NULL, 0, 1, 0, "1: each object of a reap is a block of malloc"},
    {"harden", AT(harden), NULL, NULL, 0, 2, 0,
     "1: checks the memory around objects, and freed memory; 2: guard pages too"},
#ifdef REAP_DEBUG
    {.name = "walk_steps", /* other builds do not have it, so no man page has it */
     .at = AT(walk_steps),
     .max = 1000000,
     .preset = 16,
     .meaning = "how much assertions walk through, on average"},
#endif
};

static_assert(AT(dynamic) == AT(heaps) + sizeof(unsigned), "N of dynamic:N is in the field behind");

enum { OPTIONS = sizeof table / sizeof table[0] };

struct options options;

static unsigned *number_at(struct options *to, size_t at) { return (unsigned *)((char *)to + at); }

static const char **text_at(struct options *to, size_t at) { return (const char **)((char *)to + at); }

static void preset_all(struct options *to)
{
    memset(to, 0, sizeof *to);
    for (unsigned i = 0; i < OPTIONS; i++) {
        ASSERT(table[i].at < sizeof *to && (table[i].words == NULL || table[i].text == NULL));
        ASSERT(table[i].max == 0 || (table[i].min <= table[i].preset && table[i].preset <= table[i].max));
        if (table[i].text == NULL) *number_at(to, table[i].at) = table[i].preset;
    }
}

/* Reads a text that is a number from min to max, and nothing else. */
static bool number_of(const char *text, size_t size, unsigned min, unsigned max, unsigned *value)
{
    const char *end = text + size;
    size_t number;
    if (!parse_number(&text, end, (size_t)max + 1, &number) || text != end || number < min) return false;
    *value = (unsigned)number;
    return true;
}

static const struct option *find_option(const char *text, size_t size)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (parse_is(text, size, table[i].name)) return &table[i];
    return NULL;
}

/* Reads a word, and its N. Sets *what where there is a more exact complaint. */
static bool parse_word(const struct option *option, const char *text, size_t size, struct options *to,
                       const char **what)
{
    const char *colon = memchr(text, ':', size);
    size_t n = colon != NULL ? (size_t)(colon - text) : size;
    unsigned value = 0;
    const char *word = option->words;
    for (; strcspn(word, "|:") != n || memcmp(word, text, n) != 0; value++) {
        word += strcspn(word, "|");
        if (*word++ == '\0') return false;
    }
    if (word[n] == ':') {
        *what = "N of dynamic:N is 1 to 1000000:";
        if (colon == NULL ||
            !number_of(colon + 1, size - n - 1, 1, 1000000, number_at(to, option->at + sizeof(unsigned))))
            return false;
    } else if (colon != NULL) {
        return false;
    }
    *number_at(to, option->at) = value;
    return true;
}

/* Writes to `to` only if the whole value is good. */
static bool parse_value(const struct option *option, const char *text, size_t size, struct options *to,
                        const char **what)
{
    if (option->words != NULL) return parse_word(option, text, size, to, what);
    if (option->text != NULL) {
        if (size == 0 || (option->at == AT(topology) && !options_topology(text, size, NULL))) return false;
        *text_at(to, option->at) = text;
        return true;
    }
    return number_of(text, size, option->min, option->max, number_at(to, option->at));
}

/* Copies the word of a value, without ":N". Returns true if there is an N. */
static bool show_word(const char *words, unsigned value, char word[16])
{
    for (; value > 0; value--) words += strcspn(words, "|") + 1;
    size_t n = strcspn(words, "|:");
    ASSERT(n < 16);
    memcpy(word, words, n);
    word[n] = '\0';
    return words[n] == ':';
}

/* Writes the values that the option takes (words, a text or a number's bounds), and the default. */
static void show_values(const struct option *option, char *text, size_t size)
{
    char first[16];
    if (option->words != NULL) {
        show_word(option->words, option->preset, first);
        report_format(text, size, "%s (%s)", option->words, first);
    } else if (option->text != NULL) {
        report_format(text, size, "%s (%s)", option->text,
                      option->at == AT(topology) ? "as the kernel says" : "none");
    } else {
        const char *format = option->max > 1 ? "%u to %u (%u)" : "%u|%u (%u)";
        report_format(text, size, format, option->min, option->max, option->preset);
    }
}

static bool complain(const char *what, const char *text, size_t size, const struct option *option)
{
    char item[64], values[128] = "";
    if (option != NULL) show_values(option, values, sizeof values);
    size = size < sizeof item - 1 ? size : sizeof item - 1;
    memcpy(item, text, size);
    item[size] = '\0';
    report_line("REAP_OPTIONS: %s '%s' ignored%s%s", what, item, option != NULL ? "; it takes " : "", values);
    return false;
}

/* Writes a line for each option. Counts as a complaint, since it sets nothing. */
static bool help(void)
{
    char values[128];
    report_line("REAP_OPTIONS=name=value,... of (default in parentheses; libreap-malloc(7) has more):");
    for (const struct option *option = table; option < table + OPTIONS; option++) {
        show_values(option, values, sizeof values);
        report_line("  %s=%s: %s", option->name, values, option->meaning);
    }
    return false;
}

/* Parses one "name=value". A name alone means 1. */
static bool parse_item(const char *text, size_t size, struct options *to)
{
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
    const char *value_text = equals != NULL ? equals + 1 : "1";
    size_t value_size = equals != NULL ? size - name_size - 1 : 1;

    if (parse_is(text, name_size, "help")) return help();
    const struct option *option = find_option(text, name_size);
    if (option == NULL) return complain("unknown option", text, size, NULL);
    const char *what = "bad value";
    return parse_value(option, value_text, value_size, to, &what) || complain(what, text, size, option);
}

unsigned options_parse(const char *list, struct options *to)
{
    unsigned complaints = 0;
    while (*list != '\0') {
        size_t size = strcspn(list, ",");
        if (size != 0) complaints += !parse_item(list, size, to);
        list += size + (list[size] == ',');
    }
    return complaints;
}

/* Finds the environment before libc has run its start-up code: ld.so calls a preloaded malloc that early. The
 * kernel put it above the arguments, which start where the stack did. */
static char **early_environ(void)
{
    extern void *__libc_stack_end __attribute__((weak));
    if (&__libc_stack_end == NULL) return NULL;
    const long *argc = __libc_stack_end;
    return (char **)(argc + 1) + *argc + 1;
}

void options_read(void)
{
    extern char **environ;
    static const char name[] = "REAP_OPTIONS";

    preset_all(&options);
    if (getauxval(AT_SECURE) != 0) return;
    const char *list = NULL;
    char **e = environ != NULL ? environ : early_environ();
    for (; e != NULL && *e != NULL && list == NULL; e++)
        if (strncmp(*e, name, sizeof name - 1) == 0 && (*e)[sizeof name - 1] == '=') list = *e + sizeof name;
    if (list != NULL) options_parse(list, &options);
#ifdef REAP_DEBUG
    assert_walk_steps = options.walk_steps;
#endif
}

bool options_show(unsigned i, char *buffer, size_t size)
{
    if (i >= OPTIONS) return false;
    const struct option *option = &table[i];
    char word[16];
    if (option->text != NULL) { /* the program may have overwritten the environment's text */
        const char *absent = option->at == AT(topology) ? "read" : "none";
        report_format(buffer, size, "%s=%s", option->name,
                      *text_at(&options, option->at) != NULL ? "given" : absent);
        return true;
    }
    unsigned value = *number_at(&options, option->at);
    if (option->words == NULL)
        report_format(buffer, size, "%s=%u", option->name, value);
    else if (show_word(option->words, value, word))
        report_format(buffer, size, "%s=%s:%u", option->name, word, options.dynamic);
    else
        report_format(buffer, size, "%s=%s", option->name, word);
    return true;
}
