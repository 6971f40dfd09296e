/* program_pair.c - messages between two processes of a group, and what is checked of them.
 *
 * One idea: which calls of a step are messages, and between whom, follows from the seed and from the members that the program knew when
 * it began the step, which are alike at all; so each of the two makes its call, and nobody else knows of it.  A message that fails is not
 * sent again, but a receive from any source that was matched with nothing is called again.
 * Invariant: what one of the two was told is compared with what the other was, by the rules of class B.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "core/dtype.h"
#include "program.h"

enum { PAIR_TAGS = 2, PAIR_LIMIT_S = 150 };

void pair_begin(const struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    p->knows = info.snapshot.group < CLUSTER_NODES ? info.snapshot.group : CLUSTER_NODES;
    for (uint32_t r = 0; r < p->knows; r++) {
        p->known[r] = session_called(n->session, r);
    }
    match_begin(cl, n);
}

bool pair_used(const struct cluster *cl)
{
    return mix64(cl->opt.seed, 89) % 2 == 0;
}

bool pair_chosen(const struct cluster *cl, const struct node *n, uint32_t j)
{
    const struct match *m = &n->program->match;
    if (m->calls > 0) {
        return j < m->calls && m->member[j];
    }
    bool fits = !cl->opt.bulk && cl->opt.burst == 0 && cl->opt.refused == 0 && !cl->opt.scripted && j < PROGRAM_OPS && n->program->knows > 1;
    return fits && pair_used(cl) && mix64(mix64(mix64(cl->opt.seed, n->group), n->program->step), j + 9000) % 3 == 0;
}

static uint64_t dice(const struct cluster *cl, const struct node *n, uint32_t j)
{
    return mix64(mix64(mix64(cl->opt.seed, n->group), n->program->step), j + 9500);
}

static void ends_of(const struct cluster *cl, const struct node *n, uint32_t j, uint64_t *from, uint64_t *to)
{
    const struct program *p = n->program;
    uint64_t h = dice(cl, n, j);
    if (p->match.calls > 0) {
        match_ends(n, j, from, to);
        return;
    }
    uint32_t a = (uint32_t)(h >> 8) % p->knows, b = (a + 1 + (uint32_t)(h >> 32) % (p->knows - 1)) % p->knows;
    *from = p->known[a];
    *to = p->known[b];
}

bool pair_mine_to_call(const struct cluster *cl, const struct node *n, uint32_t j)
{
    uint64_t from, to;
    ends_of(cl, n, j, &from, &to);
    return (from == n->id && match_sends(n, j)) || to == n->id;
}

void pair_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p)
{
    struct session_info info;
    uint64_t h = dice(cl, n, c->op);
    session_info(n->session, &info);
    ends_of(cl, n, c->op, &c->from, &c->to);
    c->known = info.known;
    c->world = info.snapshot.group;
    c->in_place = false;
    c->at = MATCH_RECORDS;
    if (n->program->match.calls > 0) {
        match_shape(cl, n, c, p);
        return;
    }
    c->any = h % 3 == 0 && c->to == n->id;
    c->pair_tag = h % 3 == 0 ? 400 + c->op : 300 + h / 3 % PAIR_TAGS; /* any source: a tag of its own; else program_match.c */
    *p = (struct op_params){.kind = PLAN_SEND, .dtype = p->dtype, .count = p->count};
}

bool pair_launch_of(struct cluster *cl, struct node *n, struct call *c, struct session_launch *l)
{
    uint64_t partner = c->to == n->id ? c->from : c->to;
    l->call.space = SPACE_PAIR;
    l->call.tag = c->pair_tag;
    l->call.known = c->known;
    l->call.world = c->world;
    l->call.receives = c->to == n->id;
    l->call.in = l->call.receives ? NULL : c->in;
    l->call.out = l->call.receives ? c->out : NULL;
    c->limit = cl->now + PAIR_LIMIT_S * CLOCK_S; /* who has no link with the other at the time does not call again */
    l->call.deadline = c->limit;
    uint32_t rank = 0;
    while (rank < c->world && session_called(n->session, rank) != partner) {
        rank++;
    }
    c->partner = rank;
    l->call.root_rank = c->any ? SESSION_ANY : rank;
    if (rank == c->world) { /* it is lost: its call is not made */
        return false;
    }
    if (c->many) {
        match_launch_of(cl, n, c, l);
    }
    return true;
}

