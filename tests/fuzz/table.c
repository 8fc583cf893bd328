/* table.c: the operations, and programs from seeds. */
#include "fuzz_ops.h"

#include <stdlib.h>

const struct op ops[] = {
    /* name, weight, flags, what it does, what is looked at afterwards */
    {"nothing", 0, NESTED, NULL, NULL},
    {"reapMalloc", 60, NESTED, do_malloc, check_touched},
    {"reapMalloc called", 10, NESTED, do_malloc_called, check_touched},
    {"reapCalloc", 6, NESTED, do_calloc, check_touched},
    {"reapAlignedAlloc", 6, NESTED, do_aligned, check_touched},
    {"reapStrdup", 2, NESTED, do_strdup, NULL},
    {"reapStrndup", 2, NESTED, do_strndup, NULL},
    {"reapMemdup", 2, NESTED, do_memdup, NULL},
    {"reapPrintf", 2, NESTED, do_printf, NULL},
    {"reapVprintf", 2, NESTED, do_vprintf, NULL},
    {"reapRealloc of NULL", 2, NESTED, do_realloc_null, NULL},
    {"reapFree", 40, NESTED, do_free, check_touched},
    {"reapFree of the newest", 40, NESTED, do_free_newest, check_touched},
    {"reapFree of the oldest", 20, NESTED, do_free_oldest, check_touched},
    {"reapFree of NULL", 1, NESTED, do_free_null, NULL},
    {"reapRealloc", 20, NESTED, do_realloc, check_touched},
    {"reapRealloc of the newest", 10, NESTED, do_realloc_newest, check_touched},
    {"reapMove", 10, NESTED, do_move, check_touched},
    {"reapUsableSize", 4, NESTED, do_usable, NULL},
    {"reapOf", 4, NESTED, do_of, NULL},
    {"malloc", 20, NESTED, heap_malloc, NULL},
    {"calloc", 4, NESTED, heap_calloc, NULL},
    {"aligned_alloc", 3, NESTED, heap_aligned, NULL},
    {"memalign", 2, NESTED, heap_memalign, NULL},
    {"posix_memalign", 2, NESTED, heap_posix_memalign, NULL},
    {"realloc of NULL", 2, NESTED, heap_realloc_null, NULL},
    {"strdup", 3, NESTED, heap_strdup, NULL},
    {"free", 20, NESTED, heap_free, check_touched},
    {"realloc", 12, NESTED, heap_realloc, check_touched},
    {"reallocarray", 2, NESTED, heap_reallocarray, NULL},
    {"malloc_usable_size", 3, NESTED, heap_usable, NULL},
    {"malloc_trim", 1, NESTED, heap_trim, NULL},
    {"hoard_malloc", 6, NESTED, hoard_any, NULL},
    {"hoard_stats", 1, NESTED, hoard_look, NULL},
    {"reapCreate", 12, NESTED, do_create, NULL},
    {"reapCreateWith", 12, NESTED, do_create_with, NULL},
    {"reapCreateWith, wrongly", 1, NESTED, do_create_wrong, NULL},
    {"reapDestroy", 3, NESTED, do_destroy, NULL},
    {"reapFreeAll", 3, NESTED, do_clear, check_touched},
    {"reapAdopt", 4, NESTED, do_adopt, NULL},
    {"reapEnter", 4, 0, do_enter, NULL},
    {"reapLeave", 6, 0, do_leave, NULL},
    {"reapSetName", 3, NESTED, do_name, NULL},
    {"reapOnDestroy", 6, NESTED, do_on_destroy, NULL},
    {"reapCancelOnDestroy", 2, NESTED, do_cancel, NULL},
    {"reapMark", 8, NESTED, do_mark, check_touched},
    {"reapRewind", 5, NESTED, do_rewind, check_touched},
    {"reapUnmark", 5, NESTED, do_unmark, check_touched},
    {"reapSetLimit", 6, NESTED, do_limit, check_touched},
    {"reapOnLimit", 4, NESTED, do_on_limit, NULL},
    {"reapWalk", 2, NESTED, do_walk, check_touched},
    {"reapReport", 1, NESTED, do_report, NULL},
    {"reapStats", 2, NESTED, do_stats, NULL},
    {"look at a reap", 4, 0, do_check, NULL},
    {"look at all", 1, 0, do_check_all, NULL},
    {"misuse", 1, ALONE, do_misuse, NULL},
};
const unsigned op_count = sizeof ops / sizeof ops[0];

