/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "varint.h"

enum { MODULES_MOST = 1 << 16, PATH_MOST = 4096 };

struct block {
    struct trace_block head;
    uint64_t at; /* of its bytes in the file */
    bool is_live;
};

/* A slot's blocks, and where reading is. */
struct cursor {
    struct block *blocks;
    size_t n, room, next;
    char *bytes; /* of the block that is read */
    const char *at, *end;
    uint64_t time, address, thread;
    bool has; /* `event` is to come */
    struct reader_event event;
};

struct module {
    uint64_t base, end;
    char *path;
};

struct reader {
    FILE *remarks;
    char path[PATH_MOST];
    int file, live;
    uint64_t size;
    struct trace_head head;
    char command[TRACE_ARGUMENTS + 1];
    struct cursor slots[TRACE_SLOTS];
    uint32_t heap[TRACE_SLOTS], n_heap; /* slots that have an event, the earliest first */
    bool is_begun;
    uint64_t *frames;
    uint64_t *stacks; /* where each begins in frames, and where the last one ends */
    uint32_t n_stacks;
    size_t n_frames, room_frames, room_stacks;
    struct module *modules;
    size_t n_modules, room_modules;
};

__attribute__((format(printf, 2, 3))) static void remark(const struct reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(reader->remarks, "%s: ", reader->path);
    vfprintf(reader->remarks, format, args);
    fputc('\n', reader->remarks);
    va_end(args);
}

/* Room for one more of n. */
static bool grow(void *array_, size_t *room, size_t n, size_t size)
{
    void **array = array_;
    if (n < *room) return true;
    size_t more = *room > 0 ? *room * 2 : 64;
    void *grown = realloc(*array, more * size);
    if (!grown) return false;
    *array = grown;
    *room = more;
    return true;
}

static bool read_at(int fd, void *bytes, size_t size, uint64_t at)
{
    for (char *to = bytes; size > 0;) {
        ssize_t n = pread(fd, to, size, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n, at += (uint64_t)n, size -= (size_t)n;
    }
    return true;
}

/* --- opening --------------------------------------------------------------------------------------- */

static bool add_block(struct reader *reader, const struct trace_block *head, uint64_t at, bool is_live)
{
    struct cursor *slot = &reader->slots[head->slot];
    if (!grow(&slot->blocks, &slot->room, slot->n, sizeof *slot->blocks)) return false;
    slot->blocks[slot->n++] = (struct block){*head, at, is_live};
    return true;
}

static bool is_block(const struct reader *reader, const struct trace_block *block, uint64_t left)
{
    return block->magic == TRACE_BLOCK_MAGIC && block->slot < TRACE_SLOTS && block->unpacked > 0 &&
           block->unpacked <= TRACE_ROOM && block->packed > 0 && block->packed <= left &&
           block->packed <= (uint32_t)LZ4_COMPRESSBOUND(TRACE_SLOT) &&
           block->number == reader->slots[block->slot].n;
}

/* All blocks until one is not whole. False: no memory. */
static bool read_blocks(struct reader *reader, uint64_t at)
{
    struct trace_block block;
    while (at < reader->size) {
        uint64_t left = reader->size - at;
        bool is_whole = left > sizeof block && read_at(reader->file, &block, sizeof block, at) &&
                        is_block(reader, &block, left - sizeof block);
        if (!is_whole) {
            remark(reader, "no whole block at byte %" PRIu64 ": the last %" PRIu64 " bytes are left out", at,
                   left);
            break;
        }
        if (!add_block(reader, &block, at + sizeof block, false)) return false;
        at += sizeof block + block.packed;
    }
    return true;
}

/* What is in no block. */
static bool read_live(struct reader *reader)
{
    struct trace_slot slot;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < TRACE_SLOTS; i++) {
        uint64_t at = (uint64_t)i * TRACE_SLOT;
        if (!read_at(reader->live, &slot, sizeof slot, at)) break;
        bool is_new = slot.magic == TRACE_LIVE_MAGIC && slot.used > 0 && slot.used <= TRACE_ROOM &&
                      slot.number >= reader->slots[i].n;
        if (!is_new) continue;
        if (slot.number > reader->slots[i].n)
            remark(reader, "slot %u lacks %" PRIu64 " blocks", i, slot.number - reader->slots[i].n);
        struct trace_block block = {
            .slot = i, .number = slot.number, .start = slot.start, .end = slot.end, .unpacked = slot.used};
        if (!add_block(reader, &block, at + sizeof slot, true)) return false;
        bytes += slot.used;
    }
    if (bytes > 0)
        remark(reader,
               "its process did not come to its end by exit, or still runs: %" PRIu64 " bytes are from .live",
               bytes);
    return true;
}

