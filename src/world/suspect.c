/* suspect.c - what peers say about one another, and whom the master blames.
 *
 * A closed link is acted on at once.  Silence and lack of progress are collected first: in a ring one stopped peer
 * stalls all, so the one at the end of the chain of "waits for" is to blame, not the one complained about first.
 * Invariant: a suspicion about anything but the group's current view changes nothing.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/clock.h"
#include "core/id.h"
#include "core/mutant.h"
#include "world/world_state.h"
#include "world/edges.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/redial.h"
#include "world/roll.h"
#include "world/suspect.h"
#include "world/view_read.h"
#include "world/vote.h"

void suspect_group(struct world *w, struct group *g, enum cause cause, uint64_t culprit, const char *text)
{
    if (g->phase != GROUP_NORMAL || g->lost || g->suspect) {
        return; /* the view ends anyway */
    }
    g->suspect = true;
    g->cause = (uint8_t)cause;
    g->culprit = culprit;
    snprintf(g->text, sizeof g->text, "%s", text);
    w->changed = true;
}

static void report_peer_text(char *out, size_t size, const struct member *from, const struct msg_suspect *s)
{
    snprintf(out, size, "peer " ID_FORMAT " about peer " ID_FORMAT ": %.120s", ID_PARTS(from->id), ID_PARTS(s->peer),
             s->text);
}

/* A link between two members closed, or cannot be made although both live. */
static void suspect_link(struct world *w, struct group *g, struct member *from, struct member *to,
                         const struct msg_suspect *s)
{
    if (edges_missing(view_current(g), from->id, to->id)) {
        edges_unlinked(g, from->id, to->id); /* nothing of this view goes over that link */
        return;
    }
    redial_link_lost(w, to, s->cause == CAUSE_PEER_LOST);
    if (to->phase == MEMBER_GONE || MUTANT(NOCUTREPORT)) {
        return;
    }
    uint64_t view = view_current(g)->view;
    bool counts = from->reset_view != view && to->reset_view != view;
    bool unreachable = s->cause == CAUSE_KICK_UNREACHABLE && w->common->now - to->heard_at < 3 * member_heartbeat_ns(w, to);
    bool bad = edges_broken(w, g, &(struct edge_report){from->id, to->id, .counts = counts, .unreachable = unreachable});
    if (w->admit.phase == ADMIT_LINKING) {
        w->admit.again = w->admit.again || !bad; /* the proposal counted on this link; a bad one becomes a missing edge */
        w->changed = true;
        return;
    }
    char text[BOUNDS_TEXT];
    report_peer_text(text, sizeof text, from, s);
    suspect_group(w, g, CAUSE_LINK_LOST, to->id, text); /* M1: same members, next view */
}

/* Each peer looks for silence at its own heartbeats: what fell silent together is told within one of them. */
static void collect(struct world *w, struct group *g, bool life)
{
    int64_t until = w->common->now + w->common->config.collect_ns + (life ? group_heartbeat_ns(w, g) : 0);
    if (g->collect_until == NEVER || (life && !g->silent && until > g->collect_until)) {
        g->collect_until = until;
    }
    g->silent = g->silent || life;
}

static bool heard(const struct world *w, const struct member *mb)
{
    return w->common->now - mb->heard_at < 3 * member_heartbeat_ns(w, mb);
}

/* A link that is silent although the master hears both ends is at fault itself: the next view does without it. */
static void link_silent(struct world *w, struct group *g, const struct member *from, struct member *to)
{
    if (!heard(w, to)) {
        to->unheard_by = from->id;
        return;
    }
    edges_give_up(w, g, from->id, to->id);
    g->silent_from = g->silent_to == 0 ? from->id : g->silent_from;
    g->silent_to = g->silent_to == 0 ? to->id : g->silent_to;
}

