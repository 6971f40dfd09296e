/* program.c - the flow of one process: which call comes next, and what an error leads to.
 *
 * One idea: a state machine that runs when one of its calls has ended, and blocks by returning.
 * Invariant: what it does next depends on the seed, the group, the step and on outcomes that all members share; never on time.
 * SPDX-License-Identifier: MIT */
#include "peer_probe.h"
#include "sim_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_WAKE_NS = 20000, PROGRAM_PAUSE_NS = 50000000 };

static void program_wake(struct cluster *cl, struct node *n, int64_t delay)
{
    cluster_post(cl, delay, EVENT_PROGRAM, n->index, 0, 0, 0);
}

static void program_go(struct node *n, enum program_phase phase)
{
    n->program->phase = phase;
}

struct program *program_new(struct cluster *cl, struct node *n)
{
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL) {
        abort();
    }
    p->call = calloc(n->config.max_ops, sizeof *p->call);
    if (p->call == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        p->call[i].node = n;
        p->call[i].slot = i;
    }
    n->program = p;
    program_state_init(cl, n);
    return p;
}

void program_free(struct node *n)
{
    struct program *p = n->program;
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        free(p->call[i].in);
        free(p->call[i].out);
        free(p->call[i].scratch);
        free(p->call[i].lists);
    }
    program_state_free(p);
    free(p->call);
    free(p);
}

bool program_ended(const struct node *n)
{
    return n->program->phase == PROGRAM_ENDED;
}

void program_describe(const struct node *n, char *out, size_t size)
{
    static const char *const names[] = {"starts", "connects", "updates", "reads sizes", "optimises", "aligns", "syncs",
                                        "reduces", "leaves", "ended"};
    const struct program *p = n->program;
    struct session_wait waits[3];
    char who[120] = "";
    uint32_t count = session_waits(n->session, waits, 3);
    for (uint32_t i = 0; i < count && i < 3; i++) {
        size_t used = strlen(who);
        snprintf(who + used, sizeof who - used, " [tag %llu %s of %llx]", (unsigned long long)waits[i].name.tag, waits[i].phase,
                 (unsigned long long)waits[i].peer);
    }
    snprintf(out, size, "%s, step %llu attempt %u, vote %u%s%s, waits%s", names[p->phase], (unsigned long long)p->step,
             p->attempt, p->vote, program_idle(n) ? "" : ", calls pending", n->frozen ? ", stopped" : "", who);
}

void program_wish(struct node *n, enum fault_kind kind)
{
    struct program *p = n->program;
    p->want_cancel += kind == FAULT_CANCEL ? 3 : 0;
    p->want_deadline += kind == FAULT_DEADLINE ? 3 : 0;
    p->want_mismatch = p->want_mismatch || kind == FAULT_MISMATCH;
    p->want_no_memory = p->want_no_memory || kind == FAULT_MEMORY;
    p->want_drift = p->want_drift || kind == FAULT_DRIFT;
    p->want_stale = p->want_stale || kind == FAULT_STALE;
    p->leave = p->leave || kind == FAULT_LEAVE;
    p->want_vote = p->want_vote || kind == FAULT_VOTE;
}

/* ---- what the session tells ----------------------------------------------------------------------------------------- */
void program_op_returned(struct cluster *cl, struct node *n, uint32_t slot)
{
    (void)slot;
    program_wake(cl, n, PROGRAM_WAKE_NS);
}

void program_voted(struct cluster *cl, struct node *n)
{
    if (n->program->vote == 0) {
        cluster_fail(cl, "peer %u: a vote ended that nobody cast", n->index);
    }
    n->program->vote_done = true;
    n->elected = false;
    program_wake(cl, n, PROGRAM_WAKE_NS);
}

void program_connected(struct cluster *cl, struct node *n)
{
    n->program->connect_done = true;
    program_wake(cl, n, PROGRAM_WAKE_NS);
}

void program_left(struct cluster *cl, struct node *n)
{
    program_wake(cl, n, PROGRAM_WAKE_NS);
}

