#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The restartable sections of both libraries, as rseq_sections.py looks at them.
command -v python3 >/dev/null && command -v "${OBJDUMP:=objdump}" >/dev/null ||
    { echo "skipped: no python3 or no $OBJDUMP"; exit 77; }
libs=${top_builddir:-.}/.libs
exec python3 "${srcdir:-.}/tests/tools/rseq_sections.py" "$OBJDUMP" "$libs/libreap.so" "$libs/libreap-malloc.so"
