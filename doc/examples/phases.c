/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c: a compiler with a reap for each phase.
 *
 *     cc -o phases phases.c $(pkg-config --cflags --libs reap)
 *     ./phases 'square(x) = x * x; y = 2 + 3 * 4; square(y + 1);'
 *
 * Text becomes tokens, a tree, a smaller tree, code for a stack machine. Each phase works in a reap of its
 * own and ends that of the phase before; reapMove hands on what survives. Whether `f(x)` begins a definition
 * or is a call shows only at the `=` behind it: the parser tries one, and goes back to a mark to try the
 * other.
 *
 * An error, also of memory, jumps from any depth to compile(), where one reapDestroy frees everything.
 */
#include <ctype.h>
#include <reap.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct token {
    char kind; /* '0' a number, 'a' a name, '\0' the end; else the character itself */
    int length;
    const char *text; /* in the source, which stays */
};

struct node {
    char kind; /* '0', 'a', an operator, '(' a call of left, '=' a definition: parameter (or NULL) and body */
    int length;
    const char *text;
    double number;
    struct node *left, *right, *next; /* next: statement */
};

struct compiler {
    void *reap;                          /* of this compilation; parent of those below */
    void *tokens, *tree, *kept, *output; /* of the phases */
    struct token *token;                 /* the next one */
    int depth;
    char *code;
    size_t length;
    char *result;
    const char *message; /* why there is none */
    jmp_buf failed;
};

static _Noreturn void fail(struct compiler *c, const char *message)
{
    c->message = message;
    longjmp(c->failed, 1);
}

static void *checked(struct compiler *c, void *object)
{
    return object ? object : (fail(c, "no memory"), NULL);
}

/* --- text to tokens --------------------------------------------------------------------------- */

static struct token next_token(const char *text)
{
    size_t digits = strspn(text, "0123456789."), letters = 0;
    while (isalpha((unsigned char)text[letters])) letters++;
    if (digits) return (struct token){'0', (int)digits, text};
    return letters ? (struct token){'a', (int)letters, text} : (struct token){*text, *text != '\0', text};
}

static void lex(struct compiler *c, const char *text)
{
    size_t n = 0, room = 0;
    do {
        if (n == room) /* grows where it lies, at the bump pointer */
            c->token = checked(c, reapRealloc(&c->tokens, c->token, (room += room + 64) * sizeof *c->token));
        c->token[n] = next_token(text + strspn(text, " \t\n"));
        text = c->token[n].text + c->token[n].length;
    } while (c->token[n++].kind);
}

/* --- tokens to a tree ------------------------------------------------------------------------- */

static struct node *make(struct compiler *c, char kind, const struct token *token, struct node *left,
                         struct node *right)
{
    struct node *node = checked(c, reapMalloc(&c->tree, sizeof *node));
    *node = (struct node){kind, token->length, token->text, 0, left, right, NULL};
    return node;
}

static int take(struct compiler *c, char kind) { return c->token->kind == kind ? c->token++, 1 : 0; }

static void need(struct compiler *c, char kind)
{
    if (!take(c, kind)) fail(c, kind == ')' ? "expected )" : kind == ';' ? "expected ;" : "expected a value");
}

static int rank(char kind) { return kind == '+' || kind == '-' ? 1 : kind == '*' || kind == '/' ? 2 : 0; }

static struct node *expression(struct compiler *c, int above)
{
    struct token *token = c->token++;
    struct node *node = NULL;
    if (++c->depth > 500) fail(c, "nested too deeply");
    if (token->kind == '(' || (token->kind == 'a' && take(c, '('))) {
        node = expression(c, 0);
        need(c, ')');
        if (token->kind == 'a') node = make(c, '(', token, node, NULL);
    } else {
        c->token--;
        if (!take(c, '0')) need(c, 'a');
        node = make(c, token->kind, token, NULL, NULL);
        if (token->kind == '0') node->number = strtod(token->text, NULL);
    }
    while (rank(c->token->kind) > above) {
        struct token *sign = c->token++;
        node = make(c, sign->kind, sign, node, expression(c, rank(sign->kind)));
    }
    c->depth--;
    return node;
}

/* name = ... or name(parameter) = ...; NULL when it is neither. */
static struct node *definition(struct compiler *c)
{
    struct token *name = c->token;
    struct node *parameter = NULL;
    if (!take(c, 'a')) return NULL;
    if (take(c, '(')) {
        parameter = make(c, 'a', c->token, NULL, NULL);
        if (!take(c, 'a') || !take(c, ')')) return NULL;
    }
    return take(c, '=') ? make(c, '=', name, parameter, expression(c, 0)) : NULL;
}

