# SPDX-License-Identifier: Apache-2.0
"""Real programs that allocate much: what is run, on which input, and which Debian package has it."""
import os
import shlex
import shutil
import socket
import time

import contest
import inputs

HERE = os.path.dirname(os.path.abspath(__file__))


class Program:
    """A run of a real program, as a contest.Case is one of ours. IN stands for the inputs' directory, WORK for that
    of the scripts, TMP for an empty one. An interpreter's own pools are switched off by its environment; bare is
    what to preload for a contestant without a library, where the program is linked to a malloc of its own."""
    reports = False

    def __init__(self, label, package, line, needs="", environment=None, client=None, links=None, bare=""):
        self.label, self.package, self.words, self.needs = label, package, shlex.split(line), needs.split()
        self.environment, self.client, self.links, self.bare = environment or {}, client, links or {}, bare
        # Found elsewhere, a program may be a script that starts others.
        self.path = shutil.which(self.words[0], path=contest.SYSTEM_PATH)

    def command(self, contestant, build, temporary):
        words = [self.path] + self.words[1:]
        for name, place in (("IN/", f"{build}/bench/inputs/"), ("WORK/", f"{HERE}/programs/"), ("TMP", temporary)):
            words = [word.replace(name, place) for word in words]
        return words


def ask_redis(path):
    """The digest of all data, then a shutdown; None while the server does not answer or still loads."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
            server.sendall(b"PING\r\n")
            if not server.recv(100).startswith(b"+PONG"):
                return None
            server.sendall(b"DEBUG DIGEST\r\n")
            digest = server.recv(100)
            server.sendall(b"SHUTDOWN NOSAVE\r\n")
            server.recv(100)
            return digest
        except OSError:
            return None


def end_redis(temporary):
    for _ in range(3000):
        time.sleep(0.02)
        digest = ask_redis(temporary + "/socket")
        if digest:
            return digest
    raise contest.Failed("redis-server does not answer")


PYTHON = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
GIT = {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}

ALL = [
    Program("python3", "python3", "python3 WORK/work.py IN/text.txt", "text.txt", PYTHON),
    Program("perl", "perl", "perl WORK/work.pl IN/text.txt", "text.txt", {"PERL_HASH_SEED": "0"}),
    Program("lua", "lua5.4", "lua5.4 WORK/work.lua IN/text.txt", "text.txt"),
    Program("php", "php-cli", "php -n WORK/work.php IN/text.txt", "text.txt", {"USE_ZEND_ALLOC": "0"}),
    Program("ruby", "ruby", "ruby --disable-gems WORK/work.rb IN/text.txt", "text.txt"),
    Program("gawk", "gawk", "gawk -f WORK/work.awk IN/text.txt", "text.txt"),
    Program("bc", "bc", "bc -q WORK/work.bc"),
    Program("g++", "g++", "g++ -std=c++17 -S -O1 -o /dev/stdout IN/templates.cc", "templates.cc"),
    Program("clang++", "clang", "clang++ -std=c++17 -S -O1 -o - IN/templates.cc", "templates.cc"),
    Program("tcc", "tcc", "tcc -run IN/functions.c", "functions.c"),
    Program("cppcheck", "cppcheck", "cppcheck --quiet --enable=all --output-file=/dev/stdout IN/classes.cc",
            "classes.cc"),
    Program("sqlite3", "sqlite3", "sqlite3 -batch -init IN/tables.sql :memory: '.read WORK/work.sql'", "tables.sql"),
    Program("redis", "redis-server", "redis-server --port 0 --unixsocket TMP/socket --dir TMP --save '' "
            "--appendonly yes --enable-debug-command yes --logfile TMP/log", "commands.aof", client=end_redis,
            links={"appendonly.aof": "commands.aof"}, bare="libc.so.6"), # Debian's is linked to jemalloc
    Program("xmllint", "libxml2-utils", "xmllint --format IN/records.xml IN/records.xml IN/records.xml", "records.xml"),
    Program("xsltproc", "xsltproc", "xsltproc WORK/work.xsl IN/records.xml", "records.xml"),
    Program("jq", "jq", "jq -f WORK/work.jq IN/records.json", "records.json"),
    Program("git", "git", "git --git-dir IN/repository.git log -p --stat -M main", "repository.git", GIT),
    Program("gs", "ghostscript", "gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r72 -sOutputFile=- WORK/work.ps"),
    Program("dot", "graphviz", "dot -Tplain IN/graph.dot", "graph.dot"),
    Program("groff", "groff-base", "troff -man -Tutf8 IN/document.1", "document.1"),
]


def installed(build, wanted):
    """The programs that are here, their inputs made."""
    found = [p for p in ALL if wanted is None or p.label in wanted]
    for program in found:
        if program.path is None:
            print(f"no {program.words[0]}: left out (Debian: {program.package})")
    found = [p for p in found if p.path]
    inputs.make(f"{build}/bench/inputs", sorted({name for p in found for name in p.needs}))
    return found
