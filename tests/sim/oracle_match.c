/* oracle_match.c - what must hold of the messages that one receiver takes from several sources on one tag (B12, B13).
 *
 * One idea: each message says who sent it as which call, so that what has come tells the number of its receive.  Of each source the
 * k-th message that has a number is for the k-th receive that was matched with it, in the order of calls, and both end alike.  A
 * receive from a named source that was given up in the line has no number; where nobody can know whether it had one, both are allowed.
 * Invariant: looked at when each receive that was called has ended.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "program.h"

enum { NOT_COME = 0xFFFFFFFF };

/* What is owed, and what was refused, ends with the answer to a sync: each side of it is a record. */
static uint64_t record_key(const struct node *n, const struct call *c)
{
    return mix64(mix64(program_name(n, NAME_LINE), c->to), c->op < n->program->sync_at);
}

static struct match_record *record_of(struct cluster *cl, uint64_t key)
{
    struct oracle *o = &cl->oracle;
    for (uint32_t i = o->match_count; i > 0; i--) {
        if (o->matches[i - 1].key == key) {
            return &o->matches[i - 1];
        }
    }
    o->matches = cluster_grow(o->matches, &o->match_capacity, o->match_count + 1, sizeof *o->matches);
    o->matches[o->match_count] = (struct match_record){.key = key};
    return &o->matches[o->match_count++];
}

void match_launched(struct cluster *cl, const struct node *n, struct call *c)
{
    if (!c->many) {
        return;
    }
    const struct match *m = &n->program->match;
    struct match_record *r = record_of(cl, record_key(n, c));
    bool receives = c->to == n->id;
    uint32_t *count = receives ? &r->receives : &r->sends;
    if (*count == MATCH_RECORDS) {
        r->loose = true; /* more calls were made again than there is room for */
        return;
    }
    c->at = *count;
    struct match_call *e = &(receives ? r->receive : r->send)[(*count)++];
    *e = (struct match_call){.source = c->any ? 0 : c->from, .op = (uint8_t)c->op, .any = c->any, .slot = c->slot, .come = NOT_COME};
    for (uint32_t i = 0; receives && i < c->at; i++) {
        e->behind = e->behind || (r->receive[i].any && r->receive[i].end == MATCH_OPEN);
    }
    for (uint32_t s = 0; s < m->sources && c->any; s++) {
        while (e->rank[s] < c->world && session_called(n->session, e->rank[s]) != m->source[s]) {
            e->rank[s]++;
        }
    }
}

/* Its call was not made: of a table that could not grow, before or after it had its number. */
void match_unsaid(struct cluster *cl, const struct node *n, const struct call *c)
{
    record_of(cl, record_key(n, c))->loose = true;
}

/* ---- how one has ended ------------------------------------------------------------------------------------------------------- */

/* One from any source before it has not ended: it may have stood behind that one until it ended itself. */
static bool in_line(const struct node *n, const struct match_record *r, const struct match_call *e)
{
    bool waits = false;
    for (const struct match_call *b = r->receive; b < e; b++) {
        waits = waits || (b->any && b->end == MATCH_OPEN && !n->run[b->slot].returned);
    }
    return waits;
}

static enum match_end end_of(const struct node *n, const struct match_call *e, bool receives, const struct session_outcome *o)
{
    bool later = o->result == RESULT_AHEAD || o->result == RESULT_FULL;
    bool gone = o->result == RESULT_GONE || o->result == RESULT_OVER || o->result == RESULT_ALONE || o->result == RESULT_POISONED;
    if (o->result == RESULT_OK || gone) {
        return gone ? MATCH_GONE : MATCH_OK;
    }
    if (later || (e->any && o->source == SESSION_ANY)) {
        return MATCH_VOID;
    }
    if (!receives || e->any) {
        return MATCH_ERROR;
    }
    bool own = o->culprit == n->id || o->cause == CAUSE_BLOCKED, lost = o->cause == CAUSE_PEER_LOST && o->culprit == e->source;
    return (e->behind && own) || lost ? MATCH_MAYBE : MATCH_ERROR;
}

static void count(struct cluster *cl, const struct node *n, const struct match_call *e, bool alone, const struct session_outcome *o)
{
    bool given_up = o->cause == CAUSE_DEADLINE || o->cause == CAUSE_CANCEL || o->cause == CAUSE_ARGUMENT;
    enum match_kind kind = e->any ? MATCH_FROM_ANY : e->behind ? MATCH_BEHIND : MATCH_AT_ONCE;
    enum match_told told = o->result == RESULT_OK ? MATCH_TOLD_OK : o->cause == CAUSE_BLOCKED ? MATCH_TOLD_BLOCKED
                           : !given_up ? MATCH_TOLD_LOST : alone ? MATCH_TOLD_ALONE
                           : o->culprit == n->id ? MATCH_TOLD_OWN : MATCH_TOLD_SOURCE;
    cl->stats.match[kind][told]++;
}

