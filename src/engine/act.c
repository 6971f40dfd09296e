/* act.c - what the steps of a communicator's session want done, and its timers.
 *
 * Its one idea: an action is one line here and the work of the file that it names.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "core/id.h"
#include "core/log.h"
#include "net/addr.h"
#include "engine/link.h"

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

#define COMM_PATIENCE_NS (10 * (int64_t)CLOCK_S)

/* Once for each call that another program keeps waiting: such a wait has no limit, and without this no word. */
static void comm_notice(struct comm *c, int64_t now, struct comm_after *after)
{
    struct session_wait waits[64];
    if (now < c->patience.look_at || !log_enabled(LOG_WARN)) {
        return;
    }
    c->patience.look_at = now + CLOCK_S;
    uint32_t count = session_waits(c->machine.session, waits, 64), first = count;
    for (uint32_t i = 0; i < count; i++) {
        bool due = session_wait_of_program(&waits[i]) && now - waits[i].since >= COMM_PATIENCE_NS && waits[i].since > c->patience.told;
        if (due && (first == count || waits[i].since < waits[first].since)) {
            first = i;
        }
    }
    if (first < count) {
        char text[256];
        c->patience.told = waits[first].since;
        session_wait_text(c->machine.session, &waits[first], text, sizeof text);
        comm_say(after, LOG_WARN, "a call %s (for %.0f s)", text, (double)(now - waits[first].since) / 1e9);
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
