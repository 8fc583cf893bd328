/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c: reaps begin, change their parent, and end. */
#include "fuzz_ops.h"

#include <sys/mman.h>

/* --- creating -------------------------------------------------------------------------------- */

void begin_node(struct node *node)
{
    memset(node, 0, sizeof *node);
    node->quiet = MARKS;
    node->parent = NONE;
}

/* The node a record names, if no reap is there; and its parent, or NONE. */
static struct node *new_node(const struct record *rec, struct node **parent)
{
    struct node *node = &me->nodes[rec->reap % me->program->reaps];
    struct node *above = &me->nodes[rec->extra % me->program->reaps];
    if (node->handle) return NULL;
    *parent = rec->slot % 4 && above->handle ? above : NULL;
    begin_node(node);
    return node;
}

static void begun(struct node *node, struct node *parent)
{
    node->order = ++me->order;
    node->parent = parent ? index_of(parent) : NONE;
    node->parent_handle = parent ? parent->handle : NULL;
    node->born = parent ? parent->depth : 0;
    CHECK(reapParent(handle_of(node)) == node->parent_handle, "reapParent of a new reap");
}

void do_create(const struct record *rec)
{
    struct node *parent, *node = new_node(rec, &parent);
    if (!node) return;
    if (parent)
        SAY("reapCreate(&r[%d], &r[%d]);", index_of(node), index_of(parent));
    else
        SAY("reapCreate(&r[%d], NULL);", index_of(node));
    reapCreate(&node->handle, parent ? handle_of(parent) : NULL);
    CHECK(node->handle, "reapCreate: no reap");
    begun(node, parent);
}

/* By type. */
void do_new(const struct record *rec)
{
    struct node *parent, *node = new_node(rec, &parent);
    if (!node) return;
    SAY("r[%d] = reapNew(r[%d]); /* -1: NULL */", index_of(node), parent ? index_of(parent) : NONE);
    reap_t *reap = reapNew(parent ? parent->handle : NULL);
    CHECK(reap, "reapNew: no reap");
    CHECK(reap->self == reap, "reapNew: self is not the reap");
    node->handle = reap;
    begun(node, parent);
}

/* --- sources --------------------------------------------------------------------------------- */

enum { FROM_MALLOC, FROM_HOARD, FROM_MMAP, SOURCES };

static void *take(size_t size, void *arg)
{
    struct source *source = arg;
    void *chunk;
    CHECK(!reapEntered(), "a source is called in a reap that is entered");
    CHECK(size > 0 && size % 4096 == 0, "a source is asked for %zu bytes", size);
    if (source->refuses && ++source->turn % source->refuses == 0) return NULL;
    switch (source->kind) {
    case FROM_MMAP:
        chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) return NULL;
        break;
    case FROM_HOARD: chunk = hoard_aligned_alloc(4096, size); break;
    default: chunk = aligned_alloc(4096, size);
    }
    if (chunk && source->kind != FROM_MMAP) memset(chunk, 0xa5, size);
    source->chunks += chunk != NULL;
    return chunk;
}

static void give(void *chunk, size_t size, void *arg)
{
    struct source *source = arg;
    CHECK(!reapEntered(), "a source is called in a reap that is entered");
    CHECK(--source->chunks >= 0, "a source gets back more than it gave");
    memset(chunk, 0xee, size < 65536 ? size : 65536);
    if (source->kind == FROM_MMAP)
        munmap(chunk, size);
    else if (source->kind == FROM_HOARD)
        hoard_free(chunk);
    else
        free(chunk);
}

/* --- with options ---------------------------------------------------------------------------- */

enum { BUFFERS = 6, BUFFER = 96 * 1024 };
static char buffers[THREADS][BUFFERS][BUFFER] __attribute__((aligned(4096)));

static char *free_buffer(const struct record *rec)
{
    char *buffer = buffers[me->number][rec->size % BUFFERS];
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].buffer == buffer) return NULL; /* also of one that is gone, until the call returns */
    return buffer;
}

static size_t chunk_size(unsigned value)
{
    return value % 8 == 0 ? 0 : value % 8 == 1 ? value * 1000 : (size_t)4096 << value % 6;
}

