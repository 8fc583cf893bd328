/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_table.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "profile_probe.h"
#include "profile_unwind.h"

struct sample {
    const void *object, *reap;
    uint32_t next; /* of the bucket, or the next free one */
    uint32_t stack;
    uint64_t number; /* 0: free */
    struct profile_sum sum;
};

/* Numbers of samples and stacks begin with 1; 0 is none. All of it begins with zeros. */
struct table {
    uint32_t buckets[PROFILE_BUCKETS];
    uint32_t hashes[PROFILE_STACKS];
    struct sample samples[PROFILE_SAMPLES + 1];
    struct profile_stack stacks[PROFILE_STACKS + 1];
    void *frames[PROFILE_FRAMES];
    char names[PROFILE_NAMES][PROFILE_NAME];
    bool is_charge[PROFILE_NAMES];
    uint32_t used_samples, free_samples, used_frames, used_names, used_charges;
    struct profile_figures figures;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct table *table;
static uint64_t numbers; /* given to samples so far, also to forgotten ones */
static bool runs;
uint32_t profile_pages[PROFILE_PAGES];

/* The thread's, and the number of the last sample before its count. */
static __thread uint64_t *counted __attribute__((tls_model("initial-exec")));
static __thread uint64_t counted_from __attribute__((tls_model("initial-exec")));

void profile_table_lock(void) { pthread_mutex_lock(&mutex); }
void profile_table_unlock(void) { pthread_mutex_unlock(&mutex); }

bool profile_table_make(void)
{
    if (table) return true;
    void *memory =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, sizeof *table, MADV_NOHUGEPAGE);
    table = memory;
    return true;
}

void profile_table_start(void)
{
    profile_table_lock();
    madvise(table, sizeof *table, MADV_DONTNEED); /* zeros again, and its memory is the system's */
    runs = true;
    profile_table_unlock();
}

void profile_table_stop(void)
{
    profile_table_lock();
    runs = false;
    memset(profile_pages, 0, sizeof profile_pages);
    profile_table_unlock();
}

/* --- stacks ---------------------------------------------------------------------------------- */

/* The last two names stand for those that found no room. */
static uint16_t other_names(bool is_charge)
{
    uint16_t i = (uint16_t)(PROFILE_NAMES - 1 - is_charge);
    strcpy(table->names[i], is_charge ? PROFILE_MALLOC "(other names)" : "(other names)");
    return i;
}

static uint16_t find_name(const char *name, bool is_charge)
{
    char text[PROFILE_NAME] = "";
    if (!name) return 0; /* names[0] is "" */
    snprintf(text, sizeof text, "%s%s", is_charge ? PROFILE_MALLOC : "", *name ? name : "(no name)");
    if (table->used_names == 0) table->used_names = 1;
    for (uint32_t i = 1; i < table->used_names; i++)
        if (table->is_charge[i] == is_charge && memcmp(table->names[i], text, sizeof text) == 0)
            return (uint16_t)i;
    if (table->used_names == PROFILE_NAMES - 2 || (is_charge && table->used_charges == PROFILE_CHARGES))
        return other_names(is_charge);
    memcpy(table->names[table->used_names], text, sizeof text);
    table->is_charge[table->used_names] = is_charge;
    table->used_charges += is_charge;
    return (uint16_t)table->used_names++;
}

