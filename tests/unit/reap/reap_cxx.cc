/* SPDX-License-Identifier: Apache-2.0 */
// reap.hpp: memory resources in containers, objects with destructors, exceptions, limits. Only what is
// public: it is linked to the libraries as they are installed, once to each.
#include "reap.hpp"
#include "support/expect.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static_assert(!std::is_copy_constructible_v<reap::resource> && !std::is_copy_assignable_v<reap::resource>);
static_assert(std::is_copy_constructible_v<reap::resource_ref>);
static_assert(!std::is_convertible_v<reap::unique_ptr<std::string>, reap::unique_ptr<const std::string>>);

static reap_stats stats_of(void **reap)
{
    reap_stats stats;
    EXPECT(reapStats(reap, &stats) == 0);
    return stats;
}

static std::size_t live_objects(reap::resource_ref &resource)
{
    return stats_of(resource.handle()).live_objects;
}

static bool is_in(const void *pointer, reap::resource_ref &resource)
{
    void *owner;
    return reapOf(pointer, &owner) == 0 && owner == *resource.handle();
}

template <class Exception, class Call> static bool throws(Call call)
{
    try {
        call();
        return false;
    } catch (const Exception &) {
        return true;
    }
}

// Does it end in abort()? Its one line goes nowhere.
template <class Call> static bool aborts(Call call)
{
    pid_t child = fork();
    if (child == 0) {
        if (!std::freopen("/dev/null", "w", stderr)) _exit(1);
        call();
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// --- as a memory resource -----------------------------------------------------------------------

CASE(test_alignment)
{
    reap::resource memory;
    for (std::size_t alignment = 1; alignment <= 1 << 20; alignment *= 2)
        for (std::size_t size : {0, 1, 16, 100, 5000, 100000}) {
            void *object = memory.allocate(size, alignment);
            EXPECT(reinterpret_cast<std::uintptr_t>(object) % alignment == 0 && is_in(object, memory));
            std::memset(object, 1, size);
            memory.deallocate(object, size, alignment);
        }
    EXPECT(live_objects(memory) == 0);
    struct alignas(256) Wide {
        char bytes[300];
    };
    std::pmr::vector<Wide> wide(9, &memory);
    EXPECT(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0);
}

CASE(test_equality)
{
    reap::resource one, other;
    reap::resource_ref borrowed(one.handle()), copy = borrowed;
    EXPECT(one == one && one == borrowed && borrowed == one && copy == borrowed);
    EXPECT(one != other && borrowed != other && other != copy);
    EXPECT(one != *std::pmr::new_delete_resource() && *std::pmr::new_delete_resource() != one);
    void *object = one.allocate(100); // what one gave the other takes
    borrowed.deallocate(object, 100);
    EXPECT(live_objects(one) == 0);
}

// Every round leaves nothing: what containers free is used again.
CASE(test_containers)
{
    reap::resource memory;
    std::size_t held = 0;
    for (int round = 0; round < 6; round++) {
        std::pmr::map<std::pmr::string, std::pmr::vector<std::pmr::string>> table(&memory);
        for (int i = 0; i < 5000; i++)
            table[std::pmr::string("the key of many others, number ") + std::to_string(i % 97).c_str()]
                .emplace_back("value " + std::to_string(i));
        EXPECT(table.size() == 97);
        const auto &values = table.at("the key of many others, number 7");
        EXPECT(values.size() == 52 && values[1] == "value 104");
        EXPECT(is_in(&values, memory) && is_in(values.data(), memory)); // nested containers are in there too
        std::pmr::unordered_map<int, std::pmr::list<int>> lists(&memory);
        for (int i = 0; i < 3000; i++) lists[i % 11].push_front(i);
        EXPECT(lists[3].size() == 273 && is_in(&lists[3].front(), memory));
        std::size_t now = stats_of(memory.handle()).chunk_bytes;
        EXPECT(round == 0 || now <= (round == 1 ? 2 * held : held)); // it does not grow from round to round
        held = now;
    }
    EXPECT(live_objects(memory) == 0);
}

CASE(test_moves)
{
    reap::resource one, other;
    reap::resource_ref borrowed(one.handle());
    std::pmr::vector<std::pmr::string> from(&one), same(&borrowed), apart(&other);
    for (int i = 0; i < 100; i++) from.emplace_back(200, char('a' + i % 26));
    const auto *place = from.data();
    same = std::move(from); // equal resources: the memory changes hands
    EXPECT(same.data() == place && is_in(same[42].data(), one));
    apart = std::move(same); // unequal: the elements move one by one
    EXPECT(apart.data() != place && apart.size() == 100 && is_in(apart.data(), other));
    EXPECT(is_in(apart[42].data(), other) && apart[42] == std::pmr::string(200, char('a' + 42 % 26)));
    same.clear();
    same.shrink_to_fit();
    EXPECT(live_objects(one) == 0);

    auto taken = std::move(apart); // constructed: takes memory and resource
    EXPECT(taken.get_allocator().resource() == &other && is_in(taken.data(), other));
    std::pmr::vector<std::pmr::string> copied(taken), there(taken, &one);
    EXPECT(copied.get_allocator().resource() == std::pmr::get_default_resource()); // pmr's rule, not ours
    EXPECT(is_in(there[99].data(), one));
    std::pmr::string a("a string that is too long to be kept inside", &one),
        b("b, not very much shorter than a", &borrowed);
    const char *was = a.data();
    swap(a, b);
    EXPECT(b.data() == was);
}

// Winking out: what is never destroyed goes with the reap.
CASE(test_release)
{
    reap::resource memory;
    for (int round = 0; round < 3; round++) {
        auto *numbers = new (memory.allocate(sizeof(std::pmr::vector<int>))) std::pmr::vector<int>(&memory);
        for (int i = 0; i < 100000; i++) numbers->push_back(i);
        EXPECT(numbers->at(99999) == 99999);
        memory.release();
        EXPECT(live_objects(memory) == 0);
    }
    EXPECT(aborts([] {
        reap::resource cleared;
        std::pmr::vector<int> numbers(1000, &cleared);
        cleared.release(); // and then ~vector() frees what is gone
    }));
}

CASE(test_children)
{
    reap::resource connection;
    void *alive;
    {
        reap::resource request(connection.handle()), phase(request.handle());
        EXPECT(reapParent(request.handle()) == *connection.handle() &&
               stats_of(connection.handle()).children == 1);
        std::pmr::string name("of the phase, not of the request above it", &phase);
        EXPECT(is_in(name.data(), phase));
        alive = *request.handle();
    }
    EXPECT(stats_of(connection.handle()).children == 0 && alive);
    reap::resource early(connection.handle()); // ended by hand; the destructor finds nothing to do
    reapDestroy(early.handle());
    reap::resource handed(connection.handle()); // and one that is handed on
    void *c_handle = std::exchange(*handed.handle(), nullptr);
    reapDestroy(&c_handle);
    EXPECT(stats_of(connection.handle()).children == 0);
}

// A resource in each thread, below one parent.
CASE(test_threads)
{
    reap::resource server;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&server] {
            for (int round = 0; round < 200; round++) {
                reap::resource request(server.handle());
                std::pmr::vector<std::pmr::string> words(&request);
                for (int word = 0; word < 50; word++) words.emplace_back(100, 'w');
                EXPECT(words[49].size() == 100);
            }
        });
    for (auto &thread : threads) thread.join();
    EXPECT(stats_of(server.handle()).children == 0);
}

