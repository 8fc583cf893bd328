/* SPDX-License-Identifier: Apache-2.0 */
/* A module that profiled opens while the profile is on. */
#include <stdlib.h>

void *allocate_in_module(size_t size);
void *allocate_in_module(size_t size) { return malloc(size); }