static bool open_files(struct reader *reader)
{
    char live[PATH_MOST + 8];
    struct stat is;
    snprintf(live, sizeof live, "%s.live", reader->path);
    reader->live = open(live, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    reader->file = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->file < 0 || fstat(reader->file, &is) != 0) {
        remark(reader, "%s", strerror(errno));
        return false;
    }
    if (!S_ISREG(is.st_mode)) {
        remark(reader, "is no file");
        return false;
    }
    reader->size = (uint64_t)is.st_size;
    return true;
}

static bool read_head(struct reader *reader)
{
    struct trace_head *head = &reader->head;
    bool has = read_at(reader->file, head, sizeof *head, 0);
    if (!has || memcmp(head->magic, TRACE_MAGIC, sizeof head->magic) != 0) {
        remark(reader, "is no trace of libreap-trace");
        return false;
    }
    if (head->version != TRACE_VERSION) {
        remark(reader, "is a trace of version %u, and this program reads version %d", head->version,
               TRACE_VERSION);
        return false;
    }
    if (head->arguments > TRACE_ARGUMENTS ||
        !read_at(reader->file, reader->command, head->arguments, sizeof *head)) {
        remark(reader, "ends within its head");
        return false;
    }
    for (uint32_t i = 0; i + 1 < head->arguments; i++)
        if ((unsigned char)reader->command[i] < ' ') reader->command[i] = ' ';
    return true;
}

static void read_stacks(struct reader *reader);
static void read_modules(struct reader *reader);

struct reader *reader_open(const char *path, FILE *remarks)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader || strlen(path) >= PATH_MOST) {
        fprintf(remarks, "%.100s: %s\n", path, strerror(reader ? ENAMETOOLONG : ENOMEM));
        free(reader);
        return NULL;
    }
    reader->remarks = remarks;
    reader->file = reader->live = -1;
    strcpy(reader->path, path);
    if (!open_files(reader) || !read_head(reader)) {
        reader_close(reader);
        return NULL;
    }
    if (!read_blocks(reader, sizeof reader->head + reader->head.arguments) || !read_live(reader)) {
        remark(reader, "%s", strerror(ENOMEM));
        reader_close(reader);
        return NULL;
    }
    read_stacks(reader);
    read_modules(reader);
    return reader;
}

void reader_close(struct reader *reader)
{
    if (!reader) return;
    for (int i = 0; i < TRACE_SLOTS; i++) {
        free(reader->slots[i].blocks);
        free(reader->slots[i].bytes);
    }
    for (size_t i = 0; i < reader->n_modules; i++) free(reader->modules[i].path);
    free(reader->modules);
    free(reader->frames);
    free(reader->stacks);
    if (reader->file >= 0) close(reader->file);
    if (reader->live >= 0) close(reader->live);
    free(reader);
}

/* --- a slot ---------------------------------------------------------------------------------------- */

static void end_slot(struct cursor *slot)
{
    slot->next = slot->n;
    slot->at = slot->end = NULL;
    free(slot->bytes);
    slot->bytes = NULL;
}

static bool unpack(struct reader *reader, const struct block *block, char *to)
{
    static char packed[LZ4_COMPRESSBOUND(TRACE_SLOT)];
    const struct trace_block *head = &block->head;
    if (block->is_live) return read_at(reader->live, to, head->unpacked, block->at);
    return read_at(reader->file, packed, head->packed, block->at) &&
           trace_check(packed, head->packed) == head->check &&
           LZ4_decompress_safe(packed, to, (int)head->packed, TRACE_ROOM) == (int)head->unpacked;
}

