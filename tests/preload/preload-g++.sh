#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# g++ compiles a template-heavy file to the same bytes; its driver starts the compiler by vfork.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need g++ sha256sum

cat >"$tmp/work.cc" <<'CXX'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int n> struct Fibonacci { static constexpr long value = Fibonacci<n - 1>::value + Fibonacci<n - 2>::value; };
template <> struct Fibonacci<0> { static constexpr long value = 0; };
template <> struct Fibonacci<1> { static constexpr long value = 1; };
template <std::size_t... i> long sum(std::index_sequence<i...>) { return (Fibonacci<i % 80>::value + ... + 0); }

using Value = std::variant<int, double, std::string, std::vector<int>, std::map<std::string, std::shared_ptr<int>>>;

int main()
{
    std::unordered_map<std::string, std::function<Value(Value)>> table;
    table["twice"] = [](Value v) { return std::visit([](auto &x) -> Value { return x; }, v); };
    std::vector<std::tuple<int, std::string, double>> rows;
    for (int i = 0; i < 100; i++) rows.emplace_back(i * 7919 % 101, std::to_string(i), i / 3.0);
    std::sort(rows.begin(), rows.end());
    std::cout << std::get<1>(rows[7]) << table.size() << sum(std::make_index_sequence<300>()) << '\n';
}
CXX

work() {
    cp "$tmp/work.cc" . && g++ -std=c++17 -O1 -c work.cc && sha256sum work.o && g++ work.o -o work && ./work
}
compare_work
