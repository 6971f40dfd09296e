/* member_read.c - who is in the run, asked without changing anything.
 *
 * Its one idea: a member that is gone is nobody: whoever asks by id hears of pending and accepted ones only.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/member_read.h"

struct group *member_group(const struct world *w, const struct member *mb)
{
    return &w->groups[mb->group];
}

bool member_registered(const struct member *mb)
{
    return mb->phase == MEMBER_PENDING || mb->phase == MEMBER_ACCEPTED;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t dead_ns(const struct world *w, uint32_t stall_ms)
{
    return stall_ms > 0 ? at_most((int64_t)stall_ms * 1000000, w->common->config.dead_ns) : w->common->config.dead_ns;
}

int64_t group_dead_ns(const struct world *w, const struct group *g)
{
    return dead_ns(w, g->views[g->current].plan.stall_ms);
}

int64_t group_heartbeat_ns(const struct world *w, const struct group *g)
{
    return stall_heartbeat_ns(group_dead_ns(w, g), w->common->config.heartbeat_ns);
}

int64_t member_dead_ns(const struct world *w, const struct member *mb)
{
    return mb->phase == MEMBER_ACCEPTED ? group_dead_ns(w, member_group(w, mb)) : dead_ns(w, mb->stall_ms);
}

int64_t member_heartbeat_ns(const struct world *w, const struct member *mb)
{
    return stall_heartbeat_ns(member_dead_ns(w, mb), w->common->config.heartbeat_ns);
}

bool member_silent(const struct world *w, const struct member *mb)
{
    return member_registered(mb) && w->common->now - mb->heard_at >= member_dead_ns(w, mb);
}

bool member_quiet(const struct world *w, const struct member *mb)
{
    int64_t dead = member_dead_ns(w, mb), early = at_most(2 * member_heartbeat_ns(w, mb), dead / 2);
    return member_registered(mb) && w->common->now - mb->heard_at >= dead - early;
}

bool member_bound(const struct world *w, uint32_t member, uint32_t conn)
{
    const struct conn *c = &w->common->conns[conn];
    return c->state == CONN_MEMBER && c->world == w->slot && c->member == member;
}

bool member_accepted_in(const struct world *w, const struct member *mb, const struct group *g)
{
    return mb->phase == MEMBER_ACCEPTED && (g == NULL || member_group(w, mb) == g);
}

uint32_t member_used(const struct world *w)
{
    const uint32_t *phase = w->tally.phase;
    return phase[MEMBER_PENDING] + phase[MEMBER_ACCEPTED] + phase[MEMBER_GONE];
}

uint32_t member_count(const struct world *w, const struct group *g, enum member_phase phase)
{
    return g != NULL ? g->tally.phase[phase] : w->tally.phase[phase];
}
