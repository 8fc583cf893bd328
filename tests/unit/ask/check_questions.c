/* SPDX-License-Identifier: Apache-2.0 */
/* check_questions.c: questions and their answers, without a socket: which there are, what a program adds and
 * takes away, also while it is asked; and that the JSON agrees with the totals. */

#include "reap_ask.h"
#include "support/check_reap.h"
#include "tools/ask/json.h"
#include "tools/ask/process.h"
#include "tools/ask/questions.h"
#include "tools/ask/text.h"
#include "tools/common/numbered_name.h"

/* What the library answers. To be freed. */
static char *answer_to(const char *question)
{
    struct text text = {.bytes = NULL};
    char line[4096], *copy;
    snprintf(line, sizeof line, "%s", question);
    FILE *out = text_begin(&text);
    ck_assert_ptr_nonnull(out);
    questions_answer(line, out);
    text_end(&text, out);
    copy = malloc(text.size + 1);
    ck_assert_ptr_nonnull(copy);
    if (text.size > 0) memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    text_drop(&text);
    return copy;
}

#define assert_answer(question, expected)                                                                    \
    do {                                                                                                     \
        char *answer_ = answer_to(question);                                                                 \
        ck_assert_str_eq(answer_, expected);                                                                 \
        free(answer_);                                                                                       \
    } while (0)

static void echo(FILE *out, const char *args, void *arg) { fprintf(out, "%s:%s.", (const char *)arg, args); }

TEST(a_program_adds_questions)
{
    static char first[] = "first", second[] = "second";
    ck_assert_int_eq(reapAnswer("one", echo, first), 0);
    ck_assert_int_eq(reapAnswer("two", echo, second), 0);
    assert_answer("one", "first:.");
    assert_answer("two  a b\t ", "second:a b.");
    assert_answer(" \tone x\r", "first:x.");
    char *help = answer_to("help"), *nothing = answer_to("");
    ck_assert_ptr_nonnull(strstr(help, "\none: of the program\n"));
    ck_assert_ptr_nonnull(strstr(help, "\ntree: "));
    ck_assert_str_eq(help, nothing);
    free(help);
    free(nothing);
    ck_assert_int_eq(reapAnswer("one", NULL, NULL), 0);
    assert_answer("one", "reap: no such question as 'one': help lists them\n");
    assert_answer("two", "second:.");
    ck_assert_int_eq(reapAnswer("one", echo, second), 0);
    assert_answer("one", "second:.");
}

static void assert_refused(const char *name, void (*fn)(FILE *, const char *, void *), int error)
{
    errno = 0;
    ck_assert_int_eq(reapAnswer(name, fn, NULL), -1);
    ck_assert_int_eq(errno, error);
}

TEST(names_are_checked)
{
    char longest[65];
    memset(longest, 'x', 64);
    longest[64] = '\0';
    assert_refused("", echo, EINVAL);
    assert_refused("two words", echo, EINVAL);
    assert_refused("line\n", echo, EINVAL);
    assert_refused("\xc3\xa4", echo, EINVAL);
    assert_refused(longest, echo, EINVAL);
    longest[63] = '\0';
    ck_assert_int_eq(reapAnswer(longest, echo, NULL), 0);
    assert_refused(longest, echo, EEXIST);
    assert_refused("help", echo, EEXIST);
    assert_refused("tree", echo, EEXIST);
    assert_refused("tree", NULL, EEXIST);
    assert_refused("nothing", NULL, ENOENT);
}

TEST(a_wrong_question_is_shown_safely)
{
    char question[300] = "\x1b[31mred\x07s\xff", expected[200];
    assert_answer(question, "reap: no such question as '?[31mred?s?': help lists them\n");
    memset(question, 'q', 299);
    snprintf(expected, sizeof expected, "reap: no such question as '%.60s': help lists them\n", question);
    assert_answer(question, expected);
}

