/* A freed object is written to; this is found as the program exits, at the latest. */
#include "misuse.h"

int main(void)
{
    use_options("harden=1");
    void *reap = new_reap();
    char *object = reapMalloc(&reap, 100);
    reapFree(&reap, object);
    memset((char *)opaque(object) + 50, 0, 1);
    reapDestroy(&reap);
    expect("reapFree", object, "memory was written to after it was freed");
}
