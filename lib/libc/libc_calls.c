/* SPDX-License-Identifier: Apache-2.0 */
/* libc_calls.c: libc's functions that allocate for their caller.
 *
 * In a thread that has entered a reap, such memory is the reap's, but memory that libc allocates for itself
 * is not. malloc's return address does not tell the two apart, and libc calls its own strdup for a time
 * zone's name, and asprintf for a message of dlerror. But libc calls its functions directly: a call that
 * comes here is the program's. So malloc sends all calls from libc's text to the heap, and the functions here
 * allocate in their caller's name: they move what libc has made on the heap.
 *
 * Programs built with optimization or _FORTIFY_SOURCE call other names instead, which are here too.
 */
#include "hoard/malloc_fast.h"
#include "hoard/redirect.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

char *__strdup(const char *text);
char *__strndup(const char *text, size_t size);
ssize_t __getdelim(char **line, size_t *size, int delimiter, FILE *stream);
int __asprintf(char **made, const char *format, ...);
int __asprintf_chk(char **made, int flag, const char *format, ...);
int __vasprintf_chk(char **made, int flag, const char *format, va_list args);
char *__realpath_chk(const char *path, char *buffer, size_t size);
char *__getcwd_chk(char *buffer, size_t size, size_t room);

#define CALLER __builtin_return_address(0)

/* libc's own function. A name that libc does not have is NULL, and no program calls it. */
#define REAL(function)                                                                                       \
    __extension__({                                                                                          \
        static __typeof__(&(function)) real_;                                                                \
        __typeof__(&(function)) now_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);                            \
        if (UNLIKELY(now_ == NULL)) {                                                                        \
            now_ = (__typeof__(&(function)))dlsym(RTLD_NEXT, #function);                                     \
            __atomic_store_n(&real_, now_, __ATOMIC_RELAXED);                                                \
        }                                                                                                    \
        now_;                                                                                                \
    })

/* Moves `size` bytes that libc has made on the heap to its caller's reap. NULL: the reap has no memory. */
static COLD void *to_reap(void *made, size_t size, const void *caller)
{
    void *moved = hoard_malloc_any(size, caller);
    if (moved != NULL) memcpy(moved, made, size);
    hoard_free_fast(made, "free");
    return moved;
}

static inline char *given(char *made, const void *caller)
{
    return made != NULL && redirect_takes(caller) ? to_reap(made, strlen(made) + 1, caller) : made;
}

/* --- copies ---------------------------------------------------------------------------------- */

/* malloc by its name may be the program's own, as its free is. */
static inline void *new_copy(size_t size, const void *caller)
{
    return LIKELY(redirect_on) ? hoard_malloc_any(size, caller) : malloc(size);
}

static inline char *copy_text(const char *text, size_t length, const void *caller)
{
    char *made = new_copy(length + 1, caller);
    if (made == NULL) return NULL;
    made[length] = '\0';
    return memcpy(made, text, length);
}

char *strdup(const char *text) { return copy_text(text, strlen(text), CALLER); }

char *__strdup(const char *text) { return copy_text(text, strlen(text), CALLER); }

char *strndup(const char *text, size_t size) { return copy_text(text, strnlen(text, size), CALLER); }

char *__strndup(const char *text, size_t size) { return copy_text(text, strnlen(text, size), CALLER); }

wchar_t *wcsdup(const wchar_t *text)
{
    size_t bytes = (wcslen(text) + 1) * sizeof *text;
    wchar_t *made = new_copy(bytes, CALLER);
    return made != NULL ? memcpy(made, text, bytes) : NULL;
}

/* --- formats --------------------------------------------------------------------------------- */

static int printed(char **made, int length, const void *caller)
{
    if (length < 0 || !redirect_takes(caller)) return length;
    *made = to_reap(*made, (size_t)length + 1, caller);
    return *made != NULL ? length : -1;
}

int vasprintf(char **made, const char *format, va_list args)
{
    return printed(made, REAL(vasprintf)(made, format, args), CALLER);
}

int __vasprintf_chk(char **made, int flag, const char *format, va_list args)
{
    return printed(made, REAL(__vasprintf_chk)(made, flag, format, args), CALLER);
}

/* The body of the three functions that take arguments. */
#define PRINT(call)                                                                                          \
    do {                                                                                                     \
        va_list args;                                                                                        \
        va_start(args, format);                                                                              \
        int length = call;                                                                                   \
        va_end(args);                                                                                        \
        return printed(made, length, CALLER);                                                                \
    } while (0)

int asprintf(char **made, const char *format, ...) { PRINT(REAL(vasprintf)(made, format, args)); }

int __asprintf(char **made, const char *format, ...) { PRINT(REAL(vasprintf)(made, format, args)); }

int __asprintf_chk(char **made, int flag, const char *format, ...)
{
    PRINT(REAL(__vasprintf_chk)(made, flag, format, args));
}

/* --- lines ----------------------------------------------------------------------------------- */

enum { FIRST_LINE = 120 }; /* bytes of libc's first allocation for a line */

/* libc allocates for a line that has no memory yet. realloc leaves a line with its owner. */
static ssize_t read_line(char **line, size_t *size, int delimiter, FILE *stream, const void *caller)
{
    bool begins = line != NULL && size != NULL && (*line == NULL || *size == 0);
    if (begins && redirect_takes(caller) && !ferror(stream)) {
        *line = hoard_malloc_any(FIRST_LINE, caller);
        *size = FIRST_LINE;
        if (*line == NULL) return -1;
    }
    return REAL(__getdelim)(line, size, delimiter, stream);
}

ssize_t getdelim(char **line, size_t *size, int delimiter, FILE *stream)
{
    return read_line(line, size, delimiter, stream, CALLER);
}

ssize_t __getdelim(char **line, size_t *size, int delimiter, FILE *stream)
{
    return read_line(line, size, delimiter, stream, CALLER);
}

ssize_t getline(char **line, size_t *size, FILE *stream)
{
    return read_line(line, size, '\n', stream, CALLER);
}

/* --- paths ----------------------------------------------------------------------------------- */

char *realpath(const char *path, char *buffer)
{
    char *made = REAL(realpath)(path, buffer);
    return buffer != NULL ? made : given(made, CALLER);
}

char *__realpath_chk(const char *path, char *buffer, size_t size)
{
    char *made = REAL(__realpath_chk)(path, buffer, size);
    return buffer != NULL ? made : given(made, CALLER);
}

char *canonicalize_file_name(const char *path) { return given(REAL(canonicalize_file_name)(path), CALLER); }

/* Without a buffer, but with a size, the function allocates this many bytes. */
static char *directory(char *made, const char *buffer, size_t size, const void *caller)
{
    if (buffer != NULL || made == NULL || size == 0) return buffer != NULL ? made : given(made, caller);
    return redirect_takes(caller) ? to_reap(made, size, caller) : made;
}

char *getcwd(char *buffer, size_t size)
{
    return directory(REAL(getcwd)(buffer, size), buffer, size, CALLER);
}

char *__getcwd_chk(char *buffer, size_t size, size_t room)
{
    return directory(REAL(__getcwd_chk)(buffer, size, room), buffer, size, CALLER);
}

char *get_current_dir_name(void) { return given(REAL(get_current_dir_name)(), CALLER); }
