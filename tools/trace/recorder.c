/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include <limits.h>
#include <lz4.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "stacks.h"
#include "tools/common/numbered_name.h"
#include "tools/common/own_file.h"
#include "tools/common/standard_error.h"
#include "varint.h"

enum { EVENT_MOST = 64, TRIES = 1000, NAME = PATH_MAX + 32 };

/* What the kernel empties in a forked child. */
static struct guard {
    uint32_t generation; /* of the trace that is open; 0: none */
    uint32_t lock;       /* of all below, but a slot's own thread needs none for the slot */
} * guard;

static struct slot {
    struct trace_slot *live; /* NULL: has no memory yet */
    bool is_taken;
    uint64_t time, address; /* of its last event */
} slots[TRACE_SLOTS];

bool recorder_on = true;
static uint32_t generation; /* the last one */
static char path[NAME];     /* of the trace */
static struct own_file file = NO_OWN_FILE, live_file = NO_OWN_FILE;
static char *live;
static unsigned depth;
static off_t written;
static pthread_key_t at_thread_end;

static __thread struct slot *mine;
static __thread uint32_t my_generation;

uint64_t recorder_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- without malloc, stdio, and points of cancellation ---------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[NAME + 256] = "reap-trace: ";
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + 12, sizeof text - 13, format, args);
    va_end(args);
    if (n < 0 || !standard_error_is_there()) return;
    size_t size = strlen(text);
    text[size++] = '\n';
    if (syscall(SYS_write, STDERR_FILENO, text, size) < 0) return;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        long n = syscall(SYS_write, fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n, size -= (size_t)n;
    }
    return true;
}

enum { AGAIN = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, FILE_AGAIN = O_RDWR | O_APPEND | AGAIN };

static int open_one(const char *name, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags | AGAIN, 0600);
}

/* Reads the start of a file of the kernel's. Returns the number of bytes; -1: none. */
static long read_start(const char *name, char *bytes, size_t size)
{
    int fd = open_one(name, O_RDONLY);
    long n = fd < 0 ? -1 : syscall(SYS_read, fd, bytes, size);
    if (fd >= 0) own_file_close_number(fd);
    return n;
}

static void lock(void)
{
    while (__atomic_exchange_n(&guard->lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&guard->lock, 0, __ATOMIC_RELEASE); }

/* --- the file ---------------------------------------------------------------------------------- */

static void stop(void)
{
    recorder_on = false;
    __atomic_store_n(&guard->generation, 0, __ATOMIC_RELAXED);
}

static void end_by_fault(const char *what)
{
    if (recorder_on) say("%s: %s, so the trace ends here", path, what);
    if (written > 0 && own_file_is_open(&file) && ftruncate(file.fd, written) != 0)
        say("%s: its last block is not whole", path);
    stop();
}

static bool write_file(const char *bytes, size_t size)
{
    off_t end = own_file_is_there(&file, path, FILE_AGAIN) ? lseek(file.fd, 0, SEEK_END) : -1;
    bool is_ours = end == written;
    if (is_ours && write_all(file.fd, bytes, size)) {
        written += (off_t)size;
        return true;
    }
    const char *why = is_ours || end < 0 ? strerrordesc_np(errno) : "others have changed it";
    if (!is_ours) written = 0;
    end_by_fault(why);
    return false;
}

static bool write_block(const struct trace_slot *slot, uint32_t number)
{
    static char bytes[sizeof(struct trace_block) + LZ4_COMPRESSBOUND(TRACE_SLOT)];
    static _Alignas(16) char state[1 << 15];
    char *packed = bytes + sizeof(struct trace_block);
    int n = (size_t)LZ4_sizeofState() > sizeof state
                ? LZ4_compress_default(slot->events, packed, (int)slot->used, LZ4_COMPRESSBOUND(TRACE_SLOT))
                : LZ4_compress_fast_extState(state, slot->events, packed, (int)slot->used,
                                             LZ4_COMPRESSBOUND(TRACE_SLOT), 1);
    struct trace_block block = {.magic = TRACE_BLOCK_MAGIC,
                                .slot = number,
                                .number = slot->number,
                                .start = slot->start,
                                .end = slot->end,
                                .unpacked = slot->used,
                                .packed = (uint32_t)n,
                                .check = trace_check(packed, (uint32_t)n)};
    memcpy(bytes, &block, sizeof block);
    return write_file(bytes, sizeof block + (size_t)n);
}

/* Writes a slot out, and begins its next block. Locked. */
static bool write_slot(struct slot *slot)
{
    struct trace_slot *now = slot->live;
    if (now->used > 0) {
        if (!write_block(now, (uint32_t)(slot - slots))) return false;
        __atomic_store_n(&now->begun, 0, __ATOMIC_RELEASE);
        now->number++;
    }
    now->start = now->end = slot->time;
    slot->address = 0;
    return true;
}

/* --- its start ----------------------------------------------------------------------------------- */

/* Copies a file's name, with %p replaced, until a comma. */
static bool set_path(const char *from)
{
    return numbered_name(path, PATH_MAX, from, strcspn(from, ",")) && path[0] != '\0';
}

static int open_new(void)
{
    size_t n = strlen(path);
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        if (i == 1) snprintf(path + n, sizeof path - n, ".%d", (int)getpid());
        if (i > 1) snprintf(path + n, sizeof path - n, ".%d.%d", (int)getpid(), i);
        fd = open_one(path, FILE_AGAIN | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST) break;
    }
    return fd;
}

