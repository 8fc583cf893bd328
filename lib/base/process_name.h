/* SPDX-License-Identifier: Apache-2.0 */
/* process_name.h: names of files and sockets that differ from process to process. */
#ifndef PROCESS_NAME_H
#define PROCESS_NAME_H

#include "base/base.h"

/* Copies a name, with the process's number for each %p. False: it is too long. */
bool process_name(const char *given, char *name, size_t size);

/* Returns true if a name has a %p. */
bool process_name_has_number(const char *given);

#endif
