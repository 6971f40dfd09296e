/* vote.h - unanimous rounds, the master's way to agree on rare things.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VOTE_H
#define PCCL_WORLD_VOTE_H

#include "world/world_state.h"

void vote_take(struct world *w, struct member *mb, const struct msg_vote *v, uint64_t header_view);
void vote_settle(struct world *w);
const char *vote_name(enum vote_kind kind); /* "an update" */
/* A member that the vote or the admission of this one still needs; 0: none, or it waits for nothing. */
uint64_t vote_waits_for(struct world *w, const struct member *mb);
bool vote_all_in(const struct world *w, const struct group *g, enum vote_kind kind); /* null: all groups */
bool vote_quiet(const struct world *w, const struct group *g); /* answers may leave; null: all groups */
void vote_answer(struct world *w, struct member *mb, enum answer_result result, uint64_t value,
                 const struct sizes *sizes, const char *text);
void vote_answered_by_view(struct world *w, struct member *mb, const struct view_record *v);
void vote_replay(struct world *w, struct member *mb); /* the stored answer once more */

#endif