static bool write_head(void)
{
    static char bytes[sizeof(struct trace_head) + TRACE_ARGUMENTS];
    long n = read_start("/proc/self/cmdline", bytes + sizeof(struct trace_head), TRACE_ARGUMENTS);
    if (n < 0) n = 0;
    struct trace_head head = {.magic = TRACE_MAGIC,
                              .version = TRACE_VERSION,
                              .pid = (uint32_t)getpid(),
                              .start = recorder_now(),
                              .live = (uintptr_t)live,
                              .depth = depth,
                              .arguments = (uint32_t)n};
    memcpy(bytes, &head, sizeof head);
    written = 0;
    return write_file(bytes, sizeof head + (size_t)n);
}

/* Beside `path`. */
static const char *live_name(void)
{
    static char name[NAME + 8];
    snprintf(name, sizeof name, "%s.live", path);
    return name;
}

/* Gives a slot its memory. A file has it before it is touched: a full disk is no SIGBUS. */
static bool open_slot(struct slot *slot)
{
    off_t at = (slot - slots) * (off_t)TRACE_SLOT;
    if (!own_file_is_there(&live_file, live_name(), O_RDWR | AGAIN)) return false;
    long status = syscall(SYS_fallocate, live_file.fd, 0, at, (off_t)TRACE_SLOT);
    static const char nothing[TRACE_SLOT];
    if (status != 0 && errno == EOPNOTSUPP)
        status = pwrite(live_file.fd, nothing, TRACE_SLOT, at) == TRACE_SLOT ? 0 : -1;
    if (status != 0) return false;
    slot->live = (struct trace_slot *)(live + at);
    slot->live->magic = TRACE_LIVE_MAGIC;
    return true;
}

/* A place that no other run has: uses of memory belong to a trace if its events are where this is (uses.h),
 * and under QEMU and Valgrind the system's choice is the same in each run. It may be taken: then the system
 * chooses. */
static void *place_of_run(void)
{
    uint64_t chance = (recorder_now() ^ (uint64_t)getpid() << 40) * 0x9e3779b97f4a7c15u;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address
    return (void *)(uintptr_t)(((uint64_t)1 << 45) + (chance >> 40 << 20));
}

static bool open_live(void)
{
    if (!own_file_adopt(&live_file, open_one(live_name(), O_RDWR | O_CREAT | O_EXCL))) return false;
    size_t size = (size_t)TRACE_SLOTS * TRACE_SLOT;
    int flags = MAP_SHARED | MAP_NORESERVE;
    void *at = mmap(place_of_run(), size, PROT_READ | PROT_WRITE, flags, live_file.fd, 0);
    if (at == MAP_FAILED) return false;
    live = at;
    madvise(at, size, MADV_DONTFORK);
    return open_slot(&slots[TRACE_STACKS]) && open_slot(&slots[TRACE_MODULES]);
}

static bool is_said(const char *text)
{
    const char *more = strchr(text, ',');
    if (!more) return true;
    char *end;
    if (strncmp(more, ",stacks=", 8) != 0) return false;
    unsigned long n = strtoul(more + 8, &end, 10);
    depth = (unsigned)n;
    return end > more + 8 && *end == '\0' && n <= TRACE_DEPTH;
}

