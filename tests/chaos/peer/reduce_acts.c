/* reduce_acts.c - see reduce_acts.h.
 *
 * What all members must do alike comes from dice of the step; what may differ between them (order of launches and awaits,
 * window, delay, form of waiting) from dice of the peer.  After a call that has failed with RankConnectionLost all
 * members of the group make the next call of that operation, or all begin the step again, as the plan says.
 * SPDX-License-Identifier: MIT */
#include "reduce_acts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "holding.h"
#include "jobs.h"
#include "say.h"

enum { ACT_BLOCKING, ACT_ASYNC, ACT_BULK, ACT_THREADS, ACT_MISMATCH, ACT_CANCEL, ACT_QUERY, ACT_KINDS };
enum { SMALL_BYTES = 16384, THREADS = 2, THREAD_JOBS = 3, MISMATCH_TAG = 900001, BURST_TAG = 1000,
       NONCE_TAG = 900002 };

struct act {
    struct member *m;
    int kind;
    struct dice all;  /* the same on all members */
    struct dice mine; /* of this peer */
};

static bool again(const struct act *a, pcclResult_t result)
{
    return result == pcclRankConnectionLost && a->m->plan.on_loss == ON_LOSS_RETRY;
}

/* The codes an operation may end with; anything else ends the program. */
static pcclResult_t allowed(const struct act *a, pcclResult_t result, const char *what)
{
    if (result != pcclSuccess && result != pcclRankConnectionLost && result != pcclTooFewPeers &&
        result != pcclMasterConnectionFailed) {
        member_give_up(a->m, what, result);
    }
    return result;
}

/* Of several results, the one that decides what the member does next. */
static pcclResult_t graver(pcclResult_t a, pcclResult_t b)
{
    static const int order[] = {[pcclSuccess] = 0, [pcclRankConnectionLost] = 1, [pcclTooFewPeers] = 2,
                                [pcclMasterConnectionFailed] = 3};
    return order[a] >= order[b] ? a : b;
}

static void be_late(struct act *a)
{
    if (a->m->plan.late_ms > 0 && dice_percent(&a->mine, 20)) {
        member_pause(dice_from(&a->mine, 0, a->m->plan.late_ms));
    }
}

static void draw(struct act *a, struct job *j, size_t most_bytes, uint64_t tag)
{
    if (!job_draw(j, a->m, &a->all, most_bytes, tag)) {
        member_give_up(a->m, "memory for an operation", pcclInternalError);
    }
}

/* ---- One after the other -------------------------------------------------------------------------------------------- */

static pcclResult_t reduce_once(struct act *a, struct job *j)
{
    pcclReduceInfo_t info = {0};
    job_prepare(j, a->m, 'a');
    pcclReduceDescriptor_t d = job_descriptor(j);
    say_begin(j->key);
    return job_judge(j, a->m, pcclAllReduce(j->send, j->recv, &d, a->m->comm, &info), &info);
}

static pcclResult_t reduce(struct act *a, struct job *j)
{
    pcclResult_t result;
    do {
        result = allowed(a, reduce_once(a, j), "pcclAllReduce");
    } while (again(a, result));
    return result;
}

static pcclResult_t run_blocking(struct act *a)
{
    int count = dice_from(&a->all, 1, 8);
    uint64_t tag = dice_below(&a->all, 4), stride = dice_below(&a->all, 2);
    pcclResult_t result = pcclSuccess;
    for (int i = 0; i < count && result == pcclSuccess; i++) {
        struct job j;
        draw(a, &j, a->m->plan.most_bytes, tag + (uint64_t)i * stride);
        be_late(a);
        result = reduce(a, &j);
        job_free(&j);
    }
    return result;
}

struct strand { /* one of several threads that reduce beside each other */
    struct act act;
    struct job job[THREAD_JOBS];
    pcclResult_t result;
};

static void *strand_main(void *of)
{
    struct strand *s = of;
    say_as(s->act.m->key);
    for (int i = 0; i < THREAD_JOBS && s->result == pcclSuccess; i++) {
        be_late(&s->act);
        s->result = reduce(&s->act, &s->job[i]);
    }
    return NULL;
}

