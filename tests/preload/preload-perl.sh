#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# perl under libreap-malloc: hashes, strings that grow, sorting, regular expressions, fork.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need perl

cat >"$tmp/work.pl" <<'PERL'
use strict;
use warnings;
my ($seed, %seen, @lines) = 1;
sub draw { $seed = ($seed * 1103515245 + 12345) % 2147483648 }
for (1 .. 40000) {
    my $word = join '', map { chr 97 + draw() / 65536 % 26 } 1 .. 1 + draw() / 65536 % 40;
    $seen{$word}++;
    push @lines, $word x (1 + $_ % 7);
    delete $seen{(sort { $a cmp $b } keys %seen)[0]} if $_ % 4001 == 0;
}
my $text = '';
$text .= "$_\n" for sort @lines;
my $vowels = () = $text =~ /[aeiou]{2,}/g;
printf "%d words, %d bytes, %d runs of vowels, sum %d\n", scalar keys %seen, length $text, $vowels, unpack '%32C*', $text;
for my $child (1 .. 4) {
    my $pid = open(my $pipe, '-|') // die "fork: $!";
    if (!$pid) { print join ',', map { reverse } @lines[$child * 100 .. $child * 100 + 20]; exit }
    print "child $child: ", <$pipe>, "\n";
    close $pipe or die "child: $?";
}
PERL

PERL_HASH_SEED=0
export PERL_HASH_SEED
work() { perl "$tmp/work.pl"; }
compare_work
