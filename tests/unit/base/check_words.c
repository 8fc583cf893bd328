/* SPDX-License-Identifier: Apache-2.0 */
/* check_words.c: what lib/base has, but for locks: options, report, list. */
#include "support/check_backend.h"

#include "base/bitmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/report.h"

/* --- bitmaps --------------------------------------------------------------------------------- */

/* The steps of fast paths, some of which are single instructions, beside what they stand for. */
TEST(halves_of_bitmaps_are_changed_bit_by_bit)
{
    static const uint32_t halves[] = {0, 1, 0x80000000, 0xffffffff, 0x5a5a5a5a, 0xa5a5a5a5};
    for (unsigned k = 0; k < sizeof halves / sizeof halves[0]; k++) {
        for (size_t i = 0; i < 96; i++) {
            uint32_t half = halves[k], bit = (uint32_t)1 << i % 32;
            ck_assert_int_eq(bitmap_half_test_and_clear(&half, i), (halves[k] & bit) != 0);
            ck_assert_uint_eq(half, halves[k] & ~bit);
        }
    }
}

TEST(the_first_of_the_bits)
{
    for (unsigned i = 0; i < 64; i++) ck_assert_uint_eq(bitmap_first(~UINT64_C(0) << i), i);
}

/* --- options --------------------------------------------------------------------------------- */

static struct options presets(void)
{
    unsetenv("REAP_OPTIONS");
    options_read();
    return options;
}

TEST(options_have_these_presets)
{
    static const char *const shown[] = {
        "stats=0",           "heaps=cid",        "path=auto", "lock=both",
        "topology=read",     "empty_fraction=2", "slack=4",   "purge_ms=500",
        "purge_thread=auto", "thp=grown",        "names=1",   "memory_limit=purge",
        "ask=none",          "leaks=0",          "bypass=0",  "harden=0",
#ifdef REAP_DEBUG
        "walk_steps=16",
#endif
    };
    presets();
    char item[64];
    unsigned i = 0;
    for (; options_show(i, item, sizeof item); i++) {
        ck_assert_uint_lt(i, sizeof shown / sizeof shown[0]);
        ck_assert_str_eq(item, shown[i]);
    }
    ck_assert_uint_eq(i, sizeof shown / sizeof shown[0]);
}

TEST(each_option_takes_what_its_bounds_allow)
{
    struct options o = presets();
    static const struct {
        const char *text;
        size_t at;
        unsigned value;
    } good[] = {
#define AT(field) offsetof(struct options, field)
        {"stats=1", AT(stats), 1},
        {"stats=0", AT(stats), 0},
        {"stats", AT(stats), 1}, /* a name alone means 1 */
        {"heaps=cpu", AT(heaps), HEAPS_CPU},
        {"heaps=cid", AT(heaps), HEAPS_CID},
        {"heaps=core", AT(heaps), HEAPS_CORE},
        {"heaps=thread", AT(heaps), HEAPS_THREAD},
        {"heaps=dynamic:1", AT(heaps), HEAPS_DYNAMIC},
        {"heaps=dynamic:1", AT(dynamic), 1},
        {"heaps=dynamic:1000000", AT(dynamic), 1000000},
        {"heaps=roundrobin", AT(heaps), HEAPS_ROUNDROBIN},
        {"heaps=single", AT(heaps), HEAPS_SINGLE},
        {"path=locked", AT(path), PATH_LOCKED},
        {"path=auto", AT(path), PATH_AUTO},
        {"lock=spin", AT(lock), LOCK_SPIN},
        {"lock=block", AT(lock), LOCK_BLOCK},
        {"lock=both", AT(lock), LOCK_BOTH},
        {"empty_fraction=1", AT(empty_fraction), 1},
        {"empty_fraction=4", AT(empty_fraction), 4},
        {"slack=0", AT(slack), 0},
        {"slack=1024", AT(slack), 1024},
        {"slack", AT(slack), 1},
        {"slack=0007", AT(slack), 7},
        {"purge_ms=0", AT(purge_ms), 0},
        {"purge_ms=3600000", AT(purge_ms), 3600000},
        {"purge_thread=1", AT(purge_thread), PURGE_THREAD_ALWAYS},
        {"purge_thread=0", AT(purge_thread), PURGE_THREAD_NEVER},
        {"purge_thread=auto", AT(purge_thread), PURGE_THREAD_AUTO},
        {"thp=never", AT(thp), THP_NEVER},
        {"thp=always", AT(thp), THP_ALWAYS},
        {"thp=grown", AT(thp), THP_GROWN},
        {"thp=system", AT(thp), THP_SYSTEM},
        {"memory_limit=refuse", AT(memory_limit), LIMIT_REFUSE},
        {"memory_limit=ignore", AT(memory_limit), LIMIT_IGNORE},
        {"memory_limit=purge", AT(memory_limit), LIMIT_PURGE},
#undef AT
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(options_parse(good[i].text, &o) == 0, "%s", good[i].text);
        ck_assert_msg(*(unsigned *)((char *)&o + good[i].at) == good[i].value, "%s", good[i].text);
    }
}

