/* admit.c - newcomers come in, and what an update does.
 *
 * A complete update proposes the next view of every group; voters and newcomers make the links of it and say so; only then is
 * it decided (M10).  Any loss on the way is a new attempt, without FREEZE: all voters wait in the update, nobody is in an
 * operation.  Invariant: while LINKING, views[next] of each group in the batch is what ADMIT of this attempt named.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/admit.h"
#include "world/edges.h"
#include "world/formation.h"
#include "world/keys.h"
#include "world/linking.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/together.h"
#include "world/view.h"
#include "world/view_plan.h"
#include "world/view_read.h"
#include "world/vote.h"

void admit_stop(struct world *w, const char *why)
{
    w->admit.deadline = NEVER;
    w->admit.again = w->admit.doubted = false;
    if (w->admit.phase != ADMIT_IDLE) {
        world_move(w, PHASE_ADMIT, &w->admit.phase, ADMIT_IDLE, 0, w->admit.attempt, why);
    }
}

void admit_fix_sizes(struct world *w)
{
    w->admit.sizes = view_sizes(w, &w->groups[0], true);
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].decided = w->groups[i].counted;
    }
}

void admit_decided(struct world *w, uint64_t number)
{
    admit_fix_sizes(w);
    keys_take(w);
    w->admit.deadline = NEVER;
    world_move(w, PHASE_ADMIT, &w->admit.phase, ADMIT_PERSISTING, 0, w->admit.attempt, "views decided");
    w->admit.persist = number;
}

static void admit_persist(struct world *w)
{
    admit_decided(w, view_persist(w, NULL)); /* M4 */
    if (MUTANT(VIEW_EARLY)) { /* W8 */
        admit_persisted(w, w->admit.persist);
    }
}

void world_decide(struct world *w, struct writer *to, uint64_t number, uint32_t left)
{
    view_put_batch(w, NULL, to, common_number_of(number, w->slot), left);
    admit_decided(w, number);
}

/* The next view of a group whose members are linked already; false if nobody knows whether all of them are, or are relayed. */
static bool propose_changed(struct world *w, struct group *g)
{
    view_propose(w, g, VOTE_UPDATE, false);
    edges_inherit(w, g);
    if (edges_unsure(w, g)) {
        return false;
    }
    view_finish(w, g, false);
    g->in_batch = true;
    return true;
}

/* Names of operations are forgotten by a view alone: who never sees one keeps every tag that it has ever used. */
static bool tags_pile_up(const struct world *w, const struct group *g)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->vote.kind == VOTE_UPDATE && mb->vote.msg.idle > w->common->config.idle_tags) {
            return true;
        }
    }
    return false;
}

/* A link of the published view ended while newcomers linked: its ends have said so, and will not say it again. */
static bool link_ended(const struct group *g)
{
    return g->views[g->current].members > 0 && g->broken_view == g->views[g->current].view;
}

/* An update without newcomers: a next view where members were lost, a missing edge has healed, tags have piled up or costs are others, an
 * answer in the same view everywhere else.  False: links have to be made for it. */
static bool close_plain(struct world *w)
{
    bool any = false;
    view_plan_look(w);
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        uint32_t left = member_count(w, g, MEMBER_ACCEPTED);
        bool lost = left != view_current(g)->members, known = view_known_to_all(w, g), ended = link_ended(g);
        g->in_batch = false;
        if (g->phase == GROUP_FREE || (!lost && !ended && !(known && (edges_healed(w, g) || tags_pile_up(w, g) || g->outdated)))) {
            continue;
        }
        if (left == 0) {
            view_empty(w, g);
        } else if (ended) {
            return false;
        } else if (!known) {
            admit_stop(w, "a member may lack its view: freeze first"); /* M5 */
            g->lost = true;
            return true;
        } else if (!propose_changed(w, g)) {
            return false;
        } else {
            any = true;
        }
    }
    if (any) {
        admit_persist(w);
    } else {
        admit_stop(w, "no newcomers left");
        admit_fix_sizes(w);
        admit_publish(w, VOTE_UPDATE); /* nothing changes: answered in the same view, not persisted */
    }
    return true;
}

/* One more attempt to link all voters and all newcomers. */
static void admit_attempt(struct world *w)
{
    uint32_t joining = 0;
    keys_give(w); /* W13 */
    w->admit.again = false;
    w->admit.current = ++w->admit.attempt;
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        mb->joining = mb->phase == MEMBER_PENDING;
        mb->linked = false;
        joining += mb->joining;
    }
    w->admit.unlinked = joining + member_count(w, NULL, MEMBER_ACCEPTED);
    if (joining == 0 && member_count(w, NULL, MEMBER_ACCEPTED) == 0) {
        admit_stop(w, "nobody left");
        return;
    }
    if (joining == 0 && close_plain(w)) {
        return;
    }
    if (w->admit.phase == ADMIT_IDLE) {
        world_move(w, PHASE_ADMIT, &w->admit.phase, ADMIT_LINKING, 0, w->admit.attempt, "links are made");
    }
    w->admit.deadline = w->common->now + 2 * w->common->config.admit_ns; /* the peers themselves give up dialling after admit_ns */
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        g->in_batch = false;
        if (g->phase == GROUP_FREE) {
            continue;
        }
        if (member_count(w, g, MEMBER_ACCEPTED) == 0 && view_current(g)->members > 0) {
            view_empty(w, g);
        }
        view_propose(w, g, VOTE_UPDATE, true);
        g->in_batch = view_next(g)->members > 0;
        if (g->in_batch) {
            linking_send(w, g, w->admit.current, NULL);
        }
    }
}

