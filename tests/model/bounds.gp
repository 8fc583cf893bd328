# bounds.svg from bounds.dat, which tests/model/bounds wrote: see doc/design/bound.md.
set terminal svg size 1100,850 dynamic
set output "bounds.svg"
set multiplot layout 2,2 title "One thread as 2 to 256 processors"
set logscale x 2
set xrange [2:256]
set xlabel "processors"
set key outside below maxcols 3 samplen 2
row(load, path) = stringcolumn(1) eq load && stringcolumn(2) eq path
pick(load, path, value) = row(load, path) ? value : NaN
set datafile missing NaN
set style data linespoints

set ylabel "most held / most live"
set title "Blowup, fast path"
set yrange [0:3]
plot for [l in "pairs round ended worst"] "bounds.dat" using 3:(pick(l, "fast", $5 / $4)) title l, \
    8.0 / 3 title "8/3, the bound without what each heap may have" with lines dashtype 2

set ylabel "most held / the bound"
set title "Memory against the bound: 1 at most"
set yrange [0:1]
plot for [l in "pairs round ended worst active"] for [p in "fast locked"] "bounds.dat" \
    using 3:(pick(l, p, $5 / $6)) title l." (".p.")"

set logscale y
set yrange [0.1:2000]
set ylabel "visits of the global heap in 1000 operations"
set title "Section 4.2: 1000 / (f S/s) is 15.6"
plot for [l in "pairs growing shrinking"] for [p in "fast locked"] "bounds.dat" \
    using 3:(pick(l, p, $7)) title l." (".p.")", 1000.0 / 64 title "1000 / (f S/s)" with lines dashtype 2

set yrange [0.001:10]
set ylabel "atomic instructions an operation"
set title "Atomic instructions"
plot for [l in "pairs round mixed active"] for [p in "fast locked"] "bounds.dat" \
    using 3:(pick(l, p, $9)) title l." (".p.")"
unset multiplot
