/* poison_fault.c - invariants that fail on purpose: in the middle of a step, or after it has done everything.
 *
 * One idea: a step says what it does through the outbox, so each entry it makes is a point at which it can be failed; the linker puts
 * this file's functions before the outbox's own.  A box that has overflowed fails the step when all its state has moved.
 * Invariant: only the step that poison_arm was called before is failed.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "program.h"

#include "core/check.h"
#include "sim_cluster.h"

struct action *__real_outbox_add(struct outbox *o, uint32_t kind);
struct action *__real_outbox_send_many(struct outbox *o, uint32_t kind);
struct action *__wrap_outbox_add(struct outbox *o, uint32_t kind);
struct action *__wrap_outbox_send_many(struct outbox *o, uint32_t kind);

static struct {
    bool on;
    uint32_t left; /* entries of the outbox until it fails */
} planted;

static void point(void)
{
    if (planted.on && planted.left-- == 0) {
        planted.on = false;
        check_fail("planted by the simulator", "tests/sim/poison_fault.c");
    }
}

struct action *__wrap_outbox_add(struct outbox *o, uint32_t kind)
{
    point();
    return __real_outbox_add(o, kind);
}

struct action *__wrap_outbox_send_many(struct outbox *o, uint32_t kind)
{
    point();
    return __real_outbox_send_many(o, kind);
}

/* Events that most seeds do not meet, or whose steps say nothing: met on purpose, by whoever comes to one first, and failed at the end.
 * Oftener those that take seconds of silence, or of trying, in the middle of something. */
static const uint8_t seldom[] = {SESSION_STALLED,     SESSION_STALLED,     SESSION_STALLED,   SESSION_STALLED,    SESSION_STALLED,
                                 SESSION_STALLED,     SESSION_LINK_FAILED, SESSION_LINK_FAILED, SESSION_LINK_FAILED, SESSION_LINK_FAILED,
                                 SESSION_LINK_STALE,  SESSION_LINK_STALE,  SESSION_SYNC_DOWN, SESSION_SYNC_DOWN,  SESSION_MASTER_UP,
                                 SESSION_MASTER_DOWN, SESSION_MEMORY,      SESSION_DATA_DOWN, SESSION_DATA_UP,    SESSION_COLLECT_CONNECT};

/* All wish for it; or, once one of them has met it, nobody any more. */
static void wish_of_all(struct cluster *cl, uint32_t kind, uint32_t after)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        cl->nodes[i].poison_kind = kind;
        cl->nodes[i].poison_after = after;
    }
}

/* Any but DATA_FAILED, which only seeds with its fault come to. */
static uint32_t any_kind(struct cluster *cl)
{
    uint32_t kind = 1 + (uint32_t)rng_below(&cl->rng, SESSION_TICK - 1);
    return kind + (kind >= SESSION_DATA_FAILED);
}

void poison_wish(struct cluster *cl, struct node *n)
{
    n->poison_kind = rng_below(&cl->rng, 3) == 0 ? 0 : any_kind(cl);
    n->poison_after = (uint32_t)rng_below(&cl->rng, 2) == 0 ? POISON_AT_END : (uint32_t)rng_below(&cl->rng, 6);
    if (rng_below(&cl->rng, 2) == 0) {
        wish_of_all(cl, seldom[rng_below(&cl->rng, sizeof seldom)], POISON_AT_END);
        cl->poison_any = true;
    }
    if (n->poison_kind == SESSION_REVOKE) {
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_REVOKE, 0, 0);
    } else if (n->poison_kind == SESSION_CANCEL) {
        program_wish(n, FAULT_CANCEL);
    }
}

void poison_arm(struct node *n, const struct session_event *e)
{
    if (n->poison_after == POISON_NEVER || (n->poison_kind != 0 && n->poison_kind != (uint32_t)e->kind) || n->poisoned) {
        return;
    }
    n->out.overflow = n->poison_after == POISON_AT_END;
    planted.on = n->poison_after != POISON_AT_END;
    planted.left = n->poison_after;
}

void poison_stepped(struct cluster *cl, struct node *n, const struct session_event *e)
{
    bool meant = n->poison_after != POISON_NEVER && (n->poison_kind == 0 || n->poison_kind == (uint32_t)e->kind);
    planted.on = false;
    if (!session_poisoned(n->session) || n->poisoned) {
        return;
    }
    struct session_outcome why;
    session_gone(n->session, &why);
    if (!meant || (strstr(why.text, "planted") == NULL && strstr(why.text, "overflow") == NULL)) {
        cluster_fail(cl, "peer %u: the session is poisoned (event %d): %s", n->index, (int)e->kind, why.text);
        return;
    }
    n->poisoned = true;
    n->poison_after = POISON_NEVER;
    if (cl->poison_any) {
        wish_of_all(cl, 0, POISON_NEVER);
        cl->poison_any = false;
    }
    cl->stats.poisoned[e->kind]++;
    cluster_trace(cl, n->index, "poisoned", (uint64_t)e->kind, n->out.count);
}

/* A fresh session in place of the failed one, as a program gets one by connecting again. */
void poison_renew(struct cluster *cl, struct node *n)
{
    if (!n->poisoned) {
        return;
    }
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        if (n->run[i].taken) {
            cluster_fail(cl, "peer %u: slot %u is in use after all calls have ended", n->index, i);
        }
    }
    n->poisoned = false;
    node_renew(n);
}

void node_renew(struct node *n)
{
    n->config.seed++;
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        free(n->table[i]);
        n->table[i] = NULL;
        n->table_bytes[i] = 0;
    }
    n->session = session_init(&n->config, n->arena);
}

/* One more fault in one seed of four: there are many kinds of steps to fail. */
void poison_draw(struct cluster *cl)
{
    if (cl->opt.seed % 4 != 2 || cl->fault_count == FAULTS_MAX) {
        return;
    }
    struct rng r = {.state = mix64(cl->opt.seed, 0x9015)};
    const struct fault f = {.kind = FAULT_POISON, .node = (uint16_t)rng_below(&r, cl->opt.peers), .armed = rng_below(&r, 2) == 0,
                            .phase = (enum phase)rng_below(&r, PHASE_COUNT)};
    faults_add(cl, &f, &r);
}
