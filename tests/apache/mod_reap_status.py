# SPDX-License-Identifier: Apache-2.0
"""What the documents of reap-status must be, for mod_reap_status.sh.

    mod_reap_status.py json FILE            a document adds up
    mod_reap_status.py auto FILE            keys and values
    mod_reap_status.py prometheus FILE      the text format, by a small parser
    mod_reap_status.py system URL SITE      what grows is what the OS says has grown (as root, or as httpd's user)
    mod_reap_status.py live URL SITE        a request that is going on, in the list and in the tree
    mod_reap_status.py limits URL           limits in a section and a virtual host, and a request beyond one
    mod_reap_status.py curve URL SITE       a request that is over is not in the curve
    mod_reap_status.py pss URL              the PSS of all children, as root sees it
    mod_reap_status.py load URL SECONDS N   N clients for so long, or for 100 documents; every one adds up
"""
import contextlib
import json
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request

SUMS = ("pools", "bytes", "live_bytes", "objects", "chunks", "inherited_bytes")


class Wrong(Exception):
    pass


def must(condition, *what):
    if not condition:
        raise Wrong(" ".join(str(word) for word in what))


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        must(answer.headers["Cache-Control"] == "no-store", "Cache-Control", answer.headers["Cache-Control"])
        return answer.read().decode("ascii")


# --- JSON -------------------------------------------------------------------------------------------

def check_tree(process):
    rows, sums, omitted = process["tree"], process["pools"], process["omitted"]
    where = f"process {process['pid']}:"
    must(len(rows) + omitted["pools"] == sums["pools"], where, len(rows), "rows of", sums["pools"], "pools")
    must(sum(row["bytes"] for row in rows) + omitted["bytes"] == sums["bytes"], where, "bytes of rows")
    if not omitted["pools"]:
        must(sum(row["bytes"] for row in rows if row["inherited"]) == sums["inherited_bytes"], where, "inherited bytes")
    for row in rows:
        must(row["tag"] not in ("", "(no tag)"), where, "no tag", row)
    for key in ("live_bytes", "objects", "chunks") if not omitted["pools"] else ():
        must(sum(row[key] for row in rows) == sums[key], where, key, "of rows")
    depth = -1
    for row in rows:
        must(0 <= row["depth"] <= depth + 1, where, "depth", row["depth"], "after", depth)
        must(row["live_bytes"] <= row["bytes"] <= row["peak"], where, "row", row)
        must(row["age"] is None or row["age"] >= 0, where, "age", row["age"])
        must(not row["inherited"] or row["age"] is None, where, "inherited", row)
        depth = row["depth"]


def check_order(name, values):
    must(values == sorted(values, reverse=True), name, "not largest first:", values)


