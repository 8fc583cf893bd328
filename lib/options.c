#include "options.h"

#include "lock.h"
#include "report.h"

#include <string.h>
#include <sys/auxv.h>

struct word {
    const char *name;
    unsigned value;
};

static const struct word heaps_words[] = {{"cid", HEAPS_CID},
                                          {"cpu", HEAPS_CPU},
                                          {"roundrobin", HEAPS_ROUNDROBIN},
                                          {"single", HEAPS_SINGLE},
                                          {NULL, 0}};
static const struct word path_words[] = {{"auto", PATH_AUTO}, {"locked", PATH_LOCKED}, {NULL, 0}};
static const struct word lock_words[] = {
    {"both", LOCK_BOTH}, {"spin", LOCK_SPIN}, {"block", LOCK_BLOCK}, {NULL, 0}};

/* Name, where it goes, its words or its bounds, default, meaning. */
static const struct option {
    const char *name;
    size_t at;
    const struct word *words;
    unsigned min, max, preset;
    const char *meaning;
} table[] = {
#define AT(field) offsetof(struct options, field)
    {"stats", AT(stats), NULL, 0, 1, 0, "report on standard error at exit"},
    {"heaps", AT(heaps), heaps_words, 0, 0, HEAPS_CID, "which heap a thread uses"},
    {"path", AT(path), path_words, 0, 0, PATH_AUTO, "locked: no restartable sequences"},
    {"lock", AT(lock), lock_words, 0, 0, LOCK_BOTH, "how contended locks wait"},
    {"empty_fraction", AT(empty_fraction), NULL, 1, 7, 2, "f in eighths (the papers' f = 1/4)"},
    {"slack", AT(slack), NULL, 0, 1024, 4, "the papers' K, in superblocks"},
    {"purge_ms", AT(purge_ms), NULL, 0, 3600000, 100, "delay before unused memory goes back to the OS"},
#undef AT
};

enum { OPTIONS = sizeof table / sizeof table[0] };

struct options options;

static void set(struct options *to, const struct option *option, unsigned value)
{
    *(unsigned *)((char *)to + option->at) = value;
}

static void preset_all(struct options *to)
{
    for (unsigned i = 0; i < OPTIONS; i++) set(to, &table[i], table[i].preset);
}

static bool same(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

static bool parse_number(const char *text, size_t size, unsigned *value)
{
    if (size == 0 || size > 9) return false;
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *value = *value * 10 + (unsigned)(text[i] - '0');
    }
    return true;
}

static bool parse_value(const struct option *option, const char *text, size_t size, unsigned *value)
{
    if (option->words == NULL)
        return parse_number(text, size, value) && *value >= option->min && *value <= option->max;
    for (const struct word *w = option->words; w->name != NULL; w++) {
        *value = w->value;
        if (same(text, size, w->name)) return true;
    }
    return false;
}

static const struct option *find(const char *text, size_t size)
{
    for (unsigned i = 0; i < OPTIONS; i++)
        if (same(text, size, table[i].name)) return &table[i];
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

/* One "name=value"; a name alone means 1. */
static bool parse_item(const char *text, size_t size, struct options *to)
{
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
    const char *value_text = equals != NULL ? equals + 1 : "1";
    size_t value_size = equals != NULL ? size - name_size - 1 : 1;

    const struct option *option = find(text, name_size);
    if (option == NULL) return complain("unknown option", text, size);
    unsigned value = 0;
    if (!parse_value(option, value_text, value_size, &value)) return complain("bad value", text, size);
    set(to, option, value);
    return true;
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

/* Before libc has run its own start-up code there is no environ (a preloaded malloc is called by
 * ld.so that early); then it is found where the kernel put it: above the arguments, which start where the
 * stack did. */
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
}

bool options_show(unsigned i, char *buffer, size_t size)
{
    if (i >= OPTIONS) return false;
    unsigned value = *(const unsigned *)((const char *)&options + table[i].at);
    const struct word *w = table[i].words;
    while (w != NULL && w->value != value) w++;
    if (w != NULL)
        report_format(buffer, size, "%s=%s", table[i].name, w->name);
    else
        report_format(buffer, size, "%s=%u", table[i].name, value);
    return true;
}
