/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

/* The bytes of the UTF-8 character that a text begins with, as RFC 3629 has them; 0 if it begins with no
 * such character. */
static size_t utf8_length(const unsigned char *text, size_t size)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (text[0] > 0xf4 || length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f)) return 0;
    if ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)) return 0;
    return length;
}

/* Writes one character, or one byte. Returns the number of bytes that it took. */
static size_t put_character(FILE *out, const char *text, size_t size)
{
    unsigned char c = (unsigned char)*text;
    size_t length = utf8_length((const unsigned char *)text, size);
    if (c == '"' || c == '\\')
        fprintf(out, "\\%c", c);
    else if (c < ' ' || c == 0x7f || length == 0)
        fprintf(out, "\\u%04x", c);
    else
        fwrite(text, 1, length, out);
    return length != 0 ? length : 1;
}

void json_string(FILE *out, const char *text, size_t size)
{
    size_t end = strnlen(text, size);
    fputc('"', out);
    for (size_t i = 0; i < end;) i += put_character(out, text + i, end - i);
    fputc('"', out);
}