/* ---- The oracle's side ------------------------------------------------------------------------------------------------------- */

bool pair_is_member(const struct cluster *cl, const struct node *n, uint64_t id)
{
    uint16_t of = oracle_node_of(cl, id);
    for (uint32_t i = cl->oracle.view_count; i > 0; i--) {
        const struct view_record *v = &cl->oracle.views[i - 1];
        if (v->group != n->group || !inside_same(n, v->run)) {
            continue;
        }
        for (uint32_t k = 0; k < v->members; k++) {
            if (v->ids[k] == id) {
                return of < CLUSTER_NODES && cl->nodes[of].alive && cl->nodes[of].id == id;
            }
        }
        return false;
    }
    return false;
}

static void check_content(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    static unsigned char sent[CLUSTER_BYTES + 8];
    uint16_t from = oracle_node_of(cl, c->from);
    if (from >= CLUSTER_NODES) {
        return;
    }
    program_input(cl, from, program_key(n, c->op, 0), &c->params, sent);
    if (memcmp(sent, c->out, c->out_bytes) != 0) {
        cluster_fail(cl, "G2: peer %u: message %u of step %llu from peer %u has other bytes", n->index, c->op,
                     (unsigned long long)n->program->step, from);
    }
    if (o->source != c->partner) {
        cluster_fail(cl, "peer %u: message %u is told to be from rank %u", n->index, c->op, o->source);
    }
}

/* Who takes no part may go before a message is over; of several that leave at once a view names one, the others are gone. */
bool pair_has_left(const struct cluster *cl, uint64_t id)
{
    uint16_t node = cluster_node_of(cl, id);
    return inside_has_left(cl, id) || (node != CLUSTER_NOBODY && cl->nodes[node].program->phase >= PROGRAM_LEAVING);
}

bool pair_others_doing(const struct cluster *cl, const struct session_outcome *o)
{
    return o->cause == CAUSE_PEER_LEFT || o->cause == CAUSE_REVOKED || (o->cause == CAUSE_PEER_LOST && pair_has_left(cl, o->culprit));
}

enum { TOLD_OK = 1, TOLD_ERROR = 2 };

/* What each of the two was told: first the sender, then the receiver. */
static void compare(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    struct outcome_record *r = oracle_record(cl, mix64(program_key(n, c->op, 0), 0x9A17) | 1);
    uint32_t me = c->to == n->id, other = 1 - me;
    uint8_t told = o->result == RESULT_OK ? TOLD_OK : TOLD_ERROR;
    r->told[me] = told;
    r->told_cause[me] = o->cause;
    r->told_culprit[me] = o->culprit;
    if (r->told[other] == 0) {
        return;
    }
    bool sent_ok = r->told[0] == TOLD_OK, got_ok = r->told[1] == TOLD_OK;
    bool both = pair_is_member(cl, n, c->from) && pair_is_member(cl, n, c->to);
    bool left = cl->fault_count == 0 && pair_is_member(cl, n, c->from) && pair_has_left(cl, c->to); /* B11: its last words count */
    if ((sent_ok && !got_ok) || (got_ok && !sent_ok && (both || left))) {
        cluster_fail(cl, "G1: message %u of step %llu: its sender was told %s (cause %u), its receiver %s (cause %u)", c->op,
                     (unsigned long long)n->program->step, sent_ok ? "success" : "an error", r->told_cause[0], got_ok ? "success" : "an error",
                     r->told_cause[1]);
    }
    bool same = r->told_cause[0] == r->told_cause[1] && r->told_culprit[0] == r->told_culprit[1];
    if (!sent_ok && !got_ok && both && !same) {
        cluster_fail(cl, "G1: message %u of step %llu: cause %u of %llx at its sender, %u of %llx at its receiver", c->op,
                     (unsigned long long)n->program->step, r->told_cause[0], (unsigned long long)r->told_culprit[0], r->told_cause[1],
                     (unsigned long long)r->told_culprit[1]);
    }
}

