/* SPDX-License-Identifier: Apache-2.0 */
/* reap_string.c: copies and formatted strings in a reap, and objects that grow at their end (builders).
 *
 * A builder's room doubles, so that n bytes in small pieces cost O(n). Resizing keeps an object in its place
 * while the memory behind it is free; behind the last object before the bump pointer that is always the hole.
 * Near a limit the room grows only by the bytes that the program asks for: the function of reapOnLimit must
 * not run for more.
 */
#include "reap.h"

#include <errno.h>
#include <string.h>

#include "base/report.h"
#include "reap/quota.h"
#include "reap/reap_alloc.h"
#include "reap/reap_shared.h"
#include "reap/shared_use.h"

/* --- copies ---------------------------------------------------------------------------------- */

static void *copy_into(void **handle, const void *bytes, size_t n)
{
    void *object = reapMalloc(handle, n);
    return object && n ? memcpy(object, bytes, n) : object;
}

void *reapMemdup(void **handle, const void *bytes, size_t n)
{
    reap_check(handle, "reapMemdup");
    if (n) REAP_NOT_NULL(bytes, "reapMemdup");
    return copy_into(handle, bytes, n);
}

char *reapStrdup(void **handle, const char *s)
{
    reap_check(handle, "reapStrdup");
    REAP_NOT_NULL(s, "reapStrdup");
    return copy_into(handle, s, strlen(s) + 1);
}

char *reapStrndup(void **handle, const char *s, size_t n)
{
    reap_check(handle, "reapStrndup");
    REAP_NOT_NULL(s, "reapStrndup");
    size_t length = strnlen(s, n);
    char *string = reapMalloc(handle, length + 1);
    if (!string) return NULL;
    string[length] = '\0';
    return memcpy(string, s, length);
}

/* --- builders -------------------------------------------------------------------------------- */

enum { ROOM_MIN = 256 }; /* bytes of the first object: reapFinish gives the rest back */

/* Resizes a builder's object, or makes the first one. NULL: no memory, and nothing has changed. */
static char *resize_builder(void **handle, const reap_builder *builder, size_t room, const char *call)
{
    struct reap *reap = *handle;
    bool is_shared = UNLIKELY(!handle_is_plain_known(reap));
    if (!builder->data) return is_shared ? shared_malloc_any(reap, room, call) : reap_alloc_any(reap, room);
    if (is_shared) return shared_realloc(handle_face(reap, call), builder->data, room, call);
    struct reap_chunk *chunk = reap_chunk_of_object(reap, builder->data, call);
    return reap_alloc_resize(reap, chunk, builder->data, room);
}

/* The new room: twice the old one, if it is enough and no limit refuses it; else just the need. */
static size_t room_to_ask_for(void **handle, size_t room, size_t need, const char *call)
{
    size_t twice = room < ROOM_MIN ? ROOM_MIN : room <= PTRDIFF_MAX / 2 ? 2 * room : need;
    const struct reap *reap = *handle;
    if (handle_is_plain_known(reap) && !(reap->flags & REAP_LIMITED)) return need < twice ? twice : need;
    USED struct reap_use use = reap_use(handle, call);
    return need < twice && twice - room <= reap_quota_left(use.reap) ? twice : need;
}

static NOINLINE bool grow_builder(void **handle, reap_builder *builder, size_t need, const char *call)
{
    size_t room = room_to_ask_for(handle, builder->data ? builder->room : 0, need, call);
    char *data = resize_builder(handle, builder, room, call);
    if (!data && room > need) data = resize_builder(handle, builder, room = need, call);
    if (!data) return false;
    builder->data = data;
    builder->room = room;
    return true;
}

/* Checks the arguments of a call, and makes room for n bytes more and a zero behind them. */
static bool begin_builder(void **handle, reap_builder *builder, size_t n, const char *call)
{
    size_t need;
    reap_check(handle, call);
    REAP_NOT_NULL(builder, call);
    if (UNLIKELY(builder->data && builder->length >= builder->room))
        report_misuse(call, builder, "not a builder");
    if (!builder->data) builder->length = 0;
    if (UNLIKELY(__builtin_add_overflow(builder->length, n, &need) || need >= PTRDIFF_MAX)) {
        errno = ENOMEM;
        return false;
    }
    return LIKELY(builder->data && need < builder->room) || grow_builder(handle, builder, need + 1, call);
}

