/* SPDX-License-Identifier: Apache-2.0 */
/* redirect.c: the decision whether a thread's malloc comes from a reap. */
#include "hoard/redirect.h"

#include "arena/sizeclass.h"
#include "base/kernel.h"
#include "hoard/reap_hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

__thread void *redirect_reap;
bool redirect_on;

enum { TEXTS = 128 }; /* for a text that has no room here, ld.so is asked each time */

/* libc's texts come first, then others in the order of their first call of malloc. The text of an unloaded
 * library stays. If libc later loads a module at its place, the module counts as the program's. */
static SPARSE struct text {
    uintptr_t start, end;
    bool is_system;
} texts[TEXTS];
static _Atomic unsigned text_count;
static _Atomic bool adding;

static bool begins(const char *name, const char *word) { return strncmp(name, word, strlen(word)) == 0; }

/* Returns true for libc, ld.so, and modules that libc loads by itself, for names and for character sets. */
static bool is_system(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return begins(name, "libc.so.") || begins(name, "ld-linux") || begins(name, "libnss_") ||
           begins(name, "libresolv.so.") || strstr(path, "/gconv/") != NULL;
}

static bool is_in(const struct text *text, uintptr_t at)
{
    return at - text->start < text->end - text->start;
}

/* Adds a text. If several threads come at once, one adds its text, and the others ask again later. */
static void add_text(struct text text)
{
    if (atomic_exchange_explicit(&adding, true, memory_order_acquire)) return;
    unsigned count = atomic_load_explicit(&text_count, memory_order_relaxed);
    if (count < TEXTS) {
        texts[count] = text;
        atomic_store_explicit(&text_count, count + 1, memory_order_release);
    }
    atomic_store_explicit(&adding, false, memory_order_release);
}

static int note_system(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    bool is_loader = info->dlpi_addr != 0 && info->dlpi_addr == getauxval(AT_BASE);
    if (!is_loader && !is_system(info->dlpi_name)) return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        add_text((struct text){start, start + segment->p_memsz, true});
    }
    return 0;
}

/* Asks ld.so, which takes no lock for it. Code that ld.so does not know, a JIT's, is the program's. */
static COLD bool ask_loader(uintptr_t at)
{
    struct dl_find_object found;
    kernel_in_libc = true; /* it was not: redirect_is_programs */
    bool is_known = _dl_find_object((void *)at, &found) == 0;
    kernel_in_libc = false;
    if (!is_known) return false;
    bool is_libcs = is_system(found.dlfo_link_map->l_name);
    add_text((struct text){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, is_libcs});
    return is_libcs;
}

static bool in_system(uintptr_t at)
{
    unsigned count = atomic_load_explicit(&text_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (is_in(&texts[i], at)) return texts[i].is_system;
    return ask_loader(at);
}

bool redirect_is_programs(const void *caller)
{
    return caller != NULL && redirect_on && !kernel_in_libc && !in_system((uintptr_t)caller);
}

static void begin_redirecting(void)
{
    dl_iterate_phdr(note_system, NULL);
    sizeclass_close_fast();
}

/* Only libreap-malloc defines it; NULL where there is none. */
extern const char reap_malloc_is_here[] __attribute__((weak, visibility("default")));

bool redirect_is_elsewhere(void) { return redirect_has_malloc == NULL && reap_malloc_is_here != NULL; }

void redirect_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (redirect_on) pthread_once(&once, begin_redirecting);
}

unsigned process_generation = 1;

struct redirect_pause redirect_pause(void)
{
    struct redirect_pause pause = {redirect_reap, process_generation};
    redirect_reap = NULL;
    return pause;
}

void redirect_resume(struct redirect_pause pause)
{
    redirect_reap = pause.reap;
    if (UNLIKELY(pause.generation != process_generation)) reap_hooks->take_along();
}
