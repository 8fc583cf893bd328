/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_unwind.h"

#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#include "profile_own.h"

/* --- by libgcc ------------------------------------------------------------------------------- */

struct walk {
    void **frames;
    unsigned depth, most;
};

/* False: the stack ends here. */
static bool take(struct walk *walk, uintptr_t at)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
    void *frame = (void *)at;
    if (walk->depth == 0 && profile_is_own(frame)) return true;
    if (at == 0 || walk->depth == walk->most) return false;
    walk->frames[walk->depth++] = frame;
    return true;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *walk)
{
    return take(walk, _Unwind_GetIP(context)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

unsigned profile_unwind_by_libgcc(void **frames, unsigned most)
{
    struct walk walk = {.frames = frames, .most = most};
    _Unwind_Backtrace(step, &walk);
    return walk.depth;
}

#if defined(__x86_64__)
/* --- a row from the tables ------------------------------------------------------------------- */

/* What a function's program says of a call. Bytes are from the CFA. */
struct rules {
    int64_t base; /* of the CFA: RBP, RSP, or what no row has */
    int64_t cfa;  /* bytes from there */
    int64_t rbp;  /* where the caller's is, or NOWHERE: as it is */
    int64_t back; /* where the return address is, or NOWHERE: there is no caller */
    bool is_odd;  /* no row can say it */
};
enum { RBP = 6, RSP = 7, RETURN = 16, NOWHERE = 1, REMEMBERED = 4 };

struct program {
    const uint8_t *at, *end;
    uint64_t code_unit;
    int64_t data_unit;
    uintptr_t pc; /* of the rules */
    unsigned n_remembered;
    struct rules rules, remembered[REMEMBERED];
};

static uint64_t read_bytes(const uint8_t **at, size_t n)
{
    uint64_t value = 0;
    memcpy(&value, *at, n);
    *at += n;
    return value;
}

static int64_t read_leb(const uint8_t **at, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        uint8_t byte = *(*at)++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        return (int64_t)(is_signed && byte & 0x40 && shift < 64 ? value | UINT64_MAX << shift : value);
    }
}
static int64_t number(struct program *program) { return read_leb(&program->at, false); }

static void skip_block(struct program *program)
{
    int64_t bytes = number(program);
    program->at += bytes;
}

static void set_place(struct program *program, int64_t reg, int64_t place)
{
    if (reg == RBP) program->rules.rbp = place;
    if (reg == RETURN) program->rules.back = place;
    program->rules.is_odd |= reg == RSP;
}

/* By an expression, or in a register. */
static void set_odd(struct program *program, int64_t reg)
{
    program->rules.is_odd |= reg == RBP || reg == RSP || reg == RETURN;
}

/* Instructions of DWARF (DW_CFA_...) that have no operand in their first byte. False: no compiler of C writes
 * it, or there are too many. */
static bool do_plain(struct program *program, uint8_t what)
{
    int64_t reg;
    switch (what) {
    case 0x00: /* nop */ return true;
    case 0x02: /* advance_loc1, 2 and 4 */
    case 0x03:
    case 0x04:
        program->pc += read_bytes(&program->at, (size_t)1 << (what - 2)) * program->code_unit;
        return true;
    case 0x05: /* offset_extended, and with a sign */
    case 0x11:
        reg = number(program);
        set_place(program, reg, read_leb(&program->at, what == 0x11) * program->data_unit);
        return true;
    case 0x07: /* undefined */ set_place(program, number(program), NOWHERE); return true;
    case 0x0a: /* remember_state */
        if (program->n_remembered == REMEMBERED) return false;
        program->remembered[program->n_remembered++] = program->rules;
        return true;
    case 0x0b: /* restore_state */
        if (program->n_remembered == 0) return false;
        program->rules = program->remembered[--program->n_remembered];
        return true;
    case 0x0c: /* def_cfa */
        program->rules.base = number(program);
        program->rules.cfa = number(program);
        return true;
    case 0x0d: /* def_cfa_register */ program->rules.base = number(program); return true;
    case 0x0e: /* def_cfa_offset */ program->rules.cfa = number(program); return true;
    case 0x0f: /* def_cfa_expression */
        program->rules.base = -1;
        skip_block(program);
        return true;
    case 0x10: /* expression, val_expression */
    case 0x16:
        set_odd(program, number(program));
        skip_block(program);
        return true;
    case 0x2e: /* GNU_args_size */ number(program); return true;
    default: return false;
    }
}

/* Up to the call that returns to `back`. */
static bool run(struct program *program, uintptr_t back)
{
    while (program->at < program->end && program->pc < back) {
        uint8_t what = *program->at++, operand = what & 0x3f;
        if (what >> 6 == 1) { /* advance_loc */
            program->pc += operand * program->code_unit;
        } else if (what >> 6 == 2) { /* offset */
            set_place(program, operand, number(program) * program->data_unit);
        } else if (what >> 6 == 3) { /* restore */
            if (operand == RETURN) return false;
            set_place(program, operand, NOWHERE);
        } else if (!do_plain(program, what)) {
            return false;
        }
    }
    return true;
}

/* The last entry of the sorted table that begins at the address or before it. NULL: there is none, or the
 * table's numbers are none of four bytes. */
static const uint8_t *find_entry(const uint8_t *header, uintptr_t address)
{
    static const uint8_t kinds[] = {1, 0x1b, 0x03, 0x3b}; /* version, and what the numbers are */
    const struct {
        int32_t begin, entry;
    } *table = (const void *)(header + 12);
    uint32_t from = 0, to;
    if (!header || memcmp(header, kinds, sizeof kinds) != 0) return NULL;
    memcpy(&to, header + 8, sizeof to);
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if ((intptr_t)header + table[middle].begin <= (intptr_t)address)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? header + table[from - 1].entry : NULL;
}

/* The beginning of a program, which many functions share: length, 0, version, letters, units, ... A frame of
 * a signal has the letter S. */
static bool run_common(struct program *program, const uint8_t *at)
{
    const char *letters = (const char *)at + 9;
    if (at[8] != 1 || (strcmp(letters, "zR") != 0 && strcmp(letters, "zPLR") != 0)) return false;
    program->end = at + 4;
    program->end += read_bytes(&at, 4);
    program->at = (const uint8_t *)letters + strlen(letters) + 1;
    program->code_unit = (uint64_t)number(program);
    program->data_unit = read_leb(&program->at, true);
    if (*program->at++ != RETURN) return false;
    skip_block(program);
    return program->at[-1] == 0x1b && run(program, UINTPTR_MAX); /* R: what addresses of functions are */
}

/* False: there are none that a row could say. */
static bool find_rules(uintptr_t back, struct rules *rules)
{
    struct dl_find_object object;
    struct program program = {.rules = {.base = -1, .rbp = NOWHERE}};
    int32_t common, begin;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
    if (_dl_find_object((void *)(back - 1), &object) != 0) return false;
    const uint8_t *entry = find_entry(object.dlfo_eh_frame, back - 1), *at = entry;
    if (!entry) return false;
    uint64_t length = read_bytes(&at, 4);
    memcpy(&common, entry + 4, sizeof common);
    memcpy(&begin, entry + 8, sizeof begin);
    if (length == UINT32_MAX || !run_common(&program, entry + 4 - common)) return false;
    program.pc = (uintptr_t)entry + 8 + (uintptr_t)(intptr_t)begin;
    program.end = at + length;
    program.at = entry + 12;
    if (back - 1 - program.pc >= read_bytes(&program.at, 4)) return false; /* between functions */
    skip_block(&program);
    if (!run(&program, back)) return false;
    *rules = program.rules;
    return true;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* A row that is kept: 33 bits of the return address, whose others are the row's place, and the row:
 *
 *     63 ... 31   | 24         | 23 ... 8               | 7 ... 0
 *     address     | CFA by rbp | CFA: words from base   | words from the CFA down to rbp; 0: as it is
 */
enum { ROWS = 1 << 14, ROW_BITS = 31, BY_RBP = 1 << 24, MOST_WORDS = 0xffff, MOST_DOWN = 0xff };
enum { ODD = 0, LAST = 1 }; /* rows without words: libgcc is to find the stack; there is no caller */
static uint64_t rows[ROWS], rows_are_of;

static bool is_words(int64_t bytes, int64_t from, int64_t to)
{
    return bytes % 8 == 0 && bytes >= from * 8 && bytes <= to * 8;
}

static uint32_t make_row(uintptr_t back)
{
    struct rules rules;
    if (!find_rules(back, &rules)) return ODD;
    if (rules.back == NOWHERE) return LAST;
    if (rules.is_odd || rules.back != -8 || (rules.base != RBP && rules.base != RSP)) return ODD;
    if (!is_words(rules.cfa, 1, MOST_WORDS)) return ODD;
    if (rules.rbp != NOWHERE && !is_words(-rules.rbp, 2, MOST_DOWN)) return ODD;
    uint32_t down = rules.rbp == NOWHERE ? 0 : (uint32_t)(-rules.rbp / 8);
    return (rules.base == RBP ? BY_RBP : 0) | (uint32_t)(rules.cfa / 8) << 8 | down;
}

static uint32_t row_of(uintptr_t back)
{
    uint64_t *row = &rows[back % ROWS], is = __atomic_load_n(row, __ATOMIC_RELAXED);
    if (back >> 47) return ODD;
    if (is >> ROW_BITS == back / ROWS) return is & (((uint32_t)1 << ROW_BITS) - 1);
    uint32_t made = make_row(back);
    __atomic_store_n(row, back / ROWS << ROW_BITS | made, __ATOMIC_RELAXED);
    return made;
}

/* A thread that still stores a row has its code on the stack, so that was not unloaded. */
static void forget_rows_before(uint64_t loads)
{
    if (__atomic_load_n(&rows_are_of, __ATOMIC_ACQUIRE) == loads) return;
    for (unsigned i = 0; i < ROWS; i++) __atomic_store_n(&rows[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&rows_are_of, loads, __ATOMIC_RELEASE);
}

unsigned __attribute__((noinline)) profile_unwind_by_rows(void **frames, unsigned most, uint64_t loads)
{
    struct walk walk = {.frames = frames, .most = most};
    const uintptr_t *frame = __builtin_frame_address(0); /* this function's: rbp, and its return address */
    uintptr_t rbp = frame[0], at = frame[1], sp = (uintptr_t)(frame + 2);
    forget_rows_before(loads);
    while (take(&walk, at)) {
        uint32_t row = row_of(at), down = row & MOST_DOWN;
        uintptr_t cfa = (row & BY_RBP ? rbp : sp) + (row >> 8 & MOST_WORDS) * 8;
        if (row == LAST) break;
        if (row == ODD || cfa - sp > PROFILE_FAR || cfa % 8 != 0 || cfa - sp < (down ? down : 1) * 8)
            return 0;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): above the last frame
        frame = (const uintptr_t *)cfa;
        if (down) rbp = frame[-(int)down];
        at = frame[-1];
        sp = cfa;
    }
    return walk.depth;
}
#else
unsigned profile_unwind_by_rows(void **frames, unsigned most, uint64_t loads)
{
    (void)frames, (void)most, (void)loads;
    return 0;
}
#endif

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(uint64_t *)loads = info->dlpi_adds << 32 | (uint32_t)info->dlpi_subs;
    return 1;
}

uint64_t profile_loads(void)
{
    uint64_t loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    return loads;
}

unsigned profile_unwind(void **frames, unsigned most, uint64_t loads)
{
    unsigned depth = loads ? profile_unwind_by_rows(frames, most, loads) : 0;
    return depth ? depth : profile_unwind_by_libgcc(frames, most);
}
