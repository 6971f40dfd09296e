/* keys.h - who joins a world of a given size later, and under which rank (W13).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_KEYS_H
#define PCCL_WORLD_KEYS_H

#include "world/world_state.h"

void keys_give(struct world *w);   /* before links are made for the next view: to those who join, or they are refused */
void keys_settle(struct world *w); /* ... since nobody is left to admit them */
void keys_take(struct world *w);   /* ... whose admission is decided */

#endif
