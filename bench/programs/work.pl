# Words counted, lists in hashes, records sorted, strings built and taken apart.
use strict;
use warnings;
my (%count, %places, @records);
open my $in, '<', $ARGV[0] or die;
while (my $line = <$in>) {
    my @words = split ' ', $line;
    $count{$_}++, push @{$places{substr $_, 0, 3}}, [$., $_] for @words;
    push @records, {line => $., first => $words[0], rest => join('-', reverse @words)};
}
my @sorted = sort { $a->{first} cmp $b->{first} || $b->{line} <=> $a->{line} } @records;
my $text = '';
for my $record (@sorted) {
    my %copy = (%$record, size => length $record->{rest});
    $text .= "$copy{first}:$copy{size};";
    delete $record->{rest} if $copy{size} % 3 == 0;
}
my $sum = 0;
$sum += $_ for map { (split /:/)[1] } split /;/, $text;
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 4];
print "@top $sum ", scalar(keys %places), "\n";
