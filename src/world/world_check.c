/* world_check.c - what must hold of a world between two steps, in one place.
 *
 * A few flags after every step; members, groups and votes, which cost as much as there are, every so many steps
 * (core/check.h).  Invariant: nothing is written but the count-down.
 * SPDX-License-Identifier: MIT */
#include "core/census.h"
#include "world/world_state.h"
#include "world/breaks.h"
#include "world/formation.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"

/* A member has, for sure, the group's view or the one before it: it was left out of no freeze otherwise (M5). */
static void check_known_view(const struct world *w, const struct member *mb)
{
    const struct view_record *v = &w->groups[mb->group].views[w->groups[mb->group].current];
    uint32_t rank = view_place(v, mb->id);
    bool fresh = rank != SLOT_NONE && v->fresh[rank];
    PCCL_ASSERT(mb->known_view == v->view || (fresh ? mb->known_view == 0 : mb->known_view == v->parent));
}

static void check_accepted(const struct world *w, const struct member *mb)
{
    const struct group *g = &w->groups[mb->group];
    PCCL_ASSERT(g->phase != GROUP_FREE && view_has(&g->views[g->current], mb->id));
    PCCL_ASSERT(mb->role == 0 || mb->vote.kind == VOTE_SYNC);
    PCCL_ASSERT(!mb->distrusted || mb->vote.kind == VOTE_SYNC); /* a liar is one until its vote ends */
    PCCL_ASSERT(mb->waits_for == 0 || g->collect_until != NEVER); /* complaints are judged, or end with their view */
    PCCL_ASSERT(mb->vote.kind == VOTE_NONE || mb->vote.msg.number == mb->answered);
    PCCL_ASSERT(mb->blamed_by == 0 || mb->blamed_at != 0);
    check_known_view(w, mb);
}

static uint32_t bits_set(uint64_t set)
{
    uint32_t count = 0;
    for (; set != 0; set &= set - 1) {
        count++;
    }
    return count;
}

static void check_members(const struct world *w)
{
    uint32_t probing = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        PCCL_ASSERT(mb->phase != MEMBER_GONE); /* swept at the end of the step */
        if (mb->phase == MEMBER_FREE) {
            continue;
        }
        PCCL_ASSERT(mb->id != 0 && mb->id < w->common->next_id && mb->group < w->group_room);
        PCCL_ASSERT(mb->conn == SLOT_NONE ||
                    member_bound(w, i, mb->conn));
        probing += (uint32_t)(mb->probing != 0 || mb->probe_rests) + bits_set(mb->asked);
        if (mb->phase == MEMBER_ACCEPTED) {
            check_accepted(w, mb);
        } else {
            PCCL_ASSERT(mb->conn != SLOT_NONE && mb->vote.kind == VOTE_NONE && mb->role == 0 && mb->known_view == 0);
        }
    }
    PCCL_ASSERT(w->optimise.phase == OPTIMISE_PROBING ? probing == w->optimise.waiting + w->optimise.order.busy : probing <= w->optimise.order.busy);
}

static void check_view(const struct world *w, const struct group *g)
{
    const struct view_record *v = &g->views[g->current];
    struct census ring = {0};
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        PCCL_ASSERT(i == 0 || v->ids[i - 1] < v->ids[i]);
        census_add(&ring, v->ring[i]);
        accepted += mb != NULL && member_accepted_in(w, mb, g);
    }
    PCCL_ASSERT(census_whole(&ring, v->members));
    bool settled = g->phase == GROUP_NORMAL && w->admit.phase == ADMIT_IDLE && w->optimise.phase != OPTIMISE_PERSISTING;
    PCCL_ASSERT(accepted == v->members || g->lost || !settled); /* a loss ends the view */
    PCCL_ASSERT(v->view < g->next_number && v->parent <= v->view);
    for (uint32_t i = 0; i < v->edges; i++) {
        const struct missing_edge *e = &v->edge[i];
        PCCL_ASSERT(e->a < e->b && view_has(v, e->a) && view_has(v, e->b) && view_has(v, e->relay));
    }
}

static void check_sync(const struct world *w, const struct group *g)
{
    if (g->sync.phase == SYNC_IDLE) {
        return;
    }
    uint32_t receivers = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g)) {
            PCCL_ASSERT(mb->vote.kind == VOTE_SYNC); /* all wait in it until all are answered */
            PCCL_ASSERT(mb->role == SYNC_HOLDER || mb->role == SYNC_RECEIVER);
            PCCL_ASSERT(mb->role != SYNC_HOLDER || mb->staged);
            PCCL_ASSERT(mb->failures < WORLD_SYNC_ROUNDS);
            receivers += !mb->staged;
        }
    }
    PCCL_ASSERT(g->sync.phase == SYNC_STAGING || receivers == 0); /* G6: nobody applies before all have everything */
    PCCL_ASSERT(g->sync.persist != 0 || g->sync.phase == SYNC_STAGING);
}

static void check_group(const struct world *w, const struct group *g)
{
    if (g->phase == GROUP_FREE) {
        PCCL_ASSERT(member_count(w, g, MEMBER_ACCEPTED) == 0 && member_count(w, g, MEMBER_PENDING) == 0);
        return;
    }
    PCCL_ASSERT(g->phase != GROUP_FREEZING || (g->report_by != NEVER && g->attempt > 0));
    PCCL_ASSERT(g->phase != GROUP_FREEZING || g->cause != CAUSE_NONE); /* M8 */
    PCCL_ASSERT(g->phase != GROUP_FREEZING || g->unreported > 0); /* else it would have gone on */
    PCCL_ASSERT(g->phase != GROUP_PERSISTING || g->persist != 0 || g->in_batch);
    PCCL_ASSERT(g->record_count <= g->size.records && g->waited <= common_decisions(&w->common->config));
    breaks_check(w, g);
    check_view(w, g);
    check_sync(w, g);
}

void world_check(struct world *w)
{
    PCCL_ASSERT((w->admit.phase == ADMIT_LINKING) == (w->admit.deadline != NEVER));
    PCCL_ASSERT(w->admit.phase != ADMIT_PERSISTING || w->admit.persist != 0);
    PCCL_ASSERT(w->admit.phase == ADMIT_IDLE || w->optimise.phase != OPTIMISE_PERSISTING); /* each makes the next views */
    PCCL_ASSERT(w->optimise.phase != OPTIMISE_PROBING || w->optimise.waiting + w->optimise.order.busy > 0); /* M9 */
    PCCL_ASSERT(w->admit.phase != ADMIT_READY || (w->form.siblings != NULL && w->form.siblings->persist == 0));
    if (w->check_in-- > 1) {
        return;
    }
    w->check_in = check_interval(w->common->config.check_every, (9 + w->absent.count) * w->member_room + w->form.size);
    roll_check(w);
    formation_check(w);
    if (w->form.siblings != NULL) {
        siblings_check(w->form.siblings);
    }
    check_members(w);
    absent_check(w);
    for (uint32_t i = 0; i < w->group_room; i++) {
        check_group(w, &w->groups[i]);
    }
}
