/* SPDX-License-Identifier: Apache-2.0 */
/* misuses.h: what the programs of the security table share: how a misuse ends, and how its harm is looked
 * for.
 *
 * A program runs one misuse of its table at one size, and says how it came out, if the process lives on:
 *
 *     harmless WHY    the misuse had no effect on anybody, by the rule of its kind
 *     missed WHY      the program goes on with harm, or with a misuse that nobody noticed
 *
 * security_table.py judges: a process that ended after a line of the malloc's was told, one that a signal
 * ended was stopped, and else the word counts. The rules of harmless are the same for every malloc, and stand
 * in the table's page.
 */
#ifndef MISUSES_H
#define MISUSES_H

#include "support/expect.h"

/* Ends the process in the ordinary way, so that a malloc that looks at its blocks at exit can still tell. */
__attribute__((noreturn)) static inline void says(const char *word, const char *why)
{
    char line[200];
    int n =
        snprintf(line, sizeof line, "%s %s\n", word, why); /* no stdio buffer: that would be a block, too */
    exit(write(STDOUT_FILENO, line, (size_t)n) == n ? 0 : 3);
}

#define harmless(why) says("harmless", why)
#define missed(why) says("missed", why)

/* A piece of memory that somebody owns, filled with a number of its own. */
struct piece {
    unsigned char *start;
    size_t size;
    uint64_t number;
};

static inline uint64_t piece_word(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15u | 0x0101010101010101u;
}

static inline struct piece piece_of(void *start, size_t size)
{
    static uint64_t numbers;
    struct piece piece = {(unsigned char *)start, start ? size : 0, ++numbers};
    uint64_t word = piece_word(piece.number);
    for (size_t i = 0; i < piece.size; i += sizeof word)
        __builtin_memcpy(piece.start + i, &word, piece.size - i < sizeof word ? piece.size - i : sizeof word);
    return piece;
}

/* Returns true if all bytes are the owner's. */
static inline bool piece_is_whole(struct piece piece)
{
    uint64_t word = piece_word(piece.number);
    for (size_t i = 0; i < piece.size; i += sizeof word)
        if (__builtin_memcmp(piece.start + i, &word,
                             piece.size - i < sizeof word ? piece.size - i : sizeof word) != 0)
            return false;
    return true;
}

/* Returns true if 8 bytes of the owner's lie anywhere in memory. */
static inline bool piece_is_seen(struct piece piece, const unsigned char *memory, size_t size)
{
    uint64_t word = piece_word(piece.number), twice[2] = {word, word};
    for (size_t i = 0; i + 8 <= size; i++)
        for (size_t turn = 0; turn < 8; turn++)
            if (__builtin_memcmp(memory + i, (unsigned char *)twice + turn, 8) == 0) return true;
    return false;
}

#endif
