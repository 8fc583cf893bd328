#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of reap-status in a real browser.

reap_page.py PAGE PICTURES        serves PAGE with documents of reap_page_data, and looks at what the browser makes of it
reap_page.py --url URL PICTURES   opens the page of a server that runs on reaps
reap_page.py --stock URL PICTURES the same, of a server on stock pools
reap_page.py --serve PAGE [NAME]  serves PAGE with one document, to be looked at by hand
"""
import http.server
import json
import os
import sys
import threading
import time

from browser import Browser
from reap_page_data import DOCUMENTS, HOSTILE, MIB, normal, prefork

POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
LOOKS = {"light": (1280, 900, "light"), "dark": (1280, 900, "dark"), "narrow": (360, 740, "light"),
         "narrow-dark": (360, 740, "dark"), "tablet": (768, 1024, "light"), "wide": (1920, 1080, "light")}
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what, flush=True)


# --- the server -----------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path == "/reap-status":
            self.answer(200, "text/html; charset=utf-8", self.server.page)
        elif self.path == "/reap-status?json" and self.server.broken:
            self.answer(*self.server.broken)
        elif self.path == "/reap-status?json":
            self.server.asked += 1
            made = DOCUMENTS[self.server.name](self.server.asked - 1)
            self.answer(200, "application/json", json.dumps(made).encode())
        else:
            self.answer(404, "text/plain", b"not here")

    def answer(self, status, kind, body):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Content-Security-Policy", POLICY)):
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            pass  # the browser has left

    def log_message(self, *_):
        pass


class Server:
    """Serves the page on a free port of 127.0.0.1; can go away and come back on the same port."""

    def __init__(self, page):
        with open(page, "rb") as file:
            self.page = file.read()
        self.port = 0
        self.start()

    def start(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.http.server_address[1]
        self.http.page, self.http.name, self.http.broken, self.http.asked, self.http.paths = self.page, "normal", None, 0, []
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/reap-status" % self.port

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def show(self, browser, name):
        """Opens the page with this document, and returns once it is drawn."""
        self.http.name, self.http.asked, self.http.broken = name, 0, None
        browser.open(self.url)
        wait_for_figures(browser, name)


def wait_for_figures(browser, name):
    if not browser.wait("return document.querySelector('.tiles') !== null"):
        sys.exit("FAILED: %s: no figures; the console says %s" % (name, browser.complaints()))


# --- what is looked at ------------------------------------------------------------------------------

# Text whose contrast with what is behind it is too low: 4.5 to 1, and 3 to 1 where it is large.
CONTRAST = """
const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return {rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1}; };
const light = rgb => rgb.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const behind = node => { for (; node; node = node.parentElement) { const b = parse(getComputedStyle(node).backgroundColor);
  if (b.a === 1) return b.rgb; } return [255, 255, 255]; };
const low = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement, style = getComputedStyle(node);
  if (!walker.currentNode.data.trim() || !node.checkVisibility() || ['SCRIPT', 'NOSCRIPT'].includes(node.nodeName)) continue;
  const text = parse(node.namespaceURI.includes('svg') ? style.fill : style.color).rgb;
  const [a, b] = [light(text), light(behind(node))].sort((x, y) => y - x), size = parseFloat(style.fontSize);
  if ((a + .05) / (b + .05) < (size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5))
    low.add(`${walker.currentNode.data.slice(0, 30)}: ${((a + .05) / (b + .05)).toFixed(2)}`);
}
return [...low];
"""

# Elements that reach beyond the window, unless something around them cuts them off.
OVERFLOW = """
const root = document.documentElement, width = root.clientWidth;
if (root.scrollWidth <= width) return [];
return [`page: ${root.scrollWidth} of ${width}`, ...[...document.querySelectorAll('main *')]
  .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 5).map(e => e.nodeName + '.' + e.className)];
"""

# What a reader of the page without eyes needs; a button has a name, a table its headers and a caption.
ACCESS = """
const bad = [];
for (const b of document.querySelectorAll('button, select'))
  if (!(b.textContent.trim() || b.getAttribute('aria-label')) && !b.labels?.length) bad.push('no name: ' + b.outerHTML.slice(0, 90));
for (const t of document.querySelectorAll('table'))
  if (!t.caption || !t.querySelector('thead th[scope=col]')) bad.push('table: ' + t.dataset.table);
