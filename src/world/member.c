/* member.c - who is in the run: registering, resuming, heartbeats, silence, leaving.
 *
 * One idea: a member is its id, not its connection; a connection may be lost and resumed, an id is out for good once it is
 * out.  Invariant: a connection of state MEMBER and its member point at each other.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/bitset.h"
#include "core/id.h"
#include "world/world_state.h"
#include "world/breaks.h"
#include "world/edges.h"
#include "world/formation.h"
#include "world/linking.h"
#include "world/member.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/redial.h"
#include "world/roll.h"
#include "world/source.h"
#include "world/suspect.h"
#include "world/view.h"
#include "world/view_read.h"
#include "world/vote.h"
#include "wire/address.h"

void member_closed(struct world *w, struct member *mb)
{
    mb->conn = SLOT_NONE;
    mb->lost_at = w->common->now;
    roll_due(w, mb);
    mb->view_sent_at = mb->known_view == view_current(member_group(w, mb))->view ? mb->view_sent_at : NEVER;
    if (mb->phase == MEMBER_PENDING) { /* M10: not accepted yet, dropped */
        member_exclude(w, mb, CAUSE_PEER_LOST, "connection closed before it was accepted");
    } else if (mb->phase == MEMBER_ACCEPTED) {
        redial_begin(w, mb);
    }
}

void member_sweep(struct world *w)
{
    for (uint32_t i = 0; member_count(w, NULL, MEMBER_GONE) > 0; i++) {
        struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_GONE) {
            absent_add(w, mb);
            roll_move(w, mb, MEMBER_FREE, 0, "forgotten");
        }
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        bool empty = g->phase == GROUP_NORMAL && view_current(g)->members == 0 && w->admit.phase == ADMIT_IDLE;
        if (empty && member_count(w, g, MEMBER_PENDING) == 0) {
            w->view_floor = g->next_number > w->view_floor ? g->next_number : w->view_floor;
            world_move(w, PHASE_GROUP, &g->phase, GROUP_FREE, g->label, 0, "nobody left");
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

static struct group *group_of_label(struct world *w, uint32_t label)
{
    struct group *free = NULL;
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->phase != GROUP_FREE && g->label == label) {
            return g;
        }
        if (g->phase == GROUP_FREE && free == NULL) {
            free = g;
        }
    }
    if (free != NULL) {
        free->label = label;
        free->next_number = w->view_floor; /* a number once proposed is never used again */
        free->lost = free->suspect = false;
        free->revision = 0;
        breaks_clear(w, free);
        free->collect_until = NEVER;
        view_current(free)->view = view_current(free)->parent = 0;
        view_current(free)->members = view_current(free)->edges = 0;
        view_current(free)->calibration = (struct calibration){.kind = {{0}}};
        world_move(w, PHASE_GROUP, &free->phase, GROUP_NORMAL, label, 0, "first peer");
    }
    return free;
}

static void bind(struct world *w, struct member *mb, uint32_t conn)
{
    common_bind(w->common, conn, w->slot, (uint32_t)(mb - w->members));
    mb->conn = conn;
    mb->seen = w->common->conns[conn].seen;
    mb->heard_at = w->common->now;
    mb->beat_at = w->common->now + member_heartbeat_ns(w, mb);
    roll_due(w, mb);
}

static const char *full_text(const struct world *w, bool members)
{
    const struct master_config *cfg = &w->common->config;
    if (members) {
        return w->member_room < cfg->max_members ? "the master has no memory for another peer" : "the run is full";
    }
    return w->group_room < cfg->max_groups ? "the master has no memory for another peer group" : "no room for another peer group";
}

