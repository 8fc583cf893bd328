/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.c: mistakes, in forked children, which must end with a line that names the call and the pointer. */
#include "fuzz_ops.h"

#include <signal.h>
#include <sys/mman.h>

#if FUZZ_SANITIZED
#define free hoard_free
#define FREE "hoard_free"
#else
#define FREE "free"
#endif

enum { WILD_KINDS = 10 };

/* Some near what lives, some far from everything. NULL: none of this kind now. */
static void *wild(const struct record *rec, struct node *node)
{
    struct object *object = reaps_object(rec);
    uintptr_t near = (uintptr_t)(node->newest ? node->newest->at : NULL);
    char *at = object ? (char *)object->at : NULL;
    long step = ((long)(rec->size % 64) - 32) * 16;
    switch (rec->extra % WILD_KINDS) {
    case 0: return at ? at + 1 + rec->size % (object->usable - 1) : NULL;
    case 1: return near ? (void *)(near + (uintptr_t)step) : NULL;
    case 2: return !at ? NULL : at + 16384 * ((long)(rec->size % 8) - 4) + step;
    case 3: return (void *)((uintptr_t)node->handle + (uintptr_t)step);
    case 4: return (void *)((uintptr_t)rec->size * 0x10001 * 16);
    case 5: return (void *)((uintptr_t)rec->size * UINT64_C(0x9e3779b97f4a7c15));
    case 6: return (char *)__builtin_frame_address(0) - rec->size % 4096;
    case 7: return (void *)((uintptr_t)1 << rec->size % 64);
    case 8:
        return (void *)((uintptr_t)node->handle / 16384 * 16384 + (uintptr_t)(rec->size % 512) * 16 - 4096);
    default: return at ? at + object->usable : NULL;
    }
}

/* Returns true if, by the model, a pointer is the start of a live object of a reap (NULL: of any reap). */
static bool is_alive(const void *pointer, const struct node *node)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct object *object = &me->objects[i];
        if (atomic_load(&object->where) != HOME || object->at != pointer) continue;
        if (!node || (object->reap != NONE && &me->nodes[object->reap] == node)) return true;
    }
    return false;
}

enum { MISTAKES = 10 };

static void make(const struct record *rec, struct node *node, void *pointer)
{
    switch (rec->slot % MISTAKES) {
    case 0:
    case 1:
    case 2: reapFree(handle_of(node), pointer); break;
    case 3: reapRealloc(handle_of(node), pointer, 100); break;
    case 4: reapMove(pointer, handle_of(node), handle_of(node)); break;
    case 5: reapUsableSize(pointer); break;
    case 6: free(pointer); break;
    case 7: reapFreeAny(pointer); break;
    case 8:
        reapFreeAny(pointer);
        reapFreeAny(pointer);
        break;
    default: reapFree(handle_of(node), pointer); reapFree(handle_of(node), pointer);
    }
}

static const char *const calls[MISTAKES] = {"reapFree",    "reapFree",       "reapFree", "reapRealloc",
                                            "reapMove",    "reapUsableSize", FREE,       "reapFreeAny",
                                            "reapFreeAny", "reapFree"};

/* Runs a mistake in a child; what it said, and its status. */
static int status_of(void (*mistake)(void *arg), void *arg, char *said, size_t size)
{
    int ends[2], status;
    if (pipe(ends) != 0) return -1;
    pid_t pid = _Fork(); /* without handlers: it goes on where this one is, in the middle of a call perhaps */
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        alarm(20);
        mistake(arg);
        _exit(0);
    }
    close(ends[1]);
    size_t have = 0;
    ssize_t n;
    while (pid > 0 && have < size - 1 && (n = read(ends[0], said + have, size - 1 - have)) > 0)
        have += (size_t)n;
    said[have] = '\0';
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
    return status;
}

void must_die(const char *call, const void *pointer, void (*mistake)(void *arg), void *arg)
{
    char said[2000], expected[100];
    if (fuzz_threaded) return;
    int status = status_of(mistake, arg, said, sizeof said);
    if (status == -1) return;
    snprintf(expected, sizeof expected, "reap: %s(0x%lx): ", call, (unsigned long)pointer);
    CHECK(!WIFSIGNALED(status) || WTERMSIG(status) == SIGABRT,
          "a mistake in %s ends with signal %d, not a line", call, WTERMSIG(status));
    CHECK(WIFSIGNALED(status), "a mistake in %s is not noticed", call);
    CHECK(strncmp(said, expected, strlen(expected)) == 0, "a mistake in %s ends with another line: %.200s",
          call, said);
}

struct wild_call {
    const struct record *rec;
    struct node *node;
    void *pointer;
};

static void make_wild(void *arg)
{
    const struct wild_call *call = arg;
    make(call->rec, call->node, call->pointer);
}

void do_misuse(const struct record *rec)
{
    unsigned kind = rec->slot % MISTAKES;
    struct node *node = node_of(rec);
    void *owner;
    if (!node || me->entered_depth || node->shared) return;
    look_at_all(); /* of what free() got they take note now, and not when it is freed again */
    void *pointer = wild(rec, node);
    bool twice = kind >= MISTAKES - 2;
    if (twice) pointer = node->newest ? node->newest->at : NULL;
    if (!pointer) return;
    bool of_any = kind >= 5 && kind <= 7;
    if (!twice && is_alive(pointer, of_any ? NULL : node)) return;
    if (kind == 6 && (FUZZ_SANITIZED || rec->extra % WILD_KINDS != 0))
        return; /* it may be a block of libc's */
    if (kind == 7 && (rec->extra % WILD_KINDS != 0 || reap_of(pointer, &owner) != 0))
        return; /* it may be in no reap, which is no mistake */
    SAY("%s(...%p); /* a mistake, in a child */", calls[kind], pointer);
    must_die(calls[kind], pointer, make_wild, &(struct wild_call){rec, node, pointer});
}
