#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make soak for some seconds: no wrong answer. And a server that answers otherwise is told, and one that ends.
. "${srcdir:-.}/tests/support/script.sh"
need python3
chmod 755 "$tmp" # root's servers run as other users
soak() { TMPDIR=$tmp python3 -B "$srcdir/tests/endurance/endurance.py" --build "$build" --out "$tmp" --share 0.7 "$@" >"$tmp/said" 2>&1; }

# Make has the default, for bash has a SECONDS of its own.
for seconds in 600 3600; do
    [ $seconds = 600 ] && given= || given=SECONDS=$seconds
    env -u SECONDS -u MAKEFLAGS make -s -n -C "$build" soak $given SHELL=/bin/bash >"$tmp/said" 2>&1
    grep -q -- "--seconds $seconds " "$tmp/said" || wrong "make soak $given does not take $seconds seconds"
done

soak --seconds 15
status=$?
[ $status != 77 ] || { cat "$tmp/said"; exit 77; }
[ $status = 0 ] || wrong "servers under libreap-malloc"
cat "$tmp/said"
[ "$(wc -l <"$tmp/soak.csv")" -gt 3 ] || wrong "no figures"

soak --seconds 0 && wrong "no round at all passes"
grep -q '^no server had one round' "$tmp/said" || wrong "no round at all is not told"
soak --seconds 1 --servers nobody && wrong "no server at all passes"

# The program's own answers, one byte changed; and a malloc that ends its process after a while.
! lacks memcached "the test of the test" || exit $bad
cat >"$tmp/odd.c" <<'ODD'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef ENDS
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static int calls;
    if (++calls > 300) _exit(3);
    return ((ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg"))(fd, message, flags);
}
#else
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    char *last = message->msg_iov[0].iov_base;
    if (!memcmp(last, "STORED", 6)) last[3] = 'X';
    return ((ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg"))(fd, message, flags);
}
#endif
ODD
${CC:-cc} -shared -fPIC -w -o "$tmp/odd.so" "$tmp/odd.c" && ${CC:-cc} -shared -fPIC -w -DENDS -o "$tmp/ends.so" "$tmp/odd.c" || exit 99
soak --seconds 5 --servers memcached --preload "$tmp/odd.so" && wrong "another answer is not seen"
grep -q 'memcached.*WRONG: reap: other answers than stock' "$tmp/said" || wrong "another answer is not told"
soak --seconds 5 --servers memcached --preload "$tmp/ends.so" && wrong "a server that ended is not seen"
grep -q 'memcached.*WRONG: reap: round' "$tmp/said" || wrong "a server that ended is not told"
exit $bad
