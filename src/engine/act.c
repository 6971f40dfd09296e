/* act.c - what the steps of a communicator's session want done, and its timers.
 *
 * Its one idea: an action is one line here and the work of the file that it names.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "engine/link.h"

static void comm_send_peers(struct comm *c, const struct action *a, struct comm_after *after)
{
    for (uint32_t i = 0; i < a->dests; i++) {
        struct link *l = link_find(c, c->out.dest_ids[a->dest + i]);
        if (l != NULL && l->control != NULL) {
            comm_send(after, l->control, c->out.bytes + a->frame, a->frame_bytes, a->data, a->data_bytes);
        }
    }
}

static void comm_left(struct comm *c)
{
    sync_link_end_all(c);
    probe_end_all(c);
    link_end_all(c);
    engine_arm(c->engine, 0);
}

static void comm_trace(const struct comm *c, const struct action *a, struct comm_after *after)
{
    if (log_enabled(LOG_DEBUG)) {
        if (after->traces < COMM_TRACES) {
            after->trace[after->traces] = (struct comm_trace){a->data, c->id, a->id, a->value};
        }
        after->traces++;
    }
}

/* One action; *wanted: staging bytes that the session asks for. */
static void comm_act(struct comm *c, const struct action *a, struct comm_after *after, uint64_t *wanted)
{
    switch ((enum session_action)a->kind) {
    case ACT_MASTER:
        if (c->master != NULL) {
            comm_send(after, c->master, c->out.bytes + a->frame, a->frame_bytes, NULL, 0);
        }
        break;
    case ACT_DIAL_MASTER:
        c->master_at = (int64_t)a->value;
        engine_arm(c->engine, c->master_at);
        break;
    case ACT_CLOSE_MASTER:
        uplink_close(c);
        break;
    case ACT_PEERS:
        comm_send_peers(c, a, after);
        break;
    case ACT_SYNC:
        if (a->dests == 1) {
            sync_link_send(c, c->out.dest_ids[a->dest], a->value == 1, c->out.bytes + a->frame, a->frame_bytes,
                           a->data, a->data_bytes, after);
        }
        break;
    case ACT_SYNC_CLOSE:
        sync_link_end_all(c);
        break;
    case ACT_LINKS:
        c->links_changed = true;
        engine_arm(c->engine, 0);
        break;
    case ACT_UNLINK:
        link_unlink(c, a->id);
        break;
    case ACT_OP_START:
        comm_op_started(c, a, after);
        break;
    case ACT_OP_READY:
        comm_op_ready(c, a, after);
        break;
    case ACT_OP_STOP:
        comm_op_stopped(c, a, after);
        break;
    case ACT_OP_RETURN:
        comm_op_returned(c, a, after);
        break;
    case ACT_VOTED:
        c->voted = true;
        pthread_cond_broadcast(&c->changed);
        break;
    case ACT_CONNECTED:
        c->connected = true;
        pthread_cond_broadcast(&c->changed);
        break;
    case ACT_LEFT:
        comm_left(c);
        break;
    case ACT_SYNC_ALLOC:
        *wanted = a->value > 0 ? a->value : 1;
        break;
    case ACT_SYNC_APPLY:
        c->apply = true;
        break;
    case ACT_PROBE:
        probe_start(c, a->id, a->slot, a->value);
        break;
    case ACT_TRACE:
        comm_trace(c, a, after);
        break;
    }
}

const struct comm_seam comm_acts = {.act = comm_act, .settled = comm_ops_failed};

#define COMM_PATIENCE_NS (10 * (int64_t)CLOCK_S)

/* Once for each call that another program keeps waiting: such a wait has no limit, and without this no word. */
static void comm_notice(struct comm *c, int64_t now, struct comm_after *after)
{
    struct session_wait waits[64];
    if (now < c->notice_at || !log_enabled(LOG_WARN)) {
        return;
    }
    c->notice_at = now + CLOCK_S;
    uint32_t count = session_waits(c->session, waits, 64), first = count;
    for (uint32_t i = 0; i < count; i++) {
        bool due = session_wait_of_program(&waits[i]) && now - waits[i].since >= COMM_PATIENCE_NS && waits[i].since > c->noticed;
        if (due && (first == count || waits[i].since < waits[first].since)) {
            first = i;
        }
    }
    if (first < count) {
        char text[256];
        c->noticed = waits[first].since;
        session_wait_text(c->session, &waits[first], text, sizeof text);
        snprintf(after->notice, sizeof after->notice, "a call %s (for %.0f s)", text,
                 (double)(now - waits[first].since) / 1e9);
    }
}

int64_t comm_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    if (c->session == NULL) {
        return next;
    }
    if (session_deadline(c->session) <= now) {
        comm_step(c, &(struct session_event){.kind = SESSION_TICK}, after);
    }
    comm_notice(c, now, after);
    if (c->links_changed) {
        c->links_changed = false;
        link_refresh(c, after);
    }
    int64_t at[] = {uplink_tick(c, now, after), link_tick(c, now, after), probe_tick(c, now, after),
                    comm_ops_watch(c, now, after), CLOCK_NEVER};
    sync_link_tick(c, after);
    at[4] = session_deadline(c->session);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        next = at[i] < next ? at[i] : next;
    }
    return next;
}
