/* SPDX-License-Identifier: Apache-2.0 */
#include "server_search.h"

#include <sys/mman.h>

#include "workers.h"

/* clang-format off */
enum {
    WORDS = 1024, DOCUMENTS = 8000, POSTINGS_LEAST = 140, POSTINGS_MOST = 2100, VARIANTS = 4,
    TABLE = 2048,
    SHOWN = 20, LINE = 512, PAGE_FIRST = 256, WEIGHT_LEAST = 40
};
/* clang-format on */

/* --- what is searched: made before the first request, and not by malloc --------------------------- */

struct posting {
    uint32_t document, weight;
};

struct shared *shared;
static struct posting *postings;
static uint32_t postings_from[WORDS + 1];

/* Few words are in many documents. */
static void index_build(void)
{
    uint32_t state = 1;
    for (uint32_t w = 0; w < WORDS; w++)
        postings_from[w + 1] =
            postings_from[w] + POSTINGS_LEAST + (POSTINGS_MOST - POSTINGS_LEAST) * 64 / (64 + w);
    size_t bytes = postings_from[WORDS] * sizeof *postings;
    postings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    measure_need(postings != MAP_FAILED, "no memory");
    for (uint32_t i = 0; i < postings_from[WORDS]; i++)
        postings[i] = (struct posting){measure_random(&state) % DOCUMENTS, measure_random(&state) % 100};
}

void search_begin(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    measure_need(shared != MAP_FAILED, "no memory");
    index_build();
}

/* --- a request -------------------------------------------------------------------------------- */

/* Each object begins with its size, as take writes it. */
struct text {
    uint64_t size, length;
    char bytes[];
};

struct word {
    uint64_t size;
    struct word *next;
    struct text *text;
    uint64_t number;
};

struct match {
    uint64_t size;
    struct match *next;
    struct posting posting;
    uint64_t word;
};

struct result {
    uint64_t size;
    struct result *next;
    struct text *title;
    uint32_t document, words;
    uint64_t score, last_word;
};

struct table {
    uint64_t size;
    struct result *results[TABLE];
};

struct sorted {
    uint64_t size;
    struct result *results[];
};

static void *get(struct request *request, size_t size)
{
    request->allocations++;
    return take(size);
}

static struct text *text_new(struct request *request, size_t room)
{
    struct text *text = get(request, sizeof *text + room);
    text->length = 0;
    return text;
}

static struct text *text_of(struct request *request, const char *bytes, size_t length)
{
    struct text *text = text_new(request, length);
    memcpy(text->bytes, bytes, length);
    text->length = length;
    return text;
}

/* As long as what it names, and another one for each. */
static struct text *text_naming(struct request *request, uint64_t what, size_t length)
{
    char bytes[LINE];
    for (size_t i = 0; i < length; i++) bytes[i] = (char)('a' + (what * 31 + i * i) % 26);
    return text_of(request, bytes, length);
}

static void text_append(struct request *request, struct text **text, const char *bytes, size_t length)
{
    size_t room = (*text)->size - sizeof **text;
    if ((*text)->length + length > room) {
        struct text *longer = text_new(request, 2 * room + length);
        longer->length = (*text)->length;
        memcpy(longer->bytes, (*text)->bytes, longer->length);
        give(*text);
        *text = longer;
    }
    memcpy((*text)->bytes + (*text)->length, bytes, length);
    (*text)->length += length;
}

static uint64_t text_hash(const struct text *text)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < text->length; i++) hash = (hash ^ (unsigned char)text->bytes[i]) * 1099511628211u;
    return hash;
}

/* --- its stages ------------------------------------------------------------------------------- */

static void receive(struct request *request) { request->query = text_naming(request, request->number, 60); }

static void word_add(struct request *request, uint64_t number_)
{
    struct word *word = get(request, sizeof *word);
    *word =
        (struct word){sizeof *word, request->words, text_naming(request, number_, 4 + number_ % 9), number_};
    request->words = word;
}

static void split(struct request *request)
{
    for (uint32_t i = 2 + (uint32_t)text_hash(request->query) % 3; i > 0; i--) {
        uint32_t drawn = measure_random(&request->state);
        word_add(request, drawn % WORDS * (drawn / WORDS % WORDS) / WORDS);
    }
}

/* Other endings of each word. */
static void vary(struct request *request)
{
    for (const struct word *word = request->words, *first = word; word != NULL; word = word->next)
        for (uint64_t i = 1; i < VARIANTS; i++)
            word_add(request, (word->number + i * first->number + i) % WORDS);
}

