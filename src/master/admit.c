/* admit.c - newcomers come in, and what an update does.
 *
 * A complete update proposes the next view of every group; voters and newcomers make the links of it and say so; only then is
 * it decided (M10).  Any loss on the way is a new attempt, without FREEZE: all voters wait in the update, nobody is in an
 * operation.  Invariant: while LINKING, views[next] of each group in the batch is what ADMIT of this attempt named.
 * SPDX-License-Identifier: MIT */
#include "master/master_state.h"

static bool takes_part(const struct member *mb)
{
    return mb->phase == MEMBER_ACCEPTED || (mb->phase == MEMBER_PENDING && mb->joining);
}

void admit_send(struct master *m, struct group *g, struct member *only)
{
    const struct view_record *v = view_next(g);
    struct msg_admit a = {.view = v->view, .attempt = m->admit.attempt, .members = v->members};
    struct writer *w = outbox_frame(m->out, FRAME_ADMIT, m->config.run, v->view);
    put_admit(w, &a);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(m, v->ids[i]);
        struct member_info gone = {.id = v->ids[i], .lanes = 1}; /* lost since: a new attempt is on its way */
        put_member_info(w, mb != NULL ? &mb->info : &gone);
    }
    struct action *act = outbox_send_many(m->out, MASTER_SEND);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(m, v->ids[i]);
        if (mb != NULL && mb->conn != SLOT_NONE && takes_part(mb) && (only == NULL || only == mb)) {
            outbox_dest(m->out, act, mb->conn);
        }
    }
}

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

/* The next view of a group whose members are linked already; false if somebody had to go. */
static bool propose_changed(struct master *m, struct group *g)
{
    view_propose(m, g, VOTE_UPDATE, false);
    edges_inherit(m, g, view_current(g), view_next(g));
    uint64_t unlinked = edges_relay(view_next(g));
    if (unlinked != 0) {
        member_exclude(m, member_find(m, unlinked), CAUSE_KICK_UNREACHABLE, "no link and nobody to relay");
        return false;
    }
    view_finish(m, g, false);
    g->in_batch = true;
    return true;
}

/* An update without newcomers: a next view where members were lost, an answer in the same view everywhere else. */
static void close_plain(struct master *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        uint32_t left = member_count(m, g, MEMBER_ACCEPTED);
        g->in_batch = false;
        if (g->phase == GROUP_FREE || left == view_current(g)->members) {
            continue;
        }
        if (left == 0) {
            view_empty(m, g);
        } else if (!view_known_to_all(m, g)) {
            admit_stop(m, "a member may lack its view: freeze first"); /* M5 */
            g->lost = true;
            return;
        } else if (!propose_changed(m, g)) {
            admit_stop(m, "a member cannot be linked");
            return;
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
}

/* One more attempt to link all voters and all newcomers. */
static void admit_attempt(struct master *m)
{
    uint32_t joining = 0;
    m->admit.again = false;
    m->admit.attempt++;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        mb->joining = mb->phase == MEMBER_PENDING;
        mb->linked = false;
        joining += mb->joining;
    }
    if (joining == 0) {
        if (member_count(m, NULL, MEMBER_ACCEPTED) > 0) {
            close_plain(m);
        } else {
            admit_stop(m, "nobody left");
        }
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
            admit_send(m, g, NULL);
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
        edges_add_broken(m, g, view_next(g)); /* linked for the moment, but it never lasts */
        uint64_t unlinked = edges_relay(view_next(g));
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

static bool all_linked(const struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        if (takes_part(&m->members[i]) && !m->members[i].linked) {
            return false;
        }
    }
    return true;
}

/* A completed update, or nobody left to ask (M10). */
static bool admit_due(const struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        const struct group *g = &m->groups[i];
        if (g->phase == GROUP_FREEZING || g->phase == GROUP_PERSISTING || (g->phase == GROUP_NORMAL && g->suspect)) {
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
        } else if (all_linked(m)) {
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

void admit_linked(struct master *m, struct member *mb, struct reader *r)
{
    struct msg_linked l;
    if (!get_linked(r, &l) || l.attempt > m->admit.attempt) {
        member_violation(m, mb->conn, "a linked that cannot be");
        return;
    }
    struct group *g = member_group(m, mb);
    bool counts = m->admit.phase == ADMIT_LINKING && l.attempt == m->admit.attempt && takes_part(mb) && !mb->linked;
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
        if (takes_part(mb) && !mb->linked) {
            member_exclude(m, mb, CAUSE_KICK_UNREACHABLE, "did not link with the others in time");
        }
    }
}
