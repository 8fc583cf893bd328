/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that lie apart (harden): writes before, behind and after them. `other` is the object's
 * reap, where that is not `reap`. */
#include "misuse.h"

#define APART(size, offset, owner)                                                                           \
    {                                                                                                        \
        true, size, offset, owner                                                                            \
    }

/* Of a pointer that the compiler does not know, since it would warn of what is done with it. */
static void write_at(char *volatile pointer, int offset) { pointer[offset] = 0; }

static void free_many(void *in)
{
    for (int i = 0; i < 20000; i++) reapFree(&in, reapMalloc(&in, 100));
    puts("not found");
}

static void written_before(void)
{
    prepare_object();
    write_at(object, -1);
}

static void written_behind(void)
{
    prepare_object();
    write_at(object, 100);
    reapSetName(&reap, "session");
}

static void shrunk_and_written_behind(void)
{
    at = object = reapRealloc(&reap, reapMalloc(&reap, 100), 50);
    write_at(object, 50);
}

static void written_behind_in_child(void)
{
    reapCreate(&other, &reap);
    at = object = reapMalloc(&other, 64);
    reapMalloc(&other, 64);
    write_at(object, 64);
}

static void written_behind_large(void)
{
    at = object = reapMalloc(&reap, 100000);
    write_at(object, 100015);
}

static reap_mark mark;
static void written_behind_mark(void)
{
    volatile size_t nothing = 0; /* of a size that it sees a compiler warns */
    reapMark(&reap, &mark);
    at = object = reapMalloc(&reap, nothing);
    write_at(object, 31);
}

static void freed_and_others_made(void)
{
    prepare_object();
    reapFree(&reap, object);
    for (int i = 0; i < 1000; i++) reapMalloc(&reap, 100);
}

static void cleared_and_written(void)
{
    prepare_cleared();
    write_at(object, 0);
}

static void shared_and_named(void)
{
    other = reap = new_shared_reap();
    at = object = reapMalloc(&reap, 40);
    reapSetName(&reap, "a name of more than forty-seven bytes, which is cut off there");
}

static void freed_and_written(void)
{
    reapSetName(&reap, "a request");
    prepare_object();
    reapFree(&reap, object);
    write_at(object, 50);
}

static void resize(void) { at = reapRealloc(&reap, at, 200); }
static void free_it(void) { reapFree(&reap, at); }
static void clear(void) { reapFreeAll(&reap); }
static void destroy(void)
{
    reapDestroy(&reap);
} /* what was not found before is found when the program exits */
static void measure(void) { (void)!reapUsableSize(at); }
static void rewind_it(void) { reapRewind(&reap, &mark); }
static void go_on(void) { free_many(reap); }

static void destroy_and_write(void)
{
    reapDestroy(&reap);
    write_at(object, 47);
    free_many(new_reap());
}

static const char around[] = "memory around it was written to",
                  after[] = "memory was written to after it was freed";
static const struct misuse cases[] = {
    {"before", ANY, "harden=1", written_before, resize, "reapRealloc", around, APART(100, -1, NULL)},
    {"behind", ANY, "harden=1", written_behind, free_it, "reapFree", around, APART(100, 100, "session")},
    {"behind_cleared", ANY, "harden=1", shrunk_and_written_behind, clear, "reapFreeAll", around,
     APART(50, 50, NULL)},
    {"behind_destroyed", ANY, "harden=1", written_behind_in_child, destroy, "reapDestroy", around,
     APART(64, 64, NULL)},
    {"behind_large", ANY, "harden=1", written_behind_large, measure, "reapUsableSize", around,
     APART(100000, 100015, NULL)},
    {"behind_rewound", ANY, "harden=2,bypass=1", written_behind_mark, rewind_it, "reapRewind", around,
     APART(0, 31, NULL)},
    {"freed_twice", ANY, "harden=1", freed_and_others_made, free_it, "reapFree", "freed twice",
     APART(100, NONE, NULL)},
    {"after_free", ANY, "harden=1", freed_and_written, destroy, "reapFree", after,
     APART(100, 50, "a request")},
    {"after_clear", ANY, "harden=1", cleared_and_written, go_on, "reapFree", after, APART(100, 0, NULL)},
    {"after_destroy", ANY, "harden=1", shared_and_named, destroy_and_write, "reapFree", after,
     APART(40, 47, "a name of more than forty-seven bytes, which is")},
};

MISUSE_MAIN
