/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check_backend.h"

#include "heap/global_heap.h"
#include "heap/heap_fast.h"
#include "hoard/init.h"
#include "hoard/malloc_fast.h"
#include "stepper.h"

#include <sys/time.h>
#include <ucontext.h>

#if RSEQ_AVAILABLE && defined(__x86_64__)

enum { TRAP_FLAG = 0x100, STACK = 256 * 1024 };
enum {
    RUN_SECONDS = 3 /* of processor time, where milliseconds are plenty: who runs longer runs in circles */
};

/* struct rseq_cs, and as much of struct rseq as sections use. */
struct section {
    uint32_t version, flags;
    uintptr_t start, length, abort;
};

static _Thread_local _Alignas(32) struct {
    uint32_t cpu_id_start, rseq_id;
    const struct section *section;
} area;

/* What a processor has for itself while the other one runs. */
struct processor {
    ucontext_t context;
    uint32_t id;
    const struct section *section;
    unsigned lock_depth;
#ifdef REAP_DEBUG
    struct lock_ranks ranks; /* and its held locks by rank */
#endif
    greg_t *stopped; /* its registers, if it is */
};

static struct processor fast, slow, *running = &slow;
static enum { NOT_BEGUN, UNDER_WAY, WAITING, DONE } fast_is;
static void (*fast_does)(void);
static uintptr_t fast_frame; /* the stack pointer of who calls it, whose code is no part of it */
static struct plan plan;
static struct passed passed;
static unsigned events, sections, fences;
static struct store {
    uint64_t *at, value;
} buffer; /* at is NULL: nothing is in it */
char stepper_story[256];

static bool is_inside(const struct section *section, greg_t at)
{
    return section != NULL && (uintptr_t)at - section->start < section->length;
}

static void end_badly(const char *what)
{
    fprintf(stderr, "%s: %s\n", stepper_story, what);
    abort();
}

/* --- breakpoints ------------------------------------------------------------------------------- */

/* An int3 in the place of an instruction's first byte. */
struct breakpoint {
    uintptr_t at;
    unsigned left; /* times that it is met before it means something */
    uint8_t byte;
    bool is_set;
};

enum { BREAK = 0xcc };

static void set(struct breakpoint *breakpoint, uintptr_t at, unsigned left)
{
    *breakpoint = (struct breakpoint){at, left, *(uint8_t *)at, true};
    *(volatile uint8_t *)at = BREAK;
}

static void clear(struct breakpoint *breakpoint)
{
    if (breakpoint->is_set) *(volatile uint8_t *)breakpoint->at = breakpoint->byte;
    breakpoint->is_set = false;
}

/* All sections of this program, as the linker put them together; and a breakpoint at the start of each. */
extern const struct section __start___rseq_cs[] HIDDEN, __stop___rseq_cs[] HIDDEN;
enum { SECTIONS = 200 };
static struct breakpoint starts[SECTIONS];

static unsigned number_of_sections(void) { return (unsigned)(__stop___rseq_cs - __start___rseq_cs); }

static void set_starts(void)
{
    for (unsigned i = 0; i < number_of_sections(); i++) set(&starts[i], __start___rseq_cs[i].start, 0);
}

static uintptr_t code_from, code_to; /* where breakpoints can be */

bool stepper_works(void)
{
    uintptr_t from = UINTPTR_MAX, to = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (number_of_sections() > SECTIONS) end_badly("more sections than this expects");
    for (const struct section *section = __start___rseq_cs; section != __stop___rseq_cs; section++) {
        from = section->start < from ? section->start : from;
        to = section->start + section->length > to ? section->start + section->length : to;
    }
    from &= ~(page - 1);
    to = (to + 2 * page - 1) & ~(page - 1); /* and what comes behind the last one */
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        perror("no breakpoints can be written into the code");
        return false;
    }
    code_from = from;
    code_to = to;
    return true;
}

static void clear_starts(void)
{
    for (unsigned i = 0; i < number_of_sections(); i++) clear(&starts[i]);
}

/* Where the fast one can be stopped: what a run that is not stopped has come by. */
struct point {
    uintptr_t at;
    uintptr_t commit; /* 0, or a store that is in the buffer then */
    bool inside;      /* of a section */
    unsigned before;  /* times that it came by before: at `commit`, or if that is 0, here */
};
enum { POINTS = 4000 };
static struct point points[POINTS];
static unsigned points_found;
static struct breakpoint stop, commit;

unsigned stepper_points(void) { return points_found; }