struct member *member_newcomer(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    struct member *mb = roll_free(w);
    struct group *g = mb == NULL ? NULL : group_of_label(w, reg->group);
    bool fits = g != NULL && member_count(w, g, MEMBER_PENDING) + member_count(w, g, MEMBER_ACCEPTED) < g->size.members;
    if (!fits) {
        common_refuse(w->common, conn, w->run, CAUSE_KICK_FULL, full_text(w, mb == NULL || g != NULL));
        return NULL;
    }
    *mb = (struct member){.id = w->common->next_id++, .group = (uint32_t)(g - w->groups)};
    mb->info.id = mb->id;
    mb->wish = reg->claim.rank;
    mb->info.key = reg->claim.join != 0 ? 0 : reg->claim.rank;
    mb->verify = reg->verify != 0;
    mb->cores = reg->cores;
    mb->costs = reg->costs;
    mb->stall_ms = reg->stall_ms;
    w->stall_ms = stall_shorter_ms(w->stall_ms, reg->stall_ms);
    w->common->stall_ms = stall_shorter_ms(w->common->stall_ms, reg->stall_ms);
    take_addresses(&mb->info, reg, &w->common->conns[conn].seen);
    bind(w, mb, conn);
    absent_recall(w, mb);
    roll_move(w, mb, MEMBER_PENDING, 0, "registered");
    common_welcome(w->common, conn, w->run, mb->id);
    return mb;
}

/* What the lost connection may have taken with it, in the order in which it was sent (M9). */
static void resume_replay(struct world *w, struct member *mb, const struct msg_register *reg)
{
    struct group *g = member_group(w, mb);
    edges_unlinked_all(g, mb->id);
    const struct view_record *v = view_current(g);
    bool missing = mb->phase == MEMBER_ACCEPTED && reg->view != v->view;
    if (missing) {
        view_send(w, g, mb);
    }
    bool first = reg->view == 0; /* its first VIEW brings its first number */
    bool behind = mb->phase == MEMBER_ACCEPTED && !first && reg->answered + 1 == mb->answered &&
                  !(missing && mb->answer_by_view && mb->answer.view == v->view);
    if (behind && MUTANT(REPLAY_LATE) && g->phase == GROUP_FREEZING) {
        mb->replay_late = true;
    } else if (behind) {
        vote_replay(w, mb);
    }
    if (g->phase == GROUP_FREEZING && mb->phase == MEMBER_ACCEPTED) {
        view_send_freeze(w, g, mb);
    } else if (g->phase == GROUP_LINKING && mb->phase == MEMBER_ACCEPTED) {
        linking_send(w, g, g->link_attempt, mb); /* its report is here, so it is frozen */
    } else if (w->admit.phase == ADMIT_LINKING) {
        linking_send(w, g, w->admit.current, mb);
    }
    if (g->sync.phase == SYNC_STAGING) { /* it goes on in a freeze: frozen receivers fetch, and their STAGED counts */
        source_tell_again(w, g, mb);
    }
}

/* The connection before is void: what is still unread in it no longer counts. */
static void take_over(struct world *w, struct member *mb, uint32_t conn)
{
    if (mb->conn != SLOT_NONE) {
        common_close(w->common, mb->conn);
    }
    bind(w, mb, conn);
    common_welcome(w->common, conn, w->run, mb->id);
}

void member_reclaim(struct world *w, struct member *mb, uint32_t conn)
{
    take_over(w, mb, conn);
    if (mb->phase == MEMBER_PENDING) {
        w->admit.again = w->admit.phase == ADMIT_LINKING || w->admit.phase == ADMIT_READY; /* it has let go of its links */
        w->changed = true;
    } else if (mb->known_view != 0) {
        member_exclude(w, mb, CAUSE_KICK_PROTOCOL, "claims a rank although the master has confirmed it before");
    } else {
        resume_replay(w, mb, &(struct msg_register){0});
    }
}

