/* SPDX-License-Identifier: Apache-2.0 */
/* pools_gcc.h: the workload `gcc`, compiled for each pool (pools.h): the front end of a compiler on three
 * obstacks, after what Berger tells of 176.gcc (thesis 2002, 4.2.2 and 5.2.2), whose parser took most of an
 * obstack's calls.
 *
 *     scopes      names and symbols; a block marks it when it begins, and goes back to the mark at its end
 *     momentary   the tree of a statement; goes back to its mark when instructions are made of it
 *     insns       instructions; they are read, and end, when all functions of a file have some
 *
 * A name grows by characters in scopes, as its length is not known. When the symbol is there already, the
 * name goes again: it is the last object. Where pools cannot go back to a mark, a scope and a statement
 * have a child each; where an object cannot grow, it doubles, and moves; where the last object cannot be
 * freed, it stays.
 */
#ifndef POOLS_GCC_H
#define POOLS_GCC_H

#include "pools_front.h"

#ifdef POOL_STACKS
/* Objects from here on end together. */
struct level {
    struct pool *pool;
    struct mark mark;
};

static inline void level_begin(struct level *level, struct pool *outer)
{
    level->pool = outer;
    pool_mark(outer, &level->mark);
}

static inline void level_end(struct level *level) { pool_release(level->pool, &level->mark); }
#else
struct level {
    struct pool *pool, own;
};

static inline void level_begin(struct level *level, struct pool *outer)
{
    pool_child(&level->own, outer, 30);
    level->pool = &level->own;
}

static inline void level_end(struct level *level) { pool_end(&level->own); }
#endif

/* --- an object that grows by bytes ----------------------------------------------------------------- */

#ifndef POOL_GROWS
struct growing {
    char *data;
    size_t length, room;
};

static inline void grow_longer(struct pool *pool, struct growing *growing)
{
    size_t room = growing->room > 0 ? 2 * growing->room : 16;
    char *data;
#if defined POOL_STACKS
    data = growing->data ? pool_resize_last(pool, growing->data, growing->room, room) : pool_get(pool, room);
#elif defined POOL_FREES
    data = growing->data ? pool_resize(pool, growing->data, growing->room, room) : pool_get(pool, room);
#else
    data = pool_get(pool, room);
    if (growing->length > 0 && data != NULL) memcpy(data, growing->data, growing->length);
#endif
    measure_need(data != NULL, "no memory");
    *growing = (struct growing){data, growing->length, room};
}

static inline void pool_grow(struct pool *pool, struct growing *growing, char byte)
{
    if (growing->length == growing->room) grow_longer(pool, growing);
    growing->data[growing->length++] = byte;
}

static inline char *pool_grown(struct pool *pool, struct growing *growing)
{
    (void)pool;
    return growing->data;
}
#endif

static inline void drop_last(struct pool *pool, char *object, size_t size)
{
#if defined POOL_STACKS
    (void)size;
    pool_put_last(pool, object);
#elif defined POOL_FREES
    pool_put(pool, object, size);
#else
    (void)pool, (void)object, (void)size;
#endif
}

/* --- the compiler ------------------------------------------------------------------------------ */

struct scope {
    struct level level;
    struct symbol *last;
};

struct insn {
    struct insn *next;
    uint64_t code, operands[3];
};

struct gcc {
    struct front front; /* at the beginning, so that it is found from there */
    struct pool scopes, momentary, insns;
    struct scope *scope, *file;
    struct insn *first, **last;
};

/* The name's bytes, for as long as the scope lasts; the symbol that it has, if there is one. */
static struct symbol *gcc_look(struct gcc *gcc, struct scope *scope, const struct token *name,
                               bool is_declared)
{
    struct pool *pool = scope->level.pool;
    struct growing growing = {0};
    for (size_t i = 0; i < name->length; i++) pool_grow(pool, &growing, name->start[i]);
    char *bytes = pool_grown(pool, &growing);
    uint32_t hash = name_hash(bytes, name->length);
    struct symbol *symbol = is_declared ? NULL : symbol_found(&gcc->front, bytes, name->length, hash);
    gcc->front.objects++;
    if (symbol != NULL) {
        drop_last(pool, bytes, name->length);
        return symbol;
    }
    symbol = symbol_new(&gcc->front, pool, bytes, name->length, hash);
    symbol->of_scope = scope->last;
    return scope->last = symbol;
}

/* A name that nobody has declared is an error; it is said once in a block, so it is declared there. */
static struct symbol *gcc_symbol(struct front *front, const struct token *name)
{
    struct gcc *gcc = (struct gcc *)front;
    return gcc_look(gcc, gcc->scope, name, false);
}

