/* SPDX-License-Identifier: Apache-2.0 */
// A program with some forms of new and delete of its own: all other forms end in these ([new.delete]).
// Compiled for each set: PLAIN, ARRAY, ALIGNED, or ONLY_NEW. Its blocks begin with a header, so a delete of
// another's aborts.
#include "support/expect.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

using std::size_t;
static unsigned made, deleted;

#ifdef ONLY_NEW
static const size_t header = 0;
#else
static const size_t header = 64;
#endif

static void *make(size_t size, size_t alignment)
{
    made++;
    char *block = static_cast<char *>(
        alignment ? std::aligned_alloc(alignment, (size + header + alignment - 1) / alignment * alignment)
                  : std::malloc(size + header));
    if (!block) throw std::bad_alloc();
    return block + header;
}

[[maybe_unused]] static void destroy(void *block)
{
    deleted++;
    if (block) std::free(static_cast<char *>(block) - header);
}

#if defined PLAIN || defined ONLY_NEW
void *operator new(size_t size) { return make(size, 0); }
#endif
#ifdef PLAIN
void operator delete(void *block) noexcept { destroy(block); }
#endif
#ifdef ARRAY
void *operator new[](size_t size) { return make(size, 0); }
void operator delete[](void *block) noexcept { destroy(block); }
#endif
#ifdef ALIGNED
void *operator new(size_t size, std::align_val_t alignment) { return make(size, size_t(alignment)); }
void operator delete(void *block, std::align_val_t) noexcept { destroy(block); }
#endif

#ifdef PLAIN
static const bool plain = true, array = true, aligned = false, deletes = true;
#elif defined ARRAY
static const bool plain = false, array = true, aligned = false, deletes = true;
#elif defined ALIGNED
static const bool plain = false, array = false, aligned = true, deletes = true;
#else
static const bool plain = true, array = true, aligned = false, deletes = false;
#endif

static void *(*const news[])(size_t) = {
    [](size_t n) { return operator new(n); },
    [](size_t n) { return operator new(n, std::nothrow); },
};
static void *(*const array_news[])(size_t) = {
    [](size_t n) { return operator new[](n); },
    [](size_t n) { return operator new[](n, std::nothrow); },
};
static void (*const deletes_of[])(void *, size_t) = {
    [](void *b, size_t) { operator delete(b); },
    [](void *b, size_t n) { operator delete(b, n); },
    [](void *b, size_t) { operator delete(b, std::nothrow); },
};
static void (*const array_deletes[])(void *, size_t) = {
    [](void *b, size_t) { operator delete[](b); },
    [](void *b, size_t n) { operator delete[](b, n); },
    [](void *b, size_t) { operator delete[](b, std::nothrow); },
};
static const std::align_val_t by{64};
static void *(*const aligned_news[])(size_t) = {
    [](size_t n) { return operator new(n, by); },
    [](size_t n) { return operator new(n, by, std::nothrow); },
    [](size_t n) { return operator new[](n, by); },
    [](size_t n) { return operator new[](n, by, std::nothrow); },
};
static void (*const aligned_deletes[])(void *, size_t) = {
    [](void *b, size_t) { operator delete(b, by); },
    [](void *b, size_t n) { operator delete(b, n, by); },
    [](void *b, size_t) { operator delete(b, by, std::nothrow); },
    [](void *b, size_t) { operator delete[](b, by); },
    [](void *b, size_t n) { operator delete[](b, n, by); },
    [](void *b, size_t) { operator delete[](b, by, std::nothrow); },
};

template <size_t N, size_t D>
static void every(void *(*const (&makes)[N])(size_t), void (*const (&destroys)[D])(void *, size_t), bool own)
{
    for (auto make : makes)
        for (auto destroy : destroys)
            for (size_t size : {1, 100, 5000, 300000}) {
                made = deleted = 0;
                void *block = OPAQUE(make(size));
                EXPECT(block && made == own);
                std::memset(block, 1, size);
                destroy(OPAQUE(block), size);
                EXPECT(deleted == (own && deletes));
            }
}

int main()
{
    every(news, deletes_of, plain);
    every(array_news, array_deletes, array);
    every(aligned_news, aligned_deletes, aligned);
    return expect_status();
}