/* --- taken away while it is asked ------------------------------------------------------------ */

static atomic_int entered, let_go, left;

static void linger(FILE *out, const char *args, void *arg)
{
    (void)args, (void)arg;
    entered = 1;
    while (!let_go) usleep(1000);
    fputs("lingered", out);
    usleep(20000);
    left = 1;
}

static void *ask_to_linger(void *arg)
{
    char *answer = answer_to("linger");
    bool has_lingered = strcmp(answer, "lingered") == 0;
    free(answer);
    return has_lingered ? NULL : arg;
}

static void *let_it_go(void *arg)
{
    (void)arg;
    usleep(50000);
    let_go = 1;
    return NULL;
}

TEST(taking_away_waits_for_an_answer_that_is_being_given)
{
    pthread_t asks, lets;
    void *result;
    ck_assert_int_eq(reapAnswer("linger", linger, NULL), 0);
    pthread_create(&asks, NULL, ask_to_linger, &lets);
    while (!entered) usleep(1000);
    pthread_create(&lets, NULL, let_it_go, NULL);
    ck_assert_int_eq(reapAnswer("linger", NULL, NULL), 0);
    ck_assert_int_eq(left, 1);
    pthread_join(asks, &result);
    ck_assert_ptr_null(result);
    pthread_join(lets, NULL);
}

static void take_away_itself(FILE *out, const char *args, void *arg)
{
    static char later[] = "later";
    (void)args, (void)arg;
    fprintf(out, "%d", reapAnswer("once", NULL, NULL));
    fprintf(out, " %d", reapAnswer("later", echo, later));
}

TEST(a_function_takes_its_own_question_away_and_adds_another)
{
    ck_assert_int_eq(reapAnswer("once", take_away_itself, NULL), 0);
    assert_answer("once", "0 0");
    assert_answer("once", "reap: no such question as 'once': help lists them\n");
    assert_answer("later", "later:.");
}

TEST(at_the_end_the_program_is_not_asked_any_more)
{
    static char own[] = "own";
    ck_assert_int_eq(reapAnswer("one", echo, own), 0);
    questions_end();
    assert_answer("one", "reap: no such question as 'one': help lists them\n");
    char *help = answer_to("help");
    ck_assert_ptr_nonnull(strstr(help, "tree: "));
    free(help);
    questions_fork_child(); /* a process at its end may still fork, and its child goes on */
    assert_answer("one", "own:.");
}

/* --- texts ----------------------------------------------------------------------------------- */

TEST(a_long_answer_is_whole_and_leaves_the_heap_alone)
{
    enum { LINES = 200000 };
    struct text text = {.bytes = NULL};
    FILE *out = text_begin(&text);
    struct hoard_stats before, after;
    hoard_stats(&before);
    for (int i = 0; i < LINES; i++) fprintf(out, "%7d\n", i);
    fflush(out);
    hoard_stats(&after);
    text_end(&text, out);
    ck_assert_uint_eq(text.size, LINES * (size_t)8);
    ck_assert_uint_eq(after.held_bytes, before.held_bytes);
    for (size_t i = 0; i < LINES; i++) ck_assert_int_eq(atoi(text.bytes + i * 8), (int)i);
    ck_assert(!text.is_cut);
    text_drop(&text);
    ck_assert_uint_eq(text.size, 0);
}

/* exit() flushes all streams, in children of forks too: a stream's thread alone writes to its text. */
static FILE *half_written;

static void *flush_all(void *arg)
{
    (void)arg;
    fflush(NULL);
    return NULL;
}

TEST(only_its_thread_writes_a_text)
{
    struct text text = {.bytes = NULL};
    half_written = text_begin(&text);
    fputs("left behind", half_written);
    in_thread(flush_all, NULL);
    ck_assert_uint_eq(text.size, 0);
    fputs("here", half_written);
    text_end(&text, half_written);
    ck_assert_uint_eq(text.size, 4);
    text_drop(&text);
}

