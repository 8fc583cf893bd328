/* SPDX-License-Identifier: Apache-2.0 */
/* elf_names.h: names of functions, from the tables of symbols in programs and libraries: the full one, which
 * has static functions too, or where it was stripped that of ld.so.
 *
 * An address is in the file's own numbers, as its table has them. A file is read once; its table's memory is
 * apart from malloc, since a live program may be the one that is looked at. Threads: one at a time.
 */
#ifndef ELF_NAMES_H
#define ELF_NAMES_H

#include <stdint.h>
#include <sys/types.h>

struct elf_names;

/* The names of a file; NULL: there is no such file, or no room. */
const struct elf_names *elf_names_of(const char *path);

/* The file's inode: a file that was replaced has other functions at the same addresses. 0: it is no ELF file
 * with names. */
ino_t elf_names_inode(const struct elf_names *names);

/* The address of a byte of the file that is loaded. */
uint64_t elf_names_address(const struct elf_names *names, uint64_t offset);

/* The function in which an address lies, until elf_names_forget; NULL: not known. */
const char *elf_names_at(const struct elf_names *names, uint64_t address);

void elf_names_forget(void);

#endif
