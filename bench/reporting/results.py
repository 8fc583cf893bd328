# SPDX-License-Identifier: Apache-2.0
"""Where results are kept: DIRECTORY/SUITE/CASE.NUMBER.json is one round of a case, with a run for each contestant.

A file is written under another name and renamed, after each run: who kills the report loses the run under way. What
cannot be read is set aside and said, what is of another version or machine is left as it is; both are measured anew.
"""
import contextlib
import fcntl
import json
import os
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
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def checked(text):
    """A round as it was saved, or ValueError with what is wrong with it."""
    try:
        told = json.loads(text)
    except ValueError:
        raise ValueError("truncated or damaged") from None
    if not isinstance(told, dict) or "format" not in told:
        raise ValueError("no results")
    if told["format"] != FORMAT:
        return told
    if not all(isinstance(told.get(name), kind) for name, kind in (("suite", str), ("case", str), ("machine", str),
                                                                    ("at", (int, float)), ("runs", dict))):
        raise ValueError("damaged")
    if not all(isinstance(run, dict) and isinstance(run.get("of"), str) for run in told["runs"].values()):
        raise ValueError("damaged")
    return told


class Round:
    def __init__(self, number, told):
        self.number, self.at, self.runs = number, told["at"], told["runs"]
        self.commit = told.get("commit", "")


class Store:
    """Rounds by (suite, case); problems has a line for each file that is not used."""

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
        others, versions = 0, {}
        for suite in sorted(os.listdir(self.directory)) if os.path.isdir(self.directory) else []:
            folder = os.path.join(self.directory, suite)
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                path = os.path.join(folder, name)
                found = re.fullmatch(r"(.+)\.(\d+)\.json", name)
                if name.startswith(".") and self.held:
                    os.unlink(path)  # of a report that was killed while it wrote
                if not found or name.startswith("."):
                    continue
                slug, number = (suite, found[1]), int(found[2])
                self.numbers[slug] = max(self.numbers.get(slug, 0), number)
                told = self.read(path)
                if told is None:
                    continue
                if told["format"] != FORMAT:
                    versions[told["format"]] = versions.get(told["format"], 0) + 1
                elif told["machine"] != self.machine:
                    others += 1
                else:
                    self.rounds.setdefault((told["suite"], told["case"]), []).append(Round(number, told))
        for version, n in versions.items():
            self.problems.append(f"not used: {n} results of format {version}, this is format {FORMAT}; they stay as they are")
        if others:
            self.problems.append(f"not used: {others} results of another machine, kernel or CPU; they stay as they are")
        return self

    def read(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                return checked(file.read())
        except OSError as error:
            self.problems.append(f"not used: {path}: {error.strerror}")
        except ValueError as error:  # also what is no UTF-8
            what = "damaged" if isinstance(error, UnicodeDecodeError) else error
            self.problems.append(f"set aside: {path} is {what}; it is {os.path.basename(path)}.bad now, and measured anew")
            if self.held:
                with contextlib.suppress(OSError):
                    os.replace(path, path + ".bad")
        return None

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
