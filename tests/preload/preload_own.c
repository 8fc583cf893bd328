/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a malloc of its own, as of an allocator that is linked statically: malloc, calloc, realloc
 * and free, and no more. All that libc's functions allocate for the program, its free must take: outside of a
 * reap, inside one, and in a program at a fixed address that takes the address of free. */
#include "reap.h"
#include "support/expect.h"

#include <stdarg.h>
#include <wchar.h>

#pragma weak reapCreate
#pragma weak reapEnterQuietly
#pragma weak reapLeave
#pragma weak reapDestroy

static char arena[16 << 20] __attribute__((aligned(16)));
static size_t used;
static unsigned foreign;

struct head {
    size_t size, magic;
};
enum { MAGIC = 0x5eed };

void *malloc(size_t size)
{
    size_t all = sizeof(struct head) + (size + 15) / 16 * 16;
    size_t at = __atomic_fetch_add(&used, all, __ATOMIC_RELAXED);
    if (size > sizeof arena || at + all > sizeof arena) abort();
    struct head *head = (struct head *)(void *)(arena + at);
    *head = (struct head){size, MAGIC};
    return head + 1;
}

static struct head *head_of(void *block)
{
    char *at = block;
    if (at < arena || at >= arena + sizeof arena || ((struct head *)block)[-1].magic != MAGIC) return NULL;
    return (struct head *)block - 1;
}

void free(void *block)
{
    if (block != NULL && head_of(block) == NULL) foreign++;
}

void *calloc(size_t n, size_t size)
{
    void *block = malloc(n * size);
    return memset(block, 0, n * size);
}

void *realloc(void *block, size_t size)
{
    void *copy = malloc(size);
    struct head *head = block != NULL ? head_of(block) : NULL;
    if (block != NULL && head == NULL) foreign++;
    if (head != NULL) memcpy(copy, block, head->size < size ? head->size : size);
    return copy;
}

char *__strdup(const char *text);
char *__strndup(const char *text, size_t size);

#define OURS(call)                                                                                           \
    do {                                                                                                     \
        void *block_ = OPAQUE(call);                                                                         \
        foreign = 0;                                                                                         \
        free(block_);                                                                                        \
        if (block_ == NULL || foreign != 0) fprintf(stderr, "%s gives a block of another malloc\n", #call);  \
        EXPECT(block_ != NULL && foreign == 0);                                                              \
    } while (0)

static char *printed(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return text;
}

static char *formatted(void)
{
    char *text = NULL;
    return asprintf(&text, "%d and %s", 7, "more") > 0 ? text : NULL;
}

static char *line(int delimiter)
{
    FILE *file = fopen("/proc/self/status", "r");
    char *text = NULL;
    size_t size = 0;
    ssize_t n = delimiter == '\n' ? getline(&text, &size, file) : getdelim(&text, &size, delimiter, file);
    fclose(file);
    return n > 0 ? text : NULL;
}

static void all(void)
{
    OURS(strdup("text"));
    OURS(__strdup("text"));
    OURS(strndup("text", 2));
    OURS(__strndup("text", 2));
    OURS(wcsdup(L"text"));
    OURS(reallocarray(NULL, 3, 40));
    OURS(reallocarray(malloc(10), 3, 40));
    OURS(printed("%s", "text"));
    OURS(formatted());
    OURS(line('\n'));
    OURS(line(':'));
    OURS(realpath("/usr/bin/..", NULL));
    OURS(canonicalize_file_name("/usr"));
    OURS(getcwd(NULL, 0));
    OURS(getcwd(NULL, 4096));
    OURS(get_current_dir_name());
}

static void (*volatile release)(void *) = free;

int main(void)
{
    void *reap;
    release(malloc(1));
    EXPECT(foreign == 0);
    all();
    if (reapCreate == NULL) return expect_status();
    reapCreate(&reap, NULL);
    reapEnterQuietly(&reap);
    all();
    reapLeave();
    reapDestroy(&reap);
    return expect_status();
}