static void parse(void *list)
{
    struct options o;
    unsigned complaints = options_parse(list, &o);
    report_line("%u", complaints);
}

TEST(each_bad_item_gives_one_line_and_changes_nothing)
{
    static const struct {
        const char *what, *items;
    } bad[] = {{"unknown option", "nonsense=1|nonsense|STATS=1|stat=1|stats =1|=|=1"},
               {"bad value",
                "stats=2|stats=|stats=-1|stats=/a/file|stats=1=1|stats= 1|heaps|heaps=none|heaps=dynamics:5|"
                "heaps=thread:5|heaps=:5|lock=spin:5|slack=5:5|topology|topology=|topology=0|"
                "topology=0.|topology=.0|topology=0.0:|topology=:0.0|topology=0.0;0.0|"
                "topology=0.0:0|topology=4096.0|topology=0.64|topology=-1.0|"
                "topology=99999999999.0|lock=spi|path=locked2|empty_fraction=0|"
                "empty_fraction=5|slack=1025|purge_ms=3600001|purge_ms=4294967296|"
                "purge_ms=0x10"},
               {"N of dynamic:N is 1 to 1000000:",
                "heaps=dynamic|heaps=dynamic:|heaps=dynamic:0|heaps=dynamic:1000001|"
                "heaps=dynamic:-1|heaps=dynamic:5x|heaps=dynamic:5:5"}};
    struct options before = presets();
    char items[1000], text[200];
    unsigned n = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        strcpy(items, bad[i].items);
        for (char *item = strtok(items, "|"); item != NULL; item = strtok(NULL, "|"), n++) {
            struct options o = before;
            struct outcome said = run_child(parse, item);
            snprintf(text, sizeof text, "reap: REAP_OPTIONS: %s '%s' ignored%s", bad[i].what, item,
                     i == 0 ? "\nreap: 1\n" : "; it takes ");
            ck_assert_ptr_eq(strstr(said.text, text), said.text);
            ck_assert(strncmp(item, "slack", 5) != 0 || strstr(said.text, "takes 0 to 1024 (4)\nreap: 1\n"));
            options_parse(item, &o);
            ck_assert_msg(memcmp(&o, &before, sizeof o) == 0, "%s", item);
        }
    }
    ck_assert_uint_eq(n, 48);
}