void suspect_report(struct world *w, struct member *from, const struct msg_suspect *s)
{
    struct group *g = member_group(w, from);
    if (s->view != view_current(g)->view) {
        return;
    }
    struct member *to = member_find(w, s->peer);
    if (to == from || (to != NULL && !member_accepted_in(w, to, g))) {
        to = NULL;
    }
    bool silence = s->cause == CAUSE_NO_PROGRESS || s->cause == CAUSE_PEER_SILENT;
    if (silence && to != NULL) {
        bool life = s->target == SUSPECT_LINK && s->cause == CAUSE_PEER_SILENT && view_current(g)->members > 2;
        collect(w, g, life);
        if (life) {
            link_silent(w, g, from, to);
        } else {
            from->waits_for = to->id;
        }
    } else if (s->target == SUSPECT_OPERATION) {
        bool of_view = s->cause >= CAUSE_PEER_LOST && s->cause <= CAUSE_BLOCKED;
        bool own = s->cause >= CAUSE_DEADLINE && s->cause <= CAUSE_INTERNAL;
        char text[BOUNDS_TEXT];
        report_peer_text(text, sizeof text, from, s);
        suspect_group(w, g, of_view || own ? (enum cause)s->cause : CAUSE_NO_PROGRESS, from->id, text);
    } else if (to != NULL) {
        suspect_link(w, g, from, to, s);
    }
}

/* Whom a member waits for in an operation, by its last heartbeat; null: nobody of its group. */
static struct member *waited_on(const struct world *w, const struct member *mb)
{
    struct member *to = mb->wait.phase != WAIT_NONE ? member_find(w, mb->wait.on) : NULL;
    return to != NULL && to != mb && member_accepted_in(w, to, member_group(w, mb)) ? to : NULL;
}

/* Heartbeats that the word of a receiver may be on its way to the sender, while its program already votes. */
enum { SUSPECT_WORD = 4 };

/* It waits in a vote that can only be answered when who waits for it has voted, too. */
static bool votes_since(const struct world *w, const struct member *mb, int64_t least)
{
    return mb->vote.kind != VOTE_NONE && mb->vote.kind != VOTE_QUERY && w->common->now - mb->vote.since >= least;
}

static int64_t stall_ns(const struct world *w, const struct member *mb)
{
    const struct view_record *v = view_current(member_group(w, mb));
    return v->plan.stall_ms > 0 ? (int64_t)v->plan.stall_ms * CLOCK_MS : w->common->config.dead_ns;
}

/* It waits in operations, maybe by way of others, for a launch of `from`, whose caller waits in the receive: for so long that no other
 * thread is about to make it. */
static bool waits_in_turn(const struct world *w, const struct member *mb, const struct member *from)
{
    const struct member *at = mb;
    for (uint32_t steps = BOUNDS_WAIT_CHAIN; at != NULL && steps > 0; steps--) {
        const struct member *next = waited_on(w, at);
        if (next == from) {
            return at->wait.phase == WAIT_LAUNCH && (int64_t)at->wait.ms * CLOCK_MS >= stall_ns(w, at);
        }
        at = next;
    }
    return false;
}

/* The member that votes while `from` waits for it.  Of a receive from any source: the first of its group that votes, if all others vote or
 * wait for `from` in turn.  Null: no cycle. */
static const struct member *blocked_by(const struct world *w, const struct member *from, bool any, int64_t least)
{
    const struct group *g = member_group(w, from);
    const struct member *to = any ? NULL : waited_on(w, from);
    for (uint32_t i = 0; any && i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb == from || !member_accepted_in(w, mb, g)) {
            continue;
        }
        bool votes = votes_since(w, mb, least), blocks = from->wait.name.seq == OP_NO_NUMBER;
        if (!votes && !(blocks && waits_in_turn(w, mb, from)) && !MUTANT(ANY_ONE)) {
            return NULL;
        }
        to = (votes || MUTANT(ANY_ONE)) && (to == NULL || mb->id < to->id) ? mb : to;
    }
    return to != NULL && votes_since(w, to, least) ? to : NULL;
}

