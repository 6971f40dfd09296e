/* lane_bound.h - which connections a bound on staging memory holds back, for the statistics and the log.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_BOUND_H
#define PCCL_ENGINE_LANE_BOUND_H

#include "engine/lanes/lane.h"

/* An operation lacks grants since the lane has met a bound. */
void lane_bound_note(struct lane_exec *e);

#endif
