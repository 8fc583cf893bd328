/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the parent of all runs: seeds, files, and what is left of a program that fails. Each run is a child
 * process of its own, so that the parent sees crashes and hangs, too. README.md tells what it is asked. */
#include "fuzz_ops.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static struct {
    uint64_t seed;
    bool seed_given, print, all, no_shrink, keep_going;
    unsigned ops, threads, runs, seconds, limit, tries, shrink_seconds;
    const char *file, *out, *preload, *after;
    int child;
} ask = {.ops = 20000, .threads = 1, .runs = 0, .limit = 60, .child = -1, .shrink_seconds = 120};

static volatile sig_atomic_t stopped; /* by a signal: what was run until now is told */

static void stop(int sig) { stopped = sig; }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *options(void) { return getenv("REAP_OPTIONS") ? getenv("REAP_OPTIONS") : ""; }

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* --- programs in files ----------------------------------------------------------------------- */

/* Text, so that a new operation changes nothing: a header, and a line for each record, with the name last. */
static void write_program(int fd, const struct program *program)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "threads %u reaps %u slots %u\n", program->threads, program->reaps, program->slots);
    for (uint32_t i = 0; i < program->count; i++) {
        const struct record *r = &program->records[i];
        fprintf(out, "%u %u %u %u %u %s\n", r->thread, r->reap, r->extra, r->slot, r->size,
                ops[r->op % op_count].name);
    }
    fclose(out);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, text + done, size - done);
        if (n <= 0) die("write");
        done += (size_t)n;
    }
    free(text);
}

/* The same for a child of this parent, which is in a hurry. */
static void hand_over(int fd, const struct program *program)
{
    size_t size = program->count * sizeof *program->records;
    if (write(fd, program, sizeof *program) != sizeof *program) die("write");
    if (write(fd, program->records, size) != (ssize_t)size) die("write");
}

static void take_over(int fd, struct program *program)
{
    if (pread(fd, program, sizeof *program, 0) != sizeof *program) die("read");
    size_t size = program->count * sizeof *program->records;
    program->records = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (program->records == MAP_FAILED || pread(fd, program->records, size, sizeof *program) != (ssize_t)size)
        die("read");
}

static uint8_t op_named(const char *name)
{
    for (unsigned i = 0; i < op_count; i++)
        if (strcmp(ops[i].name, name) == 0) return (uint8_t)i;
    return 0;
}

static void read_program(FILE *in, struct program *program)
{
    char name[64];
    unsigned threads, reaps, slots, thread, reap, extra, slot, size, room = 0;
    *program = (struct program){0};
    if (fscanf(in, "threads %u reaps %u slots %u\n", &threads, &reaps, &slots) != 3) die("no program");
    program->threads = (uint8_t)threads;
    program->reaps = (uint8_t)reaps;
    program->slots = (uint16_t)slots;
    while (fscanf(in, "%u %u %u %u %u %63[^\n]\n", &thread, &reap, &extra, &slot, &size, name) == 6) {
        if (program->count == room) {
            room = room ? room * 2 : 1024;
            program->records = realloc(program->records, room * sizeof *program->records);
        }
        program->records[program->count++] = (struct record){op_named(name), (uint8_t)thread, (uint8_t)reap,
                                                             (uint8_t)extra, (uint16_t)slot,  (uint16_t)size};
    }
}

/* --- in the child ---------------------------------------------------------------------------- */

static void crashed(int sig)
{
    char text[200];
    int n = snprintf(text, sizeof text, "signal %d: %s\n", sig, fuzz_running);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) _exit(4);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_crashes(void)
{
    static char stack[65536];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaltstack(&alternative, NULL);
    for (size_t i = 0; !FUZZ_SANITIZED && i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

/* Descriptor ask.child has the program, and the next one the page of progress. */
static int run_child(void)
{
    struct rlimit none = {0, 0};
    struct program program;
    setrlimit(RLIMIT_CORE, &none);
    take_over(ask.child, &program);
    fuzz_progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ask.child + 1, 0);
    if (fuzz_progress == MAP_FAILED) die("mmap");
    catch_crashes();
    fuzz_verbose = ask.print;
    fuzz_all = ask.all;
    fuzz_leaves = strstr(options(), "leaks=1") != NULL;
    run_program(&program);
    return 0;
}

/* --- one run --------------------------------------------------------------------------------- */

struct result {
    bool bad;
    char what[300]; /* the same for the same fault: no addresses, no numbers */
    char said[1200];
    uint32_t at;
};

/* The line that tells what happened: of a sanitizer its summary, else the first one. */
static const char *telling_line(char *said)
{
    static const char *const words[] = {"SUMMARY: ", "runtime error: ", "mismatch: ", "signal ", "reap: "};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char *at = strstr(said, words[i]);
        if (at) return at;
    }
    return said;
}

