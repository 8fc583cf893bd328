# SPDX-License-Identifier: Apache-2.0
# What tests of an installation share, to be sourced: it is made below $tmp/root; wrong says what is wrong, in $bad.
. "${srcdir:-.}/tests/support/script.sh"

# Make's own flags would have this make talk to the jobs of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s -C "$top_builddir" install DESTDIR="$tmp/root" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }

# Programs that say "client 7": README's example, and one of pools.
sed -n '/^```c$/,/^```$/{/^```/!p}' "$srcdir/README.md" >"$tmp/example.c"
cat >"$tmp/pools.c" <<'C'
#include <apr_reap.h>
#include <reap.h>
#include <stdio.h>
int main(void)
{
    apr_pool_t *pool = NULL;
    if (apr_initialize() != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS) return 1;
    char *line = apr_palloc(pool, 80);
    apr_pfree(pool, line);
    void *owner = NULL;
    printf("client %d\n", reapOf(apr_palloc(pool, 80), &owner) == 0 && owner == *apr_pool_reap(pool) ? 7 : 0);
    apr_terminate();
    return 0;
}
C
