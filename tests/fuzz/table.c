/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: the operations, and programs from seeds. */
#include "fuzz_ops.h"

const struct op ops[] = {
    /* name, group, weight, flags, what it does, what is looked at afterwards */
    {"nothing", BASIC, 0, NESTED, NULL, NULL},
    {"reapMalloc", BASIC, 60, NESTED | MAKES, do_malloc, check_touched},
    {"reapMalloc called", BASIC, 10, NESTED | MAKES, do_malloc_called, check_touched},
    {"reapCalloc", BASIC, 6, NESTED | MAKES, do_calloc, check_touched},
    {"reapAlignedAlloc", BASIC, 6, NESTED | MAKES, do_aligned, check_touched},
    {"reapStrdup", BASIC, 2, NESTED | MAKES, do_strdup, NULL},
    {"reapStrndup", BASIC, 2, NESTED | MAKES, do_strndup, NULL},
    {"reapMemdup", BASIC, 2, NESTED | MAKES, do_memdup, NULL},
    {"reapPrintf", BASIC, 2, NESTED | MAKES, do_printf, NULL},
    {"reapVprintf", BASIC, 2, NESTED | MAKES, do_vprintf, NULL},
    {"reapRealloc of NULL", BASIC, 2, NESTED | MAKES, do_realloc_null, NULL},
    {"reapFree", BASIC, 40, NESTED | FREES | ANY, do_free, check_touched},
    {"reapFree of the newest", BASIC, 40, NESTED | FREES | NEWEST, do_free_newest, check_touched},
    {"reapFree of the oldest", BASIC, 20, NESTED | FREES | OLDEST, do_free_oldest, check_touched},
    {"many of reapMalloc", BASIC, 4, NESTED | MAKES, do_fill, check_touched},
    {"reapFree of the newest ones", BASIC, 3, NESTED | FREES | NEWEST, do_unwind, check_touched},
    {"reapFree of the oldest ones", BASIC, 2, NESTED | FREES | OLDEST, do_drain, check_touched},
    {"reapFree of NULL", BASIC, 1, NESTED, do_free_null, NULL},
    {"reapRealloc", RESIZE, 20, NESTED | ANY, do_realloc, check_touched},
    {"reapRealloc of the newest", RESIZE, 10, NESTED, do_realloc_newest, check_touched},
    {"reapMove", TREE, 10, NESTED | ANY, do_move, check_touched},
    {"reapUsableSize", LOOK, 4, NESTED, do_usable, NULL},
    {"reapOf", LOOK, 4, NESTED, do_of, NULL},
    {"malloc", HEAP, 20, NESTED | MAKES, heap_malloc, NULL},
    {"calloc", HEAP, 4, NESTED | MAKES, heap_calloc, NULL},
    {"aligned_alloc", HEAP, 3, NESTED | MAKES, heap_aligned, NULL},
    {"memalign", HEAP, 2, NESTED | MAKES, heap_memalign, NULL},
    {"posix_memalign", HEAP, 2, NESTED | MAKES, heap_posix_memalign, NULL},
    {"realloc of NULL", HEAP, 2, NESTED | MAKES, heap_realloc_null, NULL},
    {"strdup", HEAP, 3, NESTED | MAKES, heap_strdup, NULL},
    {"free", HEAP, 20, NESTED | FREES | ANY, heap_free, check_touched},
    {"reapFreeAny", HEAP, 10, NESTED | FREES | ANY, do_free_any, check_touched},
    {"realloc", RESIZE, 12, NESTED | ANY, heap_realloc, check_touched},
    {"reallocarray", RESIZE, 2, NESTED, heap_reallocarray, NULL},
    {"malloc_usable_size", HEAP, 3, NESTED, heap_usable, NULL},
    {"malloc_trim", HEAP, 1, NESTED, heap_trim, NULL},
    {"hoard_malloc", HEAP, 6, NESTED | MAKES, hoard_any, NULL},
    {"hoard_stats", HEAP, 1, NESTED, hoard_look, NULL},
    {"reapCreate", BASIC, 12, NESTED, do_create, NULL},
    {"reapNew", BASIC, 6, NESTED, do_new, NULL},
    {"reapCreateWith", WITH, 12, NESTED, do_create_with, NULL},
    {"reapCreateWith, wrongly", WITH, 1, NESTED, do_create_wrong, NULL},
    {"reapDestroy", BASIC, 3, NESTED | ENDS, do_destroy, NULL},
    {"reapFreeAll", BASIC, 3, NESTED | ENDS, do_clear, check_touched},
    {"reapAdopt", TREE, 4, NESTED, do_adopt, NULL},
    {"reapEnter", ENTER, 4, 0, do_enter, NULL},
    {"reapLeave", ENTER, 6, 0, do_leave, NULL},
    {"reapEntered", LOOK, 2, NESTED, do_entered, NULL},
    {"reapCharge", ENTER, 5, NESTED, do_charge, NULL},
    {"reapUncharge", ENTER, 5, NESTED, do_uncharge, NULL},
    {"reapSetName", WITH, 3, NESTED, do_name, NULL},
    {"reapTrim", WITH, 3, NESTED, do_trim, check_touched},
    {"reapOnDestroy", FUNCTIONS, 6, NESTED, do_on_destroy, NULL},
    {"reapCancelOnDestroy", FUNCTIONS, 2, NESTED, do_cancel, NULL},
    {"reapMark", MARKS_, 8, NESTED, do_mark, check_touched},
    {"reapRewind", MARKS_, 5, NESTED | ENDS, do_rewind, check_touched},
    {"reapUnmark", MARKS_, 5, NESTED, do_unmark, check_touched},
    {"tries between marks", MARKS_, 3, 0, do_tries, check_touched},
    {"a full chunk", MARKS_, 6, 0, do_brim, check_touched},
    {"reapSetLimit", LIMITS, 6, NESTED, do_limit, check_touched},
    {"reapOnLimit", LIMITS, 4, NESTED, do_on_limit, NULL},
    {"reapWalk", LOOK, 2, NESTED, do_walk, check_touched},
    {"reapReport", LOOK, 1, NESTED, do_report, NULL},
    {"reapStats", LOOK, 2, NESTED, do_stats, NULL},
    {"look at a reap", BASIC, 4, 0, do_check, NULL},
    {"look at all", BASIC, 1, 0, do_check_all, NULL},
    {"send", OTHERS, 30, TOGETHER, do_send, NULL},
    {"receive", OTHERS, 40, TOGETHER, do_receive, NULL},
    {"a child of another's", OTHERS, 10, TOGETHER, do_public_child, NULL},
    {"reapMark, quiet", MARKS_, 4, TOGETHER, do_quiet_mark, NULL},
    {"marks while others make children", MARKS_, 2, TOGETHER, do_busy_marks, NULL},
    {"reapMalloc, shared", OTHERS, 6, TOGETHER, do_loose_alloc, NULL},
    {"reapFree, shared", OTHERS, 6, TOGETHER, do_loose_free, NULL},
    {"reapRealloc, shared", OTHERS, 4, TOGETHER, do_loose_resize, NULL},
    {"reapMove, shared", OTHERS, 3, TOGETHER, do_loose_move, NULL},
    {"a look at what is shared", OTHERS, 2, TOGETHER, do_loose_look, NULL},
    {"a builder, shared", OTHERS, 4, TOGETHER, do_loose_build, NULL},
    {"the whole of what is shared", OTHERS, 2, TOGETHER, do_loose_whole, NULL},
    {"reapAppend", BUILD, 14, NESTED, do_append, check_touched},
    {"reapAppendString", BUILD, 6, NESTED, do_append_string, NULL},
    {"reapAppendf", BUILD, 8, NESTED, do_appendf, check_touched},
    {"reapAppendf, wrongly", BUILD, 1, NESTED, do_appendf_wrong, NULL},
    {"reapExtend", BUILD, 10, NESTED, do_extend, check_touched},
    {"reapAppend of its own", BUILD, 6, NESTED, do_append_own, check_touched},
    {"a builder made shorter", BUILD, 4, NESTED, do_cut, NULL},
    {"reapFinish", BUILD, 5, NESTED, do_finish, check_touched},
    {"misuse", WRONG, 1, ALONE, do_misuse, NULL},
};
const unsigned op_count = sizeof ops / sizeof ops[0];
bool fuzz_wide, fuzz_without[256];

