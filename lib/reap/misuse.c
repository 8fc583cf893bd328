/* SPDX-License-Identifier: Apache-2.0 */
/* misuse.c: finds out what is wrong, for the one line before abort. */
#include "reap/misuse.h"

#include <string.h>

#include "base/report.h"

void reap_misuse_handle(const char *call, void *handle) { report_misuse(call, handle, "not a live reap"); }

void reap_misuse_null(const char *call) { report_misuse(call, NULL, "an argument is NULL"); }

struct reap_face *handle_face(void *handle, const char *call)
{
    struct reap_face *face = handle_is_readable(handle) ? handle_face_known(handle) : NULL;
    if (UNLIKELY(!face)) reap_misuse_handle(call, handle);
    ASSERT(reap_face(face->reap) == face && !face->bump && !face->end);
    return face;
}

void handle_check_place_in(void **handle, const char *call)
{
    const struct reap_chunk *chunk = chunk_of(handle, NULL); /* reads no word of the program */
    if (!chunk || !reap_chunk_is_live(chunk) || chunk != reap_first_chunk(chunk->owner)) return;
    if ((void *)handle == reap_handle(chunk->owner))
        report_misuse(call, handle, "a reap, where the address of a handle is to be set");
}

/* The words for a freed object, which depend on the call. */
static const char *freed(const char *call)
{
    bool frees =
        strcmp(call, "reapFree") == 0 || strcmp(call, "reapFreeAny") == 0 || strcmp(call, "free") == 0;
    return frees ? "freed twice" : "not a live object";
}

bool reap_is_whole(const struct reap_chunk *chunk)
{
    return chunk->kind == REAP_WHOLE && (!chunk->apart || apart_is_intact(chunk));
}

void reap_note_object(struct reap_chunk *chunk)
{
    struct reap *reap = chunk->owner;
    apart_note(chunk, reap_handle(reap), reap_name_text(reap_known(reap)));
}

void reap_check_objects(struct reap *reap, unsigned depth, const char *call)
{
    for (struct reap_chunk *chunk = reap->chunks; chunk && chunk->depth >= depth; chunk = chunk->next) {
        if (!reap_chunk_is_apart(chunk)) continue;
        if (!apart_is_intact(chunk)) reap_misuse_object(call, reap, reap_address(chunk->first));
        reap_note_object(chunk);
    }
}

static const char *in_regular(const struct reap_chunk *chunk, const void *object, const char *call)
{
    size_t unit = reap_unit(object), top = reap_chunk_top(chunk);
    if ((uintptr_t)object % REAP_UNIT || unit < chunk->first || unit >= chunk->end_unit)
        return "not the start of an object";
    const struct reap *reap = chunk->owner;
    bool in_hole = chunk == reap->current && unit >= top && unit < reap_unit(reap->bump_max);
    if (in_hole || (!chunk->lives && unit >= top))
        return unit < chunk->high ? freed(call) : "not a live object";
    size_t start = bitmap_previous(chunk->starts, unit, chunk->first);
    bool in_gap = start != SIZE_MAX && !reap_is_live_at(chunk, start);
    return in_gap ? freed(call) : "not the start of an object";
}

static const char *in_live_chunk(const struct reap_chunk *chunk, const void *object, const char *call)
{
    switch (chunk->kind) {
    case REAP_REGULAR: return in_regular(chunk, object, call);
    case REAP_WHOLE:
        if ((uintptr_t)object % REAP_UNIT == 0 && reap_unit(object) == chunk->first)
            return "memory around it was written to";
        return "not the start of an object";
    default: return "not a live object";
    }
}

/* The words for a pointer into a dead chunk. The tag of a chunk that was given back empty tells that its
 * objects were freed, until its memory is used again. */
static const char *in_dead_chunk(const struct reap_chunk *chunk, const void *object, const char *call)
{
    size_t unit = reap_unit(object);
    bool whole = chunk->kind == REAP_WHOLE;
    if (chunk->tag != ~reap_chunk_tag(chunk) || (uintptr_t)object % REAP_UNIT) return "not a live object";
    return (whole ? unit == chunk->first : unit >= chunk->first) ? freed(call) : "not a live object";
}

/* Prints the line and aborts. Of an object that lies apart the line says more. */
static COLD _Noreturn void misused(const char *call, const void *object, const struct reap_chunk *chunk,
                                   const char *what)
{
    char line[APART_LINE];
    if (!reap_chunk_is_apart(chunk)) report_misuse(call, object, what);
    apart_tell(chunk, what, line, sizeof line);
    report_misuse(call, object, line);
}

void reap_misuse_object(const char *call, const struct reap *reap, const void *object)
{
    struct reap_chunk *chunk = chunk_around(object);
    if (!chunk) report_misuse(call, object, "not a reap's object");
    if (!reap_chunk_is_live(chunk)) misused(call, object, chunk, in_dead_chunk(chunk, object, call));
    const struct reap *owner = reap_known(chunk->owner);
    const char *name = reap_name_text(owner);
    if (reap_chunk_is_apart(chunk)) reap_note_object(chunk);
    bool is_others = reap && owner != reap_known(reap);
    if (is_others && *name) report_misuse_of(call, object, "an object of another reap,", name);
    if (is_others) report_misuse(call, object, "an object of another reap");
    misused(call, object, chunk, in_live_chunk(chunk, object, call));
}