static void choose(const struct record *rec, struct node *node, struct reap_options *options, char *name)
{
    unsigned chance = rec->slot / 4u;
    options->size = sizeof *options;
    if (chance & 1) options->flags = REAP_SHARED;
    if (chance & 2) {
        node->source = (struct source){.kind = rec->size % SOURCES, .refuses = rec->size >> 8 & 1 ? 7 : 0};
        options->source = (struct reap_source){take, give, &node->source};
    }
    if ((chance & 12) == 12 && (node->buffer = free_buffer(rec))) {
        options->buffer = (char *)node->buffer + (rec->size >> 9 & 1 ? rec->size % 1000 : 0);
        options->buffer_size = 4096 + rec->size % (BUFFER - 8192);
    }
    if (chance & 16) options->first_chunk = chunk_size(rec->size);
    if (chance & 32) options->max_chunk = chunk_size(rec->size / 8u);
    if ((chance & 448) == 448) options->limit = 1 + rec->size * 16u;
    if ((chance & 0x600) == 0x600) {
        node->named = true;
        node->name_size = rec->size % 4096;
        node->name_seed = rec->extra;
        name_of(node, name);
        options->name = name;
    }
    node->shared = options->flags & REAP_SHARED;
    node->limit = options->limit;
    node->user_memory = options->buffer || options->source.take;
    node->bounded = (options->buffer && !options->source.take) || node->source.refuses;
}

static void say_with(const struct node *node, const struct node *parent, const struct reap_options *o)
{
    if (!fuzz_verbose) return;
    static const char *const kinds[] = {"aligned_alloc", "hoard_aligned_alloc", "mmap"};
    char above[20] = "NULL";
    if (parent) snprintf(above, sizeof above, "&r[%d]", index_of(parent));
    say("reapCreateWith(&r[%d], %s, &(struct reap_options){.size = sizeof(struct reap_options), .flags = %u, "
        ".first_chunk = %zu, .max_chunk = %zu, .limit = %zu, .buffer = %s%zu bytes, .name = text(%d), source "
        "%s%s});",
        index_of(node), above, o->flags, o->first_chunk, o->max_chunk, o->limit,
        o->buffer ? "a buffer of " : "NULL, ", o->buffer_size, node->named ? node->name_size : -1,
        o->source.take ? kinds[node->source.kind] : "none",
        node->source.refuses ? ", which refuses one in 7" : "");
}

void do_create_with(const struct record *rec)
{
    char name[4200];
    struct reap_options options = {0};
    struct node *parent, *node = new_node(rec, &parent);
    if (!node) return;
    choose(rec, node, &options, name);
    say_with(node, parent, &options);
    node->handle = &node->handle;
    errno = 0;
    int result = reapCreateWith(&node->handle, parent ? handle_of(parent) : NULL, &options);
    if (result == 0) {
        CHECK(node->handle, "reapCreateWith gives 0 and no reap");
        begun(node, parent);
        return;
    }
    CHECK(result == -1 && !node->handle, "reapCreateWith gives %d", result);
    CHECK(errno == ENOMEM, "reapCreateWith: errno %d", errno);
    CHECK(node->bounded, "reapCreateWith: no memory");
    CHECK(node->source.chunks == 0, "reapCreateWith has kept chunks of a source");
}

void do_create_wrong(const struct record *rec)
{
    struct node *parent, *node = new_node(rec, &parent);
    if (!node) return;
    struct reap_options options = {.size = sizeof options};
    switch (rec->size % 8) {
    case 0: options.size -= 8; break;
    case 1: options.flags = ~REAP_SHARED; break;
    case 2:
        options.buffer = buffers[me->number][0];
        options.buffer_size = 4095;
        break;
    case 3: options.first_chunk = ((size_t)1 << 30) + 1; break;
    case 4: options.max_chunk = SIZE_MAX; break;
    case 5: options.source.take = take; break;
    default: options.source.give = give;
    }
    errno = 0;
    CHECK(reapCreateWith(&node->handle, parent ? handle_of(parent) : NULL, &options) == -1 && !node->handle,
          "reapCreateWith takes what is not valid: %u", rec->size % 8u);
    CHECK(errno == EINVAL, "reapCreateWith: errno %d", errno);
}

/* --- ending ---------------------------------------------------------------------------------- */

/* Its source has all chunks back, whose memory may be used again. */
static void ended(struct node *node)
{
    CHECK(node->source.chunks == 0, "a source did not get back %ld chunks", node->source.chunks);
    if (node->buffer) memset(node->buffer, 0xdd, BUFFER);
    node->buffer = NULL;
}

static void settle(const bool *alive)
{
    for (int i = 0; i < REAPS; i++)
        if (alive[i] && !me->nodes[i].handle) ended(&me->nodes[i]);
}

