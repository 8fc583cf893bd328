/* SPDX-License-Identifier: Apache-2.0 */
/* apart_table.h: finds the object that lies apart (apart.h) at an address.
 *
 * The table has live objects and those that were freed last, by the KiB in which they start. At one address a
 * live object precedes freed ones, and a newer object an older one.
 *
 * Threads: any. Lock rank: concurrency.md; a thread that holds the lock calls nothing.
 */
#ifndef APART_TABLE_H
#define APART_TABLE_H

#include "base/base.h"

enum { APART_HEADER = 128 /* bytes of a header */ };

struct apart_entry {
    char header[APART_HEADER];   /* what a search answers */
    struct apart_entry *next;    /* at its place of the table, newest first */
    struct apart_entry *younger; /* of a freed object: the one that was freed after it */
    char *object;
    size_t room;         /* bytes */
    bool is_dead, waits; /* freed; and its memory was not given back */
};

/* True if objects lie apart. Only apart_start sets it, before the first reap is made. */
extern HIDDEN bool apart_on;

/* Makes the table, once, before objects lie apart. False: no memory. */
bool apart_table_start(void);

/* Enters a live object. Frees it; its memory waits or not. */
void apart_enter(struct apart_entry *entry);
void apart_bury(struct apart_entry *entry, bool waits);

/* Takes out the object freed first, if more than `count` are freed, or more than `bytes` wait; or NULL. */
struct apart_entry *apart_exhume(size_t count, size_t bytes);

/* The header of the live object that starts at an address, or NULL. */
void *apart_find(const void *object);

/* The header of the object in which an address lies: of a live one, or else of a freed one that was there.
 * NULL: there is none. It takes a time in proportion to the greatest object. */
void *apart_find_around(const void *pointer);

/* Returns true if a freed object that starts there still waits: no other one is there. */
bool apart_waits(const void *object);

/* Between these two no other thread uses the table, nor asks for an object what needs turns. */
void apart_hold(void);
void apart_let_go(void);

void apart_fork_prepare(void);
void apart_fork_parent(void);
void apart_fork_child(void);

#endif