static void blocked_text(char *out, size_t size, bool again, const struct member *from, const struct peer_wait *wait,
                         const struct member *to)
{
    const char *once = again ? "once more after an error: " : "", *vote = vote_name(to->vote.kind);
    unsigned long long tag = wait->name.tag;
    char of[32] = "in the order of issue";
    if (space_pairs(wait->name.space) && wait->name.from == 0) {
        snprintf(out, size, "%speer " ID_FORMAT " received tag %llu from any source while peer " ID_FORMAT " called %s, and all others voted or waited for it",
                 once, ID_PARTS(from->id), tag, ID_PARTS(to->id), vote);
        return;
    }
    if (wait->name.seq == OP_NO_NUMBER) {
        snprintf(out, size, "%speer " ID_FORMAT " received tag %llu from peer " ID_FORMAT ", behind a receive from any source, while that one "
                 "called %s", once, ID_PARTS(from->id), tag, ID_PARTS(to->id), vote);
        return;
    }
    if (wait->name.space != SPACE_ORDERED) {
        snprintf(of, sizeof of, "of tag %llu", tag);
    }
    snprintf(out, size, "%speer " ID_FORMAT " launched operation %u %s while peer " ID_FORMAT " called %s", once, ID_PARTS(from->id),
             wait->name.seq, of, ID_PARTS(to->id), vote);
}

/* A cycle of an operation and a vote: who is waited for waits in a vote that needs who waits. */
void suspect_blocked(struct world *w, struct member *from, const struct peer_wait *wait)
{
    struct group *g = member_group(w, from);
    bool pair = space_pairs(wait->name.space), any = pair && wait->name.from == 0;
    int64_t least = group_heartbeat_ns(w, g) * (pair ? SUSPECT_WORD : 1);
    const struct member *to = blocked_by(w, from, any, least);
    if (to == NULL || w->admit.phase != ADMIT_IDLE || (int64_t)wait->ms * 1000000 < least || g->phase != GROUP_NORMAL || g->lost ||
        g->suspect) {
        return; /* no cycle yet, or the view ends anyway */
    }
    bool again = g->blocked_on == to->id && op_name_equal(&g->blocked_name, &wait->name) && g->blocked_vote == to->answered;
    char text[BOUNDS_TEXT];
    blocked_text(text, sizeof text, again, from, wait, to);
    g->blocked_on = to->id;
    g->blocked_name = wait->name;
    g->blocked_vote = to->answered;
    suspect_group(w, g, CAUSE_BLOCKED, any ? from->id : to->id, text); /* an unmatched receive is on no record: its caller is told by name */
    if (again) { /* programs that retry on every error would do so for ever in silence */
        struct action *a = outbox_add(w->common->out, MASTER_TRACE);
        a->data = g->text;
        a->id = to->id;
        a->value = view_current(g)->view;
        a->order = w->slot;
    }
}

void suspect_tell_wait(const struct world *w, const struct member *mb, struct msg_heartbeat *hb)
{
    const struct member *at = waited_on(w, mb);
    at = at != NULL ? at : member_find(w, hb->vote_on);
    if (at == NULL) {
        return;
    }
    hb->about = at->id;
    const struct member *next = waited_on(w, at);
    for (uint32_t steps = BOUNDS_WAIT_CHAIN; next != NULL && steps > 0; steps--) { /* each heartbeat does this */
        hb->wait = at->wait;
        at = next;
        next = next == mb ? NULL : waited_on(w, next); /* a ring of waiters is told once round, */
        next = next != NULL && next->id == hb->about ? NULL : next; /* ... and of others no further than back to whom it is about */
    }
    hb->vote = at->vote.kind;
}

/* It waits for a program, or did a stall time ago: those who wait for it have counted that time, and would complain as soon as the launch came. */
static bool waits_for_program(const struct world *w, const struct member *at)
{
    bool lately = at->launch_at != 0 && w->common->now - at->launch_at < stall_ns(w, at) + member_heartbeat_ns(w, at);
    return at->wait.phase == WAIT_LAUNCH || lately;
}

