/* redial.h - a member whose connections have closed.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_REDIAL_H
#define PCCL_WORLD_REDIAL_H

#include "world/world_state.h"

void redial_begin(struct world *w, struct member *mb); /* an accepted member has no control connection any more */
/* A member reports a broken link to this one; `refused`: the address of this one refuses new connections. */
void redial_link_lost(struct world *w, struct member *mb, bool refused);

#endif
