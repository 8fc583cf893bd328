/* SPDX-License-Identifier: Apache-2.0 */
/* reap_libc.c: what libc allocates for itself at its first use is not a reap's that a thread is in then. Each
 * function is first used inside, in a process of its own, and again when the reap has gone and its memory was
 * used by others; inside the reap nothing may be left of it. Linked to libreap-malloc.
 *
 *     reap_libc             all, each without and with red zones and looking through freed objects
 *     reap_libc NAME        one
 */
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <langinfo.h>
#include <libintl.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <wchar.h>
#include <wordexp.h>

#include "reap.h"
#include "support/expect.h"

/* --- the functions --------------------------------------------------------------------------- */

/* Each is called three times: inside of a reap, after it, inside of another one. */

CASE(use_localtime)
{
    time_t then = 86400 * 365;
    EXPECT(localtime(&then)->tm_year == 71);
    unsetenv("TZ");
    tzset();
    EXPECT(localtime(&then)->tm_year == 71 && mktime(gmtime(&then)) != -1);
    setenv("TZ", "ABC-1DEF,M3.5.0,M10.5.0/3", 1);
    EXPECT(localtime(&then)->tm_hour == 1 && strcmp(tzname[0], "ABC") == 0);
}

CASE(use_localtime_unset)
{
    time_t now = time(NULL);
    char text[100];
    unsetenv("TZ");
    EXPECT(strftime(text, sizeof text, "%c %Z", localtime(&now)) > 10);
}

CASE(use_setlocale)
{
    EXPECT(setlocale(LC_ALL, "C.UTF-8") != NULL);
    EXPECT(strcmp(setlocale(LC_CTYPE, NULL), "C.UTF-8") == 0 && strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
    EXPECT(setlocale(LC_NUMERIC, "C") != NULL);
    EXPECT(strstr(setlocale(LC_ALL, NULL), "LC_NUMERIC=C") != NULL);
}

static locale_t kept_locale;
CASE(use_newlocale)
{
    locale_t fresh = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    EXPECT(fresh != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, fresh), "UTF-8") == 0);
    if (kept_locale != (locale_t)0) EXPECT(strcmp(nl_langinfo_l(CODESET, kept_locale), "UTF-8") == 0);
    if (kept_locale != (locale_t)0) freelocale(kept_locale);
    kept_locale = duplocale(fresh);
    freelocale(fresh);
}

CASE(use_bindtextdomain)
{
    setenv("LANGUAGE", "de:fr", 1);
    setlocale(LC_ALL, "C.UTF-8");
    EXPECT(strcmp(bindtextdomain("reap-test", "/nowhere"), "/nowhere") == 0);
    EXPECT(bind_textdomain_codeset("reap-test", "UTF-8") != NULL && textdomain("reap-test") != NULL);
    EXPECT(strcmp(gettext("one"), "one") == 0);
    EXPECT(strcmp(bindtextdomain("reap-test", NULL), "/nowhere") == 0);
    EXPECT(strcmp(bindtextdomain("reap-test", "/elsewhere"), "/elsewhere") == 0);
}

CASE(use_strerror)
{
    EXPECT(strstr(strerror(9999), "9999") != NULL && strstr(strerror(8888), "8888") != NULL);
    EXPECT(strstr(strsignal(999), "999") != NULL);
}

CASE(use_dlerror)
{
    EXPECT(dlopen("/nowhere/of-reap.so", RTLD_NOW) == NULL);
    EXPECT(strstr(dlerror(), "of-reap.so") != NULL);
    EXPECT(dlsym(RTLD_DEFAULT, "no_such_name_of_reap") == NULL);
}

CASE(use_dlopen)
{
    void *module = dlopen("libresolv.so.2", RTLD_NOW), *other = dlopen("libBrokenLocale.so.1", RTLD_LAZY);
    EXPECT(module != NULL && dlsym(module, "ns_name_ntop") != NULL);
    if (module != NULL) dlclose(module);
    if (other != NULL) dlclose(other);
}

static void *in_thread(void *arg)
{
    static __thread char space[100];
    static pthread_key_t keys[40];
    for (size_t i = 0; i < 40 && keys[39] == 0; i++) pthread_key_create(&keys[i], NULL);
    for (size_t i = 0; i < 40; i++) pthread_setspecific(keys[i], space);
    return pthread_getspecific(keys[39]) == space ? arg : NULL;
}

CASE(use_pthread_create)
{
    pthread_t threads[3];
    void *result = NULL;
    for (size_t i = 0; i < 3; i++) EXPECT(pthread_create(&threads[i], NULL, in_thread, &result) == 0);
    for (size_t i = 0; i < 3; i++)
        EXPECT(pthread_join(threads[i], &result) == 0 && result == (void *)&result);
    EXPECT(in_thread(&result) != NULL);
}