/* In the end this one waits for a program: over whom it waits for data of, one that has not launched is reached. */
static bool waits_for_launch(const struct world *w, const struct member *at)
{
    for (uint32_t steps = w->member_room; at != NULL && steps > 0; steps--) {
        if (waits_for_program(w, at)) {
            return true;
        }
        at = waited_on(w, at);
    }
    return false;
}

/* The end of the chain of complaints that begins at `at`; a ring of waiters ends where it began. */
static struct member *chain_end(const struct world *w, const struct group *g, struct member *at, struct member **before)
{
    *before = at;
    for (uint32_t steps = w->member_room; at->waits_for != 0 && steps > 0; steps--) {
        struct member *next = member_find(w, at->waits_for);
        if (next == NULL || !member_accepted_in(w, next, g)) {
            break;
        }
        *before = at;
        at = next;
    }
    return at;
}

/* Two stalls in a row make it more than an accident: the edge, if only one neighbour ever complains and another way
 * exists; else the peer itself. */
static void blame(struct world *w, struct group *g, struct member *to, struct member *by)
{
    if (!heard(w, to)) {
        member_exclude(w, to, CAUSE_PEER_SILENT, "neither its neighbours nor the master hear of it");
        return;
    }
    bool again = to->blamed_by != 0 && (w->common->now - to->blamed_at <= WORLD_BREAK_NS || MUTANT(BLAME_KEPT));
    if (again && to->blamed_by == by->id && view_current(g)->members > 2) {
        edges_give_up(w, g, by->id, to->id);
    } else if (again) {
        member_exclude(w, to, CAUSE_NO_PROGRESS, "no progress in two operations");
        return;
    }
    to->blamed_by = by->id;
    to->blamed_at = w->common->now;
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "peer " ID_FORMAT ": no progress for peer " ID_FORMAT "", ID_PARTS(to->id),
             ID_PARTS(by->id));
    suspect_group(w, g, CAUSE_NO_PROGRESS, to->id, text);
}

/* All that fell silent in one window: members that nobody hears go, links between living ones are given up; one freeze for all. */
static bool settle_silence(struct world *w, struct group *g)
{
    bool any = false;
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        struct member *by = member_accepted_in(w, mb, g) && mb->unheard_by != 0 ? member_find(w, mb->unheard_by) : NULL;
        if (by == NULL) {
            continue;
        }
        any = true;
        if (heard(w, mb)) {
            link_silent(w, g, by, mb); /* it is back, and the link has not been heard of since */
        } else {
            member_exclude(w, mb, CAUSE_PEER_SILENT, "neither its neighbours nor the master hear of it");
        }
    }
    if (g->silent_to != 0) {
        char text[BOUNDS_TEXT];
        snprintf(text, sizeof text, "peer " ID_FORMAT " hears nothing from peer " ID_FORMAT ", which lives",
                 ID_PARTS(g->silent_from), ID_PARTS(g->silent_to));
        suspect_group(w, g, CAUSE_LINK_LOST, g->silent_to, text);
        any = true;
    }
    return any;
}

static void judge(struct world *w, struct group *g)
{
    struct member *first = NULL;
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->waits_for != 0 && (first == NULL || mb->id < first->id)) {
            first = mb;
        }
    }
    if (g->phase == GROUP_NORMAL && !settle_silence(w, g) && first != NULL) {
        struct member *by = NULL;
        struct member *to = chain_end(w, g, first, &by);
        if (to != by && !waits_for_launch(w, to)) { /* who waits for a program is not to blame, nor is the program */
            blame(w, g, to, by);
        }
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (member_group(w, &w->members[i]) == g) {
            w->members[i].waits_for = 0;
            w->members[i].unheard_by = 0;
        }
    }
    g->collect_until = NEVER;
    g->silent = false;
    g->silent_to = 0;
}

void suspect_tick(struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->phase != GROUP_FREE && w->common->now >= g->collect_until) {
            judge(w, g);
        }
    }
}

int64_t suspect_deadline(const struct world *w)
{
    int64_t due = NEVER;
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (g->phase != GROUP_FREE && g->collect_until < due) {
            due = g->collect_until;
        }
    }
    return due;
}
