/* injector.c - see injector.h.
 *
 * A fault says "process number a of those that are there"; who that is, is settled when it begins, and remembered for healing.
 * SPDX-License-Identifier: MIT */
#include "injector.h"

#include <signal.h>

#include "cage.h"

enum { LEAST_LIVING = 2, SLOW_BYTES_PER_S = 400000, SLOW_DELAY_US = 150000 };

/* The number of the n-th living process, counted round; -1: nobody. */
static int living(const struct round *r, uint32_t n)
{
    int count = round_living(r);
    int at = count > 0 ? (int)(n % (uint32_t)count) : -1;
    for (int i = 0; i < r->processes && at >= 0; i++) {
        if (r->actor[i].status == ACTOR_RUNS && at-- == 0) {
            return i;
        }
    }
    return -1;
}

/* Rules of a pair, in the directions that the form says: 1 from a to b, 2 back, else both. */
static void set_rules(struct round *r, const struct fault *f, void (*set)(struct proxy_rule *rule, const struct plan *p, bool on),
                      bool on)
{
    if (f->form % 4 != 2) {
        set(proxy_rule(r->proxy, f->done_a, f->done_b), &r->plan, on);
    }
    if (f->form % 4 != 1) {
        set(proxy_rule(r->proxy, f->done_b, f->done_a), &r->plan, on);
    }
}

static void rule_refuse(struct proxy_rule *rule, const struct plan *p, bool on)
{
    (void)p;
    rule->refuse = on;
}

static void rule_hold(struct proxy_rule *rule, const struct plan *p, bool on)
{
    (void)p;
    rule->hold = on;
}

static void rule_slow(struct proxy_rule *rule, const struct plan *p, bool on)
{
    rule->bytes_per_s = on ? SLOW_BYTES_PER_S : p->bytes_per_s;
    rule->delay_us = on ? SLOW_DELAY_US : p->delay_us;
}

/* Faults of processes. */
static void begin_process(struct round *r, struct fault *f)
{
    struct actor *a = &r->actor[f->done_a];
    switch ((int)f->kind) {
    case FAULT_KILL:
        if (round_living(r) > LEAST_LIVING) {
            actor_signal(a, SIGKILL);
        }
        break;
    case FAULT_STOP:
        actor_signal(a, SIGSTOP);
        break;
    case FAULT_LEAVE:
        r->process[f->done_a].told_to_go = true;
        actor_word(a, 'l');
        break;
    case FAULT_QUIT:
        if (round_living(r) > LEAST_LIVING) {
            r->process[f->done_a].told_to_go = true;
            actor_word(a, f->form % 2 == 0 ? 'q' : 'd');
        }
        break;
    default:
        break;
    }
}

/* Faults of the paths between the two ends. */
static void begin_path(struct round *r, struct fault *f)
{
    switch ((int)f->kind) {
    case FAULT_CUT:
    case FAULT_MASTER_CUT:
        proxy_cut(r->proxy, f->done_a, f->done_b, f->form % 2 == 0 ? CUT_RESET : CUT_CLOSE, f->form < 4 ? 0 : f->bytes);
        break;
    case FAULT_HALF_CLOSE:
        proxy_cut(r->proxy, f->done_a, f->done_b, CUT_HALF, f->form < 4 ? 0 : f->bytes);
        break;
    case FAULT_SEVER:
    case FAULT_MASTER_SEVER:
        set_rules(r, f, rule_refuse, true);
        proxy_cut(r->proxy, f->done_a, f->done_b, CUT_RESET, 0);
        break;
    case FAULT_BLACK_HOLE:
    case FAULT_MASTER_HOLE:
        set_rules(r, f, rule_hold, true);
        break;
    case FAULT_SLOW:
        set_rules(r, f, rule_slow, true);
        break;
    case FAULT_STRANGER:
        proxy_stranger(r->proxy, f->form < 3 ? PROXY_MASTER : f->done_a, f->form % 3);
        break;
    case FAULT_SOCKET_KILL:
        if (r->caged) {
            (void)cage_kill_sockets(r->actor[f->done_a].pid, f->form < 5 ? 0 : r->process[f->done_b].offered);
        }
        break;
    case FAULT_UNPLUG:
        if (r->caged) {
            (void)cage_unplug(r->actor[f->done_a].pid, (unsigned)f->done_a, f->form % 2 == 0, true);
        }
        break;
    default:
        break;
    }
}

