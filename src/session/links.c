/* links.c - whom this session is linked with, and what a broken or silent link means.
 *
 * The shell keeps a control link and a data bundle to every wanted peer (members of the view and of an open proposal); here
 * it is decided who is wanted, who may dial in, when an admission is LINKED, and what is reported to the master.
 * Messages of a view go to a member only after its PING of that view (it has installed it); everything said before is then said again, so nobody
 * parks messages of views to come (P8).  Invariant: a broken link between members of the view is always reported.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

uint32_t peer_find(const struct session *s, uint64_t id)
{
    uint32_t rank = view_rank(s, id);
    if (rank != NONE && s->view.peer[rank] != NONE) {
        return s->view.peer[rank];
    }
    for (uint32_t i = 0; id != 0 && i < s->peer_count; i++) {
        if (s->peers[i].id == id) {
            return i;
        }
    }
    return NONE;
}

uint32_t peer_get(struct session *s, uint64_t id)
{
    uint32_t i = peer_find(s, id);
    for (uint32_t k = 0; i == NONE && k < s->peer_count; k++) {
        if (s->peers[k].id == 0) {
            i = k;
            s->peers[i] = (struct peer){.id = id, .rank = NONE, .replay = NONE};
        }
    }
    return i;
}

uint32_t view_rank(const struct session *s, uint64_t id)
{
    uint32_t low = 0, high = s->view.world;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->view.ids[mid] < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < s->view.world && s->view.ids[low] == id ? low : NONE;
}

bool peer_reachable(const struct session *s, uint32_t rank)
{
    const struct peer *p = &s->peers[s->view.peer[rank]];
    return p->link_up && p->their_view == s->view.view;
}

uint64_t view_relay(const struct session *s, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < s->view.edges; i++) {
        const struct missing_edge *e = &s->view.edge[i];
        if ((e->a == a && e->b == b) || (e->a == b && e->b == a)) {
            return e->relay;
        }
    }
    return 0;
}

/* A member may speak for itself, its relay may speak for it. */
uint32_t origin_rank(const struct session *s, uint32_t from, uint64_t origin)
{
    uint32_t rank = view_rank(s, origin);
    if (rank == NONE || rank == s->view.rank) {
        return NONE;
    }
    uint64_t sender = s->peers[from].id;
    return sender == origin || view_relay(s, s->id, origin) == sender ? rank : NONE;
}

void links_relay(struct session *s, uint32_t from, uint64_t origin, const struct frame_header *h, const void *payload,
                 struct outbox *out)
{
    if (origin != s->peers[from].id) {
        return;
    }
    for (uint32_t i = 0; i < s->view.edges; i++) {
        const struct missing_edge *e = &s->view.edge[i];
        uint64_t to = e->a == origin ? e->b : e->b == origin ? e->a : 0;
        uint32_t rank = to == 0 || e->relay != s->id ? NONE : view_rank(s, to);
        if (rank != NONE && peer_reachable(s, rank)) {
            put_bytes(outbox_frame(out, h->type, s->run, h->view), payload, h->length);
            outbox_send(out, ACT_PEERS, to);
        }
    }
}

void links_suspect(struct session *s, uint8_t target, uint8_t cause, uint64_t peer, const struct op_name *name,
                   const char *text, struct outbox *out)
{
    if (s->phase != PHASE_MEMBER || !s->welcomed) {
        return; /* said again when the master is back */
    }
    struct msg_suspect m = {.view = s->view.view, .target = target, .cause = cause, .peer = peer};
    if (name != NULL) {
        m.tag = name->tag;
        m.seq = name->seq;
    }
    snprintf(m.text, sizeof m.text, "%s", text);
    put_suspect(outbox_frame(out, FRAME_SUSPECT, s->run, s->view.view), &m);
    outbox_send(out, ACT_MASTER, 0);
}

/* LINK_LOST: it may well be made again; PEER_SILENT: nothing comes over it; KICK_UNREACHABLE: it cannot be made. */
static void suspect_link(struct session *s, struct peer *p, enum cause cause, struct outbox *out)
{
    p->suspected = (uint8_t)cause;
    links_suspect(s, SUSPECT_LINK, p->suspected, p->id, NULL,
                  cause == CAUSE_PEER_SILENT ? "no sign of life on the link"
                  : cause == CAUSE_LINK_LOST ? "the link closed"
                                             : "the link cannot be made",
                  out);
}

