/* SPDX-License-Identifier: Apache-2.0 */
/* reap.h: nested regions in which single objects can be freed too.
 *
 * A reap (Berger, thesis 2002, chapter 6) allocates like a region: it bumps a pointer through chunks that
 * double in size. A program can also free single objects, and the reap uses their memory again. The cost of
 * destroying a reap depends on the number of its chunks, not of its objects. Reaps nest: a call that destroys
 * a reap destroys its children first.
 *
 *     void *request;
 *     reapCreate(&request, &connection);
 *     char *line = reapMalloc(&request, 80);
 *     reapFree(&request, line);              // optional
 *     reapDestroy(&request);                 // everything else goes here
 *
 * A handle is a `void *` that reapCreate sets; calls take its address (thesis 6.3). A program may copy the
 * handle. Units are bytes, objects are aligned to 16.
 *
 * Forgetting the `&` does no harm: the first word of a reap is its own handle, so reapMalloc(request, 80)
 * does what reapMalloc(&request, 80) does, and the same holds for each call. Only calls that set a handle
 * need its address: reapCreate reports misuse when it gets a live reap, and reapDestroy(request) sets no
 * variable to NULL. reapNew returns a handle of its own type.
 *
 * Threads: one thread at a time uses a reap, and any number of reaps may be in use at once. Several threads
 * may create and destroy children of one parent at the same time. If a reap was made with REAP_SHARED, any
 * thread may use it at any time.
 *
 * Callbacks: each function that the program gives to the library must return. If a callback leaves by
 * longjmp, by a C++ exception or by pthread_exit, the behaviour is undefined.
 *
 * Errors: when there is no memory, a call returns NULL (or -1) and sets errno to ENOMEM, and nothing else
 * changes. Misuse (an object freed twice, an interior or foreign pointer, an object of another reap, a reap
 * destroyed before, NULL for a required argument) ends the program with one line on standard error that names
 * the call, the pointer and the mistake.
 */
#ifndef REAP_H
#define REAP_H

