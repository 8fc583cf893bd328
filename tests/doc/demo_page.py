#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demo_page.py PAGE: in a browser no part of the demo's page is cut off, or hangs over the part that it is in."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "apache"))
from browser import Browser  # noqa: E402  pylint: disable=wrong-import-position

CUT = """
const bad = [], inside = (part, whole) => part.left >= whole.left - 1 && part.right <= whole.right + 1;
if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page: ${document.documentElement.scrollWidth} of ${innerWidth}`);
for (const e of document.querySelectorAll('body *'))
  if (e.namespaceURI.endsWith('xhtml') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth) bad.push(`${e.nodeName} ${e.className}: ${e.textContent.slice(0, 40)}`);
for (const text of document.querySelectorAll('svg text'))
  if (text.checkVisibility() && !inside(text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect())) bad.push(`a label: ${text.textContent}`);
for (const svg of document.querySelectorAll('svg')) {
  const boxes = [...svg.querySelectorAll('text')].filter(t => t.checkVisibility()).map(t => [t.textContent, t.getBoundingClientRect()]);
  for (const [i, [name, a]] of boxes.entries()) for (const [other, b] of boxes.slice(i + 1))
    if (a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(`${name} over ${other}`);
}
return bad;
"""
failures = 0
with Browser() as browser:
    for width, height in ((1280, 900), (768, 1024), (390, 844), (360, 740)):
        for scheme in ("light", "dark"):
            browser.look(width, height, scheme, mobile=width < 500)
            browser.open("file://" + os.path.abspath(sys.argv[1]))
            for found in browser.js(CUT):
                print("FAILED: %d pixels, %s: %s" % (width, scheme, found))
                failures += 1
sys.exit(failures > 0)
