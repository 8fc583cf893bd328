/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_source.h"

#include "measure.h"

/* clang-format off */
enum {
    SOURCE_FUNCTIONS = 300, SOURCE_FUNCTIONS_SHORT = 6, SOURCE_ROOM = 1 << 20, SOURCE_NAMES = 300,
    SOURCE_DEEPEST = 4, EXPRESSION_DEEPEST = 4
};
/* clang-format on */

char *source;
size_t source_length;
static uint32_t source_state;

static uint32_t source_drawn(uint32_t below) { return measure_random(&source_state) % below; }

static void source_put(const char *text)
{
    size_t n = strlen(text);
    measure_need(source_length + n < SOURCE_ROOM, "the source is too long");
    memcpy(source + source_length, text, n);
    source_length += n;
}

/* One to twenty characters. */
static void source_name(void)
{
    char name[32];
    uint32_t drawn = source_drawn(SOURCE_NAMES), n = 0;
    for (uint32_t rest = drawn + 1; rest > 0; rest /= 20) name[n++] = (char)('a' + rest % 20);
    for (uint32_t more = drawn * 7 % 17; more > 0; more--) name[n++] = (char)('a' + (drawn + more) % 26);
    name[n++] = '_';
    name[n] = '\0';
    source_put(name);
}

static void source_expression(int depth)
{
    static const char *const operators[] = {" + ", " - ", " * ", " & "};
    char digits[16];
    uint32_t drawn = source_drawn(8);
    if (drawn < 2 || depth == 0) {
        snprintf(digits, sizeof digits, "%u", (unsigned)source_drawn(10000));
        source_put(digits);
    } else if (drawn < 4) {
        source_name();
    } else if (drawn < 5) {
        source_put("(");
        source_expression(depth - 1);
        source_put(")");
    } else {
        source_expression(depth - 1);
        source_put(operators[source_drawn(4)]);
        source_expression(depth - 1);
    }
}

static void source_statement(int depth);

static void source_block(int depth)
{
    source_put("{\nint ");
    source_name();
    for (uint32_t n = source_drawn(4); n > 0; n--) source_put(", "), source_name();
    source_put(";\n");
    for (uint32_t n = 3 + source_drawn(6); n > 0; n--) source_statement(depth);
    source_put("}\n");
}

static void source_statement(int depth)
{
    uint32_t drawn = source_drawn(8);
    if (drawn == 0 && depth > 0) {
        source_block(depth - 1);
    } else if (drawn == 1 && depth > 0) {
        source_put("if (");
        source_expression(EXPRESSION_DEEPEST);
        source_put(") ");
        source_block(depth - 1);
    } else {
        if (drawn == 2) {
            source_put("return ");
        } else {
            source_name();
            source_put(" = ");
        }
        source_expression(EXPRESSION_DEEPEST);
        source_put(";\n");
    }
}

void source_write(bool brief)
{
    source = measure_table(SOURCE_ROOM, 1);
    source_state = 1;
    for (int i = brief ? SOURCE_FUNCTIONS_SHORT : SOURCE_FUNCTIONS; i > 0; i--) {
        source_put("int ");
        source_name();
        source_put("(int ");
        source_name();
        source_put(", int ");
        source_name();
        source_put(")\n");
        source_block(SOURCE_DEEPEST);
    }
}
