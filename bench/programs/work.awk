# Words counted, fields put together, arrays of arrays.
{
    for (i = 1; i <= NF; i++) {
        count[$i]++
        places[substr($i, 1, 3)][length(places[substr($i, 1, 3)]) + 1] = $i NR
    }
    line = ""
    for (i = NF; i > 0; i--) line = line "-" toupper($i)
    lines[NR] = line
    if (NR > 2000) delete lines[NR - 2000]
}
END {
    n = asorti(count, names)
    for (i = 1; i <= n; i++) total += length(names[i]) * count[names[i]]
    for (p in places) for (j in places[p]) total += length(places[p][j])
    print n, total, names[1], names[n], length(lines)
}
