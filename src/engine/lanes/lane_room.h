/* lane_room.h - the memory of a lane's room.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_ROOM_H
#define PCCL_ENGINE_LANE_ROOM_H

#include "engine/lanes/lane.h"

bool lane_room_init(struct lane *lane); /* false: no memory */
void lane_room_free(struct lane *lane);
void lane_room_grow(struct lane *lane); /* by a block, if the windows of its streams need more and the process may take more */
void lane_room_rest(struct lane *lane); /* nothing is under way: gives back pages, and blocks that no window needs */

#endif
