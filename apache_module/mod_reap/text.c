/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n more bytes and a zero. */
static bool grow(struct text *text, size_t n)
{
    size_t room = text->room ? text->room : 4096;
    if (text->failed) return false;
    if (text->length + n < text->room) return true;
    while (room <= text->length + n) room *= 2;
    char *data = realloc(text->data, room);
    text->failed = !data;
    if (!data) return false;
    text->data = data;
    text->room = room;
    return true;
}

void text_add(struct text *text, const char *bytes, size_t n)
{
    if (!grow(text, n)) return;
    memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = 0;
}

void text_puts(struct text *text, const char *s) { text_add(text, s, strlen(s)); }

void text_printf(struct text *text, const char *format, ...)
{
    char line[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(line, sizeof line, format, args);
    if (n < 0) {
        text->failed = true;
    } else if ((size_t)n < sizeof line) {
        text_add(text, line, (size_t)n);
    } else if (grow(text, (size_t)n)) {
        vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

char *text_digits(char *end, uint64_t number)
{
    do *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

void text_number(struct text *text, uint64_t number)
{
    char digits[20], *end = digits + sizeof digits, *first = text_digits(end, number);
    text_add(text, first, (size_t)(end - first));
}

static bool is_plain(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '<':
    case '>':
    case '&': return false;
    default: return c >= ' ' && c < 0x7f;
    }
}

unsigned text_decode(const char *s, size_t *n)
{
    static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
    unsigned lead = (unsigned char)*s,
             more = lead < 0xc2 || lead > 0xf4 ? 0 : 1 + (lead >= 0xe0) + (lead >= 0xf0);
    unsigned code = lead & (0x7fu >> more) >> (more > 0);
    *n = 1;
    for (unsigned i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80) return lead;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (!more || code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return lead;
    *n = more + 1;
    return code;
}

void text_json(struct text *text, const char *s)
{
    if (!s) {
        text_puts(text, "null");
        return;
    }
    text_puts(text, "\"");
    while (*s) {
        const char *begin = s;
        while (*s && is_plain((unsigned char)*s)) s++;
        text_add(text, begin, (size_t)(s - begin));
        if (!*s) break;
        size_t n;
        unsigned code = text_decode(s, &n), pair = code - 0x10000;
        if (code > 0xffff)
            text_printf(text, "\\u%04x\\u%04x", 0xd800 | pair >> 10, 0xdc00 | (pair & 0x3ff));
        else
            text_printf(text, "\\u%04x", code);
        s += n;
    }
    text_puts(text, "\"");
}

void text_json_field(struct text *text, const char *name, const char *s)
{
    text_printf(text, ",\"%s\":", name);
    text_json(text, s);
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){.data = NULL};
}
