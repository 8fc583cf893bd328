# SPDX-License-Identifier: Apache-2.0
"""Documents as reap-status?json gives them, for tests of the page; each takes how often it was asked before."""
import functools
import random

KIB, MIB = 1024, 1024 * 1024
START = 1_700_000_000
METHODS = ("GET", "GET", "GET", "POST", "HEAD", "PUT")
PATHS = ("/", "/index.html", "/shop/cart?item=4711", "/api/v2/orders?state=open&page=3", "/images/large/9921.jpg",
         "/search?q=memory", "/admin/report/yearly.pdf", "/feed.xml")


def request(rng, pid, **also):
    held = int(rng.lognormvariate(11.3, 1.4))
    made = {"pid": pid, "method": rng.choice(METHODS), "uri": rng.choice(PATHS), "host": "www.example.org",
            "client": "192.0.2.%d" % rng.randrange(1, 255), "protocol": rng.choice(("HTTP/1.1", "HTTP/2.0")),
            "age": round(rng.expovariate(0.4), 1), "bytes": held, "peak": int(held * rng.uniform(1, 1.6))}
    return {**made, **also}


class Tree:
    """Rows of a process, in preorder."""

    def __init__(self, rng):
        self.rng, self.rows = rng, []

    def add(self, depth, tag, size, owner=None, age=None, limit=0, inherited=False):
        live = int(size * self.rng.uniform(0.45, 0.97))
        self.rows.append({"depth": depth, "tag": tag, "id": "0x7f%010x" % (len(self.rows) * 4096 + 0x1a2b000), "bytes": size,
                          "live_bytes": live, "objects": live // 96, "chunks": max(1, size // (8 * KIB)),
                          "peak": int(size * self.rng.uniform(1, 1.5)), "limit": limit, "age": age, "inherited": inherited,
                          "owner": owner})

    def build(self, connections, scale):
        rng = self.rng
        for depth, tag, size in (0, "process", 96 * KIB), (1, "pconf", int(2.4 * MIB)), (2, "mod_ssl", 412 * KIB), \
                (2, "mod_rewrite", 88 * KIB), (1, "plog", 24 * KIB):
            self.add(depth, tag, size, inherited=True)
        self.add(1, "pchild", 180 * KIB)
        for i in range(connections):
            client = "192.0.2.%d" % rng.randrange(1, 255)
            self.add(2, "transaction", 8 * KIB, age=rng.randrange(1, 600))
            self.add(3, "connection", int(rng.lognormvariate(9.6, .6) * scale), "connection from " + client, rng.randrange(1, 600))
            if i % 3 == 0:
                self.add(4, "request", int(rng.lognormvariate(11.2, 1.2) * scale), "GET %s from %s" % (rng.choice(PATHS), client),
                         rng.randrange(0, 20), 64 * MIB)
                if i % 2 == 0:
                    self.add(5, "subrequest", int(rng.lognormvariate(9, .8) * scale), None, rng.randrange(0, 9))
            elif i % 3 == 1:
                self.add(4, "mod_h2", int(rng.lognormvariate(10, .9) * scale), None, rng.randrange(1, 90))
        return self.rows


def summed(rows):
    return {"pools": len(rows), "inherited_bytes": sum(r["bytes"] for r in rows if r["inherited"]),
            **{key: sum(r[key] for r in rows) for key in ("bytes", "live_bytes", "objects", "chunks")}}


