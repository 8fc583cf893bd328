/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "base/lock.h"
#include "base/parse.h"
#include "base/report.h"

#include <string.h>
#include <sys/auxv.h>

#define AT(field) offsetof(struct options, field)

/* A value that is a word; or, where `max` is not 0, "word:N". */
struct word {
    const char *name;
    unsigned value;
    size_t at; /* the field of struct options for N */
    unsigned max;
};

static const struct word heaps_words[] = {{"cid", HEAPS_CID, 0, 0},
                                          {"cpu", HEAPS_CPU, 0, 0},
                                          {"core", HEAPS_CORE, 0, 0},
                                          {"thread", HEAPS_THREAD, 0, 0},
                                          {"dynamic", HEAPS_DYNAMIC, AT(dynamic), 1000000},
                                          {"roundrobin", HEAPS_ROUNDROBIN, 0, 0},
                                          {"single", HEAPS_SINGLE, 0, 0},
                                          {NULL, 0, 0, 0}};
static const struct word path_words[] = {
    {"auto", PATH_AUTO, 0, 0}, {"locked", PATH_LOCKED, 0, 0}, {NULL, 0, 0, 0}};
static const struct word lock_words[] = {
    {"both", LOCK_BOTH, 0, 0}, {"spin", LOCK_SPIN, 0, 0}, {"block", LOCK_BLOCK, 0, 0}, {NULL, 0, 0, 0}};

static const struct word thp_words[] = {{"grown", THP_GROWN, 0, 0},
                                        {"system", THP_SYSTEM, 0, 0},
                                        {"never", THP_NEVER, 0, 0},
                                        {"always", THP_ALWAYS, 0, 0},
                                        {NULL, 0, 0, 0}};
static const struct word purge_thread_words[] = {{"auto", PURGE_THREAD_AUTO, 0, 0},
                                                 {"0", PURGE_THREAD_NEVER, 0, 0},
                                                 {"1", PURGE_THREAD_ALWAYS, 0, 0},
                                                 {NULL, 0, 0, 0}};
static const struct word memory_limit_words[] = {{"purge", LIMIT_PURGE, 0, 0},
                                                 {"refuse", LIMIT_REFUSE, 0, 0},
                                                 {"ignore", LIMIT_IGNORE, 0, 0},
                                                 {NULL, 0, 0, 0}};

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

static bool is_topology(const char *text, size_t size) { return options_topology(text, size, NULL); }

static bool is_path(const char *text, size_t size)
{
    (void)text;
    return size > 0;
}

static bool is_address(const char *text, size_t size) { return is_path(text, size); }

/* Each option: its name and its field of struct options; its words, or the check of its text, or its bounds;
 * the default; its meaning; and the field for a file name that may be given instead of a number (0: none
 * may). */
static const struct option {
    const char *name;
    size_t at;
    const struct word *words;
    bool (*is_text)(const char *text, size_t size);
    unsigned min, max, preset;
    const char *meaning;
    size_t file_at;
} table[] = {
    {"stats", AT(stats), NULL, NULL, 0, 1, 0,
     "report at exit on standard error, or at the end of FILE (%p: process)", AT(stats_file)},
    {"heaps", AT(heaps), heaps_words, NULL, 0, 0, HEAPS_CID, "which heap a thread uses", 0},
    {"path", AT(path), path_words, NULL, 0, 0, PATH_AUTO,
     "locked: heaps have locks, no restartable sequences", 0},
    {"lock", AT(lock), lock_words, NULL, 0, 0, LOCK_BOTH, "how a thread waits for a lock", 0},
    {"topology", AT(topology), NULL, is_topology, 0, 0, 0, "core and cache of each CPU", 0},
    {"empty_fraction", AT(empty_fraction), NULL, NULL, 1, 4, 2, "f in eighths (the papers' f = 1/4)", 0},
    {"slack", AT(slack), NULL, NULL, 0, 1024, 4, "the papers' K, in superblocks", 0},
    {"purge_ms", AT(purge_ms), NULL, NULL, 0, 3600000, 500, "milliseconds that unused memory is kept", 0},
    {"purge_thread", AT(purge_thread), purge_thread_words, NULL, 0, 0, PURGE_THREAD_AUTO,
     "1: a thread of the library gives unused memory back; auto: where the program asks for it", 0},
    {"thp", AT(thp), thp_words, NULL, 0, 0, THP_GROWN, "huge pages behind arenas and mappings", 0},
    {"memory_limit", AT(memory_limit), memory_limit_words, NULL, 0, 0, LIMIT_PURGE,
     "what the control group's limit means", 0},
    {"trace", AT(trace), NULL, is_path, 0, 0, 0, "a line for each reap that begins, is cleared or ends", 0},
    {"ask", AT(ask), NULL, is_address, 0, 0, 0,
     "where libreap-ask listens: a path, or @NAME for an abstract socket (%p: process)", 0},
    {"leaks", AT(leaks), NULL, NULL, 0, 1, 0, "1: a line at exit for each reap that was never destroyed", 0},
    {"bypass", AT(bypass), NULL, NULL, 0, 1, 0, "1: each object of a reap is a block of malloc", 0},
    {"redzone", AT(redzone), NULL, NULL, 0, 4096, 0, "bytes around each object of a reap", 0},
    {"harden", AT(harden), NULL, NULL, 0, 1, 0,
     "1: red zones, and freed objects are kept and looked through", 0},
#ifdef REAP_DEBUG
    {.name = "walk_steps", /* other builds do not have it, so no man page has it */
     .at = AT(walk_steps),
     .max = 1000000,
     .preset = 16,
     .meaning = "how much assertions walk through, on average"},
#endif
};

