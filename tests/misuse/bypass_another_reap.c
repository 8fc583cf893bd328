/* SPDX-License-Identifier: Apache-2.0 */
/* An object of malloc is freed in another reap than its own. */
#include "misuse.h"

int main(void)
{
    use_options("bypass=1");
    void *reap = new_reap(), *other = new_reap(), *object = reapMalloc(&other, 100);
    reapSetName(&other, "request");
    expect("reapFree", object, "an object of another reap, request");
    reapFree(&reap, object);
}
