/* SPDX-License-Identifier: Apache-2.0 */
/* pools_front.h: what the two compilers share (pools_gcc.h, pools_lcc.h): a scanner, which
 * allocates nothing; symbols; and a parser of expressions, which builds trees. pools_source.h has the
 * language.
 *
 *     tree    +------+-------+--------+-------+------+----------------------+
 *             | left | right | symbol | value | kind | words, by the kind   |   32 to 72 bytes
 *             +------+-------+--------+-------+------+----------------------+
 */
#ifndef POOLS_FRONT_H
#define POOLS_FRONT_H

#include "pools.h"
#include "pools_source.h"

#include <ctype.h>

enum { GCC_FILES = 80, LCC_FILES = 72, FILES_SHORT = 1, SYMBOLS = 256 };

struct token {
    const char *start;
    size_t length;
    /* a for a name, 0 for a number, i for int, f for if, r for return, or the character; \0 at the end */
    char kind;
};

struct symbol {
    struct symbol *next; /* with the same hash */
    struct symbol *of_scope;
    const char *name;
    size_t length;
    uint32_t hash, uses;
};

struct tree {
    struct tree *left, *right;
    struct symbol *symbol;
    uint32_t value;
    char kind; /* a token's, or an operator */
    uint64_t words[];
};

/* A compiler reads on from `at`; token is what it looks at. The one that it is says where names are found. */
struct front {
    const char *at, *end;
    struct token token;
    struct pool *trees;
    struct symbol *table[SYMBOLS];
    struct symbol *(*symbol_of)(struct front *front, const struct token *name);
    uint64_t objects;
};

static inline void *get_for(struct front *front, struct pool *pool, size_t size)
{
    void *object = pool_get(pool, size);
    measure_need(object != NULL, "no memory");
    front->objects++;
    return object;
}

static bool token_is(const struct token *token, const char *word)
{
    return token->length == strlen(word) && memcmp(token->start, word, token->length) == 0;
}

static void scan(struct front *front)
{
    const char *at = front->at, *end = front->end;
    while (at < end && isspace((unsigned char)*at)) at++;
    struct token token = {.start = at};
    if (at < end) {
        token.kind = *at++;
        if (isdigit((unsigned char)token.kind)) {
            while (at < end && isdigit((unsigned char)*at)) at++;
            token.kind = '0';
        } else if (islower((unsigned char)token.kind)) {
            while (at < end && (islower((unsigned char)*at) || *at == '_')) at++;
            token.kind = 'a';
        }
        token.length = (size_t)(at - token.start);
        if (token_is(&token, "int")) token.kind = 'i';
        if (token_is(&token, "if")) token.kind = 'f';
        if (token_is(&token, "return")) token.kind = 'r';
    }
    front->at = at;
    front->token = token;
}

static struct token expect(struct front *front, char kind)
{
    struct token token = front->token;
    measure_need(token.kind == kind, "the compiler does not understand its source");
    scan(front);
    return token;
}

static uint32_t name_hash(const char *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static struct symbol *symbol_found(const struct front *front, const char *name, size_t length, uint32_t hash)
{
    struct symbol *symbol = front->table[hash % SYMBOLS];
    while (symbol != NULL && (symbol->length != length || memcmp(symbol->name, name, length) != 0))
        symbol = symbol->next;
    return symbol;
}

/* In front of those that it hides. */
static struct symbol *symbol_new(struct front *front, struct pool *pool, const char *name, size_t length,
                                 uint32_t hash)
{
    struct symbol *symbol = get_for(front, pool, sizeof *symbol);
    *symbol = (struct symbol){front->table[hash % SYMBOLS], NULL, name, length, hash, 0};
    return front->table[hash % SYMBOLS] = symbol;
}

/* A scope ends: its symbols, the last of which is given, hide nothing any more. */
static void symbols_hide(struct front *front, const struct symbol *last)
{
    for (; last != NULL; last = last->of_scope) {
        use_sum += last->uses;
        front->table[last->hash % SYMBOLS] = last->next;
    }
}

/* --- trees ------------------------------------------------------------------------------------ */

static inline unsigned tree_words(char kind)
{
    return kind == '0' ? 0 : kind == 'a' ? 1 : kind == '=' ? 5 : 3;
}

static struct tree *tree_new(struct front *front, char kind, struct tree *left, struct tree *right,
                             uint32_t value)
{
    struct tree *tree = get_for(front, front->trees, sizeof *tree + tree_words(kind) * sizeof tree->words[0]);
    *tree = (struct tree){.left = left, .right = right, .value = value, .kind = kind};
    for (unsigned i = 0; i < tree_words(kind); i++) tree->words[i] = value + i;
    return tree;
}

static struct tree *parse_sum(struct front *front);

static struct tree *parse_factor(struct front *front)
{
    struct token token = front->token;
    if (token.kind == '(') {
        scan(front);
        struct tree *inner = parse_sum(front);
        expect(front, ')');
        return inner;
    }
    if (token.kind == '0') {
        scan(front);
        return tree_new(front, '0', NULL, NULL, (uint32_t)strtoul(token.start, NULL, 10));
    }
    expect(front, 'a');
    struct symbol *symbol = front->symbol_of(front, &token);
    struct tree *tree = tree_new(front, 'a', NULL, NULL, symbol->hash);
    tree->symbol = symbol;
    symbol->uses++;
    return tree;
}

static struct tree *parse_product(struct front *front)
{
    struct tree *tree = parse_factor(front);
    while (front->token.kind == '*' || front->token.kind == '&') {
        char kind = front->token.kind;
        scan(front);
        struct tree *right = parse_factor(front);
        tree = tree_new(front, kind, tree, right, tree->value + right->value);
    }
    return tree;
}

static struct tree *parse_sum(struct front *front)
{
    struct tree *tree = parse_product(front);
    while (front->token.kind == '+' || front->token.kind == '-') {
        char kind = front->token.kind;
        scan(front);
        struct tree *right = parse_product(front);
        tree = tree_new(front, kind, tree, right, tree->value - right->value);
    }
    return tree;
}

/* return expression; or NAME = expression; */
static struct tree *parse_simple(struct front *front)
{
    struct tree *left = NULL;
    if (front->token.kind == 'a')
        left = parse_factor(front), expect(front, '=');
    else
        expect(front, 'r');
    struct tree *right = parse_sum(front);
    expect(front, ';');
    return tree_new(front, '=', left, right, right->value);
}

/* All that is in a node, its name's bytes too. */
static uint32_t tree_read(const struct tree *tree)
{
    uint64_t read = tree->value + (unsigned char)tree->kind;
    for (unsigned i = 0; i < tree_words(tree->kind); i++) read += tree->words[i];
    if (tree->symbol != NULL) read += name_hash(tree->symbol->name, tree->symbol->length);
    return (uint32_t)(read ^ read >> 32);
}

#endif
