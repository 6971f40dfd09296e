/* lane_flow.h - the windows of those that send to this process.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_FLOW_H
#define PCCL_ENGINE_LANE_FLOW_H

#include "engine/lanes/lane.h"

void lane_flow_begin(struct stream *s); /* its window follows its round trip, until frames arrive */
/* A frame with a contribution has arrived: the window of its sender may grow, here and in the next launches of its communicator. */
void lane_flow_arrived(struct stream *s);
void lane_flow_end(struct stream *s);

#endif