/* --- programs from seeds --------------------------------------------------------------------- */

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
};

static unsigned kind_of_sizes(uint64_t *state)
{
    static const unsigned masks[] = {0x7f,   0x7f,   0x7f,   0x7f,   0x3ff,  0x3ff, 0xfff,
                                     0x3fff, 0x7fff, 0xffff, 0x4000, 0x1000, 0x380, 0x407f};
    return masks[below(state, sizeof masks / sizeof masks[0])];
}

static void choose_phase(uint64_t *state, const struct program *program, struct phase *phase)
{
    unsigned mood = below(state, 4);
    phase->sum = 0;
    for (unsigned i = 0; i < op_count; i++) {
        unsigned weight = ops[i].weight * 16;
        if (ops[i].flags & ALONE && program->threads > 1) weight = 0;
        if (ops[i].flags & TOGETHER && program->threads == 1) weight = 0;
        switch (mood ? below(state, 6) : 5) {
        case 0:
            weight = 0;
            break;
        case 1:
            weight /= 8;
            break;
        case 2:
            weight *= 4;
            break;
        }
        phase->weights[i] = weight;
        phase->sum += weight;
    }
    phase->reaps = 1 + below(state, below(state, 2) ? 3 : program->reaps);
    phase->first = below(state, program->reaps);
    phase->kinds = kind_of_sizes(state);
    phase->length = 50 + below(state, 3000);
    phase->slots = below(state, 3) ? program->slots : 1 + below(state, program->slots);
}

static uint8_t choose_op(uint64_t *state, const struct phase *phase)
{
    unsigned at = below(state, phase->sum ? phase->sum : 1), op = 0;
    while (op < op_count - 1 && at >= phase->weights[op]) at -= phase->weights[op++];
    return (uint8_t)op;
}

static uint16_t choose_size(uint64_t *state, const struct phase *phase)
{
    unsigned value = below(state, 65536);
    while (!(phase->kinds >> (value >> 12) & 1)) value = below(state, 65536);
    if (value >> 12 >= 13 && below(state, 16)) value &= 0x1fff; /* large ones are rare */
    return (uint16_t)value;
}

void generate(uint64_t seed, unsigned threads, unsigned count, struct program *program)
{
    static const uint8_t reaps[] = {1, 2, 3, 4, 8, 16, REAPS};
    static const uint16_t slots[] = {64, 500, 1500, SLOTS, SLOTS};
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + threads;
    struct phase phase[THREADS];
    program->threads = (uint8_t)threads;
    program->reaps = reaps[below(&state, sizeof reaps)];
    program->slots = slots[below(&state, sizeof slots / sizeof slots[0])];
    program->count = count;
    program->records = calloc(count, sizeof *program->records);
    for (unsigned i = 0; i < threads; i++) phase[i].length = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned thread = below(&state, threads);
        struct phase *p = &phase[thread];
        if (p->length-- == 0) choose_phase(&state, program, p);
        struct record *rec = &program->records[i];
        *rec = (struct record){.thread = (uint8_t)thread, .extra = (uint8_t)next(&state)};
        rec->op = choose_op(&state, p);
        rec->reap = (uint8_t)((p->first + below(&state, p->reaps)) % program->reaps);
        rec->slot = (uint16_t)below(&state, p->slots);
        rec->size = choose_size(&state, p);
    }
}