/* Forgets what was of the parent of a fork. */
static void forget(void)
{
    for (int i = 0; i < TRACE_SLOTS; i++) slots[i] = (struct slot){0};
    stacks_clear();
    own_file_close(&file);
    own_file_close(&live_file);
}

static void give_up_slot(void *slot)
{
    if (my_generation == guard->generation)
        __atomic_store_n(&((struct slot *)slot)->is_taken, false, __ATOMIC_RELEASE);
    my_generation = 0;
}

/* Where the kernel is none that empties pages (QEMU's user mode is), fork does, before other handlers
 * allocate: it is registered by the first call of all. A child by other ways than fork writes to its parent's
 * trace there. */
static void empty_guard(void) { *guard = (struct guard){0}; }

/* The page of guards: before all threads. */
static bool make_guard(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, size, MADV_WIPEONFORK) != 0 ||
        pthread_key_create(&at_thread_end, give_up_slot) != 0 ||
        pthread_atfork(NULL, NULL, empty_guard) != 0) {
        say("this kernel cannot empty pages at a fork, so there is no trace");
        recorder_on = false;
        return false;
    }
    guard = page;
    return true;
}

/* Opens a trace. Locked. False: there is none, and recorder_on says whether one may come. */
static bool start(void)
{
    if (!environ) return false; /* libc has not started */
    const char *text = secure_getenv("REAP_TRACE");
    if (!text || !*text) {
        recorder_on = false;
        return false;
    }
    forget();
    if (!set_path(text) || !is_said(text)) {
        say("REAP_TRACE=%.200s is not FILE or FILE,stacks=N with N up to %d: no trace", text, TRACE_DEPTH);
        recorder_on = false;
        return false;
    }
    if (!own_file_adopt(&file, open_new()) || !open_live()) {
        end_by_fault(strerrordesc_np(errno));
        return false;
    }
    if (!write_head()) return false;
    __atomic_store_n(&guard->generation, ++generation, __ATOMIC_RELEASE);
    return true;
}

static char *put_event(struct slot *slot, char *at, unsigned kind, uint64_t time)
{
    *at++ = (char)kind;
    at = varint_put(at, time > slot->time ? time - slot->time : 0);
    if (time > slot->time) slot->time = time;
    return at;
}

static char *put_address(struct slot *slot, char *at, const void *address)
{
    at = varint_put(at, varint_fold(slot->address, (uintptr_t)address));
    slot->address = (uintptr_t)address;
    return at;
}

static void commit(struct slot *slot, const char *end)
{
    slot->live->end = slot->time;
    __atomic_store_n(&slot->live->used, (uint32_t)(end - slot->live->events), __ATOMIC_RELEASE);
}

/* A slot that no thread has, with the thread's id in it. Locked. NULL: there is none. */
static struct slot *take_slot(void)
{
    for (struct slot *slot = &slots[TRACE_THREADS]; slot < slots + TRACE_SLOTS; slot++) {
        if (__atomic_load_n(&slot->is_taken, __ATOMIC_ACQUIRE)) continue;
        if (!slot->live) {
            if (!open_slot(slot)) {
                end_by_fault(strerrordesc_np(errno));
                return NULL;
            }
            slot->live->start = slot->time = recorder_now();
        } else if (slot->live->used > TRACE_ROOM - EVENT_MOST && !write_slot(slot)) {
            return NULL;
        }
        slot->is_taken = true;
        char *at = put_event(slot, slot->live->events + slot->live->used, TRACE_THREAD, recorder_now());
        commit(slot, varint_put(at, (uint64_t)syscall(SYS_gettid)));
        return slot;
    }
    end_by_fault("more threads at once than it has slots");
    return NULL;
}

static void note_held(struct slot *slot);

/* Finds this thread a slot. A forked child opens its own trace. */
static struct slot *begin(void)
{
    if (!guard && !make_guard()) return NULL;
    lock();
    bool is_open = recorder_on && (guard->generation != 0 || start());
    mine = is_open ? take_slot() : NULL;
    my_generation = mine ? guard->generation : 0;
    unlock();
    if (!mine) return NULL;
    pthread_setspecific(at_thread_end, mine);
    note_held(mine);
    return mine;
}