def check_document(text):
    document = json.loads(text)
    totals, processes = document["totals"], document["processes"]
    must(document["server"]["processes"] == len(processes) > 0, len(processes), "processes")
    for process in processes:
        must(process["state"] in ("answers", "silent", "stopping"), "state", process["state"])
        must((process["backend"] is None) == (process["state"] == "silent"), "backend of", process["pid"])
        must(process["rss"] is not None or process["state"] == "silent", "rss of", process["pid"]) # None: it has ended
        check_tree(process)
    for key in SUMS:
        must(totals[key] == sum(process["pools"][key] for process in processes), key, "of processes")
        must(totals[key] == sum(tag[key] for tag in document["tags"]), key, "of tags")
    must(totals["rss"] == sum(process["rss"] or 0 for process in processes), "rss")
    known = [process["pss"] for process in processes if process["pss"] is not None]
    must(totals["pss"] == (sum(known) if len(known) == len(processes) else None), "pss", totals["pss"], "of", known)
    for process in processes:
        must((process["outside"] is None) == (process["pools"]["pools"] == 0), "in no pool", process["pid"])
        must(process["outside"] in (None, 0, process["rss"] - process["pools"]["bytes"]), "in no pool", process["pid"], process["outside"])
    must((totals["outside"] is None) == all(process["outside"] is None for process in processes), "in no pool", totals["outside"])
    must(totals["outside"] is None or 0 <= totals["outside"] <= (totals["pss"] or totals["rss"]), "in no pool", totals["outside"])
    must(totals["over_limit_recent"] <= totals["over_limit"], "over the limit", totals)
    check_order("tags", [tag["bytes"] for tag in document["tags"]])
    check_order("mallocs", [malloc["bytes"] for malloc in document["mallocs"]])
    check_order("growers", [grower["change"] for grower in document["growers"]])
    must(all(grower["change"] > 0 for grower in document["growers"]), "growers", document["growers"])
    check_order("requests", [request["bytes"] or 0 for request in document["requests"]])
    must(len(document["requests"]) <= 50, "requests")
    check_order("hosts", [host["bytes"] for host in document["hosts"]])
    names = [host["host"] for host in document["hosts"]]
    must(len(set(names)) == len(names) <= 50, "hosts", names)
    if document["preload"] and len(document["requests"]) < 50 and len(names) < 50:
        for host in document["hosts"]:
            of_host = [request["bytes"] for request in document["requests"] if request["host"] == host["host"]]
            must((len(of_host), sum(of_host)) == (host["requests"], host["bytes"]) != (0, 0), "host", host, of_host)
        must(sum(host["requests"] for host in document["hosts"]) == len(document["requests"]), "requests of hosts")
    times = [point["t"] for point in document["history"]]
    must(times and times == sorted(times) and len(times) <= 120, "history", times)
    must(len(document["ended"]) == min(totals["children_ended"] + totals["children_killed"], 20), "ended", document["ended"])
    check_order("largest", [request["peak"] for request in document["largest"]])
    urls = [(request["method"], request["host"], request["uri"].split("?")[0]) for request in document["largest"]]
    must(len(set(urls)) == len(urls) <= 50, "largest", urls)
    check_order("ended", [end["t"] for end in document["ended"]])
    must(document["preload"] == (document["missing"] is None) == bool(document["tags"]), "preload")
    must(document["settings"]["action"] in ("log", "close", "deny"), document["settings"])
    return document


# --- the text formats ----------------------------------------------------------------------------------

def check_auto(text):
    lines = dict(line.split(": ", 1) for line in text.splitlines())
    for key in ("ReapPools", "ReapPoolBytes", "ReapRSS", "ReapProcesses", "ReapOverLimit", "ReapOverHard", "ReapChildrenEnded", "ServerUptimeSeconds"):
        must(re.fullmatch("[0-9]+", lines.get(key, "")), key, lines.get(key))
    tags = [int(value.split()[0]) for key, value in lines.items() if key.startswith("ReapTag ")]
    must(sum(tags) == int(lines["ReapPoolBytes"]), "bytes of tags")
    must((lines["ReapPreload"] == "no") == ("ReapMissing" in lines), "ReapMissing")


SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)')


def check_prometheus(text):
    must(text.endswith("\n"), "the last line has no end")
    types, helps, seen, order = {}, set(), {}, []
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            must(name not in order, line, "after samples of it")
            if kind == "TYPE":
                must(name not in types and rest in ("gauge", "counter"), line)
                types[name] = rest
            else:
                must(kind == "HELP" and name not in helps, line)
                helps.add(name)
            continue
        sample = SAMPLE.fullmatch(line)
        must(sample, "no sample:", line)
        name, labels, value = sample.groups()
        must(name.startswith("reap_") and name in types and name in helps, "unknown", line)
        must((name, labels) not in seen, "twice:", line)
        must(not order or order[-1] == name or name not in order, "scattered:", line)
        must(types[name] != "counter" or name.endswith("_total"), "a counter's name:", line)
        seen[name, labels] = float(value)
        order.append(name)
    must(set(order) | {"reap_tag_bytes", "reap_tag_pools", "reap_tag_objects", "reap_process_outside_bytes"} >= set(types), "no samples of",
         set(types) - set(order))
    tags = sum(value for (name, _), value in seen.items() if name == "reap_tag_bytes")
    must(tags == seen["reap_pool_bytes", None], "bytes of tags")
    must(seen["reap_preload", None] in (0, 1) and ("reap_processes", 'state="silent"') in seen, "samples")


# --- beside the OS --------------------------------------------------------------------------------------

def private_bytes(processes):
    total = 0
    for process in processes:
        with open(f"/proc/{process['pid']}/smaps_rollup", encoding="ascii") as rollup:
            total += sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Private_"))
    return total


