/* SPDX-License-Identifier: Apache-2.0 */
/* huge.h: whether huge pages are worth having, as their first touches show.   (floor 2)
 *
 * In a virtual machine whose host has yet to find the memory, 2 MiB take 2 to 5 ms, and 0.2 ms elsewhere;
 * 512 small pages, which the kernel takes from what was in use just before, need 0.3 to 1.4 ms. So the first
 * touch of each huge page is timed, and after a slow one arenas are made without: first a few, then ever
 * more, until a page is quick. Any thread may call these, at any time; no lock.
 */
#ifndef HUGE_H
#define HUGE_H

#include "base.h"

/* For so many arenas, made now? Each no brings the next yes nearer. */
bool huge_are_quick(unsigned arenas);

/* Writes to the first byte of a slot that reads as zero and may have huge pages behind it. Did one come, and
 * slowly? */
bool huge_touch(void *start);

#endif
