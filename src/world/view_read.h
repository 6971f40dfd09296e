/* view_read.h - the views of a group, asked without changing anything.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VIEW_READ_H
#define PCCL_WORLD_VIEW_READ_H

#include "world/world_state.h"

struct view_record *view_current(struct group *g);
struct view_record *view_next(struct group *g);
uint32_t view_place(const struct view_record *v, uint64_t id); /* SLOT_NONE: it is no member */
bool view_has(const struct view_record *v, uint64_t id);
bool view_ending(const struct group *g); /* its members are frozen */
/* Every accepted member surely has the published view (it may be left out of a freeze only then: nobody is ever more than
 * one view behind, M5). */
bool view_known_to_all(const struct world *w, const struct group *g);
uint64_t view_next_revision(const struct group *g); /* that of the next sync, above all before it */
struct sizes view_sizes(struct world *w, const struct group *g, bool joining);

#endif
