# SPDX-License-Identifier: Apache-2.0
"""apache_steps.py BUILD [record|check FILE]: instructions of a request of an unmodified Apache: stock, beside reaps, and
beside these with mod_reap (ReapStatus, and a limit that nothing meets).

One server each (event, -X) runs under callgrind. A client sends requests on one connection that stays, and a dump before
and one after some of them bound what is counted: so neither start nor end of the server is in it. Each request waits until
all threads sleep; a server that finds the next one at once takes another way, and would do so by chance. Pages: a file, a
page with two included parts, a directory, and the file over HTTP/2.

Valgrind has no restartable sequences, so hoard takes its locked path there, which no server runs. So what the adaptor and
the library call of hoard is counted apart, with all below it, as `backend`; the real path has about 40 instructions a call.
A request takes fifty times as long here, and what goes back by the clock would go after each few: purge_ms is a minute.

record writes ratios and calls to FILE; check compares with it: ratios by TOLERANCE, since which thread serves a request changes
a little (two run over HTTP/2). Status 77: something is not here."""
import collections
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import apache

WARM = 30
PAGES = {"static": ("/page.txt", 400), "ssi": ("/all.shtml", 100), "index": ("/some/", 24), "http2": ("/page.txt", 300)}
FILES = 20 # of the directory
SERVERS = ("stock", "reap", "mod_reap")
POOLS = ("libapr-1", "libaprutil-1", "libreap-apr", "libreap")
BACKEND = {"hoard_malloc", "hoard_calloc", "hoard_free", "hoard_realloc", "chunk_alloc", "chunk_free"}
TOLERANCE = {"static": 0.006, "ssi": 0.006, "index": 0.006, "http2": 0.03} # of ratios: by which thread serves
CALLS = 1.0 # of the backend


class Failed(Exception):
    """A server that does not answer, or not as it should."""


# --- clients: each sends one request, and waits for its answer -------------------------------------------------------

class Http1:
    """A connection of HTTP/1.1 that stays."""

    def __init__(self, port):
        self.peer = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = self.peer.makefile("rb")

    def get(self, path):
        self.peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        status = self.answer.readline()
        if b" 200 " not in status:
            raise Failed(f"{path}: {status!r}")
        head = dict(line.decode().lower().split(": ", 1) for line in iter(self.answer.readline, b"\r\n"))
        if "content-length" in head:
            self.answer.read(int(head["content-length"]))
            return
        for size in iter(lambda: int(self.answer.readline(), 16), 0):
            self.answer.read(size + 2)
        self.answer.readline()


