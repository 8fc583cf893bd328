/* SPDX-License-Identifier: Apache-2.0 */
/* Run by preload-purge.sh. Uses 64 MiB, frees them, and does nothing then: does the memory go back, and which
 * threads are there? The first argument is the number of threads that there must be; with two, the second is
 * reap-purge, blocks all signals, and the memory goes back; in a child of fork too. With REAPS (purge_reaps)
 * reaps use it, in a program that has another malloc; a second argument has it ask for the thread. "little":
 * 3 MiB go in less than purge_ms=4000.
 */
#include "support/expect.h"
#include "support/resident.h"

#ifdef REAPS
#include "hoard.h"
#include "reap.h"
#endif

#include <ctype.h>
#include <dirent.h>

enum { BLOCKS = 1024, SIZE = 65536, LARGE = 9 << 20, SECONDS = 20 };

#ifdef REAPS
static void use_and_free(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    for (int i = 0; i < BLOCKS; i++) memset(reapMalloc(&reap, SIZE / 3), 1, SIZE / 3);
    memset(reapMalloc(&reap, LARGE), 1, LARGE);
    reapDestroy(&reap);
}
#else
static void use_and_free(void)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(OPAQUE((size_t)SIZE)), 1, SIZE);
    char *large = memset(malloc(OPAQUE((size_t)LARGE)), 1, LARGE);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    free(large);
}
#endif

/* Returns true if it is down to what it was, within SECONDS (a short while, where it should not be). Nothing
 * is allocated. */
static int goes_back(size_t before, int hundredths)
{
    for (; hundredths > 0 && resident() > before + (4 << 20); hundredths--) usleep(10000);
    return resident() <= before + (4 << 20);
}

/* The line of a file in /proc that begins so, without that. */
static void line_of(const char *path, const char *name, char *line, size_t size)
{
    char text[4096] = "";
    int fd = open(path, O_RDONLY);
    EXPECT(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    const char *at = strstr(text, name);
    snprintf(line, size, "%.*s", at ? (int)strcspn(at + strlen(name), "\n") : 0, at ? at + strlen(name) : "");
}

static void look_at_thread(const char *id)
{
    char path[64], name[64];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", id);
    line_of(path, "Name:\t", name, sizeof name);
    EXPECT(strcmp(name, "reap-purge") == 0);
    line_of(path, "SigBlk:\t", name, sizeof name);
    EXPECT(sscanf(name, "%llx", &blocked) == 1);
    EXPECT((blocked & 0x7ffbfeff) == 0x7ffbfeff); /* 1 to 31, but KILL and STOP */
}

/* Looks at all threads but this; how many there are with it. */
static int look_at_threads(void)
{
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    for (struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        threads++;
        if (atoi(entry->d_name) != getpid()) look_at_thread(entry->d_name);
    }
    if (tasks) closedir(tasks);
    return threads;
}

static void look(int threads, size_t before)
{
    use_and_free();
    EXPECT(goes_back(before, threads == 2 ? SECONDS * 100 : 30) == (threads == 2));
    EXPECT(look_at_threads() == threads);
    use_and_free(); /* it wakes up again */
    EXPECT(goes_back(before, threads == 2 ? SECONDS * 100 : 30) == (threads == 2));
}

static int look_at_little(void)
{
    enum { LITTLE = 3 << 20 };
    size_t before = resident();
    free(memset(malloc(OPAQUE((size_t)LITTLE)), 1, LITTLE));
    EXPECT(resident() > before + LITTLE / 2);
    usleep(3600000);
    EXPECT(resident() < before + LITTLE / 2);
    return expect_status();
}

int main(int argc, char **argv)
{
    if (argc < 2) return 99;
    if (strcmp(argv[1], "little") == 0) return look_at_little();
    int threads = atoi(argv[1]);
    size_t before = resident();
#ifdef REAPS
    if (argc > 2) hoard_purge_when_idle();
#endif
    look(threads, before);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
#ifdef REAPS
        if (argc > 2) look(1, before); /* it has to ask, too */
        if (argc > 2) hoard_purge_when_idle();
#endif
        look(threads, before);
        _exit(expect_status());
    }
    int status = -1;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    return expect_status();
}
