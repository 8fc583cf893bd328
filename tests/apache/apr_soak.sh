#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The soak of soak_restarts.sh under each MPM, shortened: some restarts while requests of all kinds go on. Children then
# live for two seconds, and have more or less of what they need: 40 children of prefork, and 3 of the other MPMs.
srcdir=${srcdir:-.}
export SECONDS_BETWEEN="${SECONDS_BETWEEN:-2}"
for row in event:6144 worker:6144 prefork:16384; do
    GROWTH=${GROWTH:-${row#*:}} REQUESTS=${REQUESTS:-12000} sh "$srcdir/tests/apache/soak_restarts.sh" ${row%:*} || exit
done
