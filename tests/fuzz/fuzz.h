/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: a driver that makes random calls of all that reap.h, hoard.h and malloc offer, beside a model that
 * knows what must come of each. README.md tells how it is run.
 *
 * A program is a header and records of eight bytes; each is one call, of the row of the table of operations
 * that its first byte names. Whatever the bytes are, they are a program, and one from which records were
 * taken away is one, too: an operation that makes no sense where it stands does nothing. So seeds, libFuzzer
 * and files all go the same way, and what fails can be made shorter.
 *
 *     world     what one thread has: its reaps, its objects, and the model of both
 *     node      a reap of the model; its index is what a record names it by
 *     slot      a place for an object
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hoard.h"
#include "reap.h"

/* Built with a sanitizer, malloc is that one's: then hoard.h's calls stand for it, and no reap is entered. */
#if defined(FUZZ_SANITIZED)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUZZ_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FUZZ_SANITIZED 1
#endif
#endif
/* Figures of other threads are read without locks. */
#if defined(__SANITIZE_THREAD__)
#define FUZZ_FIGURES 0
#else
#define FUZZ_FIGURES 1
#endif
#ifndef FUZZ_SANITIZED
#define FUZZ_SANITIZED 0
#endif

enum {
    REAPS = 32,
    SLOTS = 4096,
    MARKS = 12,
    CLEANUPS = 400,
    ENTERED = 6,
    CHARGED = 6,
    NAME = 4192, /* room for a name; 4095 are the most */
    THREADS = 8,
    NEST = 3,      /* how deep functions of ours call operations */
    NONE = -1,     /* no reap: a root's parent */
    ELSEWHERE = -2 /* a parent that is another thread's */
};

/* --- programs -------------------------------------------------------------------------------- */

struct record {
    uint8_t op, thread, reap, extra;
    uint16_t slot, size;
};

struct program {
    uint8_t threads; /* 1: no others */
    uint8_t reaps;   /* how many nodes are used */
    uint16_t slots;
    uint32_t count;
    struct record *records;
};

/* --- the model ------------------------------------------------------------------------------- */

enum where { EMPTY, RESERVED, HOME, ABROAD, GONE }; /* reserved: for what is being asked for */

struct builder;

struct object {
    _Atomic(int) where; /* abroad: another thread has it, or will; gone: that one has freed it */
    int reap;           /* a node, or NONE: malloc's */
    bool hoards;        /* of hoard_malloc and its like */
    bool movable;       /* others may resize it */
    void *owner;        /* its reap, for others */
    unsigned depth;     /* marks that were open when it was made */
    unsigned char *at;
    size_t size, usable, filled;
    size_t counted; /* bytes that its node counts for it */
    uint64_t seed;
    struct builder *builder;      /* whose it is, or NULL: then only its length is filled */
    struct object *older, *newer; /* of its reap */
};

struct builder {
    reap_builder is;
    struct object *object; /* NULL: it is empty */
    bool is_cut;           /* the program has made it shorter, and no call was made since */
};

struct cleanup {
    struct world *world; /* NULL: free */
    int reap;
    unsigned depth;
    struct record does; /* what it does when it is called */
    struct cleanup *next;
};

struct source {
    int kind; /* enum in tree.c */
    long chunks;
    unsigned refuses; /* one in so many; 0: none */
    unsigned turn;
};

struct node {
    void *handle; /* NULL: not alive */
    int parent;
    void *parent_handle;
    uint64_t order; /* among siblings: the newest has the greatest */
    unsigned born;  /* marks of the parent that were open */
    reap_mark marks[MARKS];
    unsigned depth;
    size_t limit;
    bool on_limit;
    struct record at_limit;
    struct object *newest, *oldest;
    size_t live, objects, pending; /* bytes; pending ones were freed by free(), and perhaps not noticed yet */
    struct cleanup *cleanups;
    bool doomed;    /* one of its functions, or of those below it, has run: it goes, whatever else is said */
    unsigned going; /* it is being ended, or rewound, and functions run */
    unsigned entered; /* how often */
    bool shared, bounded, user_memory;
    bool is_public; /* other threads make children of it */
    unsigned quiet; /* and its marks from this one on were opened while none could; MARKS: none */
    bool named;
    uint16_t name_size, name_seed;
    void *buffer;
    struct source source;
};

/* What is being ended: the innermost is the last. */
struct ending {
    int top;
    unsigned depth; /* 0: all */
    bool rewinds;
};

struct world {
    unsigned number;
    struct program *program;
    unsigned nest;
    int asked;           /* the reap that an allocation is asked of */
    struct object *held; /* what is being resized or moved */
    size_t needed;       /* what is asked of a limit, at most; 0: not known */
    int met;             /* the reap whose function for a limit runs */
    int entered[ENTERED];
    unsigned entered_depth;
    char charged[CHARGED][NAME + 8]; /* as the reaps were named by then; "": no reap */
    unsigned charged_depth;
    struct ending endings[NEST + 2];
    unsigned ending_depth;
    bool silent;     /* what is done was said already */
    bool by_self;    /* the record's calls are given handles, and not their addresses */
    unsigned abroad; /* objects that others have, or had */
    uint64_t order, serial;
    struct node nodes[REAPS];
    struct object objects[SLOTS];
    struct cleanup cleanups[CLEANUPS];
    struct builder builders[REAPS * 2]; /* two for each reap */
    char padding[128];
};