/* ---- votes ---------------------------------------------------------------------------------------------------------- */
/* Casts the vote, or takes its result; false: still open. */
bool program_vote(struct cluster *cl, struct node *n, uint8_t kind, struct session_outcome *out)
{
    struct program *p = n->program;
    if (p->vote == 0) {
        struct msg_vote vote = {.kind = kind};
        if (kind == VOTE_SYNC) {
            program_state_vote(cl, n, &vote);
        }
        struct session_event e = {.kind = SESSION_VOTE, .vote = &vote, .state = kind == VOTE_SYNC ? &p->state : NULL};
        p->vote = kind;
        p->vote_done = false;
        node_step(cl, n, &e);
        if (e.outcome.result == RESULT_PENDING) {
            return false;
        }
        p->vote = 0;
        *out = e.outcome;
    } else if (!p->vote_done) {
        return false;
    } else {
        struct session_event e = {.kind = SESSION_COLLECT_VOTE};
        struct session_info before, after;
        session_info(n->session, &before);
        node_step(cl, n, &e);
        session_info(n->session, &after);
        if (kind == VOTE_QUERY && memcmp(&before.snapshot, &after.snapshot, sizeof before.snapshot) != 0) {
            cluster_fail(cl, "P11: peer %u: the answer to a query changed the sizes", n->index);
        }
        p->vote = 0;
        p->vote_done = false;
        *out = e.outcome;
        cl->stats.votes++;
    }
    if (n->poisoned && out->result == RESULT_POISONED) {
        out->result = RESULT_GONE; /* as was wished: connects again */
    }
    if (out->result == RESULT_PENDING_OPS) {
        cluster_fail(cl, "peer %u: a vote met pending operations, but all were awaited", n->index);
    }
    cluster_trace(cl, n->index, "vote ended", kind, (uint64_t)out->result);
    return true;
}

static void program_sizes(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    p->sizes = info.snapshot;
    oracle_world(cl, n, &info.snapshot);
    cluster_trace(cl, n->index, "sizes", (uint64_t)info.snapshot.global << 32 | info.snapshot.group,
                  (uint64_t)info.snapshot.groups << 32 | info.snapshot.largest);
    p->sizes_hash = mix64(mix64(info.snapshot.global, info.snapshot.group), mix64(info.snapshot.groups, info.snapshot.largest));
}

/* Out of the run: connects again, a few times. */
static void program_rejoin(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    if (p->inside != 0) {
        inside_leave(cl, n);
        return;
    }
    p->step = 0;
    p->attempt = p->align_attempt = 0;
    p->query_asked = false;
    bool over = cl->healed && cl->master.gone; /* nobody is there to join */
    if (p->leave || over || p->connects > 8) {
        program_go(n, PROGRAM_LEAVING);
        program_wake(cl, n, 0);
        return;
    }
    program_go(n, PROGRAM_START);
    program_wake(cl, n, PROGRAM_PAUSE_NS);
}

/* ---- one turn of each phase; true: go on at once -------------------------------------------------------------------- */
bool program_connect(struct cluster *cl, struct node *n, struct session_outcome *out)
{
    struct program *p = n->program;
    if (p->phase == PROGRAM_START) {
        struct session_event e = {.kind = SESSION_CONNECT};
        p->connects++;
        p->connect_done = false;
        poison_renew(cl, n);
        program_go(n, PROGRAM_CONNECTING);
        node_step(cl, n, &e);
        if (e.outcome.result != RESULT_PENDING) {
            *out = e.outcome;
            return true;
        }
    }
    if (!p->connect_done) {
        return false;
    }
    struct session_event e = {.kind = SESSION_COLLECT_CONNECT};
    node_step(cl, n, &e);
    p->connect_done = false;
    cluster_trace(cl, n->index, "connect ended", (uint64_t)e.outcome.result, 0);
    *out = e.outcome;
    return true;
}

static bool turn_connect(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_outcome o;
    if (!program_connect(cl, n, &o)) {
        return false;
    }
    if (o.result != RESULT_OK) {
        program_rejoin(cl, n);
        return false;
    }
    p->first = true;
    bool updates = mix64(mix64(cl->opt.seed, n->index), p->connects) % 100 < cl->opt.update_first_percent; /* both ways to write the loop */
    program_go(n, updates ? PROGRAM_UPDATE : PROGRAM_SIZES);
    return true;
}

