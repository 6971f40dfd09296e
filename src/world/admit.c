/* admit.c - newcomers come in, and what an update does.
 *
 * A complete update proposes the next view of every group; voters and newcomers make the links of it and say so; only then is
 * it decided (M10).  Any loss on the way is a new attempt, without FREEZE: all voters wait in the update, nobody is in an
 * operation.  Invariant: while LINKING, views[next] of each group in the batch is what ADMIT of this attempt named.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"

static void admit_stop(struct master *m, const char *why)
{
    m->admit.deadline = NEVER;
    m->admit.again = false;
    if (m->admit.phase != ADMIT_IDLE) {
        master_move(m, PHASE_ADMIT, &m->admit.phase, ADMIT_IDLE, 0, m->admit.attempt, why);
    }
}

void admit_fix_sizes(struct master *m)
{
    m->admit.sizes = view_sizes(m, &m->groups[0], true);
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        m->groups[i].decided = m->groups[i].counted;
    }
}

static void admit_persist(struct master *m)
{
    admit_fix_sizes(m);
    m->admit.deadline = NEVER;
    master_move(m, PHASE_ADMIT, &m->admit.phase, ADMIT_PERSISTING, 0, m->admit.attempt, "views decided");
    m->admit.persist = view_persist(m, NULL); /* M4 */
}

/* The next view of a group whose members are linked already; false if nobody knows whether all of them are, or are relayed. */
static bool propose_changed(struct master *m, struct group *g)
{
    view_propose(m, g, VOTE_UPDATE, false);
    edges_inherit(m, g);
    if (edges_unsure(m, g)) {
        return false;
    }
    view_finish(m, g, false);
    g->in_batch = true;
    return true;
}

/* Names of operations are forgotten by a view alone: who never sees one keeps every tag that it has ever used. */
static bool tags_pile_up(const struct master *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        const struct member *mb = &m->members[i];
        if (member_accepted_in(m, mb, g) && mb->vote.kind == VOTE_UPDATE && mb->vote.msg.idle > m->config.idle_tags) {
            return true;
        }
    }
    return false;
}

/* An update without newcomers: a next view where members were lost, a missing edge has healed or tags have piled up, an answer in
 * the same view everywhere else.  False: links have to be made for it. */
static bool close_plain(struct master *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        uint32_t left = member_count(m, g, MEMBER_ACCEPTED);
        bool lost = left != view_current(g)->members, known = view_known_to_all(m, g);
        g->in_batch = false;
        if (g->phase == GROUP_FREE || (!lost && !(known && (edges_healed(m, g) || tags_pile_up(m, g))))) {
            continue;
        }
        if (left == 0) {
            view_empty(m, g);
        } else if (!known) {
            admit_stop(m, "a member may lack its view: freeze first"); /* M5 */
            g->lost = true;
            return true;
        } else if (!propose_changed(m, g)) {
            return false;
        } else {
            any = true;
        }
    }
    if (any) {
        admit_persist(m);
    } else {
        admit_stop(m, "no newcomers left");
        admit_fix_sizes(m);
        admit_publish(m, VOTE_UPDATE); /* nothing changes: answered in the same view, not persisted */
    }
    return true;
}

/* One more attempt to link all voters and all newcomers. */
static void admit_attempt(struct master *m)
{
    uint32_t joining = 0;
    m->admit.again = false;
    m->admit.current = ++m->admit.attempt;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        mb->joining = mb->phase == MEMBER_PENDING;
        mb->linked = false;
        joining += mb->joining;
    }
    if (joining == 0 && member_count(m, NULL, MEMBER_ACCEPTED) == 0) {
        admit_stop(m, "nobody left");
        return;
    }
    if (joining == 0 && close_plain(m)) {
        return;
    }
    if (m->admit.phase == ADMIT_IDLE) {
        master_move(m, PHASE_ADMIT, &m->admit.phase, ADMIT_LINKING, 0, m->admit.attempt, "links are made");
    }
    m->admit.deadline = m->now + 2 * m->config.admit_ns; /* the peers themselves give up dialling after admit_ns */
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        g->in_batch = false;
        if (g->phase == GROUP_FREE) {
            continue;
        }
        if (member_count(m, g, MEMBER_ACCEPTED) == 0 && view_current(g)->members > 0) {
            view_empty(m, g);
        }
        view_propose(m, g, VOTE_UPDATE, true);
        g->in_batch = view_next(g)->members > 0;
        if (g->in_batch) {
            linking_send(m, g, m->admit.current, NULL);
        }
    }
}