void end_reap(int reap, bool destroys)
{
    struct node *node = &me->nodes[reap];
    bool alive[REAPS];
    for (int i = 0; i < REAPS; i++) alive[i] = me->nodes[i].handle != NULL;
    SAY(destroys ? "reapDestroy(&r[%d]);" : "reapFreeAll(&r[%d]);", reap);
    void *handle = node->handle;
    me->endings[me->ending_depth++] = (struct ending){.top = reap};
    node->going++;
    bool is_set = destroys && !me->by_self; /* the handle's own word goes with the reap */
    if (destroys)
        reapDestroy(spelled(&handle));
    else
        reapFreeAll(spelled(&handle));
    node->going--;
    me->ending_depth--;
    CHECK(handle == (is_set ? NULL : node->handle), "the handle of a reap that ends, or is cleared");
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && me->nodes[i].parent == reap) forget_reap(i);
    CHECK(!node->cleanups, "a function of reapOnDestroy was not called");
    node->depth = 0;
    node->pending = 0;
    node->quiet = MARKS;
    forget_objects(node, 0);
    if (destroys) forget_reap(reap);
    settle(alive);
}

static void destroy_wrongly(void *handle) { reapDestroy(&handle); }
static void clear_wrongly(void *handle) { reapFreeAll(&handle); }

/* What is being ended already, or is entered. */
static void end_wrongly(const struct node *node, bool destroys)
{
    SAY("%s(&r[%d]); /* a mistake, in a child */", destroys ? "reapDestroy" : "reapFreeAll", index_of(node));
    must_die(destroys ? "reapDestroy" : "reapFreeAll", node->handle,
             destroys ? destroy_wrongly : clear_wrongly, node->handle);
}

static void end_named(const struct record *rec, bool destroys)
{
    struct node *node = node_of(rec);
    if (!node || node->is_public || me->ending_depth > NEST) return;
    if (me->held && is_below(me->held->reap, index_of(node))) return;
    if (me->asked >= 0 && is_below(me->asked, index_of(node)) && (destroys || me->asked != index_of(node)))
        return;
    if ((node->going || node->entered) && rec->slot % 16 == 0) end_wrongly(node, destroys);
    if (!may_end(index_of(node), 0, false) || !recall_below(index_of(node), 0, false)) return;
    end_reap(index_of(node), destroys);
}

void do_destroy(const struct record *rec) { end_named(rec, true); }
void do_clear(const struct record *rec) { end_named(rec, false); }

void end_world(void)
{
    for (struct record unmark = {.extra = 1}; me->nodes[0].is_public && me->nodes[0].depth;)
        do_unmark(&unmark);
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && me->nodes[i].parent < 0 && !me->nodes[i].is_public &&
            recall_below(i, 0, false))
            end_reap(i, true);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct record rec = {.slot = (uint16_t)i, .extra = 1};
        if (atomic_load(&me->objects[i].where) == HOME && me->objects[i].reap == NONE) heap_free(&rec);
    }
    take_charges_back(); /* one thread ends all worlds */
}

/* --- to another parent ----------------------------------------------------------------------- */

static bool any_going(int top)
{
    for (int i = 0; i < REAPS; i++)
        if (me->nodes[i].handle && me->nodes[i].going && is_below(i, top)) return true;
    return false;
}

void do_adopt(const struct record *rec)
{
    struct node *node = node_of(rec), *parent = &me->nodes[rec->extra % me->program->reaps];
    if (!node || node->is_public || any_going(index_of(node))) return;
    if (!recall_below(index_of(node), 0, true)) return; /* its limits may become others */
    if (rec->slot % 4 == 0 || !parent->handle) parent = NULL;
    int reap = index_of(node), to = parent ? index_of(parent) : NONE;
    size_t live = live_below(reap) + pending_below(reap);
    if (parent)
        SAY("reapAdopt(&r[%d], &r[%d]);", reap, to);
    else
        SAY("reapAdopt(&r[%d], NULL);", reap);
    errno = 0;
    int result = reapAdopt(handle_of(node), parent ? handle_of(parent) : NULL);
    if (is_below(to, reap)) {
        CHECK(result == -1 && errno == EINVAL, "reapAdopt makes a ring");
        return;
    }
    if (result != 0) {
        CHECK(result == -1, "reapAdopt gives %d", result);
        check_refused(to, node->parent, live, 1, 0);
        return;
    }
    node->parent = to;
    node->parent_handle = parent ? parent->handle : NULL;
    node->born = parent ? parent->depth : 0;
    node->order = ++me->order;
}

