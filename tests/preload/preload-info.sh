#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# malloc_info's answer is well-formed XML, as Python's parser sees it, and its figures add up.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need python3

for path in $paths; do
    (under "$path" "$top_builddir/tests/preload/preload_figures" xml) >"$tmp/info.xml" 2>"$tmp/allocated"
    python3 - "$tmp/info.xml" "$tmp/allocated" <<'PYTHON' || { echo "$path:" && cat "$tmp/info.xml" && bad=1; }
import sys, xml.etree.ElementTree as xml
info = xml.parse(sys.argv[1]).getroot()
live, large = map(int, open(sys.argv[2]).read().split())
def figure(place, name="size"): return int(info.find(place).get(name))
now, most = figure("system[@type='current']"), figure("system[@type='max']")
assert info.tag == "malloc" and info.get("version")
assert live <= figure("live") <= live + 65536, (live, figure("live"))   # and what stdio has
assert figure("live", "large") == large
assert figure("live") + figure("unused") <= now <= most
assert figure("heaps", "count") >= 1 and figure("heaps", "superblocks") >= 5
assert info.find("heaps").get("path") in ("rseq cid", "rseq cpu", "locked")
PYTHON
done
exit $bad