for (const s of document.querySelectorAll('section'))
  if (!document.getElementById(s.getAttribute('aria-labelledby'))?.textContent) bad.push('section: ' + s.id);
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
if (new Set(ids).size !== ids.length) bad.push('an id is there twice');
return bad;
"""


def look_over(browser, server, what):
    """What holds of the page whatever it shows."""
    for line in browser.complaints():
        expect(False, "%s: the console says %s" % (what, line))
    base = server.url.rsplit("/", 1)[0] + "/reap-status"
    outside = [u for u in browser.requested() if u not in (base, base + "?json") and not u.startswith(("data:", "chrome:"))]
    expect(not outside, "%s: other requests: %s" % (what, outside))
    for script, name in ((OVERFLOW, "wider than the window"), (CONTRAST, "low contrast"), (ACCESS, "access")):
        found = browser.js(script)
        expect(not found, "%s: %s: %s" % (what, name, found))


def text(browser, selector):
    return browser.js("return document.querySelector(args[0])?.textContent ?? ''", selector)


def human(n):
    """As the page writes a size."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1023.5 or unit == "GiB":
            digits = 0 if unit == "B" or n >= 99.95 else 1 if n >= 9.995 else 2
            return "%g %s" % (float("%.*f" % (digits, n)), unit)
        n /= 1024


