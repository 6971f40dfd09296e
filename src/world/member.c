/* member.c - who is in the run: registering, resuming, heartbeats, silence, leaving.
 *
 * One idea: a member is its id, not its connection; a connection may be lost and resumed, an id is out for good once it is
 * out.  Invariant: a connection of state MEMBER and its member point at each other.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "world/world_state.h"
#include "wire/address.h"

void member_closed(struct master *m, uint32_t conn)
{
    struct conn *c = &m->conns[conn];
    bool known = c->state == CONN_MEMBER;
    c->state = CONN_FREE;
    if (!known) {
        return;
    }
    struct member *mb = &m->members[c->member];
    mb->conn = SLOT_NONE;
    mb->lost_at = m->now;
    mb->view_sent_at = mb->known_view == view_current(member_group(m, mb))->view ? mb->view_sent_at : NEVER;
    if (mb->phase == MEMBER_PENDING) { /* M10: not accepted yet, dropped */
        member_exclude(m, mb, CAUSE_PEER_LOST, "connection closed before it was accepted");
    } else if (mb->link_lost_at != 0 && m->now - mb->link_lost_at <= m->config.reconnect_ns) {
        /* Control connection and a link, both closed: that is how an ended process looks. */
        member_exclude(m, mb, CAUSE_PEER_LOST, "its connections closed");
    }
}

void member_sweep(struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (mb->phase == MEMBER_GONE) {
            master_move(m, PHASE_MEMBER, &mb->phase, MEMBER_FREE, mb->id, 0, "forgotten");
            (void)bandwidth_forget_peer(&m->bandwidth, mb->id); /* ids do not come back */
        }
    }
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        bool empty = g->phase == GROUP_NORMAL && view_current(g)->members == 0 && m->admit.phase == ADMIT_IDLE;
        if (empty && member_count(m, g, MEMBER_PENDING) == 0) {
            m->view_floor = g->next_number > m->view_floor ? g->next_number : m->view_floor;
            master_move(m, PHASE_GROUP, &g->phase, GROUP_FREE, g->label, 0, "nobody left");
        }
    }
}

/* ---- registering --------------------------------------------------------------------------------------------------- */

static bool address_unset(const struct net_address *a)
{
    static const uint8_t none[16];
    return memcmp(a->ip, none, a->family == 6 ? 16 : 4) == 0;
}

/* The peer's own candidates; one that says "what you see" gets what the master saw, with its own port. */
static void take_addresses(struct member_info *info, const struct msg_register *reg, const struct net_address *seen)
{
    info->lanes = reg->lanes == 0 ? 1 : reg->lanes;
    info->addresses = reg->addresses;
    memcpy(info->address, reg->address, sizeof info->address);
    for (uint32_t i = 0; i < reg->addresses; i++) {
        struct net_address *a = &info->address[i];
        if (address_unset(a) && seen->family != 0) {
            uint16_t port = a->port;
            *a = *seen;
            a->port = port;
        }
    }
}

static void send_welcome(struct master *m, const struct member *mb)
{
    struct msg_welcome w = {.run = m->config.run, .id = mb->id, .epoch = m->config.epoch, .seen = mb->seen};
    w.heartbeat_ms = (uint32_t)(m->config.heartbeat_ns / 1000000);
    w.dead_ms = (uint32_t)(m->config.dead_ns / 1000000);
    put_welcome(outbox_frame(m->out, FRAME_WELCOME, m->config.run, 0), &w);
    outbox_send(m->out, MASTER_SEND, mb->conn);
}

static struct group *group_of_label(struct master *m, uint32_t label)
{
    struct group *free = NULL;
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        struct group *g = &m->groups[i];
        if (g->phase != GROUP_FREE && g->label == label) {
            return g;
        }
        if (g->phase == GROUP_FREE && free == NULL) {
            free = g;
        }
    }
    if (free != NULL) {
        free->label = label;
        free->next_number = m->view_floor; /* a number once proposed is never used again */
        free->lost = free->suspect = false;
        free->revision = 0;
        free->break_count = 0;
        free->collect_until = NEVER;
        view_current(free)->view = view_current(free)->parent = 0;
        view_current(free)->members = view_current(free)->edges = 0;
        master_move(m, PHASE_GROUP, &free->phase, GROUP_NORMAL, label, 0, "first peer");
    }
    return free;
}