static bool concerns_master(enum fault_kind kind)
{
    return kind == FAULT_MASTER_CUT || kind == FAULT_MASTER_SEVER || kind == FAULT_MASTER_HOLE;
}

static void begin(struct round *r, struct fault *f)
{
    f->begun = true;
    r->result->faults[f->kind]++;
    f->done_a = living(r, f->a);
    f->done_b = concerns_master(f->kind) ? PROXY_MASTER : living(r, f->b);
    if (f->kind == FAULT_JOIN) {
        (void)round_join(r);
    } else if (f->kind == FAULT_MASTER_STOP) {
        actor_signal(&r->master, SIGSTOP);
    } else if (f->kind == FAULT_MASTER_KILL) {
        actor_signal(&r->master, SIGKILL);
        r->master_away = true;
    } else if (f->done_a >= 0 && f->done_b >= 0 && (f->done_a != f->done_b || f->kind <= FAULT_QUIT ||
                                                    f->kind >= FAULT_SOCKET_KILL)) {
        begin_process(r, f);
        begin_path(r, f);
    } else {
        f->done_a = -1; /* nobody to hit */
    }
}

static void heal(struct round *r, struct fault *f)
{
    if (f->kind == FAULT_MASTER_KILL && r->master.status == ACTOR_RUNS && r->master.killed) {
        return; /* it has not been reaped yet: look again */
    }
    f->lasted_ms = f->for_ms;
    f->for_ms = 0;
    if (f->kind == FAULT_MASTER_STOP) {
        actor_signal(&r->master, SIGCONT);
    } else if (f->kind == FAULT_MASTER_KILL) {
        if (r->master_away) {
            r->master_away = false;
            (void)round_start_master(r);
        }
    } else if (f->done_a < 0) {
        return;
    } else if (f->kind == FAULT_STOP) {
        actor_signal(&r->actor[f->done_a], SIGCONT);
    } else if (f->kind == FAULT_SEVER || f->kind == FAULT_MASTER_SEVER) {
        set_rules(r, f, rule_refuse, false);
    } else if (f->kind == FAULT_BLACK_HOLE || f->kind == FAULT_MASTER_HOLE) {
        set_rules(r, f, rule_hold, false);
    } else if (f->kind == FAULT_SLOW) {
        set_rules(r, f, rule_slow, false);
    } else if (f->kind == FAULT_UNPLUG && r->caged && r->actor[f->done_a].status == ACTOR_RUNS) {
        (void)cage_unplug(r->actor[f->done_a].pid, (unsigned)f->done_a, f->form % 2 == 0, false);
    }
}

int64_t injector_pass(struct round *r, int64_t now_ms)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < r->plan.faults; i++) {
        struct fault *f = &r->plan.fault[i];
        int64_t at = r->began_ms + f->at_ms;
        if (!f->begun && at <= now_ms) {
            begin(r, f);
        }
        if (f->begun && f->for_ms > 0 && at + f->for_ms <= now_ms) {
            heal(r, f);
        }
        int64_t due = !f->begun ? at : f->for_ms > 0 ? at + f->for_ms : INT64_MAX;
        next = due < next ? due : next;
    }
    return next;
}

bool injector_done(const struct round *r)
{
    for (int i = 0; i < r->plan.faults; i++) {
        if (!r->plan.fault[i].begun || r->plan.fault[i].for_ms > 0) {
            return false;
        }
    }
    return !r->master_away;
}
