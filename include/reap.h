/* SPDX-License-Identifier: Apache-2.0 */
/* reap.h: nested regions in which single objects can be freed too.
 *
 * A reap (Berger, thesis 2002, chapter 6) allocates like a region, by bumping a pointer through
 * chunks that double in size; its objects can be freed one by one and their memory is used again;
 * tearing it down costs its chunks, not its objects. Reaps nest: destroying one destroys its
 * children first.
 *
 *     void *request;
 *     reapCreate(&request, &connection);
 *     char *line = reapMalloc(&request, 80);
 *     reapFree(&request, line);              // optional
 *     reapDestroy(&request);                 // everything else goes here
 *
 * A handle is a `void *` that reapCreate sets; calls take its address (thesis 6.3). The handle may
 * be copied. Units are bytes, objects are aligned to 16.
 *
 * Threads: one thread at a time in one reap, any number of reaps at once. Creating and destroying
 * children of one parent from several threads is safe. A reap made with REAP_SHARED is any thread's at
 * any time.
 *
 * Functions of the program that calls run: those of reapWalk and of reapOnLimit may leave by longjmp, or by
 * an exception, unless it is a shared reap that is walked, or asked. All others have to return: those of
 * reapOnDestroy, and take and give of a source.
 *
 * Errors: exhaustion gives NULL (or -1) and errno ENOMEM, and nothing else changes. Misuse (an
 * object freed twice, an interior or foreign pointer, an object of another reap, a reap destroyed
 * before, NULL where something must be) ends the program with one line on standard error that names the call,
 * the pointer and what is wrong.
 */
#ifndef REAP_H
#define REAP_H

