<?php
// Words counted, objects in lists, strings put together, JSON there and back.
class Record
{
    public $next = null;
    public function __construct(public string $name, public array $tags) {}
}
ini_set('memory_limit', '-1');
$count = $places = $records = [];
$last = null;
foreach (file($argv[1]) as $number => $line) {
    foreach (explode(' ', trim($line)) as $word) {
        $count[$word] = ($count[$word] ?? 0) + 1;
        $places[substr($word, 0, 3)][] = $word . $number;
        $record = new Record(strtoupper($word), [$number, $word]);
        if ($number % 4 == 0) $record->next = $last;
        $last = $record;
    }
    $records[] = $last;
}
usort($records, fn($a, $b) => strcmp($a->name, $b->name) ?: $a->tags[0] <=> $b->tags[0]);
$text = '';
foreach ($places as $list) $text .= implode(',', $list) . ';';
$back = json_decode(json_encode(array_slice($places, 0, 400)), true);
arsort($count);
echo count($records), ' ', strlen($text), ' ', count($back), ' ', $records[0]->name, ' ', max($count), "\n";
