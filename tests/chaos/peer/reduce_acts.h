/* reduce_acts.h - what a member does in a step: all-reduces in every form that the interface has.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_REDUCE_ACTS_H
#define PCCL_TESTS_REDUCE_ACTS_H

#include "chaos_member.h"

/* The acts of this step, the same on all members of the group.  Success: all done.  RankConnectionLost: the step
 * begins again, with an update, on all members.  TooFewPeers, MasterConnectionFailed: the step is given up. */
pcclResult_t acts_run(struct member *m);

#endif