@contextlib.contextmanager
def going_on(url, site):
    """A request that goes on, with stay=N, until this ends."""
    def run():
        with urllib.request.urlopen(url, timeout=90) as answer:
            answer.read()
    stay = os.path.join(site, "stay")
    with open(stay, "w", encoding="ascii"):
        thread = threading.Thread(target=run)
        thread.start()
    try:
        yield
    finally:
        os.remove(stay)
        thread.join()


def until(url, condition):
    """The first document of which the condition is true, or the last of a minute."""
    end = time.time() + 60
    while True:
        document = fresh(url)
        if condition(document) or time.time() > end:
            return document


def near(name, ours, theirs):
    print(f"{name}: {ours} bytes, {theirs} by the OS: {ours / theirs:.3f}")
    must(abs(ours - theirs) <= 0.1 * theirs, name, "differs by more than 10 %")


def fresh(url):
    """A document of a look that begins after this call. A look is good for a while."""
    now = int(time.time())
    while True:
        document = check_document(get(url + "/reap-status?json"))
        if document["server"]["time"] > now:
            return document
        time.sleep(0.1)


def settled(url):
    """A document, once no more children come."""
    last = None
    while True:
        document = fresh(url)
        if last == [process["pid"] for process in document["processes"]]:
            return document
        last = [process["pid"] for process in document["processes"]]


def check_system(url, site):
    """A request takes 80 MB in small objects; all that it touches is private memory of its child."""
    before = settled(url)
    private = private_bytes(before["processes"])
    with going_on(url + "/runaway?small=80000&stay=80000", site):
        during = until(url, lambda document: document["totals"]["bytes"] - before["totals"]["bytes"] > 80e6)
        grown = private_bytes(during["processes"]) - private
    near("pools", during["totals"]["bytes"] - before["totals"]["bytes"], grown)
    near("rss", during["totals"]["rss"] - before["totals"]["rss"], grown)
    held = [sum(process["backend"]["held_bytes"] for process in document["processes"]) for document in (before, during)]
    near("backends", held[1] - held[0], grown)
    growers = [grower for grower in during["growers"] if grower["tag"] == "request"]
    must(growers and growers[0]["change"] > 80e6, "growers", during["growers"])
    must(during["growers"][0]["tag"] == "request", "the first of the growers")


def check_live(url, site):
    def runaways(document):
        return [request for request in document["requests"] if request["uri"].startswith("/runaway?below=20&stay=")]

    began = time.time()
    with going_on(url + "/runaway?below=20&stay=80000&who=%3Cb%3E%22", site):
        document = until(url, lambda document: any(request["age"] > 0.3 for request in runaways(document)))
    most = time.time() - began + 2
    live = runaways(document)
    must(len(live) == 1, "requests", document["requests"])
    must(live[0]["method"] == "GET" and live[0]["client"] == "127.0.0.1" and live[0]["protocol"] == "HTTP/1.1", live)
    must(live[0]["bytes"] > 20 * 65536 and 0.3 < live[0]["age"] < most, live)
    must(live[0]["peak"] >= live[0]["bytes"], live)
    rows = [row for process in document["processes"] for row in process["tree"] if row["tag"] == "runaway-subpool"]
    must(len(rows) == 1 and rows[0]["owner"].startswith("GET /runaway?below=20") and
         rows[0]["owner"].endswith(" from 127.0.0.1"), rows)
    must(0 <= rows[0]["age"] <= most, "age", rows)
    owners = {row["owner"] for process in document["processes"] for row in process["tree"]}
    must("connection from 127.0.0.1" in owners or len(owners) > 2, owners)


# --- limits, the curve, PSS -----------------------------------------------------------------------------

def check_limits(url):
    limits = fresh(url)["settings"]
    must(limits["limit_request"] == 0 and limits["limits_set"] == 4 and limits["limits_read_late"] == 0, limits)
    must([(limit["directive"], limit["bytes"] >> 20, limit["host"]) for limit in limits["limits"]] ==
         [("ReapLimitRequest", 1, None), ("ReapLimitConnection", 900, "off"), ("ReapLimitRequest", 800, "shop.example"),
          ("ReapLimitRequest", 700, "shop.example")], limits)
    lines = [int(re.fullmatch("/.*/httpd.conf:([0-9]+)", limit["at"])[1]) for limit in limits["limits"]]
    must(lines == sorted(lines) and len(set(lines)) == 4, "lines", limits)
    must(limits["limits"][0]["where"] == "<Location /runaway/limited>" and
         re.fullmatch("<VirtualHost 127.0.0.1:[0-9]*>", limits["limits"][1]["where"]), limits)
    before = fresh(url)["totals"]["over_limit"]
    try:
        urllib.request.urlopen(url + "/runaway/limited?quiet=100", timeout=20).close()
        raise Wrong("no limit")
    except urllib.error.HTTPError as error:
        must(error.code == 500, error)
    totals = fresh(url)["totals"]
    must(totals["over_limit"] == before + 1 and 0 < totals["over_limit_recent"] <= totals["over_limit"], totals)
    must(0 < totals["recent_seconds"] < 900, totals)


