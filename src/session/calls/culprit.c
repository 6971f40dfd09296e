/* culprit.c - rank and address of the member that an outcome names.
 *
 * Its one idea: an outcome is named when its call ends, and describes a member by the view before the loss.  Errors that are owed come
 * later, so the members that views have lost are remembered for a while.
 * SPDX-License-Identifier: MIT */
#include "session/calls/culprit.h"
#include "session/tables/peers.h"

/* The first address of its own that this peer says; none where that means what the master sees. */
static struct net_address own_address(const struct session *s)
{
    static const struct net_address unset = {0};
    const struct net_address *a = &s->cfg.address[0];
    return memcmp(a->ip, unset.ip, sizeof a->ip) == 0 ? unset : *a;
}

/* Of the installed view. */
static struct member_name member_of_view(const struct session *s, uint32_t rank)
{
    uint32_t p = s->view.peer[rank];
    return (struct member_name){.id = s->view.ids[rank], .ranked = s->view.shown[rank] + 1,
                                .address = p == NONE ? own_address(s) : s->peers.at[p].info.address[0]};
}

void culprit_remember(struct session *s, uint32_t rank)
{
    s->departed.at[s->departed.next] = member_of_view(s, rank);
    s->departed.next = (s->departed.next + 1) % SESSION_DEPARTED;
}

struct member_name culprit_find(const struct session *s, uint64_t id)
{
    uint32_t rank = id == 0 ? NONE : view_rank(s, id);
    if (rank != NONE) {
        return member_of_view(s, rank);
    }
    for (uint32_t i = 0; id != 0 && i < SESSION_DEPARTED; i++) {
        if (s->departed.at[i].id == id) {
            return s->departed.at[i];
        }
    }
    return (struct member_name){.id = id};
}

void session_name(const struct session *s, struct session_outcome *outcome)
{
    uint64_t id = outcome->differs != 0 ? outcome->differs : outcome->culprit;
    if (outcome->named.id != id) {
        outcome->named = culprit_find(s, id);
    }
    outcome->derived = s->cfg.derived.callers > 0;
}

void culprit_forget(struct session *s)
{
    memset(&s->departed, 0, sizeof s->departed);
}
