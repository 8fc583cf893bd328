# SPDX-License-Identifier: Apache-2.0
"""Inputs of the real programs, the same at any time and place: one generator of numbers, one seed a file."""
import json
import os
import subprocess

ONSETS = ["b", "br", "c", "d", "f", "gl", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w", "z"]
VOWELS = ["a", "e", "i", "o", "u", "ai", "ou"]


class Numbers:
    """xorshift, as in measure.h: Python's own generator may change with its version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        x = self.state
        x ^= x << 13 & 0xffffffff
        x ^= x >> 17
        x ^= x << 5 & 0xffffffff
        self.state = x
        return x % limit

    def word(self):
        """Short ones are commoner, and some far commoner than others, as in texts."""
        kept, self.state = self.state, 1 + self.below(1 + self.below(12000)) * 7919
        made = "".join(ONSETS[self.below(20)] + VOWELS[self.below(7)] for _ in range(1 + self.below(4)))
        self.state = kept
        self.below(2)
        return made

    def words(self, n):
        return " ".join(self.word() for _ in range(n))


def text(path):
    numbers = Numbers(1)
    with open(path, "w") as out:
        for _ in range(30000):
            out.write(numbers.words(4 + numbers.below(8)) + "\n")


def records(path):
    numbers = Numbers(2)
    with open(path, "w") as out:
        json.dump([{"id": i, "kind": numbers.word()[:2], "name": numbers.word(), "note": numbers.words(5),
                    "items": [{"price": numbers.below(1000), "count": numbers.below(9)}
                              for _ in range(1 + numbers.below(6))]} for i in range(22000)], out)


def xml(path, count=30000):
    numbers = Numbers(3)
    with open(path, "w") as out:
        out.write("<?xml version='1.0'?>\n<records>\n")
        for i in range(count):
            out.write(f"<record id='{i}' kind='{numbers.word()[:3]}'><name>{numbers.word()}</name>")
            for _ in range(1 + numbers.below(5)):
                out.write(f"<item price='{numbers.below(1000)}' count='{numbers.below(9)}'>{numbers.words(3)}</item>")
            out.write("</record>\n")
        out.write("</records>\n")


def tables(path):
    numbers = Numbers(4)
    with open(path, "w") as out:
        out.write("BEGIN;CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT);\n"
                  "CREATE TABLE orders(customer INTEGER, day INTEGER, amount REAL, note TEXT);\n")
        for i in range(5000):
            out.write(f"INSERT INTO customers VALUES({i}, '{numbers.word()}');\n")
        for _ in range(60000):
            out.write(f"INSERT INTO orders VALUES({numbers.below(5000)}, {numbers.below(366)}, "
                      f"{numbers.below(100000) / 100}, '{numbers.words(4)}');\n")
        out.write("COMMIT;\n")


def cxx(path):
    """Classes and templates over the standard library's containers."""
    numbers = Numbers(5)
    with open(path, "w") as out:
        for header in "algorithm functional map memory regex set string unordered_map variant vector".split():
            out.write(f"#include <{header}>\n")
        for i in range(22):
            name = f"{numbers.word()}_{i}"
            out.write(f"""
template <class K, int N> struct {name} {{
    std::map<K, std::vector<std::pair<int, std::string>>> values;
    std::variant<int, std::string, std::set<K>> either;
    template <class F> auto each(F f) const {{
        int n = N;
        for (auto &[key, list] : values) for (auto &pair : list) n += f(key, pair.first) + int(pair.second.size());
        return n;
    }}
}};
int use_{name}(const std::string &text) {{
    {name}<std::string, {numbers.below(50)}> a;
    {name}<int, {i}> b;
    a.values[text].emplace_back({i}, text + "{numbers.word()}");
    b.values[{i}].emplace_back(int(text.size()), text);
    std::function<int(int, int)> add = [&](int x, int y) {{ return x + y * {i} + int(a.values.size()); }};
    a.either = std::set<std::string>{{text}};
    return b.each(add) + a.each([](auto &key, int n) {{ return int(key.size()) + n; }});
}}
""")


def functions(path):
    """Plain functions in C, and a main that calls them."""
    numbers = Numbers(6)
    with open(path, "w") as out:
        out.write("int printf(const char *, ...);\n")
        for i in range(40000):
            name = numbers.word()
            out.write(f"struct s{i} {{ int {name}_a, b[{1 + numbers.below(9)}]; struct s{i} *next; }};\n"
                      f"#define M{i}(x) ((x) * {numbers.below(99)} + {i})\n"
                      f"static int f{i}(int n)\n{{\n    struct s{i} s = {{n, {{{i}}}, &s}}; /* {numbers.words(3)} */\n"
                      f"    const char *text = \"{numbers.words(4)}\";\n"
                      f"    for (int i = 0; i < n % 7; i++) s.{name}_a += M{i}(text[i]) ^ s.next->b[0];\n"
                      f"    return s.{name}_a;\n}}\n")
        out.write("int main(void)\n{\n    unsigned n = 1;\n")
        out.write("".join(f"    n += f{i}(n % 100);\n" for i in range(40000)))
        out.write('    printf("%u\\n", n);\n}\n')


def classes(path):
    """C++ without headers, for a checker."""
    numbers = Numbers(7)
    with open(path, "w") as out:
        for i in range(400):
            out.write(f"""
class C{i} {{
public:
    explicit C{i}(int n) : count(n), text("{numbers.words(3)}") {{}}
    int sum(const int *list, int n) const {{
        int total = count;
        for (int k = 0; k < n; ++k) {{
            if (list[k] > {numbers.below(100)}) total += list[k] * {i};
            else if (list[k] < 0) return total - {numbers.below(9)};
            switch (list[k] % 3) {{ case 0: total++; break; case 1: total--; break; default: break; }}
        }}
        return total;
    }}
private:
    int count;
    const char *text;
}};
int use{i}(int n) {{ int list[8] = {{1, 2, n}}; C{i} c(n); return c.sum(list, 8); }}
""")


def graph(path):
    numbers = Numbers(8)
    with open(path, "w") as out:
        out.write("digraph g {\n")
        for i in range(1, 640):
            out.write(f"  n{i} [label=\"{numbers.words(2)}\"];\n  n{numbers.below(i)} -> n{i};\n")
            if i % 4 == 0:
                out.write(f"  n{numbers.below(i)} -> n{i} [label=\"{numbers.word()}\"];\n")
        out.write("}\n")


def document(path):
    """A manual page of many sections."""
    numbers = Numbers(9)
    with open(path, "w") as out:
        out.write('.TH LONG 1 "2000-01-01"\n')
        for i in range(3000):
            out.write(f".SH {numbers.words(3)}\n{numbers.words(60)}\n.TP {1 + i % 9}\n.B {numbers.word()}\n"
                      f"{numbers.words(30)}\n.PP\n\\fB{numbers.words(8)}\\fP {numbers.words(40)}\n")


def repository(path):
    """Three hundred commits on sixty files, by fast-import: names, dates and contents are all fixed."""
    numbers = Numbers(10)
    files = [[numbers.words(8) for _ in range(150)] for _ in range(60)]
    stream = []
    for commit in range(300):
        message = numbers.words(12)
        stream.append(f"commit refs/heads/main\nmark :{commit + 1}\ncommitter A U Thor <a@example.com> "
                      f"{1700000000 + commit * 1000} +0000\ndata {len(message)}\n{message}\n")
        for _ in range(12):
            number = numbers.below(60)
            for _ in range(10):
                files[number][numbers.below(150)] = numbers.words(8)
            content = "\n".join(files[number]) + "\n"
            stream.append(f"M 644 inline d{number % 7}/file{number}.txt\ndata {len(content)}\n{content}\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "--bare", path], env=environment, check=True)
    subprocess.run(["git", "--git-dir", path, "fast-import", "--quiet"], env=environment, check=True,
                   input="".join(stream).encode())


def commands(path):
    """A log of commands, which redis-server replays when it starts."""
    numbers = Numbers(11)
    with open(path, "w", newline="") as out:
        def put(*words):
            out.write(f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in map(str, words)))
        put("SELECT", 0)
        for i in range(250000):
            key, value = f"{numbers.word()}:{numbers.below(4000)}", numbers.words(1 + numbers.below(8))
            kind = numbers.below(8)
            if kind < 2:
                put("SET", "s:" + key, value)
            elif kind == 2:
                put("HSET", "h:" + key[:5], key, value)
            elif kind == 3:
                put("ZADD", "z:" + key[:4], numbers.below(100000), key)
            elif kind == 4:
                put("RPUSH", "l:" + key[:4], value)
            elif kind == 5:
                put("APPEND", "s:" + key, value)
            elif kind == 6:
                put("DEL", "s:" + key, "l:" + key[:4])
            else:
                put("SADD", "t:" + key[:3], key)


MAKERS = {"text.txt": text, "records.json": records, "records.xml": xml, "tables.sql": tables, "templates.cc": cxx,
          "functions.c": functions, "classes.cc": classes, "graph.dot": graph, "document.1": document,
          "repository.git": repository, "commands.aof": commands}


def make(directory, names):
    """Makes those that are not there yet; under another name until it is whole."""
    os.makedirs(directory, exist_ok=True)
    for name in names:
        path = os.path.join(directory, name)
        if not os.path.exists(path):
            MAKERS[name](path + ".new")
            os.rename(path + ".new", path)
