/* SPDX-License-Identifier: Apache-2.0 */
/* profile_pprof.c: the report as pprof reads it: profile.proto of github.com/google/pprof, compressed by
 * gzip.
 *
 * Protocol buffers: a message is a row of fields, and a field is a key (number * 8 + wire type) and a value.
 * Two wire types are used here: 0, a varint, and 2, a length and bytes, which may be a message or a row of
 * varints.
 */
#include "profile_write.h"

#include <string.h>
#include <zlib.h>

/* Numbers of fields. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRING,
    PROFILE_TIME = 9,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_DEFAULT_TYPE = 14,
    TYPE_TYPE = 1,
    TYPE_UNIT,
    SAMPLE_LOCATIONS = 1,
    SAMPLE_VALUES,
    SAMPLE_LABEL,
    LABEL_KEY = 1,
    LABEL_TEXT,
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILE,
    LOCATION_ID = 1,
    LOCATION_MAPPING,
    LOCATION_ADDRESS,
    LOCATION_LINE,
    LINE_FUNCTION = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME,
    FUNCTION_SYSTEM_NAME,
    FUNCTION_FILE
};

enum { MESSAGE = 4096 /* bytes; the longest has PROFILE_DEPTH numbers and some */ };
struct message {
    size_t size;
    unsigned char bytes[MESSAGE];
};

struct writer {
    z_stream stream;
    FILE *out;
    uint64_t strings;
    const char *names[PROFILE_NAMES]; /* of reaps that have a string, and its number */
    uint64_t name_strings[PROFILE_NAMES];
    unsigned n_names;
};

/* --- fields ---------------------------------------------------------------------------------- */

static void put_varint(struct message *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) to->bytes[to->size++] = (unsigned char)(number | 0x80);
    to->bytes[to->size++] = (unsigned char)number;
}

static void put_number(struct message *to, unsigned field, uint64_t number)
{
    put_varint(to, field * 8);
    put_varint(to, number);
}

static void put_message(struct message *to, unsigned field, const struct message *message)
{
    put_varint(to, field * 8 + 2);
    put_varint(to, message->size);
    memcpy(to->bytes + to->size, message->bytes, message->size);
    to->size += message->size;
}

/* --- the file -------------------------------------------------------------------------------- */

static void compress_bytes(struct writer *writer, const void *bytes, size_t size, int flush)
{
    unsigned char made[4096];
    writer->stream.next_in = (unsigned char *)(uintptr_t)bytes;
    writer->stream.avail_in = (unsigned)size;
    do {
        writer->stream.next_out = made;
        writer->stream.avail_out = sizeof made;
        deflate(&writer->stream, flush);
        fwrite(made, 1, sizeof made - writer->stream.avail_out, writer->out);
    } while (writer->stream.avail_out == 0);
}

static void write_field(struct writer *writer, unsigned field, const void *bytes, size_t size)
{
    struct message head = {.size = 0};
    put_varint(&head, field * 8 + 2);
    put_varint(&head, size);
    compress_bytes(writer, head.bytes, head.size, Z_NO_FLUSH);
    compress_bytes(writer, bytes, size, Z_NO_FLUSH);
}

static void write_message(struct writer *writer, unsigned field, const struct message *message)
{
    write_field(writer, field, message->bytes, message->size);
}

static void write_number(struct writer *writer, unsigned field, uint64_t number)
{
    struct message message = {.size = 0};
    put_number(&message, field, number);
    compress_bytes(writer, message.bytes, message.size, Z_NO_FLUSH);
}

/* Adds a string to the table. Returns its number. */
static uint64_t write_string(struct writer *writer, const char *text)
{
    write_field(writer, PROFILE_STRING, text, strlen(text));
    return writer->strings++;
}

static uint64_t name_string(struct writer *writer, const char *name)
{
    for (unsigned i = 0; i < writer->n_names; i++)
        if (writer->names[i] == name) return writer->name_strings[i];
    writer->names[writer->n_names] = name;
    return writer->name_strings[writer->n_names++] = write_string(writer, *name ? name : "(malloc)");
}

static void write_type(struct writer *writer, unsigned field, const char *type, const char *unit)
{
    struct message message = {.size = 0};
    put_number(&message, TYPE_TYPE, write_string(writer, type));
    put_number(&message, TYPE_UNIT, write_string(writer, unit));
    write_message(writer, field, &message);
}

