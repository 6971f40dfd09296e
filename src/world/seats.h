/* seats.h - the calls that create a world of a given size.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_SEATS_H
#define PCCL_WORLD_SEATS_H

#include "world/world_state.h"

void seats_settle(struct world *w); /* gives up what has failed */

#endif
