# SPDX-License-Identifier: Apache-2.0
"""Servers that record.py records: what is started, and who asks. Each has `label`, `package`, `path` and `run`."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import time

MODULES = "/usr/lib/apache2/modules"
CONFIGURATION = """ServerRoot {to}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {to}/pid
DefaultRuntimeDir {to}
Mutex file:{to} default
ErrorLog {to}/log
EnableMMAP Off
DocumentRoot {to}/site
TypesConfig /etc/mime.types
ServerLimit 1
StartServers 1
ThreadLimit 4
ThreadsPerChild 4
MaxRequestWorkers 4
Protocols h2c http/1.1
AddType text/html .shtml
AddOutputFilter INCLUDES .shtml
IndexOptions FancyIndexing NameWidth=* HTMLTable
ProxyPass /proxied/ http://127.0.0.1:{port}/
<IfModule unixd_module>
User {user}
</IfModule>
<Directory {to}/site>
Options Indexes Includes
Require all granted
</Directory>
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(answers, what):
    for _ in range(600):
        if answers():
            return
        time.sleep(0.1)
    raise SystemExit(f"{what} does not answer")


class Apache:
    """One process, -X, with pools of the libapr that is there: a load of `times` pages."""
    package, path = "apache2", shutil.which("apache2", path="/usr/sbin:/usr/bin")

    def __init__(self, load, page, times, *flags):
        self.label, self.page, self.times, self.flags = f"apache-{load}", page, times, flags

    def prepare(self, to):
        os.chmod(to, 0o755)
        os.makedirs(f"{to}/site/big")
        for i in range(1000):
            open(f"{to}/site/big/entry-with-a-name-{i}.txt", "w").close()
        for name, text in (("one.html", "<i>one</i>\n"), ("all.shtml", '<!--#set var="name" value="reap" -->'
                           '<!--#include virtual="one.html" --><!--#echo var="name" --><!--#include virtual="one.html" -->\n')):
            with open(f"{to}/site/{name}", "w") as out:
                out.write(text)
        modules = "mpm_event authz_core mime dir autoindex include filter env proxy proxy_http http2".split()
        with open(f"{to}/conf", "w") as out:
            out.writelines(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
            user = "www-data" if os.getuid() == 0 else os.environ.get("USER", "nobody")
            out.write(CONFIGURATION.format(to=to, port=self.port, user=user))

    def ask(self, page, times):
        command = ["curl", "-sf", "-o", "/dev/null", *self.flags, f"http://127.0.0.1:{self.port}{page}"]
        return all(subprocess.run(command).returncode == 0 for _ in range(times))

    def run(self, to, environment):
        self.port = free_port()
        self.prepare(to)
        with subprocess.Popen([self.path, "-X", "-f", f"{to}/conf"], env=environment, stdout=subprocess.DEVNULL) as server:
            wait_for(lambda: server.poll() is not None or self.ask("/one.html", 1), self.label)
            good = self.ask(self.page, self.times)
            server.send_signal(signal.SIGTERM)
            return server.wait() if good else "a page is missing"


class Postgres:
    """A server with a new cluster, and pgbench: each backend is a process of its own."""
    label, package = "postgres", "postgresql"
    places = ":".join(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    path = shutil.which("postgres", path=places)

    def run(self, to, environment):
        names, plain = ("initdb", "pgbench", "pg_isready"), {"PATH": os.environ["PATH"]}
        initdb, pgbench, ready = (os.path.join(os.path.dirname(self.path), name) for name in names)
        given = {}
        if os.getuid() == 0:  # which it refuses
            given = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(to, "postgres", "postgres")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": to, **given}
        subprocess.run([initdb, "-D", f"{to}/data", "-A", "trust", "-N"], check=True, env=plain, **quiet)
        command = [self.path, "-D", f"{to}/data", "-k", to, "-h", "", "-F"]
        with subprocess.Popen(command, env=environment, **quiet) as server:
            wait_for(lambda: subprocess.run([ready, "-h", to], env=plain, **quiet).returncode == 0, self.label)
            for work in (["-i", "-s", "1"], ["-t", "300", "-c", "2"]):
                subprocess.run([pgbench, "-h", to, *work, "postgres"], check=True, env=plain, **quiet)
            server.send_signal(signal.SIGINT)
            return server.wait()


ALL = [Apache("index", "/big/", 20), Apache("ssi", "/all.shtml", 200), Apache("proxy", "/proxied/big/", 20),
       Apache("h2", "/all.shtml", 200, "--http2-prior-knowledge"), Postgres()]