static pcclResult_t run_threads(struct act *a)
{
    struct strand strands[THREADS];
    pthread_t threads[THREADS];
    pcclResult_t result = pcclSuccess;
    for (int t = 0; t < THREADS; t++) {
        strands[t].act = *a;
        strands[t].act.mine.state = dice_hash(a->mine.state, (uint64_t)t);
        strands[t].result = pcclSuccess;
        for (int i = 0; i < THREAD_JOBS; i++) {
            draw(a, &strands[t].job[i], a->m->plan.most_bytes / THREADS, 50 + (uint64_t)t);
        }
    }
    for (int t = 0; t < THREADS; t++) {
        if (pthread_create(&threads[t], NULL, strand_main, &strands[t]) != 0) {
            member_give_up(a->m, "a thread", pcclInternalError);
        }
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        result = graver(result, strands[t].result);
        for (int i = 0; i < THREAD_JOBS; i++) {
            job_free(&strands[t].job[i]);
        }
    }
    return result;
}

/* One member, as far as it knows, has another count than the rest: nobody's call may succeed beside another's error. */
static pcclResult_t run_mismatch(struct act *a)
{
    struct job j;
    pcclPeerInfo_t self;
    pcclResult_t result;
    size_t count;
    draw(a, &j, SMALL_BYTES * 4, MISMATCH_TAG);
    count = j.c.count;
    do {
        j.c.count = count;
        if (pcclGetSelf(a->m->comm, &self) == pcclSuccess && self.rank == 0 && count > 0) {
            j.c.count--;
        }
        result = reduce_once(a, &j);
        if (result == pcclInvalidArgument) {
            result = pcclSuccess;
        }
        allowed(a, result, "pcclAllReduce with a mismatch");
    } while (again(a, result));
    job_free(&j);
    return result;
}

/* ---- Side by side --------------------------------------------------------------------------------------------------- */

