#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the restartable sections of a library what the kernel wants, and what lib/os/rseq.h says?

usage: rseq_sections.py OBJDUMP LIBRARY...

Each descriptor in __rseq_cs (start, length, abort) is read from the file, its addresses from the relocations,
and held against the disassembly, and against the call frame information: an unwinder finds the same frame at
the abort handler and at each instruction of the section. Works on libraries of any machine in MACHINES, whatever it runs on.
"""
import bisect
import re
import struct
import subprocess
import sys

DESCRIPTOR = struct.Struct("<IIQQQ")  # version, flags, start, length, abort
LEAST = 5  # kinds of sections that there are: store, pop, carve, take, free
LONGEST = 256  # bytes

# By e_machine: the word before an abort handler; the relocation that says "this address"; what puts the
# address of a descriptor into the area, as the instructions right before a section, and how many there are;
# instructions that no section may have: locked, atomic, or leaving it in a way that cannot be undone.
MACHINES = {
    62: dict(name="x86-64", signature=0x53053053, relative=8,
             enter=r"lea 0x[0-9a-f]+\(%rip\),(%r\w+) # ([0-9a-f]+)()\nmov \1,%fs:(?:0x0)?\(%r\w+\)$", entry=2,
             bad=r"lock|xchg|call|ret|push|pop|syscall|[sl]fence|mfence|rep"),
    183: dict(name="aarch64", signature=0xD428BC00, relative=1027,
              enter=r"adrp (x\d+), ([0-9a-f]+)\nadd \1, \1, #0x([0-9a-f]+)\nstr \1, \[x\d+, x\d+\]$",
              entry=3,
              bad=r"ld[ax]|ldxp|st[lx]|cas|swp|ld(add|clr|set|eor)|bl |ret|svc|dmb|dsb|isb|.*sp\b"),
}


class Library:
    """An ELF file of 64 bits, little-endian: bytes and relocations by address."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{path}: not ELF of 64 bits, little-endian")
        self.machine = MACHINES.get(self.number("<H", 18))
        at, size, count, names = self.number("<Q", 40), *struct.unpack_from("<HHH", self.bytes, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, at + i * size) for i in range(count)]
        strings = headers[names][4]
        self.sections = {self.text(strings + h[0]): h for h in headers}
        self.relative = {}
        for header in headers:
            if header[1] == 4 and self.machine:  # SHT_RELA
                for i in range(header[4], header[4] + header[5], 24):
                    where, info, addend = struct.unpack_from("<QQq", self.bytes, i)
                    if info & 0xFFFFFFFF == self.machine["relative"]:
                        self.relative[where] = addend

    def number(self, form, offset):
        return struct.unpack_from(form, self.bytes, offset)[0]

    def text(self, offset):
        return self.bytes[offset : self.bytes.index(b"\0", offset)].decode()

    def at(self, address, form):
        """The number at an address of what is loaded, or None."""
        for _, kind, flags, start, offset, size, *_ in self.sections.values():
            if flags & 2 and kind != 8 and start <= address < start + size:  # SHF_ALLOC, SHT_NOBITS
                return self.number(form, offset + address - start)
        return None

    def descriptors(self):
        _, _, _, start, offset, size, *_ = self.sections.get("__rseq_cs", (0,) * 10)
        for i in range(0, size, DESCRIPTOR.size):
            fields = list(DESCRIPTOR.unpack_from(self.bytes, offset + i))
            for k, at in ((2, 8), (4, 24)):  # addresses are relocated
                fields[k] = self.relative.get(start + i + at, fields[k])
            yield start + i, *fields


def disassemble(objdump, path):
    """Address -> instruction, and the addresses in order."""
    command = [objdump, "-d", "--no-show-raw-insn", path]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.findall(r"^ *([0-9a-f]+):\t(.*?)\s*(?:(?:<|//).*)?$", listing.stdout, re.M)
    code = {int(address, 16): re.sub(r"\s+", " ", text) for address, text in found}
    return code, sorted(code)