static bool turn_update(struct cluster *cl, struct node *n)
{
    struct session_outcome o;
    if (n->program->vote == 0) {
        probe_tell_took(cl, n);
    }
    if (!program_vote(cl, n, VOTE_UPDATE, &o)) {
        return false;
    }
    if (o.result == RESULT_NO_MEMORY && !n->starved) {
        cluster_fail(cl, "peer %u: an update ends for want of memory, of which there is enough", n->index);
    }
    switch ((int)o.result) {
    case RESULT_OK:
        program_go(n, PROGRAM_SIZES);
        return true;
    case RESULT_GONE:
    case RESULT_OVER:
    case RESULT_NO_MEMORY:
        program_rejoin(cl, n);
        return false;
    case RESULT_RETRY:
    case RESULT_USAGE:
    case RESULT_ALONE:
        program_wake(cl, n, PROGRAM_PAUSE_NS);
        return false;
    default:
        cluster_fail(cl, "peer %u: update ended with %d", n->index, (int)o.result);
        return false;
    }
}

static bool turn_sizes(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    program_sizes(cl, n);
    if (p->first) {
        p->step = cl->oracle.steps[n->group];
    }
    p->first = false;
    p->align_attempt = 0;
    uint64_t dice = mix64(mix64(cl->opt.seed, p->sizes.global), mix64(p->sizes.groups, p->sizes.largest));
    program_go(n, p->sizes.global > 1 && dice % 100 < cl->opt.optimise_percent ? PROGRAM_OPTIMISE : PROGRAM_ALIGN);
    return true;
}

static bool turn_optimise(struct cluster *cl, struct node *n)
{
    struct session_outcome o;
    if (n->program->vote == 0) {
        probe_tell_took(cl, n);
    }
    if (!program_vote(cl, n, VOTE_OPTIMISE, &o)) {
        return false;
    }
    if (o.result == RESULT_GONE || o.result == RESULT_OVER) {
        program_rejoin(cl, n);
        return false;
    }
    if (o.result == RESULT_RETRY) {
        program_wake(cl, n, PROGRAM_PAUSE_NS);
        return false;
    }
    program_sizes(cl, n);
    program_go(n, PROGRAM_ALIGN);
    return true;
}

static void program_note_step(struct cluster *cl, const struct node *n)
{
    uint64_t *most = &cl->oracle.steps[n->group];
    *most = n->program->step > *most ? n->program->step : *most;
}

static bool program_syncs(const struct cluster *cl, const struct node *n)
{
    const struct program *p = n->program;
    return mix64(mix64(cl->opt.seed, n->group), p->step * 3) % 100 < cl->opt.sync_percent && p->inside == 0;
}

/* Between its calls no call of all says that everybody has the answer (B15). */
uint32_t program_sync_at(const struct cluster *cl, const struct node *n, uint32_t ops)
{
    uint64_t h = mix64(mix64(mix64(cl->opt.seed, n->group), n->program->step), 0x51C);
    bool between = program_syncs(cl, n) && !cl->opt.bulk && !cl->opt.scripted && ops > 1 && h % 4 != 0;
    return between ? 1 + (uint32_t)((h >> 8) % (ops - 1)) : 0;
}

static void program_begin_step(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    p->attempt = 0;
    p->results = 0;
    p->query_asked = p->query_over = false;
    p->ops = program_op_count(cl, n->group, p->step);
    pair_begin(cl, n);
    for (uint32_t j = 0; j < p->ops; j++) {
        p->status[j] = pair_chosen(cl, n, j) && !pair_mine_to_call(cl, n, j) ? OP_DONE_OK : OP_TODO;
        p->order[j] = j;
    }
    for (uint32_t j = 1; j < p->ops && cl->opt.burst % 4 == 0 && cl->opt.refused == 0; j++) { /* launch order: each process its own */
        uint32_t k = (uint32_t)rng_below(&cl->rng, j + 1), t = p->order[j];
        p->order[j] = p->order[k];
        p->order[k] = t;
    }
    program_bulk_begin(cl, n);
    refused_begin(cl, n);
    p->sync_at = program_sync_at(cl, n, p->ops);
    p->upto = p->sync_at != 0 ? p->sync_at : p->ops;
    bool sync = program_syncs(cl, n) && p->sync_at == 0;
    /* The others follow, once their calls have failed. */
    bool gives_up = p->want_vote && cl->opt.update_on_error_percent > 0 && p->inside == 0;
    p->want_vote = false;
    program_go(n, gives_up ? PROGRAM_UPDATE : sync ? PROGRAM_SYNC : PROGRAM_BODY);
}