static struct node *statement(struct compiler *c)
{
    struct token *start = c->token;
    reap_mark mark;
    reapMark(&c->tree, &mark);
    struct node *node = definition(c);
    if (!node) { /* what was made on the way is given back, and nobody has to know what that was */
        reapRewind(&c->tree, &mark);
        c->token = start;
        node = expression(c, 0);
    }
    reapUnmark(&c->tree, &mark);
    need(c, ';');
    return node;
}

/* --- a tree to a smaller one ------------------------------------------------------------------ */

/* Computes what can be, and moves the rest out of the tree, operands first: what stays behind goes with it.
 */
static struct node *fold(struct compiler *c, struct node *node)
{
    struct node *a = node->left ? node->left = fold(c, node->left) : NULL;
    struct node *b = node->right ? node->right = fold(c, node->right) : NULL;
    if (!rank(node->kind) || a->kind != '0' || b->kind != '0' || (node->kind == '/' && b->number == 0))
        return checked(c, reapMove(node, &c->tree, &c->kept));
    if (node->kind == '+') a->number += b->number;
    if (node->kind == '-') a->number -= b->number;
    if (node->kind == '*') a->number *= b->number;
    if (node->kind == '/') a->number /= b->number;
    reapFree(&c->kept, b); /* the next that is moved here may lie in its place */
    return a;
}

/* --- code ------------------------------------------------------------------------------------- */

static void put(struct compiler *c, const char *word, const struct node *node)
{
    char *line = node->kind == '0' ? reapPrintf(&c->kept, "  %s %.15g\n", word, node->number)
                                   : reapPrintf(&c->kept, "  %s %.*s\n", word, node->length, node->text);
    size_t length = strlen(checked(c, line));
    c->code = checked(c, reapRealloc(&c->output, c->code, c->length + length + 1));
    memcpy(c->code + c->length, line, length + 1);
    c->length += length;
    reapFree(&c->kept, line);
}

static void emit(struct compiler *c, const struct node *node)
{
    if (node->kind == '=') put(c, "define", node);
    if (node->kind == '=' && node->left)
        put(c, "store", node->left);
    else if (node->left)
        emit(c, node->left);
    if (node->right) emit(c, node->right);
    put(c,
        node->kind == '='   ? "end"
        : node->kind == '(' ? "call"
        : rank(node->kind)  ? "apply"
                            : "push",
        node);
}

/* --- all phases ------------------------------------------------------------------------------- */

static void begin(struct compiler *c, void **phase, const char *name)
{
    struct reap_options options = {.size = sizeof options, .name = name};
    if (reapCreateWith(phase, &c->reap, &options) != 0) fail(c, "no memory");
}

static void end(struct compiler *c, void **phase)
{
    reapReport(&c->reap, stderr); /* to see who holds what */
    reapDestroy(phase);
}

static char *run(struct compiler *c, void **result, const char *source)
{
    struct node *program = NULL, **last = &program, *next;
    begin(c, &c->tokens, "tokens");
    lex(c, source);
    begin(c, &c->tree, "tree");
    for (; c->token->kind; last = &(*last)->next) *last = statement(c);
    end(c, &c->tokens);
    begin(c, &c->kept, "kept");
    for (last = &program; *last; last = &(*last)->next) {
        next = (*last)->next;
        *last = fold(c, *last);
        (*last)->next = next;
    }
    end(c, &c->tree);
    begin(c, &c->output, "output");
    c->code = checked(c, reapStrdup(&c->output, ""));
    for (struct node *node = program; node; node = node->next) emit(c, node);
    end(c, &c->kept);
    return checked(c, reapMove(c->code, &c->output, result));
}

/* The code for a program, in a reap of the caller's; or NULL, and *message says why. Has no more than limit
 * bytes at any time. */
static char *compile(void **result, const char *source, size_t limit, const char **message)
{
    void *reap;
    struct reap_options options = {.size = sizeof options, .limit = limit, .name = "compilation"};
    *message = "no memory";
    if (reapCreateWith(&reap, result, &options) != 0) return NULL;
    struct compiler *c = reapCalloc(&reap, 1, sizeof *c); /* not on the stack: see setjmp(3) */
    if (c) c->reap = reap;
    if (c && setjmp(c->failed) == 0) c->result = run(c, result, source);
    char *code = c ? c->result : NULL;
    if (c) *message = c->message;
    reapDestroy(&reap); /* phases that did not end are its children */
    return code;
}

int main(int argc, char **argv)
{
    void *reap;
    const char *message = "phases PROGRAM [LIMIT]";
    reapCreate(&reap, NULL);
    if (!reap) return perror("reapCreate"), EXIT_FAILURE;
    size_t limit = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    char *code = argc > 1 ? compile(&reap, argv[1], limit, &message) : NULL;
    if (code)
        fputs(code, stdout);
    else
        fprintf(stderr, "phases: %s\n", message);
    reapDestroy(&reap);
    return code ? EXIT_SUCCESS : EXIT_FAILURE;
}
