/* SPDX-License-Identifier: Apache-2.0 */
/* pools_parser.h: the workload `parser`, compiled for each pool (pools.h): a parser of sentences that frees
 * nearly last in first out, after what Berger tells of 197.parser (thesis 2002, 4.2.1 and table 5.3). Its
 * grammar is one of links, as Sleator and Temperley describe it (Parsing English with a link grammar,
 * 1991): each word has some disjuncts, lists of connectors to its left and to its right, and a sentence is
 * good if links fit all of one disjunct of each word, do not cross, and join all words.
 *
 *     expression    what the dictionary has of a word, copied for the sentence: a tree of ands and ors
 *     disjunct      made of it, each with connectors of its own; those that fit none in the sentence go at
 *                   once
 *     entry         of a table of what was counted already: that the words between two can be linked in so
 *                   many ways
 *
 * The program frees each object itself, as one does with malloc: pool_new and pool_delete. What it reads of
 * an object goes into the sum.
 */
#ifndef POOLS_PARSER_H
#define POOLS_PARSER_H

#include "pools.h"

/* clang-format off */
enum {
    DICTIONARY = 300, LABELS = 6, SENTENCES = 6000, SENTENCES_SHORT = 6, SENTENCE_LEAST = 5,
    SENTENCE_MOST = 18, COUNTED = 4096, OR_MOST = 3, AND_MOST = 3
};
/* clang-format on */

struct expression {
    struct expression *next; /* of the same and, or or */
    struct expression *parts;
    uint32_t kind; /* '&', '|', or '+' and '-' for a connector to the right and to the left */
    uint32_t label;
};

struct connector {
    struct connector *next; /* nearer to the word, to what it may link */
    uint32_t label, id;     /* a table's key wants what is the same in each run, which an address is not */
};

struct disjunct {
    struct disjunct *next;
    struct connector *left, *right;
    uint32_t word, cost;
};

struct entry {
    struct entry *next;
    const struct connector *left, *right;
    int32_t from, to;
    uint64_t ways;
};

static struct {
    struct pool pool;
    int n;
    uint32_t words[SENTENCE_MOST], ids;
    struct disjunct *disjuncts[SENTENCE_MOST];
    struct entry **entries;
    uint64_t objects;
} parse;

static inline void *parse_get(size_t size)
{
    void *object = pool_new(&parse.pool, size);
    measure_need(object != NULL, "no memory");
    parse.objects++;
    return object;
}

static inline void parse_put(void *object, size_t size) { pool_delete(&parse.pool, object, size); }

/* --- expressions ------------------------------------------------------------------------------ */

static struct expression *expression_new(uint32_t kind, uint32_t label)
{
    struct expression *expression = parse_get(sizeof *expression);
    *expression = (struct expression){.kind = kind, .label = label};
    return expression;
}

/* A word's entry of the dictionary: some ways, each with some connectors. Drawn from the word, always
 * alike. */
static struct expression *expression_of(uint32_t word)
{
    uint32_t state = (word + 1) * 2654435761u;
    struct expression *ways = expression_new('|', word);
    for (uint32_t i = 2 + measure_random(&state) % OR_MOST; i > 0; i--) {
        struct expression *way = expression_new('&', i), **at = &way->parts;
        for (uint32_t k = 1 + measure_random(&state) % AND_MOST; k > 0; k--, at = &(*at)->next) {
            *at = expression_new('|', k);
            for (uint32_t n = 1 + measure_random(&state) % OR_MOST; n > 0; n--) {
                uint32_t drawn = measure_random(&state);
                struct expression *connector = expression_new(drawn % 2 ? '+' : '-', drawn / 2 % LABELS);
                connector->next = (*at)->parts;
                (*at)->parts = connector;
            }
        }
        way->next = ways->parts;
        ways->parts = way;
    }
    return ways;
}

static void expression_end(struct expression *expression)
{
    for (struct expression *next; expression != NULL; expression = next) {
        next = expression->next;
        expression_end(expression->parts);
        use_sum += expression->kind + expression->label;
        parse_put(expression, sizeof *expression);
    }
}

/* --- disjuncts -------------------------------------------------------------------------------- */

static struct connector *connector_new(uint32_t label, struct connector *next)
{
    struct connector *connector = parse_get(sizeof *connector);
    *connector = (struct connector){next, label, parse.ids++};
    return connector;
}

static struct connector *connectors_copy(const struct connector *connector)
{
    return connector != NULL ? connector_new(connector->label, connectors_copy(connector->next)) : NULL;
}

static void connectors_end(struct connector *connector)
{
    for (struct connector *next; connector != NULL; connector = next) {
        next = connector->next;
        use_sum += connector->label + connector->id;
        parse_put(connector, sizeof *connector);
    }
}

static void disjunct_end(struct disjunct *disjunct)
{
    connectors_end(disjunct->right);
    connectors_end(disjunct->left);
    use_sum += disjunct->word + disjunct->cost;
    parse_put(disjunct, sizeof *disjunct);
}

/* All choices among the parts of an and, from this part on, each behind what was chosen before. */
static void disjuncts_of(struct disjunct **list, uint32_t word, uint32_t cost, const struct expression *part,
                         const struct connector *left, const struct connector *right)
{
    if (part == NULL) {
        struct disjunct *disjunct = parse_get(sizeof *disjunct);
        *disjunct = (struct disjunct){*list, connectors_copy(left), connectors_copy(right), word, cost};
        *list = disjunct;
        return;
    }
    for (const struct expression *choice = part->parts; choice != NULL; choice = choice->next) {
        bool is_right = choice->kind == '+';
        struct connector *chosen =
            connector_new(choice->label, is_right ? connectors_copy(right) : connectors_copy(left));
        disjuncts_of(list, word, cost + 1, part->next, is_right ? left : chosen, is_right ? chosen : right);
        connectors_end(chosen);
    }
}