static uint64_t next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned below(uint64_t *state, unsigned n) { return (unsigned)(next(state) >> 11) % n; }

/* What one phase of a program does mostly: some operations not at all, some often; few reaps, or many; sizes
 * of one kind, or of all. A program of all that there is, all the time, goes nowhere deep. */
struct phase {
    unsigned weights[256], sum, reaps, first, kinds, length, slots;
    bool fills; /* holes, to the last unit */
};

enum { FEW_SLOTS = 64 };

static bool has_few(const struct program *program) { return program->slots == FEW_SLOTS; }

static unsigned kind_of_sizes(uint64_t *state, const struct program *program)
{
    static const unsigned masks[] = {0x7f,   0x7f,   0x7f,   0x7f,   0x3ff,  0x3ff, 0xfff,
                                     0x3fff, 0x7fff, 0xffff, 0x4000, 0x1000, 0x380, 0x407f};
    static const unsigned of_few[] = {0x8000, 0xc07f, 0xffff, 0x3fff, 0x7f};
    if (has_few(program)) return of_few[below(state, sizeof of_few / sizeof of_few[0])];
    return masks[below(state, sizeof masks / sizeof masks[0])];
}

/* Programs free as heaps, queues or stacks do: all the time, or for a phase. */
struct habits {
    unsigned groups, others; /* the operations it has; those that are against the order, which are rare */
    bool strict, lasting;    /* or not made at all */
    bool off[256];           /* operations that it does without */
};

