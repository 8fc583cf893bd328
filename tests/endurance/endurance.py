# SPDX-License-Identifier: Apache-2.0
"""Real servers for a long time, each three times side by side: on its own malloc, under libreap-malloc, under mimalloc.

All three get the same requests, a bounded number a round, and must give the same answers; now and then they are
restarted. Memory is that of all processes of a server. Servers listen on free ports of 127.0.0.1, live in a temporary
directory, and are stopped by their pids.

    endurance.py --build DIR --seconds N [--servers redis,nginx] [--preload LIBRARY] [--out DIR]
"""
import argparse
import gzip
import hashlib
import http.client
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MIMALLOC = "libmimalloc.so.2"
PATIENCE = 60
LONG = 300  # seconds from which growth is judged


class Ended(Exception):
    """A server that is not there any more, or does not answer."""


def found(*programs):
    """Which of the programs are missing."""
    return [program for program in programs if not shutil.which(program, path=PATH)]


def free_port():
    """Below those that connections get by themselves: so it is still free at a restart; and below httpd_lib.sh's."""
    while True:
        port = random.randrange(4000, 10000)
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            own = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return own + [below for child in own for below in children(child)]


def rss_of(pid):
    """In KiB; 0 for a process that has gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    except OSError:
        return 0


class Server:
    """One server under one malloc. start() and load() are a subclass's."""
    needs, account = (), None
    beside = ""  # what else is preloaded under libreap-malloc

    def __init__(self, malloc, preload, directory, options):
        self.malloc, self.preload, self.directory, self.options = malloc, preload, directory, options
        self.port, self.process, self.answers = free_port(), None, hashlib.sha256()
        os.makedirs(directory)
        if self.account and os.getuid() == 0:
            shutil.chown(directory, self.account)

    def spawn(self, *command, wait=False):
        environment = {"PATH": PATH, "LC_ALL": "C", "HOME": self.directory}
        if self.preload:
            environment["LD_PRELOAD"] = self.preload
            environment["LD_LIBRARY_PATH"] = os.path.dirname(self.options.apr)
        user = {"user": self.account, "group": self.account, "extra_groups": []} if self.account and os.getuid() == 0 else {}
        with open(os.path.join(self.directory, "log"), "ab") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.directory, start_new_session=True, **user)
        if not wait:
            self.process = process
        elif process.wait(PATIENCE) != 0:
            raise Ended(f"{command[0]} ended with {process.returncode}")

    def connect(self):
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), PATIENCE)
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise Ended(f"status {self.process.poll()}") from None
                time.sleep(0.05)

    def begin(self):
        self.start()
        self.connect().close()
        if self.preload:
            with open(f"/proc/{self.process.pid}/maps", encoding="ascii", errors="replace") as maps:
                text = maps.read()
            for library in self.preload.split():
                if os.path.basename(os.path.realpath(library)) not in text:
                    raise Ended(f"{library} is not loaded")

    def end(self, how=signal.SIGTERM):
        if self.process is None:
            return
        left = children(self.process.pid)
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in left:  # of a server that was killed; their parent is gone
            if os.path.exists(f"/proc/{pid}") and self.directory in self.command_of(pid):
                os.kill(pid, signal.SIGKILL)
        self.process = None

    @staticmethod
    def command_of(pid):
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return ""

    def restart(self):
        self.end()
        self.begin()

    def memory(self):
        return sum(rss_of(pid) for pid in [self.process.pid] + children(self.process.pid))

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Lines:
    """A connection of lines, for Redis and memcached."""

    def __init__(self, server):
        self.socket = server.connect()
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Ended("the connection ended")
        return line[:-2]

    def bytes(self, n):
        data = self.file.read(n + 2)
        if len(data) != n + 2:
            raise Ended("the connection ended")
        return data[:-2]


def value(chance, most):
    return bytes([chance.randrange(97, 123)]) * chance.randrange(1, most)