void links_suspect_again(struct session *s, struct outbox *out)
{
    for (uint32_t r = 0; r < s->view.world; r++) {
        struct peer *p = r == s->view.rank ? NULL : &s->peers[s->view.peer[r]];
        if (p != NULL && p->suspected != CAUSE_NONE) {
            suspect_link(s, p, (enum cause)p->suspected, out);
        }
    }
}

/* ---- admission ---- */

void links_admit(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_admit m;
    if (!get_admit(r, &m) || m.members > s->cfg.max_members) {
        join_master_down(s, "the master sent a malformed ADMIT", out);
        return;
    }
    for (uint32_t i = 0; i < s->peer_count; i++) {
        s->peers[i].in_proposal = false;
        s->peers[i].link_failed = false;
    }
    bool known = true;
    for (uint32_t i = 0; i < m.members; i++) {
        struct member_info *info = &s->scratch_members[0];
        if (!get_member_info(r, info)) {
            join_master_down(s, "the master sent a malformed ADMIT", out);
            return;
        }
        uint32_t p = info->id == s->id ? NONE : peer_get(s, info->id);
        if (p != NONE) {
            s->peers[p].in_proposal = true;
            s->peers[p].info = *info;
        }
        known = known && (p != NONE || info->id == s->id);
    }
    PCCL_ASSERT(known); /* views have at most max_members, and there is room for two */
    s->proposal = m.view;
    s->proposal_attempt = m.attempt;
    s->linked_sent = false;
    s->link_by = s->now + s->cfg.link_ns;
    links_drop_unwanted(s);
    outbox_add(out, ACT_LINKS);
    links_check(s, out);
}

/* LINKED once every link of the proposal is up or has failed. */
void links_check(struct session *s, struct outbox *out)
{
    if (s->proposal == 0 || s->linked_sent) {
        return;
    }
    bool late = s->now >= s->link_by;
    struct msg_linked m = {.attempt = s->proposal_attempt};
    for (uint32_t i = 0; i < s->peer_count; i++) {
        const struct peer *p = &s->peers[i];
        if (p->id != 0 && p->in_proposal && !p->link_up) {
            if (!p->link_failed && !late) {
                return;
            }
            s->scratch_ids[m.failed++] = p->id;
        }
    }
    s->linked_sent = true;
    struct writer *w = outbox_frame(out, FRAME_LINKED, s->run, s->proposal);
    put_linked(w, &m);
    for (uint32_t i = 0; i < m.failed; i++) {
        put_u64(w, s->scratch_ids[i]);
    }
    outbox_send(out, ACT_MASTER, 0);
}

void links_drop_unwanted(struct session *s)
{
    for (uint32_t i = 0; i < s->peer_count; i++) {
        struct peer *p = &s->peers[i];
        if (p->id != 0 && !p->in_view && !p->in_proposal) {
            memset(p, 0, sizeof *p);
        }
    }
}

/* ---- links ---- */

/* P8: who may dial in.  A dialler ahead of us is held, not refused. */
void links_hello(struct session *s, struct session_event *e)
{
    const struct msg_hello *m = e->hello;
    uint32_t i = peer_find(s, m->from);
    uint64_t newest = s->proposal > s->view.view ? s->proposal : s->view.view;
    if (i != NONE && s->peers[i].id != 0) {
        e->verdict = HELLO_OK;
    } else if ((m->view > newest || s->phase == PHASE_JOINING) && !MUTANT(HELLO_STALE)) {
        e->verdict = HELLO_NOT_YET;
    } else {
        e->verdict = HELLO_STALE;
        e->view = newest;
    }
}

void links_up(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t i = peer_find(s, e->peer);
    if (i == NONE) {
        return;
    }
    struct peer *p = &s->peers[i];
    p->link_up = true;
    p->link_failed = false;
    p->their_view = 0;
    p->heard = s->now;
    if (p->in_view) {
        outbox_frame(out, FRAME_PING, s->run, s->view.view);
        outbox_send(out, ACT_PEERS, p->id);
    }
    links_check(s, out);
}

void links_down(struct session *s, uint64_t id, bool silent, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    if (i == NONE) {
        return;
    }
    struct peer *p = &s->peers[i];
    p->link_up = false;
    p->their_view = 0;
    p->heard = s->now;
    if (p->in_view) {
        suspect_link(s, p, silent ? CAUSE_PEER_SILENT : CAUSE_LINK_LOST, out);
    }
}

