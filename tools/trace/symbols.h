/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.h: the functions of a trace's frames, by elf_names.h. */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include "reader.h"

/* Writes a frame as "FUNCTION in MODULE", or as reader_frame has it if no name is known. A frame is a return
 * address, so that of the instruction before it is told. Files' tables stay until elf_names_forget. */
void symbols_frame(const struct reader *reader, uint64_t at, char *text, size_t size);

#endif