#if defined(__STRICT_ANSI__) && !defined(__cplusplus) &&                                                     \
    (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "reap.h needs C99 or later, or GNU C: use -std=c99, or -std=gnu89, instead of -std=c89"
#define inline __inline__ /* so that this is the only error */
#endif

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden, and exports only these declarations. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define REAP_VERSION_MAJOR 0
#define REAP_VERSION_MINOR 2
#define REAP_VERSION_PATCH 0
#define REAP_VERSION "0.2.0"

#if defined(__GNUC__)
#define REAP_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define REAP_ATTRIBUTE(...)
#endif

/* The attribute of calls that return new memory. A compiler that sees the attribute can leave out a read
 * after reapDestroy, because it knows the value. AddressSanitizer exists to find that read, so under it
 * reap.h leaves the attribute out. */
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

/* The type of reapNew's handles. The end of this header has the fields, for reap_bump. */
typedef struct reap_front reap_t;

/* The version of the running library; REAP_VERSION is the version of the header. */
const char *reapVersion(void);

/* --- the thesis's five calls (6.3) ----------------------------------------------------------- */

/* Makes a reap, as the newest child of parent. If parent is NULL, or points to a NULL handle, the reap is a
 * root. On failure *reap is NULL and errno ENOMEM. */
void reapCreate(void **reap, void **parent) REAP_ATTRIBUTE(nonnull(1));

/* Makes a reap as reapCreate does, and returns a handle of its own type, reap_t *. Other calls take
 * &reap->self, a void **; only a reap_t has this field. parent may be NULL. Returns NULL when there is no
 * memory (ENOMEM).
 *
 *     int answer(reap_t *request);
 *     reap_t *request = reapNew(connection);
 *     char *line = reapMalloc(&request->self, 80);
 *     reapDestroy(&request->self);                  // `request` keeps its value
 *
 * Both kinds of handles have the same value: assign one to the other. */
reap_t *reapNew(reap_t *parent);

/* Clears a reap: destroys its children, runs its functions, frees its objects. The reap stays. The call does
 * not set *reap: a handle in an object of the reap is freed with the object, and the program must use a copy.
 * The reap keeps the chunks that similar rounds need, up to 1 MiB and its first chunk: see reapTrim. */
void reapFreeAll(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* Destroys a reap: first its children, newest first; then runs its functions, last in first out; then gives
 * its memory back. Sets *reap to NULL. The handle may itself lie in an object of the reap. A handle in an
 * object of a child is freed with the child. No function may free other memory in which *reap lies. Copies of
 * the handle, and the handles of children, are dead afterwards, and their use is misuse. A NULL handle is
 * allowed. */
void reapDestroy(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* An object of size bytes, aligned to 16; size 0 gives a unique pointer. */
void *reapMalloc(void **reap, size_t size) REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(2));

/* Frees one object of this reap. The reap uses its memory again before the bump pointer moves on (6.3.1).
 * NULL is allowed. */
void reapFree(void **reap, void *object) REAP_ATTRIBUTE(nonnull(1));

/* --- with options ---------------------------------------------------------------------------- */

/* A source of chunks: the lowest heap layer (thesis, ch. 4). take returns size bytes, a multiple of 4096,
 * aligned to 4096, or NULL if there is no memory. give gets each chunk back, with the same size. The thread
 * that uses the reap calls both functions, and they must not use the reap. */
struct reap_source {
    void *(*take)(size_t size, void *arg);
    void (*give)(void *chunk, size_t size, void *arg);
    void *arg;
};

/* A flag: any thread may make any call on the reap at any time. Calls that make, resize or free an object
 * do not wait for other processors, unless the reap has a mark or memory from the program, or the program
 * resizes an object that another processor made; all other calls take a lock. A thread that clears, rewinds
 * or destroys the reap, or a reap above it, must know that no other thread needs the objects. A thread that
 * destroys the reap must also know that no other thread is still in a call on it. Children are shared only if
 * they have the flag too. Callbacks (of reapWalk, reapOnLimit, reapOnDestroy, and of a source) run under the
 * lock. All but those of a source may use the reap, and no callback may wait for a thread that uses the reap.
 * If a callback of one shared reap uses another shared reap, its thread holds both locks, and the program
 * must keep to one order of reaps; reapMove and reapAdopt need no order. A name is valid until the next
 * reapSetName. In the child of a fork the reap is whole. */
#define REAP_SHARED 1u

/* With 0 in all members but size, reapCreateWith does what reapCreate does. */
struct reap_options {
    size_t size;               /* sizeof(struct reap_options) */
    size_t first_chunk;        /* bytes of the first chunk, at least; 0: 8 KiB */
    size_t max_chunk;          /* largest chunk; a power of two, at least 8 KiB; 0: 64 KiB */
    size_t limit;              /* as reapSetLimit; 0: none */
    const char *name;          /* as reapSetName; may be NULL */
    unsigned flags;            /* 0, or REAP_SHARED */
    void *buffer;              /* memory for the first chunk; NULL: the backend's */
    size_t buffer_size;        /* bytes, 4096 at least; the reap itself needs 1.4 KiB and 1.6 % */
    struct reap_source source; /* gives all chunks except a buffer; take NULL: the backend gives them */
};

/* Makes a reap as reapCreate does, with options. A buffer may lie on the stack, in static, in shared or in
 * any other memory, and must stay until the reap is destroyed. With a buffer and no source the reap has no
 * other memory, and large objects lie in the buffer as well. Children inherit no options; a limit holds for
 * them as always. At most 4096 buffers and chunks of sources may be in use at once. A buffer, or a chunk of
 * a source, may be an object of another reap. That reap may itself be in memory of the program, but not in an
 * object of a third reap that is in such memory: then an allocation that needs a chunk of the source fails
 * with EINVAL. Returns 0; or -1 and sets *reap to NULL and errno to ENOMEM, ENAMETOOLONG, or EINVAL: no
 * options, an unknown size or flag, a buffer that is too small, above 8 TiB, wraps around, holds a reap
 * already or lies too deep, a chunk above 1 GiB, or only one function of a source. */
int reapCreateWith(void **reap, void **parent, const struct reap_options *options)
    REAP_ATTRIBUTE(nonnull(1, 3));

/* --- the family ------------------------------------------------------------------------------ */

/* n objects of size bytes each, zeroed. If n * size overflows, NULL and ENOMEM. */
void *reapCalloc(void **reap, size_t n, size_t size) REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(2, 3));

/* Resizes an object, moves it if necessary, and returns its address. NULL allocates; size 0 leaves an object
 * of size 0. On failure returns NULL, and the object stays as it was. */
void *reapRealloc(void **reap, void *object, size_t size) REAP_ATTRIBUTE(nonnull(1), alloc_size(3));

/* An object aligned to a power of two. Any other alignment gives NULL and EINVAL. */
void *reapAlignedAlloc(void **reap, size_t alignment, size_t size)
    REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_align(2), alloc_size(3));

