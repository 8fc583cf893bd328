#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The report's page in a browser, of results that were made up (page_fits.py).
. "${srcdir:-.}/tests/support/script.sh"
need python3 chromium chromedriver
told=$(python3 "$srcdir/bench/report.py" --help 2>&1 >/dev/null) || case $told in "report: no "*) skip "${told#report: }" ;; esac
mkdir "$tmp/parts" && python3 "$srcdir/tests/doc/report_parts.py" "$srcdir/bench" "$tmp/parts" || exit 1
python3 -B "$srcdir/tests/doc/page_fits.py" "$tmp/parts/report.html"