/* Begins the next block of a slot. */
static bool open_block(struct reader *reader, struct cursor *slot)
{
    if (slot->next == slot->n) {
        end_slot(slot);
        return false;
    }
    const struct block *block = &slot->blocks[slot->next++];
    if (!slot->bytes) slot->bytes = malloc(TRACE_ROOM);
    if (!slot->bytes || !unpack(reader, block, slot->bytes)) {
        remark(reader, "block %" PRIu64 " of slot %u is damaged: the slot's events end before it",
               block->head.number, block->head.slot);
        end_slot(slot);
        return false;
    }
    slot->at = slot->bytes;
    slot->end = slot->bytes + block->head.unpacked;
    slot->time = block->head.start;
    slot->address = 0;
    return true;
}

static bool get_address(struct cursor *slot, uint64_t *address)
{
    uint64_t folded;
    if (!varint_get(&slot->at, slot->end, &folded)) return false;
    *address = slot->address = varint_unfold(slot->address, folded);
    return true;
}

static bool parse_event(struct reader *reader, struct cursor *slot, struct reader_event *event)
{
    unsigned kind = (unsigned char)*slot->at++;
    uint64_t passed, stack;
    *event = (struct reader_event){.kind = kind & ~(unsigned)TRACE_STACKED, .stack = READER_NO_STACK};
    event->slot = (uint32_t)(slot - reader->slots);
    if (event->kind >= TRACE_KINDS || !varint_get(&slot->at, slot->end, &passed)) return false;
    slot->time += passed;
    event->time = slot->time > reader->head.start ? slot->time - reader->head.start : 0;
    if (event->kind == TRACE_THREAD) return varint_get(&slot->at, slot->end, &slot->thread);
    event->thread = slot->thread;
    if (event->kind == TRACE_HELD) return varint_get(&slot->at, slot->end, &event->size);
    if (!get_address(slot, &event->object)) return false;
    if (trace_has_pool(event->kind) && !get_address(slot, &event->pool)) return false;
    if (trace_has_size(event->kind) && !varint_get(&slot->at, slot->end, &event->size)) return false;
    if (!(kind & TRACE_STACKED)) return true;
    if (!varint_get(&slot->at, slot->end, &stack)) return false;
    event->stack = stack < reader->n_stacks ? (uint32_t)stack : READER_NO_STACK;
    return true;
}

bool reader_next_of(struct reader *reader, uint32_t number, struct reader_event *event)
{
    struct cursor *slot = &reader->slots[number];
    if (slot->at == slot->end && !open_block(reader, slot)) return false;
    if (parse_event(reader, slot, event)) return true;
    remark(reader, "slot %u has an event that nobody knows: the slot's events end before it", number);
    end_slot(slot);
    return false;
}

/* --- all of them ------------------------------------------------------------------------------------- */

static uint64_t time_of(const struct reader *reader, uint32_t i)
{
    return reader->slots[reader->heap[i]].event.time;
}

static void swap(struct reader *reader, uint32_t a, uint32_t b)
{
    uint32_t kept = reader->heap[a];
    reader->heap[a] = reader->heap[b];
    reader->heap[b] = kept;
}

static void sink(struct reader *reader, uint32_t i)
{
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < reader->n_heap; child++)
            if (time_of(reader, child) < time_of(reader, least)) least = child;
        if (least == i) return;
        swap(reader, i, least);
        i = least;
    }
}

static void begin(struct reader *reader)
{
    reader->is_begun = true;
    for (uint32_t i = TRACE_THREADS; i < TRACE_SLOTS; i++)
        if (reader->slots[i].n > 0 && reader_next_of(reader, i, &reader->slots[i].event))
            reader->heap[reader->n_heap++] = i;
    for (uint32_t i = reader->n_heap / 2 + 1; i-- > 0;) sink(reader, i);
}

