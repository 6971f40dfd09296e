/* suspect.c - what peers say about one another, and whom the master blames.
 *
 * A closed link is acted on at once.  Silence and lack of progress are collected first: in a ring one stopped peer
 * stalls all, so the one at the end of the chain of "waits for" is to blame, not the one complained about first.
 * Invariant: a suspicion about anything but the group's current view changes nothing.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/id.h"
#include "master/master_state.h"

void suspect_group(struct master *m, struct group *g, enum cause cause, uint64_t culprit, const char *text)
{
    if (g->phase != GROUP_NORMAL || g->lost || g->suspect) {
        return; /* the view ends anyway */
    }
    g->suspect = true;
    g->cause = (uint8_t)cause;
    g->culprit = culprit;
    snprintf(g->text, sizeof g->text, "%s", text);
    m->changed = true;
}

static void report_peer_text(char *out, size_t size, const struct member *from, const struct msg_suspect *s)
{
    snprintf(out, size, "peer " ID_FORMAT " about peer " ID_FORMAT ": %.120s", ID_PARTS(from->id), ID_PARTS(s->peer),
             s->text);
}

/* A link between two members closed, or cannot be made although both live. */
static void suspect_link(struct master *m, struct group *g, struct member *from, struct member *to,
                         const struct msg_suspect *s)
{
    to->link_lost_at = m->now;
    if (to->conn == SLOT_NONE) {
        /* Control connection and a link, both closed: that is how an ended process looks. */
        member_exclude(m, to, CAUSE_PEER_LOST, "its connections closed");
        return;
    }
    if (edges_missing(view_current(g), from->id, to->id) || MUTANT(NOCUTREPORT)) {
        return; /* nothing of this view goes over that link */
    }
    bool unreachable = s->cause == CAUSE_KICK_UNREACHABLE && m->now - to->heard_at < 3 * m->config.heartbeat_ns;
    bool bad = edges_broken(m, g, from->id, to->id, unreachable);
    if (m->admit.phase == ADMIT_LINKING) {
        m->admit.again = m->admit.again || !bad; /* the proposal counted on this link; a bad one becomes a missing edge */
        m->changed = true;
        return;
    }
    char text[BOUNDS_TEXT];
    report_peer_text(text, sizeof text, from, s);
    suspect_group(m, g, CAUSE_LINK_LOST, to->id, text); /* M1: same members, next view */
}

void suspect_report(struct master *m, struct member *from, const struct msg_suspect *s)
{
    struct group *g = member_group(m, from);
    if (s->view != view_current(g)->view) {
        return;
    }
    struct member *to = member_find(m, s->peer);
    if (to == from || (to != NULL && !member_accepted_in(m, to, g))) {
        to = NULL;
    }
    bool silence = s->cause == CAUSE_NO_PROGRESS || s->cause == CAUSE_PEER_SILENT;
    if (silence && to != NULL) {
        from->waits_for = to->id;
        from->waits_for_life = s->target == SUSPECT_LINK && s->cause == CAUSE_PEER_SILENT;
        if (g->collect_until == NEVER) {
            g->collect_until = m->now + m->config.collect_ns;
        }
    } else if (s->target == SUSPECT_OPERATION) {
        bool of_view = s->cause >= CAUSE_PEER_LOST && s->cause <= CAUSE_BLOCKED;
        bool own = s->cause >= CAUSE_DEADLINE && s->cause <= CAUSE_INTERNAL;
        char text[BOUNDS_TEXT];
        report_peer_text(text, sizeof text, from, s);
        suspect_group(m, g, of_view || own ? (enum cause)s->cause : CAUSE_NO_PROGRESS, from->id, text);
    } else if (to != NULL) {
        suspect_link(m, g, from, to, s);
    }
}

