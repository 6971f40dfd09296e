/* peer_links.c - whom this session is linked with, and what a broken or silent link means.
 *
 * The shell keeps a control link and a data bundle to every wanted peer (members of the view and of an open proposal); here
 * it is decided who is wanted, who may dial in, when an admission is LINKED (M10), and what is reported to the master.
 * Messages of a view go to a member only after its PING of that view (it has installed it); everything said before is then said again, so nobody
 * parks messages of views to come (P8).  Invariant: a broken link between members of the view is always reported.
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/calls/departure.h"
#include "session/links/peer_links.h"
#include "session/relay/path.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/peers.h"

/* ---- links that the view does without ---- */

static void unlink_peer(struct peer *p, struct outbox *out)
{
    p->link_up = false;
    p->their_view = 0;
    outbox_add(out, ACT_UNLINK)->id = p->id;
}

/* A link that was given up for its silence may still look as if it were up: it is made again. */
void links_spare(struct session *s, struct outbox *out)
{
    for (uint32_t r = 0; r < s->view.world; r++) {
        struct peer *p = r == s->view.rank ? NULL : &s->peers.at[s->view.peer[r]];
        bool spare = bitset_has(s->view.apart, r);
        if (p == NULL || spare == p->spare) {
            continue;
        }
        p->spare = spare;
        p->bundle = spare ? 0 : p->bundle;
        if (spare && p->link_up) {
            unlink_peer(p, out);
        }
    }
}

/* Both ends are in the view, and hear each other. */
static bool is_healed(const struct session *s, const struct peer *p)
{
    return p->in_view && p->spare && p->link_up && p->their_view == s->view.view;
}

/* LINKED that nobody asked for. */
static void tell_healed(struct session *s, uint64_t peer, struct outbox *out)
{
    if (s->master.welcomed) { /* else said when the master is back */
        struct writer *w = outbox_frame(out, FRAME_LINKED, s->run, s->view.view);
        put_linked(w, &(struct msg_linked){.attempt = 0, .failed = 1});
        put_u64(w, peer);
        outbox_send(out, ACT_MASTER, 0);
    }
}

void links_healed_again(struct session *s, struct outbox *out)
{
    for (uint32_t i = 0; i < s->peers.count; i++) {
        if (s->peers.at[i].id != 0 && is_healed(s, &s->peers.at[i])) {
            tell_healed(s, s->peers.at[i].id, out);
        }
    }
}

/* ---- admission ---- */

/* The members of scratch_members are the proposal, in place of the last one: whom only that one wanted makes room first. */
static void propose_members(struct session *s, uint32_t members)
{
    for (uint32_t i = 0; i < s->peers.count; i++) {
        s->peers.at[i].in_proposal = false;
        s->peers.at[i].link_failed = false;
    }
    for (uint32_t i = 0; i < members; i++) {
        uint32_t p = peer_find(s, s->scratch_members[i].id);
        if (p != NONE) {
            s->peers.at[p].in_proposal = true;
        }
    }
    peers_drop_unwanted(s);
    for (uint32_t i = 0; i < members; i++) {
        const struct member_info *info = &s->scratch_members[i];
        uint32_t p = info->id == s->id ? NONE : peer_get(s, info->id);
        PCCL_ASSERT(p != NONE || info->id == s->id); /* room for a view and a proposal */
        if (p != NONE) {
            s->peers.at[p].in_proposal = true;
            s->peers.at[p].info = *info;
        }
    }
}

void links_admit(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_admit m;
    if (!get_admit(r, &m) || m.members > s->view.room) {
        wish_redial(s, "the master sent a malformed ADMIT");
        return;
    }
    for (uint32_t i = 0; i < m.members; i++) {
        if (!get_member_info(r, &s->scratch_members[i])) {
            wish_redial(s, "the master sent a malformed ADMIT");
            return;
        }
    }
    propose_members(s, m.members);
    for (uint32_t i = 0; i < s->peers.count; i++) { /* LINKED will vouch for it */
        if (s->peers.at[i].in_proposal && s->peers.at[i].link_up && s->peers.at[i].suspected == CAUSE_PEER_SILENT) {
            unlink_peer(&s->peers.at[i], out);
        }
    }
    s->admission.view = m.view;
    s->admission.attempt = m.attempt;
    s->admission.linked_sent = false;
    s->admission.link_by = s->clock.now + s->cfg.link_ns;
    outbox_add(out, ACT_LINKS);
    links_check(s, out);
}

