/* member_read.c - who is in the run, asked without changing anything.
 *
 * Its one idea: a member that is gone is nobody: whoever asks by id hears of pending and accepted ones only.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"

struct group *member_group(const struct world *w, const struct member *mb)
{
    return &w->groups[mb->group];
}

bool member_registered(const struct member *mb)
{
    return mb->phase == MEMBER_PENDING || mb->phase == MEMBER_ACCEPTED;
}

bool member_silent(const struct world *w, const struct member *mb)
{
    return member_registered(mb) && w->common->now - mb->heard_at >= w->common->config.dead_ns;
}

bool member_quiet(const struct world *w, const struct member *mb)
{
    const struct master_config *cfg = &w->common->config;
    int64_t early = 2 * cfg->heartbeat_ns < cfg->dead_ns / 2 ? 2 * cfg->heartbeat_ns : cfg->dead_ns / 2;
    return member_registered(mb) && w->common->now - mb->heard_at >= cfg->dead_ns - early;
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
