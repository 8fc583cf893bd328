/* SPDX-License-Identifier: Apache-2.0 */
/* reap_charge.c: the reap that a thread works for, for libreap-profile: malloc knows nothing of it.
 *
 * A charge is a name on a stack of its thread: a copy, so nothing points to the reap, which may end at any
 * time. The stack lies in thread-specific data, since a library's static TLS is counted in eight bytes, and a
 * thread that ends in the midst of its work gives the stack back.
 */
#include "reap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/report.h"
#include "hoard.h"
#include "reap/reap_enter.h"
#include "reap/reap_shared.h"

struct charge {
    struct charge *outer;
    char name[]; /* "": the thread works for no reap */
};

static pthread_key_t key;
static bool has_key;

static void drop_all(void *top)
{
    for (struct charge *charge = top, *outer; charge; charge = outer) {
        outer = charge->outer;
        hoard_free(charge);
    }
}

static void make_key(void) { has_key = pthread_key_create(&key, drop_all) == 0; }

/* Makes room for a name of two parts, and writes it. */
static int push(const char *name, const char *label)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t size = strlen(name), space = *name && *label, more = strlen(label) + 1;
    pthread_once(&once, make_key);
    struct charge *charge = has_key ? hoard_malloc(sizeof *charge + size + space + more) : NULL;
    if (charge) {
        charge->outer = pthread_getspecific(key);
        memcpy(charge->name, name, size);
        if (space) charge->name[size] = ' ';
        memcpy(charge->name + size + space, label, more);
        if (pthread_setspecific(key, charge) == 0) return 0;
        hoard_free(charge);
    }
    errno = ENOMEM;
    return -1;
}

static int charge(void **handle, const char *label, const char *call)
{
    if (!handle || !*handle) return push("", "");
    HELD struct reap *reap = reap_hold_lightly(handle, call);
    if (!reap_is_shared(reap) && reap_is_entered(reap) && !reap_is_entered_here(reap))
        report_misuse(call, reap, "another thread has entered the reap");
    const char *name = reap_name_text(reap);
    return push(*name || *label ? name : "(no name)", label);
}

int reapCharge(void **handle) { return charge(handle, "", "reapCharge"); }

int reapChargeAs(void **handle, const char *label)
{
    REAP_NOT_NULL(label, "reapChargeAs");
    return charge(handle, label, "reapChargeAs");
}

void reapUncharge(void)
{
    struct charge *top = has_key ? pthread_getspecific(key) : NULL;
    if (!top) report_misuse("reapUncharge", NULL, "no reap is charged");
    pthread_setspecific(key, top->outer);
    hoard_free(top);
}

const char *reapCharged(void)
{
    const struct charge *top = has_key ? pthread_getspecific(key) : NULL;
    return top && *top->name ? top->name : NULL;
}
