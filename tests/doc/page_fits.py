#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_fits.py PAGE: in a browser no part of a page is cut off, folded and unfolded, light and dark, or hangs over the part that it is
in; no label is too small to be read, no picture without words for who does not see it; nothing is asked of the network."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "apache"))
from browser import Browser  # noqa: E402  pylint: disable=wrong-import-position

CUT = """
const bad = [], inside = (part, whole) => part.left >= whole.left - 4 && part.right <= whole.right + 4; // half a letter is nothing
if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page: ${document.documentElement.scrollWidth} of ${innerWidth}`);
for (const e of document.querySelectorAll('body *'))
  if (e.namespaceURI.endsWith('xhtml') && !e.closest('.wide') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth) bad.push(`${e.nodeName} ${e.className}: ${e.textContent.slice(0, 40)}`);
for (const svg of document.querySelectorAll('svg')) {
  const whole = svg.getBoundingClientRect(), boxes = [...svg.querySelectorAll('text')].filter(t => t.checkVisibility()).map(t => [t.textContent, t.getBoundingClientRect()]);
  if (svg.matches('[role=img]') && !svg.ariaLabel) bad.push('a picture without words');
  for (const [i, [name, a]] of boxes.entries()) {
    if (!inside(a, whole) || a.height < 11) bad.push(`a label of ${a.height} pixels: ${name}`);
    for (const [other, b] of boxes.slice(i + 1))
      if (a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(`${name} over ${other}`);
  }
}
return bad;
"""
wrong = []
with Browser() as browser:
    for width, height in ((1280, 900), (768, 1024), (390, 844), (360, 740)):
        for scheme in ("light", "dark"):
            browser.look(width, height, scheme, mobile=width < 500)
            browser.requested()
            browser.open("file://" + os.path.abspath(sys.argv[1]))
            for unfolded in ("false", "true"):
                found = browser.js(f"document.querySelectorAll('details').forEach(d => d.open = {unfolded}); {CUT}")
                wrong += [f"{width} pixels, {scheme}, open {unfolded}: {what}" for what in found]
            wrong += browser.complaints() + [f"asks for {url}" for url in browser.requested() if not url.startswith(("file:", "data:"))]
print(*(f"FAILED: {line}" for line in wrong), sep="\n", end="\n" * bool(wrong))
sys.exit(bool(wrong))
