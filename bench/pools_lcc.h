/* SPDX-License-Identifier: Apache-2.0 */
/* pools_lcc.h: the workload `lcc`, compiled for each pool (pools.h): a compiler with three regions, after
 * what Berger tells of lcc and mudlle (thesis 2002, 5.2) and Hanson of lcc's (Software, Practice and
 * Experience, 1990).
 *
 *     permanent   names and global symbols, for a file
 *     function    local symbols, nodes, instructions and their text; ends with the function
 *     statement   trees; cleared after each statement
 *
 * A statement's tree becomes nodes, of which equal ones are one, and these become instructions with
 * registers. At a function's end the instructions' text is written into the function's region, and read. No
 * object ends alone, though most are dead when the next statement begins: that is the drag of the thesis's
 * table 5.4.
 */
#ifndef POOLS_LCC_H
#define POOLS_LCC_H

#include "pools_front.h"

enum { LCC_NODES = 512, LCC_REGISTERS = 8, LCC_LINE = 64 };

struct lcc_node {
    struct lcc_node *next; /* with the same hash */
    const struct lcc_node *left, *right;
    uint32_t kind, value, uses, reg;
};

struct lcc_code {
    struct lcc_code *next;
    const struct lcc_node *node;
    char *text;
    uint32_t from, to;
};

struct lcc {
    struct front front; /* at the beginning, so that it is found from there */
    struct pool permanent, function, statement;
    bool is_global;
    struct symbol *locals;
    struct lcc_node *nodes[LCC_NODES];
    struct lcc_code *first, **last;
    uint32_t registers;
};

/* Names are permanent, and so are the symbols outside of functions. */
static struct symbol *lcc_declare(struct lcc *lcc, const struct token *token)
{
    struct front *front = &lcc->front;
    uint32_t hash = name_hash(token->start, token->length);
    struct symbol *known = symbol_found(front, token->start, token->length, hash);
    const char *name =
        known != NULL ? known->name
                      : memcpy(get_for(front, &lcc->permanent, token->length), token->start, token->length);
    struct symbol *symbol =
        symbol_new(front, lcc->is_global ? &lcc->permanent : &lcc->function, name, token->length, hash);
    if (lcc->is_global) return symbol;
    symbol->of_scope = lcc->locals;
    return lcc->locals = symbol;
}

static struct symbol *lcc_symbol(struct front *front, const struct token *name)
{
    struct symbol *symbol =
        symbol_found(front, name->start, name->length, name_hash(name->start, name->length));
    return symbol != NULL ? symbol : lcc_declare((struct lcc *)front, name);
}

/* --- nodes and instructions ----------------------------------------------------------------------- */

static void lcc_forget_nodes(struct lcc *lcc) { memset(lcc->nodes, 0, sizeof lcc->nodes); }

static void lcc_emit(struct lcc *lcc, struct lcc_node *node)
{
    struct lcc_code *code = get_for(&lcc->front, &lcc->function, sizeof *code);
    node->reg = lcc->registers++ % LCC_REGISTERS;
    *code = (struct lcc_code){NULL, node, NULL, node->left ? node->left->reg : 0, node->reg};
    *lcc->last = code;
    lcc->last = &code->next;
}

/* The node with this meaning: one that was there, or a new one with its instruction. */
static struct lcc_node *lcc_node_of(struct lcc *lcc, const struct tree *tree)
{
    struct lcc_node *left = tree->left ? lcc_node_of(lcc, tree->left) : NULL;
    struct lcc_node *right = tree->right ? lcc_node_of(lcc, tree->right) : NULL;
    uint32_t value = tree_read(tree), kind = (unsigned char)tree->kind;
    uint32_t hash = value * 31 + kind + (left ? left->value * 7 : 0) + (right ? right->value * 13 : 0);
    struct lcc_node **first = &lcc->nodes[hash % LCC_NODES];
    for (struct lcc_node *node = *first; node != NULL; node = node->next)
        if (node->kind == kind && node->value == value && node->left == left && node->right == right) {
            node->uses++;
            return node;
        }
    struct lcc_node *node = get_for(&lcc->front, &lcc->function, sizeof *node);
    *node = (struct lcc_node){*first, left, right, kind, value, 1, 0};
    lcc_emit(lcc, node);
    return *first = node;
}