static void look_up(struct request *request)
{
    for (const struct word *word = request->words; word != NULL; word = word->next)
        for (uint32_t i = postings_from[word->number]; i < postings_from[word->number + 1]; i++) {
            struct match *match = get(request, sizeof *match);
            *match = (struct match){sizeof *match, request->matches, postings[i], word->number};
            request->matches = match;
        }
}

static struct result *result_of(struct request *request, uint32_t document)
{
    struct result **first = &request->table->results[document % TABLE], *result = *first;
    while (result != NULL && result->document != document) result = result->next;
    if (result != NULL) return result;
    result = get(request, sizeof *result);
    *result = (struct result){
        .size = sizeof *result, .next = *first, .document = document, .last_word = UINT64_MAX};
    request->n_results++;
    return *first = result;
}

static void join(struct request *request)
{
    request->table = get(request, sizeof *request->table);
    memset(request->table->results, 0, sizeof request->table->results);
    for (const struct match *match = request->matches; match != NULL; match = match->next) {
        struct result *result = result_of(request, match->posting.document);
        result->words += result->last_word != match->word;
        result->last_word = match->word;
        result->score += match->posting.weight;
    }
}

/* Drops those that are hardly about it. */
static void filter(struct request *request)
{
    for (int i = 0; i < TABLE; i++)
        for (struct result **at = &request->table->results[i], *result; (result = *at) != NULL;) {
            if (result->words > 1 || result->score >= WEIGHT_LEAST) {
                at = &result->next;
                continue;
            }
            *at = result->next;
            request->n_results--;
            give(result);
        }
}

static void title(struct request *request)
{
    for (int i = 0; i < TABLE; i++)
        for (struct result *result = request->table->results[i]; result != NULL; result = result->next)
            result->title = text_naming(request, result->document, 12 + result->document % 90);
}

static bool is_before(const struct result *a, const struct result *b)
{
    uint64_t x = a->score * a->words, y = b->score * b->words;
    return x > y || (x == y && a->document < b->document);
}

static void sort(struct result **results, uint64_t n)
{
    while (n > 1) {
        struct result *middle = results[n / 2];
        uint64_t i = 0, k = n - 1;
        for (;; i++, k--) {
            while (is_before(results[i], middle)) i++;
            while (is_before(middle, results[k])) k--;
            if (i >= k) break;
            struct result *other = results[i];
            results[i] = results[k];
            results[k] = other;
        }
        sort(results, i);
        results += i;
        n -= i;
        if (i == 0) results++, n--;
    }
}

static void order(struct request *request)
{
    request->sorted = get(request, sizeof *request->sorted + request->n_results * sizeof(struct result *));
    uint64_t n = 0;
    for (int i = 0; i < TABLE; i++)
        for (struct result *result = request->table->results[i]; result != NULL; result = result->next)
            request->sorted->results[n++] = result;
    sort(request->sorted->results, n);
}

static void format(struct request *request)
{
    request->page = text_new(request, PAGE_FIRST);
    for (uint64_t i = 0; i < SHOWN && i < request->n_results; i++) {
        const struct result *result = request->sorted->results[i];
        char line[LINE];
        int length =
            snprintf(line, sizeof line, "%llu. %u: %llu, %.*s\n", (unsigned long long)i, result->document,
                     (unsigned long long)result->score, (int)result->title->length, result->title->bytes);
        text_append(request, &request->page, line, (size_t)length);
    }
}

static void answer(struct request *request)
{
    atomic_fetch_add(&shared->sum, text_hash(request->page) % 1000003 + request->n_results);
    atomic_fetch_add(&shared->allocations, request->allocations);
}

static void end(struct request *request)
{
    for (struct match *match = request->matches, *next; match != NULL; match = next)
        next = match->next, give(match);
    for (uint64_t i = 0; i < request->n_results; i++) {
        give(request->sorted->results[i]->title);
        give(request->sorted->results[i]);
    }
    for (struct word *word = request->words, *next; word != NULL; word = next) {
        next = word->next;
        give(word->text);
        give(word);
    }
    give(request->sorted);
    give(request->table);
    give(request->page);
    give(request->query);
    give(request);
}

void (*const search_stages[STAGES])(struct request *) = {receive, split, vary,   look_up, join, filter,
                                                         title,   order, format, answer,  end};
