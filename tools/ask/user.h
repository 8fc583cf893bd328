/* SPDX-License-Identifier: Apache-2.0 */
/* user.h: whom this process trusts: root, and its own user.
 *
 * In a user namespace that does not have all users, as in containers without root, the kernel gives those
 * without a number the same one (overflowuid, 65534 as a rule). So this number stands for one user only if
 * the namespace has all.
 */
#ifndef USER_H
#define USER_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true for root, and for what is certainly the effective user of this process. */
bool user_is_trusted(uid_t user);

#endif
