/* threads.c: what several threads have to do with each other. */
#include "fuzz_ops.h"

bool recall(int reap)
{
    (void)reap;
    return true;
}

bool recall_below(int top, unsigned depth)
{
    (void)top, (void)depth;
    return true;
}

void threads_begin(struct program *program) { (void)program; }
void threads_end(void) {}
