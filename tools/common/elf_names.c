/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/elf_names.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 256, PATH_MOST = 4096, PARTS_MOST = 4096 };
static const uint64_t TABLE_MOST = (uint64_t)1 << 28;

/* A part of the file, and a zero behind it. */
struct part {
    void *bytes; /* NULL: not there, or too large */
    size_t size;
};

struct elf_names {
    char *path;
    ino_t inode;
    struct part segments, symbols, names;
    size_t n_segments, n; /* n: functions, which come first in `symbols`, by their addresses */
};

static struct elf_names *files; /* a reservation */
static unsigned n_files;

static void *reserve(size_t size)
{
    void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

static struct part read_part(int fd, uint64_t at, uint64_t size)
{
    struct part part = {.size = size};
    if (size > 0 && size <= TABLE_MOST) part.bytes = reserve(size + 1);
    if (part.bytes && pread(fd, part.bytes, size, (off_t)at) != (ssize_t)size) {
        munmap(part.bytes, size + 1);
        part.bytes = NULL;
    }
    return part;
}

static void drop_part(struct part *part)
{
    if (part->bytes) munmap(part->bytes, part->size + 1);
    *part = (struct part){.bytes = NULL};
}

/* --- reading --------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const ElfW(Sym) *one = a, *two = b;
    return (one->st_value > two->st_value) - (one->st_value < two->st_value);
}

static bool is_function(const struct elf_names *file, const ElfW(Sym) * symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_name < file->names.size;
}

/* Keeps the functions. */
static void sort_functions(struct elf_names *file)
{
    ElfW(Sym) *symbols = file->symbols.bytes;
    for (size_t i = 0; i < file->symbols.size / sizeof *symbols; i++)
        if (is_function(file, &symbols[i])) symbols[file->n++] = symbols[i];
    qsort(symbols, file->n, sizeof *symbols, by_address);
}

/* The full table, or that of ld.so. */
static void read_table(struct elf_names *file, int fd, const ElfW(Shdr) * parts, unsigned n)
{
    static const unsigned kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (unsigned kind = 0; kind < 2; kind++) {
        for (unsigned i = 0; i < n; i++) {
            if (parts[i].sh_type != kinds[kind] || parts[i].sh_link >= n) continue;
            const ElfW(Shdr) *names = &parts[parts[i].sh_link];
            file->symbols = read_part(fd, parts[i].sh_offset, parts[i].sh_size);
            file->names = read_part(fd, names->sh_offset, names->sh_size);
            if (file->symbols.bytes && file->names.bytes) sort_functions(file);
            if (file->n > 0) return;
            drop_part(&file->symbols);
            drop_part(&file->names);
        }
    }
}

static void read_file(struct elf_names *file, int fd)
{
    ElfW(Ehdr) head;
    struct stat is;
    bool is_elf = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) &&
                  pread(fd, &head, sizeof head, 0) == sizeof head &&
                  memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
                  head.e_shentsize == sizeof(ElfW(Shdr)) && head.e_shnum <= PARTS_MOST &&
                  head.e_phentsize == sizeof(ElfW(Phdr)) && head.e_phnum <= PARTS_MOST;
    if (!is_elf) return;
    file->segments = read_part(fd, head.e_phoff, head.e_phnum * sizeof(ElfW(Phdr)));
    file->n_segments = file->segments.bytes ? head.e_phnum : 0;
    struct part parts = read_part(fd, head.e_shoff, head.e_shnum * sizeof(ElfW(Shdr)));
    if (parts.bytes) read_table(file, fd, parts.bytes, head.e_shnum);
    drop_part(&parts);
    if (file->n > 0) file->inode = is.st_ino;
}

const struct elf_names *elf_names_of(const char *path)
{
    for (unsigned i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    size_t size = strlen(path) + 1;
    if (n_files == 0 && !files) files = reserve(FILES_MOST * (sizeof *files + PATH_MOST));
    if (!files || n_files == FILES_MOST || size > PATH_MOST) return NULL;
    struct elf_names *file = &files[n_files];
    char *paths = (char *)&files[FILES_MOST];
    *file = (struct elf_names){.path = memcpy(paths + n_files * (size_t)PATH_MOST, path, size)};
    n_files++;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return file;
    read_file(file, fd);
    close(fd);
    return file;
}

void elf_names_forget(void)
{
    for (unsigned i = 0; i < n_files; i++) {
        drop_part(&files[i].segments);
        drop_part(&files[i].symbols);
        drop_part(&files[i].names);
    }
    if (files) munmap(files, FILES_MOST * (sizeof *files + PATH_MOST));
    files = NULL;
    n_files = 0;
}

/* --- asking ---------------------------------------------------------------------------------- */

ino_t elf_names_inode(const struct elf_names *file) { return file->inode; }

uint64_t elf_names_address(const struct elf_names *file, uint64_t offset)
{
    const ElfW(Phdr) *segments = file->segments.bytes;
    for (size_t i = 0; i < file->n_segments; i++)
        if (segments[i].p_type == PT_LOAD && offset - segments[i].p_offset < segments[i].p_filesz)
            return offset - segments[i].p_offset + segments[i].p_vaddr;
    return offset;
}

/* The last one that begins at the address or before it, and has it. Few lie in one another. */
const char *elf_names_at(const struct elf_names *file, uint64_t address)
{
    enum { TRIES = 64 };
    const ElfW(Sym) *symbols = file->symbols.bytes;
    size_t from = 0, to = file->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (symbols[middle].st_value <= address)
            from = middle + 1;
        else
            to = middle;
    }
    for (size_t i = from; i > 0 && from - i < TRIES; i--)
        if (address - symbols[i - 1].st_value < symbols[i - 1].st_size)
            return (const char *)file->names.bytes + symbols[i - 1].st_name;
    return NULL;
}