static bool turn_align(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    switch (p->status[PROGRAM_OPS]) {
    case OP_PENDING:
        return false;
    case OP_DONE_OK:
        p->status[PROGRAM_OPS] = OP_TODO;
        p->lonely = 0;
        p->step = p->seen_step + 1;
        program_note_step(cl, n);
        oracle_agree(cl, n, "align attempts", program_name(n, NAME_ALIGNED), p->align_attempt);
        if (p->align_attempt == 0) {
            oracle_agree(cl, n, "sizes after update", program_name(n, NAME_SIZES_BEFORE), p->sizes_hash);
        }
        program_begin_step(cl, n);
        return true;
    case OP_DONE_BAD: /* alone */
        p->status[PROGRAM_OPS] = OP_TODO;
        if (p->inside != 0) {
            program_rejoin(cl, n);
            return false;
        }
        p->lonely++;
        p->step = cl->oracle.steps[n->group] + 1;
        program_note_step(cl, n);
        if (p->step > cl->opt.steps && p->lonely > 3 && cl->healed) {
            program_go(n, PROGRAM_LEAVING);
            return true;
        }
        program_go(n, PROGRAM_UPDATE);
        program_wake(cl, n, PROGRAM_PAUSE_NS * 4);
        return false;
    case OP_AGAIN:
        p->align_attempt++;
        break;
    case OP_TODO:
        break;
    }
    p->status[PROGRAM_OPS] = OP_TODO;
    if (!program_launch(cl, n, PROGRAM_OPS)) {
        program_wake(cl, n, PROGRAM_PAUSE_NS);
    }
    return p->status[PROGRAM_OPS] != OP_PENDING && p->status[PROGRAM_OPS] != OP_TODO;
}

static bool turn_sync(struct cluster *cl, struct node *n)
{
    struct session_outcome o;
    if (!program_vote(cl, n, VOTE_SYNC, &o)) {
        return false;
    }
    program_state_result(cl, n, &o);
    switch ((int)o.result) {
    case RESULT_OK:
    case RESULT_NO_CANDIDATE:
    case RESULT_REVISION:
        oracle_agree(cl, n, "sync outcome", program_name(n, NAME_SYNC), (uint64_t)o.result);
        program_go(n, PROGRAM_BODY);
        return true;
    case RESULT_ALONE:
    case RESULT_USAGE:
        program_go(n, PROGRAM_BODY);
        return true;
    case RESULT_GONE:
    case RESULT_OVER:
    case RESULT_NO_MEMORY:
        program_rejoin(cl, n);
        return false;
    default:
        cluster_fail(cl, "peer %u: sync ended with %d", n->index, (int)o.result);
        return false;
    }
}

/* True: it goes on. */
static bool program_end_step(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    program_state_evolve(n);
    if (inside_ends(p)) {
        program_rejoin(cl, n);
        return false;
    }
    program_go(n, p->step >= cl->opt.steps && cl->healed && p->inside == 0 ? PROGRAM_LEAVING : PROGRAM_UPDATE);
    return true;
}

