/* SPDX-License-Identifier: Apache-2.0 */
#include "questions.h"

#include "answers.h"
#include "hoard.h"
#include "process.h"
#include "reap_ask.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { NAME_MAX_BYTES = 63, SHOWN = 60, END_MS = 1000 };

/* A question that the program has added. */
struct question {
    struct question *next;
    void (*fn)(FILE *out, const char *args, void *arg);
    void *arg;
    bool is_gone; /* its own function has taken it away */
    char name[NAME_MAX_BYTES + 1];
};

/* Single stores change the list, so a forked child always finds it whole. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct question *added;
static struct question *runs; /* its function is being called */
static pthread_t runner;      /* in this thread */
static bool ends;

static bool is_runner(void) { return runs && pthread_equal(runner, pthread_self()); }

static void sleep_ms(unsigned ms)
{
    struct timespec left = {.tv_nsec = (long)ms * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) continue;
}

/* --- adding and taking away ------------------------------------------------------------------ */

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_BYTES) return false;
    for (; *name; name++)
        if (*name <= ' ' || *name > '~') return false;
    return true;
}

static bool is_own(const char *name)
{
    for (const struct answer *own = answers; own->name; own++)
        if (strcmp(own->name, name) == 0) return true;
    return strcmp(name, "help") == 0;
}

static struct question **find(const char *name)
{
    struct question **link = &added;
    while (*link && strcmp((*link)->name, name) != 0) link = &(*link)->next;
    return link;
}

static int add(struct question *question)
{
    pthread_mutex_lock(&mutex);
    bool is_taken = *find(question->name) != NULL;
    if (!is_taken) {
        question->next = added;
        __atomic_store_n(&added, question, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
    return is_taken ? EEXIST : 0;
}

/* Waits until a question that is in no list is not being answered. False: this thread itself answers it. */
static bool wait_for(struct question *question)
{
    pthread_mutex_lock(&mutex);
    while (runs == question) {
        if (is_runner()) {
            question->is_gone = true;
            break;
        }
        pthread_mutex_unlock(&mutex);
        sleep_ms(1);
        pthread_mutex_lock(&mutex);
    }
    bool is_gone = question->is_gone;
    pthread_mutex_unlock(&mutex);
    return !is_gone;
}

static int take_away(const char *name)
{
    pthread_mutex_lock(&mutex);
    struct question **link = find(name), *question = *link;
    if (question) __atomic_store_n(link, question->next, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mutex);
    if (!question) return ENOENT;
    if (wait_for(question)) hoard_free(question);
    return 0;
}

static int change(const char *name, void (*fn)(FILE *out, const char *args, void *arg), void *arg)
{
    if (!is_name(name)) return EINVAL;
    if (is_own(name)) return EEXIST;
    if (!questions_survive_fork()) return ENOMEM;
    if (!fn) return take_away(name);
    struct question *question = hoard_malloc(sizeof *question);
    if (!question) return ENOMEM;
    *question = (struct question){.fn = fn, .arg = arg};
    memcpy(question->name, name, strlen(name) + 1);
    int error = add(question);
    if (error != 0) hoard_free(question);
    return error;
}

int reapAnswer(const char *name, void (*fn)(FILE *out, const char *args, void *arg), void *arg)
{
    NOT_NULL(name, "reapAnswer");
    int state; /* to wait is a cancellation point */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int error = change(name, fn, arg);
    pthread_setcancelstate(state, NULL);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

bool questions_survive_fork(void)
{
    static bool is_registered;
    pthread_mutex_lock(&mutex);
    if (!is_registered) hoard_free(hoard_malloc(1));
    is_registered = is_registered || pthread_atfork(NULL, NULL, questions_fork_child) == 0;
    pthread_mutex_unlock(&mutex);
    return is_registered;
}

void questions_fork_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&mutex, &fresh, sizeof mutex);
    runs = NULL;
    ends = false;
}

void questions_end(void)
{
    pthread_mutex_lock(&mutex);
    ends = true;
    for (unsigned ms = 0; runs && !is_runner() && ms < END_MS; ms++) {
        pthread_mutex_unlock(&mutex);
        sleep_ms(1);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}

/* --- answering ------------------------------------------------------------------------------- */

static void help(FILE *out)
{
    fprintf(out, "help: these lines\n");
    for (const struct answer *own = answers; own->name; own++)
        fprintf(out, "%s: %s\n", own->name, own->meaning);
    pthread_mutex_lock(&mutex);
    for (const struct question *question = added; question; question = question->next)
        fprintf(out, "%s: of the program\n", question->name);
    pthread_mutex_unlock(&mutex);
}

static bool answer_own(const char *name, FILE *out)
{
    const struct answer *own = answers;
    while (own->name && strcmp(own->name, name) != 0) own++;
    if (own->name) own->fn(out);
    return own->name != NULL;
}

/* Calls the program's function. False: there is none of this name. */
static bool answer_added(const char *name, const char *args, FILE *out)
{
    pthread_mutex_lock(&mutex);
    struct question *question = ends ? NULL : *find(name);
    runs = question;
    runner = pthread_self();
    pthread_mutex_unlock(&mutex);
    if (!question) return false;
    question->fn(out, args, question->arg);
    pthread_mutex_lock(&mutex);
    runs = NULL;
    bool is_gone = question->is_gone;
    pthread_mutex_unlock(&mutex);
    if (is_gone) hoard_free(question);
    return true;
}

/* Says that there is no such question. The line goes to a terminal, so it has printable characters only. */
static void refuse(const char *name, FILE *out)
{
    char shown[SHOWN + 1];
    size_t n = 0;
    for (; n < SHOWN && name[n]; n++) shown[n] = name[n] < ' ' || name[n] > '~' ? '?' : name[n];
    shown[n] = '\0';
    fprintf(out, "reap: no such question as '%s': help lists them\n", shown);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static char *trim(char *text)
{
    while (is_space(*text)) text++;
    size_t size = strlen(text);
    while (size > 0 && is_space(text[size - 1])) size--;
    text[size] = '\0';
    return text;
}

void questions_answer(char *line, FILE *out)
{
    char *name = trim(line), *end = name;
    while (*end && !is_space(*end)) end++;
    char *args = *end ? end + 1 : end;
    *end = '\0';
    if (strcmp(name, "help") == 0 || !*name)
        help(out);
    else if (!answer_own(name, out) && !answer_added(name, trim(args), out))
        refuse(name, out);
}
