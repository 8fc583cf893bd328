# SPDX-License-Identifier: Apache-2.0
"""gdb commands for reaps, which need the library's debug information, all but the last:

    reap [HANDLE]     the tree of a reap, or of every reap, as reapReport prints it
    reap-of POINTER   the reap that memory belongs to, and what the pointer is to it
    reap-heaps        superblocks and live bytes of each heap
    reap-stepping [on | off]
                      lets stepi and software watchpoints get through malloc in the next run, or no longer: no
                      debug information is needed. A section of restartable code (heap_fast.h) begins anew at
                      each signal, also at a step, so a process with sections never leaves one by steps

and `print` of a struct reap says in a line what it holds. gdb loads this with the library where it trusts the
directory (set auto-load safe-path); else: source /usr/local/share/reap/reap-gdb.py. Nothing is called in the
program, so a core file will do.
"""
import re

import gdb

UNIT = 16
HEADER = 128
FACE = 256
USER_MEMORY_ALIGN = 1024
MASK = (1 << 64) - 1
REGULAR, WHOLE, SPARE = 1, 2, 3
LIMITED = 4  # of enum reap_flag
BLOCKS, CHUNKS, SPAN, SPAN_CHUNK, WIDE = 1, 2, 3, 4, 5  # enum superblock_kind
STUB = 16
BIAS = 8
SUPERBLOCK = 1 << 16
LIVES = 1 << 25  # bytes from the map's start bits to its live and dead bits: CHUNK_MAP_BITS


def cast(address, name):
    return gdb.Value(int(address) & MASK).cast(gdb.lookup_type('struct ' + name).pointer())


def number(value):
    return int(value) & MASK


def word_at(address):
    return int.from_bytes(gdb.selected_inferior().read_memory(address & MASK, 8).tobytes(), 'little')


