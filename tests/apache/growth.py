#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients for growth.sh and soak_restarts.sh, the server behind the proxy, and a look at memory meanwhile.

growth.py backend PORT                      answers until it is stopped
growth.py keepalive PORT PATH N             N requests one after the other on one connection
growth.py tls PORT PATH N                   the same over TLS
growth.py ask PORT PATH                     requests, each on a connection of its own, until it gets SIGTERM
growth.py mix PORT N COUNT PATH=WEIGHT...   N requests at random, on kept connections or not; COUNT has their number
growth.py h2 PORT N COUNT PATH...           N requests over HTTP/2, ten at a time, on one connection after the other
growth.py download PORT PATH RATE           one answer; RATE in MB a second, 0 as fast as it comes
growth.py upload PORT PATH MEGABYTES        one chunked POST
growth.py websocket PORT PATH N             N small frames there and back on one connection
growth.py watch PID FILE COMMAND...         runs a client, and writes "seconds KiB" lines: a process's anonymous memory
growth.py slope FILE                        "growth at-end" in KiB: from a quarter of that time to its end

A client that gets anything but what it asked for ends with one line, and 1. Everything is on 127.0.0.1.
"""
import base64
import contextlib
import os
import random
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import time

PIECE = b"a piece of an endless answer, %08d. " * 8
EVENT = b"data: a small event, sent at once\n\n"


def give_up(why):
    sys.exit("growth.py: " + why)


# --- HTTP by hand -------------------------------------------------------------------------------


class Connection:
    """A connection, and the bytes of it that nobody has read."""

    def __init__(self, port, small=False, tls=False):
        self.socket = socket.socket()
        if small:  # the sender is to wait for us, not for the kernel
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.rest = b""

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise ConnectionResetError("the server closed the connection")
        self.rest += got

    def until(self, mark):
        while mark not in self.rest:
            self.more()
        found, _, self.rest = self.rest.partition(mark)
        return found

    def exactly(self, n):
        while len(self.rest) < n:
            self.more()
        found, self.rest = self.rest[:n], self.rest[n:]
        return found

    def head(self):
        """Status, and the fields in lower case."""
        lines = self.until(b"\r\n\r\n").lower().split(b"\r\n")
        return int(lines[0].split()[1]), dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)

    def pieces(self, fields):
        """The body, as it comes."""
        if fields.get(b"transfer-encoding") == b"chunked":
            while size := int(self.until(b"\r\n"), 16):
                yield self.exactly(size + 2)[:-2]
            self.exactly(2)
        else:
            left = int(fields.get(b"content-length", 0))
            while left:
                if not self.rest:
                    self.more()
                piece, self.rest = self.rest[:left], self.rest[left:]
                left -= len(piece)
                yield piece


def request(path, method="GET", fields=""):
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


def body_of(connection, path):
    status, fields = connection.head()
    if status != 200:
        give_up(f"{path}: status {status}")
    return b"".join(connection.pieces(fields))


# --- clients ------------------------------------------------------------------------------------


def keepalive(port, path, n, secure=False):
    connection, asked, first = Connection(port, tls=secure), request(path), None
    for i in range(n):
        connection.socket.sendall(asked)
        body = body_of(connection, path)
        first = first or body
        if body != first:
            give_up(f"{path}: answer {i} differs from the first")


def tls(port, path, n):
    keepalive(port, path, n, secure=True)


def ask(port, path):
    ended, n = [], 0
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    asked = request(path, fields="Connection: close\r\n")
    while not ended:
        connection = Connection(port)
        connection.socket.sendall(asked)
        body_of(connection, path)
        connection.socket.close()
        n += 1
    print(n)


def write_count(path, n):
    with open(path, "w", encoding="ascii") as file:
        print(n, file=file)


def answer(connection, path, asked):
    """Body; None if the server closed a kept connection before it began to answer: that is its right."""
    try:
        connection.socket.sendall(asked)
        got = connection.socket.recv(65536)
    except (ConnectionResetError, BrokenPipeError):
        got = b""
    if not got:
        return None
    connection.rest += got
    status, fields = connection.head()
    body = b"".join(connection.pieces(fields))
    if status == 503 and path.startswith("/cgi/"):
        return SCRIPTS_STOPPED
    if status != 200:
        give_up(f"{path}: status {status}")
    return body


# In a graceful restart mod_cgid answers 503, on stock pools too, while a child of before asks for the daemon of before.
SCRIPTS_STOPPED = object()


def insist(port, path, asked, connection):
    """Body, connection, and how often it was asked again because scripts were stopped."""
    for again in range(50):
        body = answer(connection, path, asked) if connection else None
        if body is None:  # there was no connection, or there is none any more
            connection = Connection(port)
            body = answer(connection, path, asked)
        if body is None:
            give_up(f"{path}: a fresh connection was closed without an answer")
        if body is not SCRIPTS_STOPPED:
            return body, connection, again
        connection.socket.close()
        connection = None
        time.sleep(0.1)
    return give_up(f"{path}: scripts do not run any more")


def mix(port, n, count, *weighted):
    paths, weights = zip(*(word.rsplit("=", 1) for word in weighted))
    first, connection, repeated = {}, None, 0
    for i, path in enumerate(random.choices(paths, [int(weight) for weight in weights], k=n)):
        keeps = random.random() < 0.8
        asked = request(path, fields="" if keeps else "Connection: close\r\n")
        body, connection, again = insist(port, path, asked, connection)
        repeated += again
        if not keeps:
            connection.socket.close()
            connection = None
        if body != first.setdefault(path, body):
            give_up(f"{path}: request {i}: another answer than the first")
        if i % 1000 == 999 or i == n - 1:
            write_count(count, f"{i + 1} {repeated}")


# --- HTTP/2, as much of it as it takes ----------------------------------------------------------------

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK = 1, 1
STATUS_200 = 0x88  # as the first field of the first headers
MOST = (1 << 31) - 1


class Streams:
    """A connection of HTTP/2, with ten requests under way until a GOAWAY; the server may refuse those past its stream.
    In a graceful restart mod_http2, on stock pools too, now and then ends a connection with an error, since its workers
    have gone before it has written what they left, or closes it between the GOAWAY that warns and the one that names
    a stream: then all that is not answered is asked again, as browsers do."""

    def __init__(self, port):
        self.connection = Connection(port)
        self.asked, self.next, self.last, self.warned = {}, 1, MOST, False
        self.send(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.framed(SETTINGS, 0, 0, struct.pack("!HI", 4, MOST)) +
            self.framed(WINDOW, 0, 0, struct.pack("!I", MOST - 65535)))

    @staticmethod
    def framed(kind, flags, stream, payload=b""):
        return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload

    def send(self, frames):
        """Of a connection that the server has closed, what it wrote before is still to be read."""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.connection.socket.sendall(frames)

    def ask(self, path):
        fields = b"\x82\x86\x01\x09localhost\x04" + bytes([len(path)]) + path.encode()
        self.send(self.framed(HEADERS, 4 | END_STREAM, self.next, fields))
        self.asked[self.next] = path
        self.next += 2

    def step(self):
        """Reads one frame; the number of requests that it has answered."""
        try:
            head = self.connection.exactly(9)
            payload = self.connection.exactly(int.from_bytes(head[:3], "big"))
        except ConnectionResetError:
            if not self.warned:
                raise
            self.last = 0
            return 0
        kind, flags, stream = struct.unpack("!BBI", head[3:])
        if kind == HEADERS and payload[0] != STATUS_200 or kind == RESET:
            give_up(f"HTTP/2: {self.asked[stream]}: frame {kind}, {payload[:4].hex()}")
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.send(self.framed(kind, ACK, 0, payload if kind == PING else b""))
        if kind == GOAWAY:
            self.last, error = struct.unpack("!II", payload[:8])
            self.last = 0 if error else self.last
            self.warned = True
        if kind == DATA and payload:
            self.send(self.framed(WINDOW, 0, 0, struct.pack("!I", len(payload))))
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            del self.asked[stream]
            return 1
        return 0

    def waits(self):
        return any(stream <= self.last for stream in self.asked)


def h2(port, n, count, *paths):
    done, again = 0, 0
    while done < n:
        streams, before = Streams(port), done
        while not streams.warned and done < n and done - before < 5000:
            while len(streams.asked) < 10:
                streams.ask(random.choice(paths))
            done += streams.step()
        while streams.waits():
            done += streams.step()
        again += len(streams.asked) if streams.last == 0 else 0
        streams.connection.socket.close()
        write_count(count, f"{done} {again}")


def download(port, path, rate):
    connection = Connection(port, small=rate > 0)
    connection.socket.sendall(request(path, fields="Accept-Encoding: gzip\r\n"))
    status, fields = connection.head()
    if status != 200:
        give_up(f"{path}: status {status}")
    got, began = 0, time.monotonic()
    for piece in connection.pieces(fields):
        got += len(piece)
        if rate:
            time.sleep(max(0, began + got / (rate << 20) - time.monotonic()))
    print(f"{got} bytes")


def upload(port, path, megabytes):
    connection = Connection(port)
    connection.socket.sendall(request(path, "POST", "Transfer-Encoding: chunked\r\n"))
    piece = b"x" * 16384
    for _ in range(megabytes * 64):
        connection.socket.sendall(b"4000\r\n" + piece + b"\r\n")
    connection.socket.sendall(b"0\r\n\r\n")
    if int(body_of(connection, path)) != megabytes << 20:
        give_up("the server behind the proxy did not get it all")


def frame(payload):
    mask = os.urandom(4)
    return bytes([0x81, 0x80 | len(payload)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


def websocket(port, path, n):
    connection = Connection(port)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.socket.sendall(
        request(path, fields="Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                f"Sec-WebSocket-Key: {key}\r\n"))
    status, _ = connection.head()
    if status != 101:
        give_up(f"{path}: status {status}, not 101")
    message = frame(b"a small message")
    for _ in range(n):
        connection.socket.sendall(message)
        if connection.exactly(17)[2:] != b"a small message":
            give_up("another message came back")


# --- the server behind the proxy ----------------------------------------------------------------


class Backend(socketserver.StreamRequestHandler):
    """/stream/N: N MB in chunks of 16 KB; /events/N: N small events, each sent at once; POST: its length;
    with Upgrade: sends frames back."""

    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            method, path, _ = line.decode().split()
            fields = {}
            while (line := self.rfile.readline().strip().lower()):
                name, _, value = line.partition(b": ")
                fields[name] = value
            if b"upgrade" in fields:
                return self.echo()
            if method == "POST":
                self.swallow(fields)
            else:
                kind, n = path.strip("/").split("/")[-2:]
                getattr(self, kind)(int(n))

    def chunked(self, pieces, kind):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind)
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def stream(self, megabytes):
        piece = (b"".join(PIECE % ((i,) * 8) for i in range(64)))[:16384]
        piece += b"." * (16384 - len(piece))
        self.chunked((piece for _ in range(megabytes * 64)), b"text/plain")

    def events(self, n):
        self.chunked((time.sleep(0.0001) or EVENT for _ in range(n)), b"text/event-stream")

    def swallow(self, fields):
        got, left = 0, int(fields.get(b"content-length", -1))
        while left != 0:
            size = min(left, 65536) if left > 0 else int(self.rfile.readline(), 16)
            if size == 0:
                break
            got += len(self.rfile.read(size))
            if left > 0:
                left -= size
            else:
                self.rfile.readline()
        if left < 0:
            self.rfile.readline()
        answer = b"%d" % got
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))

    def echo(self):
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while head := self.rfile.read(6):
            _, length, mask = struct.unpack("!BB4s", head)
            payload = self.rfile.read(length & 0x7F)
            plain = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
            self.wfile.write(bytes([0x81, len(plain)]) + plain)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_):  # a client that went away
        pass


def backend(port):
    Server(("127.0.0.1", port), Backend).serve_forever()


# --- memory -------------------------------------------------------------------------------------


def anonymous_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def watch(pid, path, *command):
    began = time.monotonic()
    with open(path, "w", encoding="ascii") as out, subprocess.Popen(command, stdout=sys.stderr) as client:
        running = True
        while running:
            running = client.poll() is None
            out.write(f"{time.monotonic() - began:.3f} {anonymous_kib(pid)}\n")
            time.sleep(0.02)
    sys.exit(client.returncode)


def median(values):
    return sorted(values)[len(values) // 2]


def slope(path):
    with open(path, encoding="ascii") as lines:
        samples = [tuple(map(float, line.split())) for line in lines]
    last = samples[-1][0]
    if len(samples) < 12:
        give_up(f"{last} seconds are too short to see growth")
    near = sorted(samples, key=lambda sample: abs(sample[0] - 0.25 * last))  # a machine may be too busy for many
    early = [kib for at, kib in near[: max(3, len(samples) // 10)]]
    late = [kib for at, kib in samples if at >= 0.9 * last]
    print(int(median(late) - median(early)), int(median(late)))


COMMANDS = (backend, keepalive, tls, ask, mix, h2, download, upload, websocket, watch, slope)

if __name__ == "__main__":
    chosen = {command.__name__: command for command in COMMANDS}.get(sys.argv[1] if sys.argv[1:] else "")
    if not chosen:
        sys.exit(__doc__)
    words = sys.argv[2:]
    try:
        chosen(*(words if chosen is watch else (int(word) if word.isdigit() else word for word in words)))
    except (OSError, ValueError) as problem:
        give_up(f"{chosen.__name__}: {problem}")
    except KeyboardInterrupt:
        pass
