/* world.c - entry of a world: dispatch of frames, time, and how it comes to rest.
 *
 * An event is noted by the part it belongs to; then world_settle lets every part look at the whole state until nothing
 * changes any more.  Invariant: between steps the state is settled: nothing that could go on without a further event is
 * left undone.
 * SPDX-License-Identifier: MIT */
#include "world/world.h"

#include <stdio.h>
#include <string.h>

#include "world/recording.h"
#include "world/world_state.h"
#include "world/admit.h"
#include "world/election.h"
#include "world/ending.h"
#include "world/formation.h"
#include "world/keys.h"
#include "world/member.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/optimise.h"
#include "world/parent.h"
#include "world/report.h"
#include "world/roll.h"
#include "world/seats.h"
#include "world/suspect.h"
#include "world/together.h"
#include "world/view.h"
#include "world/vote.h"

/* ---- frames -------------------------------------------------------------------------------------------------------- */

static void take_vote(struct world *w, struct member *mb, const struct frame_header *h, struct reader *r)
{
    struct msg_vote v;
    if (!get_vote(r, &v) || mb->phase != MEMBER_ACCEPTED) {
        member_violation(w, mb, "a vote that cannot be");
        return;
    }
    vote_take(w, mb, &v, h->view);
}

static void take_suspect(struct world *w, struct member *mb, struct reader *r)
{
    struct msg_suspect s;
    if (!get_suspect(r, &s)) {
        member_violation(w, mb, "a suspicion that cannot be read");
    } else if (mb->phase == MEMBER_ACCEPTED) {
        suspect_report(w, mb, &s);
    }
}

static void take_staged(struct world *w, struct member *mb, struct reader *r)
{
    struct msg_staged s;
    if (!get_staged(r, &s) || mb->phase != MEMBER_ACCEPTED || !election_known(w, mb, &s)) {
        member_violation(w, mb, "a staged that cannot be");
        return;
    }
    election_staged(w, mb, &s);
}

static void take_measured(struct world *w, struct member *mb, struct reader *r)
{
    struct msg_measured ms;
    if (!get_measured(r, &ms) || mb->phase != MEMBER_ACCEPTED) {
        member_violation(w, mb, "a measurement that cannot be");
        return;
    }
    optimise_measured(w, mb, &ms);
}

static void take_took(struct world *w, struct member *mb, const struct frame_header *h, struct reader *r)
{
    struct msg_took m;
    if (!get_took(r, &m) || mb->phase != MEMBER_ACCEPTED) {
        member_violation(w, mb, "a time of operations that cannot be");
        return;
    }
    calibration_take(w, mb, h->view, &m);
}

static void take_heartbeat(struct world *w, struct member *mb, const struct frame_header *h, struct reader *r)
{
    struct msg_heartbeat hb;
    if (!get_heartbeat(r, &hb)) {
        member_violation(w, mb, "a heartbeat that cannot be read");
        return;
    }
    member_heartbeat(w, mb, &hb, h->view);
}

/* With the first view on its way it changes nothing any more: who cannot take that goes. */
static void take_decline(struct world *w, struct member *mb, struct reader *r)
{
    struct msg_decline d;
    if (!get_decline(r, &d) || !world_sized(w)) {
        member_violation(w, mb, "a decline that cannot be");
    } else if (mb->phase == MEMBER_PENDING) {
        (void)formation_loses(w, mb, (enum cause)d.cause, d.cause == CAUSE_NO_MEMORY ? "it has no memory for so many" : "it cannot go on");
    }
}

static void take_leave(struct world *w, struct member *mb, struct reader *r)
{
    struct msg_leave l;
    struct group *g = member_group(w, mb);
    bool good = get_leave(r, &l);
    if (good && l.reports > 0 && report_last_counts(w, g, mb, l.view)) {
        good = report_last_words(w, g, mb, l.reports, r);
    }
    if (!good || (l.reports == 0 && !reader_done(r))) {
        member_violation(w, mb, "a leave that cannot be");
    } else if (l.revoke != 0) {
        ending_revoke(w, mb);
    } else {
        member_exclude_told(w, mb, CAUSE_PEER_LEFT, "left", "it left the run");
    }
}

/* A frame of a registered peer. */
static void take_frame(struct world *w, struct member *mb, const struct frame_header *h, struct reader *r)
{
    switch (h->type) {
    case FRAME_HEARTBEAT:
        take_heartbeat(w, mb, h, r);
        break;
    case FRAME_SUSPECT:
        take_suspect(w, mb, r);
        break;
    case FRAME_FROZEN:
        view_frozen(w, mb, r);
        break;
    case FRAME_VOTE:
        take_vote(w, mb, h, r);
        break;
    case FRAME_LINKED:
        admit_linked(w, mb, h->view, r);
        break;
    case FRAME_DECLINE:
        take_decline(w, mb, r);
        break;
    case FRAME_LEAVE:
        take_leave(w, mb, r);
        break;
    case FRAME_STAGED:
        take_staged(w, mb, r);
        break;
    case FRAME_MEASURED:
        take_measured(w, mb, r);
        break;
    case FRAME_TOOK:
        take_took(w, mb, h, r);
        break;
    default: /* the type is a number from outside, not one of ours */
        member_violation(w, mb, "a message that no peer sends to the master now");
        break;
    }
}