#if defined(__STRICT_ANSI__) && !defined(__cplusplus) &&                                                     \
    (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "reap.h needs C99 or later, or GNU C: use -std=c99, or -std=gnu89, in the place of -std=c89"
#define inline __inline__ /* so that this is the only error */
#endif

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden; what stands here is what leaves it. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define REAP_VERSION_MAJOR 0
#define REAP_VERSION_MINOR 1
#define REAP_VERSION_PATCH 0
#define REAP_VERSION "0.1.0"

#if defined(__GNUC__)
#define REAP_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define REAP_ATTRIBUTE(...)
#endif

/* That a call's result is new memory. A compiler that knows this leaves out a read after reapDestroy, since it
 * knows the value; AddressSanitizer is there to find that read. */
#if defined(__SANITIZE_ADDRESS__)
#define REAP_NEW
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REAP_NEW
#endif
#endif
#ifndef REAP_NEW
#define REAP_NEW __malloc__
#endif

/* The version of the library that runs, as REAP_VERSION is that of the header. */
const char *reapVersion(void);

/* --- the thesis's five calls (6.3) ----------------------------------------------------------- */

/* Makes a reap; parent may be NULL, or point to a NULL handle: a root. *reap is NULL on failure (ENOMEM). */
void reapCreate(void **reap, void **parent) REAP_ATTRIBUTE(nonnull(1));

/* Clears: destroys the children, runs the reap's functions, frees its objects; the reap stays. */
void reapFreeAll(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* Destroys: children first, newest first; then the reap's functions, last in first out; then the
 * memory. Sets *reap to NULL, before the memory goes where that lies in an object of the reap; where it lies
 * in one of a child, it goes with the child. So no function may free other memory in which *reap lies. Copies
 * of the handle, and the handles of children, are dead, and to use one is misuse. A NULL handle is allowed.
 */
void reapDestroy(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* An object of size bytes, aligned to 16; size 0 gives a unique pointer. */
void *reapMalloc(void **reap, size_t size) REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(2));

/* Frees one object of this reap, whose memory is used again before the bump pointer moves on (6.3.1). NULL is
 * allowed. */
void reapFree(void **reap, void *object) REAP_ATTRIBUTE(nonnull(1));

/* --- with options ---------------------------------------------------------------------------- */

/* Where a reap gets its chunks from, and where they go back to: the lowest heap layer (thesis, ch. 4). take
 * is asked for a multiple of 4096 bytes, aligned to 4096, and gives NULL when there is none; give gets back
 * what take gave, with the same size. Both are called by the reap's own thread, and must not use the reap. */
struct reap_source {
    void *(*take)(size_t size, void *arg);
    void (*give)(void *chunk, size_t size, void *arg);
    void *arg;
};

/* For flags: any thread may use the reap at any time, all calls, at the price of a lock. Who clears,
 * rewinds or destroys it, or a reap above, has to know that nobody needs what goes. Children are not
 * shared unless they are made so. Functions of the user's (reapWalk's, reapOnLimit's, reapOnDestroy's, a
 * source's) run under the lock: all but a source's may use the reap, none may wait for a thread that uses
 * it. Two reaps that are held at once, where a function of one uses the other, are for the program to take
 * in one order; reapMove and reapAdopt do. A name is good until the next reapSetName. The child of a fork
 * finds it whole. */
#define REAP_SHARED 1u

/* All zero, apart from size, is what reapCreate does. */
struct reap_options {
    size_t size;               /* sizeof(struct reap_options) */
    size_t first_chunk;        /* bytes of the first chunk, at least; 0: 8 KiB */
    size_t max_chunk;          /* bytes that chunks double up to, a power of two, 8 KiB at least; 0: 1 MiB */
    size_t limit;              /* as reapSetLimit; 0: none */
    const char *name;          /* as reapSetName; may be NULL */
    unsigned flags;            /* 0, or REAP_SHARED */
    void *buffer;              /* the first chunk lies in here; NULL: in none */
    size_t buffer_size;        /* bytes, 4096 at least; 1.5 KiB and 1.6 % are the reap's own */
    struct reap_source source; /* all chunks (but a buffer) come from here; take NULL: from none */
};

/* Makes a reap as reapCreate does, by what the options say. A buffer lies on the stack, in static or in
 * shared memory, anywhere; it must stay until the reap is destroyed. With a buffer and no source the reap
 * gets no other memory: then large objects are in it as well. Children do not inherit options, limits apart.
 * At most 4096 buffers and chunks of sources may be in use at once. A buffer may be an object of a reap that
 * is in a buffer itself, and a source's chunks may be. 0; or -1 and *reap NULL, with ENOMEM, or with
 * ENAMETOOLONG, or with EINVAL: no options, an unknown size or flag, a buffer that is too small, above 8 TiB,
 * wraps around or is a reap's already, a chunk above 1 GiB, one function of a source without the other. */
int reapCreateWith(void **reap, void **parent, const struct reap_options *options)
    REAP_ATTRIBUTE(nonnull(1, 3));

/* --- the family ------------------------------------------------------------------------------ */

/* n objects of size bytes each, zeroed; n * size that overflows is ENOMEM. */
void *reapCalloc(void **reap, size_t n, size_t size) REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(2, 3));

/* Resizes an object, moving it if it must. NULL allocates; size 0 leaves an object of size 0. */
void *reapRealloc(void **reap, void *object, size_t size) REAP_ATTRIBUTE(nonnull(1), alloc_size(3));

/* An object aligned to a power of two; another alignment is NULL and EINVAL. */
void *reapAlignedAlloc(void **reap, size_t alignment, size_t size)
    REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_align(2), alloc_size(3));

/* Copies: of a string, of its first n bytes at most, terminated, and of n bytes. */
char *reapStrdup(void **reap, const char *s) REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW);
char *reapStrndup(void **reap, const char *s, size_t n) REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW);
void *reapMemdup(void **reap, const void *bytes, size_t n)
    REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(3));

/* A string made as by sprintf. NULL with ENOMEM, or with the error that vsnprintf gave. */
char *reapPrintf(void **reap, const char *format, ...)
    REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW, format(printf, 2, 3));
char *reapVprintf(void **reap, const char *format, va_list args)
    REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW, format(printf, 2, 0));

/* The bytes that may be used in an object: its size rounded up to 16. 0 for NULL. From any thread. */
size_t reapUsableSize(const void *object);

/* Sets *reap to the handle of the reap that owns a pointer, which may be interior: 0, or -1 and
 * ENOENT when it lies in no reap's live memory (*reap is NULL then). From any thread. */
int reapOf(const void *pointer, void **reap) REAP_ATTRIBUTE(nonnull(2));

