/* SPDX-License-Identifier: Apache-2.0 */
// Under fault_run: new throws std::bad_alloc, the nothrow forms are null, after the new handler was asked.
#include "support/expect.h"

#include <cstring>
#include <new>
#include <string>
#include <vector>

static int handled;

static void handler()
{
    handled++;
    std::set_new_handler(nullptr);
}

template <typename F> static void *attempt(F call, std::size_t size)
{
    void *block = nullptr;
    handled = 0;
    std::set_new_handler(handler);
    try {
        block = call();
    } catch (const std::bad_alloc &) {
        EXPECT(handled == 1);
    }
    EXPECT(block || handled == 1);
    if (block) std::memset(block, 1, size);
    return block;
}

int main()
{
    for (std::size_t size : {20, 3000, 40000, 3000000, 9000000}) {
        std::align_val_t alignment{256};
        void *a = attempt([=] { return operator new(size); }, size);
        void *b = attempt([=] { return operator new[](size); }, size);
        void *c = attempt([=] { return operator new(size, alignment); }, size);
        void *d = attempt([=] { return operator new(size, std::nothrow); }, size);
        void *e = attempt([=] { return operator new[](size, alignment, std::nothrow); }, size);
        operator delete(a);
        operator delete[](b);
        operator delete(c, alignment);
        operator delete(d, std::nothrow);
        operator delete[](e, alignment, std::nothrow);
    }
    std::set_new_handler(nullptr);
    try {
        std::vector<std::string> words;
        for (int i = 0; i < 20000; i++) words.push_back(std::string(100, 'x'));
        EXPECT(words[10000].size() == 100);
    } catch (const std::bad_alloc &) {
    }
    return expect_status();
}
