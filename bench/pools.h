/* pools.h: workloads on regions, written once for all of them: pool_NAME WORKLOAD.
 *
 * A program pool_NAME.c says what a pool is and how its calls are made, then includes this. The
 * calls are inlined into the workloads as a user's program would have them: a call into the
 * library each, or a macro where the library's interface is one. (A program each, because linking
 * mimalloc also replaces malloc.)
 *
 * It defines: struct pool; pool_begin() -> root; pool_child(child, parent); pool_get(pool, size);
 * pool_clear(pool); pool_end(pool); and, if it can free one object, POOL_FREES and
 * pool_put(pool, object).
 *
 *     request   create a child, 100 objects of 16 to 128 bytes, destroy
 *     nested    create a child, 60 to 400 objects and three children with 20 each, destroy
 *     three     create a child, 3 objects, destroy
 *     fill      create a child, 20,000 objects of 16 to 128 bytes, destroy
 *     clear     200 KB of such objects, clear, again and again
 *     churn     10,000 live objects, a random one replaced each time
 *
 * An operation is one object.
 */
#include "measure.h"

#include <string.h>

enum {
    SIZES = 1024,
    REQUESTS = 200000, OBJECTS = 100,
    NESTED = 45000, NESTED_CHILDREN = 3, NESTED_EACH = 20,
    THREES = 1500000,
    FILLS = 700, FILL = 20000,
    CLEARS = 8000, CLEAR_BYTES = 200 * 1000,
    LIVE = 10000, REPLACEMENTS = 5000000
};

static size_t sizes[SIZES];
static struct pool root;

static void draw_sizes(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < SIZES; i++) sizes[i] = 16 + measure_random(&state) % 113;
}

/* n objects, from a place among the sizes that moves on. */
static inline void get_objects(struct pool *pool, int n, unsigned *place)
{
    for (int i = 0; i < n; i++) measure_touch(pool_get(pool, sizes[(*place)++ % SIZES]));
}

static uint64_t children_with(int children, int objects)
{
    unsigned place = 0;
    for (int i = 0; i < children; i++) {
        struct pool child;
        pool_child(&child, &root);
        get_objects(&child, objects, &place);
        pool_end(&child);
    }
    return (uint64_t)children * (uint64_t)objects;
}

static uint64_t request(void) { return children_with(REQUESTS, OBJECTS); }
static uint64_t three(void) { return children_with(THREES, 3); }
static uint64_t fill(void) { return children_with(FILLS, FILL); }

static uint64_t nested(void)
{
    unsigned place = 0;
    uint64_t objects = 0;
    for (int i = 0; i < NESTED; i++) {
        struct pool outer, inner[NESTED_CHILDREN];
        int n = 60 + i * 37 % 341;
        pool_child(&outer, &root);
        get_objects(&outer, n, &place);
        for (int k = 0; k < NESTED_CHILDREN; k++) {
            pool_child(&inner[k], &outer);
            get_objects(&inner[k], NESTED_EACH, &place);
        }
        for (int k = NESTED_CHILDREN - 1; k >= 0; k--) pool_end(&inner[k]);
        pool_end(&outer);
        objects += (uint64_t)n + NESTED_CHILDREN * NESTED_EACH;
    }
    return objects;
}

static uint64_t clear(void)
{
    struct pool pool;
    unsigned place = 0;
    uint64_t objects = 0;
    pool_child(&pool, &root);
    for (int i = 0; i < CLEARS; i++) {
        for (size_t bytes = 0; bytes < CLEAR_BYTES; objects++) {
            size_t size = sizes[place++ % SIZES];
            measure_touch(pool_get(&pool, size));
            bytes += size;
        }
        pool_clear(&pool);
    }
    pool_end(&pool);
    return objects;
}

#ifdef POOL_FREES
static uint64_t churn(void)
{
    static void *objects[LIVE];
    struct pool pool;
    uint32_t state = 1;
    pool_child(&pool, &root);
    for (int i = 0; i < LIVE; i++) objects[i] = measure_touch(pool_get(&pool, sizes[i % SIZES]));
    for (int i = 0; i < REPLACEMENTS; i++) {
        void **slot = &objects[measure_random(&state) % LIVE];
        pool_put(&pool, *slot);
        *slot = measure_touch(pool_get(&pool, sizes[i % SIZES]));
    }
    pool_end(&pool);
    return REPLACEMENTS;
}
#endif

static const struct {
    const char *name;
    uint64_t (*run)(void);
} workloads[] = {
    {"request", request}, {"nested", nested}, {"three", three}, {"fill", fill}, {"clear", clear},
#ifdef POOL_FREES
    {"churn", churn},
#endif
};

int main(int argc, char **argv)
{
    draw_sizes();
    pool_begin(&root);
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(argv[1], workloads[i].name) == 0) {
            uint64_t start = measure_now(), operations = workloads[i].run();
            measure_print(measure_now() - start, operations);
            return 0;
        }
    return 77; /* this pool has no such workload */
}
