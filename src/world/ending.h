/* ending.h - how a world ends while there are members in it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ENDING_H
#define PCCL_WORLD_ENDING_H

#include "world/world_state.h"

bool ending_begun(const struct world *w);          /* nothing new is decided any more */
bool ending_with(const struct world *w, const struct view_record *next); /* this view is the last */
bool ending_wants(const struct world *w, struct group *g); /* its last view is still to be made */
void ending_blame(const struct world *w, struct group *g); /* a revoked one: why its view ends */
void ending_published(struct world *w);            /* a last view has left */
void ending_revoke(struct world *w, struct member *mb); /* LEAVE says so, too */
void ending_settle(struct world *w);

#endif