CASE(use_stdio)
{
    static FILE *kept;
    if (kept == NULL) kept = fopen("/dev/null", "w");
    EXPECT(fprintf(kept, "%s %5000d\n", "text", 1) > 5000 && fflush(kept) == 0);
    EXPECT(printf("%s", "") == 0 && putchar('\n') == '\n' && fflush(stdout) == 0);
    fprintf(stderr, "%s", "");
    FILE *wide = fopen("/dev/null", "w");
    EXPECT(fwide(wide, 1) > 0 && fwprintf(wide, L"%ls", L"wide") == 4 && fclose(wide) == 0);
}

static void nothing(void) {}
CASE(use_atexit)
{
    for (int i = 0; i < 100; i++) EXPECT(atexit(nothing) == 0);
    EXPECT(pthread_atfork(nothing, nothing, nothing) == 0);
}

CASE(use_environment)
{
    char name[20];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "REAP_TEST_%d", i);
        EXPECT(setenv(name, name, 1) == 0 && strcmp(getenv(name), name) == 0);
    }
    EXPECT(unsetenv("REAP_TEST_5") == 0 && getenv("REAP_TEST_5") == NULL);
}

CASE(use_names)
{
    struct passwd *root = getpwnam("root");
    EXPECT(root != NULL && root->pw_uid == 0);
    EXPECT(getpwnam("nobody-of-that-name") == NULL && getpwuid(65533) == NULL &&
           getgrnam("no-such-group") == NULL);
    setpwent();
    while (getpwent() != NULL) continue;
    endpwent();
    (void)getservbyname("http", "tcp");
}

CASE(use_hosts)
{
    struct addrinfo *list = NULL, hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST};
    if (getaddrinfo("localhost", "80", NULL, &list) == 0) freeaddrinfo(list);
    EXPECT(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0);
    freeaddrinfo(list);
    (void)gethostbyname("localhost");
    struct ifaddrs *addresses = NULL;
    if (getifaddrs(&addresses) == 0) freeifaddrs(addresses);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

CASE(use_qsort)
{
    static uint64_t numbers[100000];
    for (size_t i = 0; i < 100000; i++) numbers[i] = i * 7919 % 100003;
    qsort(numbers, 100000, sizeof *numbers, compare);
    EXPECT(numbers[0] < numbers[1] && numbers[99998] < numbers[99999]);
}

CASE(use_regcomp)
{
    static regex_t kept;
    static bool has;
    if (has) EXPECT(regexec(&kept, "the end", 0, NULL, 0) == 0);
    if (has) regfree(&kept);
    has = true;
    EXPECT(regcomp(&kept, "^(a|the)[[:space:]]+e.*d{1,3}$", REG_EXTENDED) == 0);
    EXPECT(regexec(&kept, "a  endd", 0, NULL, 0) == 0 && regexec(&kept, "no", 0, NULL, 0) != 0);
}

CASE(use_iconv)
{
    static iconv_t kept;
    char from[] = "text \xe4", to[100], *at = from, *out = to;
    size_t left = sizeof from, room = sizeof to;
    if (kept == (iconv_t)0) kept = iconv_open("UTF-8", "ISO-8859-15");
    EXPECT(kept != (iconv_t)-1 && iconv(kept, &at, &left, &out, &room) == 0);
    EXPECT(memcmp(to, "text \xc3\xa4", 8) == 0);
    static iconv_t with_state; /* which the module has allocated */
    if (with_state == (iconv_t)0) with_state = iconv_open("UTF-16", "UTF-8");
    char *again = to;
    size_t wide_left = 8, wide_room = sizeof to - 8, all = wide_room;
    again += 8, at = to;
    if (with_state != (iconv_t)-1) {
        EXPECT(iconv(with_state, NULL, NULL, NULL, NULL) == 0);
        EXPECT(iconv(with_state, &at, &wide_left, &again, &wide_room) == 0);
        EXPECT(all - wide_room == 2 + 2 * 7 && memcmp(to + 8,
                                                      "\xff\xfe"
                                                      "t\0e",
                                                      5) == 0);
    }
    iconv_t other = iconv_open("ISO-2022-JP", "UTF-8");
    if (other != (iconv_t)-1) iconv_close(other);
    setlocale(LC_ALL, "C.UTF-8");
    wchar_t wide[10];
    EXPECT(mbstowcs(wide, "\xc3\xa4", 10) == 1 && wide[0] == 0xe4);
}

