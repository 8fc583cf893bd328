/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h: places where a tracer may look on, as USDT probes of the provider "reap".
 *
 *     PROBE(large_alloc, object, size);
 *
 * is one nop, and a note in the library that tells perf, bpftrace, SystemTap and gdb where it is and in which
 * registers the arguments are; nothing is called and nothing is tested. On slow paths only, all the same.
 * libreap-malloc(7) has the list, with the arguments. Without <sys/sdt.h> (configure tells) it is nothing.
 */
#ifndef PROBE_H
#define PROBE_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#ifdef REAP_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define PROBE(...) STAP_PROBEV(reap, __VA_ARGS__)
#else
#define PROBE(...) ((void)0)
#endif

#endif
