/* view_plan.h - how the members of a view do their operations.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VIEW_PLAN_H
#define PCCL_WORLD_VIEW_PLAN_H

#include "world/world_state.h"

/* How a view after `from` does its operations, its ring known; what is known of another ring; all but trees. */
void view_plan(const struct world *w, const struct view_record *from, struct view_record *v);
void view_plan_ring(const struct world *w, const struct view_record *from, struct view_record *v);
bool view_plan_differs(const struct world *w, const struct view_record *v); /* what a byte costs is known to be clearly something else now */
void view_plan_look(struct world *w); /* the same of a few groups, each looked at seldom: they are outdated */

#endif
