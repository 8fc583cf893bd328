/* SPDX-License-Identifier: Apache-2.0 */
/* apr_random.c: random sequences of calls on pools, cleanups, brigades, nodes and user data.
 *
 *     apr_random FIRST COUNT STEPS     prints what each of COUNT seeds shows
 *
 * It knows APR alone, as apr_semantics does, and prints nothing that may vary: the order of cleanups,
 * contents and results. apr_random.sh compares what it prints on stock pools and on reaps. It does nothing
 * that stock pools forbid: while a pool ends, its cleanups use this pool, and others that stay.
 */
#include <apr_allocator.h>
#include <apr_buckets.h>
#include <apr_general.h>
#include <apr_network_io.h>
#include <apr_pools.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOLS = 24, OBJECTS = 12, BRIGADES = 6, NOTES = 64, NODES = 8, DEEP = 3, TEXT = 600 };

enum state { FREE, LIVE, CLEARED /* it is being cleared */, DYING };

struct object {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
};

struct pool {
    apr_pool_t *pool;
    enum state state;
    int parent;      /* -1: none of these */
    unsigned busy;   /* operations under way on it or below it */
    unsigned number; /* of all pools so far */
    struct object objects[OBJECTS];
    apr_bucket_brigade *brigades[BRIGADES];
    apr_table_t *table;
};

/* The data of a cleanup. */
struct note {
    unsigned number;
    int pool;
    unsigned pools_number;
    unsigned kind;
    bool is_early; /* it runs before the pool's children go */
};

static struct pool pools[POOLS];
static struct note *notes[NOTES]; /* the latest ones */
static unsigned made_notes, made_pools, depth;
static uint64_t state;
static apr_pool_t *base;
static apr_bucket_alloc_t *buckets;
static apr_allocator_t *allocator;
static apr_memnode_t *nodes[NODES];

static unsigned any(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state * UINT64_C(0x2545F4914F6CDD1D)) >> 33) % n;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void check(bool holds, const char *what)
{
    if (holds) return;
    say("WRONG: %s", what);
    fflush(stdout);
    abort();
}

/* --- which pools there are ------------------------------------------------------------------- */

/* A pool that stays for now; -1: none was found. */
static int any_live(void)
{
    for (int tries = 0; tries < 10; tries++) {
        int i = (int)any(POOLS);
        if (pools[i].state == LIVE) return i;
    }
    return -1;
}

static bool is_below(int i, int top)
{
    while (i >= 0 && i != top) i = pools[i].parent;
    return i == top;
}

static void hold_line(int i, unsigned more)
{
    for (; i >= 0; i = pools[i].parent) pools[i].busy += more;
}

static void mark_below(int top)
{
    for (int i = 0; i < POOLS; i++)
        if (i != top && pools[i].state != FREE && is_below(i, top)) pools[i].state = DYING;
}

static void forget_dying_below(int top)
{
    for (int i = 0; i < POOLS; i++)
        if (i != top && pools[i].state == DYING && is_below(i, top)) pools[i].state = FREE;
    for (int i = 0; i < POOLS; i++)
        if (pools[i].state == FREE) pools[i].parent = -1;
}

static void forget_contents(struct pool *pool)
{
    memset(pool->objects, 0, sizeof pool->objects);
    memset(pool->brigades, 0, sizeof pool->brigades);
    pool->table = NULL;
}

static void make_pool(int parent)
{
    int i = 0;
    while (i < POOLS && pools[i].state != FREE) i++;
    if (i == POOLS) return;
    struct pool *pool = &pools[i];
    unsigned kind = parent < 0 ? 0 : any(8);
    forget_contents(pool);
    pool->parent = kind == 1 ? -1 : parent;
    if (kind == 1) {
        check(apr_pool_create_unmanaged(&pool->pool) == APR_SUCCESS, "unmanaged");
    } else if (kind == 2) {
        apr_allocator_t *own;
        check(apr_allocator_create(&own) == APR_SUCCESS, "an allocator");
        if (any(2)) apr_allocator_max_free_set(own, any(100000));
        check(apr_pool_create_ex(&pool->pool, pools[parent].pool, NULL, own) == APR_SUCCESS, "its pool");
        apr_allocator_owner_set(own, pool->pool);
    } else {
        check(apr_pool_create(&pool->pool, parent < 0 ? base : pools[parent].pool) == APR_SUCCESS, "a pool");
    }
    pool->state = LIVE;
    pool->busy = 0;
    pool->number = ++made_pools;
    if (any(4) == 0) apr_pool_tag(pool->pool, any(2) ? "random" : "another name");
    say("pool %u below %d", pool->number, parent < 0 ? -1 : (int)pools[parent].number);
}

