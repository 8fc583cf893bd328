#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The soak of soak_restarts.sh, shortened: some restarts while requests of all kinds go on.
srcdir=${srcdir:-.}
REQUESTS=${REQUESTS:-40000} SECONDS_BETWEEN=${SECONDS_BETWEEN:-2} GROWTH=${GROWTH:-4096}
export REQUESTS SECONDS_BETWEEN GROWTH
exec sh "$srcdir/tests/apache/soak_restarts.sh" event
