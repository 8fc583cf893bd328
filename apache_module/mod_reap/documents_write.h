/* SPDX-License-Identifier: Apache-2.0 */
/* documents_write: how a look is written in each form. */
#ifndef MOD_REAP_DOCUMENTS_WRITE_H
#define MOD_REAP_DOCUMENTS_WRITE_H

#include "gather.h"

enum { LIMITS = 100 }; /* of the configuration, at most */

struct growers {
    struct pool_tags earlier; /* bytes by tag, named in JSON */
    double seconds;           /* since then */
};

void write_json(struct text *text, const struct look *look, const struct growers *growers);
void write_auto(struct text *text, const struct look *look);
void write_prometheus(struct text *text, const struct look *look);
void write_brief(struct text *text, const struct look *look);

#endif
