/* malloc_ambient.c: which of libc's functions allocate what their caller gets.
 *
 * Their names do not help: where malloc returns to in asprintf is a function without a symbol. So each of
 * them is called, and what it calls malloc from is remembered. What else it may need for itself (a stream's
 * buffer) is there before. */
#include "malloc_ambient.h"

#include "ambient.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static FILE *stream; /* a few lines, the first one read already */

static void copies(void)
{
    char *volatile text = (char *)"text";
    free(strdup(text));
    free(strndup(text, 2));
    free(wcsdup(L"text"));
}

static void prints(void)
{
    char *made = NULL;
    if (asprintf(&made, "%d", 1) >= 0) free(made);
    if (asprintf(&made, "%300d", 1) >= 0) free(made);
    if (asprintf(&made, "%5000d", 1) >= 0) free(made);
}

static void lines(void)
{
    char *line = NULL;
    size_t size = 0;
    if (getline(&line, &size, stream) >= 0) free(line);
}

static void paths(void)
{
    free(realpath("/", NULL));
    free(getcwd(NULL, 0));
    free(get_current_dir_name());
}

static void learn(void)
{
    static char text[] = "one\ntwo\nthree\n";
    ambient_learn_from(copies);
    ambient_learn_from(prints);
    ambient_learn_from(paths);
    stream = fmemopen(text, sizeof text - 1, "r");
    if (stream == NULL) return;
    if (getc(stream) != EOF) ambient_learn_from(lines);
    fclose(stream);
}

void malloc_ambient_start(void) { ambient_learn = learn; }
