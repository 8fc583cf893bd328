/* SPDX-License-Identifier: Apache-2.0 */
/* reap_string.h: a formatted text in an object, whose memory is asked for when the length is known.
 *
 * Threads: the reap's own.
 */
#ifndef REAP_STRING_H
#define REAP_STRING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Formats a text and writes it, with its zero, to where `place` says, which gets `to` and the length without
 * the zero. Returns false if vsnprintf fails, or if `place` returns NULL. */
bool reap_format(char *(*place)(void *to, size_t length), void *to, const char *format, va_list args);

#endif
