#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The restartable sections of both libraries, as rseq_sections.py looks at them.
. "${srcdir:-.}/tests/support/needs.sh"
need python3 "${OBJDUMP:=objdump}"
libs=${top_builddir:-.}/.libs
exec python3 "${srcdir:-.}/tests/tools/rseq_sections.py" "$OBJDUMP" "$libs/libreap.so" "$libs/libreap-malloc.so"