/* Labels that the words from one to another can offer on the side of right or left. */
static uint32_t labels_of(int from, int to, bool is_right)
{
    uint32_t labels = 0;
    for (int w = from; w < to; w++)
        for (const struct disjunct *disjunct = parse.disjuncts[w]; disjunct != NULL;
             disjunct = disjunct->next)
            for (const struct connector *c = is_right ? disjunct->right : disjunct->left; c != NULL;
                 c = c->next)
                labels |= 1u << c->label;
    return labels;
}

static bool can_fit(const struct connector *connector, uint32_t labels)
{
    for (; connector != NULL; connector = connector->next)
        if (!(labels >> connector->label & 1)) return false;
    return true;
}

/* Drops what has no partner; that may leave others without one. */
static bool prune(void)
{
    bool dropped = false;
    for (int w = 0; w < parse.n; w++) {
        uint32_t before = labels_of(0, w, true), behind = labels_of(w + 1, parse.n, false);
        for (struct disjunct **at = &parse.disjuncts[w], *disjunct; (disjunct = *at) != NULL;) {
            if (can_fit(disjunct->left, before) && can_fit(disjunct->right, behind)) {
                at = &disjunct->next;
                continue;
            }
            *at = disjunct->next;
            disjunct_end(disjunct);
            dropped = true;
        }
    }
    return dropped;
}

/* --- counting --------------------------------------------------------------------------------- */

static bool fits(const struct connector *a, const struct connector *b)
{
    return a && b && a->label == b->label;
}

/* The ways to link all words between two, and all of what is left of their connectors: those of `from` to
 * the right, and those of `to` to the left. */
static uint64_t ways(int from, int to, const struct connector *left, const struct connector *right);

static uint64_t ways_with(const struct disjunct *d, int word, int from, int to, const struct connector *left,
                          const struct connector *right)
{
    uint64_t total = 0, of_left = 0, of_right = 0;
    if (fits(left, d->left)) of_left = ways(from, word, left->next, d->left->next);
    if (fits(d->right, right)) of_right = ways(word, to, d->right->next, right->next);
    total += of_left * of_right;
    if (of_left > 0) total += of_left * ways(word, to, d->right, right);
    if (of_right > 0 && left == NULL) total += of_right * ways(from, word, NULL, d->left);
    return total;
}

static uint64_t ways(int from, int to, const struct connector *left, const struct connector *right)
{
    if (to == from + 1) return left == NULL && right == NULL;
    if (left == NULL && right == NULL) return 0;
    uint32_t key = (uint32_t)(from * 31 + to) * 2654435761u + (left ? left->id * 40503 + 1 : 0) +
                   (right ? right->id * 9973 + 7 : 0);
    struct entry **first = &parse.entries[(key ^ key >> 16) % COUNTED];
    for (const struct entry *entry = *first; entry != NULL; entry = entry->next)
        if (entry->from == from && entry->to == to && entry->left == left && entry->right == right)
            return entry->ways;
    uint64_t total = 0;
    for (int w = from + 1; w < to; w++)
        for (const struct disjunct *d = parse.disjuncts[w]; d != NULL; d = d->next)
            total += ways_with(d, w, from, to, left, right);
    struct entry *entry = parse_get(sizeof *entry);
    *entry = (struct entry){*first, left, right, from, to, total};
    *first = entry;
    return total;
}

static uint64_t ways_of_all(void)
{
    uint64_t total = 0;
    parse.entries = parse_get(COUNTED * sizeof *parse.entries);
    memset(parse.entries, 0, COUNTED * sizeof *parse.entries);
    for (const struct disjunct *d = parse.disjuncts[0]; d != NULL; d = d->next)
        if (d->left == NULL) total += ways(0, parse.n, d->right, NULL);
    for (int i = 0; i < COUNTED; i++)
        for (struct entry *entry = parse.entries[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            use_sum += entry->ways;
            parse_put(entry, sizeof *entry);
        }
    parse_put(parse.entries, COUNTED * sizeof *parse.entries);
    return total;
}

/* --- sentences -------------------------------------------------------------------------------- */

static void sentence(uint32_t *state)
{
    parse.n = SENTENCE_LEAST + (int)(measure_random(state) % (SENTENCE_MOST - SENTENCE_LEAST + 1));
    parse.ids = 1;
    for (int w = 0; w < parse.n; w++) {
        parse.words[w] = measure_random(state) % DICTIONARY;
        struct expression *expression = expression_of(parse.words[w]);
        parse.disjuncts[w] = NULL;
        for (const struct expression *way = expression->parts; way != NULL; way = way->next)
            disjuncts_of(&parse.disjuncts[w], parse.words[w], 0, way->parts, NULL, NULL);
        expression_end(expression);
    }
    while (prune()) {
    }
    use_sum += ways_of_all();
    for (int w = parse.n - 1; w >= 0; w--)
        for (struct disjunct *disjunct = parse.disjuncts[w], *next; disjunct != NULL; disjunct = next) {
            next = disjunct->next;
            disjunct_end(disjunct);
        }
}

static uint64_t parser(void)
{
    uint32_t state = 1;
    pool_child(&parse.pool, &root, 0);
    for (int i = times(SENTENCES, SENTENCES_SHORT); i > 0; i--) sentence(&state);
    pool_end(&parse.pool);
    return parse.objects;
}

#endif
