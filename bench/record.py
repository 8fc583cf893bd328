# SPDX-License-Identifier: Apache-2.0
"""Records traces of real programs, for bench/replay and reap-analyse: bench/record.py --build DIR [--stacks N]
[--to DIR] [PROGRAM...]. Programs and their inputs are those of programs.py (perl, php, g++, xmllint, redis and
others), and servers those of record_servers.py (apache-index, apache-ssi, apache-proxy, apache-h2, postgres); what is not
installed is named and left out. A trace that is there stays."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import programs
import record_servers

USUAL = ["perl", "php", "g++", "xmllint", "lua", "sqlite3", "redis"] + [server.label for server in record_servers.ALL]


def record(program, build, to, stacks):
    """All processes of a run: the first one's trace is NAME, the others' NAME.PID."""
    trace = f"{to}/{program.label}.trace"
    if os.path.exists(trace):
        return print(f"{trace} is there")
    with tempfile.TemporaryDirectory() as temporary:
        for link, name in program.links.items():
            os.symlink(f"{build}/bench/inputs/{name}", f"{temporary}/{link}")
        # Debian's redis-server is linked to jemalloc, whose calls go to the recorder, too.
        environment = dict(os.environ, LD_PRELOAD=f"{build}/.libs/libreap-trace.so",
                           REAP_TRACE=trace + (f",stacks={stacks}" if stacks else ""), **program.environment)
        with subprocess.Popen(program.command(None, build, temporary), env=environment, cwd=temporary,
                              stdout=subprocess.DEVNULL) as run:
            if program.client:
                program.client(temporary)
            status = run.wait()
    sizes = [os.path.getsize(f"{to}/{name}") for name in os.listdir(to) if name.startswith(f"{program.label}.trace")]
    print(f"{trace}: status {status}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")


def record_server(server, build, to, stacks):
    """The server may be another user's, so its traces are made in a directory of its own."""
    trace = f"{to}/{server.label}.trace"
    if os.path.exists(trace):
        return print(f"{trace} is there")
    with tempfile.TemporaryDirectory() as temporary:
        made = f"{temporary}/{server.label}.trace"
        environment = dict(os.environ, LD_PRELOAD=f"{build}/.libs/libreap-trace.so",
                           REAP_TRACE=made + (f",stacks={stacks}" if stacks else ""))
        status = server.run(temporary, environment)
        names = [name for name in os.listdir(temporary) if name.startswith(f"{server.label}.trace")]
        for name in names:
            shutil.move(f"{temporary}/{name}", f"{to}/{name}")
    sizes = sorted((os.path.getsize(f"{to}/{name}"), name) for name in names)
    print(f"{trace}: status {status}, {len(sizes)} files, {sum(size for size, _ in sizes) / 1e6:.1f} MB; the largest one is "
          + (sizes[-1][1] if sizes else "none"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--to", default="bench/traces")
    parser.add_argument("--stacks", type=int, default=0)
    parser.add_argument("programs", nargs="*", default=USUAL)
    options = parser.parse_args()
    build, to = os.path.abspath(options.build), os.path.abspath(options.to)
    os.makedirs(to, exist_ok=True)
    if not os.path.exists(f"{build}/.libs/libreap-trace.so"):
        sys.exit(f"no {build}/.libs/libreap-trace.so: make it first")
    for program in programs.installed(build, options.programs):
        record(program, build, to, options.stacks)
    for server in record_servers.ALL:
        if server.label in options.programs and not server.path:
            print(f"no {server.label}: left out (Debian: {server.package})")
        elif server.label in options.programs:
            record_server(server, build, to, options.stacks)


if __name__ == "__main__":
    main()
