/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include <pthread.h>

enum { TELL = 1024 };

bool counting;
struct tally asked, usable;
static _Thread_local long asked_untold, usable_untold;

void tally_add(struct tally *tally, long bytes)
{
    long now = atomic_fetch_add(&tally->now, bytes) + bytes, most = atomic_load(&tally->most);
    while (now > most && !atomic_compare_exchange_weak(&tally->most, &most, now)) {
    }
}

static void tell(void)
{
    tally_add(&asked, asked_untold);
    tally_add(&usable, usable_untold);
    asked_untold = usable_untold = 0;
}

void tally_count(long size, long usable_size)
{
    asked_untold += size;
    usable_untold += usable_size;
    if (asked_untold > TELL || asked_untold < -TELL) tell();
}

struct work {
    void (*run)(int index);
    int index;
};

static void *work_thread(void *work_)
{
    struct work *work = work_;
    work->run(work->index);
    if (counting) tell();
    return NULL;
}

static void work_start(pthread_t *thread, struct work *work)
{
    measure_need(pthread_create(thread, NULL, work_thread, work) == 0, "no thread");
}

void on_threads(void (*run)(int index), int n)
{
    static pthread_t ids[THREADS_MAX];
    static struct work works[THREADS_MAX];
    for (int i = 0; i < n; i++) {
        works[i] = (struct work){run, i};
        work_start(&ids[i], &works[i]);
    }
    for (int i = 0; i < n; i++) pthread_join(ids[i], NULL);
}

void on_new_thread(void (*run)(int index), int index)
{
    pthread_t id;
    struct work work = {run, index};
    work_start(&id, &work);
    pthread_join(id, NULL);
}
