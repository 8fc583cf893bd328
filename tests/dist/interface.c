/* SPDX-License-Identifier: Apache-2.0 */
/* interface.c: what programs outside rely on. All calls, declared once more: a header that says something
 * else does not compile with it; the sizes of what callers allocate, which grow only with a new soname; and
 * the thesis's figures, as a program has them: public header, reapMalloc inline, the library as it is
 * installed. */
#include "hoard.h"
#include "reap.h"
#include "reap_ask.h"
#include "support/expect.h"

/* --- the thesis (6.3) ------------------------------------------------------------------------ */

void reapCreate(void **reap, void **parent);
void reapFreeAll(void **reap);
void reapDestroy(void **reap);
reap_t *reapNew(reap_t *parent);
void *reapMalloc(void **reap, size_t size);
void reapFree(void **reap, void *object);

/* --- and what has come to it ----------------------------------------------------------------- */

void *reapCalloc(void **reap, size_t n, size_t size);
void *reapRealloc(void **reap, void *object, size_t size);
void *reapAlignedAlloc(void **reap, size_t alignment, size_t size);
char *reapStrdup(void **reap, const char *s);
char *reapStrndup(void **reap, const char *s, size_t n);
void *reapMemdup(void **reap, const void *bytes, size_t n);
char *reapPrintf(void **reap, const char *format, ...);
char *reapVprintf(void **reap, const char *format, va_list args);
size_t reapUsableSize(const void *object);
int reapOf(const void *pointer, void **reap);
void *reapParent(void **reap);
size_t reapTrim(void **reap, size_t keep);
int reapFreeAny(void *object);
int reapAppend(void **reap, reap_builder *builder, const void *bytes, size_t n);
int reapAppendString(void **reap, reap_builder *builder, const char *s);
int reapAppendf(void **reap, reap_builder *builder, const char *format, ...);
int reapVappendf(void **reap, reap_builder *builder, const char *format, va_list args);
void *reapExtend(void **reap, reap_builder *builder, size_t n);
char *reapFinish(void **reap, reap_builder *builder);
int reapSetName(void **reap, const char *name);
const char *reapName(void **reap);
int reapSetLimit(void **reap, size_t bytes);
void reapOnLimit(void **reap, void (*fn)(void **reap, size_t size, void *arg), void *arg);
int reapStats(void **reap, struct reap_stats *stats);
void reapReport(void **reap, FILE *out);
int reapSurvey(void **reap, int (*fn)(const struct reap_view *view, void *arg), void *arg);
void reapSetClock(uint32_t seconds);
int reapWalk(void **reap, int (*fn)(void *object, size_t size, void *arg), void *arg);
int reapOnDestroy(void **reap, void (*fn)(void *arg), void *arg);
int reapCancelOnDestroy(void **reap, void (*fn)(void *arg), void *arg);
void reapMark(void **reap, reap_mark *mark);
void reapRewind(void **reap, const reap_mark *mark);
void reapUnmark(void **reap, const reap_mark *mark);
void *reapMove(void *object, void **from, void **to);
int reapAdopt(void **reap, void **new_parent);
void reapEnter(void **reap);
void reapLeave(void);
void reapEnterQuietly(void **reap);
void *reapEntered(void);
int reapCreateWith(void **reap, void **parent, const struct reap_options *options);
const char *reapVersion(void);

int reapListen(const char *address);
int reapAnswer(const char *name, void (*fn)(FILE *out, const char *args, void *arg), void *arg);
void reapBackendJson(FILE *out);

