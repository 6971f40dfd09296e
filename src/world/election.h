/* election.h - which shared state wins, who sends, who receives, and when all may apply it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ELECTION_H
#define PCCL_WORLD_ELECTION_H

#include "world/world_state.h"

void election_settle(struct world *w, struct group *g);
bool election_known(const struct world *w, const struct member *mb, const struct msg_staged *s); /* a round that there has been */
void election_staged(struct world *w, struct member *mb, const struct msg_staged *s);
void election_persisted(struct world *w, uint64_t number);
int64_t election_deadline(const struct world *w);
void election_reset(struct world *w, struct group *g, const char *why); /* nobody waits in it any more */

#endif