/* --- entering -------------------------------------------------------------------------------- */

static void enter_heap(const struct record *rec)
{
    if (me->entered_depth == ENTERED) return;
    void *none = NULL;
    SAY("reapEnter(NULL);");
    me->entered[me->entered_depth++] = NONE;
    errno = MY_ERRNO;
    reapEnter(rec->extra & 1 ? NULL : &none);
    CHECK(ERRNO_STAYS, "reapEnter(NULL) has set errno to %d", errno);
    do_entered(rec);
}

/* A reap, or the heap. */
void do_enter(const struct record *rec)
{
    if (rec->extra % 8 < 2) {
        enter_heap(rec);
        return;
    }
    struct node *node = node_of(rec);
    if (!node || node->is_public || me->entered_depth == ENTERED) return;
    int reap = index_of(node);
    bool innermost = me->entered_depth && me->entered[me->entered_depth - 1] == reap;
    if (node->entered && !innermost) return;
    for (unsigned i = 0; node->shared && !innermost && i < me->entered_depth; i++)
        if (me->entered[i] != NONE && me->nodes[me->entered[i]].shared)
            return; /* in one shared reap at a time */
    if (any_going(reap)) return;
    bool quietly = FUZZ_SANITIZED || rec->extra & 1; /* no line among those of the sanitizer */
    SAY("%s(&r[%d]);", quietly ? "reapEnterQuietly" : "reapEnter", reap);
    node->entered++;
    me->entered[me->entered_depth++] = reap;
    errno = MY_ERRNO;
    if (quietly)
        reapEnterQuietly(handle_of(node));
    else
        reapEnter(handle_of(node));
    CHECK(ERRNO_STAYS, "%s has set errno to %d", quietly ? "reapEnterQuietly" : "reapEnter", errno);
    do_entered(rec);
}

void do_entered(const struct record *rec)
{
    (void)rec;
    int innermost = me->entered_depth ? me->entered[me->entered_depth - 1] : NONE;
    void *expected = innermost != NONE ? me->nodes[innermost].handle : NULL;
    CHECK(reapEntered() == expected, "reapEntered is %p for %p", reapEntered(), expected);
}

void do_leave(const struct record *rec)
{
    if (!me->entered_depth) return;
    SAY("reapLeave();");
    int left = me->entered[--me->entered_depth];
    if (left != NONE) me->nodes[left].entered--;
    reapLeave();
    do_entered(rec);
}

/* --- charging -------------------------------------------------------------------------------- */

static void check_charged(void)
{
    const char *name = reapCharged(), *expected = me->charged_depth ? me->charged[me->charged_depth - 1] : "";
    CHECK(strcmp(name ? name : "", expected) == 0, "reapCharged is %s, not %s", name, expected);
}

/* A reap, or none, which has no label. */
static void charge(const struct record *rec, const char *label)
{
    struct node *node = rec->extra % 8 ? node_of(rec) : NULL;
    if (me->charged_depth == CHARGED || (rec->extra % 8 && !node)) return;
    char *name = me->charged[me->charged_depth++];
    *name = '\0';
    if (node && node->named) name_of(node, name);
    if (node) sprintf(name + strlen(name), "%s%s", *name && *label ? " " : "", label);
    if (node && !*name) strcpy(name, "(no name)");
    SAY("%s(&r[%d]%s%s); /* -1: NULL */", rec->size % 2 ? "reapChargeAs" : "reapCharge",
        node ? index_of(node) : NONE, rec->size % 2 ? ", " : "", label);
    void **handle = node ? handle_of(node) : NULL;
    errno = MY_ERRNO;
    CHECK((rec->size % 2 ? reapChargeAs(handle, label) : reapCharge(handle)) == 0, "a charge is refused: %d",
          errno);
    CHECK(ERRNO_STAYS, "a charge has set errno to %d", errno);
    check_charged();
}

void do_charge(const struct record *rec)
{
    char label[8] = "";
    if (rec->size % 4 == 1) snprintf(label, sizeof label, "/%u", rec->slot % 10);
    charge(rec, label);
}

void do_uncharge(const struct record *rec)
{
    (void)rec;
    if (!me->charged_depth) return;
    SAY("reapUncharge();");
    me->charged_depth--;
    reapUncharge();
    check_charged();
}

void take_charges_back(void)
{
    while (me->charged_depth) do_uncharge(&(struct record){0});
}