static bool turn_body(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    bool query = mix64(mix64(cl->opt.seed, n->group), p->step * 3 + 1) % 100 < cl->opt.query_percent;
    struct session_outcome o;
    if (query && !p->query_over) { /* the second thread */
        bool first = p->vote == 0;
        p->query_over = program_vote(cl, n, VOTE_QUERY, &o);
        if (p->query_over && o.result == RESULT_OK) {
            oracle_agree(cl, n, "query", program_name(n, NAME_QUERY), o.value);
        }
        if (first && p->vote != 0 && cluster_chance(cl, 30)) { /* the first thread takes its time */
            p->not_before = cl->now + (int64_t)rng_below(&cl->rng, 20 * (uint64_t)cl->opt.latency_ns);
            program_wake(cl, n, p->not_before - cl->now);
            return false;
        }
    }
    if (p->listed ? !program_bulk_turn(cl, n) : !program_launch_all(cl, n)) {
        return false;
    }
    if (query && !p->query_over) {
        return false;
    }
    struct session_info info;
    session_info(n->session, &info);
    if (!info.connected) {
        program_rejoin(cl, n);
        return false;
    }
    program_sizes(cl, n);
    if (!program_bulk_same(p)) {
        return program_end_step(cl, n);
    }
    if (!pair_used(cl)) { /* a message that failed has moved the sizes of its two alone */
        oracle_agree(cl, n, "sizes after calls", mix64(mix64(program_name(n, NAME_SIZES_AFTER), p->attempt), p->upto), p->sizes_hash);
    }
    bool again = false;
    for (uint32_t j = 0; j < p->ops; j++) {
        if (!p->listed && p->status[j] == OP_AGAIN) {
            again = true;
            p->status[j] = OP_TODO;
        }
    }
    if (!again && p->upto < p->ops) {
        p->upto = p->ops;
        program_go(n, PROGRAM_SYNC);
        return true;
    }
    if (!again) {
        return program_end_step(cl, n);
    }
    uint64_t dice = mix64(mix64(cl->opt.seed, n->group), mix64(p->step, p->attempt));
    p->attempt++;
    if (dice % 100 < cl->opt.update_on_error_percent) {
        program_go(n, PROGRAM_UPDATE); /* this step is given up, by all */
    }
    return true;
}

static bool turn_leave(struct cluster *cl, struct node *n)
{
    if (window_left(cl, n)) {
        program_go(n, PROGRAM_ENDED);
    }
    return false;
}

static bool program_turn(struct cluster *cl, struct node *n)
{
    switch (n->program->phase) {
    case PROGRAM_START:
    case PROGRAM_CONNECTING:
        return window_retired(cl, n) && turn_connect(cl, n);
    case PROGRAM_UPDATE:
        return turn_update(cl, n);
    case PROGRAM_SIZES:
        return turn_sizes(cl, n);
    case PROGRAM_OPTIMISE:
        return turn_optimise(cl, n);
    case PROGRAM_ALIGN:
        return (n->program->status[PROGRAM_OPS] != OP_DONE_OK || window_closed(cl, n)) && turn_align(cl, n);
    case PROGRAM_SYNC:
        return turn_sync(cl, n);
    case PROGRAM_BODY:
        return window_made(cl, n) && turn_body(cl, n);
    case PROGRAM_LEAVING:
        return turn_leave(cl, n);
    case PROGRAM_ENDED:
        return false;
    }
    return false;
}

/* A vote or calls may still be open when the run was left: they end first. */
static bool program_gone(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    if (info.connected || p->phase <= PROGRAM_CONNECTING || p->phase >= PROGRAM_LEAVING || !program_idle(n) || p->vote != 0) {
        return false;
    }
    p->status[PROGRAM_OPS] = OP_TODO;
    program_rejoin(cl, n);
    return true;
}

void program_turns(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    if (p->leave && p->phase > PROGRAM_CONNECTING && p->phase < PROGRAM_LEAVING) {
        program_go(n, PROGRAM_LEAVING);
    }
    if (cl->now < p->not_before) {
        cluster_post(cl, p->not_before - cl->now, EVENT_PROGRAM, n->index, 0, 0, 0);
        return;
    }
    if (p->phase == PROGRAM_BODY && p->vote == VOTE_QUERY && p->vote_done) {
        /* taken by the turn */
    } else if (program_gone(cl, n)) {
        return;
    }
    while (!cl->failed && program_turn(cl, n)) {
    }
}

void program_event(struct cluster *cl, struct node *n, const struct event *e)
{
    struct program *p = n->program;
    (void)e;
    program_collect(cl, n);
    if (p->phase == PROGRAM_ENDED || cl->failed) {
        return;
    }
    bool works = p->works && p->phase > PROGRAM_CONNECTING;
    if (n->config.claim.size > 0 && !works) {
        (split_world(&cl->opt, n->group / CLUSTER_LABELS) ? split_event : form_event)(cl, n);
        return;
    }
    program_turns(cl, n);
}
