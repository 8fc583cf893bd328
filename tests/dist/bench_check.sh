#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hot paths have the instructions that were recorded (bench/check.sh), where the compiler and its flags are those of
# the record.
exec sh "${srcdir:-.}/bench/check.sh"