static void end_pool(int i, bool is_clear)
{
    struct pool *pool = &pools[i];
    enum state before = pool->state;
    say("%s %u", is_clear ? "clear" : "destroy", pool->number);
    hold_line(i, 1);
    mark_below(i);
    pool->state = is_clear ? CLEARED : DYING;
    depth++;
    if (is_clear)
        apr_pool_clear(pool->pool);
    else
        apr_pool_destroy(pool->pool);
    depth--;
    forget_dying_below(i);
    hold_line(i, -1u);
    forget_contents(pool);
    pool->state = is_clear ? before : FREE;
    if (!is_clear) pool->parent = -1;
    say("done %u", pool->number);
}

/* --- memory ---------------------------------------------------------------------------------- */

static void look_at(const struct object *object)
{
    for (size_t i = 0; i < object->size; i++) check(object->bytes[i] == object->fill, "an object's bytes");
}

static size_t any_size(void)
{
    switch (any(12)) {
    case 0: return any(20000);
    case 1: return any(3000);
    case 2: return any(50) ? any(9000) : any(400000);
    default: return any(200);
    }
}

static void take_memory(struct pool *pool)
{
    struct object *object = &pool->objects[any(OBJECTS)];
    look_at(object);
    object->size = any_size();
    object->fill = (unsigned char)any(256);
    if (any(3) == 0) {
        object->bytes = apr_pcalloc(pool->pool, object->size);
        for (size_t i = 0; i < object->size; i++) check(object->bytes[i] == 0, "zero bytes");
    } else {
        object->bytes = apr_palloc(pool->pool, object->size);
    }
    check(object->bytes != NULL, "memory");
    memset(object->bytes, object->fill, object->size);
}

static unsigned sum_of(const char *text)
{
    unsigned sum = 0;
    for (; *text; text++) sum = sum * 31 + (unsigned char)*text;
    return sum;
}

static void write_text(struct pool *pool)
{
    struct in_addr address = {any(1u << 30)};
    char long_text[TEXT];
    unsigned length = any(TEXT - 1), number = any(1000);
    const char *text = NULL;
    apr_off_t bytes = any(1u << 30);
    memset(long_text, 'a' + (int)any(26), length);
    long_text[length] = '\0';
    switch (any(9)) {
    case 0: text = apr_psprintf(pool->pool, "%s|%u|%s", long_text, number, long_text); break;
    case 1: text = apr_psprintf(pool->pool, "%*d", any(30) ? (int)any(3000) : (int)any(200000), 7); break;
    case 2:
        text = apr_psprintf(pool->pool, "%pA %pF %.*s", &address, &bytes, (int)any(TEXT), long_text);
        break;
    case 3: text = apr_pstrdup(pool->pool, long_text); break;
    case 4: text = apr_pstrcat(pool->pool, long_text, "+", long_text, "+", NULL); break;
    case 5: text = apr_pstrndup(pool->pool, long_text, any(TEXT)); break;
    case 6: text = apr_psprintf(pool->pool, "%s", ""); break;
    case 7: /* of a text of the same pool */
        text = apr_pstrdup(pool->pool, long_text);
        for (int i = 0; i < 4; i++) text = apr_psprintf(pool->pool, "%s<%s>", text, i % 2 ? text : "-");
        break;
    default: text = apr_psprintf(pool->pool, "%d %5.2f %x", (int)number, number / 7.0, number); break;
    }
    say("text %u: %lu %u", pool->number, (unsigned long)strlen(text), sum_of(text));
}

static int sum_pair(void *to, const char *key, const char *value)
{
    *(unsigned *)to = *(unsigned *)to * 7 + sum_of(key) + sum_of(value);
    return 1;
}

static void use_table(struct pool *pool)
{
    unsigned sum = 0;
    if (!pool->table) pool->table = apr_table_make(pool->pool, (int)any(5));
    for (unsigned i = any(10); i > 0; i--)
        apr_table_set(pool->table, apr_psprintf(pool->pool, "key%u", any(20)), "value");
    if (any(3) == 0) apr_table_compress(pool->table, APR_OVERLAP_TABLES_MERGE);
    apr_table_do(sum_pair, &sum, pool->table, NULL);
    say("table %u: %u", pool->number, sum);
}

static void use_node(void)
{
    unsigned i = any(NODES);
    if (nodes[i]) {
        check(*nodes[i]->first_avail == (char)('a' + i) && nodes[i]->endp[-1] == (char)('a' + i), "a node");
        nodes[i]->next = NULL;
        apr_allocator_free(allocator, nodes[i]);
        nodes[i] = NULL;
        return;
    }
    nodes[i] = apr_allocator_alloc(allocator, any(3) ? any(8000) : any(100000));
    check(nodes[i] && !nodes[i]->next, "a node");
    memset(nodes[i]->first_avail, 'a' + (int)i, (size_t)(nodes[i]->endp - nodes[i]->first_avail));
    if (any(20) == 0) apr_allocator_max_free_set(allocator, any(60000));
}

