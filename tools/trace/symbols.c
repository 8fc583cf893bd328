/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/elf_names.h"

/* The address in a file's own numbers is the offset in a library; in a program that does not move, the
 * address. */
void symbols_frame(const struct reader *reader, uint64_t at, char *text, size_t size)
{
    char program[4096];
    uint64_t offset;
    const char *path = reader_module(reader, at - 1, &offset);
    if (path && strcmp(path, "-") == 0) {
        snprintf(program, sizeof program, "%.*s", (int)strcspn(reader_command(reader), " "),
                 reader_command(reader));
        path = program;
    }
    const struct elf_names *names = path ? elf_names_of(path) : NULL;
    const char *name = names ? elf_names_at(names, offset) : NULL;
    const char *module = path ? strrchr(path, '/') : NULL;
    if (name)
        snprintf(text, size, "%.200s in %.100s", name, module ? module + 1 : path);
    else
        reader_frame(reader, at, text, size);
}