/* All have linked: relays are found, or who cannot be reached goes and there is a new attempt. */
static void admit_close(struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (!g->in_batch) {
            continue;
        }
        bool again;
        uint64_t unlinked = edges_close_linked(w, g, &w->admit.doubted, &again);
        if (again) {
            admit_attempt(w);
            return;
        }
        if (unlinked != 0) {
            edges_exclude(w, g, unlinked);
            return;
        }
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (w->groups[i].in_batch) {
            view_finish(w, &w->groups[i], true);
        }
    }
    if (together_wait(w)) {
        w->admit.deadline = NEVER;
        world_move(w, PHASE_ADMIT, &w->admit.phase, ADMIT_READY, 0, w->admit.attempt, "linked, as its siblings have to be");
        return;
    }
    admit_persist(w);
}

/* A completed update, or nobody left to ask (M10).  A ring that is being made durable is published first, even if all have left it: its
 * view is the next one of its group until then. */
static bool admit_due(const struct world *w)
{
    if (w->optimise.phase == OPTIMISE_PERSISTING) {
        return false;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (view_ending(g) || g->phase == GROUP_PERSISTING || (g->phase == GROUP_NORMAL && g->suspect)) {
            return false;
        }
    }
    if (world_sized(w) && member_count(w, NULL, MEMBER_ACCEPTED) == 0) {
        return formation_complete(w);
    }
    if (member_count(w, NULL, MEMBER_ACCEPTED) == 0) {
        return member_count(w, NULL, MEMBER_PENDING) > 0 && !(MUTANT(NOADMITLAST) && w->had_members);
    }
    return vote_all_in(w, NULL, VOTE_UPDATE);
}

void admit_settle(struct world *w)
{
    switch ((enum admit_phase)w->admit.phase) {
    case ADMIT_IDLE:
        if (admit_due(w)) {
            admit_attempt(w);
        }
        break;
    case ADMIT_LINKING:
        if (w->admit.again) {
            admit_attempt(w);
        } else if (w->admit.unlinked == 0) {
            admit_close(w);
        }
        break;
    case ADMIT_READY:
        if (w->admit.again) {
            together_unready(w);
            world_move(w, PHASE_ADMIT, &w->admit.phase, ADMIT_LINKING, 0, w->admit.attempt, "a member has let go of its links");
            admit_attempt(w);
        }
        break;
    case ADMIT_PERSISTING:
    case ADMIT_PHASES:
        break;
    }
}

void admit_publish(struct world *w, enum vote_kind kind)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (w->groups[i].in_batch) {
            w->groups[i].in_batch = false;
            view_publish(w, &w->groups[i]);
        }
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_ACCEPTED && mb->vote.kind == kind) {
            struct sizes sizes = w->admit.sizes;
            sizes.group = member_group(w, mb)->decided;
            vote_answer(w, mb, ANSWER_OK, 0, &sizes, "");
        }
    }
}

void admit_persisted(struct world *w, uint64_t number)
{
    if (w->admit.phase == ADMIT_PERSISTING && w->admit.persist == number) {
        together_durable(w);
        admit_stop(w, "published");
        formation_formed(w);
        admit_publish(w, VOTE_UPDATE);
        together_leave(w);
    }
}

/* How many still wait in the attempt that is open for this member, an admission's or that of its group's freeze; null: it is
 * waited for in none. */
static uint32_t *awaited(struct world *w, const struct member *mb, uint32_t attempt)
{
    struct group *g = member_group(w, mb);
    bool freeze = g->phase == GROUP_LINKING && mb->phase == MEMBER_ACCEPTED && attempt == g->link_attempt;
    bool admission = w->admit.phase == ADMIT_LINKING && linking_takes_part(mb) && attempt == w->admit.current;
    return mb->linked ? NULL : freeze ? &g->unlinked : admission ? &w->admit.unlinked : NULL;
}

void admit_linked(struct world *w, struct member *mb, uint64_t view, struct reader *r)
{
    struct msg_linked l;
    if (!get_linked(r, &l) || l.attempt > w->admit.attempt) {
        member_violation(w, mb, "a linked that cannot be");
        return;
    }
    if (l.attempt == 0) { /* unasked: a missing edge of its view has healed */
        edges_linked(w, mb, &l, view, r);
        return;
    }
    struct group *g = member_group(w, mb);
    uint32_t *left = awaited(w, mb, l.attempt);
    bool counts = left != NULL;
    for (uint32_t i = 0; i < l.failed; i++) {
        uint64_t id = get_u64(r);
        bool known = counts && id != mb->id && view_has(view_next(g), id);
        if (known && !edges_misses(view_next(g), mb->id, id, w->common->edge_limit)) {
            member_exclude(w, mb, CAUSE_KICK_UNREACHABLE, "too many pairs without a link");
            return;
        }
    }
    if (!reader_done(r)) {
        member_violation(w, mb, "a linked that cannot be read");
    } else if (counts) {
        mb->linked = true;
        --*left;
        if (mb->phase == MEMBER_ACCEPTED) {
            mb->known_view = view_current(g)->view; /* ADMIT came behind it on the same connection */
        }
        w->changed = true;
    }
}

void admit_tick(struct world *w)
{
    if (w->admit.phase != ADMIT_LINKING || w->common->now < w->admit.deadline) {
        return;
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (linking_takes_part(mb) && !mb->linked) {
            member_exclude(w, mb, CAUSE_KICK_UNREACHABLE, "did not link with the others in time");
        }
    }
}