/* LINKED once every link of the proposal is up or has failed. */
void links_check(struct session *s, struct outbox *out)
{
    if (s->admission.view == 0 || s->admission.linked_sent) {
        return;
    }
    bool late = s->clock.now >= s->admission.link_by;
    struct msg_linked m = {.attempt = s->admission.attempt};
    for (uint32_t i = 0; i < s->peers.count; i++) {
        const struct peer *p = &s->peers.at[i];
        if (p->id != 0 && p->in_proposal && !p->link_up) {
            if (!p->link_failed && !late) {
                return;
            }
            s->scratch_ids[m.failed++] = p->id;
        }
    }
    s->admission.linked_sent = true;
    struct writer *w = outbox_frame(out, FRAME_LINKED, s->run, s->admission.view);
    put_linked(w, &m);
    for (uint32_t i = 0; i < m.failed; i++) {
        put_u64(w, s->scratch_ids[i]);
    }
    outbox_send(out, ACT_MASTER, 0);
}

/* ---- links ---- */

/* P8: who may dial in.  A dialler ahead of us is held, not refused. */
void links_hello(struct session *s, struct session_event *e)
{
    const struct msg_hello *m = e->hello;
    uint32_t i = peer_find(s, m->from);
    uint64_t newest = s->admission.view > s->view.view ? s->admission.view : s->view.view;
    if (i != NONE && s->peers.at[i].id != 0) {
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
    struct peer *p = &s->peers.at[i];
    p->link_up = true;
    p->link_failed = false;
    p->suspected = p->suspected == CAUSE_PEER_LOST && !MUTANT(REFUSED_KEPT) ? CAUSE_LINK_LOST : p->suspected;
    p->their_view = MUTANT(THEIR_VIEW_KEPT) ? p->their_view : 0;
    p->heard = p->spoke = s->clock.now;
    if (p->in_view) {
        outbox_frame(out, FRAME_PING, s->run, s->view.view);
        outbox_send(out, ACT_PEERS, p->id);
    }
    links_check(s, out);
}

void links_down(struct session *s, uint64_t id, bool refused, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    if (i == NONE) {
        return;
    }
    struct peer *p = &s->peers.at[i];
    bool healed = is_healed(s, p);
    p->link_up = false;
    p->their_view = MUTANT(THEIR_VIEW_KEPT) ? p->their_view : 0;
    p->heard = s->clock.now;
    if (healed) {
        complaint_spare(s, p, out);
    } else if (p->in_view && !p->spare) {
        complaint_link(s, p, refused ? CAUSE_PEER_LOST : CAUSE_LINK_LOST, out);
        path_tell(s, p->rank, out);
    }
}

void links_bad(struct session *s, uint64_t id, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    if (i != NONE) {
        outbox_add(out, ACT_UNLINK)->id = id;
        links_down(s, id, false, out);
    }
}

void links_failed(struct session *s, uint64_t id, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    if (i == NONE || s->peers.at[i].link_up) {
        return;
    }
    if (s->peers.at[i].in_proposal) {
        s->peers.at[i].link_failed = true;
        links_check(s, out);
    } else if (!s->peers.at[i].spare) {
        complaint_link(s, &s->peers.at[i], CAUSE_KICK_UNREACHABLE, out);
        path_tell(s, s->peers.at[i].rank, out);
    }
}

/* Its process has ended, if the master finds its connection there closed, too. */
void links_refused(struct session *s, uint64_t id, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    struct peer *p = i != NONE ? &s->peers.at[i] : NULL;
    if (p == NULL || !p->in_view || p->spare || p->link_up || p->suspected == CAUSE_PEER_LOST) {
        return;
    }
    bool first = p->suspected == CAUSE_NONE;
    complaint_link(s, p, CAUSE_PEER_LOST, out);
    if (first) {
        path_tell(s, p->rank, out);
    }
}

/* A member of a newer view that does not know us: we were excluded (P9). */
void links_stale(struct session *s, uint64_t view)
{
    if (s->phase == PHASE_MEMBER && view > s->view.view && (view >> 32) >= (s->view.view >> 32) && s->admission.view == 0) {
        wish_leave(s, CAUSE_KICK_STALE, RESULT_GONE, "the group went on in a newer view without this peer", false);
    }
}

void links_announce(struct session *s, struct outbox *out)
{
    outbox_frame(out, FRAME_PING, s->run, s->view.view);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && s->peers.at[s->view.peer[r]].link_up) {
            outbox_dest(out, a, s->view.ids[r]);
        }
    }
}

void links_ping(struct session *s, uint32_t peer, uint64_t view, struct outbox *out)
{
    struct peer *p = &s->peers.at[peer];
    bool fresh = view > p->their_view;
    if (fresh) {
        p->their_view = view;
    }
    if (fresh && is_healed(s, p)) {
        tell_healed(s, p->id, out);
    } else if (fresh && p->in_view && view == s->view.view) {
        p->path_told = false;
        peers_replay(s, p);
    }
}

