/* SPDX-License-Identifier: Apache-2.0 */
/* reap_string.c: copies and formatted strings in a reap. */
#include "reap.h"

#include <string.h>

#include "reap/reap_shared.h"
#include "reap/reap_string.h"

enum { GUESS = 256 }; /* bytes on the stack, enough for the output of most formats */

static void *copy(void **handle, const void *bytes, size_t n)
{
    void *object = reapMalloc(handle, n);
    return object && n ? memcpy(object, bytes, n) : object;
}

void *reapMemdup(void **handle, const void *bytes, size_t n)
{
    reap_check(handle, "reapMemdup");
    if (n) REAP_NOT_NULL(bytes, "reapMemdup");
    return copy(handle, bytes, n);
}

char *reapStrdup(void **handle, const char *s)
{
    reap_check(handle, "reapStrdup");
    REAP_NOT_NULL(s, "reapStrdup");
    return copy(handle, s, strlen(s) + 1);
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

/* Most texts fit the guess and are formatted once. */
bool reap_format(char *(*place)(void *to, size_t length), void *to, const char *format, va_list args)
{
    char guess[GUESS];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(guess, sizeof guess, format, args);
    char *text = length < 0 ? NULL : place(to, (size_t)length);
    if (text && length < GUESS)
        memcpy(text, guess, (size_t)length + 1);
    else if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text != NULL;
}

struct string {
    void **handle;
    char *text;
};

static char *new_string(void *to, size_t length)
{
    struct string *string = to;
    return string->text = reapMalloc(string->handle, length + 1);
}

static char *print(void **handle, const char *format, va_list args)
{
    struct string string = {handle, NULL};
    reap_format(new_string, &string, format, args);
    return string.text;
}

char *reapVprintf(void **handle, const char *format, va_list args)
{
    reap_check(handle, "reapVprintf");
    REAP_NOT_NULL(format, "reapVprintf");
    return print(handle, format, args);
}

char *reapPrintf(void **handle, const char *format, ...)
{
    reap_check(handle, "reapPrintf");
    REAP_NOT_NULL(format, "reapPrintf");
    va_list args;
    va_start(args, format);
    char *string = print(handle, format, args);
    va_end(args);
    return string;
}