CASE(use_files)
{
    FILE *file = tmpfile();
    EXPECT(file != NULL && fputs("text\n", file) >= 0 && fflush(file) == 0);
    if (file != NULL) fclose(file);
    DIR *directory = opendir("/");
    EXPECT(directory != NULL && readdir(directory) != NULL && closedir(directory) == 0);
    FILE *pipe = popen("echo text", "r");
    char line[10] = "";
    EXPECT(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "text\n") == 0);
    EXPECT(pclose(pipe) == 0 && system(":") == 0);
}

static int visit(const char *path, const struct stat *is, int kind, struct FTW *where)
{
    (void)path, (void)is, (void)kind, (void)where;
    return 0;
}

CASE(use_trees)
{
    glob_t found;
    wordexp_t words;
    EXPECT(glob("/*", 0, NULL, &found) == 0);
    globfree(&found);
    EXPECT(wordexp("one $HOME", &words, 0) == 0);
    wordfree(&words);
    EXPECT(nftw("/dev", visit, 5, FTW_PHYS | FTW_MOUNT) == 0);
}

CASE(use_tables)
{
    static bool has;
    if (!has) EXPECT(hcreate(100) != 0);
    has = true;
    EXPECT(hsearch((ENTRY){(char *)(uintptr_t) "key", NULL}, ENTER) != NULL);
}

CASE(use_memory_streams)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    EXPECT(stream != NULL && fprintf(stream, "%1000d", 1) == 1000 && fclose(stream) == 0 && size == 1000);
    free(text);
    char *word = NULL;
    EXPECT(sscanf("some words", "%ms", &word) == 1 && strcmp(word, "some") == 0);
    free(word);
}

