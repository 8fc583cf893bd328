#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of reap-status in Chromium: valid HTML, and what it shows of documents that the test makes. Pictures
# of it stay in tests/apache/pictures of the build.
srcdir=${srcdir:-.}
page=$srcdir/apache_module/mod_reap/reap-status.html
pictures=${top_builddir:-.}/tests/apache/pictures

fail() { echo "FAILED: $*"; exit 1; }
. "${srcdir:-.}/tests/support/needs.sh"

need tidy
said=$(tidy -e -q "$page" 2>&1)
[ -z "$said" ] || fail "tidy says: $said"
! grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://' "$page" | grep -v 'www.w3.org/2000/svg' ||
    fail "the page parses text as HTML, or names what is outside"

need python3 chromium chromedriver
rm -rf "$pictures"
exec python3 -B "$srcdir/tests/apache/reap_page.py" "$page" "$pictures"