bool reader_next(struct reader *reader, struct reader_event *event)
{
    if (!reader->is_begun) begin(reader);
    if (reader->n_heap == 0) return false;
    struct cursor *first = &reader->slots[reader->heap[0]];
    *event = first->event;
    if (!reader_next_of(reader, reader->heap[0], &first->event))
        reader->heap[0] = reader->heap[--reader->n_heap];
    if (reader->n_heap > 0) sink(reader, 0);
    return true;
}

/* --- stacks and modules ------------------------------------------------------------------------------- */

static bool parse_stack(struct reader *reader, struct cursor *slot)
{
    uint64_t n, folded, at = 0;
    if (!varint_get(&slot->at, slot->end, &n) || n > TRACE_DEPTH) return false;
    if (!grow(&reader->stacks, &reader->room_stacks, reader->n_stacks + 1, sizeof *reader->stacks))
        return false;
    reader->stacks[reader->n_stacks] = reader->n_frames;
    for (; n > 0; n--) {
        if (!varint_get(&slot->at, slot->end, &folded)) return false;
        if (!grow(&reader->frames, &reader->room_frames, reader->n_frames, sizeof *reader->frames))
            return false;
        reader->frames[reader->n_frames++] = at = varint_unfold(at, folded);
    }
    reader->stacks[++reader->n_stacks] = reader->n_frames;
    return true;
}

static void read_stacks(struct reader *reader)
{
    struct cursor *slot = &reader->slots[TRACE_STACKS];
    bool is_whole = true;
    while (is_whole && slot->n > 0 && open_block(reader, slot))
        while (is_whole && slot->at < slot->end) is_whole = parse_stack(reader, slot);
    if (!is_whole) remark(reader, "stack %u is damaged, and all behind it are left out", reader->n_stacks);
    end_slot(slot);
}

static bool add_module(struct reader *reader, const char *line, size_t length)
{
    char text[PATH_MOST];
    struct module module;
    int path = 0;
    if (length >= sizeof text || reader->n_modules == MODULES_MOST) return false;
    memcpy(text, line, length);
    text[length] = '\0';
    if (sscanf(text, "%" SCNx64 " %" SCNx64 " %n", &module.base, &module.end, &path) != 2 || path == 0)
        return false;
    if (!grow(&reader->modules, &reader->room_modules, reader->n_modules, sizeof module)) return false;
    module.path = strdup(text + path);
    if (module.path) reader->modules[reader->n_modules++] = module;
    return module.path != NULL;
}

static void read_modules(struct reader *reader)
{
    struct cursor *slot = &reader->slots[TRACE_MODULES];
    while (slot->n > 0 && open_block(reader, slot))
        for (const char *end; slot->at < slot->end; slot->at = end + 1) {
            end = memchr(slot->at, '\n', (size_t)(slot->end - slot->at));
            if (!end || !add_module(reader, slot->at, (size_t)(end - slot->at))) break;
        }
    end_slot(slot);
}

const struct trace_head *reader_head(const struct reader *reader) { return &reader->head; }

const char *reader_command(const struct reader *reader) { return reader->command; }

uint32_t reader_stacks(const struct reader *reader) { return reader->n_stacks; }

unsigned reader_stack(const struct reader *reader, uint32_t number, const uint64_t **frames)
{
    if (number >= reader->n_stacks) return 0;
    *frames = reader->frames + reader->stacks[number];
    return (unsigned)(reader->stacks[number + 1] - reader->stacks[number]);
}

/* The last one that was mapped there. */
const char *reader_module(const struct reader *reader, uint64_t at, uint64_t *offset)
{
    for (size_t i = reader->n_modules; i-- > 0;) {
        const struct module *module = &reader->modules[i];
        if (at < module->base || at >= module->end) continue;
        *offset = at - module->base;
        return module->path;
    }
    return NULL;
}

void reader_frame(const struct reader *reader, uint64_t at, char *text, size_t size)
{
    uint64_t offset;
    const char *path = reader_module(reader, at, &offset);
    const char *name = path ? strrchr(path, '/') : NULL;
    name = name ? name + 1 : path;
    if (!path)
        snprintf(text, size, "%#" PRIx64, at);
    else
        snprintf(text, size, "%.100s+%#" PRIx64, strcmp(name, "-") == 0 ? "program" : name, offset);
}
