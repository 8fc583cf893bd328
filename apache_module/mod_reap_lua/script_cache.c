/* SPDX-License-Identifier: Apache-2.0 */
#include "script_cache.h"

#include <apr_time.h>
#include <lauxlib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };

/* What tells one content of a file from another. */
struct version {
    apr_dev_t device;
    apr_ino_t inode;
    apr_off_t size;
    apr_time_t modified, changed;
};

struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* by their last use */
    struct version version;
    unsigned users;    /* threads that read it */
    bool listed;       /* in the cache: else it goes with its last user */
    bool failed;       /* text is a message */
    size_t size;       /* of the text */
    char *name, *text; /* behind the entry, in the same block */
};

static struct {
    pthread_mutex_t lock;
    size_t room, used; /* bytes */
    struct entry *newest, *oldest;
    struct entry *buckets[BUCKETS];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

void script_cache_init(size_t size) { cache.room = size; }

/* --- lists, under the lock ------------------------------------------------------------------------ */

static struct entry **bucket_of(const char *name)
{
    unsigned hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return &cache.buckets[hash % BUCKETS];
}

static size_t bytes_of(const struct entry *entry)
{
    return sizeof *entry + strlen(entry->name) + 1 + entry->size;
}

static void link_newest(struct entry *entry)
{
    entry->older = cache.newest;
    entry->newer = NULL;
    *(cache.newest ? &cache.newest->newer : &cache.oldest) = entry;
    cache.newest = entry;
}

static void unlink_use(struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &cache.newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache.oldest) = entry->newer;
}

static struct entry *find(const char *name)
{
    struct entry *entry = *bucket_of(name);
    while (entry && strcmp(entry->name, name) != 0) entry = entry->next;
    return entry;
}

static void drop(struct entry *entry)
{
    struct entry **place = bucket_of(entry->name);
    while (*place != entry) place = &(*place)->next;
    *place = entry->next;
    unlink_use(entry);
    cache.used -= bytes_of(entry);
    entry->listed = false;
    if (entry->users == 0) free(entry);
}

static void insert(struct entry *entry)
{
    struct entry *old = find(entry->name);
    if (old) drop(old);
    struct entry **bucket = bucket_of(entry->name);
    entry->next = *bucket;
    *bucket = entry;
    entry->listed = true;
    link_newest(entry);
    cache.used += bytes_of(entry);
    while (cache.used > cache.room) drop(cache.oldest);
}

/* --- versions ------------------------------------------------------------------------------------- */

static struct version version_of(const apr_finfo_t *file)
{
    return (struct version){file->device, file->inode, file->size, file->mtime, file->ctime};
}

static bool is_version(const struct version *a, const apr_finfo_t *file)
{
    return a->device == file->device && a->inode == file->inode && a->size == file->size &&
           a->modified == file->mtime && a->changed == file->ctime;
}

/* A time ahead of ours is that of a server's clock, or somebody set it: neither is old. */
static bool is_settled(const apr_finfo_t *file)
{
    apr_time_t old = apr_time_now() - apr_time_from_sec(2);
    return file->mtime < old && file->ctime < old;
}

/* NULL without memory, or if it is not worth the room. */
static struct entry *make_entry(const char *name, const apr_finfo_t *file, const char *text, size_t size)
{
    size_t name_size = strlen(name) + 1;
    if (name_size + size > cache.room / 4) return NULL;
    struct entry *entry = malloc(sizeof *entry + name_size + size);
    if (!entry) return NULL;
    *entry = (struct entry){.version = version_of(file), .size = size};
    entry->name = memcpy(entry + 1, name, name_size);
    entry->text = memcpy(entry->name + name_size, text, size);
    return entry;
}

/* --- interface ------------------------------------------------------------------------------------ */

static struct entry *begin_use(const char *name, const apr_finfo_t *file)
{
    pthread_mutex_lock(&cache.lock);
    struct entry *entry = find(name);
    if (entry && (entry->failed || !is_version(&entry->version, file))) entry = NULL;
    if (entry) {
        entry->users++;
        unlink_use(entry);
        link_newest(entry);
    }
    pthread_mutex_unlock(&cache.lock);
    return entry;
}

static void end_use(struct entry *entry)
{
    pthread_mutex_lock(&cache.lock);
    bool is_last = --entry->users == 0 && !entry->listed;
    pthread_mutex_unlock(&cache.lock);
    if (is_last) free(entry);
}

bool script_cache_load(lua_State *L, const char *name, const apr_finfo_t *file)
{
    struct entry *entry = cache.room != 0 ? begin_use(name, file) : NULL;
    if (!entry) return false;
    int status = luaL_loadbufferx(L, entry->text, entry->size, name, "b"); /* raises nothing */
    end_use(entry);
    if (status != LUA_OK) lua_pop(L, 1);
    return status == LUA_OK;
}

struct dump {
    char *bytes;
    size_t size, room;
};

static int write_dump(lua_State *L, const void *bytes, size_t size, void *self)
{
    (void)L;
    struct dump *dump = self;
    if (dump->room - dump->size < size) {
        size_t room = 2 * dump->room + size;
        char *grown = realloc(dump->bytes, room);
        if (!grown) return 1;
        dump->bytes = grown;
        dump->room = room;
    }
    memcpy(dump->bytes + dump->size, bytes, size);
    dump->size += size;
    return 0;
}

void script_cache_store(lua_State *L, const char *name, const apr_finfo_t *file)
{
    struct dump dump = {0};
    if (cache.room == 0 || !is_settled(file)) return;
    struct entry *entry = NULL;
    if (lua_dump(L, write_dump, &dump, 0) == 0) entry = make_entry(name, file, dump.bytes, dump.size);
    free(dump.bytes);
    if (!entry) return;
    pthread_mutex_lock(&cache.lock);
    insert(entry);
    pthread_mutex_unlock(&cache.lock);
}

bool script_cache_is_news(const char *name, const apr_finfo_t *file, const char *message)
{
    struct entry *entry = make_entry(name, file, message, strlen(message) + 1);
    if (!entry) return true;
    entry->failed = true;
    pthread_mutex_lock(&cache.lock);
    struct entry *old = find(name);
    bool is_old = old && old->failed && is_version(&old->version, file) && !strcmp(old->text, message);
    if (!is_old) insert(entry);
    pthread_mutex_unlock(&cache.lock);
    if (is_old) free(entry);
    return !is_old;
}