static bool content_is(const struct cluster *cl, const struct node *n, const struct call *c, const struct match_call *send)
{
    static unsigned char sent[CLUSTER_BYTES + 8];
    uint16_t from = oracle_node_of(cl, send->source);
    uint64_t word = match_word(n, from, send->op);
    if (from >= CLUSTER_NODES || memcmp(&word, c->out, sizeof word) != 0) {
        return false;
    }
    program_input(cl, from, program_key(n, send->op, 0), &c->params, sent);
    memcpy(sent, &word, sizeof word);
    return memcmp(sent, c->out, c->out_bytes) == 0;
}

static void has_come(struct cluster *cl, const struct node *n, const struct call *c, struct match_record *r, struct match_call *e)
{
    uint32_t i = 0;
    while (i < r->sends && (r->send[i].end == MATCH_VOID || !content_is(cl, n, c, &r->send[i]))) {
        i++;
    }
    if (i == r->sends || r->send[i].come != NOT_COME || r->send[i].source != e->source) {
        cluster_fail(cl, "G2: peer %u: receive %u of step %llu has %s", n->index, c->op, (unsigned long long)n->program->step,
                     i == r->sends ? "bytes that nobody sent" : r->send[i].come != NOT_COME ? "what another one has" : "another source's");
        return;
    }
    e->come = i;
    r->send[i].come = c->at;
}

/* ---- all of a receiver -------------------------------------------------------------------------------------------------------- */

/* Which of its source's messages it is; void ones have no number. */
static uint32_t number_of(const struct match_record *r, uint32_t send)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < send; i++) {
        number += r->send[i].source == r->send[send].source && r->send[i].end != MATCH_VOID;
    }
    return number;
}

static const struct match_call *numbered(const struct match_record *r, uint64_t source, uint32_t number)
{
    for (uint32_t i = 0; i < r->sends; i++) {
        if (r->send[i].source == source && r->send[i].end != MATCH_VOID && number_of(r, i) == number) {
            return &r->send[i];
        }
    }
    return NULL;
}

static void alike(struct cluster *cl, const struct node *n, uint64_t to, const struct match_call *send, const struct match_call *receive)
{
    bool got = receive->end == MATCH_OK, sent = send != NULL && send->end == MATCH_OK;
    if (send == NULL || (send->end != MATCH_OK && send->end != MATCH_ERROR)) {
        return;
    }
    bool both = pair_is_member(cl, n, send->source) && pair_is_member(cl, n, to);
    bool left = cl->fault_count == 0 && pair_is_member(cl, n, send->source) && pair_has_left(cl, to);
    bool same = send->cause == receive->cause && send->culprit == receive->culprit;
    if ((sent && !got) || (got && !sent && (both || left)) || (!sent && !got && both && !same)) {
        cluster_fail(cl, "G1: message %u of step %llu from %llx: its sender was told %s (cause %u of %llx), receive %u %s (cause %u of %llx)",
                     send->op, (unsigned long long)n->program->step, (unsigned long long)send->source, sent ? "success" : "an error",
                     send->cause, (unsigned long long)send->culprit, receive->op, got ? "success" : "an error", receive->cause,
                     (unsigned long long)receive->culprit);
    }
}

static void check_source(struct cluster *cl, const struct node *n, uint64_t to, const struct match_record *r, uint64_t source)
{
    uint32_t least = 0, most = 0; /* of its messages so many have ended a receive */
    for (uint32_t i = 0; i < r->receives; i++) {
        const struct match_call *e = &r->receive[i];
        uint32_t number = e->come == NOT_COME ? 0 : number_of(r, e->come);
        if (e->source != source) {
            continue;
        }
        if (e->end == MATCH_OK && (number < least || number > most)) {
            cluster_fail(cl, "B13: receive %u of step %llu has message %u of %llx, of which %u to %u before it have ended one", e->op,
                         (unsigned long long)n->program->step, number, (unsigned long long)source, least, most);
        } else if (e->end == MATCH_OK || (e->end == MATCH_ERROR && least == most)) {
            alike(cl, n, to, e->end == MATCH_OK ? &r->send[e->come] : numbered(r, source, least), e);
        }
        least = e->end == MATCH_OK ? number + 1 : least + (e->end == MATCH_ERROR);
        most = e->end == MATCH_OK ? number + 1 : most + (e->end == MATCH_ERROR || e->end == MATCH_MAYBE);
    }
}

/* A receive from any source may not wait where a message has failed that ends it. */
static void check_waited(struct cluster *cl, const struct node *n, const struct match_record *r, const struct match_call *e)
{
    const struct match *m = &n->program->match;
    int64_t before = e->ended - CLOCK_S - 10 * (cl->opt.latency_ns + cl->opt.jitter_ns);
    for (uint32_t s = 0; s < m->sources && pair_is_member(cl, n, m->source[s]); s++) {
        uint32_t failed = 0, taken = 0;
        for (uint32_t i = 0; i < r->sends; i++) {
            failed += r->send[i].source == m->source[s] && r->send[i].end == MATCH_ERROR && r->send[i].ended < before;
        }
        for (uint32_t i = 0; i < r->receives; i++) {
            taken += r->receive[i].source == m->source[s] && r->receive[i].end != MATCH_OK;
        }
        if (failed > taken) {
            cluster_fail(cl, "B13: receive %u of step %llu has waited, but of %llx %u messages had failed, and %u have ended one", e->op,
                         (unsigned long long)n->program->step, (unsigned long long)m->source[s], failed, taken);
        }
    }
}