/* Another member receives from any source in this step, too.  It might send yet, so votes of all others block neither of the two. */
static bool two_receive_any(const struct cluster *cl, const struct node *n, const struct call *c)
{
    for (uint32_t i = 0; c->any && i < cl->node_count; i++) {
        const struct node *other = &cl->nodes[i];
        bool here = other != n && other->alive && other->group == n->group, beside = here && other->program->step == n->program->step;
        if (here && other->program->any_waited == n->program->step) { /* it has gone on meanwhile */
            return true;
        }
        for (uint32_t k = 0; beside && k < other->config.max_ops; k++) {
            const struct call *theirs = &other->program->call[k];
            if (theirs->any && theirs->to == other->id) {
                return true;
            }
        }
    }
    return false;
}

static struct outcome_record *line(struct cluster *cl, const struct node *n, const struct call *c)
{
    uint64_t ends = mix64(mix64(c->from, c->to), c->pair_tag);
    return oracle_record(cl, mix64(program_name(n, NAME_PAIR), ends) | 1);
}

void pair_unsaid(struct cluster *cl, const struct node *n, const struct call *c)
{
    if (c->many) {
        match_unsaid(cl, n, c);
    } else {
        line(cl, n, c)->unsaid = true;
    }
}

/* Whether it is to be called again: it was matched with nothing, or not made. */
bool pair_outcome(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    bool later = o->result == RESULT_AHEAD || o->result == RESULT_FULL;
    bool unmatched = c->any && o->source == SESSION_ANY && (o->result == RESULT_LOST || o->result == RESULT_ARGUMENT);
    bool mine = o->result == RESULT_GONE || o->result == RESULT_OVER || o->result == RESULT_ALONE || o->result == RESULT_POISONED;
    if (program_hash(c->in, c->bytes) != c->input_hash) {
        cluster_fail(cl, "G3: peer %u: what it sent was written", n->index);
    }
    cl->stats.successes += o->result == RESULT_OK;
    cl->stats.aborts += o->result == RESULT_LOST;
    if (c->many) {
        return match_outcome(cl, n, c, o);
    }
    bool limit = o->cause == CAUSE_DEADLINE && cl->now >= c->limit, nobody = limit && two_receive_any(cl, n, c);
    n->program->any_waited = nobody ? n->program->step : n->program->any_waited;
    if (limit && !nobody && cl->lies == 0) {
        cluster_fail(cl, "peer %u: message %u of step %llu, from %llx to %llx, has waited for %d s", n->index, c->op,
                     (unsigned long long)n->program->step, (unsigned long long)c->from, (unsigned long long)c->to, PAIR_LIMIT_S);
    }
    if (unmatched && (o->cause == CAUSE_BLOCKED || nobody)) {
        return false; /* all others vote, and have given up the step */
    }
    if (later || unmatched) {
        return true;
    }
    if (mine || cl->lies != 0) {
        return false;
    }
    bool matched = !line(cl, n, c)->unsaid;
    if (matched && o->result == RESULT_OK && c->odd) {
        cluster_fail(cl, "peer %u: message %u succeeded with a count that differs from the other's", n->index, c->op);
    }
    if (matched && o->result == RESULT_OK && c->to == n->id) {
        check_content(cl, n, c, o);
    }
    if (!pair_others_doing(cl, o)) {
        oracle_calm(cl, n, c, o);
    }
    if (matched) {
        compare(cl, n, c, o);
    }
    return false;
}