/* How often has the run come by? */
static unsigned times_at(uintptr_t at)
{
    unsigned n = 0;
    for (unsigned i = 0; i < points_found; i++) n += points[i].at == at && points[i].commit == 0;
    return n;
}

static void add_point(struct point point)
{
    if (points_found < POINTS) points[points_found++] = point;
}

unsigned stepper_next_behind(unsigned point)
{
    while (point < points_found && (points[point].inside || points[point].commit != 0)) point++;
    return point < points_found ? point + 1 : 0;
}

/* Where it has been stopped up to now, and is to be stopped next. */
static unsigned stops;

static void set_next(void)
{
    unsigned last = stops == 0 ? plan.point : plan.then[stops - 1];
    unsigned next = stops < 2 ? plan.then[stops] : 0, between = 0;
    stops++;
    if (last == 0 || next == 0) return;
    for (unsigned i = last; i < next - 1; i++)
        between += points[i].at == points[next - 1].at && points[i].commit == 0;
    set(&stop, points[next - 1].at, between);
}

static void set_breakpoints(void)
{
    if (plan.point == 0) {
        set_starts();
        return;
    }
    const struct point *point = &points[plan.point - 1];
    if (point->commit != 0)
        set(&commit, point->commit, point->before);
    else
        set(&stop, point->at, point->before);
}

static void clear_breakpoints(void)
{
    clear(&stop);
    clear(&commit);
    if (plan.point == 0) clear_starts();
}

/* --- from one to the other -------------------------------------------------------------------- */

static void empty_buffer(void)
{
    if (buffer.at != NULL) __atomic_store_n(buffer.at, buffer.value, __ATOMIC_RELEASE);
    buffer.at = NULL;
}

static void switch_to(struct processor *next)
{
    struct processor *last = running;
    last->id = area.rseq_id;
    last->section = area.section;
    last->lock_depth = lock_depth;
#ifdef REAP_DEBUG
    last->ranks = lock_ranks;
    lock_ranks = next->ranks;
    lock_ranks.me = next == &fast ? next : NULL;
#endif
    area.rseq_id = next->id;
    area.section = next->section;
    lock_depth = next->lock_depth;
    running = next;
    swapcontext(&last->context, &next->context);
}

static void be_fast(void)
{
    set_breakpoints();
    __asm__ volatile("mov %%rsp, %0" : "=r"(fast_frame));
    fast_does();
    clear_breakpoints();
    empty_buffer();
    fast_is = DONE;
    switch_to(&slow);
    end_badly("it goes on after its end");
}

static void begin(void)
{
    static _Alignas(64) char stack[STACK];
    getcontext(&fast.context);
    fast.context.uc_stack.ss_sp = stack;
    fast.context.uc_stack.ss_size = sizeof stack;
    makecontext(&fast.context, be_fast, 0);
    fast.id = STEPPER_FAST;
    fast.section = NULL;
    fast.lock_depth = 0;
    fast_is = UNDER_WAY;
    passed.begun = true;
    switch_to(&fast);
}

/* It is stopped, or waited for a lock of the other's. */
static void go_on(void)
{
    fast_is = UNDER_WAY;
    switch_to(&fast);
}

static void stop_here(greg_t *registers)
{
    passed.stopped = true;
    fast.stopped = registers;
    switch_to(&slow);
    fast.stopped = NULL;
    empty_buffer();
    set_next();
}

/* --- in the place of the library's ------------------------------------------------------------ */

void __real_lock_wait(struct lock *lock);
void __real_global_heap_give(struct superblock *sb, unsigned id);
bool __real_superblock_has_free(const struct superblock *sb, const void *block);

static void event(void)
{
    if (running != &slow || fast_is != NOT_BEGUN || sections < plan.moved) return;
    if (++events == plan.event) begin();
}

/* What membarrier does to all processors; the one that calls is in no section. */
void __wrap_rseq_fence(void)
{
    if (running == &slow) {
        bool goes_on = fast.stopped != NULL && ++fences == plan.goes_on;
        if (goes_on) go_on();
        empty_buffer();
        if (fast.stopped != NULL && is_inside(fast.section, fast.stopped[REG_RIP]))
            fast.stopped[REG_RIP] = (greg_t)fast.section->abort;
        if (goes_on && fast.stopped != NULL) go_on();
    }
    event();
}

void __wrap_lock_wait(struct lock *lock)
{
    if (running == &fast) {
        fast_is = WAITING;
        switch_to(&slow);
    } else {
        while (fast.stopped != NULL && atomic_load(&lock->state) != LOCK_FREE) go_on();
    }
    if (atomic_load(&lock->state) != LOCK_FREE) end_badly("nobody gives back the lock that one waits for");
    __real_lock_wait(lock);
}

