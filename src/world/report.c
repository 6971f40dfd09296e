/* report.c - what the survivors of a view report about its operations, and what is decided on each (M3).
 *
 * All lists are merged as they come in; the decision then looks at one record per operation.
 * A mismatch names two members, the second being the culprit: of a refusal as it was listed, else of the first two reports that
 * differ.  Whoever lists more than an honest member can loses its place; so nobody fills the table for the others.
 * Invariant: the records hold reports of the current attempt only (M2); an operation has one record.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/mix.h"
#include "world/world_state.h"
#include "world/member_read.h"
#include "world/report.h"
#include "world/view_read.h"

bool report_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view, uint32_t attempt)
{
    return member_accepted_in(w, mb, g) && g->phase == GROUP_FREEZING && !mb->reported && view == g->views[g->current].view &&
           attempt == g->attempt;
}

/* The place in the index where the operation is, or would go. */
static uint32_t index_place(const struct world *w, const struct group *g, const struct op_name *name)
{
    uint64_t h = mix64(mix64(w->common->config.seed, name->tag), name->seq | (uint64_t)name->space << 32);
    uint32_t at = (uint32_t)mix64(mix64(h, name->from), name->to) & (g->index_size - 1); /* all pairs may use the same tags and numbers */
    while (g->record_index[at] != 0) {
        const struct op_record *known = &g->records[g->record_index[at] - 1];
        if (op_name_equal(&known->name, name)) {
            break;
        }
        at = (at + 1) & (g->index_size - 1);
    }
    return at;
}

void report_index(const struct world *w, struct group *g)
{
    memset(g->record_index, 0, g->index_size * sizeof *g->record_index);
    for (uint32_t i = 0; i < g->record_count; i++) {
        g->record_index[index_place(w, g, &g->records[i].name)] = i + 1;
    }
}

void report_reset(const struct world *w, struct group *g)
{
    uint32_t kept = 0, clashes = 0;
    struct op_clash clash[BOUNDS_CLASHES];
    for (uint32_t i = 0; g->last_words == view_current(g)->view && i < g->record_count; i++) {
        const struct op_record *rec = &g->records[i];
        if (rec->last_word) {
            if (rec->clash != 0) {
                clash[clashes++] = g->clash[rec->clash - 1];
            }
            g->records[kept++] = (struct op_record){.name = rec->name, .refused = rec->refused, .culprit = rec->culprit, .finished = rec->finished,
                                                    .clash = (uint8_t)(rec->clash != 0 ? clashes : 0), .last_word = true};
        }
    }
    g->record_count = kept;
    g->waited = 0;
    g->clashes = clashes;
    memcpy(g->clash, clash, clashes * sizeof clash[0]);
    report_index(w, g);
}

/* The record of an operation, made if it is new and they are not that many yet, else null. */
static struct op_record *report_find(const struct world *w, struct group *g, const struct op_name *name, uint32_t most)
{
    uint32_t at = index_place(w, g, name);
    if (g->record_index[at] != 0) {
        return &g->records[g->record_index[at] - 1];
    }
    if (g->record_count >= most || g->record_count >= g->size.records) {
        return NULL;
    }
    struct op_record *rec = &g->records[g->record_count++];
    *rec = (struct op_record){.name = *name};
    g->record_index[at] = g->record_count;
    return rec;
}

static bool graver(const struct op_report *a, const struct op_record *b)
{
    return MUTANT(CAUSE_MILD) ? b->refused == 0 || a->cause < b->refused
                              : cause_outweighs(a->cause, a->culprit, b->refused, b->culprit);
}

/* Keeps whose calls differ; there is room for a few. */
static void clash_note(struct group *g, struct op_record *rec, const struct op_clash *clash)
{
    if (clash->id[1] == 0 || (rec->clash == 0 && g->clashes == BOUNDS_CLASHES)) {
        return;
    }
    rec->clash = rec->clash != 0 ? rec->clash : (uint8_t)++g->clashes;
    g->clash[rec->clash - 1] = *clash;
}

/* What each of the two has called is in its own report. */
static void clash_find(struct group *g, struct op_record *rec, uint64_t id, const struct op_params *call)
{
    bool later = rec->caller < id;
    struct op_clash clash = {.id = {later ? rec->caller : id, later ? id : rec->caller},
                             .params = {later ? rec->call : *call, later ? *call : rec->call}};
    rec->params_differ = true;
    rec->culprit = clash.id[1];
    clash_note(g, rec, &clash);
}

