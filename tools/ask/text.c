/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

enum { FIRST = 64 * 1024 };

static const char cut[] = "\nreap: no memory for the rest of this answer\n";

static bool grow(struct text *text, size_t size)
{
    size_t room = text->room != 0 ? text->room : FIRST;
    while (room < size && room < PTRDIFF_MAX / 2) room *= 2;
    if (room < size) return false;
    char *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return false;
    if (text->bytes) {
        memcpy(bytes, text->bytes, text->size);
        munmap(text->bytes, text->room);
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

/* The last bytes of the room are for the line that says where an answer was cut. */
static void add(struct text *text, const char *bytes, size_t size)
{
    if (text->is_cut) return;
    size_t needs = text->size + size + sizeof cut;
    if (needs <= text->room || grow(text, needs)) {
        memcpy(text->bytes + text->size, bytes, size);
        text->size += size;
    } else {
        text->is_cut = true;
        if (!text->bytes) return;
        memcpy(text->bytes + text->size, cut, sizeof cut - 1);
        text->size += sizeof cut - 1;
    }
}

static ssize_t write_text(void *cookie, const char *bytes, size_t size)
{
    struct text *text = cookie;
    if (text->has_writer && pthread_equal(text->writer, pthread_self())) add(text, bytes, size);
    return (ssize_t)size;
}

FILE *text_begin(struct text *text)
{
    assert(!text->bytes && text->size == 0);
    FILE *stream = fopencookie(text, "w", (cookie_io_functions_t){.write = write_text});
    text->has_writer = stream != NULL;
    text->writer = pthread_self();
    return stream;
}

void text_end(struct text *text, FILE *stream)
{
    fclose(stream);
    text->has_writer = false;
}

void text_drop(struct text *text)
{
    if (text->bytes) munmap(text->bytes, text->room);
    *text = (struct text){.bytes = NULL};
}
