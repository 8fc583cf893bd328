# SPDX-License-Identifier: Apache-2.0
"""What a case is, in a few words; the head of each benchmark's source says more. By suite and label, the first that fits."""
import re

KNOWN = [
    ("programs|fragmentation.*", [
        ("python3", "word statistics in Python, its own pools off"), ("perl", "word statistics in Perl"), ("lua", "the same in Lua"),
        ("php", "the same in PHP, its own pools off"), ("ruby", "the same in Ruby"), ("gawk", "the same in awk"),
        ("bc", "arithmetic with many digits"), (r"g\+\+", "compiles C++ with many templates"), (r"clang\+\+", "compiles the same"),
        ("sqlite3", "tables of 60,000 rows in memory"), ("redis", "replays a log of commands"), ("xmllint", "reads and formats XML"),
        ("xsltproc", "transforms XML"), ("jq", "groups JSON of 22,000 records"), ("git", "a log with all changes"),
        ("gs", "draws a page of PostScript")]),
    ("small", [
        ("hello", "prints a line"), ("dash|bash", "a shell that has run a loop"), ("sqlite3", "a table of 1000 rows"),
        ("perl", "a hash of 100 words"), ("python3", "has imported json")]),
    ("mallocs", [
        ("pairs", "malloc and free of 64 bytes, one after the other"), ("batch", "500 blocks of 64 bytes, then their frees"),
        ("sizes", "a thousand live blocks of 16 to 1024 bytes, a random one replaced"), ("sizes 100000", "the same with 100,000, beyond the cache")]),
    ("threads|scaling|fractions.*|fourteen|fragmentation", [
        ("threadtest.*", "each thread allocates its share of 100,000 objects of 8 bytes, frees them, again and again"),
        ("larson.*", "servers that replace random blocks, end, and leave them to a new thread"),
        ("shbench.*", "random sizes, freed in random order"), ("prodcons.*", "half of the threads allocate, the others free"),
        ("bleeding.*", "mixed sizes exchanged in a table that all share"), ("storm.*", "20,000 threads that live for 50 objects each"),
        ("scratch.*", "passive false sharing: pieces of one line are given to all, freed, and allocated anew"),
        ("thrash.*", "active false sharing: each thread writes to an object of its own"),
        ("barnes.*", "bodies that pull each other, by a tree that is made anew each round")]),
    ("server.*|policies", [
        ("mt 8.*", "8 threads, a request each"), ("mp 8.*", "8 processes, a request each"), ("event 4.*", "4 threads, requests in stages"),
        ("larson 16", "servers that replace random blocks, end, and leave them to a new thread")]),
    ("busy", [
        ("mixed.*", "sizes up to 128 KiB, a tenth freed by others"), ("phases.*", "all is freed from time to time")]),
    ("pools", [
        (r"request.*", "a child, 100 objects of 16 to 128 bytes, destroy"), ("nested [0-9]+", "nested, in so many threads"),
        ("nested.*", "a child, 60 to 400 objects and three children with 20 each, destroy"), ("three.*", "a child, 3 objects, destroy"),
        ("fill.*", "a child, 5000 objects, destroy"), ("clear.*", "200 KB of objects, clear, again and again"),
        ("trees.*", "a compiler's phases: a tree of up to 15,000 nodes is built, walked twice, destroyed"),
        ("httpd.*", "what Apache did for eleven requests, replayed"), ("perl.*", "what Perl did, replayed in one region"),
        ("churn.*", "10,000 live objects, a random one replaced"), ("phases.*", "of 4000 objects of a size nine in ten are freed, then another size"),
        ("vectors.*", "vectors that double"), ("big.*", "live objects of 32 to 128 KB, a random one replaced"),
        ("messages.*", "one thread makes objects, another frees them"), ("passed.*", "the same in one region that both use"),
        ("alone.*", "one thread, an ordinary region"), ("shared 1.*", "one thread, a region that threads may share"),
        ("shared 2.*", "two threads in one region")]),
    ("custom", [
        ("parser", "a parser of English; its own allocator is a stack"), ("boxed", "balls in a box; lists of freed objects by class"),
        ("gcc", "a compiler's parse, on obstacks"), ("lcc", "a compiler with three regions"), ("httpd", "what Apache did, replayed; its own are APR's pools")]),
    ("memory", [
        ("idle.*", "regions with three objects that nobody uses"), ("hold", "a region with 64 MB of small objects"),
        ("fall", "200,000 objects die at random until a tenth is left")]),
]


def meaning(suite, label):
    for suites, cases in KNOWN:
        if re.fullmatch(suites, suite):
            for pattern, what in cases:
                if re.fullmatch(pattern, label):
                    beyond = "; 16 MB alive, beyond the cache" if suite == "pools" and label.endswith(" out") else ""
                    return what + beyond
    return ""
