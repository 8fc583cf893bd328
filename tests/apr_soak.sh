#!/bin/sh
# A short soak under each MPM; the long one is run by hand.
REQUESTS=${REQUESTS:-6000} WARM=${WARM:-1500}
export REQUESTS WARM
exec "${srcdir:-.}/tests/soak.sh"
