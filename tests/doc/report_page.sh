#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The report's page in a browser, of results that were made up: nothing is wider than a telephone or a window, light and
# dark, folded and unfolded; no picture's words leave the picture; nothing is asked of the network.
. "${srcdir:-.}/tests/support/script.sh"
need python3 chromium chromedriver
mkdir "$tmp/parts"
python3 "$srcdir/tests/doc/report_parts.py" "$srcdir/bench" "$tmp/parts" || exit 1
python3 - "$srcdir/tests/apache" "$tmp/parts" <<'END'
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from browser import Browser

WIDE = """const root = document.documentElement, width = root.clientWidth;
if (root.scrollWidth <= width) return [];
return [`${root.scrollWidth} of ${width}`, ...[...document.querySelectorAll('body *')].filter(e =>
  !e.closest('.wide') && e.getBoundingClientRect().right > width + 1).slice(0, 5).map(e => e.nodeName + ' ' + e.textContent.slice(0, 40))];"""
# Words outside of their picture, as far as it is shown; half a letter is nothing.
OUTSIDE = """return [...document.querySelectorAll('svg text')].filter(text => {
  const inner = text.getBoundingClientRect(), outer = text.ownerSVGElement.getBoundingClientRect();
  return outer.width && inner.width && (inner.left < outer.left - 4 || inner.right > outer.right + 4);
}).map(text => text.textContent);"""
# Each picture has words of its own for who does not see it, and is large enough to be read.
SMALL = """return [...document.querySelectorAll('svg[role=img]')].filter(svg => {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return !svg.ariaLabel || (box.width && box.width < 0.85 * view.width);
}).map(svg => svg.ariaLabel || 'a picture without a label');"""
wrong = []
with Browser() as browser:
    for width, scheme in ((390, "dark"), (1280, "light"), (390, "light"), (1280, "dark")):
        browser.look(width, 800, scheme, mobile=width == 390)
        browser.requested()
        browser.open("file://" + sys.argv[2] + "/report.html")
        for unfolded in ("false", "true"):
            browser.js(f"document.querySelectorAll('details').forEach(d => d.open = {unfolded})")
            for what, script in (("wider than the window", WIDE), ("outside of its picture", OUTSIDE), ("too small", SMALL)):
                wrong += [f"{width}, {scheme}, open {unfolded}: {what}: {found}" for found in browser.js(script)]
        wrong += browser.complaints()
        wrong += [f"asks for {url}" for url in browser.requested() if not url.startswith(("file:", "data:"))]
print(*wrong, sep="\n", end="\n" * bool(wrong))
sys.exit(bool(wrong))
END
