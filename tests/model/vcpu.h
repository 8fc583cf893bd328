/* SPDX-License-Identifier: Apache-2.0 */
/* vcpu.h: one thread that acts as any of many processors.
 *
 * Which heap a thread uses is read in one place. Sections find the id at rseq_id_at from the thread pointer:
 * here that leads to a thread-local variable of the test. The rseq area stays the kernel's, so sections are
 * restarted as ever; and as only this thread allocates, an id is exclusive to a running thread, which is all
 * that the kernel's ids promise. On the locked path heap_of_thread is that variable. So the code that runs is
 * the library's, fast path and all, with as many processors as one likes; only what two of them do at the
 * same instant cannot be shown here (check_migrate does).
 *
 * A ledger goes along: what is live, by class size; and for each cache line, whose blocks lie in it.
 *
 *     line        |   16 B   |   16 B   |   16 B   |   16 B   |     shadow: heap and thread that got it from
 *     live blocks   heap 3     heap 3     free       heap 5           malloc, heap that last freed it
 *
 * False sharing is the allocator's doing when malloc gives out memory in a line in which another heap's live
 * block lies (thesis 7.1): passive if the heap that gets it freed that memory itself, since then the program
 * had brought the piece there; else active. A line where heaps agree and threads do not was carried along by
 * a thread that has another heap id now: counted apart.
 */
#ifndef VCPU_H
#define VCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VCPU_MAX = 256 };

enum vcpu_path { VCPU_FAST, VCPU_LOCKED, VCPU_PATHS };
extern const char *const vcpu_path_names[VCPU_PATHS];

struct ledger {
    uint64_t mallocs, frees;
    size_t live, live_max; /* bytes, each block at its class's size */
    uint64_t active, passive, carried;
    uint64_t in_used; /* mallocs by a heap from a superblock in which another heap's blocks live */
};
extern struct ledger ledger;

/* Starts the allocator of this process on the path, with further options or NULL. False: there are no
 * restartable sequences here. */
#define vcpu_lacks "no restartable sequences here"
bool vcpu_start(enum vcpu_path path, const char *options);

/* From now on this is processor `id`, and runs thread `id` on it; or another thread. */
void vcpu_be(unsigned id);
void vcpu_be_thread(unsigned id, unsigned thread);

/* Called when more is held than ever before; NULL: nothing is. */
extern void (*vcpu_on_growth)(void);

/* As hoard_malloc and hoard_free, with an entry in the ledger; out of memory ends the test. Size is not 0 and
 * not above CLASS_SIZE_MAX. */
void *vcpu_malloc(size_t size);
void vcpu_free(void *block);

#endif
