/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "profile_probe.h"

#ifdef REAP_PROBES
#define SDT_USE_VARIADIC
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define SEMAPHORE(name)                                                                                      \
    extern volatile unsigned short name##_semaphore __attribute__((visibility("hidden")));                   \
    volatile unsigned short name##_semaphore __attribute__((section(".probes"), used));
SEMAPHORE(otel_memory_alloc)
SEMAPHORE(otel_memory_free)
SEMAPHORE(reap_sampled)

/* The weight, in bytes, is the object's part of the sum of all: right on average. */
void profile_probe_alloc(const struct profile_object *object)
{
    if (otel_memory_alloc_semaphore) {
        uint64_t weight = (uint64_t)(profile_table_scale(object) * (double)object->size + 0.5);
        STAP_PROBEV(otel_memory, alloc, object->address, object->size, weight);
    }
    if (reap_sampled_semaphore)
        STAP_PROBEV(reap, sampled, object->address, object->size, object->name ? object->name : "");
}

void profile_probe_free(const void *object)
{
    if (otel_memory_free_semaphore) STAP_PROBEV(otel_memory, free, object);
}
#else
void profile_probe_alloc(const struct profile_object *object) { (void)object; }
void profile_probe_free(const void *object) { (void)object; }
#endif
