#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests beyond a limit, and every byte that their client gets.

mod_reap_deny.py PORT BACK LOG MPM LARGE OPTION...   says what is wrong, and ends with 1 then

PORT speaks HTTP/1, BACK HTTP/2 without TLS as well (not under prefork), LOG is the access log, and LARGE the file behind
/large.txt. The limit is 1 MiB. An OPTION is lua, rlua (mod_reap_lua) or php, where the server has that module.

A request is denied or closed, before its first byte went out or after it, and written by one call of httpd or another:
  before  denied: one whole error page, and not a byte behind it; closed: not a byte
  after   an answer that its client sees to be cut off
A handler that heeds its calls' results ends soon after the limit; one that does not ("deaf") is kept from the client.
"""
import itertools
import os
import re
import socket
import subprocess
import sys
import time

WAYS = "pass proto puts write putc printf vputs flush fwrite fd mmap".split()
BUFFERED = "puts write putc printf vputs".split()
PROTOCOLS = "1.0 1.0-keep 1.1 1.1-pipelined 2".split()
# The limit, and pieces of 132 KiB with their chunks; 8000 bytes of lines that ap_fwrite gathers have a piece each.
MOST, MOST_FWRITE = 3_000_000, 3_000_000 + 41 * 135_168
PAGE_END = b"</body></html>\n"

number = itertools.count(1)
failures = 0


# --- what came ----------------------------------------------------------------------------------


class Answer:
    """status, headers, body; whole: the client has no reason to doubt it; rest: bytes behind it."""

    def __init__(self, status, headers, body, whole, rest=b""):
        self.status, self.headers, self.body, self.whole, self.rest = status, headers, body, whole, rest


def chunks(data):
    """The body, whether it has its end, and what is behind."""
    body = b""
    while True:
        size, line, rest = data.partition(b"\r\n")
        if not line or not re.fullmatch(rb"[0-9a-fA-F]+", size):
            return body, False, data if line else b""
        size = int(size, 16)
        if size == 0:
            return body, rest.startswith(b"\r\n"), rest[2:]
        body += rest[:size]
        if len(rest) < size + 2:
            return body, False, b""
        data = rest[size + 2 :]


def answer_of(data, reset, head):
    """The first answer in data; None: there is none."""
    if not data:
        return None
    top, end, rest = data.partition(b"\r\n\r\n")
    lines = top.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.[01] (\d+) .*", lines[0])
    if not end or not match:
        return Answer(0, {}, data, False)
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    status = int(match[1])
    if head:
        return Answer(status, headers, b"", True, rest)
    if headers.get("transfer-encoding") == "chunked":
        return Answer(status, headers, *chunks(rest))
    if "content-length" in headers:
        n = int(headers["content-length"])
        return Answer(status, headers, rest[:n], len(rest) >= n, rest[n:])
    return Answer(status, headers, rest, not reset)


def exchange(port, data):
    """All that the server says until it ends the connection, and whether it did so by a reset."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed while it got the body
        try:
            while True:
                more = connection.recv(65536)
                if not more:
                    return got, False
                got += more
        except ConnectionResetError:
            return got, True


def request(path, version, *headers, method="GET"):
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    return "".join(line + "\r\n" for line in lines).encode() + b"\r\n"


PAGE = "/page.txt"


def by_http1(port, path, protocol, headers, method, body):
    version, _, kind = protocol.partition("-")
    if version == "1.0" and kind:
        headers = [*headers, "Connection: Keep-Alive"]
    if body is not None:
        headers = [*headers, f"Content-Length: {len(body)}"]
    data = request(path, version, *headers, method=method) + (body or b"")
    if kind == "pipelined":
        data = request(PAGE, "1.1") + data + request(PAGE, "1.1")
    got, reset = exchange(port, data)
    if kind == "pipelined":
        first = answer_of(got, reset, False)
        if not first or first.status != 200 or not first.whole or len(first.body) != 8893:
            complain(path, protocol, "the request before it got no whole answer")
            return None
        got = first.rest
    return answer_of(got, reset, method == "HEAD")


def by_http2(port, path, headers, method, body):
    """curl tells 92 or 56 where the stream was reset, and has no status where nothing came."""
    command = ["curl", "-s", "--http2-prior-knowledge", "--max-time", "20", "-D", "/dev/stderr"]
    command += ["-I"] if method == "HEAD" else ["-X", method]
    if body is not None:
        command += ["--data-binary", "@-"]
    for header in headers:
        command += ["-H", header]
    command.append(f"http://127.0.0.1:{port}{path}")
    done = subprocess.run(command, capture_output=True, input=body or b"")
    match = re.match(rb"HTTP/2 (\d+)", done.stderr)
    got = b"" if method == "HEAD" else done.stdout
    names = dict(re.findall(r"^([\w-]+): (.*?)\r$", done.stderr.decode("latin-1"), re.M))
    return Answer(int(match[1]), names, got, done.returncode == 0) if match else None


