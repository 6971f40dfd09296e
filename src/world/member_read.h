/* member_read.h - who is in the run, asked without changing anything.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEMBER_READ_H
#define PCCL_WORLD_MEMBER_READ_H

#include "world/world_state.h"

struct group *member_group(const struct world *w, const struct member *mb);
bool member_registered(const struct member *mb);
/* Silence after which one is excluded, a fifth of which heartbeats come in: the stall time of its view, which all of its members have
 * been told; of a newcomer its own.  At most what the master's are. */
int64_t group_dead_ns(const struct world *w, const struct group *g);
int64_t group_heartbeat_ns(const struct world *w, const struct group *g);
int64_t member_dead_ns(const struct world *w, const struct member *mb);
int64_t member_heartbeat_ns(const struct world *w, const struct member *mb);
bool member_silent(const struct world *w, const struct member *mb); /* for the time after which it is excluded */
/* Nearly so long, by two heartbeats: when nothing arrives any more, all are, whenever each was heard last (M7). */
bool member_quiet(const struct world *w, const struct member *mb);
bool member_bound(const struct world *w, uint32_t member, uint32_t conn); /* the connection says so, too */
bool member_accepted_in(const struct world *w, const struct member *mb, const struct group *g);
uint32_t member_count(const struct world *w, const struct group *g, enum member_phase phase); /* null: all groups; not FREE */
uint32_t member_used(const struct world *w); /* slots that are not free */

#endif