static char *lcc_text(struct lcc *lcc, const struct lcc_code *code)
{
    char line[LCC_LINE], *at = line;
    uint32_t value = code->node->value;
    *at++ = (char)code->node->kind;
    *at++ = (char)('0' + code->from);
    *at++ = (char)('0' + code->to);
    for (; value > 0; value /= 16) *at++ = "0123456789abcdef"[value % 16];
    for (uint32_t n = code->node->uses; n > 0 && at < line + LCC_LINE - 1; n--) *at++ = '+';
    *at++ = '\0';
    return memcpy(get_for(&lcc->front, &lcc->function, (size_t)(at - line)), line, (size_t)(at - line));
}

static void lcc_generate(struct lcc *lcc)
{
    for (struct lcc_code *code = lcc->first; code != NULL; code = code->next)
        code->text = lcc_text(lcc, code);
    for (const struct lcc_code *code = lcc->first; code != NULL; code = code->next)
        use_sum += name_hash(code->text, strlen(code->text));
}

/* --- the compiler ------------------------------------------------------------------------------ */

static void lcc_declaration(struct lcc *lcc)
{
    struct token name = expect(&lcc->front, 'a');
    lcc_declare(lcc, &name);
}

static void lcc_block(struct lcc *lcc)
{
    struct symbol *outer = lcc->locals;
    lcc->locals = NULL;
    expect(&lcc->front, '{');
    expect(&lcc->front, 'i');
    lcc_declaration(lcc);
    while (lcc->front.token.kind == ',') expect(&lcc->front, ','), lcc_declaration(lcc);
    expect(&lcc->front, ';');
    while (lcc->front.token.kind != '}') {
        bool is_if = lcc->front.token.kind == 'f';
        if (is_if) expect(&lcc->front, 'f');
        if (lcc->front.token.kind == '{') {
            lcc_block(lcc);
            continue;
        }
        lcc_node_of(lcc, is_if ? parse_factor(&lcc->front) : parse_simple(&lcc->front));
        pool_clear(&lcc->statement);
        if (is_if) lcc_forget_nodes(lcc);
    }
    expect(&lcc->front, '}');
    symbols_hide(&lcc->front, lcc->locals);
    lcc->locals = outer;
}

static void lcc_function(struct lcc *lcc)
{
    expect(&lcc->front, 'i');
    lcc->is_global = true;
    lcc_declaration(lcc);
    lcc->is_global = false;
    pool_child(&lcc->function, &root, 3000);
    lcc_forget_nodes(lcc);
    lcc->first = NULL;
    lcc->last = &lcc->first;
    for (const char *mark = "(,"; *mark != '\0'; mark++) {
        expect(&lcc->front, *mark);
        expect(&lcc->front, 'i');
        lcc_declaration(lcc);
    }
    expect(&lcc->front, ')');
    lcc_block(lcc);
    symbols_hide(&lcc->front, lcc->locals);
    lcc->locals = NULL;
    lcc_generate(lcc);
    pool_end(&lcc->function);
}

static uint64_t lcc_file(void)
{
    struct lcc lcc = {.front = {.at = source, .end = source + source_length, .symbol_of = lcc_symbol}};
    pool_many(true);
    pool_child(&lcc.permanent, &root, 1000);
    pool_child(&lcc.statement, &root, 100);
    lcc.front.trees = &lcc.statement;
    for (scan(&lcc.front); lcc.front.token.kind != '\0';) lcc_function(&lcc);
    pool_end(&lcc.statement);
    pool_end(&lcc.permanent);
    return lcc.front.objects;
}

static uint64_t lcc(void)
{
    uint64_t objects = 0;
    source_write(brief);
    restart_clocks();
    for (int i = times(LCC_FILES, FILES_SHORT); i > 0; i--) objects += lcc_file();
    return objects;
}

#endif
