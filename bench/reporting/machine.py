# SPDX-License-Identifier: Apache-2.0
"""The machine: what it is, which versions run on it, and what else it did while something was measured."""
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import time

QUIET_OTHERS = 0.05  # what others may use of our CPUs while a machine counts as quiet
QUIET_STEAL = 0.01   # what the hypervisor may take


def text_of(path):
    with contextlib.suppress(OSError):
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def told_by(*words):
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(words, capture_output=True, text=True, timeout=10).stdout.strip()
    return ""


def first(pattern, text, otherwise=""):
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else otherwise


# --- what it is ------------------------------------------------------------------------------------------------------

def cpus():
    return sorted(os.sched_getaffinity(0))


def processor():
    about = text_of("/proc/cpuinfo")
    return first(r"^model name\s*: (.*)", about) or first(r"^CPU part\s*: (.*)", about) or os.uname().machine


def key():
    """Results of another machine are none of this one."""
    return f"{processor()}, {len(cpus())} CPUs, Linux {os.uname().release}"


def describe():
    memory = int(first(r"^MemTotal:\s*(\d+)", text_of("/proc/meminfo"), "0")) / 2**20
    virtual = " (a virtual machine)" if " hypervisor" in first(r"^(flags\s*:.*)", text_of("/proc/cpuinfo")) else ""
    system = first(r'^PRETTY_NAME="?([^"\n]*)', text_of("/etc/os-release"), "Linux")
    return [("CPU", f"{processor()}, {len(cpus())} of {os.cpu_count()} CPUs{virtual}"), ("Memory", f"{memory:.1f} GiB"),
            ("System", f"{system}, Linux {os.uname().release}, {os.uname().machine}")]


# --- versions --------------------------------------------------------------------------------------------------------

def package_versions(paths):
    """By path: what dpkg knows of a file; else where it is."""
    names = {name: path for path in paths for name in (path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr"))}
    owners = dict(reversed(line.rsplit(": ", 1)) for line in told_by("dpkg-query", "-S", *names).splitlines() if ": " in line)
    by_path = {names[name]: owner.split(":")[0] for name, owner in owners.items() if name in names}
    told = told_by("dpkg-query", "-W", "-f=${Package} ${Version}\n", *set(by_path.values())) if by_path else ""
    versions_ = dict(line.split(" ", 1) for line in told.splitlines() if " " in line)
    return {path: f"{by_path[path]} {versions_.get(by_path[path], '')}" if path in by_path else path for path in paths}


@functools.cache
def libraries_of(path):
    """What the dynamic linker would load for it."""
    return [word for word in re.findall(r"(?:=> )?(/\S+)", told_by("ldd", path)) if os.path.exists(word)]


def versions(contestants, build, source):
    """(name, version) of what takes part: by name, each once."""
    own = first(r'^#define PACKAGE_VERSION "(.*)"', text_of(f"{build}/config.h"), "reap"), commit(source)
    found, paths = {"reap": ", ".join(filter(None, own))}, {}
    for contestant in contestants:
        name = contestant.name.removeprefix("list ")
        if contestant.ours or contestant.yardstick or contestant.absent or name in found:
            continue
        found[name] = os.confstr("CS_GNU_LIBC_VERSION") or "glibc"
        library = [contestant.preload] if contestant.preload else libraries_of(contestant.program) if contestant.program else []
        library = [path for path in library if contestant.preload or re.search(r"apr-1|talloc|mimalloc", path)]
        if library:
            paths[name] = library[0]
    known = package_versions(list(paths.values()))
    found.update({name: known[path] for name, path in paths.items()})
    makefile = text_of(f"{build}/Makefile")
    compiler = [first(r"^CC = (.*)", makefile, "cc"), (told_by("cc", "--version").splitlines() or [""])[0],
                "CFLAGS " + first(r"^CFLAGS = (.*)", makefile)]
    return list(found.items()) + [("compiler", ", ".join(compiler))]


def commit(source):
    told = told_by("git", "-C", source, "describe", "--always", "--dirty", "--exclude=*")
    return f"commit {told}" if told else ""


# --- who is measured -------------------------------------------------------------------------------------------------

def digest(path, build):
    """Of what we build by its bytes, since a build anew may change the time alone."""
    try:
        about = os.stat(path)
        if not os.path.realpath(path).startswith(os.path.realpath(build) + "/"):
            return f"{path} {about.st_size} {about.st_mtime_ns}"
        return bytes_digest(path, about.st_size, about.st_mtime_ns)
    except OSError:
        return f"{path} is not there"


@functools.cache
def bytes_digest(path, *_):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def identity(build, contestant, case):
    """A word that changes with the programs, libraries, options and arguments of a run."""
    words = [word for word in case.command(contestant, build, "/tmp") if word]
    files = [words[0], *filter(None, re.split("[: ]", contestant.preload or case.bare))]
    files += [library for file in files for library in libraries_of(file)]
    parts = [digest(path, build) for path in dict.fromkeys(files)]
    parts += [word.replace(build + "/", "") for word in words] + [contestant.options, str(sorted(case.environment.items()))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


# --- what else it does -----------------------------------------------------------------------------------------------

def jiffies():
    """Of the CPUs that we may use: busy and stolen seconds; None where the kernel does not tell."""
    ticks, busy, stolen, seen = os.sysconf("SC_CLK_TCK"), 0, 0, 0
    ours = {f"cpu{n}" for n in cpus()}
    for line in text_of("/proc/stat").splitlines():
        name, *fields = line.split()
        if name in ours and len(fields) >= 8:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            busy, stolen, seen = busy + user + nice + system + irq + softirq, stolen + steal, seen + 1
    return (busy / ticks, stolen / ticks) if seen == len(ours) else None


def own_seconds():
    """CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Meter:
    """How busy the machine was from its start to its end, in shares of our CPUs."""

    def __init__(self):
        self.clock, self.own, self.all = time.monotonic(), own_seconds(), jiffies()

    def end(self):
        seconds, now = time.monotonic() - self.clock, jiffies()
        told = {"seconds": round(seconds, 4), "load": os.getloadavg()[0]}
        if self.all and now and seconds > 0:
            capacity = seconds * len(cpus())
            others = now[0] - self.all[0] - (own_seconds() - self.own)
            told["others"] = round(min(max(others / capacity, 0), 1), 4)
            told["steal"] = round(min(max((now[1] - self.all[1]) / capacity, 0), 1), 4)
        return told


def noise(runs):
    """Of many runs: the shares that others used and that was stolen, weighted by time; None where nothing is known."""
    seconds = sum(run["seconds"] for run in runs if "others" in run)
    if not seconds:
        return None
    return tuple(sum(run[name] * run["seconds"] for run in runs if "others" in run) / seconds for name in ("others", "steal"))


def is_quiet(told):
    return told is not None and told[0] <= QUIET_OTHERS and told[1] <= QUIET_STEAL


def takers(told):
    """Who takes CPU time from what is measured."""
    return f"others use {told[0]:.0%}" + f", the hypervisor {told[1]:.0%}" * (told[1] > QUIET_STEAL)


def in_words(told):
    if told is None:
        return "how busy the machine was is not known"
    taken = f", the hypervisor took {told[1]:.0%}" * (told[1] > QUIET_STEAL)
    return f"the machine was {'quiet' if is_quiet(told) else 'busy'}: others used {told[0]:.0%} of its CPUs{taken}"