static void report_merge(struct group *g, struct op_record *rec, uint64_t id, const struct op_report *rep,
                         const struct op_clash *clash)
{
    if (rep->state == OP_REFUSED) {
        if (graver(rep, rec)) {
            rec->refused = rep->cause;
            rec->culprit = rep->culprit;
            rec->clash = 0;
        }
        if (rec->clash == 0 && rep->cause == rec->refused && rep->culprit == rec->culprit) {
            clash_note(g, rec, clash); /* a member that had no memory to learn it may have reported first */
        }
        return; /* never launched there, perhaps: it knows neither parameters nor a digest */
    }
    if (rec->params == 0) {
        rec->params = rep->params;
        rec->caller = id;
        rec->call = rep->call;
    }
    if (rec->params != rep->params && rec->refused == 0 && !rec->params_differ) {
        clash_find(g, rec, id, &rep->call);
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

static bool refuses(const struct op_report *rep)
{
    return rep->cause >= CAUSE_DEADLINE && rep->cause <= CAUSE_OLD_VIEW;
}

/* An entry, with whose calls differ behind it if that is its cause. */
static bool read_entry(struct reader *r, struct op_report *rep, struct op_clash *clash)
{
    *clash = (struct op_clash){0};
    return get_op_report(r, rep) && (rep->state != OP_REFUSED || rep->cause != CAUSE_MISMATCH || get_op_clash(r, clash));
}

enum { REPORT_HEARD = 8 }; /* what a member only heard to be refused makes a record while less than this part of them is in use */

enum report_verdict report_take(struct world *w, struct group *g, struct member *mb, const struct msg_frozen *f,
                                struct reader *r)
{
    uint32_t launched = 0, unfinished = 0;
    for (uint32_t i = 0; i < f->reports; i++) {
        struct op_report rep;
        struct op_clash clash;
        if (!read_entry(r, &rep, &clash)) {
            return REPORT_WRONG;
        }
        bool pair = space_pairs(rep.name.space), receives = pair && rep.name.to == mb->id;
        if (pair && ((!receives && rep.name.from != mb->id) || rep.state == OP_HELD || (rep.state == OP_FINISHED && !receives))) {
            return REPORT_WRONG; /* B1, B8 */
        }
        bool called = rep.state != OP_REFUSED || rep.params != 0, waits = called && rep.state != OP_FINISHED;
        launched += called;
        unfinished += waits;
        if ((rep.state == OP_REFUSED && !refuses(&rep)) || unfinished > BOUNDS_OPS ||
            launched > BOUNDS_OPS + BOUNDS_RECORDS) {
            return REPORT_WRONG;
        }
        if (MUTANT(VOTER_EMPTY) && mb->vote.kind != VOTE_NONE) {
            continue;
        }
        uint32_t room = w->common->config.max_operations;
        struct op_record *rec = report_find(w, g, &rep.name, called ? room : room / REPORT_HEARD);
        if (rec == NULL && !called) {
            continue; /* all who have not launched it owe it to their calls by themselves */
        }
        if (rec != NULL && rec->last == mb->id) {
            return REPORT_WRONG; /* listed twice */
        }
        if (rec == NULL && g->record_count < room) {
            return REPORT_NO_MEMORY;
        }
        bool decides = waits && rec != NULL && !rec->waited;
        if (rec == NULL || (decides && g->waited == common_decisions(&w->common->config))) {
            return REPORT_FULL;
        }
        g->waited += decides;
        rec->waited = rec->waited || waits;
        report_merge(g, rec, mb->id, &rep, &clash);
        rec->last = mb->id;
    }
    return reader_done(r) ? REPORT_TAKEN : REPORT_WRONG;
}

bool report_last_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view)
{
    return member_accepted_in(w, mb, g) && view == g->views[g->current].view;
}

bool report_last_words(struct world *w, struct group *g, struct member *mb, uint32_t reports, struct reader *r)
{
    uint64_t view = view_current(g)->view;
    if (g->last_words != view && !view_ending(g)) {
        report_reset(w, g); /* what lies there is of the view before */
    }
    g->last_words = view;
    for (uint32_t i = 0; i < reports; i++) {
        struct op_report rep;
        struct op_clash clash;
        bool good = read_entry(r, &rep, &clash);
        if (!good || !space_pairs(rep.name.space) || rep.name.to != mb->id ||
            (rep.state == OP_REFUSED ? !refuses(&rep) : rep.state != OP_FINISHED)) {
            return false;
        }
        struct op_record *rec = report_find(w, g, &rep.name, w->common->config.max_operations / 2);
        if (rec != NULL) { /* else its sender hears of a loss, as if it had died */
            report_merge(g, rec, mb->id, &rep, &clash);
            rec->last_word = true;
        }
    }
    return reader_done(r);
}

/* M3, the table. */
static struct op_decision decide(const struct group *g, const struct op_record *rec)
{
    struct op_decision d = {.name = rec->name, .outcome = OUTCOME_ABORT, .cause = g->cause,
                            .culprit = g->culprit};
    bool held_by_all = rec->holders == g->survivors;
    bool all_list_it = MUTANT(LISTALL) || (MUTANT(VETO) && space_pairs(rec->name.space));
    bool finished = all_list_it ? rec->finished && held_by_all : rec->finished;
    held_by_all = held_by_all && !space_pairs(rec->name.space); /* B9: only who receives holds, and has finished then */
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
        d.culprit = rec->culprit;
    } else if (rec->digests_differ) {
        d.cause = CAUSE_DIGEST;
        d.culprit = g->cause == CAUSE_DIGEST ? g->culprit : 0; /* not whose loss ended the view */
    } else if (g->cause == CAUSE_MISMATCH || g->cause == CAUSE_DIGEST) { /* of another one, or with who has left: call again */
        d.cause = CAUSE_CANCEL;
        d.culprit = 0;
    }
    return d;
}

void report_decide(struct world *w, struct group *g, struct view_record *next)
{
    bool all = g->record_count <= common_decisions(&w->common->config);
    next->decisions = next->clashes = 0;
    for (uint32_t i = 0; i < g->record_count; i++) {
        const struct op_record *rec = &g->records[i];
        if (!all && !rec->waited) {
            continue;
        }
        uint32_t at = next->decisions++;
        next->decision[at] = decide(g, rec);
        if (next->decision[at].cause == CAUSE_MISMATCH && rec->clash != 0) {
            next->clash[next->clashes++] = (struct decision_clash){.decision = at, .clash = g->clash[rec->clash - 1]};
        }
    }
}