static struct habits choose_habits(uint64_t *state)
{
    static const unsigned others[] = {0, 0, NEWEST | OLDEST, NEWEST | ANY, OLDEST | ANY, OLDEST | ANY};
    struct habits habits = {.groups =
                                (below(state, 4) ? (unsigned)next(state) : ~0u) | 1u << BASIC | 1u << OTHERS};
    habits.others = others[below(state, sizeof others / sizeof others[0])];
    habits.strict = below(state, 2);
    habits.lasting = below(state, 2);
    for (unsigned i = 0, some = below(state, 3); i < op_count; i++) habits.off[i] = some && below(state, 2);
    return habits;
}

/* Without reaps and objects there is nothing to do. */
static bool is_needed(unsigned op) { return ops[op].run == do_create || ops[op].run == do_malloc; }

static void choose_phase(uint64_t *state, const struct program *program, const struct habits *given,
                         struct phase *phase)
{
    struct habits own, *habits = &own;
    *habits = given->lasting ? *given : choose_habits(state);
    unsigned mood = below(state, 4), tide = below(state, 4), calm = below(state, 4);
    bool favourites = below(state, 2);
    phase->sum = 0; /* and it swells, or ebbs, or neither */
    for (unsigned i = 0; i < op_count; i++) {
        unsigned weight = ops[i].weight * 16;
        if (!(given->groups >> ops[i].group & 1) || (given->off[i] && !is_needed(i))) weight = 0;
        if (ops[i].flags & ALONE && program->threads > 1) weight = 0;
        if (ops[i].flags & TOGETHER && program->threads == 1) weight = 0;
        switch (mood ? below(state, 6) : 5) {
        case 0: weight = 0; break;
        case 1: weight /= 8; break;
        case 2: weight *= 4; break;
        }
        if (ops[i].flags & MAKES && tide == 0) weight /= 3;
        if (ops[i].flags & FREES && tide == 1) weight /= 3;
        if (favourites && below(state, op_count) < 5) weight *= 16;
        if (ops[i].flags & ENDS && calm) weight = calm == 1 ? 0 : weight / 16;
        if (ops[i].flags & habits->others) weight = habits->strict ? 0 : weight / 16;
        if (fuzz_without[i]) weight = 0;
        phase->weights[i] = weight;
        phase->sum += weight;
    }
    phase->reaps = 1 + below(state, below(state, 2) ? 3 : program->reaps);
    phase->first = below(state, 2) ? 0 : below(state, program->reaps);
    phase->kinds = kind_of_sizes(state, program);
    phase->length = 50 + below(state, 3000);
    phase->fills = below(state, 3) == 0;
    phase->slots = below(state, 3) ? program->slots : 1 + below(state, program->slots);
}

static uint8_t choose_op(uint64_t *state, const struct phase *phase)
{
    unsigned at = below(state, phase->sum ? phase->sum : 1), op = 0;
    while (op < op_count - 1 && at >= phase->weights[op]) at -= phase->weights[op++];
    return (uint8_t)op;
}

/* Large ones are rare, but not in programs of few objects: there half of the largest have up to 34 MB. */
static uint16_t choose_size(uint64_t *state, const struct program *program, const struct phase *phase)
{
    unsigned value = below(state, 65536), wide = fuzz_wide ? below(state, 4) : 0;
    if (phase->fills && below(state, 3) == 0) return (uint16_t)(0xf000 | (value & 0xfc0) | REST);
    if (wide == 1) return (uint16_t)(0xc000 | (value & 0xfff));       /* up to 32 KiB, in steps of 8 bytes */
    if (wide > 1) return (uint16_t)(0xd000 | below(state, 128 * 17)); /* up to 136 KiB, in steps of 64 */
    while (!(phase->kinds >> (value >> 12) & 1)) value = below(state, 65536);
    if (value >> 12 >= 13 && below(state, has_few(program) ? 4 : 16)) value &= 0x1fff;
    if (has_few(program) && value >> 12 == 15 && below(state, 2)) value = (value & 0xffc0) | 32;
    return (uint16_t)value;
}

void generate(uint64_t seed, unsigned threads, unsigned count, struct program *program)
{
    static const uint8_t reaps[] = {1, 1, 2, 3, 4, 8, 16, REAPS};
    static const uint16_t slots[] = {FEW_SLOTS, 500, 1500, SLOTS, SLOTS};
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + threads;
    struct phase phase[THREADS];
    program->threads = (uint8_t)threads;
    program->reaps = reaps[below(&state, sizeof reaps)];
    program->slots = slots[below(&state, fuzz_wide ? 2 : sizeof slots / sizeof slots[0])];
    program->count = count;
    program->records = calloc(count, sizeof *program->records);
    struct habits habits = choose_habits(&state);
    for (unsigned i = 0; i < threads; i++) phase[i].length = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned thread = below(&state, threads);
        struct phase *p = &phase[thread];
        if (p->length-- == 0) choose_phase(&state, program, &habits, p);
        struct record *rec = &program->records[i];
        *rec = (struct record){.thread = (uint8_t)thread, .extra = (uint8_t)next(&state)};
        rec->op = choose_op(&state, p);
        rec->reap = (uint8_t)((p->first + below(&state, p->reaps)) % program->reaps);
        rec->slot = (uint16_t)below(&state, p->slots);
        rec->size = choose_size(&state, program, p);
    }
}