static uint32_t hash_of(void *const *frames, unsigned depth, unsigned name)
{
    uint64_t hash = name;
    for (unsigned i = 0; i < depth; i++) hash = (hash ^ (uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

static bool is_same(const struct profile_stack *stack, void *const *frames, unsigned depth, unsigned name)
{
    return stack->depth == depth && stack->name == name &&
           memcmp(table->frames + stack->first, frames, depth * sizeof *frames) == 0;
}

/* The number of the stack with these frames, made if it is not there. 0: no room. */
static uint32_t find_stack(void *const *frames, unsigned depth, unsigned name)
{
    uint32_t hash = hash_of(frames, depth, name), *head = &table->hashes[hash % PROFILE_STACKS], i;
    for (i = *head; i; i = table->stacks[i].next)
        if (table->stacks[i].hash == hash && is_same(&table->stacks[i], frames, depth, name)) return i;
    if (table->figures.stacks == PROFILE_STACKS || PROFILE_FRAMES - table->used_frames < depth) return 0;
    i = ++table->figures.stacks;
    table->stacks[i] = (struct profile_stack){.next = *head, .first = table->used_frames, .hash = hash};
    table->stacks[i].depth = (uint16_t)depth;
    table->stacks[i].name = (uint16_t)name;
    table->stacks[i].is_malloc = name == 0 || name == PROFILE_NAMES - 2 || table->is_charge[name];
    memcpy(table->frames + table->used_frames, frames, depth * sizeof *frames);
    table->used_frames += depth;
    return *head = i;
}

static void count(struct profile_sum *to, const struct profile_sum *sum, double sign)
{
    to->objects += sign * sum->objects;
    to->bytes += sign * sum->bytes;
    to->taken += sign * sum->taken;
}

/* --- samples --------------------------------------------------------------------------------- */

static size_t bucket_of(const void *object) { return (uintptr_t)object / 16 % PROFILE_BUCKETS; }

bool profile_table_may_have(const void *object)
{
    return __atomic_load_n(&table->buckets[bucket_of(object)], __ATOMIC_RELAXED) != 0;
}

static uint32_t *find_sample(const void *object)
{
    uint32_t *link = &table->buckets[bucket_of(object)];
    while (*link && table->samples[*link].object != object) link = &table->samples[*link].next;
    return link;
}

void profile_table_count(uint64_t *bytes)
{
    counted = bytes;
    counted_from = __atomic_load_n(&numbers, __ATOMIC_RELAXED) + PROFILE_SAMPLES;
}

static void count_for_thread(const struct sample *sample, double sign)
{
    if (!counted || sample->number <= counted_from) return;
    double bytes = (double)*counted + sign * sample->sum.taken;
    *counted = bytes > 0 ? (uint64_t)bytes : 0;
}

static void unlink_sample(uint32_t *link)
{
    uint32_t i = *link;
    struct sample *sample = &table->samples[i];
    count_for_thread(sample, -1);
    count(&table->stacks[sample->stack].live, &sample->sum, -1);
    __atomic_store_n(link, sample->next, __ATOMIC_RELAXED);
    __atomic_sub_fetch(profile_page(sample->object), 1, __ATOMIC_RELAXED);
    sample->number = 0;
    sample->next = table->free_samples;
    table->free_samples = i;
    table->figures.live--;
}

/* Room for a sample; 0: there is none. */
static uint32_t take_sample(void)
{
    uint32_t i = table->free_samples;
    if (i)
        table->free_samples = table->samples[i].next;
    else if (table->used_samples < PROFILE_SAMPLES)
        i = ++table->used_samples;
    return i;
}

/* A sample that is still there at this address was freed by a call that the profile did not see. */
static uint64_t add(const struct profile_object *object, void *const *frames, unsigned depth)
{
    uint32_t *old = find_sample(object->address);
    if (*old) unlink_sample(old);
    table->figures.samples++;
    uint32_t stack = find_stack(frames, depth, find_name(object->name, !object->reap));
    uint32_t i = stack ? take_sample() : 0;
    if (!i) {
        table->figures.lost++;
        return 0;
    }
    double scale = profile_table_scale(object);
    size_t bucket = bucket_of(object->address);
    struct sample *sample = &table->samples[i];
    *sample = (struct sample){.object = object->address, .reap = object->reap, .stack = stack};
    sample->next = table->buckets[bucket];
    sample->number = (numbers += PROFILE_SAMPLES * 2) + i;
    sample->sum = (struct profile_sum){scale, scale * (double)object->size, scale * (double)object->taken};
    __atomic_store_n(&table->buckets[bucket], i, __ATOMIC_RELAXED);
    __atomic_add_fetch(profile_page(object->address), 1, __ATOMIC_RELAXED);
    count(&table->stacks[stack].all, &sample->sum, 1);
    count(&table->stacks[stack].live, &sample->sum, 1);
    count_for_thread(sample, 1);
    table->figures.live++;
    return sample->number;
}

uint64_t profile_table_add(const struct profile_object *object, uint64_t loads)
{
    void *frames[PROFILE_DEPTH];
    unsigned depth = profile_unwind(frames, PROFILE_DEPTH, loads);
    profile_table_lock();
    uint64_t number = runs ? add(object, frames, depth) : 0;
    profile_table_unlock();
    if (number) profile_probe_alloc(object);
    return number;
}

uint64_t profile_table_remove(const void *object)
{
    uint64_t number = 0;
    profile_table_lock();
    uint32_t *link = runs ? find_sample(object) : NULL;
    if (link && *link) {
        number = table->samples[*link].number;
        unlink_sample(link);
    }
    profile_table_unlock();
    if (number) profile_probe_free(object);
    return number;
}

void profile_table_end(uint64_t number)
{
    uint32_t i = (uint32_t)(number % (PROFILE_SAMPLES * 2));
    const void *object = NULL;
    profile_table_lock();
    if (runs && i <= PROFILE_SAMPLES && table->samples[i].number == number) {
        object = table->samples[i].object;
        unlink_sample(find_sample(object));
    }
    profile_table_unlock();
    if (object) profile_probe_free(object);
}

/* --- reading --------------------------------------------------------------------------------- */

void profile_table_walk(void (*fn)(const struct profile_stack *stack, void *const *frames, const char *name,
                                   void *arg),
                        void *arg)
{
    if (!table) return;
    profile_table_lock();
    for (uint32_t i = 1; i <= table->figures.stacks; i++) {
        const struct profile_stack *stack = &table->stacks[i];
        fn(stack, table->frames + stack->first, table->names[stack->name], arg);
    }
    profile_table_unlock();
}

void profile_table_sum(bool (*wants)(const void *reap), struct profile_sum sums[PROFILE_STACKS])
{
    profile_table_lock();
    for (uint32_t i = 1; i <= table->used_samples; i++) {
        const struct sample *sample = &table->samples[i];
        if (sample->number && (!wants || wants(sample->reap)))
            count(&sums[sample->stack - 1], &sample->sum, 1);
    }
    profile_table_unlock();
}

struct profile_figures profile_table_figures(void)
{
    profile_table_lock();
    struct profile_figures figures = table ? table->figures : (struct profile_figures){.samples = 0};
    profile_table_unlock();
    return figures;
}
