/* act.c - what the steps of a communicator's session want done, and its timers.
 *
 * Its one idea: an action is one line here and the work of the file that it names.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "core/id.h"
#include "core/log.h"
#include "net/addr.h"
#include "engine/links/link.h"
#include "engine/links/control_link.h"
#include "engine/links/probe.h"
#include "engine/links/state_link.h"
#include "engine/links/uplink.h"
#include "engine/tables/link_table.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_lanes.h"
#include "engine/rest.h"
#include "engine/comm_calls.h"
#include "engine/threads/comm_step.h"

static void comm_send_peers(struct comm *c, const struct action *a, struct comm_after *after)
{
    bool lent = a->data_bytes > 0 && a->slot == after->lends; /* the input of no other operation: that one may end before it has gone */
    for (uint32_t i = 0; i < a->dests; i++) {
        struct link *l = link_find(c, c->machine.out.dest_ids[a->dest + i]);
        if (l != NULL) {
            control_send(l, c->machine.out.bytes + a->frame, a->frame_bytes, a->data, a->data_bytes, lent, after);
        }
    }
}

static void comm_left(struct comm *c)
{
    sync_link_end_all(c);
    probe_end_all(c);
    link_end_all(c);
    comm_wake_keepers(c);
    engine_arm(c->engine, 0);
}

/* What the session has to tell, with the id that it has: a process may hold several. */
static void comm_trace(const struct comm *c, const struct action *a, struct comm_after *after)
{
    struct session_info info;
    session_info(c->machine.session, &info);
    comm_say(after, a->value == 1 ? LOG_INFO : LOG_DEBUG, "peer " ID_FORMAT ": %s", ID_PARTS(info.id),
             (const char *)c->machine.out.bytes + a->frame);
}

static void comm_connected(struct comm *c, struct comm_after *after)
{
    struct session_info info;
    char where[ADDR_TEXT];
    comm_say_connected(c);
    session_info(c->machine.session, &info);
    addr_format(&c->params.master, where);
    if (info.connected) {
        bool named = c->params.world[0] != 0;
        comm_say(after, LOG_INFO, "connected to the master at %s as peer " ID_FORMAT " of group %u%s%s%s, one of %u, view %u", where,
                 ID_PARTS(info.id), c->params.group, named ? " of world '" : "", c->params.world, named ? "'" : "", info.world,
                 (uint32_t)info.view);
    } else {
        struct session_outcome why;
        session_gone(c->machine.session, &why);
        comm_say(after, LOG_INFO, "not connected to the master at %s: %s", where, why.text);
    }
}

/* One action; *wanted: staging bytes that the session asks for. */
static void comm_act(struct comm *c, const struct action *a, struct comm_after *after, uint64_t *wanted)
{
    switch ((enum session_action)a->kind) {
    case ACT_MASTER:
        if (c->master.conn != NULL) {
            comm_send(after, c->master.conn, c->machine.out.bytes + a->frame, a->frame_bytes, NULL, 0);
        }
        break;
    case ACT_DIAL_MASTER:
        uplink_dial_at(c, (int64_t)a->value);
        break;
    case ACT_CLOSE_MASTER:
        uplink_close(c);
        break;
    case ACT_PEERS:
        comm_send_peers(c, a, after);
        break;
    case ACT_SYNC:
        if (a->dests == 1) {
            sync_link_send(c, c->machine.out.dest_ids[a->dest], a->value == 1, c->machine.out.bytes + a->frame, a->frame_bytes,
                           a->data, a->data_bytes, after);
        }
        break;
    case ACT_SYNC_CLOSE:
        sync_link_end_all(c);
        break;
    case ACT_LINKS:
        link_changed(c);
        break;
    case ACT_UNLINK:
        control_unlink(c, a->id);
        break;
    case ACT_OP_START:
        op_lanes_start(c, a, after);
        break;
    case ACT_OP_READY:
        op_lanes_ready(c, a, after);
        break;
    case ACT_OP_STOP:
        op_lanes_stop(c, a, after);
        break;
    case ACT_OP_RETURN:
        op_end_returned(c, c->ops.at[a->slot], after);
        break;
    case ACT_VOTED:
        comm_say_voted(c);
        break;
    case ACT_CONNECTED:
        comm_connected(c, after);
        break;
    case ACT_LEFT:
        comm_left(c);
        break;
    case ACT_SYNC_ALLOC:
        *wanted = a->value > 0 ? a->value : 1;
        break;
    case ACT_SYNC_APPLY:
        comm_say_apply(c);
        break;
    case ACT_PROBE:
        probe_start(c, a->id, a->slot, a->value);
        break;
    case ACT_TRACE:
        comm_trace(c, a, after);
        break;
    }
}