// One resource for all threads, which free each other's strings.
CASE(test_shared)
{
    reap::options options;
    options.flags = REAP_SHARED;
    reap::resource memory(options);
    std::pmr::vector<std::pmr::vector<std::pmr::string>> words(4, &memory);
    for (std::size_t round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        std::atomic<int> here = 0;
        for (std::size_t i = 0; i < 4; i++)
            threads.emplace_back([&memory, &here, &mine = words[(i + round) % 4]] {
                for (here++; here < 4;) std::this_thread::yield(); // at once, or little happens at once
                mine.clear();
                for (int word = 0; word < 1000; word++) mine.emplace_back(100, 'w');
                std::pmr::map<int, int> numbers(&memory);
                for (int n = 0; n < 1000; n++) numbers[n] = n;
                EXPECT(numbers[999] == 999 && mine[999] == std::pmr::string(100, 'w'));
            });
        for (auto &thread : threads) thread.join();
    }
    EXPECT(live_objects(memory) == 1 + 4 + 4 * 1000);
}

// --- limits and exhaustion ----------------------------------------------------------------------

CASE(test_limit)
{
    reap::options options;
    options.limit = 100000;
    options.name = "limited";
    reap::resource memory(options), child(memory.handle());
    EXPECT(std::strcmp(reapName(memory.handle()), "limited") == 0);
    std::pmr::vector<int> numbers(&child);
    EXPECT(throws<std::bad_alloc>([&] {
        for (;;) numbers.push_back(7);
    }));
    std::size_t n = numbers.size();
    EXPECT(n >= 8192 && n * sizeof(int) <= 100000 && numbers[n - 1] == 7); // as it was, and usable
    EXPECT(stats_of(child.handle()).live_bytes <= 100000);
    EXPECT(throws<std::bad_alloc>([&] { (void)memory.allocate(200000, 64); }));
    EXPECT(reapSetLimit(memory.handle(), 0) == 0);
    numbers.resize(100000);
    EXPECT(numbers[n - 1] == 7);
}

