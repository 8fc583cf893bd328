/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ops.h: the operations, for the table; each does nothing where it makes no sense. */
#ifndef FUZZ_OPS_H
#define FUZZ_OPS_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

typedef void op_fn(const struct record *rec);

/* objects.c */
op_fn do_malloc, do_malloc_called, do_calloc, do_aligned, do_strdup, do_strndup, do_memdup, do_printf,
    do_vprintf;
op_fn do_free, do_free_newest, do_free_oldest, do_realloc, do_realloc_newest, do_realloc_null, do_move;
op_fn do_usable, do_of, do_free_null, do_fill, do_unwind, do_drain;

/* builder.c */
op_fn do_append, do_append_string, do_appendf, do_appendf_wrong, do_extend, do_append_own, do_cut, do_finish;

/* heap.c */
op_fn heap_malloc, heap_calloc, heap_aligned, heap_memalign, heap_posix_memalign, heap_reallocarray,
    heap_strdup;
op_fn heap_realloc_null, heap_free, do_free_any, heap_realloc, heap_usable, heap_trim;
op_fn hoard_any, hoard_look;

/* tree.c */
op_fn do_create, do_new, do_create_with, do_create_wrong, do_destroy, do_clear, do_adopt;
op_fn do_enter, do_leave, do_entered;
op_fn do_charge, do_uncharge;

/* life.c */
op_fn do_name, do_on_destroy, do_cancel, do_mark, do_rewind, do_unmark, do_tries, do_brim, do_limit,
    do_on_limit;
op_fn do_check, do_check_all, do_walk, do_report, do_stats, do_trim;
op_fn check_touched;

/* misuse.c */
op_fn do_misuse;
/* A call that must not be made here is, in a child, which has to end with a line that names both. */
void must_die(const char *call, const void *pointer, void (*mistake)(void *arg), void *arg);

/* threads.c */
op_fn do_send, do_receive, do_loose_alloc, do_loose_build, do_loose_free, do_loose_resize, do_loose_move;
op_fn do_loose_look, do_loose_whole;
op_fn do_quiet_mark, do_public_child, do_busy_marks;
void threads_begin(struct world *worlds, const struct program *program);
void threads_end(struct world *worlds);
void no_longer_unowned(struct node *node);
void answer_call(void);
bool any_abroad(void);
/* Objects that are abroad come back, or are no more: those of a reap from a depth on, all or those that
 * others may resize; those of a tree, from a depth of its top on (false: not now, it might wait for ever);
 * those of this thread. */
void recall(int reap, unsigned depth, bool movable);
bool recall_below(int top, unsigned depth, bool movable);
void recall_all(void);

/* Ends what is not ended yet; in tree.c. */
void end_world(void);
/* What the thread has charged for the world. */
void take_charges_back(void);
void begin_node(struct node *node);
/* Ends a reap of the model, or clears it; in tree.c. */
void end_reap(int reap, bool destroys);
void name_of(const struct node *node, char *text);

#endif