def unwatched_points(url, site, others, seconds):
    """Those of the curve after a request of 131 MB that has ended, while nobody asks for anything for so long."""
    with going_on(url + "/runaway?quiet=2000&stay=80000", site):
        document = until(url, lambda document: document["totals"]["bytes"] > 131e6)
        must(document["totals"]["bytes"] > 131e6, "the request is not seen")
        time.sleep(1.2)
        for _ in range(others):
            urllib.request.urlopen(url + "/page.txt", timeout=20).close()
    end = time.time()
    time.sleep(seconds)
    asked = time.time()
    return [point for point in fresh(url)["history"] if end + 1 < point["t"] < asked - 0.5]


def check_curve(url, site):
    """The first process notes a point every ten seconds, but none within five seconds of a look: so the first may come
    14 seconds after the request, and later on a busy machine. In the second round small requests end within the same
    second, so that its child looks at its pools before these are gone."""
    for others in (0, 40):
        for seconds in (15.5, 30, 60):
            points = unwatched_points(url, site, others, seconds)
            if points:
                break
        must(points, "no point while nobody looked")
        must(all(point["bytes"] < 60e6 for point in points), "131 MB are gone, and the curve has them:", points)


def rollup(pid, *names):
    """The sum of these fields of a process, in bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if line.endswith("kB\n"))
    return sum(int(fields[name].split()[0]) * 1024 for name in names)


def check_pss(url):
    """On stock pools no child answers, and the first process reads what each holds, every ten seconds while somebody
    looks. Whoever else maps the same libraries changes a PSS meanwhile: the page's is near the true one within a few
    readings, and at any time between what is the children's alone and all that they have."""
    end = time.time() + 60
    while True:
        document = fresh(url)
        pids = [process["pid"] for process in document["processes"]]
        pss = document["totals"]["pss"]
        if pss is not None:
            alone, true, most = (sum(rollup(pid, *names) for pid in pids)
                                 for names in (("Private_Clean", "Private_Dirty"), ("Pss",), ("Rss",)))
            must(0.95 * alone <= pss < 0.95 * most, f"PSS of {pss} bytes: {alone} are private, {most} resident")
            if abs(pss - true) <= 0.1 * true:
                break
        must(time.time() < end, "PSS differs by more than 10 %, or is not known:", pss, document["processes"])
        time.sleep(1)
    near("pss", pss, true)


# --- under load -----------------------------------------------------------------------------------------

def check_load(url, seconds, clients):
    began, failures, documents, looks = time.time(), [], [], set()

    def goes_on():
        past = time.time() - began
        return not failures and (past < float(seconds) or (len(documents) < 100 and past < 60))

    def client(form, check):
        while goes_on():
            try:
                text = get(url + form)
                documents.append(check(text))
                if form == "?json":
                    looks.add(text)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(f"{form}: {error!r}")

    checks = [("?json", check_document), ("?auto", check_auto), ("?prometheus", check_prometheus), ("?json", check_document)]
    threads = [threading.Thread(target=client, args=checks[i % 4]) for i in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    must(not failures, failures[:3])
    print(f"{len(documents)} documents of {len(looks)} looks")
    must(len(documents) >= 100, "too few")
    must(len(looks) <= time.time() - began + 3, "more than a look a second")


def main():
    what, where, *rest = sys.argv[1:]
    checks = {"json": check_document, "auto": check_auto, "prometheus": check_prometheus}
    try:
        if what in checks:
            with open(where, encoding="ascii") as file:
                checks[what](file.read())
        else:
            {"system": check_system, "live": check_live, "load": check_load, "limits": check_limits, "curve": check_curve,
             "pss": check_pss}[what](where, *rest)
    except Exception as error:  # pylint: disable=broad-except
        sys.exit(f"{what}: {type(error).__name__} {error}")


main()
