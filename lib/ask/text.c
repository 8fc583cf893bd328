/* SPDX-License-Identifier: Apache-2.0 */
#include "ask/text.h"

#include "base/lock.h"
#include "os/pages.h"

#include <string.h>

enum { FIRST = 64 * 1024 };

static const char cut[] = "\nreap: no memory for the rest of this answer\n";

static bool grow(struct text *text, size_t size)
{
    size_t room = text->room != 0 ? text->room : FIRST;
    while (room < size && room < SIZE_LIMIT / 2) room *= 2;
    char *bytes = room >= size ? pages_map(room, PAGE) : NULL;
    if (bytes == NULL) return false;
    if (text->bytes != NULL) {
        memcpy(bytes, text->bytes, text->size);
        pages_unmap(text->bytes, text->room);
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* The last bytes of the room are for the line that says where an answer was cut. */
void text_add(struct text *text, const char *bytes, size_t size)
{
    if (text->is_cut) return;
    size_t needs = text->size + size + sizeof cut;
    if (needs <= text->room || grow(text, needs)) {
        memcpy(text->bytes + text->size, bytes, size);
        text->size += size;
    } else {
        text->is_cut = true;
        if (text->bytes == NULL) return;
        memcpy(text->bytes + text->size, cut, sizeof cut - 1);
        text->size += sizeof cut - 1;
    }
}

static ssize_t write_text(void *cookie, const char *bytes, size_t size)
{
    struct text *text = cookie;
    if (text->writer == &lock_depth) text_add(text, bytes, size);
    return (ssize_t)size;
}

FILE *text_begin(struct text *text)
{
    ASSERT(text->bytes == NULL && text->size == 0);
    FILE *stream = fopencookie(text, "w", (cookie_io_functions_t){.write = write_text});
    if (stream != NULL) text->writer = &lock_depth;
    return stream;
}

void text_end(struct text *text, FILE *stream)
{
    ASSERT(text->writer == &lock_depth);
    fclose(stream);
    text->writer = NULL;
}

void text_drop(struct text *text)
{
    if (text->bytes != NULL) pages_unmap(text->bytes, text->room);
    *text = (struct text){.bytes = NULL};
}
