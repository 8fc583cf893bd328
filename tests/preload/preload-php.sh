#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's PHP 8.2 under libreap-malloc: it opens its extensions with RTLD_DEEPBIND, so that they would call
# libc's free on our blocks. With its own allocator on top, and with every string a malloc.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need php8.2

cat >"$tmp/work.php" <<'PHP'
<?php
$rows = [];
for ($i = 0; $i < 60000; $i++) $rows["k" . $i % 7001][] = str_repeat(chr(97 + $i % 26), $i % 90);
ksort($rows);
$text = json_encode($rows);
printf("%d rows, %d bytes, %s\n", count($rows), strlen($text), md5($text));
echo count(json_decode($text, true)), " ", preg_match_all('/([a-f])\1{20,}/', $text), "\n";
$zip = gzcompress($text, 9);
echo strlen($zip) < strlen($text) / 4 ? "packed" : "not packed", " ", md5(gzuncompress($zip)), "\n";
echo implode(",", array_slice(explode("\n", shell_exec("printf 'a\nb\nc\n'")), 0, 3)), "\n";
$digest = openssl_digest($text, "sha256");
echo $digest, " ", preg_match_all("/./u", "\u{e4}\u{20ac}") , " ", iconv("UTF-8", "ISO-8859-1", "\u{e4}") === "\xe4" ? "iconv" : "", "\n";
if (extension_loaded("dom")) {
    $dom = new DOMDocument();
    $root = $dom->appendChild($dom->createElement("r"));
    for ($i = 0; $i < 3000; $i++) $root->appendChild($dom->createElement("e", "text $i"))->setAttribute("n", "$i");
    echo md5($dom->saveXML()), " ", (new DOMXPath($dom))->query("//e[@n>2990]")->length, "\n";
}
$pid = pcntl_fork();
if ($pid == 0) { usleep(1000); exit(strlen(str_repeat("y", 100000)) == 100000 ? 7 : 1); }
pcntl_waitpid($pid, $status);
echo "child ", pcntl_wexitstatus($status), "\n";
PHP

work() {
    php8.2 -d memory_limit=256M "$tmp/work.php" && USE_ZEND_ALLOC=0 php8.2 -d memory_limit=256M "$tmp/work.php"
}
compare_work