# --- what was logged -----------------------------------------------------------------------------


class Log:
    """The access log: "URL status X limit=NOTE mark=N peak=N" for each request. X is X where the connection was broken off."""

    def __init__(self, name):
        self.name = name

    def line(self, mark):
        """The line of the request with this mark, which may come a moment after the answer."""
        for _ in range(200):
            with open(self.name) as lines:
                for line in lines:
                    if f" mark={mark} " in line:
                        return line
            time.sleep(0.05)
        return ""


# --- one request ----------------------------------------------------------------------------------


def complain(path, protocol, what):
    global failures
    failures += 1
    print(f"{mpm}, HTTP/{protocol}, {path}: {what}")


def show(data):
    return repr(data[-120:].decode("latin-1"))


def see_page(path, protocol, answer, status, page):
    """One whole page, with nothing of the handler's."""
    if not answer:
        return complain(path, protocol, "no answer at all")
    if answer.status != status:
        complain(path, protocol, f"status {answer.status}, not {status}: {show(answer.body)}")
    if not answer.whole:
        complain(path, protocol, "the error page is cut off")
    if not page(answer.body):
        complain(path, protocol, f"the error page is not as it should be: {len(answer.body)} bytes, {show(answer.body)}")
    if answer.rest:
        complain(path, protocol, f"{len(answer.rest)} bytes behind the error page: {show(answer.rest)}")
    if protocol != "2" and "close" not in answer.headers.get("connection", "close"):
        complain(path, protocol, "the connection is to be kept")
    return None


def see_cut(path, protocol, answer):
    # What HTTP/2 has gathered when a stream is reset may be lost, headers and all.
    if protocol != "2" and (not answer or answer.status != 200):
        complain(path, protocol, f"the answer did not begin: {answer and answer.status}")
    elif answer and answer.whole:
        complain(path, protocol, f"an answer that looks whole, {len(answer.body)} bytes: {show(answer.body)}")


def see_log(path, protocol, mark, status, most):
    """status: of the page, or None."""
    line = log.line(mark)
    match = re.search(r" (\d+) (\S) limit=(\S+) mark=\d+ peak=(\d+)$", line)
    if not match:
        return complain(path, protocol, f"not in the access log: {line!r}")
    logged, aborted, note, peak = match.groups()
    if note != ("denied" if status else "closed"):
        complain(path, protocol, f"the note is {note}")
    # A client of HTTP/2 that has its page may be gone before its stream is logged.
    if (aborted == "X") == bool(status) and protocol != "2":
        complain(path, protocol, f"the connection is logged as {aborted}")
    if status and int(logged) != status:
        complain(path, protocol, f"logged with status {logged}, not {status}")
    if most and int(peak) > most:
        complain(path, protocol, f"held {peak} bytes, where {most} are to be enough")
    return None


def is_canned(body):
    return body.startswith(b"<!DOCTYPE HTML") and body.endswith(PAGE_END) and body.count(PAGE_END) == 1


def is_empty(body):
    return not body


def case(path, what, protocol, headers=(), method="GET", body=None, page=is_canned, status=500, most=MOST):
    """what: denied (one page), closed (nothing), cut (it had begun)."""
    mark = next(number)
    headers = [*headers, f"Mark: {mark}"]
    if protocol == "2":
        answer = by_http2(back, path, headers, method, body)
    else:
        answer = by_http1(port, path, protocol, headers, method, body)
    if method == "HEAD":
        page = is_empty
    if what == "denied":
        see_page(path, protocol, answer, status, page)
    elif what == "cut":
        see_cut(path, protocol, answer)
    elif answer:
        complain(path, protocol, f"an answer, where there should be none: {answer.status}")
    see_log(path, protocol, mark, status if what == "denied" else None, most)


# --- the tables ------------------------------------------------------------------------------------


def protocols():
    return [each for each in PROTOCOLS if each != "2" or mpm != "prefork"]


def ways():
    """A handler of the tests' own, by each call that writes."""
    for way, deaf, protocol in itertools.product(WAYS, ["", "deaf&"], protocols()):
        most = MOST_FWRITE if way == "fwrite" else MOST
        if deaf or way == "mmap":
            most = None
        # The first brigade that comes to httpd's filters begins the answer.
        early = "" if way in BUFFERED else "quiet=20&"
        if way != "proto":  # what passes no filter of resources meets no look
            case(f"/runaway?{early}by={way}&{deaf}grow=120", "denied", protocol, most=most)
            case(f"/runaway?begin&by={way}&{deaf}grow=120", "cut", protocol, most=most)
            case(f"/close/runaway?{early}by={way}&{deaf}grow=120", "closed", protocol, most=most)
            case(f"/close/runaway?begin&by={way}&{deaf}grow=120", "cut", protocol, most=most)
            # The handler of a request that was redirected, and denied, has more to say.
            case(f"/runaway?{early}by={way}&{deaf}inside&grow=120", "denied", protocol, most=None)
            case(f"/runaway?by={way}&{deaf}inside&begin&grow=120", "cut", protocol, most=None)
        # Denied by another way, and then by this one.
        case(f"/runaway?quiet=20&by=pass&deaf&grow=40&by={way}&{deaf}grow=80", "denied", protocol, most=None)
        # What a handler returns that heard of an error: no second page.
        case(f"/runaway?quiet=20&status=400&by=pass&{deaf}grow=40&by={way}&grow=80", "denied", protocol, most=None)