/* The parent's handle, or NULL for a root. */
void *reapParent(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* Names a reap for reports; the name is copied (into the reap) and NULL takes it away. 0, or -1
 * and ENOMEM, or ENAMETOOLONG above 4095 bytes. */
int reapSetName(void **reap, const char *name) REAP_ATTRIBUTE(nonnull(1));

/* Its name, or NULL; valid until it gets another one. */
const char *reapName(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* --- when a reap ends ------------------------------------------------------------------------ */

/* Has fn(arg) called when the reap is cleared or destroyed: last in, first out, after the children
 * and before the memory goes. Functions may allocate in the reap and register others. 0, or -1 and ENOMEM. */
int reapOnDestroy(void **reap, void (*fn)(void *arg), void *arg) REAP_ATTRIBUTE(nonnull(1, 2));

/* Takes back the latest registration of fn with arg: 0, or -1 and ENOENT. */
int reapCancelOnDestroy(void **reap, void (*fn)(void *arg), void *arg) REAP_ATTRIBUTE(nonnull(1, 2));

/* --- marks ----------------------------------------------------------------------------------- */

/* A moment in a reap's life, to go back to: obstack order (thesis 5.2.2), which its reaps leave out (6.2).
 * The fields are the library's. */
typedef struct reap_mark {
    void *reap;
    void *chunk;
    size_t unit;
    uint64_t number;
    uint64_t outer;
    uint32_t floor;
    uint16_t depth;
    uint16_t pinned;
} reap_mark;

/* Opens a mark, which stays open until reapUnmark, or until the reap is cleared. While one is, objects come
 * from the bump pointer only, and nothing older grows across it: what is resized then and has to move is
 * younger than the mark. Marks nest, up to 65535 deep. Needs no memory. */
void reapMark(void **reap, reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* Back to the mark: destroys the children made since, newest first; runs the functions registered since, last
 * in first out; frees the objects allocated since. Older objects that were freed in between stay freed. The
 * mark stays open, marks made after it are over. The name and a limit stay as they are. */
void reapRewind(void **reap, const reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* Closes the mark, and those made after it; nothing is freed. A function that reapRewind runs must not close
 * the mark that is gone back to, nor one before it. */
void reapUnmark(void **reap, const reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* --- what a reap holds ----------------------------------------------------------------------- */

struct reap_stats {
    size_t live_bytes;       /* sum of reapUsableSize over live objects */
    size_t live_objects;     /* */
    size_t chunk_bytes;      /* held of the backend */
    size_t chunks;           /* */
    size_t peak_chunk_bytes; /* the most that chunk_bytes has been */
    size_t limit;            /* 0: none */
    size_t children;         /* */
};

/* Fills in stats for this reap alone, its descendants not included. 0. */
int reapStats(void **reap, struct reap_stats *stats) REAP_ATTRIBUTE(nonnull(1, 2));

/* Writes the reap and its descendants as an indented tree; NULL: every reap of the process, which
 * is approximate while others run. */
void reapReport(void **reap, FILE *out) REAP_ATTRIBUTE(nonnull(2));

/* Calls fn for each live object; stops when fn is not 0, and returns that. fn may free the object
 * that it is given, and no other. */
int reapWalk(void **reap, int (*fn)(void *object, size_t size, void *arg), void *arg)
    REAP_ATTRIBUTE(nonnull(1, 2));

/* --- from reap to reap ----------------------------------------------------------------------- */

/* Moves an object from one reap to another; its new place, or NULL and ENOMEM when it stays where it is. One
 * that has a chunk of its own takes it along and keeps its place. The thread must be in both reaps. */
void *reapMove(void *object, void **from, void **to) REAP_ATTRIBUTE(nonnull(1, 2, 3));

/* Makes a reap, with all below it, the newest child of another parent; NULL, or a NULL handle, makes it a
 * root. Limits above are those of the new place. 0, or -1 and EINVAL when the new parent is the reap itself
 * or below it, ENOMEM when a limit would be exceeded: then nothing has changed. Several threads may adopt at
 * once, and others create or destroy children of both parents; the reap is the calling thread's, and where
 * there are limits what is below it too: no other thread resizes an object of theirs then. */
int reapAdopt(void **reap, void **new_parent) REAP_ATTRIBUTE(nonnull(1));

/* --- ambient reaps --------------------------------------------------------------------------- */

/* From reapEnter to reapLeave this thread's malloc, calloc, realloc(NULL), aligned forms and new, under
 * libreap-malloc, come from the reap: a library that knows nothing of reaps runs in it, and what it leaks
 * goes with it. free finds the owner as always, realloc stays with the owner. What libc and its modules
 * allocate goes to the heap; what strdup, asprintf, getline, realpath and their like give to the program does
 * not. They nest: the innermost counts, and it alone may be entered again. What a library keeps beyond a call
 * (caches, a last error) has to be made, or given up, outside; reap(3) has more. Without libreap-malloc
 * nothing comes of it. The reap is this thread's meanwhile; to clear or destroy it is misuse, and a thread
 * has to leave before it ends. Several threads may be in a shared reap, each in one shared reap at a time.
 * (Thesis 6.4.4 changed the calls of such a library by hand.) */
void reapEnter(void **reap) REAP_ATTRIBUTE(nonnull(1));
void reapLeave(void);

/* --- limits ---------------------------------------------------------------------------------- */

/* Limits the live bytes (as in reapStats) of a reap and all below it together; 0: no limit. An allocation
 * that would exceed it is NULL with ENOMEM; so is one that would exceed the limit of a reap further up. A
 * limit is never exceeded; where several reaps share one, a refusal may come early by a sixteenth of the
 * limit. Resizing costs the difference; functions, names and chunks cost nothing. 0, or -1 and ENOMEM when
 * more than that lives already: then nothing has changed. During this call no other thread may be in this
 * reap or below it, or resize an object of theirs; free() may be called by any. Afterwards reaps below it are
 * their threads' as always. */
int reapSetLimit(void **reap, size_t bytes) REAP_ATTRIBUTE(nonnull(1));

/* Has fn called when an allocation of size bytes meets this reap's own limit, in the thread that asks, with
 * this reap, which need not be the one that is asked. It may free objects of this reap, or clear it, but not
 * the object that is being resized or moved, and must not touch other reaps of the tree; then the allocation
 * is tried once more. What fn itself asks for in vain does not call it again. It may leave by longjmp, or by
 * an exception, unless the reap that is asked is shared (in a move that is the one moved to); to be called
 * again for sure it has to be registered again then. Where reaps below are in several threads, it is called
 * in each of them, at the same time perhaps, and this reap is not theirs: then it may only take note. One
 * function at a time; NULL: none. */
void reapOnLimit(void **reap, void (*fn)(void **reap, size_t size, void *arg), void *arg)
    REAP_ATTRIBUTE(nonnull(1));

/* The call itself, for the inline one below. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(REAP_NO_INLINE)
#define REAP_INLINE 1
void *reap_malloc_called(void **reap, size_t size) __asm__("reapMalloc") REAP_ATTRIBUTE(nonnull(1));
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* --- without a call -------------------------------------------------------------------------- */

/* What a handle points to begins so. Part of the interface as the calls are: it changes only with
 * the soname. Objects may be taken while bump < end; where a call must be made for each, end is bump. */
struct reap_front {
    char *bump;       /* the next object */
    char *end;        /* of what may be taken */
    uintptr_t starts; /* bits of where objects start: the word of address a is at starts + a / 1024 * 8 */
};

#if defined(__GNUC__)
#define REAP_BUMP_INLINE extern inline REAP_ATTRIBUTE(gnu_inline, always_inline)
#else
#define REAP_BUMP_INLINE static inline
#endif

/* reapMalloc's own fast path, for libraries that have a function of their own around reapMalloc and would
 * not pay for two calls. NULL when there is no room: then reapMalloc is to be asked. */
REAP_BUMP_INLINE void *reap_bump(void **reap, size_t size)
{
    struct reap_front *front = (struct reap_front *)*reap;
    char *object = front->bump;
    if (size - 1 >= (size_t)(front->end - object)) return NULL;
#if defined(__GNUC__)
    if (!object) __builtin_unreachable(); /* so that the caller's test of the result is the one above */
#endif
    *(uint64_t *)(front->starts + (uintptr_t)object / 1024 * 8) |= (uint64_t)1 << (uintptr_t)object / 16 % 64;
    char *next = object + ((size + 15) & -(size_t)16); /* rounded apart: what waits for bump adds once */
#if defined(__GNUC__)
    __atomic_store_n(&front->bump, next, __ATOMIC_RELEASE); /* in this order, for who measures it elsewhere */
#else
    front->bump = next;
#endif
    return object;
}

/* reapMalloc in the program that calls it: the library is asked only when the bump pointer does not do. Its
 * address, and a program built without optimisation or with REAP_NO_INLINE, get the library's own. */
#ifdef REAP_INLINE
extern inline REAP_ATTRIBUTE(gnu_inline) void *reapMalloc(void **reap, size_t size)
{
    void *object = __builtin_expect(*reap != NULL, 1) ? reap_bump(reap, size) : NULL;
    return __builtin_expect(object != NULL, 1) ? object : reap_malloc_called(reap, size);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