void world_frame(struct world *w, uint32_t conn, const struct frame_header *h, const void *payload)
{
    struct member *mb = &w->members[w->common->conns[conn].member];
    struct reader r;
    reader_init(&r, payload, h->length);
    mb->heard_at = w->common->now;
    roll_due(w, mb);
    if (h->run != 0 && h->run != w->run) {
        member_violation(w, mb, "a frame of another run");
        return;
    }
    bool over = w->form.phase == FORM_OVER; /* nothing is decided any more, so nothing else is of use */
    if (!over || h->type == FRAME_HEARTBEAT || h->type == FRAME_LEAVE) {
        take_frame(w, mb, h, &r);
    }
}

/* ---- other events -------------------------------------------------------------------------------------------------- */

void world_begin(struct world *w, uint32_t slot, uint64_t run, const char *name, const struct claim *claim)
{
    w->slot = slot;
    w->run = run;
    w->view_floor = w->common->view_floor;
    snprintf(w->name, sizeof w->name, "%s", name);
    if (claim != NULL) {
        formation_begin(w, claim);
    }
}

void world_register(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    member_register(w, conn, reg);
}

void world_closed(struct world *w, uint32_t conn)
{
    struct conn *c = &w->common->conns[conn];
    common_gone(w->common, conn);
    member_closed(w, &w->members[c->member]);
}

void world_misunderstood(struct world *w, uint32_t conn)
{
    member_violation(w, &w->members[w->common->conns[conn].member], "a frame of another version of the protocol");
}

void world_persisted(struct world *w, uint64_t number)
{
    view_persisted(w, number);
    admit_persisted(w, number);
    election_persisted(w, number);
    optimise_persisted(w, number);
}

void world_solved(struct world *w, const struct master_event *e)
{
    optimise_solved(w, e);
}

void world_tick(struct world *w)
{
    member_tick(w);
    view_tick(w);
    suspect_tick(w);
    admit_tick(w);
    optimise_tick(w);
    formation_tick(w);
    if (world_called(w)) { /* if it is not that they have failed */
        admit_persisted(w, w->admit.persist);
    }
}

/* What was on its way to a view has come to nothing. */
static void settle_ending(struct world *w)
{
    if (w->admit.phase == ADMIT_LINKING) {
        admit_stop(w, "its world is revoked");
    }
    if (w->form.phase != FORM_OVER) {
        optimise_settle(w);
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].sync.elect_at = 0; /* else it would be time for that for ever */
    }
}

void world_settle(struct world *w)
{
    uint32_t left = 64 + 8 * (w->common->config.max_members + w->common->config.max_groups);
    do {
        PCCL_ASSERT(left-- > 0);
        w->changed = false;
        seats_settle(w);
        for (uint32_t i = 0; i < w->group_room; i++) {
            view_settle(w, &w->groups[i]);
        }
        ending_settle(w);
        keys_settle(w);
        if (ending_begun(w)) { /* nothing else is decided any more: its members go */
            settle_ending(w);
            continue;
        }
        admit_settle(w);
        vote_settle(w);
        for (uint32_t i = 0; i < w->group_room; i++) {
            election_settle(w, &w->groups[i]);
        }
        optimise_settle(w);
    } while (w->changed);
    parent_look(w);
    member_sweep(w);
}

/* ---- its end ------------------------------------------------------------------------------------------------------- */

void world_end(struct world *w)
{
    struct outbox *o = w->common->out;
    uint64_t *floor = &w->common->view_floor;
    *floor = w->view_floor > *floor ? w->view_floor : *floor;
    uint64_t number = common_number(&w->common->next_persist, w->slot);
    writer_init(&o->writer, o->bytes + o->used, o->bytes_capacity - o->used);
    recording_end(w, &o->writer, number);
    common_persist(o, number);
    together_leave(w);
    parent_ends(w);
    world_tell(w, "ended: no member is left");
}

/* ---- M7: silence of a master that stood still is nobody's ------------------------------------------------------------ */

int64_t world_pause_ns(uint32_t stall_ms)
{
    return stall_pause_ns(stall_ms > 0 ? (int64_t)stall_ms * CLOCK_MS : CLOCK_NEVER);
}

int64_t world_pause(const struct world *w)
{
    return world_pause_ns(w->stall_ms);
}

void world_restart_timers(struct world *w)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].heard_at = w->common->now;
        w->members[i].lost_at = w->common->now;
        roll_due(w, &w->members[i]);
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].report_by = w->common->now + group_dead_ns(w, &w->groups[i]);
    }
}

void world_hear_all(struct world *w)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].heard_at = w->common->now;
        roll_due(w, &w->members[i]);
    }
}