static std::size_t huge = SIZE_MAX / 2;

CASE(test_exhaustion)
{
    reap::resource memory;
    EXPECT(throws<std::bad_alloc>([&] { (void)memory.allocate(OPAQUE(huge)); }));
    EXPECT(throws<std::bad_alloc>([&] { (void)memory.allocate(OPAQUE(huge), 4096); }));
    EXPECT(throws<std::system_error>([&] { (void)memory.allocate(1, OPAQUE(48)); })); // no power of two
    reap::options wrong;
    wrong.flags = 1u << 31;
    EXPECT(throws<std::system_error>([&] { reap::resource refused(wrong); }));
    if (std::getenv("REAP_TEST_STEPS")) return; // a tool watches: objects lie apart, and no buffer is full
    std::array<char, 8192> buffer;
    reap::options in_buffer;
    in_buffer.buffer = buffer.data();
    in_buffer.buffer_size = buffer.size();
    reap::resource small(in_buffer);
    std::pmr::list<int> list(&small);
    EXPECT(throws<std::bad_alloc>([&] {
        for (;;) list.push_back(1);
    }));
    EXPECT(list.size() > 100 && (char *)&list.back() > buffer.data() && (char *)&list.back() < buffer.end());
}

// --- objects ------------------------------------------------------------------------------------

static std::string ended;

struct Noted {
    char name;
    Noted *inner = nullptr;
    explicit Noted(char name) : name(name) {}
    Noted(char name, void **reap) : name(name), inner(reap::make<Noted>(reap, 'i')) {}
    ~Noted() { ended += name; }
};
struct alignas(128) Wide_noted : Noted {
    using Noted::Noted;
};
struct Thrower {
    std::string text = std::string(1000, 'x');
    Thrower() { throw 7; }
    ~Thrower() { ended += '!'; }
};

CASE(test_make)
{
    ended.clear();
    {
        reap::resource memory;
        EXPECT(*reap::make<int>(memory.handle(), 7) == 7);
        reap::make<Noted>(memory.handle(), 'a');
        auto *wide = reap::make<Wide_noted>(memory.handle(), 'w');
        EXPECT(reinterpret_cast<std::uintptr_t>(wide) % 128 == 0 && is_in(wide, memory));
        auto *outer = reap::make<Noted>(memory.handle(), 'o', memory.handle());
        EXPECT(outer->inner->name == 'i');
        auto *words = reap::make<std::pmr::vector<std::pmr::string>>(memory.handle(), &memory);
        words->emplace_back(1000, 'w'); // frees in the reap that is ending
        std::size_t before = live_objects(memory);
        EXPECT(throws<int>([&] { reap::make<Thrower>(memory.handle()); }));
        EXPECT(live_objects(memory) == before && ended.empty());
        reap_mark mark;
        reapMark(memory.handle(), &mark);
        reap::make<Noted>(memory.handle(), 'm');
        reapRewind(memory.handle(), &mark);
        reapUnmark(memory.handle(), &mark);
        EXPECT(ended == "m");
    }
    EXPECT(ended == "moiwa");
}

