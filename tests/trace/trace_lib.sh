# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/trace/*.sh: records what tests/trace/traced does, and reads it.
. "${srcdir:-.}/tests/support/script.sh"
set -u
LC_ALL=C
export LC_ALL
build=${top_builddir:-.}
libs=$(cd "$build/.libs" && pwd)
traced=$(realpath "$build/tests/trace/traced")
analyse=$build/tools/trace/reap-analyse
need_file "$libs/libreap-trace.so" libreap-trace

# record NAME MODE [OPTIONS [PRELOAD]]: to $tmp/NAME; what is said goes to $tmp/NAME.said, the status to $status.
record() {
    # shellcheck disable=SC2034  # for those who source this
    REAP_TRACE=$tmp/$1${3-} LD_PRELOAD=$libs/libreap-trace.so${4:+:$4} "$traced" "$2" 2>"$tmp/$1.said" && status=0 || status=$?
}

# lives TRACE: "OBJECTS of SIZE" for each bucket of sizes, and what was said.
analysed() { "$analyse" --json "$1" >"$tmp/json" 2>"$tmp/remarks"; }

# bucket N: objects of N/2+1 to N bytes in $tmp/json.
bucket() { sed -n 's/^ "sizes": \[\(.*\)\],\{0,1\}$/\1/p' "$tmp/json" | tr -d ' ' | sed 's/\],\[/\n/g; s/[][]//g' | awk -F, -v n="$1" '$1 == n { print $2; found = 1 } END { if (!found) print 0 }'; }
field() { sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$tmp/json" | head -n 1; }