static void name_fault(struct result *result, int status, bool hangs, char *said)
{
    const char *line = telling_line(said);
    char *to = result->what, *end = to + sizeof result->what - 1;
    to += snprintf(to, 60, "%s %d: ",
                   hangs                 ? "hang"
                   : WIFSIGNALED(status) ? "signal"
                                         : "exit",
                   hangs                 ? 0
                   : WIFSIGNALED(status) ? WTERMSIG(status)
                                         : WEXITSTATUS(status));
    for (bool digits = false; *line && *line != '\n' && to < end; line++) {
        bool digit =
            (*line >= '0' && *line <= '9') || (digits && (*line == 'x' || (*line >= 'a' && *line <= 'f')));
        if (!digit)
            *to++ = *line;
        else if (!digits)
            *to++ = '#';
        digits = digit;
    }
    *to = '\0';
    snprintf(result->said, sizeof result->said, "%s", said);
}

static int memory_file(const char *name)
{
    int fd = memfd_create(name, 0);
    if (fd < 0) die("memfd_create");
    return fd;
}

static pid_t start(int program, int page, int err, bool all, bool print)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    dup2(err, STDERR_FILENO);
    fcntl(program, F_DUPFD, 100);
    dup2(program, 100);
    dup2(page, 101);
    lseek(100, 0, SEEK_SET);
    const char *args[40] = {"fuzz", "--child", "100", all ? "--check-each" : "--quiet"};
    unsigned n = 4;
    if (print) args[n++] = "--print";
    for (unsigned i = 0; i < op_count && n < 38; i++) {
        if (!fuzz_without[i]) continue;
        args[n++] = "--without";
        args[n++] = ops[i].name;
    }
    if (ask.preload) setenv("LD_PRELOAD", ask.preload, 1);
    execv("/proc/self/exe", (char **)(uintptr_t)args);
    _exit(127);
}

/* Waits for a child as long as it comes to another record within the limit, however slow the machine is. With
 * no time at all it has not ended, however quick it was. */
static bool wait_for(pid_t pid, int *status, const _Atomic(uint32_t) *progress)
{
    uint32_t seen = *progress;
    double seconds = ask.limit, end = now() + seconds;
    struct timespec nap = {0, 1000000};
    for (;;) {
        if (seconds > 0 && waitpid(pid, status, WNOHANG) == pid) return true;
        uint32_t at = *progress;
        if (at != seen) end = now() + seconds;
        seen = at;
        if (now() > end || stopped) break;
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 20000000) nap.tv_nsec += nap.tv_nsec / 4;
    }
    kill(pid, SIGKILL);
    waitpid(pid, status, 0);
    return false;
}

/* A program that does as it should says nothing of the library's, but with leaks=1 of each reap that it has
 * told to be left. */
static bool says_what_it_should(const char *said)
{
    unsigned left = 0, told = 0;
    char line[600];
    for (const char *end; *said; said += strcspn(said, "\n"), said += *said == '\n') {
        if (strncmp(said, "reap: never destroyed: ", 23) == 0)
            told++;
        else if (strncmp(said, "reap", 4) == 0 && strncmp(said, "reap: at the end of ", 20) != 0)
            return false;
        if (strncmp(said, "left: ", 6) != 0 || !(end = strchr(said, '\n'))) continue;
        left++;
        snprintf(line, sizeof line, "\nreap: %.*s", (int)(end - said - 6), said + 6);
        if (!strstr(end, line)) return false;
    }
    return left == told;
}