class Redis(Server):
    name, package, needs = "redis", "redis-tools", ("redis-check-rdb",)  # the server by another name

    def start(self):
        program = os.path.join(self.directory, "redis-server")
        if not os.path.exists(program):
            os.symlink(shutil.which("redis-check-rdb", path=PATH), program)
        self.spawn(program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", "",
                   "--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")

    def reply(self, lines):
        line = lines.line()
        if line[:1] == b"$":
            return line if line == b"$-1" else lines.bytes(int(line[1:]))
        if line[:1] == b"*":
            return b"".join(self.reply(lines) for _ in range(max(0, int(line[1:]))))
        return line

    def ask(self, lines, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        lines.send(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply(lines)

    def load(self, chance, round_):
        with Lines(self) as lines:
            for _ in range(600):
                key, what = chance.randrange(3000), chance.randrange(8)
                words = [("SET", f"s{key}", value(chance, 4000)), ("GET", f"s{key}"), ("DEL", f"s{key}"),
                         ("LPUSH", f"l{key % 50}", value(chance, 200)), ("LTRIM", f"l{key % 50}", 0, 99),
                         ("HSET", f"h{key % 50}", f"f{key}", value(chance, 100)), ("APPEND", f"s{key}", value(chance, 50)),
                         ("LRANGE", f"l{key % 50}", 0, 5)][what]
                self.answers.update(self.ask(lines, *words))
            self.answers.update(self.ask(lines, "DBSIZE"))
            if round_ % 10 == 9:
                self.ask(lines, "BGSAVE")
        return 601

    def restart(self):
        with Lines(self) as lines:
            lines.send(b"SHUTDOWN SAVE\r\n")
        self.process.wait(PATIENCE)
        self.begin()
        for _ in range(200):  # while it loads, it says so
            with Lines(self) as lines:
                if self.ask(lines, "PING") == b"+PONG":
                    return
            time.sleep(0.05)


class Memcached(Server):
    name, package, needs = "memcached", "memcached", ("memcached",)

    def start(self):
        user = ["-u", "nobody"] if os.getuid() == 0 else []
        self.spawn("memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-m", "64", "-t", "2", *user)

    def load(self, chance, round_):
        with Lines(self) as lines:
            for _ in range(600):
                key = chance.randrange(5000)
                if chance.randrange(3) == 0:
                    data = value(chance, 3000)
                    lines.send(b"set k%d 0 0 %d\r\n%s\r\n" % (key, len(data), data))
                    self.answers.update(lines.line())
                    continue
                lines.send(b"get k%d k%d\r\n" % (key, key + 1))
                line = lines.line()
                while line != b"END":
                    self.answers.update(line + lines.bytes(int(line.split()[3])))
                    line = lines.line()
        if round_ % 5 == 0:  # connections of many clients
            for one in [Lines(self) for _ in range(30)]:
                with one:
                    one.send(b"version\r\n")
                    self.answers.update(one.line())
        return 600


class Http(Server):
    """What Apache and nginx are asked."""
    pages = ["/page.txt", "/index.html", "/big/", "/large.txt", "/missing"]

    def site(self):
        if os.path.exists(os.path.join(self.directory, "htdocs")):
            return
        self.write("htdocs/index.html", "<p>hello</p>\n")
        self.write("htdocs/page.txt", "".join(f"{i}\n" for i in range(2000)))
        self.write("htdocs/large.txt", "".join(f"{i}\n" for i in range(60000)))
        for i in range(400):
            self.write(f"htdocs/big/entry-{i}.txt", f"{i}\n")
        for directory, _, names in os.walk(os.path.join(self.directory, "htdocs")):
            for name in names + ["."]:
                os.utime(os.path.join(directory, name), (1577836800, 1577836800))
        for above in (os.path.dirname(self.directory), self.directory):
            os.chmod(above, 0o755)  # root's children are another user

    def get(self, connection, page, headers=None):
        connection.request("GET", page, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def load(self, chance, round_):
        asked = 0
        for _ in range(4):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            try:
                for _ in range(40):
                    page = chance.choice(self.pages + self.pages[:2] * 5)
                    packed = {"Accept-Encoding": "gzip"} if chance.randrange(4) == 0 else {}
                    status, body = self.get(connection, page, packed)
                    if status != (404 if page == "/missing" else 200):
                        raise Ended(f"{page}: status {status}")
                    if page == "/missing":
                        body = body.replace(str(self.port).encode(), b"")
                    if packed and body[:2] == b"\x1f\x8b":
                        body = gzip.decompress(body)
                    self.answers.update(b"%d %s" % (status, body))
                    asked += 1
            except (OSError, http.client.HTTPException) as error:
                raise Ended(f"no answer: {error!r}") from None
            finally:
                connection.close()
        return asked


class Nginx(Http):
    name, package, needs = "nginx", "nginx", ("nginx",)

    def start(self):
        self.site()
        os.makedirs(os.path.join(self.directory, "t"), exist_ok=True)
        temporary = " ".join(f"{kind}_temp_path {self.directory}/t/{kind};"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user nobody nogroup;" if os.getuid() == 0 else ""
        conf = self.write("nginx.conf", f"""{user} daemon off; worker_processes 2; pid {self.directory}/pid;
error_log {self.directory}/error.log; events {{ worker_connections 256; }}
http {{ access_log off; gzip on; gzip_types text/plain; {temporary} server_tokens off; types {{ text/html html; text/plain txt; }}
server {{ listen 127.0.0.1:{self.port}; root {self.directory}/htdocs; autoindex on; }} }}
""")
        self.spawn("nginx", "-c", conf, "-p", self.directory, "-e", os.path.join(self.directory, "error.log"))

    def restart(self):
        if random.random() < 0.5:
            self.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
        else:
            self.end(signal.SIGQUIT)
            self.begin()


class Apache(Http):
    name, package, needs = "apache", "apache2-dev apache2-bin", ("apache2",)
    modules = os.environ.get("HTTPD_MODULES", "/usr/lib/apache2/modules")

    def start(self):
        self.site()
        ours = self.malloc == "reap"
        if ours:
            self.preload = " ".join([self.options.apr, self.options.preload])
        names = "mpm_event authz_core mime dir autoindex filter deflate".split()
        text = "".join(f"LoadModule {name}_module {self.modules}/mod_{name}.so\n" for name in names)
        if ours:
            text += f"LoadModule reap_module {self.options.module}\nReapStatus on\n<Location /reap-status>\nSetHandler reap-status\n</Location>\n"
        user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
        conf = self.write("httpd.conf", text + f"""{user}ServerRoot {self.directory}
ServerName localhost
Listen 127.0.0.1:{self.port}
PidFile {self.directory}/httpd.pid
DefaultRuntimeDir {self.directory}
Mutex file:{self.directory} default
ErrorLog {self.directory}/error.log
ServerSignature Off
StartServers 2
ServerLimit 2
ThreadsPerChild 16
MinSpareThreads 32
MaxSpareThreads 32
MaxRequestWorkers 32
DocumentRoot {self.directory}/htdocs
TypesConfig /etc/mime.types
AddOutputFilterByType DEFLATE text/plain
IndexOptions FancyIndexing NameWidth=*
<Directory {self.directory}/htdocs>
Options Indexes
Require all granted
</Directory>
""")
        self.spawn("apache2", "-f", conf, "-DFOREGROUND")

    def load(self, chance, round_):
        asked = super().load(chance, round_)
        if self.malloc == "reap" and round_ % 5 == 0:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            try:
                status, body = self.get(connection, "/reap-status?json")
            except (OSError, http.client.HTTPException) as error:
                raise Ended(f"no answer: {error!r}") from None
            connection.close()
            if status != 200 or b"{" not in body:
                raise Ended(f"the status page says {status}")
        return asked

    def restart(self):
        if random.random() < 0.5:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
        else:
            super().restart()


class Postgres(Server):
    name, package, account = "postgresql", "postgresql", "postgres"
    folder = next((os.path.join("/usr/lib/postgresql", version, "bin")
                   for version in sorted(os.listdir("/usr/lib/postgresql"), reverse=True)), "") \
        if os.path.isdir("/usr/lib/postgresql") else ""
    needs = (os.path.join(folder, "postgres"), "pgbench", "psql")

    def client(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE, check=False, env={"PATH": PATH, "LC_ALL": "C"})
        if done.returncode != 0:
            raise Ended(done.stderr.decode(errors="replace").strip()[-200:])
        return done.stdout

    def at(self):
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "soak"]

    def ask(self, question):
        return self.client("psql", *self.at(), "-X", "-q", "-t", "-A", "-c", question, "postgres")

    def start(self):
        data = os.path.join(self.directory, "data")
        fresh = not os.path.exists(data)
        if fresh:
            self.spawn(os.path.join(self.folder, "initdb"), "-D", data, "-U", "soak", "-A", "trust", "-N",
                       "--locale=C", "-E", "UTF8", wait=True)
        self.spawn(os.path.join(self.folder, "postgres"), "-D", data, "-p", str(self.port), "-c", "shared_buffers=16MB",
                   "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.directory}", "-c", "fsync=off")
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.ask("select 1")
                break
            except Ended:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        if fresh:
            self.client("pgbench", *self.at(), "-i", "-q", "-s", "1", "postgres")

    def load(self, chance, round_):
        seed = str(chance.randrange(1 << 30))
        self.client("pgbench", *self.at(), "-n", "-c", "1", "-t", "40", f"--random-seed={seed}", "postgres")
        self.client("pgbench", *self.at(), "-n", "-S", "-c", "4", "-t", "25", f"--random-seed={seed}", "postgres")
        self.answers.update(self.ask("select sum(abalance), sum(abs(abalance)), max(aid) from pgbench_accounts"))
        self.answers.update(self.ask("select count(*), sum(delta) from pgbench_history"))
        self.answers.update(self.ask("select string_agg(md5(aid::text || abalance), '' order by aid) "
                                     "from pgbench_accounts where aid < 2000"))
        return 143

    def end(self, how=signal.SIGINT):  # a fast shutdown
        super().end(how)


SERVERS = [Apache, Nginx, Redis, Memcached, Postgres]


class Soak:
    def __init__(self, kind, mallocs, directory, options):
        self.kind, self.name = kind, kind.name
        self.servers = [kind(name, preload, os.path.join(directory, f"{kind.name}-{name}"), options)
                        for name, preload in mallocs.items()]
        self.rounds = self.asked = self.restarts = 0
        self.memory = []  # (seconds, server's malloc, KiB)
        self.wrong, self.out = "", False

    def guard(self, server, what, act):
        """Runs it; false, and a word of what is wrong, if the server is not as it was."""
        try:
            act()
            return True
        except (Ended, OSError, subprocess.SubprocessError, ValueError) as error:
            self.wrong = f"{server.malloc}: {what}: {error}"
            return False

    def begin(self):
        return all(self.guard(server, "start", server.begin) for server in self.servers)

    def round(self, began, seed):
        """The same requests to each."""
        for server in self.servers:
            if not self.guard(server, f"round {self.rounds}",
                              lambda s=server: setattr(s, "last", s.load(random.Random(seed), self.rounds))):
                return False
            self.memory.append((time.monotonic() - began, server.malloc, server.memory()))
        self.rounds += 1
        self.asked += self.servers[0].last
        stock = self.servers[0].answers.hexdigest()
        for server in self.servers[1:]:
            if server.answers.hexdigest() != stock:
                self.wrong = f"{server.malloc}: other answers than stock's in round {self.rounds - 1}"
                return False
        return True

    def restart(self):
        self.restarts += 1
        seed = random.getrandbits(30)
        for server in self.servers:
            random.seed(seed)  # the same kind of restart for each
            if not self.guard(server, "restart", server.restart):
                return False
        random.seed()
        return True

    def end(self):
        for server in self.servers:
            server.end()

    def medians(self, malloc):
        """Of the second and of the last quarter."""
        return medians([kib for _, name, kib in self.memory if name == malloc])


def medians(sizes):
    quarter = max(1, len(sizes) // 4)
    return statistics.median(sizes[quarter:2 * quarter] or sizes), statistics.median(sizes[-quarter:])


def draw(soaks, mallocs, out):
    """A picture, a field for each server; without gnuplot the numbers alone."""
    with open(os.path.join(out, "soak.csv"), "w", encoding="ascii") as file:
        file.write("server,malloc,seconds,rss_kib\n")
        for soak in soaks:
            for seconds, malloc, kib in soak.memory:
                file.write(f"{soak.name},{malloc},{seconds:.1f},{kib}\n")
    if not shutil.which("gnuplot"):
        print("no gnuplot (Debian: gnuplot-nox): soak.csv is not drawn")
        return
    soaks = [soak for soak in soaks if len(soak.memory) >= 2 * len(mallocs)]
    if not soaks:
        return
    text = ["set terminal svg size 900," + str(260 * len(soaks)) + " background 'white' font 'sans,13'",
            f"set output '{out}/soak.svg'", f"set multiplot layout {len(soaks)},1",
            "set key outside right top", "set xlabel 'seconds'", "set ylabel 'RSS, MiB'", "set yrange [0:*]", "set grid"]
    for soak in soaks:
        for malloc in mallocs:
            text += [f"${soak.name}_{malloc} << EOD"] + [f"{s:.1f} {kib / 1024:.2f}" for s, m, kib in soak.memory if m == malloc]
            text += ["EOD"]
        text += [f"set title '{soak.name}: {soak.rounds} rounds, {soak.restarts} restarts'"]
        text += ["plot " + ", ".join(f"${soak.name}_{malloc} with lines lw 1.5 title '{malloc}'" for malloc in mallocs)]
    subprocess.run(["gnuplot"], input="\n".join(text) + "\n", text=True, check=True)
    print(f"the picture: {out}/soak.svg")


def table(soaks, mallocs):
    print("server, rounds, requests to each, restarts; RSS in MiB, median of the second quarter and of the last")
    for soak in soaks:
        sizes = [f"{name} " + " -> ".join(f"{kib / 1024:.1f}" for kib in soak.medians(name)) for name in mallocs] \
            if soak.rounds else []
        print(f"{soak.name:<11} {soak.rounds:>5} {soak.asked:>8} {soak.restarts:>3}   " + ", ".join(sizes) +
              (f"   WRONG: {soak.wrong}" if soak.wrong else ""))


def grows(stock, reap):
    """Whether ours (the medians of the second and of the last quarter) grew by more than a tenth, and 4 MiB, and more
    than stock's did."""
    (a, b), (c, d) = stock, reap
    return d > c * 1.1 + 4096 and d - c > 1.1 * (b - a)


def grown(soaks, seconds):
    """In a long run: whether one of ours grew."""
    bad = 0
    for soak in soaks:
        if seconds < LONG or soak.wrong:
            continue
        stock, reap = soak.medians("stock"), soak.medians("reap")
        if grows(stock, reap):
            print(f"{soak.name}: RSS grows under libreap-malloc, from {reap[0]} to {reap[1]} KiB; "
                  f"stock's from {stock[0]} to {stock[1]}")
            bad = 1
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=".")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--servers", default=",".join(kind.name for kind in SERVERS))
    parser.add_argument("--preload")
    parser.add_argument("--out", default=".")
    parser.add_argument("--share", type=float, default=0.4, help="of the time in which servers work; else all rest")
    options = parser.parse_args()
    build = os.path.realpath(options.build)
    options.preload = os.path.realpath(options.preload or os.path.join(build, ".libs/libreap-malloc.so"))
    options.apr = os.path.join(build, ".libs/libreap-apr.so")
    options.module = os.path.join(build, "apache_module/.libs/mod_reap.so")
    if not os.path.exists(options.preload):
        sys.exit(f"no {options.preload}")
    mallocs = {"stock": "", "reap": options.preload}
    if subprocess.run(["true"], env={"PATH": PATH, "LD_PRELOAD": MIMALLOC}, stderr=subprocess.PIPE, check=False).stderr:
        print(f"skipped: no {MIMALLOC} (Debian: libmimalloc2.0)")
    else:
        mallocs["mimalloc"] = MIMALLOC
    directory = tempfile.mkdtemp(prefix="soak-")
    os.chmod(directory, 0o755)
    soaks, wanted = [], options.servers.split(",")
    for kind in SERVERS:
        missing = found(*kind.needs)
        if kind is Apache:
            missing += [path for path in (options.apr, options.module) if not os.path.exists(path)]
        if kind.name in wanted and missing:
            print(f"skipped: no {missing[0]} (Debian: {kind.package}): {kind.name}")
        elif kind.name in wanted:
            soaks.append(Soak(kind, mallocs, directory, options))
    if not soaks:
        print("skipped: none of the servers is here")
        sys.exit(77)
    began, seed, status = time.monotonic(), random.randrange(1 << 30), 0
    try:
        for soak in soaks:
            soak.out = not soak.begin()
        began = time.monotonic()
        until, cycle = began + options.seconds, 0
        while time.monotonic() < until and not all(soak.out for soak in soaks):
            for soak in soaks:
                at = time.monotonic()
                if at > until:
                    break
                soak.out = soak.out or not soak.round(began, seed + cycle)
                if not soak.out and soak.rounds % 10 == 5:
                    soak.out = not soak.restart()
                time.sleep(min(1, (time.monotonic() - at) * (1 / options.share - 1)))
            cycle += 1
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        for soak in soaks:
            soak.end()
        status = any(soak.wrong for soak in soaks)
        if status:
            print(f"logs: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if not any(soak.rounds for soak in soaks):
        print("no server had one round")
        status = True
    table(soaks, mallocs)
    draw(soaks, mallocs, options.out)
    sys.exit(1 if status or grown(soaks, options.seconds) else 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