#define COMM_PATIENCE_NS (5 * (int64_t)CLOCK_S)
enum { COMM_WAITS = 64 };

/* Whether a call of the program hangs for that wait.  The messages of windows are the library's own, and a receive that no thread waits
 * for is one that the program keeps open for whatever may come. */
static bool comm_hangs(const struct comm *c, const struct session_wait *w)
{
    const struct comm_op *op = w->slot != SESSION_NO_SLOT ? c->ops.at[w->slot] : NULL;
    return session_wait_of_program(w) && (op == NULL || (!op->place.own && (!op->given.receives || op_end_awaited(op))));
}

/* As errors call it. */
static const char *comm_call_name(const struct comm *c, const struct session_wait *w)
{
    const struct comm_op *op = w->slot != SESSION_NO_SLOT ? c->ops.at[w->slot] : NULL;
    return op == NULL                              ? (strcmp(w->phase, "formation") == 0 ? COMM_CONNECT : w->phase)
           : op->given.phase != NULL               ? op->given.phase
           : op->given.space == SPACE_TAG          ? "reduce"
           : op->given.kind == PLAN_SEND           ? (op->given.receives ? "receive" : "send")
           : op->given.kind == PLAN_ALL_REDUCE && op->given.out == NULL ? "barrier"
                                                   : plan_kind_name(op->given.kind);
}

/* One line for each call that another program keeps waiting: such a wait has no limit, and without this no word.  Calls that have become
 * due together have one line between them. */
static void comm_notice(struct comm *c, int64_t now, struct comm_after *after)
{
    struct session_wait waits[COMM_WAITS];
    if (now < c->patience.look_at || !log_enabled(LOG_WARN)) {
        return;
    }
    c->patience.look_at = now + CLOCK_S;
    uint32_t count = session_waits(c->machine.session, waits, COMM_WAITS), first = count;
    int64_t told = c->patience.told;
    for (uint32_t i = 0; i < count; i++) {
        if (!comm_hangs(c, &waits[i]) || now - waits[i].since < COMM_PATIENCE_NS || waits[i].since <= c->patience.told) {
            continue;
        }
        told = waits[i].since > told ? waits[i].since : told;
        bool same = first < count && waits[i].slot == waits[first].slot;
        if (first == count || waits[i].since < waits[first].since || (same && waits[i].told && !waits[first].told)) {
            first = i; /* the oldest, and of those it waits for one of whom the master knows more */
        }
    }
    if (first < count) {
        char text[256], others[192];
        c->patience.told = told;
        session_wait_text(c->machine.session, &waits[first], text, sizeof text);
        session_wait_others(c->machine.session, &waits[first], waits, count, others, sizeof others);
        comm_say(after, LOG_WARN, "%s %s%s (for %.0f s; PCCL_LOG_LEVEL=info or pcclGetWaits says more)", comm_call_name(c, &waits[first]), text,
                 others, (double)(now - waits[first].since) / 1e9);
    }
}

static int64_t comm_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    if (c->machine.session == NULL) {
        return next;
    }
    if (session_deadline(c->machine.session) <= now) {
        comm_step(c, &(struct session_event){.kind = SESSION_TICK}, after);
    }
    comm_notice(c, now, after);
    if (c->links.changed) {
        link_refresh(c);
    }
    int64_t at[] = {uplink_tick(c, now, after), link_tick(c, now, after), probe_tick(c, now, after),
                    op_lanes_watch(c, now, after), CLOCK_NEVER};
    rest_tick(c, now, after);
    sync_link_tick(c, after);
    at[4] = session_deadline(c->machine.session);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        next = at[i] < next ? at[i] : next;
    }
    return next;
}

static void comm_settled(struct comm *c, struct comm_after *after)
{
    op_lanes_failed(c, after);
    comm_connect_ended(c, after);
}

const struct comm_seam comm_acts = {.act = comm_act, .settled = comm_settled, .tick = comm_tick};
