#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The soak of soak_restarts.sh, shortened: some restarts while requests of all kinds go on. Children then live for two
# seconds, and have more or less of what they need.
srcdir=${srcdir:-.}
REQUESTS=${REQUESTS:-30000} SECONDS_BETWEEN=${SECONDS_BETWEEN:-2} GROWTH=${GROWTH:-6144}
export REQUESTS SECONDS_BETWEEN GROWTH
exec sh "$srcdir/tests/apache/soak_restarts.sh" event