static void check(struct cluster *cl, const struct node *n, uint64_t to, const struct match_record *r)
{
    const struct match *m = &n->program->match;
    for (uint32_t i = 0; i < r->receives; i++) {
        if (r->receive[i].end == MATCH_OPEN || r->receive[i].end == MATCH_GONE) {
            return;
        }
    }
    for (uint32_t s = 0; s < m->sources; s++) {
        check_source(cl, n, to, r, m->source[s]);
    }
    for (uint32_t i = 0; i < r->receives && n->id == to; i++) {
        if (r->receive[i].any && r->receive[i].end == MATCH_VOID && r->receive[i].cause == CAUSE_BLOCKED) {
            check_waited(cl, n, r, &r->receive[i]);
        }
    }
    for (uint32_t i = 0; i < r->sends && pair_is_member(cl, n, to); i++) {
        if (r->send[i].end == MATCH_OK && r->send[i].come == NOT_COME) {
            cluster_fail(cl, "G1: message %u of step %llu has come, its sender was told, but no receive has it", r->send[i].op,
                         (unsigned long long)n->program->step);
        }
    }
}

/* A source that has left took with it what its failed messages owed to the line. */
static bool sources_stay(const struct cluster *cl, const struct node *n)
{
    const struct match *m = &n->program->match;
    uint32_t s = 0;
    while (s < m->sources && pair_is_member(cl, n, m->source[s])) {
        s++;
    }
    return s == m->sources;
}

/* Where each receive gets a message, whatever comes first, and nothing goes wrong, none is left over. */
static void calm(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    const struct match *m = &n->program->match;
    bool still = process_calm(cl, n) && n->program->inside == 0 && n->windows == NULL && cl->opt.rate == 0;
    if (m->sure && still && sources_stay(cl, n) && (o->cause == CAUSE_BLOCKED || o->cause == CAUSE_DEADLINE)) {
        cluster_fail(cl, "peer %u: message %u of step %llu was left over, of as many sent as received", n->index, c->op,
                     (unsigned long long)n->program->step);
    } else if (m->sure && !pair_others_doing(cl, o)) {
        oracle_calm(cl, n, c, o);
    }
}

bool match_outcome(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    struct match *m = &n->program->match;
    struct match_record *r = record_of(cl, record_key(n, c));
    bool receives = c->to == n->id, later = o->result == RESULT_AHEAD || o->result == RESULT_FULL;
    if (r->loose || cl->lies != 0 || c->at == MATCH_RECORDS) {
        r->loose = true;
        return later;
    }
    struct match_call *e = &(receives ? r->receive : r->send)[c->at];
    for (uint32_t s = 0; s < m->sources && e->any && o->source != SESSION_ANY; s++) {
        e->source = o->source == e->rank[s] ? m->source[s] : e->source;
    }
    e->end = end_of(n, e, receives, o);
    e->cause = o->cause;
    e->culprit = o->culprit;
    e->ended = cl->now;
    if (o->result == RESULT_OK && c->odd) {
        cluster_fail(cl, "peer %u: message %u succeeded with a count that differs from the other's", n->index, c->op);
    } else if (receives && o->result == RESULT_OK) {
        has_come(cl, n, c, r, e);
    }
    bool alone = receives && (e->end == MATCH_VOID || (e->end == MATCH_MAYBE && in_line(n, r, e)));
    if (receives && e->end != MATCH_GONE && !later) {
        count(cl, n, e, alone, o);
    }
    calm(cl, n, c, o);
    if (!cl->failed) {
        check(cl, n, c->to, r);
    }
    bool in_vain = o->cause == CAUSE_DEADLINE && cl->now >= c->limit; /* its source is lost, and the others wait for this one in a call of all */
    bool again = alone && m->sure && o->cause != CAUSE_BLOCKED && !in_vain;
    m->again |= again && !later ? 1u << c->op : 0;
    return later || again;
}

/* ---- what there has been ------------------------------------------------------------------------------------------------------ */

uint32_t match_print(const struct stats *s)
{
    static const char *const kinds[] = {"from any source", "named, at once", "named, behind any"};
    uint32_t empty = 0;
    printf("receives in lines: success, lost, blocked by a vote, given up in the line, when matched, by the source\n");
    for (uint32_t k = 0; k < MATCH_KINDS; k++) {
        printf("%-18s", kinds[k]);
        for (uint32_t t = 0; t < MATCH_TOLD; t++) {
            printf("%9" PRIu64, s->match[k][t]);
            empty += s->match[k][t] == 0 && !(k == MATCH_AT_ONCE && t == MATCH_TOLD_ALONE); /* it does not stand in a line */
        }
        printf("\n");
    }
    return empty;
}