/* A permutation of 0 .. count - 1 that only this peer draws. */
static void shuffle(struct dice *d, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = dice_from(d, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

static void launch(struct act *a, struct job *j)
{
    job_prepare(j, a->m, 'a');
    pcclReduceDescriptor_t d = job_descriptor(j);
    say_begin(j->key);
    memset(&j->handle, 0, sizeof j->handle);
    j->result = pcclAllReduceAsync(j->send, j->recv, &d, a->m->comm, &j->handle);
    if (j->result != pcclSuccess) {
        pcclReduceInfo_t none = {0};
        (void)job_judge(j, a->m, j->result, &none);
    }
}

/* Ways to wait before the await itself. */
static void wait_first(struct act *a, struct job *j)
{
    uint64_t form = dice_below(&a->mine, 10);
    bool done = false;
    size_t index = 0;
    pcclResult_t result = pcclSuccess;
    if (form == 0) {
        result = pcclTestAsyncReduce(&j->handle, &done);
    } else if (form == 1) {
        result = pcclWaitAnyAsyncReduce(&j->handle, 1, dice_from(&a->mine, -1, 20), &index);
    }
    if (result != pcclSuccess && result != pcclMasterConnectionFailed) {
        member_give_up(a->m, form == 0 ? "pcclTestAsyncReduce" : "pcclWaitAnyAsyncReduce", result);
    }
}

static pcclResult_t await_one(struct act *a, struct job *j)
{
    pcclReduceInfo_t info = {0};
    if (j->result == pcclSuccess) {
        wait_first(a, j);
        (void)job_judge(j, a->m, pcclAwaitAsyncReduce(&j->handle, &info), &info);
    }
    return allowed(a, j->result, "an asynchronous all-reduce");
}

static void query(struct act *a)
{
    bool pending = false;
    say_call("query");
    pcclResult_t result = pcclArePeersPending(a->m->comm, &pending);
    say_return("query", result);
    if (result != pcclSuccess && result != pcclMasterConnectionFailed && result != pcclTooFewPeers) {
        member_give_up(a->m, "pcclArePeersPending", result);
    }
}

/* Whom this peer takes for the one that cancels; two, or nobody, may think so.  A step that begins again is spared. */
static bool cancels(struct act *a, uint64_t draw_of_all)
{
    pcclPeerInfo_t self;
    bool repeated = a->m->plan.on_loss == ON_LOSS_UPDATE && holding_revision(a->m->holding) % 2 == 0;
    return a->kind == ACT_CANCEL && !repeated && pcclGetSelf(a->m->comm, &self) == pcclSuccess &&
           self.rank == draw_of_all % (uint64_t)(a->m->world > 0 ? a->m->world : 1);
}

static void cancel(struct act *a, struct job *j)
{
    be_late(a);
    pcclResult_t result = pcclCancelAsyncReduce(&j->handle);
    if (result != pcclSuccess && result != pcclMasterConnectionFailed) {
        member_give_up(a->m, "pcclCancelAsyncReduce", result);
    }
}

/* Launches all that are not done, then awaits them, each in an order of its own. */
static pcclResult_t window(struct act *a, struct job *jobs, int *order, int count)
{
    uint64_t canceller = dice_next(&a->all);
    pcclResult_t result = pcclSuccess;
    bool first = jobs[0].attempt < 0;
    shuffle(&a->mine, order, count);
    be_late(a);
    for (int i = 0; i < count; i++) {
        if (!jobs[order[i]].done) {
            launch(a, &jobs[order[i]]);
        }
    }
    if (a->kind == ACT_QUERY && first) {
        query(a);
    }
    if (first && jobs[0].result == pcclSuccess && cancels(a, canceller)) {
        cancel(a, &jobs[0]);
    }
    shuffle(&a->mine, order, count);
    for (int i = 0; i < count; i++) {
        struct job *j = &jobs[order[i]];
        if (!j->done) {
            result = graver(result, await_one(a, j));
        }
    }
    return result;
}

static int most_at_once(struct act *a)
{
    return dice_percent(&a->all, 70) ? dice_from(&a->all, 1, 24) : dice_from(&a->all, 1, a->m->plan.burst);
}

static struct job *draw_many(struct act *a, int count, int **order_out)
{
    struct job *jobs = calloc((size_t)count, sizeof *jobs);
    *order_out = calloc((size_t)count, sizeof **order_out);
    if (jobs == NULL || *order_out == NULL) {
        member_give_up(a->m, "memory for operations", pcclInternalError);
    }
    for (int i = 0; i < count; i++) {
        size_t most = count > 24 ? SMALL_BYTES * 3 / 2 : a->m->plan.most_bytes / (size_t)count;
        draw(a, &jobs[i], most, BURST_TAG + (uint64_t)i);
    }
    return jobs;
}

static void free_many(struct job *jobs, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        job_free(&jobs[i]);
    }
    free(jobs);
    free(order);
}

static pcclResult_t run_async(struct act *a)
{
    int *order, count = most_at_once(a);
    struct job *jobs = draw_many(a, count, &order);
    pcclResult_t result;
    do {
        result = window(a, jobs, order, count);
    } while (again(a, result));
    free_many(jobs, order, count);
    return result;
}

/* ---- The bulk call -------------------------------------------------------------------------------------------------- */

static void judge_bulk(struct act *a, struct job *jobs, int count, pcclResult_t result)
{
    for (int i = 0; i < count; i++) {
        char text[CONTRIBUTION_TEXT];
        struct say_outcome o = {.result = result};
        if (result != pcclSuccess) {
            job_judge_either(&jobs[i], a->m);
            continue;
        }
        bool right = false; /* the world of each is not told: the marks say who took part, any number of them is right */
        for (uint32_t world = 1; world <= PLAN_PEERS && !right; world++) {
            right = contribution_check(&jobs[i].c, jobs[i].recv, world, &o.who, text);
        }
        o.digest = contribution_digest(jobs[i].recv, contribution_bytes(&jobs[i].c));
        say_end(jobs[i].key, &o);
        if (!right) {
            say_finding("%s: %s", jobs[i].key, text);
        }
        if (!jobs[i].in_place && !contribution_unchanged(&jobs[i].c, a->m->key, jobs[i].send)) {
            say_finding("%s: the input has changed", jobs[i].key);
        }
    }
}

static pcclResult_t run_bulk(struct act *a)
{
    int *order, count = most_at_once(a), window_size = dice_from(a->m->plan.windows_differ ? &a->mine : &a->all, 1, 40);
    struct job *jobs = draw_many(a, count, &order);
    pcclReduceOpDescriptor_t *list = calloc((size_t)count, sizeof *list);
    pcclReduceInfo_t info = {0};
    char key[JOB_KEY + 8];
    if (list == NULL) {
        member_give_up(a->m, "memory for a list", pcclInternalError);
    }
    for (int i = 0; i < count; i++) {
        job_prepare(&jobs[i], a->m, 'b');
        list[i] = (pcclReduceOpDescriptor_t){
            .sendbuf = jobs[i].send, .recvbuf = jobs[i].recv, .descriptor = job_descriptor(&jobs[i])};
    }
    snprintf(key, sizeof key, "%s.bulk", jobs[0].key);
    be_late(a);
    say_begin(key);
    pcclResult_t result = pcclAllReduceMultipleWithRetry(list, (size_t)count, a->m->comm, &info, window_size);
    say_end(key, &(struct say_outcome){.result = result, .tx_bytes = info.tx_bytes, .rx_bytes = info.rx_bytes});
    if (result == pcclRankConnectionLost && a->m->plan.deadline_ms == 0) {
        say_finding("%s: the bulk call has given up", key);
    }
    judge_bulk(a, jobs, count, result);
    free_many(jobs, order, count);
    free(list);
    return allowed(a, result, "pcclAllReduceMultipleWithRetry");
}

/* ---- A step --------------------------------------------------------------------------------------------------------- */

static int draw_kind(struct dice *d)
{
    static const int weight[ACT_KINDS] = {30, 30, 16, 10, 4, 5, 5};
    int at = dice_from(d, 0, 99), kind = 0;
    while (at >= weight[kind]) {
        at -= weight[kind++];
    }
    return kind;
}

static pcclResult_t act(struct act *a)
{
    switch (a->kind) {
    case ACT_BLOCKING:
        return run_blocking(a);
    case ACT_BULK:
        return run_bulk(a);
    case ACT_THREADS:
        return run_threads(a);
    case ACT_MISMATCH:
        return run_mismatch(a);
    default:
        return run_async(a);
    }
}

/* A number that all members know and that no other round of this step has: the sum of what each draws. */
static pcclResult_t agree(struct act *a)
{
    const pcclReduceDescriptor_t d = {
        .count = 1, .op = pcclSum, .tag = NONCE_TAG, .src_descriptor = {.datatype = pcclUint64}};
    uint64_t sum = 0;
    pcclResult_t result;
    do {
        uint64_t own = dice_next(&a->mine) ^ (uint64_t)say_now_ms();
        say_call("nonce");
        result = pcclAllReduce(&own, &sum, &d, a->m->comm, NULL);
        say_return("nonce", result);
        allowed(a, result, "pcclAllReduce");
    } while (again(a, result));
    if (result == pcclSuccess) {
        holding_name(a->m->holding, a->m, sum);
    }
    return result;
}

pcclResult_t acts_run(struct member *m)
{
    uint64_t step = dice_hash(dice_hash(m->plan.seed, holding_lineage(m->holding)), holding_step(m->holding));
    struct act first = {.m = m, .mine = {dice_hash(step, m->key)}};
    pcclResult_t result = agree(&first);
    for (int i = 0; i < m->plan.acts && result == pcclSuccess; i++) {
        struct act a = {.m = m, .all = {dice_hash(step, (uint64_t)i)}};
        a.mine.state = dice_hash(a.all.state ^ holding_revision(m->holding), m->key + 1);
        a.kind = draw_kind(&a.all);
        result = atomic_load(&m->quit) ? pcclTooFewPeers : act(&a); /* whoever shall end does not finish the step */
    }
    return result;
}
