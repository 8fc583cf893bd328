# SPDX-License-Identifier: Apache-2.0
"""Where results are kept: DIRECTORY/SUITE/CASE.NUMBER.json is one round of a case, with a run for each contestant.

A file is written under another name and renamed, after each run: who kills the report loses the run under way. What
is damaged, or of another version or machine, is left as it is, said, and measured anew.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re

FORMAT = 1


class CannotWrite(Exception):
    pass


class InUse(Exception):
    pass


def write_file(path, text):
    """All or nothing: the old file stays until the new one is complete."""
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # of what did not come to its end


def checked(path):
    """A round as it was saved; None: not of this format."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        told = json.load(file)
        kinds = {"suite": str, "case": str, "machine": str, "at": (int, float), "runs": dict}
        whole = isinstance(told, dict) and told.get("format") == FORMAT and all(isinstance(told.get(name), kind) for name, kind in kinds.items())
        return told if whole and all(isinstance(run, dict) and isinstance(run.get("of"), str) for run in told["runs"].values()) else None


class Round:
    def __init__(self, number, told):
        self.number, self.at, self.runs = number, told["at"], told["runs"]
        self.commit = told.get("commit", "")


class Store:
    """Rounds by (suite, case); problems says how many files are not used."""

    def __init__(self, directory, machine, commit=""):
        self.directory, self.machine, self.commit = directory, machine, commit
        self.rounds, self.problems, self.numbers = {}, [], {}
        self.held = None

    def lock(self):
        """One report at a time works on a directory."""
        try:
            os.makedirs(self.directory, exist_ok=True)
            self.held = open(os.path.join(self.directory, "lock"), "a")
        except OSError as error:
            raise CannotWrite(f"cannot write {self.directory}: {error.strerror}") from None
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(f"another report works on {self.directory}") from None

    def load(self):
        damaged = others = 0
        for path in sorted(pathlib.Path(self.directory).glob("*/*")):
            found = re.fullmatch(r"(.+)\.(\d+)\.json", path.name)
            if path.name.startswith(".") and self.held:
                path.unlink()  # of a report that was killed while it wrote
            if not found or path.name.startswith("."):
                continue
            slug, number = (path.parent.name, found[1]), int(found[2])
            self.numbers[slug] = max(self.numbers.get(slug, 0), number)
            told = checked(path)
            damaged += told is None
            others += told is not None and told["machine"] != self.machine
            if told and told["machine"] == self.machine:
                self.rounds.setdefault((told["suite"], told["case"]), []).append(Round(number, told))
        for n, what in ((damaged, "are damaged or of another format"), (others, "are of another machine, kernel or CPU")):
            if n:
                self.problems.append(f"not used: {n} results that {what}; they stay as they are")
        return self

    def begin(self, suite, case, at):
        """A new round, which save() writes as it grows."""
        slug = (suite, re.sub(r"[^A-Za-z0-9.+-]+", "_", case))
        self.numbers[slug] = self.numbers.get(slug, 0) + 1
        round_ = Round(self.numbers[slug], {"at": at, "runs": {}, "commit": self.commit})
        round_.path = os.path.join(self.directory, suite, f"{slug[1]}.{round_.number:03}.json")
        round_.key = suite, case
        return round_

    def save(self, round_):
        suite, case = round_.key
        told = {"format": FORMAT, "suite": suite, "case": case, "machine": self.machine, "at": round_.at,
                "commit": round_.commit, "runs": round_.runs}
        write_file(round_.path, json.dumps(told) + "\n")
        rounds = self.rounds.setdefault(round_.key, [])
        if round_ not in rounds:
            rounds.append(round_)