/* What looks at what a tool has written. It is told the child's number. */
static bool is_well_afterwards(pid_t pid, int err)
{
    int status = 1;
    const _Atomic(uint32_t) none = 0;
    char number[20];
    snprintf(number, sizeof number, "%d", (int)pid);
    pid_t other = fork();
    if (other == 0) {
        dup2(err, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", ask.after, "sh", number, NULL);
        _exit(127);
    }
    return wait_for(other, &status, &none) && status == 0;
}

static void run(const struct program *program, bool all, bool print, struct result *result)
{
    static char said[1 << 18];
    int file = memory_file("program"), page = memory_file("page"), err = memory_file("err"), status = 0;
    hand_over(file, program);
    if (ftruncate(page, 4096) != 0) die("ftruncate");
    pid_t pid = start(file, page, err, all, print);
    _Atomic(uint32_t) *progress = mmap(NULL, 4096, PROT_READ, MAP_SHARED, page, 0);
    if (progress == MAP_FAILED) die("mmap");
    bool ended = wait_for(pid, &status, progress);
    *result = (struct result){.bad = !ended || status != 0, .at = *progress};
    bool is_well = result->bad || !ask.after || is_well_afterwards(pid, err);
    ssize_t n = pread(err, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    if (!result->bad && (!is_well || !says_what_it_should(said))) result->bad = true;
    if (result->bad) name_fault(result, status, !ended, said);
    munmap((void *)progress, 4096);
    close(file);
    close(page);
    close(err);
}

/* --- what is left of it ---------------------------------------------------------------------- */

static double shrink_end;

/* Returns true if it fails the same way. What depends on how threads meet is tried more than once. */
static bool fails(const struct program *program, const struct result *like, uint32_t *at)
{
    unsigned tries = ask.tries ? ask.tries : program->threads > 1 ? 8 : 1;
    struct result result;
    for (unsigned i = 0; i < tries && now() < shrink_end && !stopped; i++) {
        run(program, ask.all, false, &result);
        if (!result.bad || strcmp(result.what, like->what) != 0) continue;
        if (at) *at = result.at;
        return true;
    }
    return false;
}

static bool without(struct program *program, uint32_t from, uint32_t n, const struct result *like)
{
    struct program less = *program;
    less.records = malloc((program->count + 1) * sizeof *less.records);
    memcpy(less.records, program->records, from * sizeof *less.records);
    memcpy(less.records + from, program->records + from + n,
           (program->count - from - n) * sizeof *less.records);
    less.count = program->count - n;
    bool still = fails(&less, like, NULL);
    struct record *old = program->records;
    if (still) *program = less;
    free(still ? old : less.records);
    return still;
}

static bool drop_records(struct program *program, const struct result *like)
{
    bool any = false;
    for (uint32_t n = program->count / 2; n > 0; n /= 2) {
        for (uint32_t from = 0; from < program->count && now() < shrink_end;) {
            uint32_t some = n < program->count - from ? n : program->count - from;
            if (without(program, from, some, like))
                any = true;
            else
                from += some;
        }
        if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%u records, by %u ", program->count, n);
    }
    return any;
}

/* Smaller numbers where they do as well. */
static void simplify(struct program *program, const struct result *like)
{
    for (uint32_t i = 0; i < program->count && now() < shrink_end; i++) {
        struct record *rec = &program->records[i], old = *rec;
        const struct record simple[] = {{old.op, 0, old.reap, old.extra, old.slot, old.size},
                                        {old.op, old.thread, 0, old.extra, old.slot, old.size},
                                        {old.op, old.thread, old.reap, 0, old.slot, old.size},
                                        {old.op, old.thread, old.reap, old.extra, old.slot, 64}};
        for (size_t k = 0; k < sizeof simple / sizeof simple[0]; k++) {
            old = *rec;
            struct record next = simple[k];
            if (k != 0) next.thread = old.thread;
            if (k != 1) next.reap = old.reap;
            if (k != 2) next.extra = old.extra;
            if (k != 3) next.size = old.size;
            if (memcmp(&next, &old, sizeof old) == 0) continue;
            *rec = next;
            if (!fails(program, like, NULL)) *rec = old;
        }
    }
}

static void shrink(struct program *program, const struct result *like)
{
    uint32_t at = like->at;
    shrink_end = now() + (stopped ? 0 : ask.shrink_seconds);
    if (program->threads == 1 && at < program->count) {
        struct program head = *program;
        head.count = at;
        if (fails(&head, like, NULL)) program->count = at;
    }
    while (drop_records(program, like) && now() < shrink_end) continue;
    if (program->count <= 400) simplify(program, like);
    while (program->count <= 400 && drop_records(program, like) && now() < shrink_end) continue;
}

/* The directory of this program, which lies in a build: who runs it may stand in the sources. */
static const char *own_directory(void)
{
    static char path[500];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash = n > 0 ? strrchr(path, '/') : NULL;
    if (!slash) die("/proc/self/exe");
    *slash = '\0';
    return path;
}

static void save(const struct program *program, uint64_t seed)
{
    char path[600];
    snprintf(path, sizeof path, "%s/fuzz-%llu-%u.txt", ask.out ? ask.out : own_directory(),
             (unsigned long long)seed, program->threads);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) return;
    write_program(fd, program);
    close(fd);
    printf("saved as %s\n", path);
}

static void report(struct program *program, const struct result *result, uint64_t seed)
{
    printf("FAILED: seed %llu, %u threads, %u records, REAP_OPTIONS=%s: %s\n", (unsigned long long)seed,
           program->threads, program->count, options(), result->what);
    printf("%s\n", result->said);
    fflush(stdout);
    if (ask.no_shrink) return;
    double begin = now();
    shrink(program, result);
    printf("%u records are left, after %.0f seconds:\n", program->count, now() - begin);
    fflush(stdout);
    struct result last;
    run(program, ask.all, true, &last);
    printf("%s\n", last.bad ? last.said : "(it did not fail this time)");
    save(program, seed);
    fflush(stdout);
}

/* --- what is asked --------------------------------------------------------------------------- */

static int replay(void)
{
    struct program program;
    struct result result;
    FILE *in = fopen(ask.file, "r");
    if (!in) die(ask.file);
    read_program(in, &program);
    fclose(in);
    run(&program, ask.all, ask.print, &result);
    if (!result.bad) {
        printf("%s: as it should be\n", ask.file);
        return 0;
    }
    report(&program, &result, 0);
    return 1;
}

/* Returns true if this fault was not seen before. */
static bool is_new(const struct result *result)
{
    static char seen[64][300];
    static unsigned count;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(seen[i], result->what) == 0) return false;
    if (count < 64) memcpy(seen[count++], result->what, sizeof seen[0]);
    return true;
}

