/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: runs a program, beside the model, in this process. */
#include "fuzz_ops.h"

#include <pthread.h>
#include <stdarg.h>

__thread struct world *me;
bool fuzz_verbose, fuzz_all, fuzz_threaded, fuzz_libfuzzer, fuzz_leaves;
_Atomic(uint32_t) *fuzz_progress;
__thread const char *fuzz_running = "nothing";

static struct world worlds[THREADS] __attribute__((aligned(128)));

/* By write, so that nothing is allocated. */
void say(const char *format, ...)
{
    char line[700];
    int n = 0;
    if (fuzz_threaded) n = snprintf(line, sizeof line, "/* thread %u */ ", me->number);
    n += snprintf(line + n, sizeof line - (size_t)n, "%*s", (int)(me->nest * 4), "");
    va_list args;
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (me->by_self && strstr(line, "&r[") && n < 600) n += sprintf(line + n, " /* r for &r */");
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    line[n++] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)n) < 0) return;
}

void failed(const char *file, int line, const char *format, ...)
{
    char text[500];
    const char *slash = strrchr(file, '/');
    int n =
        snprintf(text, sizeof text, "mismatch: %s:%d: %s: ", slash ? slash + 1 : file, line, fuzz_running);
    va_list args;
    va_start(args, format);
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, format, args);
    va_end(args);
    if (n > (int)sizeof text - 2) n = sizeof text - 2;
    text[n++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)n) < 0 || fuzz_libfuzzer) abort();
    _exit(3);
}

static void run_record(const struct record *rec)
{
    const struct op *op = &ops[rec->op % op_count];
    if (!op->run || fuzz_without[rec->op % op_count]) return;
    if (op->flags & ALONE && fuzz_threaded) return;
    if (op->flags & TOGETHER && !fuzz_threaded) return;
    fuzz_running = op->name;
    me->by_self = (rec->extra ^ rec->extra >> 3 ^ rec->slot ^ rec->slot >> 5 ^ rec->size >> 2) & 1;
    op->run(rec);
    if (me->nest) return;
    check_limits();
    if (op->check) op->check(rec);
    if (fuzz_all) check_all();
}

void run_nested(struct record rec, int reap)
{
    (void)reap;
    if (!(ops[rec.op % op_count].flags & NESTED) || me->nest >= NEST || me->met != NONE) return;
    int asked = me->asked;
    struct object *held = me->held;
    const char *running = fuzz_running;
    bool by_self = me->by_self;
    me->asked = NONE;
    me->held = NULL;
    me->nest++;
    run_record(&rec);
    me->nest--;
    fuzz_running = running;
    me->by_self = by_self;
    me->asked = asked;
    me->held = held;
}

static void begin_world(unsigned number, struct program *program)
{
    struct world *world = &worlds[number];
    memset(world, 0, sizeof *world);
    world->number = number;
    world->program = program;
    world->asked = world->met = NONE;
}

static void run_world(struct world *world)
{
    const struct program *program = world->program;
    me = world;
    for (uint32_t i = 0; i < program->count; i++) {
        const struct record *rec = &program->records[i];
        if (rec->thread % program->threads != world->number) continue;
        if (fuzz_progress) atomic_store_explicit(fuzz_progress, i + 1, memory_order_relaxed);
        run_record(rec);
        if (fuzz_threaded) answer_call();
    }
    while (me->entered_depth) do_leave(&(struct record){0});
    take_charges_back();
}

static void *thread(void *world)
{
    run_world(world);
    return NULL;
}

static void run_threads(struct program *program)
{
    pthread_t threads[THREADS];
    threads_begin(worlds, program);
    for (unsigned i = 1; i < program->threads; i++) pthread_create(&threads[i], NULL, thread, &worlds[i]);
    run_world(&worlds[0]);
    for (unsigned i = 1; i < program->threads; i++) pthread_join(threads[i], NULL);
}

static const struct node *node_with(const void *handle)
{
    for (unsigned i = 0; i < THREADS * REAPS; i++)
        if (worlds[i / REAPS].nodes[i % REAPS].handle == handle) return &worlds[i / REAPS].nodes[i % REAPS];
    return NULL;
}

/* What the library has to write at exit of each reap that is left, up to its bytes. */
static void tell_left(struct world *world)
{
    char name[4200] = "", above[4200] = "", line[600];
    me = world;
    look_at_all();
    for (unsigned i = 0; i < REAPS; i++) {
        const struct node *node = &world->nodes[i],
                          *parent = node->parent_handle ? node_with(node->parent_handle) : NULL;
        if (!node->handle) continue;
        *name = *above = '\0';
        if (node->named) name_of(node, name);
        if (parent && parent->named) name_of(parent, above);
        int n = snprintf(line, sizeof line, "left: never destroyed: %.100s%s%p%s%.100s: %zu objects, %zu \n",
                         name, *name ? " " : "", node->handle, *above ? " below " : "", above, node->objects,
                         node->live);
        if (write(STDERR_FILENO, line, (size_t)n) != n) return;
    }
}

void run_program(const struct program *given)
{
    struct program program = *given;
    if (program.threads == 0) program.threads = 1;
    if (program.threads > THREADS) program.threads = THREADS;
    if (program.reaps == 0 || program.reaps > REAPS) program.reaps = REAPS;
    if (program.slots == 0 || program.slots > SLOTS) program.slots = SLOTS;
    fuzz_threaded = program.threads > 1;
    for (unsigned i = 0; i < program.threads; i++) begin_world(i, &program);
    if (fuzz_threaded)
        run_threads(&program);
    else
        run_world(&worlds[0]);
    fuzz_running = "the end";
    for (unsigned i = 0; i < program.threads; i++) {
        me = &worlds[i];
        recall_all();
        check_all();
        if (!fuzz_leaves) end_world();
    }
    if (fuzz_threaded) threads_end(worlds);
    for (unsigned i = 0; fuzz_leaves && i < program.threads; i++) tell_left(&worlds[i]);
}
