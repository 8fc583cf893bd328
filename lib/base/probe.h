/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h: places that tracers can observe, as USDT probes of the provider "reap".
 *
 *     PROBE(large_alloc, object, size);
 *
 * is one nop, and a note in the library that tells perf, bpftrace, SystemTap and gdb where it is and which
 * registers hold the arguments. It calls and tests nothing. All the same, probes stand on slow paths only.
 * libreap-malloc(7) lists them with their arguments. Without <sys/sdt.h> (configure tells) PROBE is empty.
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
/* Its arguments count as used, and are not evaluated. */
static inline void probe_none(int none, ...) { (void)none; }
#define PROBE(name, ...) (0 ? probe_none(0, __VA_ARGS__) : (void)0)
#endif

#endif
