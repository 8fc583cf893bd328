// SPDX-License-Identifier: Apache-2.0
// Frames of C++ (shapes.c).
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

extern "C" void shapes_of_cxx();

namespace
{
struct Guard {
    std::string text;
    ~Guard() { text = std::string(text.size() + 40, 'x'); }
};

__attribute__((noinline)) int throws(int n)
{
    Guard guard{std::string(30, 'g')};
    if (n == 0) throw std::runtime_error(std::string(50, 'e'));
    return throws(n - 1) + static_cast<int>(guard.text.size());
}

struct Base {
    virtual ~Base() = default;
    virtual std::string name() const = 0;
};
struct Derived final : Base {
    std::string name() const override { return std::string(100, 'd'); }
};
} // namespace

void shapes_of_cxx()
{
    std::map<int, std::string> map;
    for (int i = 0; i < 20; i++) map[i * 7 % 20] = std::string(static_cast<size_t>(i + 16), 'm');
    const std::unique_ptr<Base> base = std::make_unique<Derived>();
    const std::function<std::string(int)> function = [&map, &base](int i) { return map[i] + base->name(); };
    try {
        (void)throws(static_cast<int>(function(3).size() % 7));
    } catch (const std::exception &error) {
        map[99] = error.what();
    }
}
