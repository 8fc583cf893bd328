/* SPDX-License-Identifier: Apache-2.0 */
/* uses_plugin.c: libreap-uses.so, which QEMU's user mode loads (qemu-x86_64 -plugin libreap-uses.so,to=FILE):
 * writes the lines that uses.h tells of, as lackey does, some hundred times fewer.
 *
 *     told      loads and stores, each 8 bytes once between two events of the recorder
 *     not told  instructions, what libgcc's unwinder reads, and what the recorder does but for its marks:
 *               neither is the program's, and stacks would be nine tenths of all lines
 *     system calls that read or write the program's memory have a line of each 8 bytes, too
 *
 * A forked child has a file of its own, FILE.PID.
 *
 * Threads: any. One lock is around all, so that lines are in the order of the accesses.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tools/common/own_file.h"
#include "tools/common/standard_error.h"
#include "trace_format.h"

#define PUBLIC __attribute__((visibility("default")))

/* --- what QEMU has for plugins, of version 1 ----------------------------------------------------- */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
typedef void told_block(uint64_t id, struct qemu_plugin_tb *block);
typedef void told_access(unsigned cpu, uint32_t info, uint64_t address, void *arg);
typedef void told_call(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h);
typedef void told_end(uint64_t id, void *arg);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, told_block *function);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, told_call *function);
void qemu_plugin_register_atexit_cb(uint64_t id, told_end *function, void *arg);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, told_access *function, int registers,
                                      int kinds, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t i);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_mem_is_store(uint32_t info);

enum { NO_REGISTERS = 0, LOADS_AND_STORES = 3 };

PUBLIC int qemu_plugin_version = 1;
PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

/* --- lines ------------------------------------------------------------------------------------------ */

enum { KNOWN = 1 << 16, ROOM = 1 << 16, LINE_MOST = 32, PAGE = 4096, GRAIN = 8, PATH_MOST = 4096 };
enum { FILE_AGAIN = O_WRONLY | O_APPEND | O_CLOEXEC };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[PATH_MOST], text[ROOM];
static size_t used;
static struct own_file file = NO_OWN_FILE;
static struct known {
    uint64_t grain, mark;
} known[KNOWN];
static uint64_t mark = 1; /* marks so far, and 1 */

static void end_by_fault(void)
{
    if (standard_error_is_there()) fprintf(stderr, "reap-uses: %s: %s\n", path, strerror(errno));
    _exit(125);
}

/* The program's calls of close reach this process's descriptors. */
static void write_out(void)
{
    if (!own_file_is_there(&file, path, FILE_AGAIN)) end_by_fault();
    for (size_t at = 0; at < used;) {
        ssize_t n = write(file.fd, text + at, used - at);
        if (n < 0 && errno != EINTR) end_by_fault();
        if (n > 0) at += (size_t)n;
    }
    used = 0;
}

static void put(char kind, uint64_t address, unsigned size)
{
    static const char digits[] = "0123456789abcdef";
    char line[LINE_MOST], *at = line + LINE_MOST;
    *--at = '\n';
    for (; size > 9; size /= 10) *--at = digits[size % 10];
    *--at = digits[size];
    *--at = ',';
    do *--at = digits[address % 16];
    while (address /= 16);
    *--at = ' ', *--at = kind, *--at = ' ';
    size_t n = (size_t)(line + LINE_MOST - at);
    if (used + n > ROOM) write_out();
    memcpy(text + used, at, n);
    used += n;
}

static void put_use(char kind, uint64_t address, uint64_t size)
{
    if (size == 0) return;
    for (uint64_t at = address / GRAIN; at <= (address + size - 1) / GRAIN; at++) {
        struct known *was = &known[at % KNOWN];
        if (was->grain == at && was->mark == mark) continue;
        *was = (struct known){at, mark};
        put(kind, at * GRAIN, GRAIN);
    }
}