TEST(each_option_wrong_absent_doubled_huge)
{
    /* In the order of the table. Two good values, how the second one is shown, and one that is bad. */
    static const struct {
        const char *name, *one, *other, *shown, *bad;
    } rows[] = {
        {"stats", "0", "1", "1", "2"},
        {"heaps", "cpu", "dynamic:7", "dynamic:7", "cpux"},
        {"path", "auto", "locked", "locked", "1"},
        {"lock", "both", "block", "block", "1"},
        {"topology", "0.0", "0.0:1.0", "given", "0.0:"},
        {"empty_fraction", "1", "3", "3", "0"},
        {"slack", "0", "1024", "1024", "1025"},
        {"purge_ms", "0", "3600000", "3600000", "3600001"},
        {"purge_thread", "0", "1", "1", "2"},
        {"thp", "never", "always", "always", "1"},
        {"names", "0", "1", "1", "2"},
        {"memory_limit", "ignore", "refuse", "refuse", "1"},
        {"ask", "@one", "@other", "given", NULL}, /* any text but none */
        {"leaks", "0", "1", "1", "2"},
        {"bypass", "0", "1", "1", "2"},
        {"harden", "1", "2", "2", "3"},
#ifdef REAP_DEBUG
        {"walk_steps", "0", "1000000", "1000000", "1000001"},
#endif
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct options before = presets();
    char item[64], list[200], shown[64];
    for (unsigned i = 0; i < ROWS; i++) {
        ck_assert(options_show(i, item, sizeof item));
        *strchr(item, '=') = '\0';
        ck_assert_str_eq(item, rows[i].name);
        const char *bad[] = {"", rows[i].bad, "nonsense", "-1", "99999999999999999999999"};
        for (unsigned k = 0; k < (rows[i].bad != NULL ? 5 : 1); k++) {
            struct options o = before;
            snprintf(list, sizeof list, "%s=%s", rows[i].name, bad[k]);
            ck_assert_msg(options_parse(list, &o) == 1, "%s", list);
            ck_assert_msg(memcmp(&o, &before, sizeof o) == 0, "%s", list);
        }
        struct options doubled = before;
        snprintf(list, sizeof list, "%s=%s,%s=%s,%s=", rows[i].name, rows[i].one, rows[i].name, rows[i].other,
                 rows[i].name);
        ck_assert_msg(options_parse(list, &doubled) == 1, "%s", list);
        options = doubled; /* what is shown */
        ck_assert(options_show(i, item, sizeof item));
        options = before;
        snprintf(shown, sizeof shown, "%s=%s", rows[i].name, rows[i].shown);
        ck_assert_str_eq(item, shown);
    }
    ck_assert(!options_show(ROWS, item, sizeof item)); /* an option without a row */
}

TEST(the_rest_of_a_broken_list_counts)
{
    static const struct {
        const char *list;
        unsigned complaints;
    } lists[] = {
        {"", 0},
        {",", 0},
        {",,,", 0},
        {"slack=7", 0},
        {"slack=7,", 0},
        {",slack=7", 0},
        {"=,=,slack=7", 2},
        {"x,slack=7,y=z", 2},
        {"slack=9999,slack=7", 1},
        {"slack=3,slack=7", 0}, /* the last one wins */
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct options o = presets();
        struct outcome said = run_child(parse, (void *)(uintptr_t)lists[i].list);
        ck_assert_uint_eq(lines_of(said.text), lists[i].complaints + 1);
        ck_assert_uint_eq(options_parse(lists[i].list, &o), lists[i].complaints);
        ck_assert_msg(o.slack == (strstr(lists[i].list, "slack") != NULL ? 7 : 4), "%s", lists[i].list);
    }
}

TEST(a_long_item_is_cut_in_the_complaint)
{
    char list[5000];
    memset(list, 'x', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    struct outcome said = run_child(parse, list);
    ck_assert_uint_eq(lines_of(said.text), 2);
    ck_assert_uint_lt(strlen(said.text), 200);
}

TEST(the_environment_is_read)
{
    setenv("REAP_OPTIONSX", "slack=9", 1);
    setenv("REAP_OPTIONS", "slack=7,purge_ms=5", 1);
    options_read();
    ck_assert_uint_eq(options.slack, 7);
    ck_assert_uint_eq(options.purge_ms, 5);
    ck_assert_uint_eq(options.empty_fraction, 2);
}

TEST(what_was_given_is_shown)
{
    char item[64];
    setenv("REAP_OPTIONS", "heaps=dynamic:64,topology=0.0:1.0,slack=3", 1);
    options_read();
    ck_assert(strncmp(options.topology, "0.0:1.0,", 8) == 0);
    ck_assert(options_show(1, item, sizeof item));
    ck_assert_str_eq(item, "heaps=dynamic:64");
    ck_assert(options_show(4, item, sizeof item));
    ck_assert_str_eq(item, "topology=given");
}

static void read_without_environ(void *list)
{
    extern char **environ;
    (void)list;
    environ = NULL; /* as before libc has run; the kernel's copy of the environment is what exec got */
    options_read();
    report_line("%u", options.slack);
}

TEST(without_environ_the_kernels_copy_is_read)
{
    struct outcome said = run_child(read_without_environ, NULL);
    ck_assert_str_eq(said.text, "reap: 4\n");
}

/* --- report ---------------------------------------------------------------------------------- */

TEST(formats)
{
    char text[128];
    const char *volatile null = NULL;
    size_t n = report_format(text, sizeof text, "%s|%s|%u|%zu|%llu|%p|%%", "a", null, 4294967295u, SIZE_MAX,
                             18446744073709551615ull, (void *)0xdeadbeef);
    ck_assert_str_eq(text, "a|(null)|4294967295|18446744073709551615|18446744073709551615|0xdeadbeef|%");
    ck_assert_uint_eq(n, strlen(text));
    report_format(text, sizeof text, "%u %zu %p", 0u, (size_t)0, NULL);
    ck_assert_str_eq(text, "0 0 0x0");
    n = report_format(text, sizeof text, "%.3s|%.12s|%u", "abcdef", "abcdef", 7u);
    ck_assert_str_eq(text, "abc|abcdef|7");
    ck_assert_uint_eq(n, strlen(text));
}

TEST(bytes_have_a_unit_beside_them)
{
    char text[REPORT_BYTES];
    ck_assert_str_eq(report_bytes(text, 10239, "bytes"), "10239 bytes");
    ck_assert_str_eq(report_bytes(text, 10240, "bytes"), "10240 bytes (10.0 KiB)");
    ck_assert_str_eq(report_bytes(text, 1048575, ""), "1048575 (1023.9 KiB)");
    ck_assert_str_eq(report_bytes(text, 1048576, "held"), "1048576 held (1.0 MiB)");
    ck_assert_str_eq(report_bytes(text, (size_t)5 << 30, ""), "5368709120 (5.0 GiB)");
    ck_assert_str_eq(report_bytes(text, SIZE_MAX, "bytes"), "18446744073709551615 bytes (16777215.9 TiB)");
}

TEST(a_buffer_too_small_is_terminated_and_not_overrun)
{
    for (size_t size = 1; size < 12; size++) {
        char text[16];
        memset(text, '#', sizeof text);
        size_t n = report_format(text, size, "%s %u", "hello", 12345u);
        ck_assert_uint_eq(n, size - 1 < 11 ? size - 1 : 11);
        ck_assert_int_eq(strncmp(text, "hello 12345", n), 0);
        ck_assert_int_eq(text[n], '\0');
        for (size_t i = size; i < sizeof text; i++) ck_assert_int_eq(text[i], '#');
    }
}

static void say_much(void *arg)
{
    (void)arg;
    char much[2000];
    memset(much, 'y', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    errno = 77;
    report_line("%s", much);
    if (errno != 77) abort();
    report_line("the next line");
}

TEST(a_long_line_is_cut_and_stays_one_line)
{
    struct outcome said = run_child(say_much, NULL);
    ck_assert_int_eq(said.status, 0);
    ck_assert_uint_eq(lines_of(said.text), 2);
    const char *end = strchr(said.text, '\n');
    ck_assert_int_eq(end - said.text, 510); /* and the newline; line[] holds a terminator too */
    ck_assert_str_eq(end + 1, "reap: the next line\n");
}

static void misuse(void *pointer) { report_misuse("someCall", pointer, "was wrong"); }

static void misuse_of(void *pointer) { report_misuse_of("someCall", pointer, "belongs to", "another"); }

TEST(misuse_is_one_line_and_abort)
{
    void *pointer = (void *)0x1234;
    assert_misuse(misuse, pointer, "someCall", "was wrong");
    assert_misuse(misuse_of, pointer, "someCall", "belongs to another");
}

/* --- list ------------------------------------------------------------------------------------ */

enum { NODES = 32 };

static bool has_order(const struct list *list, struct list_node *nodes, const unsigned *order, unsigned count)
{
    const struct list_node *node = list->first;
    struct list_node *const *at = &list->first;
    for (unsigned i = 0; i < count; i++) {
        if (node != &nodes[order[i]] || node->at != at) return false;
        at = &node->next;
        node = node->next;
    }
    return !node && list_is_empty(list) == (count == 0);
}

TEST(lists_keep_their_order)
{
    uint64_t random = random_seed();
    struct list list = {NULL};
    struct list_node nodes[NODES] = {0};
    unsigned order[NODES], count = 0;
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = random_below(&random, NODES);
        if (step % 7 == 0) {
            struct list_node *popped = list_pop(&list);
            ck_assert_ptr_eq(popped, count != 0 ? &nodes[order[0]] : NULL);
            if (count != 0) memmove(order, order + 1, --count * sizeof order[0]);
        } else if (list_holds(&nodes[i])) {
            unsigned at = 0;
            while (order[at] != i) at++;
            list_remove(&nodes[i]);
            memmove(order + at, order + at + 1, (--count - at) * sizeof order[0]);
            ck_assert(!list_holds(&nodes[i]));
        } else {
            list_push(&list, &nodes[i]);
            memmove(order + 1, order, count++ * sizeof order[0]);
            order[0] = i;
        }
        ck_assert(has_order(&list, nodes, order, count));
    }
}

int main(void) { return run_tests((struct suite){0}); }