/* --- brigades -------------------------------------------------------------------------------- */

static void look_at_brigade(apr_bucket_brigade *brigade)
{
    char text[2000];
    apr_size_t size = sizeof text;
    apr_off_t length;
    apr_brigade_length(brigade, 1, &length);
    apr_status_t status = apr_brigade_flatten(brigade, text, &size);
    unsigned sum = 0;
    for (apr_size_t i = 0; i < size; i++) sum = sum * 31 + (unsigned char)text[i];
    say("brigade: %d, %ld bytes, %u", status, (long)length, sum);
}

static void fill_brigade(struct pool *pool, apr_bucket_brigade *brigade)
{
    static const char text[] = "what transient buckets show stays for ever";
    char *piece;
    switch (any(5)) {
    case 0: APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_transient_create(text, any(40), buckets)); break;
    case 1: APR_BRIGADE_INSERT_HEAD(brigade, apr_bucket_heap_create(text, 1 + any(40), NULL, buckets)); break;
    case 2:
        piece = apr_pstrdup(pool->pool, text);
        APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_pool_create(piece, 40, pool->pool, buckets));
        break;
    case 3: apr_brigade_printf(brigade, NULL, NULL, "%u %s", any(1000), text); break;
    default: APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_flush_create(buckets)); break;
    }
}

static void split_brigade(apr_bucket_brigade **from, apr_bucket_brigade **to)
{
    apr_bucket *bucket = NULL;
    if (apr_brigade_partition(*from, any(60), &bucket) != APR_SUCCESS || !bucket) return;
    if (bucket == APR_BRIGADE_SENTINEL(*from)) return;
    *to = *to ? apr_brigade_split_ex(*from, bucket, *to) : apr_brigade_split(*from, bucket);
}

static void use_brigade(struct pool *pool)
{
    apr_bucket_brigade **place = &pool->brigades[any(BRIGADES)], **other = &pool->brigades[any(BRIGADES)];
    if (!*place) *place = apr_brigade_create(pool->pool, buckets);
    check((*place)->p == pool->pool, "a brigade's pool");
    switch (any(8)) {
    case 0:
    case 1:
    case 2: fill_brigade(pool, *place); break;
    case 3:
        if (other != place && *other != *place) split_brigade(place, other);
        break;
    case 4:
        if (*other && *other != *place) APR_BRIGADE_CONCAT(*place, *other);
        break;
    case 5: apr_brigade_cleanup(*place); break;
    default:
        look_at_brigade(*place);
        say("destroyed: %d", apr_brigade_destroy(*place));
        check(APR_BRIGADE_EMPTY(*place), "a destroyed brigade is empty");
        if (any(8) == 0) apr_brigade_destroy(*place);
        *place = NULL;
        return;
    }
    look_at_brigade(*place);
}

/* --- cleanups -------------------------------------------------------------------------------- */

static apr_status_t run(void *data);
static apr_status_t run_other(void *data);

static void add_note(int i)
{
    struct note *note = malloc(sizeof *note), *old = NULL;
    if (any(8) == 0) old = notes[any(NOTES)];
    *note = (struct note){++made_notes, i, pools[i].number, any(16), false};
    if (old && old->pool == i && old->pools_number == pools[i].number) note = old; /* registered twice */
    notes[made_notes % NOTES] = note;
    say("note %u on %u", note->number, pools[i].number);
    if (any(5) == 0 && pools[i].state == LIVE && !pools[i].busy) {
        note->is_early = true;
        apr_pool_pre_cleanup_register(pools[i].pool, note, run);
    } else {
        apr_pool_cleanup_register(pools[i].pool, note, any(2) ? run : run_other, apr_pool_cleanup_null);
    }
}

static void drop_note(int i)
{
    const struct note *note = notes[any(NOTES)];
    if (!note || note->pool != i || note->pools_number != pools[i].number) return;
    say("drop %u", note->number);
    apr_pool_cleanup_kill(pools[i].pool, note, any(2) ? run : run_other);
}

static void run_note(int i)
{
    struct note *note = notes[any(NOTES)];
    if (!note || note->pool != i || note->pools_number != pools[i].number) return;
    say("run: %d", apr_pool_cleanup_run(pools[i].pool, note, run));
}