/* ---- data bundles ---- */

void links_data_up(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t i = peer_find(s, e->peer);
    if (i == NONE || e->number <= s->peers.at[i].bundle) {
        return;
    }
    struct peer *p = &s->peers.at[i];
    p->bundle = e->number;
    for (uint32_t k = 0; p->in_view && !p->spare && s->ops.used > 0 && k < s->ops.count; k++) {
        struct op *op = &s->ops.at[k];
        if (op->phase == OP_RUN || op->phase == OP_HOLDING) {
            if (!op->eager) {
                carrier_announce(s, op, p->rank, out);
            }
            if (op_mark(s, op, p->rank)->bundle == p->bundle) {
                p->bundle_view = s->view.view;
            }
            carrier_feed(s, op, p->rank, out);
        }
    }
}

/* Only the end of a bundle that a READY of this view names is a fault; any other is dialled again in silence. */
void links_data_down(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t i = peer_find(s, e->peer);
    if (i == NONE || e->number != s->peers.at[i].bundle) {
        return;
    }
    struct peer *p = &s->peers.at[i];
    p->bundle = 0;
    if (p->in_view && (p->bundle_view == s->view.view || MUTANT(CLOSE_IS_FAULT))) {
        complaint_link(s, p, CAUSE_LINK_LOST, out);
    }
}

/* It is launched here, and moves bytes between the two that have to have a data connection. */
static bool needs_data(const struct session *s, const struct op *op, uint32_t rank)
{
    bool waits = (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->slot != NONE && op->refused == 0 && !op->eager;
    return waits && op->class->neighbour(s, op, rank) && !carrier_relays(s, op, rank);
}

/* A control link alone is enough for small operations: only one that waits for data is a reason to end the view. */
void links_data_failed(struct session *s, uint64_t id, struct outbox *out)
{
    uint32_t i = peer_find(s, id);
    struct peer *p = i != NONE ? &s->peers.at[i] : NULL;
    bool found = false;
    if (p == NULL || !p->in_view || p->spare || p->bundle != 0 || p->suspected != CAUSE_NONE) {
        return;
    }
    for (uint32_t k = 0; s->ops.used > 0 && k < s->ops.count && !found; k++) {
        found = needs_data(s, &s->ops.at[k], p->rank);
    }
    if (found) {
        complaint_link(s, p, CAUSE_KICK_UNREACHABLE, out);
        path_tell(s, p->rank, out);
    }
}

/* ---- time ---- */

void links_tick(struct session *s, struct outbox *out)
{
    bool paused = session_paused(s); /* M7: we slept, silence means nothing */
    for (uint32_t i = 0; i < s->peers.count; i++) {
        struct peer *p = &s->peers.at[i];
        if (p->id == 0) {
            continue;
        }
        /* Of a link that is up: since the last sign of life; of one that is not: since it was wanted.  That is told before
         * a third peer, whose operation stalls with this one, can take this one for the cause. */
        int64_t half = s->view.stall_ns / 2, bound = p->link_up ? s->view.stall_ns : s->cfg.link_ns < half ? s->cfg.link_ns : half;
        if (paused) {
            p->heard = p->spoke = s->clock.now;
        } else if (s->clock.now - p->heard > bound && p->spare && p->link_up) {
            unlink_peer(p, out);
            complaint_spare(s, p, out);
        } else if (s->clock.now - p->heard > bound && p->in_view && p->suspected == CAUSE_NONE && !p->spare) {
            complaint_link(s, p, p->link_up ? CAUSE_PEER_SILENT : CAUSE_KICK_UNREACHABLE, out);
            path_tell(s, p->rank, out);
        }
    }
    if (s->admission.view != 0 && s->clock.now >= s->admission.link_by) {
        links_check(s, out);
    }
}

int64_t session_silent_at(const struct session *s, uint64_t id)
{
    uint64_t relay = s->view.edges > 0 ? view_relay(s, s->id, id) : 0;
    uint32_t i = peer_find(s, relay != 0 ? relay : id);
    return i != NONE && s->peers.at[i].in_view ? s->peers.at[i].spoke + s->view.stall_ns : INT64_MAX;
}

uint32_t session_wanted(const struct session *s, struct session_wanted *out, uint32_t capacity)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->peers.count; i++) {
        const struct peer *p = &s->peers.at[i];
        if (p->id != 0 && (p->in_view || p->in_proposal)) {
            if (n < capacity) {
                out[n] = (struct session_wanted){.info = p->info, .dial = s->id > p->id, .data = p->in_view && !p->spare,
                                                 .spare = p->spare && !p->in_proposal};
            }
            n++;
        }
    }
    return n;
}

void links_no_proposal(struct session *s)
{
    s->admission.view = 0;
}
