#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table in tests/README.md: each module of lib/, tools/ask/ and tools/common/ is in it once, each test that it names
# is there and is run. A test's name is there once. What make check shortens is in check-long; a test is in make check or
# in check-system.
. "${srcdir:-.}/tests/support/script.sh"
cd "$srcdir" || exit 99

sed -n 's,^| `\(\(tools/\)*[a-z]*/[a-z0-9_][a-z0-9_-]*\)` | \(.*\) |$,\1 \3,p' tests/README.md | tr -d '`,' >"$tmp/table"
[ -s "$tmp/table" ] || { echo "tests/README.md has no table of modules"; exit 99; }
cut -d' ' -f1 "$tmp/table" | sort >"$tmp/listed"
ls lib/*/*.[ch] tools/ask/*.[ch] tools/common/*.[ch] | sed 's,^lib/,,; s,\.[ch]$,,' | sort -u >"$tmp/modules"
diff "$tmp/modules" "$tmp/listed" | sed -n 's/^< /tests\/README.md lacks /p; s/^> /tests\/README.md has, once too often: /p' >"$tmp/diff"
[ ! -s "$tmp/diff" ] || { cat "$tmp/diff"; bad=1; }

# A rule's list, of all .am files: "list VARIABLES" prints each word of it.
list() {
    cat tests/*.am tests/*/*.am | sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' |
        sed -n "s/^\($1\) *+*= *//p" | tr ' \t' '\n\n' | sed -n 's,^\$(\(.*\))$,=\1,p; /^tests/p'
}
# The same, with the lists that it names.
words() {
    for word in $(list "$1"); do
        case $word in =*) words "${word#=}" ;; *) echo "$word" ;; esac
    done
}
words 'TESTS\|SYSTEM_TESTS\|VALGRIND_TESTS' | sort -u >"$tmp/run"
words SYSTEM_TESTS | sort -u >"$tmp/system"
words LONG_TESTS | sort -u >"$tmp/long"
[ "$(wc -l <"$tmp/run")" -gt 50 ] || { echo "the .am files name no tests"; exit 99; }
for test in $(cut -d' ' -f2- "$tmp/table"); do
    case $test in *.sh) files=$test ;; *) files="$test.c $test.cc" ;; esac
    found=0
    for file in $files; do found=$((found + $(find tests -name "$file" | wc -l))); done
    [ $found = 1 ] || wrong "tests/README.md names $test, of which there are $found"
    grep -q "/$test\$" "$tmp/run" || wrong "tests/README.md names $test, which nothing runs"
done
same=$(sed 's,.*/,,' "$tmp/run" | sort | uniq -d)
[ -z "$same" ] || wrong "more than one test has the name of:" $same
twice=$(words TESTS | sort -u | comm -12 - "$tmp/system")
[ -z "$twice" ] || wrong "in TESTS and in SYSTEM_TESTS:" $twice

for source in $(grep -lE '\b(steps_of|shorter)\(|REAP_TEST_SHORT' $(find tests -name '*.c' -o -name '*.sh') |
    grep -v -e '^tests/support/' -e '/table\.sh$'); do
    test=${source%.c}
    grep -qx "$test" "$tmp/long" || wrong "$source is shortened, and not in LONG_TESTS"
done
echo "$(wc -l <"$tmp/listed") modules, $(wc -l <"$tmp/run") tests, $(wc -l <"$tmp/system") in check-system"
exit $bad
