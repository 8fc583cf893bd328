/* SPDX-License-Identifier: Apache-2.0 */
#include "hoard/service.h"

#include "base/report.h"

#include <pthread.h>
#include <signal.h>

_Atomic bool service_is_due;

static _Atomic(struct service *) services; /* the list only grows */
static _Atomic bool begun;

static void look(struct service *service)
{
    if (!service->is_wanted()) return;
    atomic_store(&service->is_due, true);
    atomic_store(&service_is_due, true);
}

void service_register(struct service *service)
{
    if (atomic_exchange(&service->is_registered, true)) return;
    struct service *head = atomic_load(&services);
    do service->next = head;
    while (!atomic_compare_exchange_weak(&services, &head, service));
    if (begun) look(service);
}

void service_ask(struct service *service)
{
    if (begun) look(service);
}

void service_begin(void)
{
    atomic_store(&begun, true);
    for (struct service *service = services; service != NULL; service = service->next) look(service);
}

/* Creates the thread on its stack, or on a larger one if the program's thread-local storage does not leave
 * enough of it. */
static int create(pthread_t *thread, struct service *service)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (service->stack != 0) pthread_attr_setstacksize(&attributes, service->stack);
    int error = pthread_create(thread, &attributes, service->run, NULL);
    if (error == EINVAL) {
        pthread_attr_setstacksize(&attributes, 8 * MIB);
        error = pthread_create(thread, &attributes, service->run, NULL);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

int service_start(struct service *service)
{
    pthread_t thread;
    sigset_t all, before;
    atomic_store(&service->is_due, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = create(&thread, service);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) pthread_setname_np(thread, service->name);
    return error;
}

static void start_due(struct service *service)
{
    if (!atomic_exchange(&service->is_due, false)) return;
    int error = service_start(service);
    if (error != 0)
        report_line("REAP_OPTIONS: no thread %s: error %u of pthread_create", service->name, (unsigned)error);
}

void service_fork_child(void)
{
    atomic_store(&service_is_due, false);
    for (struct service *service = services; service != NULL; service = service->next) {
        if (service->in_forked_child != NULL) service->in_forked_child();
        atomic_store(&service->is_due, false);
        look(service);
        if (service->is_due && service->starts_with_child) start_due(service);
    }
}

/* pthread_create allocates, and may come here again: by then nothing is due any more. */
COLD void service_start_due(void)
{
    if (!atomic_exchange(&service_is_due, false)) return;
    int saved = errno;
    for (struct service *service = services; service != NULL; service = service->next) start_due(service);
    errno = saved;
}