/* Adds n bytes to the object, which the caller fills. */
static char *extend(reap_builder *builder, size_t n)
{
    char *bytes = builder->data + builder->length;
    builder->length += n;
    builder->data[builder->length] = '\0';
    return bytes;
}

/* Appends bytes. They may lie in the object itself, which may move. */
static int append_bytes(void **handle, reap_builder *builder, const void *bytes, size_t n, const char *call)
{
    REAP_NOT_NULL(builder, call);
    size_t offset = (uintptr_t)bytes - (uintptr_t)builder->data;
    bool is_own = builder->data && offset <= builder->length;
    if (!begin_builder(handle, builder, n, call)) return -1;
    const char *from = is_own ? builder->data + offset : bytes;
    if (n) memmove(builder->data + builder->length, from, n);
    extend(builder, n);
    return 0;
}

int reapAppend(void **handle, reap_builder *builder, const void *bytes, size_t n)
{
    if (n) REAP_NOT_NULL(bytes, "reapAppend");
    return append_bytes(handle, builder, bytes, n, "reapAppend");
}

int reapAppendString(void **handle, reap_builder *builder, const char *s)
{
    REAP_NOT_NULL(s, "reapAppendString");
    return append_bytes(handle, builder, s, strlen(s), "reapAppendString");
}

void *reapExtend(void **handle, reap_builder *builder, size_t n)
{
    return begin_builder(handle, builder, n, "reapExtend") ? extend(builder, n) : NULL;
}

/* Frees the room that is not used. If that needs memory and there is none, the room stays. */
static char *trim_builder(void **handle, const reap_builder *builder)
{
    int saved = errno;
    char *data = resize_builder(handle, builder, builder->length + 1, "reapFinish");
    errno = saved;
    return data ? data : builder->data;
}

char *reapFinish(void **handle, reap_builder *builder)
{
    if (!begin_builder(handle, builder, 0, "reapFinish")) return NULL;
    extend(builder, 0);
    char *data = trim_builder(handle, builder);
    *builder = (reap_builder){NULL, 0, 0};
    return data;
}

/* --- formatted ------------------------------------------------------------------------------- */

enum { GUESS = 256 }; /* bytes on the stack, enough for the output of most formats */

/* Formats a text, when its length is known, into a new object or at the end of a builder's. Most texts fit
 * the guess and are formatted once. NULL: vsnprintf has failed, or there is no memory. */
static char *print_into(void **handle, bool appends, reap_builder *builder, const char *format, va_list args,
                        const char *call)
{
    char guess[GUESS], *text = NULL;
    reap_check(handle, call);
    REAP_NOT_NULL(format, call);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(guess, sizeof guess, format, args);
    if (length >= 0 && !appends)
        text = reapMalloc(handle, (size_t)length + 1);
    else if (length >= 0 && begin_builder(handle, builder, (size_t)length, call))
        text = extend(builder, (size_t)length);
    if (text && length < GUESS)
        memcpy(text, guess, (size_t)length + 1);
    else if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *reapVprintf(void **handle, const char *format, va_list args)
{
    return print_into(handle, false, NULL, format, args, "reapVprintf");
}

char *reapPrintf(void **handle, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *string = print_into(handle, false, NULL, format, args, "reapPrintf");
    va_end(args);
    return string;
}

int reapVappendf(void **handle, reap_builder *builder, const char *format, va_list args)
{
    return print_into(handle, true, builder, format, args, "reapVappendf") ? 0 : -1;
}

int reapAppendf(void **handle, reap_builder *builder, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *end = print_into(handle, true, builder, format, args, "reapAppendf");
    va_end(args);
    return end ? 0 : -1;
}
