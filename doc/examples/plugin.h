/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h: what sandbox.c asks of a plug-in: a shared object that defines this function. It may use malloc
 * and whatever library it likes. The answer is text from malloc, or NULL with errno set. */
#ifndef PLUGIN_H
#define PLUGIN_H

char *plugin(const char *input);

#endif
