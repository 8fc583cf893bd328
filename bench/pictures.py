# SPDX-License-Identifier: Apache-2.0
"""Ratios as pictures: one bar a malloc, a group a case, by gnuplot where it is installed (Debian: gnuplot-nox)."""
import shutil
import subprocess

import contest

PLOT = """
set terminal svg size {width},480 font 'sans,12' background 'white'
set output '{name}.svg'
set title '{title}'
set style data histograms
set style histogram clustered gap 1.5
set style fill solid border -1
set boxwidth 0.9
set yrange [0:{most}]
set ytics nomirror
set grid ytics
set xtics nomirror rotate by -35
set key outside top right
set datafile missing '-'
set linetype 9 linecolor rgb '#7f3f00'
set linetype 10 linecolor rgb '#00ff7f'
set linetype 11 linecolor rgb '#ff7fbf'
set linetype 12 linecolor rgb '#606060'
set linetype 13 linecolor rgb '#c0c0c0'
plot for [i=2:{columns}] '{name}.dat' using i:xtic(1) title columnheader(i), 1 notitle with lines linecolor rgb 'black'
"""


def draw(build, suite, figure, title, contestants, cases, most="*"):
    """What each needs, relative to the best of the peers, of minima; the picture ends at most."""
    if not cases:
        return
    name = f"{build}/bench/ratios-{suite}-{figure}"
    with open(name + ".dat", "w") as out:
        print("case", *(f'"{c.name}"' for c in contestants), file=out)
        for case in cases:
            ratios = [contest.ratio(c, contestants, case, figure) for c in contestants]
            print(f'"{case.label}"', *(f"{r:.4f}" if r else "-" for r in ratios), file=out)
    if shutil.which("gnuplot") is None:
        print(f"no gnuplot: {name}.dat is not drawn")
        return
    text = PLOT.format(name=name, title=title, width=300 + 75 * len(cases), columns=len(contestants) + 1,
                       most=most)
    subprocess.run(["gnuplot"], input=text, text=True, check=True)
    print(f"drawn: {name}.svg")
