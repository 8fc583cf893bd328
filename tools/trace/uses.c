/* SPDX-License-Identifier: Apache-2.0 */
#include "uses.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "trace_format.h"
#include "varint.h"

enum { LINE_MOST = 256, KNOWN = 1 << 14, PAGE = 4096, GRAIN = 8 };

struct uses {
    FILE *kept;
    uint64_t last;
    uint64_t known[KNOWN]; /* told since the last mark */
    uint64_t lines;
};

static bool put(struct uses *uses, uint64_t address, bool is_mark)
{
    char bytes[VARINT_MAX + 1];
    bytes[0] = is_mark;
    const char *end = varint_put(bytes + 1, varint_fold(uses->last, address));
    uses->last = address;
    return fwrite(bytes, (size_t)(end - bytes), 1, uses->kept) == 1;
}

/* False: the file is full. */
static bool take(struct uses *uses, char kind, uint64_t address, unsigned long size)
{
    bool is_mark =
        kind == 'S' && size == sizeof(uint32_t) && address % PAGE == offsetof(struct trace_slot, used);
    if (is_mark) {
        memset(uses->known, 0, sizeof uses->known);
        return put(uses, address, true);
    }
    if (size > PAGE) size = PAGE;
    for (uint64_t at = address / GRAIN; at <= (address + (size ? size - 1 : 0)) / GRAIN; at++) {
        uint64_t *known = &uses->known[at % KNOWN];
        if (*known == at) continue;
        *known = at;
        if (!put(uses, at * GRAIN, false)) return false;
    }
    return true;
}

/* What is no line of an access (lackey's own words) is passed over. */
static bool take_line(struct uses *uses, const char *line)
{
    if (line[0] != ' ' || !line[1] || !strchr("LSM", line[1]) || line[2] != ' ') return true;
    char *end;
    uint64_t address = strtoull(line + 3, &end, 16);
    if (*end != ',') return true;
    uses->lines++;
    return take(uses, line[1], address, strtoul(end + 1, NULL, 10));
}

static bool take_all(struct uses *uses, FILE *from)
{
    static char line[LINE_MOST];
    while (fgets(line, sizeof line, from))
        if (!take_line(uses, line)) return false;
    return !ferror(from) && fflush(uses->kept) == 0;
}

struct uses *uses_read(const char *path)
{
    struct uses *uses = calloc(1, sizeof *uses);
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (uses) uses->kept = tmpfile();
    bool has = uses && uses->kept && from && take_all(uses, from);
    if (!has) fprintf(stderr, "reap-analyse: %s: %s\n", path, strerror(errno));
    if (has && uses->lines == 0)
        fprintf(stderr, "reap-analyse: %s: no line of an access, as lackey writes them\n", path);
    has = has && uses->lines > 0;
    if (from && from != stdin) fclose(from);
    if (has) {
        rewind(uses->kept);
        uses->last = 0;
        return uses;
    }
    uses_free(uses);
    return NULL;
}

bool uses_next(struct uses *uses, struct uses_item *item)
{
    char bytes[VARINT_MAX];
    const char *at = bytes;
    int kind = getc_unlocked(uses->kept), n = 0;
    uint64_t folded;
    if (kind == EOF) return false;
    do bytes[n] = (char)getc_unlocked(uses->kept);
    while (bytes[n++] & 0x80 && n < VARINT_MAX);
    if (!varint_get(&at, bytes + n, &folded)) return false;
    *item = (struct uses_item){varint_unfold(uses->last, folded), kind != 0};
    uses->last = item->address;
    return true;
}

void uses_free(struct uses *uses)
{
    if (uses && uses->kept) fclose(uses->kept);
    free(uses);
}