static void bind(struct master *m, struct member *mb, uint32_t conn)
{
    m->conns[conn].state = CONN_MEMBER;
    m->conns[conn].member = (uint32_t)(mb - m->members);
    mb->conn = conn;
    mb->seen = m->conns[conn].seen;
    mb->heard_at = m->now;
    mb->beat_at = m->now + m->config.heartbeat_ns;
}

static void refuse(struct master *m, uint32_t conn, enum cause cause, const char *text)
{
    member_fence(m, conn, 0, cause, text);
    member_close(m, conn);
}

static void register_newcomer(struct master *m, uint32_t conn, const struct msg_register *reg)
{
    struct member *mb = NULL;
    for (uint32_t i = 0; i < m->config.max_members && mb == NULL; i++) {
        mb = m->members[i].phase == MEMBER_FREE ? &m->members[i] : NULL;
    }
    struct group *g = mb == NULL ? NULL : group_of_label(m, reg->group);
    if (g == NULL) {
        refuse(m, conn, CAUSE_KICK_FULL, mb == NULL ? "the run is full" : "no room for another peer group");
        return;
    }
    *mb = (struct member){.id = m->next_id++, .group = (uint32_t)(g - m->groups)};
    mb->info.id = mb->id;
    mb->verify = reg->verify != 0;
    take_addresses(&mb->info, reg, &m->conns[conn].seen);
    bind(m, mb, conn);
    master_move(m, PHASE_MEMBER, &mb->phase, MEMBER_PENDING, mb->id, 0, "registered");
    send_welcome(m, mb);
}

/* What the lost connection may have taken with it, in the order in which it was sent (M9). */
static void resume_replay(struct master *m, struct member *mb, const struct msg_register *reg)
{
    struct group *g = member_group(m, mb);
    edges_unlinked_all(g, mb->id);
    const struct view_record *v = view_current(g);
    bool missing = mb->phase == MEMBER_ACCEPTED && reg->view != v->view;
    if (missing) {
        view_send(m, g, mb);
    }
    bool first = reg->view == 0; /* its first VIEW brings its first number */
    bool behind = mb->phase == MEMBER_ACCEPTED && !first && reg->answered + 1 == mb->answered &&
                  !(missing && mb->answer_by_view && mb->answer.view == v->view);
    if (behind && MUTANT(REPLAY_LATE) && g->phase == GROUP_FREEZING) {
        mb->replay_late = true;
    } else if (behind) {
        vote_replay(m, mb);
    }
    if (g->phase == GROUP_FREEZING && mb->phase == MEMBER_ACCEPTED) {
        view_send_freeze(m, g, mb);
    } else if (g->phase == GROUP_LINKING && mb->phase == MEMBER_ACCEPTED) {
        linking_send(m, g, g->link_attempt, mb); /* its report is here, so it is frozen */
    } else if (m->admit.phase == ADMIT_LINKING) {
        linking_send(m, g, m->admit.current, mb);
    }
    if (g->sync.phase == SYNC_STAGING) { /* it goes on in a freeze: frozen receivers fetch, and their STAGED counts */
        source_tell(m, g, mb);
    }
}

static void register_again(struct master *m, uint32_t conn, const struct msg_register *reg)
{
    struct member *mb = member_find(m, reg->id);
    if (reg->run != m->config.run || mb == NULL || member_group(m, mb)->label != reg->group) {
        refuse(m, conn, CAUSE_KICK_STALE, "this id is not, or no longer, part of the run");
        return;
    }
    const struct view_record *v = view_current(member_group(m, mb));
    bool first = reg->view == 0; /* it has not had its first VIEW yet */
    bool fits = mb->phase == MEMBER_PENDING ? first
                : first ? mb->known_view == 0
                        : reg->view == v->view || (reg->view == v->parent && v->parent != 0);
    /* A newcomer learns its first number with its first VIEW. */
    bool numbered = first || reg->answered == mb->answered || reg->answered + 1 == mb->answered;
    if (mb->conn != SLOT_NONE) {
        member_close(m, mb->conn); /* void: what is still unread in it no longer counts */
    }
    bind(m, mb, conn);
    send_welcome(m, mb);
    if (!fits || !numbered) {
        member_exclude(m, mb, CAUSE_KICK_PROTOCOL, "resumed with a state that it cannot have");
        return;
    }
    if (reg->view > mb->known_view) {
        mb->known_view = reg->view;
    }
    resume_replay(m, mb, reg);
}

