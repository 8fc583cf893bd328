/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with objects: freed twice, stale, interior, foreign, of another reap. What each call finds alike
 * is in check_reap_misuse. */
#include "misuse.h"

static void freed_last(void) /* its memory goes back to the bump pointer */
{
    prepare_object();
    reapFree(&reap, object);
}

static void freed_by_any(void)
{
    prepare_object();
    reapFreeAny(object);
}

static void freed_with_chunk(void)
{
    void *objects[200];
    for (int i = 0; i < 200; i++) objects[i] = reapMalloc(&reap, 100);
    for (int i = 0; i < 200; i++) reapFree(&reap, objects[i]);
    at = objects[190];
}

static void joined(void) /* it became part of a bigger free block */
{
    prepare_object();
    at = reapMalloc(&reap, 100);
    reapMalloc(&reap, 100);
    reapFree(&reap, object);
    reapFree(&reap, at);
    reapFree(&reap, reapMalloc(&reap, 200));
}

static void freed_by_rewind(void)
{
    reap_mark mark;
    reapMark(&reap, &mark);
    prepare_object();
    reapRewind(&reap, &mark);
}

static void cleared_in_spare(void) /* in a chunk that the clear kept for later */
{
    for (int i = 0; i < 200; i++) prepare_object();
    reapFreeAll(&reap);
}

static void within_large(void) { at = (char *)reapMalloc(&reap, 100000) + 65536; }

static void name(void)
{
    reapSetName(&reap, (char[]){"request"}); /* a constant would not be copied */
    at = (void *)reapName(&reap);
}

static void block_of_malloc(void) { at = malloc(100); }

static void block_beside_objects(void) /* with bypass, objects are blocks, too */
{
    block_of_malloc();
    reapMalloc(&reap, 100);
}

static void nowhere(void) { at = (void *)0xdeadbeefdeadbee0; }

static void of_other(void)
{
    other = new_reap();
    at = reapMalloc(&other, 100);
}

static void of_named_other(void)
{
    of_other();
    reapSetName(&other, "request");
}

static void freed_in_buffer(void)
{
    static char buffer[10000];
    struct reap_options options = {.size = sizeof options, .buffer = buffer, .buffer_size = sizeof buffer};
    reapCreateWith(&reap, NULL, &options);
    prepare_freed();
}

static void call_free(void) { reapFree(&reap, at); }
static void call_free_any(void) { reapFreeAny(at); }
static void call_realloc(void) { at = reapRealloc(&reap, at, 200); }
static void call_shrink(void) { at = reapRealloc(&reap, at, 10); }
static void call_usable_size(void) { (void)!reapUsableSize(at); }

/* Builders. */
static reap_builder builder;

static void built(void)
{
    reapAppendString(&reap, &builder, "text");
    at = builder.data;
}

static void built_and_cleared(void)
{
    built();
    reapFreeAll(&reap);
}

static void built_of_nothing(void)
{
    builder = (reap_builder){.data = (char *)&builder, .length = 80, .room = 80};
    at = &builder;
}

static void extend(void) { reapExtend(&reap, &builder, 1000); }
static void append(void) { reapAppendString(&reap, &builder, "text"); }

static void finish_in_other(void)
{
    other = new_reap();
    reapFinish(&other, &builder);
}

static const struct misuse cases[] = {
    CASE("freed_twice_last", ANY, NULL, freed_last, call_free, "reapFree", "freed twice"),
    CASE("freed_twice_any", ANY, NULL, freed_by_any, call_free_any, "reapFreeAny", "freed twice"),
    CASE("freed_twice_chunk", ANY, NULL, freed_with_chunk, call_free, "reapFree", "freed twice"),
    CASE("freed_twice_joined", ANY, NULL, joined, call_free, "reapFree", "freed twice"),
    CASE("freed_twice_buffer", ORDINARY, NULL, freed_in_buffer, call_free, "reapFree", "freed twice"),
    CASE("freed_twice_rewind", ANY, NULL, freed_by_rewind, call_free, "reapFree", "freed twice"),
    CASE("freed_then_resized", ANY, NULL, freed_last, call_realloc, "reapRealloc", "not a live object"),
    CASE("cleared_spare", ANY, NULL, cleared_in_spare, call_free, "reapFree", "not a live object"),
    CASE("interior_any", ANY, NULL, prepare_interior, call_free_any, "reapFreeAny",
         "not the start of an object"),
    CASE("name", ANY, NULL, name, call_free, "reapFree", "not the start of an object"),
    CASE("foreign_wild", ANY, NULL, nowhere, call_free, "reapFree", "not a reap's object"),
    CASE("another_named", ANY, NULL, of_named_other, call_realloc, "reapRealloc",
         "an object of another reap, request"),

    CASE("builder_cleared", ANY, NULL, built_and_cleared, extend, "reapExtend", "not a live object"),
    CASE("builder_not_zeroed", ANY, NULL, built_of_nothing, append, "reapAppendString", "not a builder"),
    CASE("builder_of_another", ANY, NULL, built, finish_in_other, "reapFinish", "an object of another reap"),

    CASE("bypass_freed_twice", ANY, "bypass=1", freed_last, call_free, "reapFree", "freed twice"),
    CASE("bypass_cleared", ANY, "bypass=1", prepare_cleared, call_realloc, "reapRealloc",
         "not a live object"),
    CASE("bypass_destroyed", ANY, "bypass=1", prepare_destroyed, call_usable_size, "reapUsableSize",
         "not a live object"),
    CASE("bypass_interior", ANY, "bypass=1", prepare_interior, call_free, "reapFree",
         "not the start of an object"),
    CASE("bypass_interior_large", ANY, "bypass=1", within_large, call_shrink, "reapRealloc",
         "not the start of an object"),
    CASE("bypass_interior_any", ANY, "bypass=1", prepare_interior, call_free_any, "reapFreeAny",
         "not the start of an object"),
    CASE("bypass_foreign", ANY, "bypass=1", block_beside_objects, call_free, "reapFree",
         "not a reap's object"),
    CASE("bypass_another", ANY, "bypass=1", of_named_other, call_free, "reapFree",
         "an object of another reap, request"),
};

MISUSE_MAIN
