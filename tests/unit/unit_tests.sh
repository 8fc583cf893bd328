#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where configure found no Check, this stands for all Check programs.
echo "skipped: no Check library (Debian: check): the Check programs of tests/unit, tests/model and tests/fault"
exit 77