def bits(address, count):
    """The first so many bits of a bitmap, as one number."""
    data = gdb.selected_inferior().read_memory(number(address), (count + 63) // 64 * 8)
    return int.from_bytes(data.tobytes(), 'little')


# --- chunks and reaps ------------------------------------------------------------------------------

def reap_tag(address):
    return address + 0x5e3779b9


def is_live_chunk(chunk):
    at, owner = number(chunk), number(chunk['owner'])
    return number(chunk['tag']) == (at + 8 * owner + 0x27d4eb4f) & MASK


def as_reap(handle):
    """The struct reap of a handle, through its face if it is shared."""
    at = number(handle)
    try:
        if at % USER_MEMORY_ALIGN == HEADER and number(cast(at, 'reap')['tag']) == reap_tag(at):
            return cast(at, 'reap')
        reap = cast(at, 'reap_face')['reap']
        if number(reap['tag']) == ~reap_tag(number(reap)) & MASK:
            return reap
    except gdb.MemoryError:
        pass
    raise gdb.GdbError('%#x is not a live reap' % at)


def first_chunk(reap):
    return cast(number(reap) - HEADER, 'reap_chunk')


def chunks_of(reap):
    """Those that may hold objects, newest first, the first one last."""
    chunk = reap['chunks']
    while number(chunk):
        yield chunk
        chunk = chunk['next']
    yield first_chunk(reap)


def listed(item, link):
    while number(item):
        yield item
        item = item[link]


def bits_of(chunk, bitmap):
    """A bitmap of a regular chunk, as one number; bit 0 is for the chunk's first 16 bytes. The pointer is biased: the bit
    of address a is in word a / 1024."""
    return bits(number(chunk[bitmap]) + number(chunk) // 1024 * 8 & MASK, int(chunk['size']) // UNIT)


def unit_in(chunk, unit):
    """Units count from address 0. This one counts from the chunk."""
    return int(unit) - number(chunk) // UNIT


def hole_of(reap, chunk):
    """The units of the hole, if it lies in this chunk."""
    if number(chunk) != number(reap['current']):
        return 0, 0
    return tuple((number(reap[end]) - number(chunk)) // UNIT for end in ('bump', 'bump_max'))


def ends_of(reap, chunk):
    """The units between which a regular chunk has blocks."""
    first, end = unit_in(chunk, chunk['first']), unit_in(chunk, chunk['end_unit'])
    if not number(chunk['lives']):  # region state: what lies behind the last object is no block of its own
        bump, bump_max = hole_of(reap, chunk)
        end = bump if bump_max else unit_in(chunk, chunk['top'])
    return first, end


def dead_of(chunk):
    """The dead bits of a chunk in region state (reap_dead.h)."""
    lives = number(chunk['starts']) + LIVES + number(chunk) // 1024 * 8
    return bits(lives & MASK, int(chunk['size']) // UNIT) if int(chunk['dead']) else 0


def blocks_of(reap, chunk):
    """The start bits of a regular chunk's blocks and of their end, and of these those of live objects."""
    first, end = ends_of(reap, chunk)
    starts = bits_of(chunk, 'starts') & (1 << end) - 1 | 1 << end
    lives = bits_of(chunk, 'lives') if number(chunk['lives']) else starts >> first << first & ~dead_of(chunk)
    return starts, lives & (1 << end) - 1


def is_shared(reap):
    return number(reap['tag']) == ~reap_tag(number(reap)) & MASK


def records_of(reap):
    """What modules keep behind a reap."""
    return cast(number(reap) + gdb.lookup_type('struct reap').sizeof, 'reap_records')


def part_of(reap):
    """What a shared reap or a hidden child is."""
    return records_of(reap)['part']


def hidden_of(reap):
    """The hidden children of a shared reap."""
    if is_shared(reap):
        for part in listed(part_of(reap)['next'], 'next'):
            yield part['reap']


def table_of(reap):
    """The bytes of a shared reap's table of parts."""
    face = cast(handle_of(reap), 'reap_face') if is_shared(reap) else None
    return 8 * (int(face['mask']) + 1) if face and face['table'] else 0


def parts_of(reap):
    """The chunks of a reap and its hidden children, each with the struct reap that it belongs to."""
    for chunk in chunks_of(reap):
        yield reap, chunk
    for hidden in hidden_of(reap):
        for chunk in chunks_of(hidden):
            yield hidden, chunk


class Held:
    """What reapStats counts."""

    def __init__(self, reap):
        self.objects = self.bytes = self.chunks = 0
        self.held, self.peak = int(reap['held']), int(reap['peak'])
        for part, chunk in parts_of(reap):
            self.chunks += 1
            self.add(part, chunk)
        more = table_of(reap)
        self.held += more
        self.peak += more
        for part in [reap, *hidden_of(reap)]:
            if number(part) != number(reap):
                size = part_of(part).type.target().sizeof
                self.held += int(part['held']) + size
                self.peak += int(part['peak']) + size
            if int(part['spare_bytes']):
                self.chunks += sum(1 for chunk in listed(part['spares'], 'next'))
        if number(reap['below']['cached']):
            self.chunks += 1
            step = int(reap['below']['votes']) % 4
            self.held += 4096 << step if step else 1024
            self.peak = max(self.peak, self.held)

    def add(self, reap, chunk):
        if int(chunk['kind']) == WHOLE:
            self.objects += 1
            self.bytes += (int(chunk['end_unit']) - int(chunk['first'])) * UNIT
            return
        starts, lives = blocks_of(reap, chunk)
        self.objects += bin(lives).count('1')
        ends = (~starts & (1 << starts.bit_length()) - 1) + (lives << 1) & starts  # as join() in reap_free.c
        self.bytes += bin(ends - lives).count('1') * UNIT


def name_of(reap):
    return reap['name'].string() if number(reap['name']) else ''


def handle_of(reap):
    if not is_shared(reap):
        return number(reap)
    first = first_chunk(reap)
    return number(first) + int(first['size']) - FACE


def line(reap):
    held = Held(reap)
    name = name_of(reap)
    limit = int(records_of(reap)['share']['bytes']) if int(reap['flags']) & LIMITED else 0
    return '%s%#x: %d objects, %d bytes, %d chunks, %d held, %d at most%s' % (
        name + ' ' if name else '', handle_of(reap), held.objects, held.bytes, held.chunks, held.held, held.peak,
        ', limit %d' % limit if limit else '')


def print_tree(top):
    below = [(top, 0)]
    while below:
        reap, depth = below.pop()
        print('  ' * depth + line(reap))
        below += [(child, depth + 1) for child in reversed(list(listed(reap['below']['first'], 'next')))]


# --- the backend's memory --------------------------------------------------------------------------

def slots():
    """Each slot that is in use, with its arena's mapping."""
    for arena in listed(gdb.parse_and_eval('arenas')['all'], 'next'):
        if int(arena['base']) == 0:
            continue
        mapping = int(arena['mapping'])
        for i in range(1 if mapping else 64):
            yield arena['slots'][i], mapping


def blocks(slot):
    """The blocks of a superblock that are not free."""
    size = int(gdb.parse_and_eval('sizeclasses')[int(slot['class'])]['size'])
    cookie = int(gdb.parse_and_eval('superblock_cookie'))
    origin, carved = number(slot['origin']), int(slot['word']) >> 32
    for at in range(BIAS, carved, size):
        if (word_at(origin + at) ^ cookie) >> 16:
            yield origin + at, size


def chunk_walk():
    """Each chunk that may be live."""
    for slot, mapping in slots():
        kind = int(slot['kind'])
        if kind == CHUNKS:
            for at, size in blocks(slot):
                yield cast(at, 'reap_chunk')
        elif kind == SPAN_CHUNK:
            yield cast(number(slot['origin']) + BIAS, 'reap_chunk')
    lent = gdb.parse_and_eval("'user_memory.c'::table")
    for i in range(int(lent['count'])):
        yield cast(lent['at'][i]['start'], 'reap_chunk')


def roots():
    for chunk in chunk_walk():
        if is_live_chunk(chunk) and number(chunk) == number(chunk['owner']) - HEADER and \
                not number(chunk['owner']['parent']):
            yield chunk['owner']


# --- commands --------------------------------------------------------------------------------------

def argument(text):
    try:
        return gdb.parse_and_eval(text)
    except gdb.error as error:
        raise gdb.GdbError(str(error))


def need_debug_information():
    try:
        gdb.lookup_type('struct reap')
    except gdb.error as error:
        raise gdb.GdbError('the reap library has no debug information here (Debian: packages -dbgsym)') from error


class ReapCommand(gdb.Command):
    """reap [HANDLE]: the tree of a reap, or of every reap."""

    def __init__(self):
        super().__init__('reap', gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, text, from_tty):
        need_debug_information()
        for top in [as_reap(argument(text))] if text else roots():
            print_tree(top)


class ReapOfCommand(gdb.Command):
    """reap-of POINTER: the reap that memory belongs to, and what the pointer is to it."""

    def __init__(self):
        super().__init__('reap-of', gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, text, from_tty):
        need_debug_information()
        pointer = number(argument(text))
        for reap in self.all_reaps():
            for part, chunk in parts_of(reap):
                if self.tell(reap, part, chunk, pointer):
                    return
        print('%#x is in no reap' % pointer)

    @staticmethod
    def all_reaps():
        below = list(roots())
        while below:
            reap = below.pop()
            yield reap
            below += list(listed(reap['below']['first'], 'next'))

    @staticmethod
    def tell(reap, part, chunk, pointer):
        first, limit = int(chunk['first']), int(chunk['end_unit'])
        if not first <= pointer // UNIT < limit:
            return False
        at = first * UNIT
        what = 'object'
        if int(chunk['kind']) == REGULAR:
            unit = unit_in(chunk, pointer // UNIT)
            starts, lives = blocks_of(part, chunk)
            bump, bump_max = hole_of(part, chunk)
            is_unused = bump <= unit < bump_max or unit >= ends_of(part, chunk)[1]
            start = (starts & (1 << unit + 1) - 1).bit_length() - 1
            what = 'not yet used' if is_unused else 'object' if lives >> start & 1 else 'freed'
            at = number(chunk) + start * UNIT
        inside = ', %d bytes into it' % (pointer - at) if what != 'not yet used' and pointer != at else ''
        print('%#x: %s%s, in %s' % (pointer, what + ' ' + hex(at) if what != 'not yet used' else what, inside,
                                    line(reap)))
        return True


class ReapHeapsCommand(gdb.Command):
    """reap-heaps: superblocks and live bytes of each heap, by size class."""

    def __init__(self):
        super().__init__('reap-heaps', gdb.COMMAND_DATA)

    def invoke(self, text, from_tty):
        need_debug_information()
        classes = gdb.parse_and_eval('sizeclasses')
        sums = {}
        for slot, mapping in slots():
            if int(slot['kind']) not in (BLOCKS, CHUNKS, WIDE):
                continue
            klass = classes[int(slot['class'])]
            key = (int(slot['role']['heap']), int(slot['class']))
            count, live = sums.get(key, (0, 0))
            sums[key] = (count + 1, live + self.live(slot, klass))
        for (heap, klass), (count, live) in sorted(sums.items()):
            size = int(classes[klass]['size'])
            print('%s: %d superblocks of %d bytes, %d live' % (self.name(heap), count, size, live))

    @staticmethod
    def live(slot, klass):
        size, word, pending = int(klass['size']), int(slot['word']), int(slot['pending'])
        carved = max((word >> 32) - BIAS, 0) // (STUB if int(slot['kind']) == WIDE else size)
        listed_free = (word >> 16 & 0xffff) - (int(klass['capacity']) - carved)
        return (carved - listed_free - (pending >> 16 & 0xffff)) * size

    @staticmethod
    def name(heap):
        none = 65535 - 65
        return 'heap %d' % heap if heap < none else 'global heap' if heap == none + 1 else 'cache %d' % (
            heap - none - 2) if heap > none else 'on the way'


class ReapSteppingCommand(gdb.Command):
    """reap-stepping [on | off]: whether stepi and software watchpoints get through malloc, in the next run."""

    LOCKED = 'path=locked'

    def __init__(self):
        super().__init__('reap-stepping', gdb.COMMAND_RUNNING)

    def invoke(self, text, from_tty):
        options = self.options()
        if text == 'on' and self.LOCKED not in options:
            self.set([option for option in options if not option.startswith('path=')] + [self.LOCKED])
        elif text == 'off':
            self.set([option for option in options if option != self.LOCKED])
        elif text not in ('', 'on'):
            raise gdb.GdbError('reap-stepping takes on, off, or nothing')
        steps = self.LOCKED in self.options()
        print('next run: %s' % ('malloc takes locks, and steps get through it (%s)' % self.LOCKED if steps else
                                'malloc has sections, which steps do not leave: finish and breakpoints do'))
        if gdb.selected_inferior().pid:
            print('this process: %s' % self.path())

    @staticmethod
    def options():
        """Of REAP_OPTIONS as the next run gets it."""
        said = gdb.execute('show environment REAP_OPTIONS', to_string=True)
        found = re.match('REAP_OPTIONS = (.*)', said)
        return [option for option in (found.group(1).split(',') if found else []) if option]

    @staticmethod
    def set(options):
        gdb.execute(('set environment REAP_OPTIONS ' if options else 'unset environment REAP_OPTIONS ') +
                    ','.join(options))

    @staticmethod
    def path():
        try:
            return 'path ' + gdb.parse_and_eval('cpu')['path'].string()
        except (gdb.error, gdb.MemoryError):
            return 'not known (no debug information)'


class ReapPrinter:
    """A struct reap in a line."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return 'reap ' + line(cast(number(self.value.address), 'reap'))


def lookup(value):
    kind = value.type.strip_typedefs()
    return ReapPrinter(value) if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag == 'reap' and value.address else None


ReapCommand()
ReapOfCommand()
ReapHeapsCommand()
ReapSteppingCommand()
gdb.pretty_printers.append(lookup)