def backend(rng, held):
    classes = []
    for size in (32, 64, 96, 128, 192, 256, 512, 1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB):
        superblocks = rng.choice((1, 1, 2, 3, 4, 7, 12))
        blocks = superblocks * (64 * KIB // size)
        classes.append({"size": size, "superblocks": superblocks, "empty": 1 if superblocks > 3 else 0, "blocks": blocks,
                        "used": int(blocks * rng.uniform(0.2, 0.98) * (superblocks - (superblocks > 3)) / superblocks)})
    return {"path": "rseq cid", "live_bytes": int(held * .8), "large_bytes": int(held * .2), "held_bytes": held,
            "peak_held_bytes": int(held * 1.2), "heaps": 2, "superblocks": 41, "global_superblocks": 6, "slow_mallocs": 18234,
            "slow_frees": 9021, "remote_frees": 5120, "transfers": 310, "classes": classes,
            "os_given_bytes": int(held * 1.9), "os_returned_bytes": int(held * .9)}


def process(rng, pid, connections, scale=1.0, state="answers"):
    rows = Tree(rng).build(connections, scale)
    rss = sum(r["bytes"] for r in rows) + 9 * MIB + pid % 4 * 777 * KIB + 555 * KIB
    return {"pid": pid, "generation": 2, "state": state, "rss": rss, "pss": int(rss * .62), "outside": rss - summed(rows)["bytes"], "uptime": 3_612,
            "backend": backend(rng, rss - 6 * MIB), "pools": summed(rows), "tree": rows[:2000],
            "omitted": {key: summed(rows[2000:])[key] for key in ("pools", "bytes")}}


def limit(directive, size, where="", host=None, line=12):
    return {"directive": directive, "bytes": size, "where": where, "host": host, "at": "/etc/apache2/apache2.conf:%d" % line}


def settings(request_limit=0, limits=(), more=0):
    return {"limit_request": request_limit, "limit_connection": 0, "action": "log", "limits_set": len(limits) + more, "limits_read_late": 0,
            "limits": list(limits)}


def document(n, processes, requests):
    rows = [r for p in processes for r in p["tree"] or []]
    tags = [{"tag": tag, **summed([r for r in rows if r["tag"] == tag])} for tag in {r["tag"] for r in rows}]
    tags.sort(key=lambda t: -t["bytes"])
    totals = {**summed(rows), "rss": sum(p["rss"] or 0 for p in processes), "pss": sum(p["pss"] or 0 for p in processes), "over_limit": 12,
              "outside": sum(p["outside"] or 0 for p in processes), "children_ended": 0,
              "over_limit_recent": 3, "recent_seconds": 600, "over_hard": 0}
    growers = [{"tag": t["tag"], "bytes": t["bytes"], "change": int(t["bytes"] * .11 / (i + 1)), "seconds": 5} for i, t in enumerate(tags[:5])]
    mallocs = [{"module": module, "for": of, "bytes": 3 * MIB // (i + 1), "objects": 900 // (i + 1)} for i, (module, of) in
               enumerate((m, f) for m in ("libperl.so.5.36", "libcrypto.so.3") for f in ("request /report", "transaction", ""))]
    now = START + 5 * n
    wave = random.Random(7)
    history = [{"t": now - 5 * i, "bytes": int(totals["bytes"] * (1 - i / 300 + wave.uniform(-.03, .03))),
                "rss": int(totals["rss"] * (1 - i / 900 + wave.uniform(-.01, .01))), "requests": wave.randrange(2, 14)} for i in range(119, 0, -1)]
    history.append({"t": now, "bytes": totals["bytes"], "rss": totals["rss"], "requests": len(requests)})
    return {"server": {"version": "Apache/2.4.62 (Debian)", "mpm": "event", "time": now, "uptime": 90_061 + 5 * n, "generation": 2, "processes": len(processes)},
            "preload": True, "missing": None, "settings": settings(64 * MIB, [limit("ReapLimitRequest", 64 * MIB)]),
            "totals": totals, "tags": tags, "growers": growers, "mallocs": mallocs, "requests": sorted(requests, key=lambda r: -r["bytes"])[:50],
            "history": history, "processes": processes}


def normal(n):
    rng = random.Random(11)
    processes = [process(rng, 4100 + i, (24, 17, 9, 30)[i], (1, 1.4, .6, 2.2)[i]) for i in range(4)]
    return document(n, processes, [request(rng, rng.choice(processes)["pid"]) for _ in range(14)])


def sections(n):
    """Limits in sections alone, which nobody has met lately."""
    made = normal(n)
    made["settings"] = settings(0, [limit("ReapLimitRequest", 4 * MIB, "<Location /runaway>"),
                                    limit("ReapLimitConnection", 9 * MIB, '<VirtualHost *:80>', "shop.example", 40),
                                    limit("ReapLimitConnection", 8 * MIB, '<VirtualHost *:80>', "<b>shop.example", 60)], 3)
    made["settings"]["limits_read_late"] = 1200
    made["totals"].update(over_limit_recent=0, over_hard=1)
    return made


def prefork(_):
    """Forty processes, which share most of what they have; two are of an older generation."""
    processes = [process(random.Random(5), 7000 + i, 0, state="stopping" if i < 2 else "answers") for i in range(40)]
    for p in processes:
        p["generation"] = 1 if p["state"] == "stopping" else 2
    made = document(0, processes, [])
    made["requests"] = [request(random.Random(6), 7010 + i, uri="/app.php?%d" % i, bytes=30 * KIB) for i in range(3)]
    processes[10]["outside"] = 286 * MIB
    made["server"]["mpm"] = "prefork"
    made["ended"] = [{"pid": 6900 + i, "t": START - 60 * i, "why": "ReapChildLimit", "bytes": (845 - i) * MIB, "limit": 800 * MIB, "uptime": 7200,
                      "requests": 51234, "largest": None} for i in range(3)]
    made["ended"].append({"pid": 6890, "t": START - 900, "why": "killed", "signal": 9, "rss": 312 * MIB, "bytes": 300 * MIB, "limit": None, "uptime": 60, "requests": 2,
                          "largest": "GET /fatal?x=1 from 192.0.2.9", "host": "www.example.org"})
    made["largest"] = [{"pid": 7001, "t": START - 5, "peak": (20 - i) * MIB, "method": "GET", "uri": "/report/%d" % i, "host": "www.example.org",
                        "client": "192.0.2.1", "limit": None if i else "denied"} for i in range(12)]
    made["totals"].update(children_ended=7, children_killed=1)
    made["hosts"] = [{"host": "a.example", "requests": 2, "bytes": 60 * KIB}, {"host": "<b>b.example", "requests": 1, "bytes": 30 * KIB}]
    made["growers"][1]["change"] = -4096
    made["totals"]["pss"] = None
    return made


def growing(n):
    """As normal, but a request of the second process takes a MiB more each time."""
    made = normal(n)
    tree = made["processes"][1]["tree"]
    largest = max((r for r in tree if r["tag"] == "request"), key=lambda r: r["bytes"])
    largest["bytes"] += n * MIB
    made["totals"]["bytes"] += n * MIB
    made["requests"].append(request(random.Random(1), 4101, uri="/grows", bytes=n * MIB, peak=n * MIB))
    return made


@functools.lru_cache(1)
def huge_once():
    rng = random.Random(5)
    processes = [process(rng, 20_000 + i, 900, rng.uniform(.3, 2)) for i in range(20)]
    return document(0, processes, [request(rng, rng.choice(processes)["pid"]) for _ in range(50)])


def huge(_):
    return huge_once()


def empty(n):
    made = document(n, [], [])
    return {**made, "history": [], "growers": [], "tags": [], "settings": settings()}


def no_preload(n):
    silent = {"pid": 5001, "generation": 0, "state": "silent", "rss": 9 * MIB, "pss": None, "outside": None, "uptime": 12, "backend": None,
              "pools": None, "tree": None, "omitted": None}
    made = document(n, [silent], [])
    text = "libreap-apr.so is not loaded. Start the server with LD_PRELOAD=libreap-apr.so:\nsee libreap-apr(7)."
    return {**made, "preload": False, "missing": text, "totals": {"rss": 9 * MIB, "bytes": None}, "tags": None}


def sparse(_):
    """Nothing of what may be missing is there."""
    return {"server": None, "totals": None, "processes": [{"pid": 1, "state": "stopping"}, None, {"pid": 2, "state": "silent"}, {}], "requests": [{}],
            "tags": [{}], "growers": [{"change": -5}], "mallocs": [{}], "history": [{"t": None}, {}]}


HOSTILE = {"script": "/<script>document.title='taken'</script><img src=x onerror=document.title='taken'>",
           "quotes": "/\"' onmouseover=\"document.title='taken'\" x='&lt;&amp;", "bidi": "/abc\u202egpj.exe\u2066\u200b\u0007end",
           "long": "/" + "very-long/" * 800, "solid": "/" + "x" * 4000}


def hostile(n):
    rng = random.Random(3)
    made = document(n, [process(rng, 31, 12), process(rng, 32, 3, state="</td><script>document.title='taken'</script>")], [])
    made["requests"] = [request(rng, 31, uri=uri, method="<b>GET</b>", host=HOSTILE["script"], client="::1\u202e", bytes=9999 - i)
                        for i, uri in enumerate(HOSTILE.values())]
    for row, uri in zip(made["processes"][0]["tree"], HOSTILE.values()):
        row.update(tag=uri, owner="GET %s from ::1" % uri)
    for tag, uri in zip(made["tags"], HOSTILE.values()):
        tag["tag"] = uri
    made["growers"][0]["tag"] = HOSTILE["script"]
    for malloc, uri in zip(made["mallocs"], HOSTILE.values()):
        malloc.update({"for": "request " + uri, "module": uri})
    made["server"]["version"] = HOSTILE["script"]
    return made


DOCUMENTS = {f.__name__: f for f in (normal, sections, prefork, growing, huge, empty, no_preload, sparse, hostile)}
