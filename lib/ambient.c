/* ambient.c: a thread's malloc that comes from a reap for a while. */
#include "ambient.h"

#include "sizeclass.h"

#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

__thread void *ambient_reap;
void (*ambient_learn)(void);

/* --- the text of libc and ld.so -------------------------------------------------------------- */

enum { TEXTS = 4, PLACES = 32 };

static struct {
    uintptr_t start, end;
} texts[TEXTS];
static unsigned text_count;

static bool is_system(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    bool is_loader = info->dlpi_addr != 0 && info->dlpi_addr == getauxval(AT_BASE);
    return is_loader || strncmp(name, "libc.so.", 8) == 0;
}

static int note_text(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    for (unsigned i = 0; is_system(info) && i < info->dlpi_phnum && text_count < TEXTS; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        texts[text_count].start = info->dlpi_addr + segment->p_vaddr;
        texts[text_count++].end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    }
    return 0;
}

static bool in_system(const void *caller)
{
    for (unsigned i = 0; i < text_count; i++)
        if ((uintptr_t)caller - texts[i].start < texts[i].end - texts[i].start) return true;
    return false;
}

/* --- the places in it that allocate for their caller ----------------------------------------- */

static const void *places[PLACES];
static unsigned place_count;
static char learning; /* its address is the reap of a thread that learns */

static bool is_place(const void *caller)
{
    for (unsigned i = 0; i < place_count; i++)
        if (places[i] == caller) return true;
    return false;
}

static void learn(const void *caller)
{
    if (in_system(caller) && !is_place(caller) && place_count < PLACES) places[place_count++] = caller;
}

void ambient_learn_from(void (*fn)(void))
{
    ambient_reap = &learning;
    fn();
    ambient_reap = NULL;
}

bool ambient_takes(const void *caller)
{
    if (caller == NULL) return false;
    if (UNLIKELY(ambient_reap == &learning)) {
        learn(caller);
        return false;
    }
    return !in_system(caller) || is_place(caller);
}

/* --- start ----------------------------------------------------------------------------------- */

static void start(void)
{
    dl_iterate_phdr(note_text, NULL);
    sizeclass_close_fast();
    if (ambient_learn != NULL) ambient_learn();
}

void ambient_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
