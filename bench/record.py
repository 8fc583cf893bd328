# SPDX-License-Identifier: Apache-2.0
"""Records traces of real programs, for bench/replay, the pools' benchmarks and reap-analyse: bench/record.py --build DIR
[--stacks N] [--to DIR] [NAME...]. Names are programs of programs.py (perl, php, g++, xmllint, redis and others), the
servers below (apache-index, apache-ssi, apache-proxy, apache-h2), and httpd and perl-short, which are in
bench/recordings. What is not installed is named and left out. A trace that is there stays."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import apache
import contest
import inputs
import programs


class Program:
    """One of programs.py, on its input or on the first lines of it."""

    def __init__(self, program, label=None, lines=None):
        self.program, self.label, self.package, self.path, self.lines = program, label or program.label, program.package, program.path, lines

    def run(self, to, build, environment):
        inputs.make(f"{build}/bench/inputs", self.program.needs)
        with tempfile.TemporaryDirectory() as temporary:
            for link, name in self.program.links.items():
                os.symlink(f"{build}/bench/inputs/{name}", f"{temporary}/{link}")
            command = self.program.command(None, build, temporary)
            if self.lines:
                with open(command[-1]) as whole, open(f"{temporary}/text", "w") as short:
                    short.writelines(line for line, _ in zip(whole, range(self.lines)))
                command[-1] = "text"
            with subprocess.Popen(command, env=dict(environment, **self.program.environment), cwd=temporary,
                                  stdout=subprocess.DEVNULL) as run:
                if self.program.client:
                    self.program.client(temporary)
                return run.wait()


class Apache:
    """One process, -X, with pools of the libapr that is there, or the only child of a prefork: `times` each of the pages."""
    package, path = "apache2", shutil.which("apache2", path="/usr/sbin:/usr/bin")

    def __init__(self, label, mpm, pages, times, *flags):
        self.label, self.mpm, self.pages, self.times, self.flags = label, mpm, pages, times, flags

    def run(self, to, build, environment):
        server = contest.Contestant(self.label, self.path)
        with apache.serving(server, self.mpm, environment) as (_, port):
            urls = [f"http://127.0.0.1:{port}{page}" for page in self.pages]
            for _ in range(self.times):  # each time one connection
                subprocess.run(["curl", "-s", "--compressed", *(["-o", "/dev/null"] * len(urls)), *self.flags, *urls], check=True)
        return 0


REQUESTS = ["/one.html", "/page.txt", "/all.shtml", "/", "/none"]
ALL = [Program(program) for program in programs.ALL] + [
    Apache("apache-index", "one", ["/big/"], 20), Apache("apache-ssi", "one", ["/all.shtml"], 200),
    Apache("apache-proxy", "one", ["/proxied/big/"], 20), Apache("apache-h2", "one", ["/all.shtml"], 200, "--http2-prior-knowledge"),
    Apache("httpd", "child", REQUESTS, 4),
    Program(next(p for p in programs.ALL if p.label == "perl"), "perl-short", 25)]
USUAL = ["perl", "php", "g++", "xmllint", "lua", "sqlite3", "redis", "apache-index", "apache-ssi", "apache-proxy", "apache-h2"]


def record(recorded, build, to, stacks):
    """All processes of a run: the first one's trace is NAME, the others' NAME.PID; of a prefork only the child's. The program
    may be another user's, so traces are made in a directory of their own."""
    trace = f"{recorded.label}.trace"
    if os.path.exists(f"{to}/{trace}"):
        return print(f"{to}/{trace} is there")
    with tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o777)
        # Debian's redis-server is linked to jemalloc, whose calls go to the recorder, too.
        environment = dict(os.environ, LD_PRELOAD=f"{build}/.libs/libreap-trace.so",
                           REAP_TRACE=f"{temporary}/{trace}" + (f",stacks={stacks}" if stacks else ""))
        status = recorded.run(temporary, build, environment)
        names = [name for name in os.listdir(temporary) if name.startswith(trace)]
        if getattr(recorded, "mpm", "") == "child":
            child = max((name for name in names if name[len(trace) + 1:].isdigit()), key=lambda name: os.path.getsize(f"{temporary}/{name}"))
            os.rename(f"{temporary}/{child}", f"{temporary}/{trace}")
            names = [trace]
        for name in names:
            shutil.move(f"{temporary}/{name}", f"{to}/{name}")
    sizes = sorted((os.path.getsize(f"{to}/{name}"), name) for name in names)
    print(f"{to}/{trace}: status {status}, {len(sizes)} files, {sum(size for size, _ in sizes) / 1e6:.2f} MB; the largest one is "
          + (sizes[-1][1] if sizes else "none"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--to", default="bench/traces")
    parser.add_argument("--stacks", type=int, default=0)
    parser.add_argument("names", nargs="*", default=USUAL)
    options = parser.parse_args()
    build, to = os.path.abspath(options.build), os.path.abspath(options.to)
    os.makedirs(to, exist_ok=True)
    if not os.path.exists(f"{build}/.libs/libreap-trace.so"):
        sys.exit(f"no {build}/.libs/libreap-trace.so: make it first")
    for recorded in ALL:
        if recorded.label in options.names and not recorded.path:
            print(f"no {recorded.label}: left out (Debian: {recorded.package})")
        elif recorded.label in options.names:
            record(recorded, build, to, options.stacks)


if __name__ == "__main__":
    main()