def methods():
    for protocol, action in itertools.product(protocols(), ["denied", "closed"]):
        close = "/close" if action == "closed" else ""
        # Before there is a handler.
        case(f"/early{close}/page.txt?20", action, protocol)
        # The client sends on while it gets the page, and is to read all of it. mod_http2 resets a stream whose body was
        # not read to its end, whatever the answer.
        if protocol == "2":
            continue
        body = b"x" * 3_000_000
        case(f"{close}/runaway?read", action, protocol, method="POST", body=body, status=413)
        case(f"{close}/runaway?status=400&read", action, protocol, method="POST", body=body, status=413)
        case(f"{close}/runaway?quiet=20&by=puts&grow=1&read", action, protocol, method="POST", body=body)
    for protocol in protocols():
        case("/runaway?by=puts&deaf&grow=120", "denied", protocol, method="HEAD", most=None)
        case("/runaway?by=puts&deaf&grow=120", "denied", protocol, method="POST", most=None)


def promptness():
    """The page comes while a handler that heeds nothing is still at work, which may end with the child."""
    stay = os.path.join(os.path.dirname(large), "stay")
    path = "/runaway?quiet=20&by=puts&deaf&grow=1&stay=30000&grow=120"
    for version in ("1.0", "1.1"):
        with open(stay, "w"), socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
            connection.sendall(request(path, version))
            try:
                got = connection.recv(65536)
            except TimeoutError:
                got = b""
        os.remove(stay)
        if not got.endswith(PAGE_END):
            complain(path, version, f"{len(got)} bytes while the handler is at work")


def documents():
    """Error documents that are resources themselves."""
    with open(large, "rb") as file:
        big = file.read()
    table = {
        "big": lambda body: body == big,
        "script": lambda body: body.startswith(b"query  method GET") and body.count(b"\n") == 1,
        "runaway": lambda body: body == b"sent\n" * 300 + b"done\n",
        "text": lambda body: body == b"a text",
        "missing": is_canned,
        "index": lambda body: body.count(b"entry-with-a-name") >= 2000 and body.endswith(PAGE_END),
    }
    for (name, page), protocol, way in itertools.product(table.items(), protocols(), ["puts", "pass"]):
        case(f"/document/{name}?quiet=20&by={way}&deaf&grow=120", "denied", protocol, page=page, most=None)


def modules():
    """Handlers that are httpd's own. One that passes its output once is beyond the limit before: Take."""
    take = ["Take: 20"]
    for protocol in protocols():
        case("/big/", "denied", protocol, take, most=None)
        case("/big/", "denied", protocol, [*take, "Accept-Encoding: gzip"], most=None)
        case("/index-64k/", "denied", protocol, most=400_000)
        case("/packed/big/", "denied", protocol, [*take, "Accept-Encoding: gzip"], most=None)
        case("/server-status", "denied", protocol, take, most=None)
        case("/large.txt", "denied", protocol, take, most=None)
        case("/cgi/hello.cgi", "denied", protocol, take, most=None)
        case("/all.shtml", "denied", protocol, take, most=None)
        case("/include.shtml", "cut", protocol, most=None)
        case("/deflated/runaway?by=puts&deaf&grow=120", "denied", protocol, ["Accept-Encoding: gzip"], most=None)
        case("/deflated/runaway?begin&by=puts&deaf&grow=120", "cut", protocol, ["Accept-Encoding: gzip"], most=None)
        case("/proxied/page.txt", "denied", protocol, take, most=None)
        case("/proxied/runaway/unlimited?" + "send=1&sleep=2&" * 150, "cut", protocol, most=None)
        for script in [each for each in ("lua", "rlua", "php") if each in options]:
            most = MOST if script == "php" else None  # mod_lua's r:puts has no result; ours gathers 8000 bytes
            case(f"/script.{script}", "denied", protocol, most=most)
            case(f"/script.{script}?begin", "cut", protocol, most=most)


port, back, mpm, large, options = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4], sys.argv[5], sys.argv[6:]
log = Log(sys.argv[3])
for table in (ways, methods, promptness, documents, modules):
    table()
print(f"{mpm}: {next(number) - 1} requests, {failures} failures")
sys.exit(failures > 0)