static void write_head(struct writer *writer, struct profile_times times)
{
    write_string(writer, "");
    write_type(writer, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
    write_type(writer, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
    write_type(writer, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
    write_type(writer, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
    write_type(writer, PROFILE_SAMPLE_TYPE, "inuse_usable", "bytes");
    write_type(writer, PROFILE_PERIOD_TYPE, "space", "bytes");
    write_number(writer, PROFILE_PERIOD, times.period);
    write_number(writer, PROFILE_TIME, (uint64_t)times.start_ns);
    write_number(writer, PROFILE_DURATION, (uint64_t)times.lasts_ns);
    write_number(writer, PROFILE_DEFAULT_TYPE, write_string(writer, "inuse_space"));
}

/* --- samples, mappings, places --------------------------------------------------------------- */

/* Sums of samples that came and went leave a rest of rounding around 0. */
static uint64_t rounded(double number) { return number < 0.5 ? 0 : (uint64_t)(number + 0.5); }

static void write_sample(struct writer *writer, const struct report_stack *stack, uint64_t key)
{
    struct message message = {.size = 0}, row = {.size = 0}, label = {.size = 0};
    for (unsigned i = 0; i < stack->depth; i++) put_varint(&row, stack->places[i] + 1);
    put_message(&message, SAMPLE_LOCATIONS, &row);
    row.size = 0;
    put_varint(&row, rounded(stack->all.objects));
    put_varint(&row, rounded(stack->all.bytes));
    put_varint(&row, rounded(stack->live.objects));
    put_varint(&row, rounded(stack->live.bytes));
    put_varint(&row, rounded(stack->live.taken));
    put_message(&message, SAMPLE_VALUES, &row);
    put_number(&label, LABEL_KEY, key);
    put_number(&label, LABEL_TEXT, name_string(writer, stack->name));
    put_message(&message, SAMPLE_LABEL, &label);
    write_message(writer, PROFILE_SAMPLE, &message);
}

/* Mappings with code. Their numbers are those of /proc/self/maps, from 1 on. */
static void write_mappings(struct writer *writer)
{
    const struct profile_map *map;
    for (size_t i = 0; (map = profile_map_at(i)); i++) {
        struct message message = {.size = 0};
        if (!map->may_execute) continue;
        put_number(&message, MAPPING_ID, i + 1);
        put_number(&message, MAPPING_START, map->begin);
        put_number(&message, MAPPING_LIMIT, map->end);
        put_number(&message, MAPPING_OFFSET, map->offset);
        put_number(&message, MAPPING_FILE, write_string(writer, map->path));
        write_message(writer, PROFILE_MAPPING, &message);
    }
}

static void write_place(struct writer *writer, const struct report_place *place, uint64_t id)
{
    struct message message = {.size = 0}, line = {.size = 0};
    const struct profile_map *map = profile_map_of((void *)place->address);
    put_number(&message, LOCATION_ID, id);
    if (map && map->may_execute)
        put_number(&message, LOCATION_MAPPING, (uint64_t)(map - profile_map_at(0)) + 1);
    put_number(&message, LOCATION_ADDRESS, place->address);
    put_number(&line, LINE_FUNCTION, id);
    if (place->is_known) put_message(&message, LOCATION_LINE, &line);
    write_message(writer, PROFILE_LOCATION, &message);
    if (!place->is_known) return; /* pprof itself may find a name */
    message.size = 0;
    put_number(&message, FUNCTION_ID, id);
    uint64_t name = write_string(writer, place->function);
    put_number(&message, FUNCTION_NAME, name);
    put_number(&message, FUNCTION_SYSTEM_NAME, name);
    put_number(&message, FUNCTION_FILE, write_string(writer, place->file));
    write_message(writer, PROFILE_FUNCTION, &message);
}

static void *take_memory(void *unused, unsigned n, unsigned size)
{
    (void)unused;
    return report_memory((size_t)n * size);
}

static void keep_memory(void *unused, void *memory) { (void)unused, (void)memory; }

bool profile_write_pprof(const struct report *report, struct profile_times times, FILE *out)
{
    struct writer *writer = report_memory(sizeof *writer);
    if (!writer) return false;
    *writer = (struct writer){.out = out, .stream = {.zalloc = take_memory, .zfree = keep_memory}};
    if (deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    write_head(writer, times);
    uint64_t key = write_string(writer, "reap");
    for (uint32_t i = 0; i < report->n_stacks; i++) write_sample(writer, &report->stacks[i], key);
    write_mappings(writer);
    for (uint32_t i = 0; i < report->n_places; i++) write_place(writer, &report->places[i], i + 1);
    compress_bytes(writer, "", 0, Z_FINISH);
    deflateEnd(&writer->stream);
    return true;
}