static void use_user_data(int i)
{
    static const char *const keys[] = {"one", "two", "three", "four"};
    const char *key = keys[any(4)];
    void *data;
    if (any(2)) {
        char *copy = apr_pstrdup(pools[i].pool, key);
        apr_pool_userdata_setn(keys[any(4)], copy, NULL, pools[i].pool);
    } else if (any(2)) {
        apr_pool_userdata_set(keys[any(4)], key, NULL, pools[i].pool);
    }
    apr_status_t status = apr_pool_userdata_get(&data, key, pools[i].pool);
    say("data: %d %s", status, data ? (char *)data : "none");
}

/* What a pool allows whose end is under way, too. */
static void use_contents(int i)
{
    switch (any(5)) {
    case 0: take_memory(&pools[i]); break;
    case 1: write_text(&pools[i]); break;
    case 2: add_note(i); break;
    case 3: drop_note(i); break;
    default: use_user_data(i); break;
    }
}

/* A brigade that comes and goes while its pool ends. */
static void use_brigade_briefly(int i)
{
    apr_bucket_brigade *brigade = apr_brigade_create(pools[i].pool, buckets);
    fill_brigade(&pools[i], brigade);
    look_at_brigade(brigade);
    if (any(2)) apr_brigade_destroy(brigade);
}

static void act(const struct note *note)
{
    int i = note->pool, other = any_live();
    bool stays = pools[i].state == CLEARED && !note->is_early;
    switch (note->kind) {
    case 0:
    case 1: use_contents(i); break;
    case 2: use_brigade_briefly(i); break;
    case 3:
        if (stays) make_pool(i);
        break;
    case 4:
        if (other >= 0) use_contents(other);
        break;
    case 5:
        if (other >= 0 && !pools[other].busy && depth <= DEEP) end_pool(other, true);
        break;
    case 6:
        if (other >= 0 && !pools[other].busy && depth <= DEEP) end_pool(other, false);
        break;
    case 7:
        if (stays && depth <= DEEP) end_pool(i, true);
        break;
    case 8:
        if (other >= 0) use_brigade(&pools[other]);
        break;
    default: break;
    }
}

static apr_status_t run(void *data)
{
    const struct note *note = data;
    say("runs %u of %u", note->number, note->pools_number);
    /* One that the program itself runs does nothing else. */
    if (depth > 0 && depth <= DEEP + 1) act(note);
    return (apr_status_t)(note->number % 3);
}

static apr_status_t run_other(void *data)
{
    say("other:");
    return run(data);
}

/* --- one seed -------------------------------------------------------------------------------- */

static void step(void)
{
    int i = any_live();
    unsigned what = any(40);
    if (i < 0 || what < 3)
        make_pool(what == 0 ? -1 : i);
    else if (what < 5)
        end_pool(i, true);
    else if (what == 5)
        end_pool(i, false);
    else if (what < 16)
        use_brigade(&pools[i]);
    else if (what < 19)
        use_node();
    else if (what < 20)
        run_note(i);
    else if (what < 22)
        use_table(&pools[i]);
    else
        use_contents(i);
}

static void look_at_all(void)
{
    for (int i = 0; i < POOLS; i++)
        for (int j = 0; j < OBJECTS && pools[i].state == LIVE; j++) look_at(&pools[i].objects[j]);
    for (int i = 0; i < POOLS; i++) {
        if (pools[i].state != LIVE) continue;
        apr_pool_t *parent = apr_pool_parent_get(pools[i].pool);
        if (pools[i].parent >= 0) check(parent == pools[pools[i].parent].pool, "a pool's parent");
    }
}

static void one_seed(unsigned long seed, unsigned long steps)
{
    say("seed %lu", seed);
    state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    check(apr_pool_create(&base, NULL) == APR_SUCCESS, "a pool");
    check(apr_allocator_create(&allocator) == APR_SUCCESS, "an allocator");
    buckets = apr_bucket_alloc_create(base);
    made_notes = made_pools = 0;
    for (unsigned long i = 0; i < steps; i++) {
        step();
        if (i % 50 == 0) look_at_all();
    }
    for (int i = 0; i < POOLS; i++)
        if (pools[i].state == LIVE) end_pool(i, false);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i]) apr_allocator_free(allocator, nodes[i]);
        nodes[i] = NULL;
    }
    memset(notes, 0, sizeof notes);
    apr_allocator_destroy(allocator);
    apr_pool_destroy(base);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fputs("usage: apr_random FIRST COUNT STEPS\n", stderr), 2;
    unsigned long first = strtoul(argv[1], NULL, 10), count = strtoul(argv[2], NULL, 10);
    check(apr_initialize() == APR_SUCCESS, "initialize");
    for (unsigned long i = 0; i < count; i++) one_seed(first + i, strtoul(argv[3], NULL, 10));
    apr_terminate();
    return 0;
}