static void take_access(unsigned cpu, uint32_t info, uint64_t address, void *is_recorder)
{
    (void)cpu;
    unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    bool is_store = qemu_plugin_mem_is_store(info);
    bool is_mark = is_recorder && is_store && size == sizeof(uint32_t) &&
                   address % PAGE == offsetof(struct trace_slot, used);
    if (is_recorder && !is_mark) return;
    pthread_mutex_lock(&lock);
    if (is_mark) {
        put('S', address, size);
        mark++;
    } else {
        put_use(is_store ? 'S' : 'L', address, size);
    }
    pthread_mutex_unlock(&lock);
}

/* The program has the addresses that this process has: QEMU is of the same machine. */
static void take_call(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                      uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)cpu, (void)a, (void)d, (void)e, (void)f, (void)g, (void)h;
    struct iovec one = {(void *)(uintptr_t)b,
                        c}; // NOLINT(performance-no-int-to-ptr): an address of the program's
    const struct iovec *parts = &one;
    uint64_t n = 1;
    switch (number) {
    case SYS_writev:
        parts = (const struct iovec *)(uintptr_t)b; // NOLINT(performance-no-int-to-ptr)
        n = c <= 1024 ? c : 0;
        break;
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_recvfrom:
    case SYS_sendto: break;
    default: return;
    }
    pthread_mutex_lock(&lock);
    for (; n > 0; n--, parts++)
        put_use('L', (uintptr_t)parts->iov_base, parts->iov_len < ROOM ? parts->iov_len : ROOM);
    pthread_mutex_unlock(&lock);
}

/* --- whose code it is -------------------------------------------------------------------------------- */

enum { MODULES = 4096 };
enum whose { PROGRAM, UNWINDER, RECORDER };
static struct module {
    uint64_t begin, end;
    enum whose whose;
} modules[MODULES];
static size_t n_modules;

static void read_modules(void)
{
    char line[PATH_MOST + 128], may[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    n_modules = 0;
    while (maps && n_modules < MODULES && fgets(line, sizeof line, maps)) {
        struct module *module = &modules[n_modules];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &module->begin, &module->end, may) != 3) continue;
        module->whose = strstr(line, "/libreap-trace.so") ? RECORDER
                        : strstr(line, "/libgcc_s.so")    ? UNWINDER
                                                          : PROGRAM;
        n_modules++;
    }
    if (maps) fclose(maps);
}

/* QEMU translates one block at a time. */
static enum whose whose_is(uint64_t address)
{
    for (bool is_new = false;; is_new = true) {
        for (size_t i = 0; i < n_modules; i++)
            if (address >= modules[i].begin && address < modules[i].end) return modules[i].whose;
        if (is_new) return PROGRAM;
        read_modules();
    }
}

static void take_block(uint64_t id, struct qemu_plugin_tb *block)
{
    static char is_recorder;
    (void)id;
    enum whose whose = whose_is(qemu_plugin_tb_vaddr(block));
    if (whose == UNWINDER) return;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), take_access, NO_REGISTERS,
                                         LOADS_AND_STORES, whose == RECORDER ? &is_recorder : NULL);
}

/* --- begin and end ------------------------------------------------------------------------------------ */

static void open_file(void)
{
    if (!own_file_adopt(&file, open(path, FILE_AGAIN | O_CREAT | O_TRUNC, 0600))) end_by_fault();
}

static void take_end(uint64_t id, void *arg)
{
    (void)id, (void)arg;
    pthread_mutex_lock(&lock);
    write_out();
    pthread_mutex_unlock(&lock);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void in_parent(void) { pthread_mutex_unlock(&lock); }
static void in_child(void)
{
    size_t n = strlen(path);
    used = 0;
    own_file_close(&file);
    snprintf(path + n, sizeof path - n, ".%d", (int)getpid());
    open_file();
    pthread_mutex_unlock(&lock);
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "to=", 3) != 0 || strlen(argv[0]) > PATH_MOST / 2) {
        fputs("reap-uses: -plugin libreap-uses.so,to=FILE\n", stderr);
        return -1;
    }
    strcpy(path, argv[0] + 3);
    open_file();
    pthread_atfork(before_fork, in_parent, in_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, take_block);
    qemu_plugin_register_vcpu_syscall_cb(id, take_call);
    qemu_plugin_register_atexit_cb(id, take_end, NULL);
    return 0;
}
