/* op_forecast.c - operations that miss their predictions: the log names the edge behind it, and the master has it measured again.
 *
 * The master also hears how many times as long as predicted they take.
 * Invariant: nothing is looked at before the links of the view were measured.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "core/id.h"
#include "core/plan_kind.h"
#include "engine/links/link.h"
#include "engine/calls/op_forecast.h"
#include "engine/tables/link_table.h"
#include "engine/calls/op_observe.h"
#include "engine/threads/comm_step.h"

/* What the connections with one peer deliver, and the worst edge so far. */
struct edges {
    struct comm *c;
    const struct comm_op *op;
    struct forecast_edge edge, worst;
    bool filled;             /* one of the connections always had something to send: its rate is the edge's */
};

void op_forecast_measured(struct link *l, uint64_t bps)
{
    l->measured_bps = bps;
}

/* One more member has launched a long operation; true: no other operation runs, so that what is moved from here on is of this one. */
static bool runs_alone(const struct comm *c, struct comm_op *op)
{
    if (op->forecast.predicted_ns < FORECAST_LEAST_NS) {
        return false;
    }
    op->forecast.ready_at = clock_now_ns();
    return c->running.count == 1;
}

void op_forecast_start(struct comm *c, struct comm_op *op, const struct session_op *run)
{
    bool predicted = op->given.space != SPACE_WINDOW && run->params.kind < PLAN_SEND;
    struct choose_answer plan = predicted ? session_plan(c->machine.session, &run->params) : (struct choose_answer){.ns = 0};
    op->forecast.predicted_ns = plan.measured ? (int64_t)plan.ns : 0;
    op->forecast.took = took_predicted(&run->params, &plan);
    c->forecast.beside += c->running.count > 1;
    op->forecast.beside = c->running.count > 1 ? UINT64_MAX : c->forecast.beside;
    if (runs_alone(c, op)) {
        op->forecast.begun_at = op->forecast.ready_at;
        op_observe_begin(c, op->forecast.ready_at);
    }
}

void op_forecast_ready(struct comm *c, struct comm_op *op, uint64_t peer)
{
    if (runs_alone(c, op)) {
        op_observe_ready(c, peer, op->forecast.ready_at);
    }
}

static void end_edge(struct edges *e)
{
    const struct link *l = e->filled ? link_find(e->c, e->edge.peer) : NULL;
    if (l != NULL && l->measured_bps > 0) {
        e->edge.measured_bps = l->measured_bps;
        forecast_edge(&e->c->forecast.calls, &e->worst, &e->edge);
    }
    e->filled = false;
}

static void add_connection(void *user, const struct comm_traffic *one)
{
    struct edges *e = user;
    struct transport_tcp tcp;
    if (one->transport == NULL || one->by != TRANSPORT_TCP || plan_made_partner(e->op->plan.made, one->peer) == PLAN_NOBODY) {
        return;
    }
    if (one->peer != e->edge.peer) {
        end_edge(e);
        e->edge = (struct forecast_edge){.peer = one->peer};
    }
    transport_tcp_look(one->transport, &tcp);
    e->edge.bps += 8 * tcp.rate;
    e->filled |= tcp.filled;
}

/* Nothing else moved data beside it, and no program was late. */
static bool shows_links(const struct comm *c, const struct comm_op *op)
{
    return op->forecast.beside == c->forecast.beside && op->forecast.ready_at - op->forecast.begun_at <= op->forecast.took.late_ns;
}

/* The master is told how long operations of this kind take. */
static void tell_took(struct comm *c, const struct comm_op *op, int64_t took, struct comm_after *after)
{
    struct msg_took m;
    if (shows_links(c, op) && took_take(&c->forecast.took, op->run.view, &op->forecast.took, took, &m)) {
        comm_step(c, &(struct session_event){.kind = SESSION_TOOK, .view = op->run.view, .took = &m}, after);
        comm_say(after, LOG_DEBUG, "%s by %s took %.3f s: bytes on links take %.2f times as long as predicted", plan_kind_name(op->given.kind),
                 plan_algorithm_name(op->plan.plan->params.algorithm), (double)took / 1e9, m.permille / 1e3);
    }
}

void op_forecast_done(struct comm *c, const struct comm_op *op, struct comm_after *after)
{
    if (op->forecast.predicted_ns < FORECAST_LEAST_NS) {
        return;
    }
    int64_t now = clock_now_ns(), took = now - op->forecast.ready_at;
    op_observe_end(c, now, after);
    tell_took(c, op, took, after);
    int64_t expected = took_expected(&c->forecast.took, op->run.view, &op->forecast.took, op->forecast.predicted_ns, took);
    if (!forecast_missed(&c->forecast.calls, op->run.view, expected, took)) {
        return;
    }
    struct edges e = {.c = c, .op = op};
    comm_traffic(c, add_connection, &e);
    end_edge(&e);
    if (e.worst.peer != 0) {
        struct msg_measured doubt = {.round = MEASURED_DOUBT, .to = e.worst.peer, .bits_per_second = e.worst.bps};
        comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = &doubt}, after);
        comm_say(after, LOG_INFO, "%s took %.2f s, and %.2f s was expected: peer " ID_FORMAT " is sent %.1f Mb/s, and %.1f Mb/s was measured",
                 plan_kind_name(op->given.kind), (double)took / 1e9, (double)expected / 1e9, ID_PARTS(e.worst.peer),
                 (double)e.worst.bps / 1e6, (double)e.worst.measured_bps / 1e6);
    }
}