/* Copies of a string, of at most its first n bytes with a terminating 0, and of n bytes. */
char *reapStrdup(void **reap, const char *s) REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW);
char *reapStrndup(void **reap, const char *s, size_t n) REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW);
void *reapMemdup(void **reap, const void *bytes, size_t n)
    REAP_ATTRIBUTE(nonnull(1), REAP_NEW, alloc_size(3));

/* A string as sprintf makes it. On failure NULL, with ENOMEM or the errno of vsnprintf. */
char *reapPrintf(void **reap, const char *format, ...)
    REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW, format(printf, 2, 3));
char *reapVprintf(void **reap, const char *format, va_list args)
    REAP_ATTRIBUTE(nonnull(1, 2), REAP_NEW, format(printf, 2, 0));

/* How many bytes of an object a program may use: its size rounded up to 16; 0 for NULL. Threads: any. */
size_t reapUsableSize(const void *object);

/* Sets *reap to the handle of the reap that owns a pointer, and returns 0. The pointer may be interior. If it
 * lies in no live object, sets *reap to NULL, and returns -1 with ENOENT. Threads: any. */
int reapOf(const void *pointer, void **reap) REAP_ATTRIBUTE(nonnull(2));

/* Frees an object of any reap, in any thread, as free() does under libreap-malloc. If the calling thread has
 * not entered the reap, the reap's own thread completes the free at a later call; a shared reap frees the
 * object at once. Returns 0; or -1 and ENOENT if the pointer is in no reap: NULL, or memory of malloc, which
 * stays as it is. */
int reapFreeAny(void *object);

/* Gives back memory that the reap holds without need: the chunks that it keeps for later rounds, all but
 * `keep` bytes of them; the chunk that it keeps for its next child, and those that the thread keeps of
 * others' children; and chunks without a live object, after the reap has completed the frees of other
 * threads. Objects stay where they are, and so does a chunk with an object. From then on the reap uses the
 * free memory of these chunks again, one chunk after the other, and gives back those that become empty before
 * their turn. Returns the bytes that went back to the heap; the heap gives them to the OS as it does all
 * unused memory. */
size_t reapTrim(void **reap, size_t keep) REAP_ATTRIBUTE(nonnull(1));

