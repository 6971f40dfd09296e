/* report.c - what the survivors of a view report about its operations, and what is decided on each (M3).
 *
 * All lists are merged as they come in; the decision then looks at one record per operation.
 * Invariant: the records hold reports of the current attempt only (M2); an operation has one record.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/mix.h"
#include "master/master_state.h"

void report_reset(struct group *g)
{
    if (g->record_count > 0) {
        memset(g->record_index, 0, g->index_size * sizeof *g->record_index);
    }
    g->record_count = 0;
}

/* The record of an operation, made if it is new; null if there is no room. */
static struct op_record *report_find(const struct master *m, struct group *g, uint64_t tag, uint32_t seq)
{
    uint32_t at = (uint32_t)mix64(mix64(m->config.seed, tag), seq) & (g->index_size - 1);
    for (; g->record_index[at] != 0; at = (at + 1) & (g->index_size - 1)) {
        struct op_record *known = &g->records[g->record_index[at] - 1];
        if (known->tag == tag && known->seq == seq) {
            return known;
        }
    }
    if (g->record_count >= m->config.max_operations) {
        return NULL;
    }
    struct op_record *rec = &g->records[g->record_count++];
    *rec = (struct op_record){.tag = tag, .seq = seq};
    g->record_index[at] = g->record_count;
    return rec;
}

static bool graver(const struct op_report *a, const struct op_record *b)
{
    return MUTANT(CAUSE_MILD) ? b->refused == 0 || a->cause < b->refused
                              : cause_outweighs(a->cause, a->culprit, b->refused, b->culprit);
}

static void report_merge(struct op_record *rec, const struct op_report *rep)
{
    if (rep->state == OP_REFUSED) {
        if (graver(rep, rec)) {
            rec->refused = rep->cause;
            rec->culprit = rep->culprit;
        }
        return; /* never launched there, perhaps: it knows neither parameters nor a digest */
    }
    if (rec->params == 0) {
        rec->params = rep->params;
    }
    rec->params_differ = rec->params_differ || rec->params != rep->params;
    if (rep->state == OP_RUNNING) {
        return;
    }
    rec->holders++;
    rec->finished = rec->finished || rep->state == OP_FINISHED;
    if (!rec->has_digest) {
        rec->has_digest = true;
        rec->digest = rep->digest;
    }
    rec->digests_differ = rec->digests_differ || rec->digest != rep->digest;
}

bool report_take(struct master *m, struct group *g, struct member *mb, const struct msg_frozen *f, struct reader *r)
{
    for (uint32_t i = 0; i < f->reports; i++) {
        struct op_report rep;
        if (!get_op_report(r, &rep)) {
            return false;
        }
        bool refused_cause = rep.cause >= CAUSE_DEADLINE && rep.cause <= CAUSE_INTERNAL;
        if (rep.state == OP_REFUSED && !refused_cause) {
            return false;
        }
        if (MUTANT(VOTER_EMPTY) && mb->vote.kind != VOTE_NONE) {
            continue;
        }
        struct op_record *rec = report_find(m, g, rep.tag, rep.seq);
        if (rec == NULL || rec->last == mb->id) { /* more than fits any honest run, or listed twice */
            return false;
        }
        report_merge(rec, &rep);
        rec->last = mb->id;
    }
    return reader_done(r);
}

/* M3, the table. */
static struct op_decision decide(const struct group *g, const struct op_record *rec)
{
    struct op_decision d = {.tag = rec->tag, .seq = rec->seq, .outcome = OUTCOME_ABORT, .cause = g->cause,
                            .culprit = g->culprit};
    bool held_by_all = rec->holders == g->survivors;
    bool finished = MUTANT(LISTALL) ? rec->finished && held_by_all : rec->finished;
    if (rec->refused != 0 && !MUTANT(REFUSE_ABORTS)) { /* 0: refused at any survivor */
        d.outcome = OUTCOME_REFUSED;
        d.cause = rec->refused;
        d.culprit = rec->culprit;
    } else if (rec->refused == 0 && finished) { /* 1: finished at any survivor */
        d.outcome = OUTCOME_COMMIT;
        d.cause = CAUSE_NONE;
        d.culprit = 0;
    } else if (rec->refused == 0 && held_by_all && !rec->params_differ && !rec->digests_differ) { /* 2 */
        d.outcome = OUTCOME_COMMIT;
        d.cause = CAUSE_NONE;
        d.culprit = 0;
    } else if (rec->params_differ) { /* 3: the cause sets the code on all */
        d.cause = CAUSE_MISMATCH;
    } else if (rec->digests_differ) {
        d.cause = CAUSE_DIGEST;
    }
    return d;
}

void report_decide(struct master *m, struct group *g, struct view_record *next)
{
    PCCL_ASSERT(g->record_count <= m->config.max_operations);
    for (uint32_t i = 0; i < g->record_count; i++) {
        next->decision[i] = decide(g, &g->records[i]);
    }
    next->decisions = g->record_count;
}