enum { OPTIONS = sizeof table / sizeof table[0] };

struct options options;

static unsigned *number_at(struct options *to, size_t at) { return (unsigned *)((char *)to + at); }

static const char **text_at(struct options *to, size_t at) { return (const char **)((char *)to + at); }

static void preset_all(struct options *to)
{
    memset(to, 0, sizeof *to);
    for (unsigned i = 0; i < OPTIONS; i++) {
        ASSERT(table[i].at < sizeof *to && (table[i].words == NULL || table[i].is_text == NULL));
        ASSERT(table[i].max == 0 || (table[i].min <= table[i].preset && table[i].preset <= table[i].max));
        if (table[i].is_text == NULL) *number_at(to, table[i].at) = table[i].preset;
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

static const struct word *find_word(const struct word *words, const char *text, size_t size)
{
    for (; words->name != NULL; words++)
        if (parse_is(text, size, words->name)) return words;
    return NULL;
}

static const struct option *find(const char *text, size_t size)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (parse_is(text, size, table[i].name)) return &table[i];
    return NULL;
}

static bool complain(const char *what, const char *text, size_t size)
{
    char item[64];
    size = size < sizeof item - 1 ? size : sizeof item - 1;
    memcpy(item, text, size);
    item[size] = '\0';
    report_line("REAP_OPTIONS: %s '%s' ignored", what, item);
    return false;
}

/* Writes to `to` only if the whole value is good. Otherwise sets *what where there is a more exact
 * complaint. */
static bool parse_words(const struct option *option, const char *text, size_t size, struct options *to,
                        const char **what)
{
    const char *colon = memchr(text, ':', size);
    size_t name_size = colon != NULL ? (size_t)(colon - text) : size;
    const struct word *word = find_word(option->words, text, name_size);
    if (word == NULL || (word->max == 0 && colon != NULL)) return false;
    if (word->max != 0) {
        unsigned n = 0;
        *what = "N of dynamic:N is 1 to 1000000:";
        if (colon == NULL || !number_of(colon + 1, size - name_size - 1, 1, word->max, &n)) return false;
        *number_at(to, word->at) = n;
    }
    *number_at(to, option->at) = word->value;
    return true;
}

static bool parse_value(const struct option *option, const char *text, size_t size, struct options *to,
                        const char **what)
{
    if (option->words != NULL) return parse_words(option, text, size, to, what);
    if (option->is_text != NULL) {
        if (!option->is_text(text, size)) return false;
        *text_at(to, option->at) = text;
        return true;
    }
    if (option->file_at != 0 && (memchr(text, '/', size) != NULL || memchr(text, '.', size) != NULL)) {
        *number_at(to, option->at) = 1;
        *text_at(to, option->file_at) = text;
        return true;
    }
    if (!number_of(text, size, option->min, option->max, number_at(to, option->at))) return false;
    if (option->file_at != 0) *text_at(to, option->file_at) = NULL;
    return true;
}

static const char *name_of_text(const struct option *option)
{
    return option->is_text == is_path ? "FILE" : option->is_text == is_address ? "ADDRESS" : "TEXT";
}

/* Writes the values that the option takes (words, a text or a number's bounds), and the default. */
static size_t show_values(const struct option *option, char *text, size_t size)
{
    size_t n = 0;
    const char *preset = option->is_text == is_topology ? "as the kernel says" : "none";
    for (const struct word *w = option->words; w != NULL && w->name != NULL; w++) {
        n += report_format(text + n, size - n, "%s%s%s", n != 0 ? "|" : "", w->name, w->max != 0 ? ":N" : "");
        if (w->value == option->preset) preset = w->name;
    }
    if (option->is_text != NULL)
        n += report_format(text, size, "%s", name_of_text(option));
    else if (option->words == NULL)
        n += report_format(text, size, option->max > 1 ? "%u to %u" : "%u|%u", option->min, option->max);
    if (option->file_at != 0) n += report_format(text + n, size - n, "|FILE");
    if (option->is_text != NULL || option->words != NULL)
        return n + report_format(text + n, size - n, " (%s)", preset);
    return n + report_format(text + n, size - n, " (%u)", option->preset);
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
    const struct option *option = find(text, name_size);
    if (option == NULL) return complain("unknown option", text, size);
    const char *what = "bad value";
    return parse_value(option, value_text, value_size, to, &what) || complain(what, text, size);
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
    const char *name = table[i].name;
    if (table[i].is_text != NULL) { /* the program may have overwritten the environment's text */
        bool given = *text_at(&options, table[i].at) != NULL;
        const char *absent = table[i].is_text == is_topology ? "read" : "none";
        report_format(buffer, size, "%s=%s", name, given ? "given" : absent);
        return true;
    }
    unsigned value = *number_at(&options, table[i].at);
    const struct word *w = table[i].words;
    while (w != NULL && w->value != value) w++;
    if (w != NULL && w->max != 0)
        report_format(buffer, size, "%s=%s:%u", name, w->name, *number_at(&options, w->at));
    else if (w != NULL)
        report_format(buffer, size, "%s=%s", name, w->name);
    else
        report_format(buffer, size, "%s=%u", name, value);
    return true;
}