/* --- what the library answers ---------------------------------------------------------------- */

/* Adds up the numbers behind a word. */
static size_t sum_of(const char *text, const char *word)
{
    size_t sum = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) sum += strtoull(text + strlen(word), NULL, 10);
    return sum;
}

/* Adds up the numbers before a word. */
static size_t sum_before(const char *text, const char *word)
{
    size_t sum = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) {
        const char *start = at;
        while (start > text && start[-1] >= '0' && start[-1] <= '9') start--;
        sum += strtoull(start, NULL, 10);
    }
    return sum;
}

/* Reaps with many names, some of them odd, and some without. */
static void *make_reaps(int count)
{
    static const char *const names[] = {"request", "connection", "\"quoted\\\"", "caf\xc3\xa9", "\xff\n\x01"};
    void *top, *child;
    reapCreate(&top, NULL);
    for (int i = 0; i < count; i++) {
        char name[32];
        reapCreate(&child, &top);
        snprintf(name, sizeof name, "%d", i);
        if (i % 7 != 0) reapSetName(&child, i % 7 < 6 ? names[i % 7 - 1] : name);
        reapMalloc(&child, (size_t)i * 10);
    }
    return top;
}

TEST(trees_tags_and_json_agree)
{
    void *top = make_reaps(900);
    char *tree = answer_to("tree"), *tags = answer_to("tags"), *json = answer_to("json");
    size_t held = reapHeldBytes(&top);
    ck_assert_uint_eq(sum_before(tree, " held"), held);
    ck_assert_uint_eq(sum_before(tags, " held"), held);
    ck_assert_uint_eq(sum_of(strstr(json, "\"reaps\""), "\"bytes\": "), held);
    ck_assert_uint_eq(sum_before(tags, " reaps"), 901);
    ck_assert_uint_eq(sum_before(tags, " objects"), 900);
    ck_assert_uint_eq(sum_of(json, "\"objects\": "), 900);
    ck_assert_uint_eq(sum_before(tags, " bytes"), sum_of(strstr(json, "\"reaps\""), "\"live_bytes\": "));
    ck_assert_ptr_nonnull(strstr(tags, "\nrequest: 129 reaps, "));
    ck_assert_ptr_nonnull(strstr(tags, "(no name): 130 reaps, "));
    ck_assert_ptr_nonnull(strstr(json, "\"name\": \"\\\"quoted\\\\\\\"\""));
    ck_assert_ptr_nonnull(strstr(json, "\"name\": \"caf\xc3\xa9\""));
    ck_assert_ptr_nonnull(strstr(json, "\"name\": \"\\u00ff\\u000a\\u0001\""));
    free(tree);
    free(tags);
    free(json);
    reapDestroy(&top);
}

TEST(more_names_than_there_is_room_for_have_one_sum)
{
    enum { REAPS = 3000 };
    void *top, *child;
    char name[200];
    reapCreate(&top, NULL);
    memset(name, 'n', sizeof name);
    for (int i = 0; i < REAPS; i++) {
        reapCreate(&child, &top);
        snprintf(name, 8, "%05d", i);
        name[5] = '-'; /* long names, cut where tags end */
        name[199] = '\0';
        reapSetName(&child, name);
    }
    char *tags = answer_to("tags");
    ck_assert_ptr_nonnull(strstr(tags, "(other names): "));
    ck_assert_uint_eq(sum_before(tags, " reaps, "), REAPS + 1);
    ck_assert_uint_eq(sum_before(tags, " held\n"), reapHeldBytes(&top));
    free(tags);
    reapDestroy(&top);
}