/* All have linked: relays are found, or who cannot be reached goes and there is a new attempt. */
static void admit_close(struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        if (!g->in_batch) {
            continue;
        }
        uint64_t unlinked = edges_close(m, g);
        struct member *mb = unlinked != 0 ? member_find(m, unlinked) : NULL;
        if (mb != NULL) {
            member_exclude(m, mb, CAUSE_KICK_UNREACHABLE, "no link with the others and nobody to relay");
            return;
        }
    }
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        if (m->groups[i].in_batch) {
            view_finish(m, &m->groups[i], true);
        }
    }
    admit_persist(m);
}

/* A completed update, or nobody left to ask (M10). */
static bool admit_due(const struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        const struct group *g = &m->groups[i];
        if (view_ending(g) || g->phase == GROUP_PERSISTING || (g->phase == GROUP_NORMAL && g->suspect)) {
            return false;
        }
    }
    if (member_count(m, NULL, MEMBER_ACCEPTED) == 0) {
        return member_count(m, NULL, MEMBER_PENDING) > 0 && !(MUTANT(NOADMITLAST) && m->had_members);
    }
    return vote_all_in(m, NULL, VOTE_UPDATE);
}

void admit_settle(struct master *m)
{
    switch ((enum admit_phase)m->admit.phase) {
    case ADMIT_IDLE:
        if (admit_due(m)) {
            admit_attempt(m);
        }
        break;
    case ADMIT_LINKING:
        if (m->admit.again) {
            admit_attempt(m);
        } else if (linking_all(m, NULL)) {
            admit_close(m);
        }
        break;
    case ADMIT_PERSISTING:
    case ADMIT_PHASES:
        break;
    }
}

void admit_publish(struct master *m, enum vote_kind kind)
{
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        if (m->groups[i].in_batch) {
            m->groups[i].in_batch = false;
            view_publish(m, &m->groups[i]);
        }
    }
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (mb->phase == MEMBER_ACCEPTED && mb->vote.kind == kind) {
            struct sizes sizes = m->admit.sizes;
            sizes.group = member_group(m, mb)->decided;
            vote_answer(m, mb, ANSWER_OK, 0, &sizes, "");
        }
    }
}

void admit_persisted(struct master *m, uint64_t number)
{
    if (m->admit.phase == ADMIT_PERSISTING && m->admit.persist == number) {
        admit_stop(m, "published");
        admit_publish(m, VOTE_UPDATE);
    }
}

/* Of the attempt that is open for this member: an admission's, or that of its group's freeze. */
static bool is_awaited(const struct master *m, const struct member *mb, uint32_t attempt)
{
    const struct group *g = member_group(m, mb);
    bool freeze = g->phase == GROUP_LINKING && mb->phase == MEMBER_ACCEPTED && attempt == g->link_attempt;
    bool admission = m->admit.phase == ADMIT_LINKING && linking_takes_part(mb) && attempt == m->admit.current;
    return (freeze || admission) && !mb->linked;
}

void admit_linked(struct master *m, struct member *mb, uint64_t view, struct reader *r)
{
    struct msg_linked l;
    if (!get_linked(r, &l) || l.attempt > m->admit.attempt) {
        member_violation(m, mb->conn, "a linked that cannot be");
        return;
    }
    if (l.attempt == 0) { /* unasked: a missing edge of its view has healed */
        edges_linked(m, mb, &l, view, r);
        return;
    }
    struct group *g = member_group(m, mb);
    bool counts = is_awaited(m, mb, l.attempt);
    for (uint32_t i = 0; i < l.failed; i++) {
        uint64_t id = get_u64(r);
        bool known = counts && id != mb->id && view_has(view_next(g), id);
        if (known && !edges_note(view_next(g), id, mb->id, m->edge_capacity)) {
            member_exclude(m, mb, CAUSE_KICK_UNREACHABLE, "too many pairs without a link");
            return;
        }
    }
    if (!reader_done(r)) {
        member_violation(m, mb->conn, "a linked that cannot be read");
    } else if (counts) {
        mb->linked = true;
        if (mb->phase == MEMBER_ACCEPTED) {
            mb->known_view = view_current(g)->view; /* ADMIT came behind it on the same connection */
        }
        m->changed = true;
    }
}

void admit_tick(struct master *m)
{
    if (m->admit.phase != ADMIT_LINKING || m->now < m->admit.deadline) {
        return;
    }
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (linking_takes_part(mb) && !mb->linked) {
            member_exclude(m, mb, CAUSE_KICK_UNREACHABLE, "did not link with the others in time");
        }
    }
}
