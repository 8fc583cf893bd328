# SPDX-License-Identifier: Apache-2.0
"""An unmodified Apache with its pools on reaps, beside one on stock pools: requests a second, CPU time, and memory."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import contest
from contest import Case, Contestant, Work

MODULES = pathlib.Path(os.environ.get("HTTPD_MODULES", "/usr/lib/apache2/modules"))
CLIENTS = 8
SOON, LATER = 0.5, 1.5 # seconds from the end of the load until the memory is read again: before and after a purge
PAGES = {"static": ["/page.txt"], "ssi": ["/all.shtml"], "index": ["/big/"], "proxy": ["/proxied/page.txt"],
         "all": ["/page.txt", "/all.shtml", "/big/", "/proxied/page.txt"]}
WORKERS = 5 * CLIENTS # a server that proxies to itself has two for a request; a busy one of event closes idle connections
MPMS = {"event": f"ServerLimit 1\nStartServers 1\nThreadsPerChild {WORKERS}\nMaxRequestWorkers {WORKERS}\n"
                 f"MinSpareThreads 1\nMaxSpareThreads {WORKERS}",
        "prefork": f"ServerLimit {WORKERS}\nStartServers {WORKERS}\nMinSpareServers 1\nMaxSpareServers {WORKERS}\n"
                   f"MaxRequestWorkers {WORKERS}",
        "one": "ServerLimit 1\nStartServers 1\nThreadLimit 4\nThreadsPerChild 4\nMaxRequestWorkers 4\nProtocols h2c http/1.1",
        "child": "ServerLimit 1\nStartServers 1\nMaxRequestWorkers 1\nAddType text/plain .txt\n"
                 "AddOutputFilterByType DEFLATE text/plain"} # both recorded
MODULE = {"one": "mpm_event env http2", "child": "mpm_prefork deflate"}
FIGURES = [("ns", "time by the clock of a request", "ns", statistics.median), ("us", "CPU time of the server for a request", "us", statistics.median),
           ("peak", "PSS of all its processes at the load's end", "MiB", statistics.median),
           ("soon", f"PSS of all its processes {SOON} s after the load", "MiB", statistics.median),
           ("later", f"PSS of all its processes {LATER} s after the load", "MiB", statistics.median)]
LABELS = [f"event {page}" for page in PAGES] + ["prefork static", "prefork all"]
PROFILED = ["event static", "event ssi", "event index"]


# --- the server ----------------------------------------------------------------------------------------------------

def make_site(site):
    """A file of 9 KB, a page with two included parts, and a directory of 1000 files."""
    (site / "big").mkdir(parents=True)
    (site / "page.txt").write_text("".join(f"{n}\n" for n in range(1, 2001)))
    (site / "one.html").write_text("<i>part one</i>\n")
    (site / "two.html").write_text("<i>part two</i>\n")
    (site / "all.shtml").write_text('<!--#set var="name" value="reap" --><!--#include virtual="one.html" -->\n'
                                    '<!--#echo var="name" --> <!--#include virtual="two.html" -->\n')
    for n in range(1000):
        (site / f"big/entry-with-a-name-{n}.txt").write_text(f"{n}\n")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def configuration(directory, mpm, port):
    names = f"{MODULE.get(mpm, f'mpm_{mpm}')} authz_core mime dir autoindex include filter alias proxy proxy_http".split()
    user = "User www-data\nGroup www-data\n" if os.getuid() == 0 else ""
    return "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in names) + f"""{MPMS[mpm]}
{user}ServerRoot {directory}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {directory}/pid
DefaultRuntimeDir {directory}
Mutex file:{directory} default
ErrorLog {directory}/error.log
MaxKeepAliveRequests 0
KeepAliveTimeout 2
EnableMMAP Off
DocumentRoot {directory}/site
TypesConfig /dev/null
DirectoryIndex none
AddType text/html .shtml
AddOutputFilter INCLUDES .shtml
IndexOptions FancyIndexing NameWidth=* HTMLTable
ProxyPass /proxied/ http://127.0.0.1:{port}/
<Directory {directory}/site>
Options Indexes Includes
Require all granted
</Directory>
"""


def answer(port, path):
    """The whole answer to one request, or nothing."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return b"".join(iter(lambda: peer.recv(65536), b""))
    return b""


