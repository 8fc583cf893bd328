/* SPDX-License-Identifier: Apache-2.0 */
/* profile_unwind.h: the return addresses on this thread's stack.
 *
 * The tables of .eh_frame say for each address of code where the caller's frame begins (its CFA), and where
 * the caller's rbp is. Nearly always this is a row of constants:
 *
 *     CFA = rsp or rbp, + words      return address at CFA - 8      rbp as it is, or at CFA - words
 *
 * Rows are kept by return address, so that a frame costs a look-up and two loads. libgcc's unwinder, which
 * reads the tables anew for each frame (1,000 instructions), finds the whole stack where a frame has another
 * rule: signals, realigned frames, code that no loaded object has, frames of more than PROFILE_FAR bytes.
 * Both find the same frames.
 *
 * Invariants
 *     - A row is that of the code which is there: all are forgotten after an object was loaded or unloaded.
 *       While a frame is on a stack its code stays.
 *     - Only words between the thread's rsp and PROFILE_FAR bytes above the last frame are read for a row.
 *
 * Threads: any, also in signal handlers. A row is one word, which has its address as well.
 */
#ifndef PROFILE_UNWIND_H
#define PROFILE_UNWIND_H

#include <stdint.h>

enum { PROFILE_FAR = 1 << 16 };

/* Tells states of the list of loaded objects apart: how many were loaded : 32 | unloaded : 32. Takes ld.so's
 * lock. */
uint64_t profile_loads(void);

/* Writes at most `most` return addresses, innermost first, without this library's own at their beginning.
 * Returns their number. loads: by profile_loads; 0: it is not known. */
unsigned profile_unwind(void **frames, unsigned most, uint64_t loads);

/* Its two ways. By rows: 0 if a frame has another rule. */
unsigned profile_unwind_by_rows(void **frames, unsigned most, uint64_t loads);
unsigned profile_unwind_by_libgcc(void **frames, unsigned most);

#endif