CASE(use_others)
{
    void *frames[10];
    EXPECT(backtrace(frames, 10) > 0);
    char **lines = backtrace_symbols(frames, 2);
    EXPECT(lines != NULL);
    free(lines);
    openlog("reap_libc", 0, LOG_USER);
    closelog();
    char name[40];
    snprintf(name, sizeof name, "/reap-test-%d", (int)getpid());
    sem_t *semaphore = sem_open(name, O_CREAT, 0600, 1);
    if (semaphore != SEM_FAILED) EXPECT(sem_wait(semaphore) == 0 && sem_post(semaphore) == 0);
    if (semaphore != SEM_FAILED) EXPECT(sem_close(semaphore) == 0 && sem_unlink(name) == 0);
    pid_t child;
    extern char **environ;
    char *arguments[] = {(char *)(uintptr_t) "true", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    EXPECT(posix_spawnp(&child, "true", &actions, NULL, arguments, environ) == 0);
    EXPECT(waitpid(child, NULL, 0) == child);
    posix_spawn_file_actions_destroy(&actions);
}

/* --- one --------------------------------------------------------------------------------------- */

static int say(void *object, size_t size, void *name)
{
    (void)object;
    fprintf(stderr, "reap_libc: %s has left %zu bytes in the reap\n", (const char *)name, size);
    return 0;
}

static void inside(const char *name, void (*use)(void))
{
    void *reap;
    reapCreate(&reap, NULL);
    reapEnter(&reap);
    use();
    reapLeave();
    EXPECT(reapWalk(&reap, say, (void *)(uintptr_t)name) == 0);
    struct reap_stats stats;
    EXPECT(reapStats(&reap, &stats) == 0 && stats.live_objects == 0);
    reapDestroy(&reap);
}

/* What had the memory of a reap before is gone for sure. */
static void overwrite(void)
{
    void *reap;
    reapCreate(&reap, NULL);
    for (size_t size = 16; size < 4000; size += 16) memset(reapMalloc(&reap, size), 0x5a, size);
    for (size_t i = 0; i < 1000; i++) memset(reapMalloc(&reap, 24), 0x5a, 24);
    reapDestroy(&reap);
}

static int one(const char *name)
{
    for (unsigned i = 0; i < all_cases()->count; i++) {
        if (strcmp(all_cases()->names[i], name) != 0) continue;
        inside(name, all_cases()->runs[i]);
        overwrite();
        all_cases()->runs[i]();
        inside(name, all_cases()->runs[i]);
        overwrite();
        all_cases()->runs[i]();
        return expect_status();
    }
    return 99;
}

/* --- what is the caller's ---------------------------------------------------------------------- */

static void *reap;

static bool in_reap(const void *pointer)
{
    void *owner;
    int saved = errno;
    bool is_in_reap = reapOf(pointer, &owner) == 0 && owner == reap;
    errno = saved;
    return is_in_reap;
}

static int by_list(char **made, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vasprintf(made, format, args);
    va_end(args);
    return n;
}

/* As libc has it, to the last byte and errno; outside and inside. */
static void callers(bool is_in)
{
    static char text[] = "one\ntwo:three\n";
    char *made = NULL, *line = NULL, *part = NULL, here[4096];
    size_t size = 0, length = 0;
#define ITS(pointer)                                                                                         \
    do {                                                                                                     \
        const void *its_ = (pointer);                                                                        \
        EXPECT(its_ != NULL && in_reap(its_) == is_in);                                                      \
    } while (0)
    errno = 7;
    ITS(made = OPAQUE(strdup("some text")));
    EXPECT(strcmp(made, "some text") == 0);
    ITS(made = OPAQUE(strdup("")));
    EXPECT(*made == '\0');
    ITS(made = OPAQUE(strndup("some text", 4)));
    EXPECT(strcmp(made, "some") == 0);
    ITS(made = OPAQUE(strndup(made, SIZE_MAX / 2)));
    EXPECT(strcmp(made, "some") == 0);
    wchar_t *wide;
    ITS(wide = OPAQUE(wcsdup(L"wide text")));
    EXPECT(wcscmp(wide, L"wide text") == 0);
    EXPECT(asprintf(&made, "%d %s", 7, "seven") == 7 && strcmp(made, "7 seven") == 0);
    ITS(made);
    EXPECT(asprintf(&made, "%9000d", 7) == 9000 && made[8999] == '7' && made[9000] == '\0');
    ITS(made);
    EXPECT(by_list(&made, "%s", "") == 0 && *made == '\0');
    ITS(made);
    EXPECT(errno == 7);
    FILE *stream = fmemopen(text, sizeof text - 1, "r");
    EXPECT(getline(&line, &size, stream) == 4 && strcmp(line, "one\n") == 0 && size >= 120);
    ITS(line);
    EXPECT(getdelim(&part, &length, ':', stream) == 4 && strcmp(part, "two:") == 0);
    ITS(part);
    EXPECT(getline(&line, &size, stream) == 6 && strcmp(line, "three\n") == 0);
    EXPECT(getline(&line, &size, stream) == -1 && feof(stream));
    fclose(stream);
    EXPECT(getcwd(here, sizeof here) == here);
    ITS(made = getcwd(NULL, 0));
    EXPECT(strcmp(made, here) == 0);
    ITS(made = getcwd(NULL, 4096));
    EXPECT(strcmp(made, here) == 0);
    memset(made, 1, 4096);
    errno = 0;
    EXPECT(getcwd(NULL, 1) == NULL && errno == ERANGE);
    EXPECT(getcwd(here, 0) == NULL && errno == EINVAL);
    ITS(made = get_current_dir_name());
    ITS(made = realpath("/dev/../", NULL));
    EXPECT(strcmp(made, "/") == 0);
    EXPECT(realpath("/dev/..", here) == here && strcmp(here, "/") == 0);
    errno = 0;
    EXPECT(realpath("/nowhere/at/all", NULL) == NULL && errno == ENOENT);
    ITS(made = canonicalize_file_name("/dev/.."));
    clearerr(stdin); /* glibc 2.40 marks the stream for this, and a marked one fails without a word */
    errno = 0;
    EXPECT(getline(OPAQUE((char **)NULL), &size, stdin) == -1 && errno == EINVAL);
}

static void no_memory(void)
{
    char *made = NULL;
    reapFreeAll(&reap);
    EXPECT(reapSetLimit(&reap, 4096) == 0);
    reapEnter(&reap);
    for (int i = 0; i < 300; i++) (void)OPAQUE(malloc(16));
    errno = 0;
    EXPECT(asprintf(&made, "%d", 7) == -1 && errno == ENOMEM);
    errno = 0;
    EXPECT(OPAQUE(strdup("text")) == NULL && errno == ENOMEM);
    errno = 0;
    EXPECT(realpath("/", NULL) == NULL && errno == ENOMEM);
    reapLeave();
}

/* --- all ------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    static const char *const options[] = {"", "harden=1"};
    if (argc > 1) return one(argv[1]);
    for (unsigned i = 0; i < all_cases()->count; i++)
        for (size_t k = 0; k < 2; k++) {
            int status = run_again(all_cases()->names[i], options[k]);
            if (status != 0)
                printf("%s, REAP_OPTIONS=%s: %#x\n", all_cases()->names[i], options[k], (unsigned)status);
            EXPECT(status == 0);
        }
    reapCreate(&reap, NULL);
    callers(false);
    reapEnter(&reap);
    callers(true);
    reapLeave();
    callers(false);
    no_memory();
    reapDestroy(&reap);
    return expect_status();
}