void *hoard_malloc(size_t size);
void hoard_free(void *block);
void *hoard_calloc(size_t n, size_t size);
void *hoard_realloc(void *block, size_t size);
void *hoard_aligned_alloc(size_t alignment, size_t size);
int hoard_posix_memalign(void **block, size_t alignment, size_t size);
size_t hoard_usable_size(const void *block);
int hoard_trim(size_t keep);
void hoard_purge_when_idle(void);
void hoard_call_later(void (*fn)(void));
int hoard_stats(struct hoard_stats *stats);
const char *hoard_path_reason(void);
size_t hoard_returned_bytes(void);
int hoard_walk_classes(int (*fn)(const struct hoard_class *sizes, void *arg), void *arg);
void hoard_report(FILE *out);

/* On machines with pointers of 8 bytes, and there are no others. */
_Static_assert(sizeof(struct reap_options) == 88, "grows only with a new soname");
_Static_assert(sizeof(struct reap_stats) == 56, "grows only with a new soname");
_Static_assert(sizeof(reap_builder) == 24, "grows only with a new soname");
_Static_assert(sizeof(reap_mark) == 48, "grows only with a new soname");
_Static_assert(sizeof(struct reap_front) == 32, "is compiled into programs");
_Static_assert(sizeof(struct hoard_stats) == 96, "grows only with a new soname");
_Static_assert(sizeof(struct hoard_class) == 48, "grows only with a new soname");

/* --- figure 6.1 ------------------------------------------------------------------------------ */

/* Four objects bumped out of a chunk; the third is freed onto the heap, where it is found again. */
static void figure_6_1(void)
{
    void *r;
    reapCreate(&r, NULL);
    char *x1 = reapMalloc(&r, 8);
    char *x2 = reapMalloc(&r, 8);
    char *x3 = reapMalloc(&r, 16);
    char *x4 = reapMalloc(&r, 8);
    EXPECT(x2 == x1 + 16 && x3 == x2 + 16 && x4 == x3 + 16);
    reapFree(&r, x3);
    EXPECT(reapMalloc(&r, 16) == x3);
    EXPECT(reapMalloc(&r, 8) == x4 + 16); /* the heap is exhausted: a region again */
    reapDestroy(&r);
    EXPECT(r == NULL);
}

/* --- figure 6.2(a) --------------------------------------------------------------------------- */

/* Like a region: everything at once, and regions in regions. */
static void regions(void)
{
    void *outer, *inner;
    struct reap_stats stats;
    reapCreate(&outer, NULL);
    reapCreate(&inner, &outer);
    for (int i = 1; i < 10000; i++)
        *(int *)reapMalloc(i % 2 ? &outer : &inner, (size_t)i % 100 + sizeof i) = i;
    EXPECT(reapStats(&inner, &stats) == 0 && stats.live_objects == 4999);
    reapFreeAll(&inner);
    EXPECT(reapStats(&inner, &stats) == 0 && stats.live_objects == 0 && reapMalloc(&inner, 8) != NULL);
    EXPECT(reapStats(&outer, &stats) == 0 && stats.live_objects == 5000 && stats.children == 1);
    reapDestroy(&outer); /* and with it inner */
}

/* Like a heap: one object after the other, in any order, in memory that does not grow. */
static void heaps(void)
{
    void *heap, *slot[100] = {NULL};
    struct reap_stats begun, stats;
    reapCreate(&heap, NULL);
    for (unsigned i = 0, chance = 1; i < 100000; i++) {
        chance = chance * 1103515245 + 12345;
        void **one = &slot[chance / 65536 % 100];
        reapFree(&heap, *one);
        *one = reapMalloc(&heap, 64);
        if (i == 1000) EXPECT(reapStats(&heap, &begun) == 0);
    }
    EXPECT(reapStats(&heap, &stats) == 0 && stats.live_objects == 100 &&
           stats.chunk_bytes <= 2 * begun.chunk_bytes);
    for (int i = 0; i < 100; i++) reapFree(&heap, slot[i]);
    EXPECT(reapStats(&heap, &stats) == 0 && stats.live_objects == 0);
    reapDestroy(&heap);
}

int main(void)
{
    figure_6_1();
    regions();
    heaps();
    return expect_status();
}