static void register_again(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    struct member *mb = member_find(w, reg->id);
    if (reg->run != w->run || mb == NULL || member_group(w, mb)->label != reg->group) {
        common_refuse(w->common, conn, w->run, CAUSE_KICK_STALE, "this id is not, or no longer, part of the run");
        return;
    }
    const struct view_record *v = view_current(member_group(w, mb));
    bool first = reg->view == 0; /* it has not had its first VIEW yet */
    bool fits = mb->phase == MEMBER_PENDING ? first
                : first ? mb->known_view == 0
                        : reg->view == v->view || (reg->view == v->parent && v->parent != 0);
    /* A newcomer learns its first number with its first VIEW. */
    bool numbered = first || reg->answered == mb->answered || reg->answered + 1 == mb->answered;
    take_over(w, mb, conn);
    if (!fits || !numbered) {
        member_exclude(w, mb, CAUSE_KICK_PROTOCOL, "resumed with a state that it cannot have");
        return;
    }
    if (reg->view > mb->known_view) {
        mb->known_view = reg->view;
    }
    resume_replay(w, mb, reg);
}

void member_register(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    if (reg->id == 0) {
        (void)member_newcomer(w, conn, reg);
    } else {
        register_again(w, conn, reg);
    }
}

/* ---- heartbeats and silence ---------------------------------------------------------------------------------------- */

void member_heartbeat(struct world *w, struct member *mb, const struct msg_heartbeat *hb, uint64_t view)
{
    mb->echo_ns = hb->sent_ns;
    if (mb->phase == MEMBER_ACCEPTED && mb->conn != SLOT_NONE && mb->view_sent_at < w->common->now &&
        (hb->echo_ns > (uint64_t)mb->view_sent_at || MUTANT(KNOWN_BY_HEARTBEAT)) && hb->echo_ns <= (uint64_t)w->common->now) {
        mb->known_view = view_current(member_group(w, mb))->view; /* it heard a heartbeat sent behind the VIEW */
    }
    mb->wait = mb->phase == MEMBER_ACCEPTED && view == view_current(member_group(w, mb))->view ? hb->wait
                                                                                             : (struct peer_wait){0};
    if (mb->wait.phase == WAIT_LAUNCH) {
        mb->launch_at = w->common->now;
        suspect_blocked(w, mb, &mb->wait);
    }
}

static void send_heartbeat(struct world *w, struct member *mb)
{
    struct msg_heartbeat hb = {.sent_ns = (uint64_t)w->common->now, .echo_ns = mb->echo_ns, .vote_on = vote_waits_for(w, mb)};
    suspect_tell_wait(w, mb, &hb);
    formation_seats(w, &hb.seats);
    put_heartbeat(outbox_frame(w->common->out, FRAME_HEARTBEAT, w->run, 0), &hb);
    outbox_send(w->common->out, MASTER_SEND, mb->conn);
    mb->beat_at = w->common->now + member_heartbeat_ns(w, mb);
}

static void exclude_silent(struct world *w, struct member *mb)
{
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "no sign of life for %.1f s", (double)(w->common->now - mb->heard_at) / 1e9);
    member_exclude_told(w, mb, CAUSE_PEER_SILENT, "no sign of life", text); /* M1 */
}

void member_tick(struct world *w)
{
    uint32_t room = w->member_room;
    roll_mark_due(w);
    for (uint32_t i = bitset_next(w->due_set, room, 0); i < room; i = bitset_next(w->due_set, room, i + 1)) {
        struct member *mb = &w->members[i];
        bitset_remove(w->due_set, i);
        if (!member_registered(mb)) {
            continue;
        }
        if (mb->conn == SLOT_NONE && w->common->now >= roll_resume_by(w, mb)) {
            bool links = roll_resume_by(w, mb) < mb->lost_at + w->common->config.reconnect_ns;
            member_exclude(w, mb, CAUSE_PEER_LOST,
                           links ? "its connections closed and it did not connect again" : "its connection to the master closed");
        } else if (member_silent(w, mb)) {
            exclude_silent(w, mb);
        } else if (mb->conn != SLOT_NONE && w->common->now >= mb->beat_at) {
            send_heartbeat(w, mb);
        }
        roll_due(w, mb);
    }
}
