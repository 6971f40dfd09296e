/* member.h - who is in the run.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEMBER_H
#define PCCL_WORLD_MEMBER_H

#include "world/world_state.h"

void member_register(struct world *w, uint32_t conn, const struct msg_register *reg);
/* Pending, and welcomed; null: refused. */
struct member *member_newcomer(struct world *w, uint32_t conn, const struct msg_register *reg);
/* The call that made it a member comes again: its connection broke before it heard of its first view. */
void member_reclaim(struct world *w, struct member *mb, uint32_t conn);
void member_closed(struct world *w, struct member *mb);
void member_heartbeat(struct world *w, struct member *mb, const struct msg_heartbeat *hb, uint64_t view);
void member_tick(struct world *w);
void member_sweep(struct world *w); /* gone ones give their slots back */

#endif