void links_failed(struct session *s, uint64_t id, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    if (i == NONE || s->peers[i].link_up) {
        return;
    }
    if (s->peers[i].in_proposal) {
        s->peers[i].link_failed = true;
        links_check(s, out);
    } else if (view_relay(s, s->id, id) == 0) {
        suspect_link(s, &s->peers[i], CAUSE_KICK_UNREACHABLE, out);
    }
}

/* A member of a newer view that does not know us: we were excluded (P9). */
void links_stale(struct session *s, uint64_t view, struct outbox *out)
{
    if (s->phase == PHASE_MEMBER && view > s->view.view && (view >> 32) >= (s->view.view >> 32) && s->proposal == 0) {
        join_leave(s, CAUSE_KICK_STALE, RESULT_GONE, "the group went on in a newer view without this peer", false, out);
    }
}

void links_announce(struct session *s, struct outbox *out)
{
    outbox_frame(out, FRAME_PING, s->run, s->view.view);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && s->peers[s->view.peer[r]].link_up) {
            outbox_dest(out, a, s->view.ids[r]);
        }
    }
}

void links_ping(struct session *s, uint32_t peer, uint64_t view, struct outbox *out)
{
    struct peer *p = &s->peers[peer];
    bool fresh = view > p->their_view;
    if (fresh) {
        p->their_view = view;
    }
    if (fresh && p->in_view && view == s->view.view) {
        p->replay = 0;
        hold_replay(s, out);
    }
}

/* ---- data bundles ---- */

void links_data_up(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t i = peer_find(s, e->peer);
    if (i == NONE || e->number <= s->peers[i].bundle) {
        return;
    }
    struct peer *p = &s->peers[i];
    p->bundle = e->number;
    for (uint32_t k = 0; p->in_view && s->op_used > 0 && k < s->op_count; k++) {
        struct op *op = &s->ops[k];
        if (op->phase == OP_RUN || op->phase == OP_HOLDING) {
            if (!op->eager) {
                launch_announce(s, op, p->rank, out);
            }
            if (op_mark(s, op, p->rank)->bundle == p->bundle) {
                p->bundle_view = s->view.view;
            }
            launch_feed(s, op, p->rank, out);
        }
    }
}

/* Only the end of a bundle that a READY of this view names is a fault; any other is dialled again in silence. */
void links_data_down(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t i = peer_find(s, e->peer);
    if (i == NONE || e->number != s->peers[i].bundle) {
        return;
    }
    struct peer *p = &s->peers[i];
    p->bundle = 0;
    if (p->in_view && (p->bundle_view == s->view.view || MUTANT(CLOSE_IS_FAULT))) {
        suspect_link(s, p, CAUSE_LINK_LOST, out);
    }
}

/* ---- time ---- */

void links_tick(struct session *s, struct outbox *out)
{
    bool paused = s->now - s->last_step > 1000000000 + s->cfg.heartbeat_ns; /* we slept: silence means nothing */
    for (uint32_t i = 0; i < s->peer_count; i++) {
        struct peer *p = &s->peers[i];
        if (p->id == 0) {
            continue;
        }
        /* Of a link that is up: since the last sign of life; of one that is not: since it was wanted.  That is told before
         * a third peer, whose operation stalls with this one, can take this one for the cause. */
        int64_t bound = p->link_up                                ? s->cfg.stall_ns
                        : s->cfg.link_ns < s->cfg.stall_ns / 2 ? s->cfg.link_ns
                                                                   : s->cfg.stall_ns / 2;
        if (paused) {
            p->heard = s->now;
        } else if (s->now - p->heard > bound && p->in_view && p->suspected == CAUSE_NONE && view_relay(s, s->id, p->id) == 0) {
            suspect_link(s, p, p->link_up ? CAUSE_PEER_SILENT : CAUSE_KICK_UNREACHABLE, out);
        }
    }
    if (s->proposal != 0 && s->now >= s->link_by) {
        links_check(s, out);
    }
    if (s->replaying) {
        hold_replay(s, out);
    }
}

uint32_t session_wanted(const struct session *s, struct session_wanted *out, uint32_t capacity)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->peer_count; i++) {
        const struct peer *p = &s->peers[i];
        if (p->id != 0 && (p->in_view || p->in_proposal) &&
            !(p->in_view && !p->in_proposal && view_relay(s, s->id, p->id) != 0)) {
            if (n < capacity) {
                out[n] = (struct session_wanted){.info = p->info, .dial = s->id > p->id, .data = p->in_view};
            }
            n++;
        }
    }
    return n;
}