static int run_seeds(void)
{
    double begin = now();
    unsigned runs = 0, bad = 0;
    for (uint64_t seed = ask.seed;; seed++, runs++) {
        if (ask.runs ? runs >= ask.runs : now() - begin >= ask.seconds) break;
        struct program program;
        struct result result;
        generate(seed, ask.threads, ask.ops, &program);
        run(&program, ask.all, ask.print, &result);
        if (stopped) break;
        if (result.bad && is_new(&result)) report(&program, &result, seed);
        bad += result.bad;
        free(program.records);
        if (bad && !ask.keep_going) break;
    }
    printf(
        "%u programs of %u records from seed %llu on, %u threads, REAP_OPTIONS=%s: %u failed, %.0f seconds\n",
        runs, ask.ops, (unsigned long long)ask.seed, ask.threads, options(), bad, now() - begin);
    return bad != 0;
}

static const struct {
    const char *name;
    unsigned *number;
    bool *flag;
    const char **text;
} asks[] = {{"--ops", &ask.ops, NULL, NULL},
            {"--seconds", &ask.seconds, NULL, NULL},
            {"--threads", &ask.threads, NULL, NULL},
            {"--runs", &ask.runs, NULL, NULL},
            {"--limit", &ask.limit, NULL, NULL},
            {"--tries", &ask.tries, NULL, NULL},
            {"--shrink-seconds", &ask.shrink_seconds, NULL, NULL},
            {"--print", NULL, &ask.print, NULL},
            {"--check-each", NULL, &ask.all, NULL},
            {"--no-shrink", NULL, &ask.no_shrink, NULL},
            {"--keep-going", NULL, &ask.keep_going, NULL},
            {"--replay", NULL, NULL, &ask.file},
            {"--wide", NULL, &fuzz_wide, NULL},
            {"--preload", NULL, NULL, &ask.preload},
            {"--after", NULL, NULL, &ask.after},
            {"--out", NULL, NULL, &ask.out}};

static bool parse(int argc, char **argv, int *i)
{
    for (size_t k = 0; k < sizeof asks / sizeof asks[0]; k++) {
        if (strcmp(argv[*i], asks[k].name) != 0) continue;
        if (asks[k].flag) return *asks[k].flag = true;
        if (++*i >= argc) return false;
        if (asks[k].number) *asks[k].number = (unsigned)strtoul(argv[*i], NULL, 0);
        if (asks[k].text) *asks[k].text = argv[*i];
        return true;
    }
    if (strcmp(argv[*i], "--quiet") == 0) return true;
    if (++*i >= argc) return false;
    if (strcmp(argv[*i - 1], "--without") == 0) return fuzz_without[op_named(argv[*i])] = true;
    if (strcmp(argv[*i - 1], "--child") == 0) ask.child = (int)strtol(argv[*i], NULL, 0);
    if (strcmp(argv[*i - 1], "--seed") == 0) {
        ask.seed = strtoull(argv[*i], NULL, 0);
        ask.seed_given = true;
    }
    return ask.child >= 0 || ask.seed_given;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (parse(argc, argv, &i)) continue;
        fprintf(stderr, "fuzz: what is %s?\n", argv[i < argc ? i : argc - 1]);
        return 2;
    }
    if (ask.child >= 0) return run_child();
    if (ask.threads < 1 || ask.threads > THREADS) ask.threads = 1;
    if (ask.file) return replay();
    if (!ask.seed_given) ask.seed = ((uint64_t)time(NULL) << 8 ^ (uint64_t)getpid()) % 1000000000;
    if (!ask.runs && !ask.seconds) ask.runs = 1;
    signal(SIGTERM, stop);
    return run_seeds();
}
