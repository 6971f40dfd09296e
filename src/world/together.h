/* together.h - a world that begins with others, or not at all.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_TOGETHER_H
#define PCCL_WORLD_TOGETHER_H

#include "world/world_state.h"

bool together_wait(struct world *w);    /* it is linked, and its siblings may not be; false: it begins by itself */
void together_unready(struct world *w); /* ... and has to be linked anew */
void together_durable(struct world *w); /* the record is: that of all */
void together_settle(struct world *w);  /* what has failed in one of them fails here */
void together_leave(struct world *w);   /* it has begun, or is forgotten */

#endif