CASE(test_unique)
{
    ended.clear();
    reap::resource memory;
    {
        auto first = reap::make_unique<Noted>(memory.handle(), '1');
        auto second = reap::make_unique<Wide_noted>(memory.handle(), '2');
        EXPECT(is_in(first.get(), memory) && is_in(second.get(), memory));
        auto moved = std::move(first);
        EXPECT(!first && moved->name == '1');
        second.reset();
        EXPECT(ended == "2");
    }
    EXPECT(ended == "21" && live_objects(memory) == 0);
    EXPECT(throws<int>([&] { reap::make_unique<Thrower>(memory.handle()); }));
    EXPECT(live_objects(memory) == 0);
}

// An exception on its way through reaps and containers ends them in order; at no step is anything left.
CASE(test_unwinding)
{
    reap::resource server;
    for (std::size_t limit = 16; limit < 60000; limit += 977) {
        ended.clear();
        try {
            reap::options options;
            options.limit = limit;
            reap::resource request(server.handle(), options);
            reap::make<Noted>(request.handle(), 'r');
            std::pmr::map<int, std::pmr::string> table(&request);
            for (int i = 0; i < 1000; i++) table.emplace(i, "a string that is too long to be kept inside");
            EXPECT(false);
        } catch (const std::bad_alloc &) {
        }
        EXPECT(ended == "r" && stats_of(server.handle()).children == 0);
    }
}

// An exception leaves the scope, and then the reap is nobody's.
CASE(test_entered)
{
    reap::resource memory;
    std::string *leaked = nullptr;
    EXPECT(throws<int>([&] {
        reap::entered entered(memory.handle());
        leaked = new std::string(5000, 'l');
        throw 7;
    }));
    EXPECT(leaked->size() == 5000);
#ifdef ON_LIBREAP_MALLOC
    EXPECT(is_in(leaked, memory) && is_in(leaked->data(), memory));
#else
    delete leaked; // on another malloc it is as always
#endif
    EXPECT(!is_in(std::make_unique<int>(7).get(), memory));
    memory.release();
    EXPECT(aborts([&] {
        reap::entered entered(memory.handle());
        memory.release();
    }));
}

// --- the allocator without state -----------------------------------------------------------------

template <class T> using vector = std::vector<T, reap::allocator<T>>;
using string = std::basic_string<char, std::char_traits<char>, reap::allocator<char>>;
using map = std::map<int, string, std::less<int>, reap::allocator<std::pair<const int, string>>>;

static_assert(std::is_empty_v<reap::allocator<int>> && sizeof(vector<int>) == sizeof(std::vector<int>));
static_assert(std::allocator_traits<reap::allocator<int>>::is_always_equal::value);
static_assert(std::is_nothrow_move_assignable_v<vector<int>> && std::is_nothrow_move_assignable_v<map>);
static_assert(std::is_convertible_v<reap::allocator<int>, reap::allocator<double>>);

static map fill()
{
    map filled;
    for (int i = 0; i < 100; i++) filled.emplace(i, string(50, char('a' + i % 26)));
    return filled;
}

CASE(test_allocator_takes)
{
    reap::resource outer, inner(outer.handle());
    vector<int> none(100, 7);
    void *owner;
    EXPECT(reapOf(none.data(), &owner) == -1);
    reap::scope in_outer(outer.handle());
    EXPECT(reapEntered() == *outer.handle());
    vector<int> numbers(100, 7);
    EXPECT(is_in(numbers.data(), outer));
    {
        reap::scope in_heap(nullptr);
        vector<int> kept(100, 7);
        EXPECT(reapEntered() == nullptr && reapOf(kept.data(), &owner) == -1);
    }
    {
        reap::scope in_inner(inner.handle());
        string text(100, 't');
        map table = fill();
        EXPECT(is_in(text.data(), inner) && is_in(&*table.begin(), inner) && is_in(table[7].data(), inner));
        auto shared = std::allocate_shared<int>(reap::allocator<int>(), 7);
        EXPECT(is_in(shared.get(), inner));
        numbers.resize(1000); // from the inner one; what it had goes back to the outer
        EXPECT(is_in(numbers.data(), inner) && live_objects(outer) == 0);
        numbers = vector<int>();
        EXPECT(live_objects(inner) > 200);
    }
    EXPECT(live_objects(inner) == 0);
    struct alignas(256) wide {
        char bytes[256];
    };
    vector<wide> aligned(3);
    EXPECT(is_in(aligned.data(), outer) && reinterpret_cast<std::uintptr_t>(aligned.data()) % 256 == 0);
}

