#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ghostscript renders the same pixels, from PostScript and by way of PDF (whose own bytes hold dates).
. "${srcdir:-.}/tests/support/preload-lib.sh"
need gs

cat >"$tmp/work.ps" <<'PS'
%!PS
/Times-Roman findfont 24 scalefont setfont
1 1 3 {
    /page exch def
    0 10 350 {
        gsave 300 400 translate dup rotate 360 div page 3 div 1 sethsbcolor
        0 0 moveto 40 0 200 120 page 60 mul 260 curveto 8 setlinewidth stroke grestore
    } for
    0 setgray 72 72 moveto (Page ) show page 10 string cvs show
    [ 0 1 9999 { dup mul 7919 mod } for ] 0 exch { add } forall 72 100 moveto 20 string cvs show
    showpage
} for
PS

render() { gs -q -dSAFER -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r72 "-sOutputFile=$1%d.ppm" "$2"; }
work() {
    render direct "$tmp/work.ps" &&
        gs -q -dSAFER -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -sOutputFile=work.pdf "$tmp/work.ps" &&
        render pdf work.pdf && cksum ./*.ppm
}
compare_work