def entered(machine, code, order, start):
    """The descriptor that the instructions right before a section put into the area, or None."""
    first = bisect.bisect_left(order, start)
    before = "\n".join(code[a] for a in order[max(first - 3, 0) : first])
    found = re.search(machine["enter"], before)
    return int(found.group(2), 16) + int(found.group(3) or "0", 16) if found else None


def frames(objdump, path):
    """Where a row of the call frame information begins -> its function, and the row; and the places in order."""
    command = [objdump, "--dwarf=frames-interp", path]
    rows, function = {0: None}, None
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if found := re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)$", line):
            function, end = int(found.group(1), 16), int(found.group(2), 16)
            rows[function] = function, "that of all functions"
            rows.setdefault(end, None)
        elif (found := re.match(r"([0-9a-f]{16}) (.*)$", line)) and function is not None:
            rows[int(found.group(1), 16)] = function, found.group(2)
        elif not line:
            function = None
    return rows, sorted(rows)


def frame_at(rows, address):
    return rows[0][rows[1][bisect.bisect_right(rows[1], address) - 1]]


def target(text):
    """Where a branch goes, or None."""
    found = re.match(r"(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:\w+, )?(?:#\d+, )?(?:0x)?([0-9a-f]+)$", text)
    return int(found.group(1), 16) if found else None


def stores_to(text):
    """The memory operand of a store, or None."""
    if text.startswith("st"):
        return text[text.index("[") :]
    operands = re.match(r"\w+ .*?([^, ]*\([^)]*\))(?: #.*)?$", text)
    return operands.group(1) if operands and not re.match(r"cmp|test|lea|nop|bt\b", text) else None


def check_section(library, code, order, rows, section):
    """What is wrong with a section, sentence by sentence."""
    at, version, flags, start, length, abort = section
    machine, end = library.machine, start + length
    if version or flags or at % 32:
        yield "version and flags are not 0, or it is not at a multiple of 32"
    if not 0 < length <= LONGEST or start not in code or end not in code:
        yield f"from {start:x} to {end:x} is not a run of at most {LONGEST} bytes of instructions"
        return
    if start <= abort < end or abort not in code:
        yield f"its abort handler at {abort:x} is no instruction outside of it"
        return
    if library.at(abort - 4, "<I") != machine["signature"]:
        yield f"the word before its abort handler at {abort:x} is not {machine['signature']:x}"
    if abort != order[bisect.bisect_left(order, start) - machine["entry"]]:
        yield f"its abort handler at {abort:x} is not where it is entered"
    if entered(machine, code, order, start) != at:
        yield f"what leads into it at {start:x} does not put its descriptor into the area"
    inside = [a for a in order if start <= a < end]
    for a in [abort, *inside]:
        if frame_at(rows, a) is None or frame_at(rows, a) != frame_at(rows, start):
            yield f"an unwinder finds another frame at {a:x} than at {start:x}, or none"
    commit = stores_to(code[inside[-1]])
    if commit is None:
        yield f"its last instruction is no store: {code[inside[-1]]}"
    for a in inside[:-1]:
        if commit is not None and stores_to(code[a]) == commit:
            yield f"it stores to {commit} before the commit: {code[a]}"
    for a in inside:
        if re.match(machine["bad"], code[a]):
            yield f"it has {code[a]}"
    for a in order:
        if start < (target(code[a]) or 0) < end and not start <= a < end:
            yield f"{code[a]} at {a:x} leads into it"


def check_library(objdump, path):
    library = Library(path)
    if library.machine is None:
        print(f"{path}: of a machine that has no sections")
        return 0
    code, order = disassemble(objdump, path)
    rows = frames(objdump, path)
    sections, wrong = list(library.descriptors()), 0
    for section in sections:
        for what in check_section(library, code, order, rows, section):
            print(f"{path}: descriptor {section[0]:x}: {what}")
            wrong += 1
    if len(sections) < LEAST:
        print(f"{path}: {len(sections)} descriptors are less than {LEAST}")
        wrong += 1
    print(f"{path}: {library.machine['name']}, {len(sections)} sections, {wrong} faults")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    sys.exit(1 if sum([check_library(sys.argv[1], path) for path in sys.argv[2:]]) else 0)
