/* view_trees.h - which trees a view gets.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VIEW_TREES_H
#define PCCL_WORLD_VIEW_TREES_H

#include "world/world_state.h"

/* The trees of a view, members and missing edges known, and what is predicted of them; whether it would have others now. */
void view_trees(struct world *w, const struct view_record *from, struct view_record *v);
bool view_trees_differ(struct world *w, struct group *g);

#endif
