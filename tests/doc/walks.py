# SPDX-License-Identifier: Apache-2.0
# For walks.sh, run by gdb: prints "part function" for each first entry of a function of walkthrough.md within a part.
# $WALKS has lines "part function module": the part's name is that of the function that begins it, or "start".
import os

import gdb

for setting in ('pagination off', 'breakpoint pending on', 'disable-randomization off', 'startup-with-shell off',
                'environment LD_PRELOAD ' + os.environ['LIBRARY']):
    gdb.execute('set ' + setting)
out = open(os.environ['ENTERED'], 'w', encoding='ascii')
part, met = 'start', set()


class Begin(gdb.Breakpoint):
    """A function of the program begins a part."""

    def stop(self):
        global part
        part = self.function_name
        met.clear()
        return False


class Step(gdb.Breakpoint):
    """A function of the library, inlined or not. Where its name alone is known, its file must be the module."""

    def is_it(self):
        function = gdb.newest_frame().function()
        return self.module is None or (function and function.symtab.filename.endswith(self.module))

    def stop(self):
        if self.function_name not in met and self.function_name in wanted.get(part, ()) and self.is_it():
            met.add(self.function_name)
            print(part, self.function_name, file=out, flush=True)
        return False


wanted, places = {}, set()
with open(os.environ['WALKS'], encoding='ascii') as steps:
    for line in steps:
        name, function, module = line.split()
        wanted.setdefault(name, set()).add(function)
        places.add((function, module))
for name in wanted:
    if name != 'start':
        Begin(source='walk.c', function=name).function_name = name
# By its file gdb finds no inlined function; and by its name alone, gdb 13 misses some static ones. An inlined function
# of a header has the file that includes it.
for function, module in sorted(places):
    by_name = Step(function=function)
    by_name.function_name, by_name.module = function, None if module.endswith('.h') else module
    if not module.endswith('.h'):
        by_file = Step(function=function, source=module)
        by_file.function_name, by_file.module = function, None
gdb.execute('run')