// From a reap to outside and back: nothing is copied, and each block goes back to where it came from.
CASE(test_allocator_moves)
{
    reap::resource memory;
    map outside = fill(), inside;
    void *owner;
    {
        reap::scope scope(memory.handle());
        inside = fill();
    }
    auto *first = &*inside.begin(), *other = &*outside.begin();
    std::swap(inside, outside);
    EXPECT(&*outside.begin() == first && &*inside.begin() == other);
    EXPECT(is_in(first, memory) && reapOf(other, &owner) == -1);
    inside = std::move(outside);
    EXPECT(&*inside.begin() == first && inside == fill());
    map copy = inside; // nobody is in the reap now
    EXPECT(reapOf(&*copy.begin(), &owner) == -1 && copy == inside);
    {
        reap::scope scope(memory.handle());
        copy.clear(); // malloc's memory, from within
    }
    EXPECT(live_objects(memory) == 200);
    std::thread([taken = std::move(inside)]() mutable { taken.clear(); }).join();
    EXPECT(reapSetLimit(memory.handle(), 0) == 0 && live_objects(memory) == 0);
}

CASE(test_allocator_fails)
{
    reap::options options;
    options.limit = 1000;
    reap::resource memory(options);
    EXPECT(throws<std::bad_alloc>([] { (void)reap::allocator<int>().allocate(OPAQUE(SIZE_MAX / 2)); }));
    reap::scope scope(memory.handle());
    vector<int> numbers(100);
    EXPECT(throws<std::bad_alloc>([&] { numbers.resize(1000); }) && numbers.size() == 100);
    EXPECT(throws<std::bad_alloc>([] { (void)reap::allocator<int>().allocate(OPAQUE(SIZE_MAX / 2)); }));
    EXPECT(throws<std::bad_alloc>([] { (void)reap::allocator<int>().allocate(OPAQUE(SIZE_MAX / 4 + 2)); }));
    errno = 7;
    numbers = vector<int>();
    reap::allocator<int>().deallocate(std::allocator<int>().allocate(1), 1);
    EXPECT(errno == 7 && live_objects(memory) == 0);
}

// Builders, and handles by value and by type, as C++ sees them.
CASE(test_calls_of_c)
{
    reap::resource memory;
    reap_builder line = {};
    for (int i = 0; i < 3; i++) EXPECT(reapAppendf(memory.handle(), &line, "%d,", i) == 0);
    EXPECT(std::string(reapFinish(memory.handle(), &line)) == "0,1,2,");
    reap_t *parent = static_cast<reap_t *>(*memory.handle()), *child = reapNew(parent);
    EXPECT(reapParent(&child->self) == parent && reapMalloc(&child->self, 10) != nullptr);
    reapDestroy(&child->self);
    EXPECT(stats_of(memory.handle()).children == 0);
}

// A charge ends with its scope, also where an exception leaves it.
CASE(test_charged)
{
    reap::resource memory;
    auto is = [](const char *name) { return reapCharged() && std::string(reapCharged()) == name; };
    EXPECT(reapSetName(memory.handle(), "request") == 0);
    {
        reap::charged outer(memory.handle());
        EXPECT(is("request"));
        EXPECT(throws<std::bad_alloc>([&] {
            reap::charged inner(memory.handle(), "/url");
            EXPECT(is("request /url"));
            throw std::bad_alloc();
        }));
        reap::charged none(nullptr);
        EXPECT(!reapCharged());
    }
    EXPECT(!reapCharged());
}

int main() { return run_cases(nullptr); }