def still(browser):
    """Returns once nothing moves."""
    browser.js("await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    browser.wait("return document.getAnimations().length === 0")


def settled(browser, path):
    still(browser)
    browser.picture(path)


# --- checks -------------------------------------------------------------------------------------------

def check_looks(browser, server, pictures):
    """Each scheme and width, all open; the figures are those of the document."""
    made = normal(0)
    for name, (width, height, scheme) in LOOKS.items():
        browser.look(width, height, scheme, mobile="narrow" in name)
        server.show(browser, "normal")
        totals = made["totals"]
        expect(text(browser, "#tile-bytes .figure") == human(totals["bytes"]), name + ": bytes in pools")
        expect(text(browser, "#tile-rss .figure") == human(totals["pss"]), name + ": PSS")
        expect(human(totals["rss"]) in text(browser, "#tile-rss"), name + ": RSS")
        expect(text(browser, "#tile-outside .figure") == human(totals["outside"]), name + ": in no pool")
        expect(text(browser, "#tile-requests .figure") == "14", name + ": requests")
        expect(text(browser, "#tile-over .figure") == "3", name + ": over the limit")
        expect("in 10 min, 12 since the start; limit 64 MiB a request" in text(browser, "#tile-over"), name + ": since when")
        exact = browser.js("return document.querySelector('#tile-bytes [title]').title")
        expect(exact == "{:,} bytes".format(totals["bytes"]), name + ": exact bytes, " + exact)
        for tag in made["tags"]:
            expect(tag["tag"] in text(browser, "#tags") and human(tag["bytes"]) in text(browser, "#tags"), name + ": tag " + tag["tag"])
        for row in made["requests"]:
            expect(row["uri"] in text(browser, "#requests") and human(row["peak"]) in text(browser, "#requests"), name + ": request")
        for each in made["processes"]:
            expect(human(each["rss"] - each["pools"]["bytes"]) in text(browser, "#processes"), name + ": what is in no pool")
        expect("mod_ssl" not in text(browser, "#processes"), name + ": a process begins closed")
        browser.js("document.querySelector('#processes .toggle').click()")
        held = made["processes"][3]["backend"]
        for what in ("mod_ssl", human(held["os_given_bytes"]), human(held["os_returned_bytes"]), "Superblocks", "rseq cid"):
            expect(what in text(browser, "#processes"), "%s: %s of an open process" % (name, what))
        look_over(browser, server, name)
        settled(browser, "%s/%s.png" % (pictures, name))


def check_sums(browser, server):
    """The tree's root holds what the process holds; areas of the map are as the bytes."""
    browser.look(1280, 900, "light")
    server.show(browser, "normal")
    browser.js("document.querySelector('#processes .toggle').click()")
    still(browser)
    largest = normal(0)["processes"][3]
    root = browser.js("return document.querySelector('[data-pool] td:last-child span').title")
    expect(root == "{:,} bytes".format(largest["pools"]["bytes"]), "the root's total: " + root)
    areas = browser.js("""return [...document.querySelectorAll('.cell:not(.group)')].map(c =>
        [c.offsetWidth * c.offsetHeight, +c.title.replace(/[^0-9]/g, '')]).filter(([area]) => area > 3000)""")
    ratios = [area / size for area, size in areas]
    expect(len(ratios) > 8 and max(ratios) < 1.6 * min(ratios), "the map's areas: %s" % areas)
    inside = browser.js("""const m = document.getElementById('map').getBoundingClientRect();
        return [...document.querySelectorAll('.cell')].every(c => { const r = c.getBoundingClientRect();
        return r.left >= m.left - 1 && r.top >= m.top - 1 && r.right <= m.right + 1 && r.bottom <= m.bottom + 1; })""")
    expect(inside, "cells lie within the map")
    filled = browser.js("""const m = document.getElementById('map'), top = [...m.children].filter(c => !c.dataset.cell.includes('/'));
        return top.reduce((sum, c) => sum + c.offsetWidth * c.offsetHeight, 0) / (m.clientWidth * m.clientHeight)""")
    expect(0.98 < filled < 1.02, "the map is filled: %.3f" % filled)


def wait_for_look(browser, server, more=1):
    """Waits until the server was asked so many times more, and the answer is on the page."""
    wanted = server.http.asked + more
    end = time.monotonic() + 30
    while server.http.asked < wanted and time.monotonic() < end:
        time.sleep(0.05)
    expect(server.http.asked >= wanted, "the page asks again")
    browser.wait("return !args[0] || view.data?.server?.time >= args[0]", normal(server.http.asked - 1)["server"]["time"])


def check_refresh(browser, server):
    """Figures change by themselves; what is open, where the user is and what has the focus stay."""
    browser.look(1280, 900, "light")
    server.show(browser, "growing")
    browser.js("const e = document.getElementById('every'); e.value = '1'; e.dispatchEvent(new Event('change'))")
    wait_for_look(browser, server)
    before = text(browser, "#tile-bytes .figure")
    browser.js("document.querySelector('#processes .toggle').click()")
    browser.js("document.querySelector('[data-pool] .toggle[aria-expanded=true]').click()")  # the root is closed
    browser.js("document.querySelector('#requests .url').click()")
    browser.js("scrollTo(0, 900); document.querySelector('#tags thead button').focus({preventScroll: true})")
    place = browser.js("document.querySelector('#processes tbody tr').marked = true; return scrollY")
    expect(place > 100, "the page scrolls")
    wait_for_look(browser, server, 3)
    expect(text(browser, "#tile-bytes .figure") != before, "figures change: " + before)
    kept = browser.js("""return {place: scrollY, row: document.querySelector('#processes tbody tr').marked === true,
        inside: document.querySelectorAll('#processes .inside').length, pools: document.querySelectorAll('[data-pool]').length,
        url: document.querySelectorAll('#requests .url[aria-expanded=true]').length, focus: document.activeElement.textContent}""")
    wanted = {"place": place, "row": True, "inside": 1, "pools": 1, "url": 1, "focus": "Tag"}
    expect(kept == wanted, "kept over refreshes: %s, not %s" % (kept, wanted))
    expect("▲ +" in text(browser, "#growers"), "growers: " + text(browser, "#growers"))
    expect("request /reportlibperl.so.5.369003 MiB" in text(browser, "#mallocs"), "malloc: " + text(browser, "#mallocs"))
    expect("/grows" in text(browser, "#requests tbody tr"), "the request that grows is the first")


def check_pause(browser, server):
    browser.click("#pause")
    browser.wait("return !looking")  # one may be under way
    asked = server.http.asked
    time.sleep(2.5)
    expect(server.http.asked == asked and text(browser, "#pulse") == "Paused", "a paused page does not ask")
    browser.click("#pause")
    wait_for_look(browser, server)
    expect(text(browser, "#pulse") == "Live", "it goes on")
    hide = "Object.defineProperty(document, 'hidden', {value: args[0], configurable: true}); document.dispatchEvent(new Event('visibilitychange'))"
    browser.js(hide, True)
    browser.wait("return !looking")
    asked = server.http.asked
    time.sleep(2.5)
    expect(server.http.asked == asked, "a hidden page does not ask")
    browser.js(hide, False)
    wait_for_look(browser, server)
    look_over(browser, server, "pause")


def check_sorting(browser, server):
    server.show(browser, "normal")
    column = """const h = [...document.querySelectorAll('[data-table=requests] thead th')], at = h.findIndex(t => t.textContent.startsWith(args[0]));
        if (args[1]) h[at].firstChild.click();
        return {sort: h[at].getAttribute('aria-sort'), cells: [...document.querySelectorAll('[data-table=requests] tbody tr')].map(r => r.cells[at])
          .map(c => c.querySelector('[title]')?.title.replace(/[^0-9]/g, '') ?? c.textContent)}"""
    sizes = [r["bytes"] for r in normal(0)["requests"]]
    begins = browser.js(column, "Holds", False)
    expect([int(c) for c in begins["cells"]] == sorted(sizes, reverse=True) and begins["sort"] == "descending", "largest first")
    up = browser.js(column, "Holds", True)
    expect([int(c) for c in up["cells"]] == sorted(sizes) and up["sort"] == "ascending", "smallest first: %s" % up)
    paths = browser.js(column, "Process", True)
    expect(paths["cells"] == sorted(paths["cells"], reverse=True) and paths["sort"] == "descending", "by process: %s" % paths)
    browser.js("document.querySelector('#processes .toggle').click()")
    totals = """return [...document.querySelectorAll('[data-pool]')].filter(r => r.querySelector('.level').style.getPropertyValue('--level') === '1')
        .map(r => +r.lastChild.querySelector('[title]').title.replace(/[^0-9]/g, ''))"""
    down = browser.js(totals)
    browser.js("[...document.querySelectorAll('[data-table=tree] thead button')].at(-1).click()")
    expect(len(down) > 2 and down == sorted(down, reverse=True) and browser.js(totals) == down[::-1], "the tree by total: %s" % down)


def check_map(browser, server, pictures):
    """Into a process, into a tag, by mouse and by keys, and back."""
    browser.look(1280, 900, "light")
    server.show(browser, "normal")
    browser.click(".cell:not(.group)")
    expect("Process 4103" in text(browser, "#crumbs"), "a click goes into the process: " + text(browser, "#crumbs"))
    settled(browser, pictures + "/map-process.png")
    browser.js("[...document.querySelectorAll('.cell.group')].find(c => c.textContent.startsWith('request')).focus()")
    expect("request in process 4103" in text(browser, "#details"), "focus gives details: " + text(browser, "#details"))
    browser.keys("\ue007")  # Enter
    expect(text(browser, "#crumbs").endswith("›request"), "Enter goes into the tag: " + text(browser, "#crumbs"))
    requests = [r for r in normal(0)["processes"][3]["tree"] if r["tag"] == "request"]
    expect(browser.js("return document.querySelectorAll('.cell').length") == len(requests), "one cell for each pool")
    expect(browser.js("return document.activeElement.className.includes('cell')"), "the focus stays in the map")
    settled(browser, pictures + "/map-tag.png")
    browser.js("document.querySelector('.cell').focus()")
    first = text(browser, "#details")
    browser.keys("\ue014")  # the right arrow
    second = text(browser, "#details")
    expect("MiB" in first + second and first != second and second.startswith("pool request"), "arrow keys: %s" % second)
    browser.keys("\ue00c")  # Escape
    expect(text(browser, "#crumbs").endswith("Process 4103"), "Escape goes out")
    browser.click("#crumbs button")
    expect(text(browser, "#crumbs") == "All processes", "the way back")
    browser.js("document.getElementById('curve').focus()")
    now = browser.js("return document.getElementById('curve').getAttribute('aria-valuetext')")
    browser.keys("\ue012", "\ue012")  # the left arrow
    earlier = browser.js("return document.getElementById('curve').getAttribute('aria-valuetext')")
    expect("in pools" in now and now != earlier, "the curve by keys: %s, %s" % (now, earlier))
    look_over(browser, server, "map")


def check_limits(browser, server):
    """Limits in sections are known, and what was beyond them long ago is no alarm."""
    browser.look(1280, 900, "light")
    server.show(browser, "sections")
    tile = text(browser, "#tile-over")
    expect("no limit" not in tile and "6 limits in sections or virtual hosts" in tile, "sections: " + tile)
    expect("12 since the start; children ended by ReapLimitHard: 1; " in tile, "sections: " + tile)
    expect(text(browser, "#tile-over .figure") == "0" and "12 since the start" in tile, "sections: " + tile)
    expect(browser.js("return !document.getElementById('tile-over').className"), "sections: no alarm")
    expect("Location" not in text(browser, "#requests"), "sections: the list begins closed")
    browser.click(".limits .toggle")
    for line in ("ReapLimitRequest 4 MiB in <Location /runaway> (/etc/apache2/apache2.conf:12)",
                 "ReapLimitConnection 9 MiB in <VirtualHost *:80> of shop.example (/etc/apache2/apache2.conf:40)",
                 "ReapLimitConnection 8 MiB in <VirtualHost *:80> of <b>shop.example (/etc/apache2/apache2.conf:60)", "and 3 more",
                 "1,200 read at run time, each for its request"):
        expect(line in text(browser, "#requests"), "sections: '%s' in the list" % line)
    look_over(browser, server, "sections")
    server.show(browser, "empty")
    expect("no limit is set" in text(browser, "#tile-over"), "no limit: " + text(browser, "#tile-over"))


def check_shared(browser, server, pictures):
    """What forty processes share is in the map once, for each generation."""
    browser.look(1280, 900, "light")
    server.show(browser, "prefork")
    tree = prefork(0)["processes"][0]["tree"]
    inherited, own = (sum(r["bytes"] for r in tree if r["inherited"] == which) for which in (True, False))
    areas = browser.js("""return [...document.querySelectorAll('.cell')].filter(c => !c.dataset.cell.includes('/'))
        .map(c => [c.dataset.cell, +c.title.replace(/[^0-9]/g, '')])""")
    shared = [size for key, size in areas if key.startswith("shared")]
    expect(shared == [inherited, inherited], "shared by each generation: %s" % areas)
    expect([size for key, size in areas if not key.startswith("shared")] == 40 * [own], "their own: %s" % areas)
    expect("shared by 38" in text(browser, "#map") and "shared by 2" in text(browser, "#map"), "shared: labels")
    expect("shared by 40" in text(browser, "#tags"), "shared: tags")
    expect("that 40 processes share" in text(browser, "#tile-bytes"), "shared: " + text(browser, "#tile-bytes"))
    expect("not known" in text(browser, "#tile-rss"), "PSS: " + text(browser, "#tile-rss"))
    expect("−" not in text(browser, "#growers") and "▲ +" in text(browser, "#growers"), "growers grow: " + text(browser, "#growers"))
    expect("286 MiB" in text(browser, "#requests"), "what a process has in no pool, beside its request: " + text(browser, "#requests"))
    ended = text(browser, "#ended")
    expect("since the start 7 for ReapChildLimit, 1 killed or crashed" in ended and "ReapChildLimit" in ended, "children that ended: " + ended)
    for what in "6900", "845 MiB", "800 MiB", "51,234", "2 h", "GET /fatal?x=1", "killed, signal 9", "312 MiB":
        expect(what in ended, "children that ended, %s: %s" % (what, ended))
    largest = text(browser, "#largest")
    expect("/report/0" in largest and "denied" in largest and "20 MiB" in largest and "Show more: 2 requests" in largest, "the largest: " + largest)
    cut = "return [...document.querySelectorAll('#ended td, #largest td')].filter(td => td.scrollWidth > td.clientWidth).map(td => td.textContent)"
    expect(browser.js(cut) == [], "cells that are cut: %s" % browser.js(cut))
    tops = browser.js("return [...document.querySelectorAll('.tiles div')].map(tile => tile.offsetTop)")
    expect(len(set(tops)) == 1, "tiles in one row: %s" % tops)
    first = browser.js("return [...document.querySelectorAll('main > section')][0].id")
    expect(first == "ended", "what ended comes first, not " + first)
    hosts = text(browser, "#hosts")
    expect("a.example" in hosts and "60 KiB" in hosts and "<b>b.example" in hosts, "by host: " + hosts)
    settled(browser, pictures + "/prefork.png")
    browser.js("[...document.querySelectorAll('.cell.group')].find(c => c.textContent.startsWith('shared by 38')).click()")
    expect(text(browser, "#crumbs").endswith("What 38 processes share"), "a click goes in: " + text(browser, "#crumbs"))
    browser.js("document.querySelector('.cell').focus()")
    expect("pconf in what 38 processes share" in text(browser, "#details"), "shared: " + text(browser, "#details"))
    look_over(browser, server, "prefork")


def check_hostile(browser, server, pictures):
    for width in (1280, 360):
        browser.look(width, 740, "light", mobile=width == 360)
        server.show(browser, "hostile")
        browser.js("document.querySelectorAll('#requests .url, #processes .toggle').forEach(b => b.click())")
        shown = browser.js("return [...document.querySelectorAll('#requests .url')].map(b => b.textContent)")
        for name in ("script", "quotes", "long", "solid"):
            expect("<b>GET</b> " + HOSTILE[name] in shown, "hostile: %s is shown as text" % name)
        everything = text(browser, "main") + text(browser, "header")
        expect("/abc⟨U+202E⟩gpj.exe⟨U+2066⟩⟨U+200B⟩⟨U+0007⟩end" in everything, "hostile: characters are spelled out")
        expect(not any(c in everything for c in "\u202e\u2066\u200b"), "hostile: no such character is left")
        expect(text(browser, "title") == "Reap status", "hostile: no script ran")
        strange = browser.js("return [...document.querySelectorAll('main script, main img, main b b, [onmouseover]')].length")
        expect(strange == 0, "hostile: no element comes from data")
        look_over(browser, server, "hostile, %d" % width)
    settled(browser, pictures + "/hostile-narrow.png")


def check_odd(browser, server, pictures):
    browser.look(1280, 900, "dark")
    server.show(browser, "empty")
    expect("Nothing has grown" in text(browser, "#growers") and "No request" in text(browser, "#requests"), "empty: it is said")
    look_over(browser, server, "empty")
    settled(browser, pictures + "/empty-dark.png")
    server.show(browser, "no_preload")
    expect("LD_PRELOAD=libreap-apr.so" in text(browser, "#missing"), "no preload: what is missing is said")
    expect("stock pools" in text(browser, "#processes") and "stock pools" in text(browser, "#tile-processes"), "no preload: processes")
    expect(text(browser, "#tile-bytes .figure") == "–", "no preload: nothing is measured")
    browser.js("document.querySelector('#processes .toggle').click()")
    expect("not known" in text(browser, "#processes"), "a silent process, open")
    look_over(browser, server, "no preload")
    settled(browser, pictures + "/no-preload-dark.png")
    browser.open(server.url.replace("//", "//user:password@"))
    wait_for_figures(browser, "a password in the address")
    browser.requested()  # with the password
    server.show(browser, "sparse")
    expect("stopping" in text(browser, "#processes") and "no answer" in text(browser, "#processes"), "sparse: states")
    expect("1 without an answer" in text(browser, "#tile-processes"), "sparse: a silent process")
    look_over(browser, server, "sparse")


def check_huge(browser, server, pictures):
    browser.look(1280, 900, "light")
    server.show(browser, "huge")
    browser.js("const b = [...document.querySelectorAll('#processes .toggle')]; b[0].click(); b[1].click()")
    browser.js("document.querySelectorAll('[data-pool] .toggle[aria-expanded=false]').forEach((b, i) => i < 20 && b.click())")
    expect(browser.js("return document.querySelectorAll('[data-pool]').length") > 220, "huge: pools are shown")
    expect("Show more" in text(browser, "#processes") and "are not listed" in text(browser, "#processes"), "huge: and what is left is said")
    expect(text(browser, "#tile-requests .figure") == "50 or more", "huge: requests")
    took = browser.js("const start = performance.now(); render(); return performance.now() - start")
    print("huge: drawn anew in %.0f ms" % took)
    expect(took < 2000, "huge: drawing takes %.0f ms" % took)
    kept = browser.js("""for (let i = 0; i < 20000; i++) isOpen(`p ${i}`, i % 2 === 0), colour(`tag ${i}`);
        return [view.open.size, colours.size]""")
    expect(0 < kept[0] <= 5000 and kept[1] <= 7, "what the page keeps has an end: %s" % kept)
    look_over(browser, server, "huge")
    settled(browser, pictures + "/huge.png")


def check_gone(browser, server, pictures):
    """A server that goes away, that answers with something else, and that comes back."""
    browser.look(1280, 900, "light")
    server.show(browser, "normal")
    figure = text(browser, "#tile-bytes .figure")
    browser.js("const e = document.getElementById('every'); e.value = '1'; e.dispatchEvent(new Event('change'))")
    server.stop()
    expect(browser.wait("return document.getElementById('lost')"), "gone: it is said")
    expect("No connection" in text(browser, "#lost") and text(browser, "#pulse") == "No answer", "gone: " + text(browser, "#lost"))
    expect(text(browser, "#tile-bytes .figure") == figure, "gone: the last figures stay")
    expect(browser.js(CONTRAST) == [], "gone: contrast")
    settled(browser, pictures + "/gone.png")
    server.start()
    expect(browser.wait("return !document.getElementById('lost')"), "gone: it comes back")
    for broken, said in (((503, "text/plain", b"busy"), "503"), ((200, "text/html", b"<html>"), "no JSON"), ((200, "text/html", b"null"), "no figures")):
        server.http.broken = broken
        expect(browser.wait("return document.getElementById('lost')?.textContent.includes(args[0])", said), "broken: " + said)
    server.http.broken = None
    expect(browser.wait("return !document.getElementById('lost')"), "broken: it comes back")
    browser.complaints()  # a connection that fails is in the console whatever a page does


def check_without_script(browser, server):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(server.url)
    links = [browser.element("noscript a[href='?%s']" % q) for q in ("auto", "json", "prometheus")]
    expect(len(links) == 3, "without JavaScript")
    browser.command("Emulation.setScriptExecutionDisabled", value=False)


def check_live(browser, url, pictures):
    """A true server: figures come, everything opens, nothing complains."""
    server = type("Live", (), {"url": url})
    for name, (width, height, scheme) in LOOKS.items():
        browser.look(width, height, scheme, mobile="narrow" in name)
        browser.open(url)
        wait_for_figures(browser, name)
        expect(browser.js("return view.data.preload"), name + ": on reaps")
        browser.js("const e = document.getElementById('every'); e.value = '1'; e.dispatchEvent(new Event('change'))")
        before = browser.js("document.querySelector('#processes .toggle').click(); return view.data.server.time")
        expect(browser.wait("return view.data.server.time > args[0]", before), name + ": it refreshes")
        expect(browser.js("return document.querySelectorAll('.cell').length") > 3, name + ": the map has cells")
        script = browser.wait("return document.querySelector('#requests').textContent.includes(`<script>document.title='taken'</script>\"`)")
        expect(script and text(browser, "title") == "Reap status", name + ": a script in a URL is text")
        expect(browser.js("return document.querySelectorAll('[data-pool]').length") > 3, name + ": an open process shows pools")
        look_over(browser, server, "live " + name)
        settled(browser, "%s/live-%s.png" % (pictures, name))
    sums = browser.js("""const d = view.data, add = (items, f) => items.reduce((n, i) => n + f(i), 0);
        return [d.totals.bytes, add(d.processes, p => p.pools?.bytes ?? 0), add(d.tags, t => t.bytes),
          add(d.processes, p => add(p.tree ?? [], r => r.bytes) + (p.omitted?.bytes ?? 0))]""")
    expect(min(sums) > MIB // 4 and min(sums) > .99 * max(sums), "totals are the sums: %s" % sums)


def check_stock(browser, url, pictures):
    """A true server whose pools are not on reaps: the page says so."""
    browser.look(1280, 900, "light")
    browser.open(url)
    wait_for_figures(browser, "stock")
    expect("not on reaps" in text(browser, "#missing"), "stock: what is missing is said")
    look_over(browser, type("Live", (), {"url": url}), "stock")
    settled(browser, pictures + "/stock.png")


# --- running ------------------------------------------------------------------------------------------

def serve(page, name="growing"):
    server = Server(page)
    server.http.name = name
    print(server.url, flush=True)
    threading.Event().wait()


def run(page, pictures):
    server = Server(page)
    with Browser() as browser:
        only = os.environ.get("ONLY", "")
        for check in (check_looks, check_sums, check_refresh, check_pause, check_sorting, check_map, check_limits, check_shared, check_hostile, check_odd,
                      check_huge, check_gone, check_without_script):
            if only not in check.__name__:
                continue
            start = time.monotonic()
            check(browser, server, *([pictures] if check.__code__.co_argcount == 3 else []))
            print("%s: %.1f s" % (check.__name__, time.monotonic() - start), flush=True)
    server.stop()


def main(arguments):
    if arguments[:1] == ["--serve"]:
        serve(*arguments[1:])
    elif arguments[0] in ("--url", "--stock"):
        os.makedirs(arguments[2], exist_ok=True)
        with Browser() as browser:
            (check_live if arguments[0] == "--url" else check_stock)(browser, *arguments[1:])
    else:
        os.makedirs(arguments[1], exist_ok=True)
        run(*arguments)
    print("%d failures" % len(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
