#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The soak of soak_restarts.sh under each MPM, shortened: some restarts while requests of all kinds go on. Children then
# live for two seconds, and have more or less of what they need.
srcdir=${srcdir:-.}
SECONDS_BETWEEN=${SECONDS_BETWEEN:-2} GROWTH=${GROWTH:-6144}
export SECONDS_BETWEEN GROWTH
for mpm in event worker prefork; do
    REQUESTS=${REQUESTS:-12000} sh "$srcdir/tests/apache/soak_restarts.sh" $mpm || exit
done