class Http2:
    """A connection of HTTP/2 without TLS; nothing is compressed but by the static table."""
    DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
    END_STREAM, END_HEADERS, ACK = 1, 4, 1

    def __init__(self, port):
        self.peer = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = self.peer.makefile("rb")
        self.stream = 1
        self.peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(self.SETTINGS, 0, 0, b"")
                          + self.frame(self.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    @staticmethod
    def frame(kind, flags, stream, content):
        return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content

    def get(self, path):
        text = path.encode()
        fields = b"\x82\x86" + bytes([4, len(text)]) + text + bytes([1, 9]) + b"localhost" # GET, http, :path, :authority
        self.peer.sendall(self.frame(self.HEADERS, self.END_STREAM | self.END_HEADERS, self.stream, fields))
        ended = False
        while not ended:
            head = self.answer.read(9)
            if len(head) < 9:
                raise Failed("HTTP/2: the connection ended")
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            content = self.answer.read(int.from_bytes(head[:3], "big"))
            if kind == self.SETTINGS and not flags & self.ACK:
                self.peer.sendall(self.frame(self.SETTINGS, self.ACK, 0, b""))
            if kind in (self.RESET, self.GOAWAY) or (kind == self.HEADERS and content[:1] != b"\x88"): # 200
                raise Failed(f"HTTP/2: frame {kind}, {content!r}")
            ended = stream == self.stream and kind in (self.DATA, self.HEADERS) and flags & self.END_STREAM
        self.stream += 2


# --- a server under callgrind ----------------------------------------------------------------------------------------

class Server:
    """An Apache under callgrind, with a directory of its own."""

    def __init__(self, build, name):
        self.name = name
        self.place = tempfile.TemporaryDirectory()
        self.directory = pathlib.Path(self.place.name)
        self.directory.chmod(0o777) # a child of root runs, and writes its counts, as another user
        self.port = apache.free_port()
        self.dumps = 0
        site = self.directory / "site"
        apache.make_site(site)
        (site / "some").mkdir()
        for n in range(FILES):
            (site / f"some/entry-with-a-name-{n}.txt").write_text(f"{n}\n")
        text = apache.configuration(self.directory, "one", self.port).replace("KeepAliveTimeout 2", "KeepAliveTimeout 600")
        text += "<Files mark.txt>\nContentDigest On\n</Files>\nH2MinWorkers 1\nH2MaxWorkers 1\n"
        text += "<Location /reap-status>\nSetHandler reap-status\n</Location>\n"
        if name == "mod_reap":
            text += f"LoadModule reap_module {build}/apache_module/.libs/mod_reap.so\nReapStatus On\nReapLimitRequest 1G\n"
        (site / "mark.txt").write_text("mark\n")
        (self.directory / "httpd.conf").write_text(text)
        environment = {"PATH": "/usr/sbin:/usr/bin:/bin", "LC_ALL": "C"}
        preload = f"{build}/.libs/libreap.so.0:{build}/.libs/libreap-apr.so"
        if name != "stock":
            environment.update(LD_PRELOAD=preload, LD_LIBRARY_PATH=f"{build}/.libs", REAP_OPTIONS="purge_ms=60000")
        command = ["valgrind", "--tool=callgrind", "--dump-line=no", "--dump-before=apr_md5_init", f"--callgrind-out-file={self.directory}/counts",
                   f"--log-file={self.directory}/valgrind.log", "--vgdb=no", "--fair-sched=yes",
                   "/usr/sbin/apache2", "-X", "-f", str(self.directory / "httpd.conf")]
        self.process = subprocess.Popen(["setarch", "-R"] + command, env=environment, start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self):
        until = time.monotonic() + 120
        while b" 200 " not in apache.answer(self.port, "/page.txt")[:20]:
            if self.process.poll() is not None or time.monotonic() > until:
                errors = self.directory / "error.log"
                raise Failed(f"apache2 under callgrind ({self.name}) did not start\n" + (self.directory / "valgrind.log").read_text() + (errors.read_text() if errors.exists() else ""))
            time.sleep(0.2)
        self.marks = Http1(self.port)

    def get(self, client, path):
        """One request, and the end of all work that its answer has left behind."""
        client.get(path)
        until = time.monotonic() + 60
        before, now = None, self.threads()
        while now != before or not all("\nState:\tS" in status for status in now):
            if time.monotonic() > until:
                raise Failed(f"{path}: the server has work a minute after its answer")
            before, now = now, self.threads()

    def threads(self):
        """The state of each thread, with how often it slept; one that ends meanwhile has none."""
        found = []
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.append((thread / "status").read_text())
        return found

    def dump(self):
        """What was counted since the last dump: a file with a digest needs a function that nothing else calls."""
        self.get(self.marks, "/mark.txt")
        self.dumps += 1
        return Counts(self.directory / f"counts.{self.dumps}")

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.place.cleanup()


class Counts:
    """What a dump says: own instructions by library and function, and what goes to the backend."""

    def __init__(self, file):
        self.by_library = collections.Counter()
        self.calls = collections.Counter()
        self.functions = collections.Counter()
        self.backend = 0
        self.read(file)
        if not self.by_library:
            raise Failed("callgrind counted nothing")

    def for_one(self, fewer, requests):
        """What one request takes: these counts less those of so many requests fewer."""
        for own, others in ((self.by_library, fewer.by_library), (self.calls, fewer.calls), (self.functions, fewer.functions)):
            for key in set(own) | set(others):
                own[key] = (own[key] - others[key]) / requests
        self.backend = (self.backend - fewer.backend) / requests
        return self

    def read(self, file):
        names, library, function, callee, calls = {}, "", "", None, 0
        for line in open(file):
            match = re.match(r"(c?(?:ob|fn|fi|fl|fe))=\((\d+)\)(?: (.*))?$", line)
            if match:
                kind, number, name = match.groups()
                key = (kind[-2:] if kind[-2:] in ("ob", "fn") else "fl", number)
                if name:
                    names[key] = name
                if kind == "ob":
                    library = re.sub(r"\.so.*", "", os.path.basename(names[key]))
                elif kind == "fn":
                    function = re.sub(r"'\d+$", "", names[key])
                elif kind == "cfn":
                    callee = re.sub(r"'\d+$", "", names[key])
            elif line.startswith("calls="):
                calls = int(line[6:].split()[0])
            elif re.match(r"[0-9+*-]", line):
                cost = int(line.split()[1]) if len(line.split()) > 1 else 0
                if callee is not None:
                    if callee in BACKEND and function not in BACKEND and library in ("libreap", "libreap-apr"):
                        self.backend += cost
                        self.calls[callee] += calls
                    callee = None
                else:
                    self.by_library[library] += cost
                    self.functions[library + " " + function] += cost

    @property
    def pools(self):
        return sum(self.by_library[name] for name in POOLS) - self.backend

    @property
    def total(self):
        return sum(self.by_library.values()) - self.backend


def measure(build, name):
    server = Server(build, name)
    try:
        server.wait()
        counts = {}
        for page, (path, requests) in PAGES.items():
            client = (Http2 if page == "http2" else Http1)(server.port)
            few, counted = requests // 4, []
            for number in (WARM, few, few + requests):
                for _ in range(number):
                    server.get(client, path)
                counted.append(server.dump())
            counts[page] = counted[2].for_one(counted[1], requests)
            client.peer.close()
            time.sleep(0.2)
        return counts
    finally:
        server.end()


# --- what is told ----------------------------------------------------------------------------------------------------

def table(stock, reap, module):
    for page in PAGES:
        s, r, m = stock[page], reap[page], module[page]
        print(f"{page:8s} {'stock':>10s} {'reap':>10s}")
        others = sorted((set(s.by_library) | set(r.by_library)) - set(POOLS))
        for name in list(POOLS) + others:
            less = r.backend if name == "libreap" else 0
            if s.by_library[name] or r.by_library[name]:
                print(f"  {name:24s} {s.by_library[name]:10.0f} {r.by_library[name] - less:10.0f}")
        print(f"  {'pools: the first four':24s} {s.pools:10.0f} {r.pools:10.0f}  {r.pools / s.pools:.3f}")
        print(f"  {'all':24s} {s.total:10.0f} {r.total:10.0f}  {r.total / s.total:.3f}")
        calls = ", ".join(f"{name} {number:.2f}" for name, number in sorted(r.calls.items()))
        print(f"  {'with mod_reap, all':24s} {r.total:10.0f} {m.total:10.0f}  {m.total / r.total:.3f}")
        print(f"  backend, apart: {r.backend:.0f} instructions; {calls or 'no call'}")


def record_of(stock, reap, module):
    """Lines for the file: what they depend on, and a page each."""
    version = subprocess.run(["/usr/sbin/apache2", "-v"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    lines = ["# Instructions of a request, reaps to stock (pools, all), calls of the backend, and mod_reap's to reaps: apache_steps.py checks and records.",
             f"key {version}, {os.uname().machine}"]
    for page in PAGES:
        s, r, m = stock[page], reap[page], module[page]
        lines.append(f"{page} {r.pools / s.pools:.3f} {r.total / s.total:.3f} {max(0, sum(r.calls.values())):.1f}"
                     f" {m.total / r.total:.3f}")
    return lines


def compare(recorded, now):
    if recorded[1] != now[1]:
        print(f"skipped: recorded with {recorded[1][4:]}; here is {now[1][4:]}")
        return 77
    status = 0
    for before, after in zip(recorded[2:], now[2:], strict=True):
        page, *most = before.split()
        found = after.split()[1:]
        room = [TOLERANCE[page], TOLERANCE[page], CALLS, TOLERANCE[page]]
        if after.split()[0] != page or any(float(f) > float(m) + r for f, m, r in zip(found, most, room)):
            print(f"{page}: {' '.join(found)}, recorded {' '.join(most)}")
            status = 1
    print("a request takes more than recorded" if status else f"{len(PAGES)} pages take what was recorded")
    return status


def main():
    sys.stdout.reconfigure(line_buffering=True)
    build, what = os.path.abspath(sys.argv[1]), sys.argv[2:3]
    for program, package in (("valgrind", "valgrind"), ("/usr/sbin/apache2", "apache2-bin"), ("setarch", "util-linux")):
        if not shutil.which(program):
            print(f"skipped: no {os.path.basename(program)} (Debian: {package})")
            return 77
    try:
        figures = [measure(build, name) for name in SERVERS]
    except Failed as failure:
        print(failure)
        return 1
    table(*figures)
    now = record_of(*figures)
    if what == ["record"]:
        pathlib.Path(sys.argv[3]).write_text("\n".join(now) + "\n")
    if what == ["check"]:
        return compare(pathlib.Path(sys.argv[3]).read_text().splitlines(), now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