/* It is unowned: no section that is under way changes it. */
bool __wrap_superblock_has_free(const struct superblock *sb, const void *block)
{
    uint64_t word = word_read(sb);
    if (running == &slow && fast.stopped != NULL) go_on();
    if (word_read(sb) != word) end_badly("a superblock that is looked at is changed");
    return __real_superblock_has_free(sb, block);
}

void __wrap_global_heap_give(struct superblock *sb, unsigned id)
{
    event();
    __real_global_heap_give(sb, id);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Of gregs, by their numbers in instructions. */
static const int general[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* Returns the length of a "movq register, displacement(base, index, scale)", as all that commit are, and what
 * it stores where; 0 for any other instruction. */
static unsigned is_store(const greg_t *registers, struct store *store)
{
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    unsigned rex = code[0], mode = code[2] >> 6, base = code[2] & 7, length = 3;
    if ((rex & 0xf8) != 0x48 || code[1] != 0x89 || mode == 3) return 0;
    uintptr_t at = 0;
    if (base == 4) {
        unsigned sib = code[length++], index = (sib >> 3 & 7) | (rex & 2) << 2;
        base = sib & 7;
        if (index != 4) at = (uintptr_t)registers[general[index]] << (sib >> 6);
    }
    if (mode == 0 && base == 5) return 0; /* no base */
    int32_t displacement = 0;
    if (mode == 1) displacement = (int8_t)code[length];
    if (mode == 2) memcpy(&displacement, code + length, sizeof displacement);
    at += (uintptr_t)registers[general[base | (rex & 1) << 3]] + (uintptr_t)(intptr_t)displacement;
    store->at = (uint64_t *)at;
    store->value = (uint64_t)registers[general[(code[2] >> 3 & 7) | (rex & 4) << 1]];
    return length + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/* Returns true if the instruction may overtake a store that is in the buffer, since it only loads, computes
 * or branches. It knows what compilers put there; all others empty the buffer first. */
static bool may_overtake(const uint8_t *code)
{
    if (*code == 0x66) code++;
    if ((*code & 0xf0) == 0x40) code++;
    bool is_register = code[1] >> 6 == 3;
    switch (*code) {
    case 0x0f: return (code[1] & 0xf0) == 0x80 || code[1] == 0xb6 || code[1] == 0xb7; /* jcc, movz */
    case 0x80:
    case 0x81:
    case 0x83: return is_register || (code[1] >> 3 & 7) == 7; /* cmp */
    case 0xc1:
    case 0xd1: return is_register; /* shr */
    case 0x38:
    case 0x39:
    case 0x3a:
    case 0x3b:
    case 0x84:
    case 0x85:
    case 0x8b:
    case 0x8d:
    case 0xc3:
    case 0xe9:
    case 0xeb: return true;                 /* cmp, test, mov from memory, lea, ret, jmp */
    default: return (*code & 0xf0) == 0x70; /* jcc */
    }
}

static bool is_commit(const greg_t *registers, struct store *store)
{
    const struct section *section = area.section;
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    return is_inside(section, registers[REG_RIP]) &&
           at + is_store(registers, store) == section->start + section->length;
}

static struct breakpoint *stepped_over; /* to be set again after the next instruction */
static bool recording;                  /* each instruction */

static void step_over(struct breakpoint *breakpoint, greg_t *registers)
{
    clear(breakpoint);
    stepped_over = breakpoint;
    registers[REG_EFL] |= TRAP_FLAG;
}

/* Before an instruction of a section, or behind one. */
static void record(greg_t *registers)
{
    static uintptr_t committed; /* where, 0: not yet */
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    struct store store;
    if (is_inside(area.section, registers[REG_RIP])) {
        add_point((struct point){at, 0, true, times_at(at)});
        committed = is_commit(registers, &store) ? at : 0;
        return;
    }
    bool is_part = at >= code_from && at < code_to && (uintptr_t)registers[REG_RSP] < fast_frame;
    bool overtakes = committed != 0 && is_part && may_overtake((const uint8_t *)at);
    if (overtakes) {
        add_point((struct point){at, 0, false, times_at(at)});
        add_point((struct point){at, committed, false, times_at(committed) - 1});
        return;
    }
    recording = false;
    registers[REG_EFL] &= ~TRAP_FLAG;
}

static void on_step(greg_t *registers)
{
    if (stepped_over != NULL) set(stepped_over, stepped_over->at, stepped_over->left);
    stepped_over = NULL;
    if (recording && running == &fast)
        record(registers);
    else
        registers[REG_EFL] &= ~TRAP_FLAG;
}

/* The store goes into the buffer. */
static void on_commit(greg_t *registers)
{
    clear(&commit);
    unsigned length = is_store(registers, &buffer);
    if (length == 0) end_badly("what was a store when it was recorded is no store now");
    registers[REG_RIP] += length;
    uintptr_t at = points[plan.point - 1].at;
    if ((uintptr_t)registers[REG_RIP] == at)
        stop_here(registers);
    else
        set(&stop, at, 0);
}

static void on_start(struct breakpoint *start, greg_t *registers)
{
    if (running == &slow && sections < plan.moved && ++sections == plan.moved) {
        clear_starts();
        area.rseq_id = STEPPER_SLOW;
        if (plan.event == 0) begin();
        return;
    }
    step_over(start, registers);
    recording |= running == &fast;
    if (running == &fast) record(registers);
}

static struct breakpoint *start_at(uintptr_t at)
{
    for (unsigned i = 0; i < number_of_sections(); i++)
        if (starts[i].at == at && starts[i].is_set) return &starts[i];
    return NULL;
}

static void on_break(greg_t *registers)
{
    uintptr_t at = (uintptr_t)--registers[REG_RIP];
    struct breakpoint *start = start_at(at);
    struct breakpoint *breakpoint = commit.is_set && commit.at == at ? &commit : &stop;
    if (start != NULL) {
        on_start(start, registers);
    } else if (!breakpoint->is_set || breakpoint->at != at) {
        end_badly("a trap that nobody has set");
    } else if (running == &slow || breakpoint->left-- != 0) {
        step_over(breakpoint, registers);
    } else if (breakpoint == &commit) {
        on_commit(registers);
    } else {
        clear(breakpoint);
        stop_here(registers);
    }
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_code == SI_KERNEL)
        on_break(registers);
    else
        on_step(registers);
}

/* --- the calls --------------------------------------------------------------------------------- */

static void on_end(int number)
{
    ssize_t written = write(STDERR_FILENO, stepper_story, strlen(stepper_story));
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

void stepper_start(void)
{
    use_path(0, "purge_ms=3600000");
    __libc_single_threaded = false; /* so fork takes locks */
    hoard_start();
    hoard_start_late();
    cpu.section_at = (char *)&area.section - (char *)__builtin_thread_pointer();
    rseq_id_at = cpu.now_at = (char *)&area.rseq_id - (char *)__builtin_thread_pointer();
    cpu.ids = IDS_MAX;
    sizeclass_open_fast();
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGTRAP, &action, NULL);
    signal(SIGSEGV, on_end);
    signal(SIGABRT, on_end);
    signal(SIGPROF, on_end);
}

pid_t stepper_fork(bool waits)
{
    if (waits && fast.stopped != NULL) go_on();
    struct processor there = fast;
    struct store buffered = buffer;
    fast.stopped = NULL;
    buffer.at = NULL;
    pid_t child = fork();
    if (child == 0) {
        fast_is = DONE;
    } else {
        fast = there;
        buffer = buffered;
    }
    return child;
}

void stepper_be(unsigned id) { area.rseq_id = id; }

struct passed stepper_run(const struct plan *how, void (*fast_part)(void), void (*slow_part)(void))
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = RUN_SECONDS}, NULL);
    plan = *how;
    fast_does = fast_part;
    fast_is = NOT_BEGUN;
    passed = (struct passed){false, false};
    events = sections = fences = stops = 0;
    if (plan.point == 0) points_found = 0;
    stepper_be(plan.moved != 0 ? STEPPER_FAST : STEPPER_SLOW);
    if (plan.moved != 0)
        set_starts();
    else if (plan.event == 0)
        begin();
    slow_part();
    if (sections < plan.moved) clear_starts();
    while (fast_is != NOT_BEGUN && fast_is != DONE) go_on();
    fast_is = DONE; /* what comes now is no event */
    return passed;
}

#else

void __real_rseq_fence(void);
void __wrap_rseq_fence(void) { __real_rseq_fence(); }
void __real_lock_wait(struct lock *lock);
void __wrap_lock_wait(struct lock *lock) { __real_lock_wait(lock); }
void __real_global_heap_give(struct superblock *sb, unsigned id);
void __wrap_global_heap_give(struct superblock *sb, unsigned id) { __real_global_heap_give(sb, id); }
bool __real_superblock_has_free(const struct superblock *sb, const void *block);
bool __wrap_superblock_has_free(const struct superblock *sb, const void *block)
{
    return __real_superblock_has_free(sb, block);
}

#endif