/* The parent's handle, or NULL for a root. */
void *reapParent(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* Copies a name for reports into the reap; NULL removes the name. A constant of the main program stays where
 * it is. 0, or -1 and ENOMEM, or ENAMETOOLONG above 4095 bytes. */
int reapSetName(void **reap, const char *name) REAP_ATTRIBUTE(nonnull(1));

/* The reap's name, or NULL; valid until the next reapSetName. */
const char *reapName(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* --- when a reap ends ------------------------------------------------------------------------ */

/* Registers fn(arg). The library calls it when the reap is cleared or destroyed: after the functions of its
 * children, before its memory is freed, last in first out. Functions may allocate in the reap and register
 * others. 0, or -1 and ENOMEM. */
int reapOnDestroy(void **reap, void (*fn)(void *arg), void *arg) REAP_ATTRIBUTE(nonnull(1, 2));

/* Removes the latest registration of fn with arg. 0, or -1 and ENOENT if there is none. */
int reapCancelOnDestroy(void **reap, void (*fn)(void *arg), void *arg) REAP_ATTRIBUTE(nonnull(1, 2));

/* --- marks ----------------------------------------------------------------------------------- */

/* A moment in a reap's life to which the reap can go back. Marks give a reap the order of obstacks (thesis
 * 5.2.2), which the thesis's reaps leave out (6.2). Only the library uses the fields. */
typedef struct reap_mark {
    void *reap;
    void *place;
    void *outer_place;
    uint64_t number;
    uint64_t outer;
    uint32_t depth;
    uint32_t room;
} reap_mark;

/* Opens a mark. It stays open until reapUnmark, or until the reap is cleared. While a mark is open, objects
 * come from the bump pointer only, and no older object grows across the mark: an object that moves, because
 * it grows or shrinks, is younger than the mark afterwards. Marks nest, up to 65535 deep. The call needs no
 * memory. It costs about as much as ten allocations, however many objects the reap has. */
void reapMark(void **reap, reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* Goes back to the mark: destroys younger children, newest first; runs younger functions, last in first
 * out; frees younger objects. Older objects that the program freed meanwhile stay freed. The mark stays open,
 * and the call closes younger marks. The name and the limit stay as they are. */
void reapRewind(void **reap, const reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* Closes the mark and younger ones, and frees nothing. A function that reapRewind runs must not close the
 * mark to which the reap goes back, nor an older one. */
void reapUnmark(void **reap, const reap_mark *mark) REAP_ATTRIBUTE(nonnull(1, 2));

/* --- a growing object ------------------------------------------------------------------------- */

/* An object of a reap that grows at its end: text, or an array. data is aligned to 16, and each call puts a
 * zero after the object, so that data is a string. Begin with zeros. A program may read all fields, and may
 * lower length; the next call puts the zero there. An append may move data. reapFinish returns the object,
 * and the builder is empty again.
 *
 *     reap_builder line = {0};
 *     for (int i = 0; i < n; i++) reapAppendf(&request, &line, "%d,", values[i]);
 *     char *text = reapFinish(&request, &line);
 *
 * The capacity doubles, so that n bytes take O(n) time, in whatever pieces they come; the last object of a
 * chunk grows without a move. live_bytes counts the whole capacity, until reapFinish gives the rest back. A
 * limit refuses only bytes that an append needs. An object that was begun before a mark and moves is younger
 * than the mark, as with reapRealloc. After a clear, or a rewind past the object, set the builder to zeros.
 * To discard an object, call reapFree with data. One thread at a time uses a builder, in a shared reap too.
 */
typedef struct reap_builder {
    char *data;    /* NULL at the beginning */
    size_t length; /* of the object, in bytes, without the zero */
    size_t room;   /* capacity of data, in bytes; only the library writes it */
} reap_builder;

/* Append n bytes, a string, or a text as sprintf makes it. 0; or -1 with ENOMEM, or with the error of
 * vsnprintf: then the builder is as before. bytes and s may lie in the object itself; strings for a format
 * must not. */
int reapAppend(void **reap, reap_builder *builder, const void *bytes, size_t n) REAP_ATTRIBUTE(nonnull(1, 2));
int reapAppendString(void **reap, reap_builder *builder, const char *s) REAP_ATTRIBUTE(nonnull(1, 2, 3));
int reapAppendf(void **reap, reap_builder *builder, const char *format, ...)
    REAP_ATTRIBUTE(nonnull(1, 2, 3), format(printf, 3, 4));
int reapVappendf(void **reap, reap_builder *builder, const char *format, va_list args)
    REAP_ATTRIBUTE(nonnull(1, 2, 3), format(printf, 3, 0));

/* Makes the object n bytes longer and returns the address of these bytes, for the caller to fill. On failure
 * NULL and ENOMEM. */
void *reapExtend(void **reap, reap_builder *builder, size_t n) REAP_ATTRIBUTE(nonnull(1, 2));

/* Returns the object, cut to its length and the zero; an empty string if nothing was appended. The builder is
 * empty then. NULL with ENOMEM, only if the builder was empty. */
char *reapFinish(void **reap, reap_builder *builder) REAP_ATTRIBUTE(nonnull(1, 2));

/* --- what a reap holds ----------------------------------------------------------------------- */

struct reap_stats {
    size_t live_bytes;       /* sum of reapUsableSize over live objects */
    size_t live_objects;     /* objects that are not freed */
    size_t chunk_bytes;      /* bytes of all chunks, free memory and headers included */
    size_t chunks;           /* number of chunks */
    size_t peak_chunk_bytes; /* the greatest chunk_bytes so far */
    size_t limit;            /* bytes, as reapSetLimit set it; 0: none */
    size_t children;         /* direct children only */
};

/* Fills in stats for this reap alone, without its descendants. Returns 0. */
int reapStats(void **reap, struct reap_stats *stats) REAP_ATTRIBUTE(nonnull(1, 2));

/* Writes the reap and its descendants as an indented tree. For NULL, writes every reap of the process; that
 * report is approximate while other threads run. */
void reapReport(void **reap, FILE *out) REAP_ATTRIBUTE(nonnull(2));

/* A reap as reapSurvey shows it. Its fields are valid during the call. */
struct reap_view {
    void *reap;              /* its handle */
    void *parent;            /* the parent's handle, or NULL */
    const char *name;        /* as reapSetName gave it; "": none */
    unsigned depth;          /* 0: the survey's first reap, or a root */
    double age;              /* seconds since it was made, in steps of a second; below 0: unknown */
    struct reap_stats stats; /* approximate while another thread uses the reap */
};

/* reapReport for programs: calls fn for the reap and for every reap below it, parents first, newest children
 * first. For NULL, calls fn for every reap of the process. Stops when fn does not return 0, and returns its
 * last result; or returns -1 with ENOMEM when there is no memory for the walk. fn may allocate anywhere, and
 * create and destroy reaps other than those of the survey. Other threads may create, destroy and move reaps
 * meanwhile: the survey shows a reap that exists all the time once, and may leave out any other. A reap has
 * an age if it was made while the process had a clock (reapSetClock). */
int reapSurvey(void **reap, int (*fn)(const struct reap_view *view, void *arg), void *arg)
    REAP_ATTRIBUTE(nonnull(2));

/* Sets the clock from which reapSurvey computes ages: a reap notes the clock's time when it is made. seconds
 * are counted from any moment, 1 at least. The program, or libreap-ask for it, makes this call each second.
 * 0 stops the clock, and ages are unknown until the clock goes on. The child of a fork has the time of its
 * parent. Threads: any. The call costs one store. */
void reapSetClock(uint32_t seconds);

/* The bytes of all chunks of the reap and of every reap below it: the sum of their chunk_bytes. The call
 * counts no objects, and needs some thirty instructions per reap. Other threads may use, create and destroy
 * the reaps below; a thread that creates or destroys a child of one of these waits meanwhile. */
size_t reapHeldBytes(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* The greatest chunk_bytes of this reap alone so far: peak_chunk_bytes of reapStats, without a count of
 * objects. */
size_t reapPeakBytes(void **reap) REAP_ATTRIBUTE(nonnull(1));

/* Calls fn for each live object. Stops when fn does not return 0, and returns its last result. fn may free
 * the object of its call, and no other, and must not allocate in this reap. fn must return. */
int reapWalk(void **reap, int (*fn)(void *object, size_t size, void *arg), void *arg)
    REAP_ATTRIBUTE(nonnull(1, 2));

/* --- misuse ---------------------------------------------------------------------------------- */

/* A function of the program that adds what it knows to the line of a misuse: the time, or the request that
 * this thread serves. line is a buffer of size bytes with "reap: CALL(POINTER): WHAT"; its last byte is 0.
 * The function may add to the line, or replace it; then the library writes the line, and aborts. call,
 * pointer and what are the three values in the line. */
typedef void reap_misuse_line(char *line, size_t size, const char *call, const void *pointer,
                              const char *what);

/* Registers fn to write into the line of a misuse; NULL removes the function. A process has one such
 * function, and the call returns the previous one; fn may call the previous one. fn runs in the thread that
 * made the mistake, in the midst of the library's call. It must return, and must not allocate, free or use
 * reaps, nor wait for a thread that does. */
reap_misuse_line *reapOnMisuse(reap_misuse_line *fn);

/* --- from reap to reap ----------------------------------------------------------------------- */

/* Moves an object from one reap to another, and returns its new address. On failure NULL and ENOMEM, and the
 * object stays. An object with a chunk of its own keeps its address, and the chunk moves to the other reap.
 * The calling thread must be the one that uses both reaps. */
void *reapMove(void *object, void **from, void **to) REAP_ATTRIBUTE(nonnull(1, 2, 3));

/* Makes a reap, with all reaps below it, the newest child of another parent; NULL, or a NULL handle, makes it
 * a root. The limits of the new ancestors hold from then on. 0; or -1 with EINVAL if the new parent is the
 * reap itself or below it, or with ENOMEM if a limit would be exceeded: then nothing has changed. Several
 * threads may adopt at once, while others create or destroy children of both parents. No other thread may use
 * the reap during the call, unless the reap is shared. If there are limits, the same holds for the reaps
 * below it, and no thread may resize an object of a reap that is not shared. */
int reapAdopt(void **reap, void **new_parent) REAP_ATTRIBUTE(nonnull(1));

/* --- entered reaps --------------------------------------------------------------------------- */

/* From reapEnter to reapLeave, under libreap-malloc, this thread's malloc, calloc, realloc(NULL), aligned
 * forms and new come from the reap. So a library that knows nothing of reaps allocates in the reap, and the
 * memory that it leaks is freed with the reap. free finds the owner as always, and realloc leaves an object
 * with its owner. Memory that libc and its modules allocate comes from the heap; results of strdup, asprintf,
 * getline, realpath and similar functions come from the reap. Calls nest: malloc uses the innermost reap, and
 * a thread may enter only the innermost reap again. Only this thread uses the reap meanwhile. A call that
 * clears or destroys an entered reap is misuse, and a thread must leave its reaps before it ends. Several
 * threads may be in a shared reap, and each thread in one shared reap at a time. (Thesis 6.4.4 changed the
 * calls of such a library by hand.)
 *
 * reapEnter of NULL, or of a NULL handle, enters the heap: malloc comes from there until the reapLeave of
 * this call. It is for what must outlive the reap: a cache, a pool of connections, a library's last error;
 * reapEnter(3) has more.
 *
 * Without libreap-malloc the calls change the result of reapEntered, and nothing else. Then the first
 * reapEnter says so in a line on standard error, and each reapEnter sets errno to ENOTSUP. Otherwise errno
 * stays. */
void reapEnter(void **reap);
void reapLeave(void);

/* reapEnter for a program that calls reapEntered itself, and runs with any malloc: the call writes no line
 * and keeps errno. */
void reapEnterQuietly(void **reap);

/* The handle of the innermost reap that this thread has entered, or NULL. In the heap, and in a function of a
 * source, the result is NULL. */
void *reapEntered(void);

/* --- charged reaps --------------------------------------------------------------------------- */

/* From reapCharge to reapUncharge this thread works for the reap: where libreap-profile takes a sample of
 * malloc's memory, the sample carries the reap's name. Nothing else changes: memory comes from where it came
 * from before, and an object that lies in a reap carries the name of that reap. reapChargeAs adds a label to
 * the name, after a space: a request's URL. Names are copied, so the reap may end, and be renamed, at any
 * time. Calls nest, also of one reap. NULL, or a NULL handle, is for work for no reap. A charge belongs to
 * its thread, and ends with it; the child of a fork has the forking thread's. A reap that another thread has
 * entered is misuse, and so is a reapUncharge without a charge. 0; or -1 and ENOMEM: then nothing has
 * changed, and no reapUncharge belongs to the call. */
int reapCharge(void **reap);
int reapChargeAs(void **reap, const char *label) REAP_ATTRIBUTE(nonnull(2));
void reapUncharge(void);

/* The name and the label of the innermost charge of this thread, until its reapUncharge; "(no name)" for a
 * reap without a name. NULL: the thread works for no reap. */
const char *reapCharged(void);

/* --- limits ---------------------------------------------------------------------------------- */

/* Limits the live bytes (as in reapStats) of a reap and of all reaps below it, together; 0: no limit. An
 * allocation that would exceed this limit, or the limit of a reap further up, returns NULL with ENOMEM. Live
 * bytes never exceed a limit. Where several reaps share a limit, an allocation may fail when up to a
 * sixteenth of the limit is still free. Resizing counts the difference; functions, names and chunks do not
 * count. 0; or -1 and ENOMEM if more bytes live already: then nothing has changed. During this call no other
 * thread may use reaps of the tree that are not shared, or resize their objects; any thread may call free().
 * Shared reaps may be in use: the call waits until no other thread is within a call on one of them. */
int reapSetLimit(void **reap, size_t bytes) REAP_ATTRIBUTE(nonnull(1));

/* Registers fn for allocations that would exceed this reap's own limit. The allocating thread calls fn with
 * this reap; the allocation, of size bytes, may be in a reap below. fn may free objects of this reap, or
 * clear the reap. It must not free the object that the program resizes or moves, nor use other reaps of the
 * tree. fn must return (no longjmp, no exception). Then the library tries the allocation once more. If an
 * allocation of fn itself fails, the library does not call fn again. Where several threads use reaps below,
 * each may call fn, also at the same time; then fn must not use the reap. One function at a time; NULL: none.
 */
void reapOnLimit(void **reap, void (*fn)(void **reap, size_t size, void *arg), void *arg)
    REAP_ATTRIBUTE(nonnull(1));

/* With REAP_OPTIONAL, defined before the include, each call is weak: a module also loads without the library,
 * and the address of each call is NULL then. reapMalloc becomes a call, also with optimisation; reap_bump is
 * inline as always. */
#ifdef REAP_OPTIONAL
#pragma weak reapVersion
#pragma weak reapCreate
#pragma weak reapNew
#pragma weak reapFreeAll
#pragma weak reapDestroy
#pragma weak reapMalloc
#pragma weak reapFree
#pragma weak reapCreateWith
#pragma weak reapCalloc
#pragma weak reapRealloc
#pragma weak reapAlignedAlloc
#pragma weak reapStrdup
#pragma weak reapStrndup
#pragma weak reapMemdup
#pragma weak reapPrintf
#pragma weak reapVprintf
#pragma weak reapUsableSize
#pragma weak reapOf
#pragma weak reapFreeAny
#pragma weak reapParent
#pragma weak reapSetName
#pragma weak reapName
#pragma weak reapOnDestroy
#pragma weak reapCancelOnDestroy
#pragma weak reapMark
#pragma weak reapRewind
#pragma weak reapUnmark
#pragma weak reapAppend
#pragma weak reapAppendString
#pragma weak reapAppendf
#pragma weak reapVappendf
#pragma weak reapExtend
#pragma weak reapFinish
#pragma weak reapStats
#pragma weak reapReport
#pragma weak reapWalk
#pragma weak reapMove
#pragma weak reapAdopt
#pragma weak reapEnter
#pragma weak reapLeave
#pragma weak reapEnterQuietly
#pragma weak reapEntered
#pragma weak reapCharge
#pragma weak reapChargeAs
#pragma weak reapUncharge
#pragma weak reapCharged
#pragma weak reapSetLimit
#pragma weak reapOnLimit
#pragma weak reapOnMisuse
#pragma weak reapHeldBytes
#pragma weak reapPeakBytes
#pragma weak reapSetClock
#pragma weak reapSurvey
#pragma weak reapTrim
#endif

/* The library's reapMalloc, which the inline one below calls. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(REAP_NO_INLINE) && \
    !defined(REAP_OPTIONAL)
#define REAP_INLINE 1
void *reap_malloc_called(void **reap, size_t size) __asm__("reapMalloc") REAP_ATTRIBUTE(nonnull(1));
int reap_append_called(void **reap, reap_builder *builder, const void *bytes, size_t n) __asm__("reapAppend")
    REAP_ATTRIBUTE(nonnull(1, 2));
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* --- without a call -------------------------------------------------------------------------- */

/* The memory at a handle begins with this structure. The structure belongs to the interface, and changes only
 * with the soname. A program may allocate from bump while bump < end. Where each object needs a call, end
 * equals bump. */
struct reap_front {
    void *self;       /* its own handle */
    char *bump;       /* the next object */
    char *end;        /* the end of the memory for objects */
    uintptr_t starts; /* bits for starts of objects: bit a / 16 % 32 of the word at starts + a / 512 * 4 */
};

#if defined(__GNUC__)
#define REAP_BUMP_INLINE extern inline REAP_ATTRIBUTE(gnu_inline, always_inline)
#else
#define REAP_BUMP_INLINE static inline
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "reaps need a little-endian processor: the library reads the same bits in words of 64"
#endif

/* The fast path of reapMalloc, for libraries that wrap reapMalloc in a function of their own and want to save
 * one of two calls. NULL if the object does not fit: then call reapMalloc. */
REAP_BUMP_INLINE void *reap_bump(void **reap, size_t size)
{
    struct reap_front *front = (struct reap_front *)*reap;
    char *object = front->bump, *next;
    size_t last = (size - 1) | 15; /* rounded apart: bump waits for one addition; of size 0 too great */
    typedef uint32_t reap_half REAP_ATTRIBUTE(may_alias); /* small: its changes wait for each other */
    if (last >= (size_t)(front->end - object)) return NULL;
    next = object + last + 1;
    *(reap_half *)(front->starts + (uintptr_t)next / 512 * 4) |= (uint32_t)1 << (uintptr_t)next / 16 % 32;
#if defined(__GNUC__)
    __asm__("" : "+r"(object));           /* from here on it lies where the result does: a move less */
    if (!object) __builtin_unreachable(); /* the test above serves the caller's test of the result, too */
#endif
    front->bump = next;
    return object;
}

/* reapMalloc, inline in the calling program. It calls the library only if the object does not fit at the bump
 * pointer. The address of reapMalloc is that of the library's function. A program that is built without
 * optimisation, or with REAP_NO_INLINE, always calls the library's function. */
#ifdef REAP_INLINE
extern inline REAP_ATTRIBUTE(gnu_inline) void *reapMalloc(void **reap, size_t size)
{
    void *object = __builtin_expect(*reap != NULL, 1) ? reap_bump(reap, size) : NULL;
    return __builtin_expect(object != NULL, 1) ? object : reap_malloc_called(reap, size);
}

/* reapAppend, in the same way: it calls the library if the builder's object has to grow, for bytes that
 * overlap with their place, and for a NULL, which the library tells. Compilers would drop the tests for
 * these: hence __asm__. */
extern inline REAP_ATTRIBUTE(gnu_inline) int reapAppend(void **reap, reap_builder *builder, const void *bytes,
                                                        size_t n)
{
    void **handle = reap;
    reap_builder *to = builder;
    const void *from = bytes;
    char *end;
    int is_apart;
    __asm__("" : "+r"(handle), "+r"(to), "+r"(from));
    end = handle && to && to->data ? to->data + to->length : NULL;
    is_apart = (uintptr_t)from + n <= (uintptr_t)end || (uintptr_t)end + n <= (uintptr_t)from;
    if (!end || !*handle || !from || !is_apart || to->length >= to->room || n >= to->room - to->length)
        return reap_append_called(reap, builder, bytes, n);
    __builtin_memcpy(end, from, n);
    end[n] = '\0';
    to->length += n;
    return 0;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