void member_register(struct master *m, uint32_t conn, const struct frame_header *h, struct reader *r)
{
    struct msg_register reg;
    if (!get_register(r, &reg)) {
        member_violation(m, conn, "a registration that cannot be read");
    } else if ((h->run != 0 && h->run != m->config.run) || (reg.run != 0 && reg.run != m->config.run)) {
        refuse(m, conn, CAUSE_KICK_STALE, "this master serves another run");
    } else if (reg.id == 0) {
        register_newcomer(m, conn, &reg);
    } else {
        register_again(m, conn, &reg);
    }
}

void member_foreign(struct master *m, uint32_t conn, uint64_t version)
{
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "this master speaks version %d of the protocol, the peer version %llu", FRAME_VERSION,
             (unsigned long long)version);
    if (m->conns[conn].state == CONN_OPEN) {
        refuse(m, conn, CAUSE_KICK_VERSION, text);
    } else {
        member_violation(m, conn, "a frame of another version of the protocol");
    }
}

/* ---- heartbeats and silence ---------------------------------------------------------------------------------------- */

void member_heartbeat(struct master *m, struct member *mb, const struct msg_heartbeat *hb, uint64_t view)
{
    mb->echo_ns = hb->sent_ns;
    if (mb->phase == MEMBER_ACCEPTED && mb->conn != SLOT_NONE && mb->view_sent_at < m->now &&
        (hb->echo_ns > (uint64_t)mb->view_sent_at || MUTANT(KNOWN_BY_HEARTBEAT)) && hb->echo_ns <= (uint64_t)m->now) {
        mb->known_view = view_current(member_group(m, mb))->view; /* it heard a heartbeat sent behind the VIEW */
    }
    mb->wait = mb->phase == MEMBER_ACCEPTED && view == view_current(member_group(m, mb))->view ? hb->wait
                                                                                             : (struct peer_wait){0};
    if (mb->wait.phase == WAIT_LAUNCH) {
        suspect_blocked(m, mb, &mb->wait);
    }
}

static void send_heartbeat(struct master *m, struct member *mb)
{
    struct msg_heartbeat hb = {.sent_ns = (uint64_t)m->now, .echo_ns = mb->echo_ns, .vote_on = vote_waits_for(m, mb)};
    suspect_tell_wait(m, mb, &hb);
    put_heartbeat(outbox_frame(m->out, FRAME_HEARTBEAT, m->config.run, 0), &hb);
    outbox_send(m->out, MASTER_SEND, mb->conn);
    mb->beat_at = m->now + m->config.heartbeat_ns;
}

static bool registered(const struct member *mb)
{
    return mb->phase == MEMBER_PENDING || mb->phase == MEMBER_ACCEPTED;
}

static bool silent(const struct master *m, const struct member *mb)
{
    return registered(mb) && m->now - mb->heard_at >= m->config.dead_ns;
}

/* M7: more than half silent at once says that the fault is on this side; once, then it is believed. */
static bool spare_all(struct master *m)
{
    uint32_t all = 0, quiet = 0;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        all += registered(&m->members[i]);
        quiet += silent(m, &m->members[i]);
    }
    if (2 * quiet <= all || m->now - m->spared_at < 2 * m->config.dead_ns) {
        return false;
    }
    m->spared_at = m->now;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        m->members[i].heard_at = m->now;
    }
    return true;
}

static void exclude_silent(struct master *m, struct member *mb)
{
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "no sign of life for %.1f s", (double)(m->now - mb->heard_at) / 1e9);
    member_exclude_told(m, mb, CAUSE_PEER_SILENT, "no sign of life", text); /* M1 */
}

void member_tick(struct master *m)
{
    bool spared = spare_all(m);
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (!registered(mb)) {
            continue;
        }
        if (mb->conn == SLOT_NONE && m->now - mb->lost_at >= m->config.reconnect_ns) {
            member_exclude(m, mb, CAUSE_PEER_LOST, "its connection to the master closed");
        } else if (!spared && silent(m, mb)) {
            exclude_silent(m, mb);
        } else if (mb->conn != SLOT_NONE && m->now >= mb->beat_at) {
            send_heartbeat(m, mb);
        }
    }
}

int64_t member_deadline(const struct master *m)
{
    int64_t due = NEVER;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        const struct member *mb = &m->members[i];
        if (registered(mb)) {
            int64_t dead = mb->heard_at + m->config.dead_ns;
            int64_t next = mb->conn == SLOT_NONE ? mb->lost_at + m->config.reconnect_ns : mb->beat_at;
            next = next < dead ? next : dead;
            due = next < due ? next : due;
        }
    }
    return due;
}