static void gcc_declare(struct gcc *gcc)
{
    struct token name = expect(&gcc->front, 'a');
    gcc_look(gcc, gcc->scope, &name, true);
}

static void gcc_emit(struct gcc *gcc, uint64_t code, uint32_t a, uint32_t b, uint32_t value)
{
    struct insn *insn = get_for(&gcc->front, &gcc->insns, sizeof *insn);
    *insn = (struct insn){NULL, code, {a, b, value}};
    *gcc->last = insn;
    gcc->last = &insn->next;
}

/* The register with its value. */
static uint32_t gcc_expand(struct gcc *gcc, const struct tree *tree)
{
    uint32_t a = tree->left ? gcc_expand(gcc, tree->left) : 0,
             b = tree->right ? gcc_expand(gcc, tree->right) : 0;
    gcc_emit(gcc, (unsigned char)tree->kind, a, b, tree_read(tree));
    return a * 3 + b * 5 + 1;
}

static void gcc_expression(struct gcc *gcc, struct tree *(*parse)(struct front *front))
{
    struct level level;
    level_begin(&level, &gcc->momentary);
    gcc->front.trees = level.pool;
    gcc_expand(gcc, parse(&gcc->front));
    level_end(&level);
}

static void gcc_block(struct gcc *gcc);

static void gcc_statement(struct gcc *gcc)
{
    if (gcc->front.token.kind == '{') {
        gcc_block(gcc);
    } else if (gcc->front.token.kind == 'f') {
        expect(&gcc->front, 'f');
        gcc_expression(gcc, parse_factor);
        gcc_block(gcc);
    } else {
        gcc_expression(gcc, parse_simple);
    }
}

static void scope_begin(struct gcc *gcc, struct scope *scope)
{
    level_begin(&scope->level, gcc->scope->level.pool);
    scope->last = NULL;
    gcc->scope = scope;
}

static void scope_end(struct gcc *gcc, struct scope *scope, struct scope *outer)
{
    symbols_hide(&gcc->front, scope->last);
    gcc->scope = outer;
    level_end(&scope->level);
}

static void gcc_block(struct gcc *gcc)
{
    struct scope scope, *outer = gcc->scope;
    scope_begin(gcc, &scope);
    expect(&gcc->front, '{');
    expect(&gcc->front, 'i');
    gcc_declare(gcc);
    while (gcc->front.token.kind == ',') expect(&gcc->front, ','), gcc_declare(gcc);
    expect(&gcc->front, ';');
    while (gcc->front.token.kind != '}') gcc_statement(gcc);
    expect(&gcc->front, '}');
    scope_end(gcc, &scope, outer);
}

static void gcc_function(struct gcc *gcc)
{
    struct scope scope, *outer = gcc->scope;
    expect(&gcc->front, 'i');
    gcc_declare(gcc);
    scope_begin(gcc, &scope);
    for (const char *mark = "(,"; *mark != '\0'; mark++) {
        expect(&gcc->front, *mark);
        expect(&gcc->front, 'i');
        gcc_declare(gcc);
    }
    expect(&gcc->front, ')');
    gcc_block(gcc);
    scope_end(gcc, &scope, outer);
}

static uint64_t gcc_file(void)
{
    struct gcc gcc = {.front = {.at = source, .end = source + source_length, .symbol_of = gcc_symbol}};
    struct scope file = {.level = {.pool = &gcc.scopes}};
    pool_many(true);
    pool_child(&gcc.scopes, &root, 1000);
    pool_child(&gcc.momentary, &root, 100);
    pool_child(&gcc.insns, &root, 100000);
    gcc.scope = gcc.file = &file;
    gcc.last = &gcc.first;
    for (scan(&gcc.front); gcc.front.token.kind != '\0';) gcc_function(&gcc);
    for (const struct insn *insn = gcc.first; insn != NULL; insn = insn->next)
        use_sum += insn->code * 7 + insn->operands[0] + insn->operands[1] + insn->operands[2];
    symbols_hide(&gcc.front, file.last);
    pool_end(&gcc.insns);
    pool_end(&gcc.momentary);
    pool_end(&gcc.scopes);
    return gcc.front.objects;
}

static uint64_t gcc(void)
{
    uint64_t objects = 0;
    source_write(brief);
    restart_clocks();
    for (int i = times(GCC_FILES, FILES_SHORT); i > 0; i--) objects += gcc_file();
    return objects;
}

#endif
