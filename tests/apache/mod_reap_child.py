# SPDX-License-Identifier: Apache-2.0
"""Clients of a server whose children end for ReapChildLimit, for mod_reap_child.sh.

    mod_reap_child.py load URL N ENDS    at least N requests, until ENDS children have ended; none may fail or be reset
    mod_reap_child.py idle URL           children that become too large with their last request end without another one, in turn
"""
import collections
import http.client
import json
import re
import socket
import sys
import threading
import time
import urllib.request

LONGEST = 240  # seconds


class Wrong(Exception):
    pass


def document(url):
    with urllib.request.urlopen(url + "/reap-status?json", timeout=20) as answer:
        return json.load(answer)


def is_there(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Load:
    """What all clients share. A client is a generator: each step is an answer or several, or raises."""

    def __init__(self, url, requests, ends):
        self.host, port = re.fullmatch(r"http://([^:/]+):(\d+)", url).groups()
        self.port, self.url = int(port), url
        self.requests, self.ends, self.began = int(requests), int(ends), time.time()
        self.failures, self.answers, self.ended, self.most = [], collections.Counter(), {}, 0

    def goes_on(self):
        enough = sum(self.answers.values()) >= self.requests and len(self.ended) >= self.ends
        return not self.failures and not enough and time.time() < self.began + LONGEST

    def check(self, status, body, wanted):
        if (status, body) != (200, wanted):
            raise Wrong(f"status {status}, {body[:80]!r}")

    def ask(self, connection, path, wanted, body=None):
        connection.request("POST" if body else "GET", path, body)
        answer = connection.getresponse()
        self.check(answer.status, answer.read(), wanted)
        return answer.will_close

    def kept(self, rest=0.0, body=None):
        """A connection that is kept as long as the server does not say otherwise. Where it rests it is idle."""
        while True:
            connection, closes = http.client.HTTPConnection(self.host, self.port, timeout=60), False
            while not closes:
                closes = self.ask(connection, "/runaway?leak=2&send=2", b"sent\nsent\ndone\n", body)
                yield 1
                time.sleep(rest)
            connection.close()

    def fresh(self, path="/runaway?leak=2&send=2", answer=b"sent\nsent\ndone\n"):
        while True:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
            self.ask(connection, path, answer)
            connection.close()
            yield 1

    def slow(self):
        """Its answer begins before its child's end does, and goes on."""
        return self.fresh("/runaway?begin&sleep=3000&send=2", b"begun\nsent\nsent\ndone\n")

    def pipelined(self):
        """Three requests at once, of which the last one closes. As at a restart of the server's, an answer before it may say that it
        is the last; the client then asks for the rest anew. Most of the time an answer's head is out, and its end is not."""
        one = "GET /runaway?leak=1&begin&sleep=20&send=1 HTTP/1.1\r\nHost: x\r\n%s\r\n"
        while True:
            with socket.create_connection((self.host, self.port), timeout=60) as connection:
                connection.sendall((one % "" * 2 + one % "Connection: close\r\n").encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            n = answer.count(b"done\n\r\n0\r\n\r\n")
            if not 0 < n <= 3 or answer.count(b"HTTP/1.1 200 OK") != n or answer.count(b"Connection: close") != 1:
                raise Wrong(f"of three requests at once: {answer!r}")
            yield n

    def run(self, name, client):
        try:
            for n in client:
                self.answers[name] += n
                if not self.goes_on():
                    break
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(f"{name}: {error!r}")

    def watch(self):
        """Who has ended, and how many of them are there at once."""
        while self.goes_on():
            self.ended.update({end["pid"]: end for end in document(self.url)["ended"]})
            self.most = max(self.most, sum(is_there(pid) for pid in self.ended))
            time.sleep(0.3)

    def all(self):
        clients = {"kept": self.kept(), "idle": self.kept(0.4), "posts": self.kept(0.05, b"x" * 5000), "fresh": self.fresh(), "slow": self.slow(),
                   **{f"pipelined {i}": self.pipelined() for i in range(8)}}
        threads = [threading.Thread(target=self.run, args=each) for each in clients.items()] + [threading.Thread(target=self.watch)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def check_load(url, requests, ends):
    load = Load(url, requests, ends)
    load.all()
    if load.failures:
        raise Wrong(f"{len(load.failures)} failures: {load.failures[:3]} after {load.answers}")
    if sum(load.answers.values()) < load.requests or len(load.ended) < load.ends:
        raise Wrong(f"{len(load.ended)} children have ended beside {load.answers} in {LONGEST} s")
    if load.most > 1:
        raise Wrong(f"{load.most} children ended at once")
    for end in load.ended.values():
        if not end["bytes"] > end["limit"] > 0 or end["why"] != "ReapChildLimit" or end["requests"] < 20 or end["uptime"] < 1:
            raise Wrong(f"ended: {end}")
    check_turns(load.ended.values())
    totals = document(url)["totals"]
    if totals["children_ended"] < len(load.ended):
        raise Wrong(f"{len(load.ended)} were seen, and the server counts {totals['children_ended']}")
    print(f"{sum(load.answers.values())} requests beside {len(load.ended)} children that ended: none failed; {dict(load.answers)}")


def check_turns(ends):
    """A child's turn comes two seconds after the one before it is gone."""
    times = sorted(end["t"] for end in ends)
    if any(later - earlier < 2 for earlier, later in zip(times, times[1:])):
        raise Wrong(f"two have ended at once: {times}")


def check_idle(url):
    """Several children become too large at once, and then nobody asks for anything but the document. All requests may go to one
    child: then once more."""
    def ask():
        with urllib.request.urlopen(url + "/runaway?leak=600&sleep=500", timeout=20) as answer:
            answer.read()
    ended = []
    for _ in range(4):
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end = time.time() + 15
        while time.time() < end and (len(ended) < 2 or any(is_there(each["pid"]) for each in ended[-2:])):
            ended = document(url)["ended"]
            time.sleep(0.3)
        if len(ended) >= 2:
            break
    if len(ended) < 2:
        raise Wrong(f"children that are idle do not end: {ended}")
    check_turns(ended)


def main():
    what, *rest = sys.argv[1:]
    try:
        {"load": check_load, "idle": check_idle}[what](*rest)
    except Exception as error:  # pylint: disable=broad-except
        sys.exit(f"{what}: {type(error).__name__} {error}")


main()
