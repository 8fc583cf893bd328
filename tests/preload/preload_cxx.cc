/* SPDX-License-Identifier: Apache-2.0 */
// Every form of new and delete, exceptions and the new handler included.
#include "support/expect.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static bool is_aligned(const void *block, std::size_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

CASE(test_plain)
{
    for (std::size_t size : {0, 1, 16, 100, 5000, 3 << 20}) {
        void *a = operator new(size), *b = operator new[](size);
        EXPECT(a && b && a != b && is_aligned(a, 16) && is_aligned(b, 16));
        std::memset(a, 1, size);
        std::memset(b, 2, size);
        operator delete(a);
        operator delete[](b, size);
        operator delete(operator new(size), size);
        operator delete[](operator new[](size));
    }
    operator delete(nullptr);
    operator delete[](nullptr);
}

CASE(test_nothrow)
{
    void *a = operator new(100, std::nothrow), *b = operator new[](100, std::nothrow);
    EXPECT(a && b);
    operator delete(a, std::nothrow);
    operator delete[](b, std::nothrow);
}

CASE(test_aligned)
{
    for (std::size_t power = 4; power < 17; power++) {
        std::align_val_t alignment{std::size_t(1) << power};
        void *blocks[] = {operator new(100, alignment), operator new[](100, alignment),
                                                        operator new(100, alignment, std::nothrow),
                                                        operator new[](100, alignment, std::nothrow)};
        for (void *block : blocks) {
            EXPECT(block && is_aligned(block, std::size_t(alignment)));
            std::memset(block, 1, 100);
        }
        operator delete(blocks[0], alignment);
        operator delete[](blocks[1], 100, alignment);
        operator delete(blocks[2], alignment, std::nothrow);
        operator delete[](blocks[3], alignment, std::nothrow);
        operator delete(operator new(100, alignment), 100, alignment);
        operator delete[](operator new[](100, alignment), alignment);
    }
    struct alignas(128) Wide {
        char bytes[300];
    };
    std::unique_ptr<Wide[]> wide(new Wide[7]);
    EXPECT(is_aligned(wide.get(), 128));
}

static std::size_t huge = SIZE_MAX / 2;

template <class Call> static bool throws_bad_alloc(Call call)
{
    try {
        void *block = call();
        std::free(block);
        return false;
    } catch (const std::bad_alloc &) {
        return true;
    }
}

CASE(test_exhaustion)
{
    std::size_t size = OPAQUE(huge);
    std::align_val_t alignment{64};
    EXPECT(throws_bad_alloc([&] { return operator new(size); }));
    EXPECT(throws_bad_alloc([&] { return operator new[](size); }));
    EXPECT(throws_bad_alloc([&] { return operator new(size, alignment); }));
    EXPECT(throws_bad_alloc([&] { return operator new[](size, alignment); }));
    EXPECT(operator new(size, std::nothrow) == nullptr);
    EXPECT(operator new[](size, std::nothrow) == nullptr);
    EXPECT(operator new(size, alignment, std::nothrow) == nullptr);
    EXPECT(operator new[](size, alignment, std::nothrow) == nullptr);
}

static int handler_calls;
struct Given_up : std::bad_alloc {
};

// The handler is called until it gives up: by taking itself away, or by throwing.
static void take_away_at_three()
{
    if (++handler_calls == 3) std::set_new_handler(nullptr);
}
static void throw_at_three()
{
    if (++handler_calls == 3) throw Given_up();
}

CASE(test_new_handler)
{
    std::size_t size = OPAQUE(huge);
    handler_calls = 0;
    std::set_new_handler(take_away_at_three);
    EXPECT(throws_bad_alloc([&] { return operator new(size); }));
    EXPECT(handler_calls == 3 && std::get_new_handler() == nullptr);

    handler_calls = 0;
    std::set_new_handler(throw_at_three);
    bool given_up = false;
    try {
        operator delete[](operator new[](size));
    } catch (const Given_up &) {
        given_up = true;
    }
    EXPECT(given_up && handler_calls == 3);

    handler_calls = 0;
    EXPECT(operator new(size, std::nothrow) == nullptr); // what the handler throws stays within
    EXPECT(handler_calls == 3);

    handler_calls = 0;
    EXPECT(throws_bad_alloc([&] { return operator new (size, std::align_val_t{256}); }));
    EXPECT(handler_calls == 3);
    std::set_new_handler(nullptr);
}

// A class whose constructor throws: its memory goes back by the matching delete.
CASE(test_constructor_throws)
{
    struct Thrower {
        std::string text = std::string(1000, 'x');
        Thrower() { throw 7; }
    };
    for (int i = 0; i < 1000; i++) {
        try {
            delete new Thrower;
        } catch (int) {
        }
    }
}

CASE(test_containers)
{
    auto work = [] {
        std::map<std::string, std::vector<std::string>> table;
        for (int i = 0; i < 20000; i++) table[std::to_string(i % 997)].push_back(std::to_string(i));
        EXPECT(table.size() == 997 && table["7"][1] == "1004");
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work);
    for (auto &thread : threads) thread.join();
}

int main() { return run_cases(nullptr); }
