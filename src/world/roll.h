/* roll.h - the roll of a world.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ROLL_H
#define PCCL_WORLD_ROLL_H

#include "world/world_state.h"

/* Around every change of what a tally counts of a member. */
void roll_out(struct world *w, const struct member *mb);
void roll_in(struct world *w, const struct member *mb);
/* The one way of a member from phase to phase; `why` is static. */
void roll_move(struct world *w, struct member *mb, enum member_phase to, uint64_t view, const char *why);
struct member *roll_free(struct world *w); /* the first free slot; null */
void roll_due(struct world *w, const struct member *mb); /* its times have changed */
/* When a member without a control connection is excluded. */
int64_t roll_resume_by(const struct world *w, const struct member *mb);
void roll_mark_due(struct world *w);       /* into due_set, until the next roll_due of each */
/* Who has still to come to this vote: of all groups, or of this one to its sync; 0 nobody. */
uint64_t roll_missing(struct world *w, struct group *g, enum vote_kind kind);
void roll_rebuild(struct world *w);        /* all tables lie elsewhere, with more room */
void roll_check(const struct world *w);
struct member *member_find(const struct world *w, uint64_t id); /* pending or accepted; null */

#endif
