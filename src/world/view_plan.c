/* view_plan.c - how the members of a view do their operations: lanes, digests, what travels with a launch, what things cost.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "collectives/choose.h"
#include "collectives/plan.h"
#include "world/world_state.h"

static bool same_host(const struct net_address *a, const struct net_address *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* Digests where a link leaves the host, or where somebody asks for them: for all members or for none. */
static bool wants_verify(const struct world *w, const struct view_record *v)
{
    const struct member *first = NULL;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && (mb->verify || (first != NULL && !same_host(&first->seen, &mb->seen)))) {
            return true;
        }
        first = first == NULL ? mb : first;
    }
    return false;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* What choosing an algorithm needs: the greatest of the members' costs, and how many share the first one's host, which stands for all. */
static void plan_costs(const struct world *w, struct view_record *v)
{
    const struct member *first = NULL;
    struct costs *c = &v->plan.costs;
    uint64_t beside = 0;
    *c = (struct costs){0};
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb == NULL) {
            continue;
        }
        first = first == NULL ? mb : first;
        beside += same_host(&first->seen, &mb->seen);
        c->delay_ns = most(c->delay_ns, mb->costs.delay_ns);
        c->message_ns = most(c->message_ns, mb->costs.message_ns);
        c->byte_ps = most(c->byte_ps, mb->costs.byte_ps);
        c->fold_ps = most(c->fold_ps, mb->costs.fold_ps);
    }
    uint64_t crowd = first == NULL || first->cores == 0 ? 0 : beside * CHOOSE_CROWD / first->cores;
    v->plan.crowd = (uint16_t)(crowd < UINT16_MAX ? crowd : UINT16_MAX);
}

/* The most is for two: of what all the others say at once each member gets about as much, up to four of them. */
static uint32_t eager_bytes(const struct view_record *v)
{
    uint32_t most = v->plan.eager_bytes, least = most / 4, bytes = most;
    for (uint32_t members = 2; members < v->members && bytes > least; members *= 2) {
        bytes /= 2;
    }
    return bytes;
}

void view_plan(const struct world *w, struct view_record *v)
{
    v->plan = w->common->config.plan;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL) {
            v->plan.lanes = mb->info.lanes < v->plan.lanes ? mb->info.lanes : v->plan.lanes;
            v->plan.stall_ms = stall_shorter_ms(v->plan.stall_ms, mb->stall_ms);
        }
    }
    v->plan.verify = wants_verify(w, v);
    v->plan.eager_bytes = eager_bytes(v);
    plan_costs(w, v);
    if (v->edges > 0) { /* `direct` over those that are linked with all; eager messages would need every pair */
        v->plan.algorithm = PLAN_DIRECT;
        v->plan.eager_bytes = 0;
    }
}
