/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 256, PARTS_MOST = 4096 };
static const uint64_t TABLE_MOST = (uint64_t)1 << 26;

static struct file {
    char *path;
    ElfW(Sym) * symbols;
    char *names;
    size_t n, n_names;
} files[FILES_MOST];
static unsigned n_files;

/* A part of a file, ended by a zero; NULL: it is not there, or too large. */
static void *read_part(int fd, uint64_t at, uint64_t size)
{
    char *bytes = size <= TABLE_MOST ? malloc(size + 1) : NULL;
    if (!bytes) return NULL;
    bytes[size] = '\0';
    if (pread(fd, bytes, size, (off_t)at) == (ssize_t)size) return bytes;
    free(bytes);
    return NULL;
}

/* The full table, or that of the dynamic linker. */
static void read_tables(struct file *file, int fd, const ElfW(Shdr) * parts, unsigned n)
{
    for (unsigned kind = SHT_SYMTAB; !file->symbols; kind = SHT_DYNSYM) {
        for (unsigned i = 0; i < n; i++) {
            const ElfW(Shdr) *part = &parts[i];
            if (part->sh_type != kind || part->sh_link >= n) continue;
            const ElfW(Shdr) *names = &parts[part->sh_link];
            file->symbols = read_part(fd, part->sh_offset, part->sh_size);
            file->names = read_part(fd, names->sh_offset, names->sh_size);
            file->n = file->symbols && file->names ? part->sh_size / sizeof *file->symbols : 0;
            file->n_names = names->sh_size;
        }
        if (kind == SHT_DYNSYM) return;
    }
}

static const struct file *file_of(const char *path)
{
    ElfW(Ehdr) head;
    for (unsigned i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    if (n_files == FILES_MOST) return NULL;
    struct file *file = &files[n_files];
    *file = (struct file){.path = strdup(path)};
    if (!file->path) return NULL;
    n_files++;
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return file;
    bool is_elf = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) &&
                  pread(fd, &head, sizeof head, 0) == sizeof head &&
                  memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
                  head.e_shentsize == sizeof(ElfW(Shdr)) && head.e_shnum <= PARTS_MOST;
    ElfW(Shdr) *parts = is_elf ? read_part(fd, head.e_shoff, head.e_shnum * sizeof *parts) : NULL;
    if (parts) read_tables(file, fd, parts, head.e_shnum);
    free(parts);
    close(fd);
    return file;
}

/* The last one that begins at the place or before it. */
static const char *name_at(const struct file *file, uint64_t at)
{
    const ElfW(Sym) *best = NULL;
    for (size_t i = 0; i < file->n; i++) {
        const ElfW(Sym) *symbol = &file->symbols[i];
        bool fits = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
                    symbol->st_value <= at && at - symbol->st_value < symbol->st_size &&
                    symbol->st_name < file->n_names;
        if (fits && (!best || symbol->st_value > best->st_value)) best = symbol;
    }
    return best ? file->names + best->st_name : NULL;
}

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
    const struct file *file = path ? file_of(path) : NULL;
    const char *name = file ? name_at(file, offset) : NULL;
    const char *module = path ? strrchr(path, '/') : NULL;
    if (name)
        snprintf(text, size, "%.200s in %.100s", name, module ? module + 1 : path);
    else
        reader_frame(reader, at, text, size);
}

void symbols_forget(void)
{
    for (unsigned i = 0; i < n_files; i++) free(files[i].path), free(files[i].symbols), free(files[i].names);
    n_files = 0;
}