extern __thread struct world *me;
extern bool fuzz_verbose;   /* each call is printed */
extern bool fuzz_all;       /* everything is looked at after each */
extern bool fuzz_threaded;  /* there are several worlds */
extern bool fuzz_libfuzzer; /* a failure is an abort */
extern bool fuzz_leaves;    /* reaps stay, and are told at exit: leaks=1 */
extern bool fuzz_wide;      /* sizes are mostly those of wide blocks */
extern bool fuzz_without[]; /* by operation: programs do without it */

/* --- saying ---------------------------------------------------------------------------------- */

/* Prints a call before it is made. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define SAY(...)                                                                                             \
    do {                                                                                                     \
        if (fuzz_verbose && !me->silent) say(__VA_ARGS__);                                                   \
    } while (0)

/* A call that succeeds leaves errno. ThreadSanitizer does not, when it leaves out a report (tsan.supp). */
enum { MY_ERRNO = 12345 };
#if defined(__SANITIZE_THREAD__)
#define ERRNO_STAYS true
#else
#define ERRNO_STAYS (errno == MY_ERRNO)
#endif

/* Ends the program when it does not hold. */
_Noreturn void failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0)) failed(__FILE__, __LINE__, __VA_ARGS__);                      \
    } while (0)
#define OPAQUE_POINTER(p)                                                                                    \
    __extension__({                                                                                          \
        __typeof__(0 ? (p) : (p)) opaque_ = (p);                                                             \
        __asm__ volatile("" : "+r"(opaque_) : : "memory");                                                   \
        opaque_;                                                                                             \
    })

/* --- model.c --------------------------------------------------------------------------------- */

enum { REST = 16 };                             /* in the low six bits of the largest sizes: fills the hole */
size_t size_of(uint16_t value);                 /* what a record's size means */
size_t size_in(int reap, uint16_t value);       /* the same in a reap, or NONE */
struct node *node_of(const struct record *rec); /* alive, or NULL */
int index_of(const struct node *node);
void **spelled(void **handle);
void **handle_of(struct node *node);
unsigned slot_of(const struct object *object);
struct object *empty_slot(const struct record *rec);  /* near the record's slot, or NULL */
struct object *live_object(const struct record *rec); /* of a reap or malloc's, at home */
struct object *reaps_object(const struct record *rec);

size_t usable_for(size_t size);
void fill(struct object *object);
void new_seed(struct object *object);
void fill_from(struct object *object, size_t from); /* up to what is filled */
void check_filled(const struct object *object, size_t size);

/* A new object at home; a resized one; one that is no more. */
void object_enter(struct object *object, int reap, void *at, size_t size);
void object_resized(struct object *object, void *at, size_t size);
void object_leave(struct object *object);
/* The same, and nothing is filled. */
void object_place(struct object *object, int reap, void *at, size_t size);
void object_replaced(struct object *object, void *at, size_t size);
void object_home(struct object *object); /* it was abroad */
void object_gone(struct object *object); /* and is no more */
void object_to(struct object *object, int reap, unsigned depth);
/* What other threads have freed is taken out. */
void reclaim(void);

bool is_below(int reap, int top);
size_t live_below(int top);
bool is_limited(int reap); /* or may run out of memory for another reason */
size_t children_of(int reap);
size_t pending_below(int top); /* freed by free(), and not taken note of yet, perhaps */
/* Would ending what is below top, if born at depth or later, end what must not be? */
bool may_end(int top, unsigned depth, bool rewinds);
/* Takes a reap out of the model with all below it; its functions must have run. */
void forget_reap(int reap);
void forget_objects(struct node *node, unsigned depth);

/* After a call: no limit is exceeded. */
void check_limits(void);
/* A call has failed with ENOMEM: may it, when so many bytes more would live in reap, which came from `from`?
 */
void check_refused(int reap, int from, size_t more, unsigned newcomers, size_t size);
/* reapOf. */
int reap_of(const void *pointer, void **owner);

/* Has this thread's reaps do what other calls have left to their next look. */
void look_at_all(void);
void check_node(struct node *node);
void check_all(void);

/* --- run.c ----------------------------------------------------------------------------------- */

/* Does what a record says, if that may be done within functions. */
void run_nested(struct record rec, int reap);
void run_program(const struct program *program);
extern _Atomic(uint32_t) *fuzz_progress;  /* the record that is run, or NULL */
extern __thread const char *fuzz_running; /* what this thread does */

/* --- table.c --------------------------------------------------------------------------------- */

/* Also within functions; only with one thread; only with several; makes objects; frees some; ends
 * many; in which order. */
enum {
    NESTED = 1,
    ALONE = 2,
    TOGETHER = 4,
    MAKES = 8,
    FREES = 16,
    ENDS = 32,
    NEWEST = 64,
    OLDEST = 128,
    ANY = 256
};

/* What belongs together; a program does without some of these groups. */
enum group { BASIC, RESIZE, HEAP, TREE, LIMITS, MARKS_, FUNCTIONS, WITH, ENTER, LOOK, WRONG, OTHERS, BUILD };

struct op {
    const char *name;
    enum group group;
    unsigned weight; /* how often, to begin with */
    unsigned flags;
    void (*run)(const struct record *rec);
    void (*check)(const struct record *rec); /* afterwards, NULL: limits alone */
};
extern const struct op ops[];
extern const unsigned op_count;

/* A program of count records from a seed. */
void generate(uint64_t seed, unsigned threads, unsigned count, struct program *program);

#endif