def processes(server):
    """The server's main process and its children."""
    with open(f"/proc/{server.pid}/task/{server.pid}/children") as told:
        return [server.pid] + list(map(int, told.read().split()))


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as told:
            fields = told.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pids):
    """The sum of PSS: each page is counted once, and a page of others as much as it is the server's."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as told:
            total += next(int(line.split()[1]) for line in told if line.startswith("Pss:"))
    return total / 1024


@contextlib.contextmanager
def serving(contestant, mpm, recorded=None):
    """A server in a directory and a process group of its own, on a port of 127.0.0.1; or recorded, in that environment."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755) # children of root run as another user
        make_site(directory / "site")
        port = free_port()
        (directory / "httpd.conf").write_text(configuration(directory, mpm, port))
        environment = recorded or {"PATH": contest.SYSTEM_PATH, "LC_ALL": "C", "REAP_OPTIONS": contestant.options}
        if contestant.preload:
            environment.update(LD_PRELOAD=contestant.preload, LD_LIBRARY_PATH=os.path.dirname(contestant.preload.split(":")[0]))
            environment.update(contestant.environment)
        server = subprocess.Popen([contestant.program, "-f", directory / "httpd.conf", "-X" if mpm == "one" else "-DFOREGROUND"], env=environment,
                                  start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 20
            children = {"prefork": WORKERS, "one": 0}.get(mpm, 1)
            while b" 200 " not in answer(port, "/page.txt")[:20] or len(processes(server)) <= children:
                if server.poll() is not None or time.monotonic() > until:
                    errors = directory / "error.log"
                    raise contest.Failed(f"apache2 on {contestant.name} did not start\n"
                                         + (errors.read_text() if errors.exists() else ""))
                time.sleep(0.05)
            yield server, port
        finally:
            server.send_signal(signal.SIGWINCH) # gracefully; by SIGTERM a stock child may crash at its end
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


# --- a run ---------------------------------------------------------------------------------------------------------

def load(port, path, seconds):
    """Requests that were answered with 200 in these seconds, by clients that each keep a connection."""
    run = subprocess.run(["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", f"http://127.0.0.1:{port}{path}"],
                         capture_output=True, text=True, timeout=60 + seconds)
    if run.returncode or "Non-2xx" in run.stdout or "Socket errors" in run.stdout:
        raise contest.Failed(f"{path}: {run.stdout}{run.stderr}")
    return next(int(line.split()[0]) for line in run.stdout.splitlines() if " requests in " in line)


def once(build, contestant, case):
    """One server, one load, and its memory soon after."""
    mpm, pages = case.arguments[0], PAGES[case.arguments[1]]
    with serving(contestant, mpm) as (server, port):
        for path in pages: # the first request of a page makes what is kept
            answer(port, path)
        pids, began = processes(server), time.monotonic()
        before = cpu_seconds(pids)
        requests = sum(load(port, path, case.seconds) for path in pages)
        took = time.monotonic() - began
        now = processes(server)
        if now != pids:
            raise contest.Failed(f"{case.label} on {contestant.name}: a child ended under load")
        cpu, peak = cpu_seconds(pids) - before, memory_mib(pids)
        time.sleep(SOON)
        soon = memory_mib(pids)
        time.sleep(LATER - SOON)
        return {"ns": 1e9 * took / requests, "us": 1e6 * cpu / requests, "peak": peak, "soon": soon, "later": memory_mib(pids)}


def parts(contestants, labels, rounds, options):
    cases = contest.wanted([Case(label, label.split()) for label in labels], options)
    for case in cases:
        case.seconds = max(1, round(options.seconds or 2))
    return [Work(contestants, cases, rounds, once)]


def apache2():
    """The server's program, or None, of which a line tells."""
    program = os.environ.get("APACHE2") or shutil.which("apache2", path="/usr/sbin:" + contest.SYSTEM_PATH)
    for name, path in (("apache2 (Debian: apache2-bin)", program), ("wrk", shutil.which("wrk"))):
        if not path:
            print(f"no {name}: nothing to measure")
            return None
    return program


def plan_apache(build, options):
    program = apache2()
    if not program:
        return []
    adaptor = "/.libs/libreap-apr.so"
    contestants = [Contestant("reap", program, preload=build + adaptor, ours=True), Contestant("stock", program)]
    contestants += [Contestant(also, program, preload=build + adaptor, options=also, ours=True) for also in options.also]
    contestants += [Contestant(name, program, preload=other + adaptor, ours=True, beside=True)
                    for name, other in contest.besides(options)]
    return parts(contestants, LABELS, 5, options)


def plan_profile(build, options):
    """What the heap profile costs a server, pools and malloc together, while it is on."""
    program = apache2()
    if not program:
        return []
    libraries = ":".join(f"{build}/.libs/lib{name}.so" for name in ("reap-malloc", "reap-apr", "reap-ask", "reap-profile"))
    off, on = (Contestant(name, program, preload=libraries, ours=True) for name in ("off", "on"))
    on.environment = {"REAP_PROFILE": "/dev/null"}
    return parts([off, on], PROFILED, 15, options)
