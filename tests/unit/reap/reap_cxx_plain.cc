/* SPDX-License-Identifier: Apache-2.0 */
// reap.hpp in a program without exceptions and RTTI: it works, and exhaustion ends it.
#include "reap.hpp"
#include "support/expect.h"

#include <map>
#include <string>
#include <vector>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be built with -fno-exceptions -fno-rtti"
#endif

static int ended;
struct Counted {
    ~Counted() { ended++; }
};

static void test_works()
{
    reap::resource memory;
    reap::resource_ref borrowed(memory.handle());
    EXPECT(memory == memory && memory != borrowed); // the second is not known without RTTI
    std::pmr::map<int, std::pmr::string> table(&memory);
    for (int i = 0; i < 1000; i++) table.emplace(i, std::string(100, char('a' + i % 26)).c_str());
    std::pmr::vector<std::pmr::string> from(&memory), to(&borrowed);
    from.emplace_back(100, 'f');
    to = std::move(from); // element by element
    EXPECT(table[27][99] == 'b' && to[0][99] == 'f');
    reap::make<Counted>(memory.handle());
    reap::make_unique<Counted>(memory.handle());
    EXPECT(ended == 1);
}

static void test_allocator()
{
    reap::resource memory;
    std::vector<int, reap::allocator<int>> outside(10), inside;
    {
        reap::scope scope(memory.handle());
        inside.assign(1000, 7);
    }
    void *owner;
    EXPECT(reapOf(inside.data(), &owner) == 0 && owner == *memory.handle());
    std::swap(inside, outside);
    EXPECT(outside[999] == 7 && reapOf(inside.data(), &owner) == -1);
}

static void test_ends()
{
    int out[2], status = 0;
    EXPECT(pipe(out) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        reap::options options;
        options.limit = 1000;
        reap::resource memory(options);
        std::pmr::vector<int> numbers(10000, &memory);
        _exit(numbers[0]);
    }
    char said[100] = "";
    EXPECT(read(out[0], said, sizeof said - 1) > 0 && std::string(said) == "reap: Cannot allocate memory\n");
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main()
{
    test_works();
    test_allocator();
    test_ends();
    EXPECT(ended == 2);
    return expect_status();
}