/* The classes of the backend's JSON against its figures. */
TEST(the_backend_adds_up)
{
    enum { BLOCKS = 5000 };
    static void *blocks[BLOCKS];
    struct hoard_stats stats;
    char *text;
    size_t size, live = 0;
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = hoard_malloc(i * 6);
    for (size_t i = 0; i < BLOCKS; i += 3) hoard_free(blocks[i]);
    hoard_free(hoard_malloc(10 * 1024 * 1024));
    hoard_trim(0);
    FILE *out = open_memstream(&text, &size);
    reapBackendJson(out);
    fclose(out);
    hoard_stats(&stats);
    for (const char *at = text; (at = strstr(at, "\"size\": ")); at++)
        live += strtoull(at + 8, NULL, 10) * strtoull(strstr(at, "\"used\": ") + 8, NULL, 10);
    ck_assert_uint_eq(live + stats.large_bytes, stats.live_bytes);
    ck_assert_uint_eq(sum_of(text, "\"live_bytes\": "), stats.live_bytes);
    ck_assert_uint_eq(sum_of(strstr(text, "classes"), "\"superblocks\": "),
                      stats.superblocks + stats.global_superblocks);
    ck_assert_uint_eq(sum_of(text, "\"os_given_bytes\": ") - sum_of(text, "\"os_returned_bytes\": "),
                      stats.held_bytes);
    ck_assert_uint_gt(sum_of(text, "\"os_returned_bytes\": "), 0);
    ck_assert_int_eq(text[0], '{');
    ck_assert_int_eq(text[size - 1], '}');
    free(text);
}

/* --- JSON and names -------------------------------------------------------------------------- */

static void assert_string(const char *text, size_t size, const char *expected)
{
    char *written;
    size_t length;
    FILE *out = open_memstream(&written, &length);
    json_string(out, text, size);
    fclose(out);
    ck_assert_str_eq(written, expected);
    free(written);
}

TEST(json_strings)
{
    assert_string("", SIZE_MAX, "\"\"");
    assert_string("plain", SIZE_MAX, "\"plain\"");
    assert_string("plain", 2, "\"pl\"");
    assert_string("\"\\/", SIZE_MAX, "\"\\\"\\\\/\"");
    assert_string("\n\x01\x7f\x1f", SIZE_MAX, "\"\\u000a\\u0001\\u007f\\u001f\"");
    /* two, three and four bytes: kept */
    assert_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", SIZE_MAX,
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    /* cut, alone, too long, a surrogate, beyond the last: Latin-1 */
    assert_string("\xc3\xa9", 1, "\"\\u00c3\"");
    assert_string("\xa9x", SIZE_MAX, "\"\\u00a9x\"");
    assert_string("\xe2\x82", SIZE_MAX, "\"\\u00e2\\u0082\"");
    assert_string("\xc0\xaf", SIZE_MAX, "\"\\u00c0\\u00af\"");
    assert_string("\xe0\x80\x80", SIZE_MAX, "\"\\u00e0\\u0080\\u0080\"");
    assert_string("\xed\xa0\x80", SIZE_MAX, "\"\\u00ed\\u00a0\\u0080\"");
    assert_string("\xf4\x90\x80\x80", SIZE_MAX, "\"\\u00f4\\u0090\\u0080\\u0080\"");
    assert_string("\xff", SIZE_MAX, "\"\\u00ff\"");
}

TEST(addresses_have_the_processs_number)
{
    char name[64], expected[64];
    snprintf(expected, sizeof expected, "/a.%d.%%x%d%%", (int)getpid(), (int)getpid());
    ck_assert(numbered_name(name, sizeof name, "/a.%p.%x%p%", 11));
    ck_assert_str_eq(name, expected);
    ck_assert(numbered_name(name, 6, "plain", 5));
    ck_assert_str_eq(name, "plain");
    ck_assert(!numbered_name(name, 5, "plain", 5));
    ck_assert(!numbered_name(name, 4, "%p%p%p%p", 8));
    ck_assert(numbered_name(name, 1, "", 0));
}

int main(void) { return run_tests((struct suite){0}); }