/* A cycle of an operation and a vote: who is waited for waits in a vote that needs who waits. */
void suspect_blocked(struct master *m, struct member *from, const struct msg_heartbeat *hb)
{
    struct group *g = member_group(m, from);
    const struct member *to = member_find(m, hb->blocked_on);
    if (to == NULL || to == from || !member_accepted_in(m, to, g) || to->vote.kind == VOTE_NONE ||
        to->vote.kind == VOTE_QUERY || m->admit.phase != ADMIT_IDLE ||
        (int64_t)hb->blocked_ms * 1000000 < m->config.heartbeat_ns ||
        m->now - to->vote.since < m->config.heartbeat_ns) {
        return;
    }
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text,
             "operation %u of tag %llu waits for peer " ID_FORMAT ", which waits in a vote: all peers have to make the same calls",
             hb->blocked_seq, (unsigned long long)hb->blocked_tag, ID_PARTS(to->id));
    suspect_group(m, g, CAUSE_BLOCKED, to->id, text);
}

/* The end of the chain that begins at `at`; a ring of waiters ends where it began. */
static struct member *chain_end(const struct master *m, const struct group *g, struct member *at, struct member **before)
{
    *before = at;
    for (uint32_t steps = m->config.max_members; at->waits_for != 0 && steps > 0; steps--) {
        struct member *next = member_find(m, at->waits_for);
        if (next == NULL || !member_accepted_in(m, next, g)) {
            break;
        }
        *before = at;
        at = next;
    }
    return at;
}

/* Two stalls in a row make it more than an accident: the edge, if only one neighbour ever complains and another way
 * exists; else the peer itself. */
static void blame(struct master *m, struct group *g, struct member *to, struct member *by)
{
    if (m->now - to->heard_at >= 3 * m->config.heartbeat_ns) {
        member_exclude(m, to, CAUSE_PEER_SILENT, "neither its neighbours nor the master hear of it");
        return;
    }
    bool again = to->blamed_by != 0 && m->now - to->blamed_at <= MASTER_BREAK_NS;
    if (again && to->blamed_by == by->id && view_current(g)->members > 2) {
        edges_give_up(m, g, by->id, to->id);
    } else if (again) {
        member_exclude(m, to, CAUSE_NO_PROGRESS, "no progress in two operations");
        return;
    }
    to->blamed_by = by->id;
    to->blamed_at = m->now;
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "peer " ID_FORMAT ": no progress for peer " ID_FORMAT "", ID_PARTS(to->id),
             ID_PARTS(by->id));
    suspect_group(m, g, CAUSE_NO_PROGRESS, to->id, text);
}

/* A link that is silent although the master hears both ends is at fault itself: without it, in the next view. */
static bool give_up_silent_links(struct master *m, struct group *g)
{
    bool any = false;
    for (uint32_t i = 0; i < m->config.max_members && view_current(g)->members > 2; i++) {
        struct member *mb = &m->members[i];
        const struct member *to = member_accepted_in(m, mb, g) && mb->waits_for_life ? member_find(m, mb->waits_for) : NULL;
        if (to == NULL || !member_accepted_in(m, to, g) || m->now - to->heard_at >= 3 * m->config.heartbeat_ns) {
            continue;
        }
        char text[BOUNDS_TEXT];
        snprintf(text, sizeof text, "peer " ID_FORMAT " hears nothing from peer " ID_FORMAT ", which lives", ID_PARTS(mb->id),
                 ID_PARTS(to->id));
        edges_give_up(m, g, mb->id, to->id);
        suspect_group(m, g, CAUSE_LINK_LOST, to->id, text);
        any = true;
    }
    return any;
}

static void judge(struct master *m, struct group *g)
{
    struct member *first = NULL;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (member_accepted_in(m, mb, g) && mb->waits_for != 0 && (first == NULL || mb->id < first->id)) {
            first = mb;
        }
    }
    if (first != NULL && g->phase == GROUP_NORMAL && !give_up_silent_links(m, g)) {
        struct member *by = NULL;
        struct member *to = chain_end(m, g, first, &by);
        if (to != by) {
            blame(m, g, to, by);
        }
    }
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        if (member_group(m, &m->members[i]) == g) {
            m->members[i].waits_for = 0;
            m->members[i].waits_for_life = false;
        }
    }
    g->collect_until = NEVER;
}

void suspect_tick(struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        if (g->phase != GROUP_FREE && m->now >= g->collect_until) {
            judge(m, g);
        }
    }
}

int64_t suspect_deadline(const struct master *m)
{
    int64_t due = NEVER;
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        const struct group *g = &m->groups[i];
        if (g->phase != GROUP_FREE && g->collect_until < due) {
            due = g->collect_until;
        }
    }
    return due;
}
