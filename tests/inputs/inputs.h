/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.h: what a harness for input from outside has. libFuzzer links it (inputs_fuzz.sh), and so does
 * run_inputs.c, which runs a corpus. A harness aborts where what it looks at does not hold. */
#ifndef INPUTS_H
#define INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *const input_name; /* as in NAME.corpus */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where a harness has them: what is done first, and a change of an input that keeps more of its sense than
 * one of bytes does. It returns the new size, `room` at most; draw(n) is below n. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
size_t input_change(uint8_t *data, size_t size, size_t room, size_t (*draw)(size_t below))
    __attribute__((weak));

#endif
