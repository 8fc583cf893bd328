#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A short soak under each MPM; the long one is run by hand. It ends before every thread has had its
# share of requests, so memory may still grow by a quarter.
REQUESTS=${REQUESTS:-6000} WARM=${WARM:-1500} GROWTH=${GROWTH:-25}
export REQUESTS WARM GROWTH
exec "${srcdir:-.}/tests/apache/soak.sh"