/* --- events ------------------------------------------------------------------------------------ */

static void note_held(struct slot *slot)
{
    char text[64];
    unsigned long long size, resident;
    long n = read_start("/proc/self/statm", text, sizeof text - 1);
    if (n <= 0) return;
    text[n] = '\0';
    if (sscanf(text, "%llu %llu", &size, &resident) != 2) return;
    char *at = put_event(slot, slot->live->events + slot->live->used, TRACE_HELD, recorder_now());
    commit(slot, varint_put(at, resident * (uint64_t)sysconf(_SC_PAGESIZE)));
}

/* Adds to the slots of stacks and modules. Locked. */
static bool add(struct slot *slot, const char *bytes, size_t size)
{
    if (slot->live->used + size > TRACE_ROOM && !write_slot(slot)) return false;
    memcpy(slot->live->events + slot->live->used, bytes, size);
    commit(slot, slot->live->events + slot->live->used + size);
    return true;
}

static bool number_stack(const void *caller, uint32_t *number)
{
    static char text[TRACE_SLOT / 2];
    uint64_t frames[TRACE_DEPTH], from = 0;
    char bytes[(TRACE_DEPTH + 1) * VARINT_MAX];
    bool is_new;
    unsigned n = stacks_walk(caller, frames, depth);
    lock();
    *number = recorder_on ? stacks_number(frames, n, &is_new) : UINT32_MAX;
    if (*number != UINT32_MAX && is_new) {
        char *at = varint_put(bytes, n);
        for (unsigned i = 0; i < n; from = frames[i++]) at = varint_put(at, varint_fold(from, frames[i]));
        size_t size = stacks_modules(frames, n, text, sizeof text);
        if ((size > 0 && !add(&slots[TRACE_MODULES], text, size)) ||
            !add(&slots[TRACE_STACKS], bytes, (size_t)(at - bytes)))
            *number = UINT32_MAX;
    }
    unlock();
    return *number != UINT32_MAX;
}

/* A full slot is written out before the next event. False: the trace has ended. */
static __attribute__((noinline)) bool make_room(struct slot *slot)
{
    lock();
    bool done = recorder_on && write_slot(slot);
    unlock();
    if (done) note_held(slot);
    return done;
}

void recorder_note(enum trace_kind kind, const void *object, const void *pool, size_t size, uint64_t time,
                   const void *caller)
{
    int saved = errno;
    struct slot *slot = mine;
    if (__builtin_expect(!guard || my_generation == 0 || my_generation != guard->generation, 0))
        slot = begin();
    if (slot && slot->live->used > TRACE_ROOM - EVENT_MOST && !make_room(slot)) slot = NULL;
    if (slot) {
        uint32_t stack = 0;
        bool is_stacked = depth > 0 && caller && number_stack(caller, &stack);
        char *at = slot->live->events + slot->live->used;
        at = put_event(slot, at, is_stacked ? (unsigned)kind | TRACE_STACKED : (unsigned)kind, time);
        at = put_address(slot, at, object);
        if (trace_has_pool(kind)) at = put_address(slot, at, pool);
        if (trace_has_size(kind)) at = varint_put(at, size);
        if (is_stacked) at = varint_put(at, stack);
        commit(slot, at);
    }
    errno = saved;
}

/* --- its end ------------------------------------------------------------------------------------- */

/* What others are writing now stays in FILE.live: a thread may still be in an event. */
__attribute__((destructor)) static void finish(void)
{
    if (!guard || guard->generation == 0 || !recorder_on) return;
    lock();
    bool is_whole = true;
    for (int i = 0; i < TRACE_SLOTS && recorder_on; i++) {
        struct slot *slot = &slots[i];
        if (!slot->live || slot->live->used == 0) continue;
        bool is_quiet = i < TRACE_THREADS || slot == mine || !slot->is_taken;
        is_whole = is_quiet && write_slot(slot) && is_whole;
    }
    char name[NAME + 8];
    snprintf(name, sizeof name, "%s.live", path);
    if (is_whole && recorder_on) unlink(name);
    recorder_on = false;
    __atomic_store_n(&guard->generation, 0, __ATOMIC_RELAXED);
    unlock();
}
