/* api_repeat.c - a group of operations, repeated after losses until all of it has succeeded.
 *
 * Its one idea: after each attempt one all-reduce tells all members which operations failed anywhere; being of class A it ends alike
 * at all, so all repeat the same ones, or stop together.  The program launches each operation anew, since ranks, roots and
 * layouts may have moved.  Invariant: nothing that was launched here is in flight when the members agree, nor when the call returns.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"

/* What the members tell each other, the greatest of each counts: marks, then a word for each operation. */
enum {
    MARK_ALL_AGAIN, /* what this member's params say, and their opposite: both are set where members differ */
    MARK_LOST_AGAIN,
    MARK_LATE,
    MARK_FEW,
    MARKS
};

enum { WORD_DONE = 0, WORD_LOST = 1 }; /* others: result << 8 | cause of what is not repeated */

struct repeat {
    const pcclComm_t *comm;
    size_t count;
    pcclLaunchCallback_t launch;
    void *user;
    pcclRepeatParams_t params;
    int64_t deadline;
    uint32_t attempt;
    uint16_t *own, *all; /* owned: MARKS + count words each */
    pcclAsyncOp_t *op;   /* owned; without a communicator: not in flight */
    bool *wanted;        /* owned: launched in this attempt */
    struct api_operands operands; /* of what was launched in this attempt */
    size_t oldest;       /* none before it is in flight */
    size_t unsaid;       /* calls that failed without a handle: each may have left its turn to the next one */
    size_t bad;          /* the lowest here that is not repeated; count: none */
    pcclErrorInfo_t error;
    pcclReduceInfo_t sum;
};

/* A loss of which both ends, or all, are told, and after which a call may succeed. */
static bool error_is_loss(const pcclErrorInfo_t *e)
{
    bool loss = e->cause == pcclCauseNone || e->cause == pcclCausePeerLost || e->cause == pcclCausePeerLeft ||
                e->cause == pcclCausePeerSilent || e->cause == pcclCauseLinkLost || e->cause == pcclCauseNoProgress;
    return e->result == pcclRankConnectionLost && e->error_class == pcclClassRetry && loss;
}

/* ---- One attempt --------------------------------------------------------------------------------------------------------------- */

static void repeat_ended(struct repeat *r, size_t index, pcclResult_t rc)
{
    pcclErrorInfo_t e;
    uint16_t *word = &r->own[MARKS + index];
    *word = WORD_DONE;
    if (rc == pcclSuccess) {
        return;
    }
    (void)pcclGetLastErrorInfo(&e);
    if (e.result != rc) { /* it is the program's own, which may be none of ours */
        pcclResult_t told = (unsigned)rc <= pcclTopologyOptimizationFailed ? rc : pcclInvalidUsage;
        (void)api_fail(told, pcclCauseUsage, "repeat group", "operation %zu: launch returned %d: return what the call in it returns", index,
                       (int)rc);
        (void)pcclGetLastErrorInfo(&e);
        rc = told;
    }
    *word = error_is_loss(&e) ? WORD_LOST : (uint16_t)((unsigned)rc << 8 | (unsigned)e.cause);
    if (*word != WORD_LOST && index < r->bad) {
        r->bad = index;
        r->error = e;
    }
}

static void repeat_await(struct repeat *r, size_t index)
{
    pcclReduceInfo_t info = {0};
    pcclResult_t rc = pcclAwaitAsync(&r->op[index], &info);
    r->op[index].comm = NULL;
    r->sum.tx_bytes += info.tx_bytes;
    r->sum.rx_bytes += info.rx_bytes;
    repeat_ended(r, index, rc);
}

/* Ends the first before `index` that is in flight, since there is no room for another.  False: there is none. */
static bool repeat_make_room(struct repeat *r, size_t index)
{
    while (r->oldest < index && r->op[r->oldest].comm == NULL) {
        r->oldest++;
    }
    if (r->oldest == index) {
        return false;
    }
    repeat_await(r, r->oldest);
    return true;
}

static bool repeat_is_full(pcclResult_t rc)
{
    pcclErrorInfo_t e;
    (void)pcclGetLastErrorInfo(&e);
    return rc == pcclRankConnectionLost && e.result == rc && e.cause == pcclCauseUsage;
}

static void repeat_launch(struct repeat *r, size_t index)
{
    pcclAsyncOp_t *op = &r->op[index];
    pcclResult_t rc;
    do {
        api_forget(); /* what it finds afterwards is of this call */
        *op = (pcclAsyncOp_t){0};
        api_group_together(&r->operands);
        rc = r->launch(r->comm, index, r->attempt, op, r->user);
        api_group_together(NULL);
    } while (rc != pcclSuccess && op->comm == NULL && repeat_is_full(rc) && repeat_make_room(r, index));
    if (rc == pcclSuccess && (op->comm == NULL || op->comm == r->comm)) {
        r->own[MARKS + index] = WORD_DONE; /* until its handle says otherwise */
        return;
    }
    r->unsaid++;
    if (op->comm != NULL) { /* nothing stays in flight */
        pcclErrorInfo_t e;
        (void)pcclGetLastErrorInfo(&e);
        (void)pcclAwaitAsync(op, NULL);
        op->comm = NULL;
        api_restore(&e);
    }
    rc = rc != pcclSuccess ? rc
                           : api_fail(pcclInvalidUsage, pcclCauseUsage, "repeat group",
                                      "operation %zu: launch stored a handle of another communicator: launch on the one it is given", index);
    repeat_ended(r, index, rc);
}

static void repeat_try(struct repeat *r)
{
    r->oldest = 0;
    r->unsaid = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->wanted[i]) {
            repeat_launch(r, i);
        }
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->op[i].comm != NULL) {
            repeat_await(r, i);
        }
    }
    api_operands_fini(&r->operands);
}

/* ---- What all say to it --------------------------------------------------------------------------------------------------------- */

/* Until it succeeds, or cannot.  Where calls of this member left their turns to later ones, so many of these may meet operations of
 * the others, which go on to the end of their group. */
static pcclResult_t repeat_agree(struct repeat *r)
{
    for (;;) {
        int world = 0;
        pcclErrorInfo_t e;
        (void)pcclGetAttribute(r->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
        r->own[MARK_ALL_AGAIN] = r->params.all_again;
        r->own[MARK_LOST_AGAIN] = !r->params.all_again;
        r->own[MARK_LATE] = clock_now_ns() >= r->deadline;
        r->own[MARK_FEW] = (uint32_t)world < r->params.fewest_members;
        r->sum.local_world_size = (uint32_t)world;
        api_group_aside(true); /* the program's launch may have left one open */
        pcclResult_t rc = pcclAllReduceOrdered(r->own, r->all, MARKS + r->count, pcclUint16, pcclMax, r->comm, NULL);
        api_group_aside(false);
        if (rc == pcclSuccess) {
            return rc;
        }
        (void)pcclGetLastErrorInfo(&e);
        if (rc == pcclInvalidArgument && r->unsaid > 0) {
            r->unsaid--;
        } else if (!error_is_loss(&e)) {
            if (r->bad < r->count) { /* this member knows what came first */
                api_restore(&r->error);
                rc = r->error.result;
            }
            return rc;
        }
    }
}

/* The lowest that somebody cannot repeat; the peer at which it failed knows better why. */
static pcclResult_t repeat_bad(const struct repeat *r, size_t index)
{
    unsigned word = r->all[MARKS + index];
    if (r->bad == index) {
        api_restore(&r->error);
        return r->error.result;
    }
    return api_fail((pcclResult_t)(word >> 8), (pcclCause_t)(word & 255), "repeat group",
                    "operation %zu failed with %s at a member that took part in it: look at that member's own error", index,
                    pcclGetResultString((pcclResult_t)(word >> 8)));
}

/* Which are to be repeated; *done: none. */
static pcclResult_t repeat_decide(struct repeat *r, bool *done)
{
    size_t lost = 0, first = 0;
    if (r->all[MARK_ALL_AGAIN] != 0 && r->all[MARK_LOST_AGAIN] != 0) {
        return api_fail(pcclInvalidArgument, pcclCauseMismatch, "repeat group",
                        "params->all_again is %s here but not on another member: pass the same value on all members",
                        r->params.all_again ? "true" : "false");
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->all[MARKS + i] > WORD_LOST) {
            return repeat_bad(r, i);
        }
        r->wanted[i] = r->all[MARKS + i] == WORD_LOST;
        first = r->wanted[i] && lost == 0 ? i : first;
        lost += r->wanted[i];
    }
    *done = lost == 0;
    if (!*done && r->all[MARK_LATE] != 0) {
        return api_fail(pcclRankConnectionLost, pcclCauseDeadline, "repeat group",
                        "%zu of %zu operations were lost, the first is %zu, and params->timeout_ms of a member has passed: retry, or allow more time",
                        lost, r->count, first);
    }
    if (!*done && r->all[MARK_FEW] != 0) {
        return api_fail(pcclTooFewPeers, pcclCauseAlone, "repeat group",
                        "%zu of %zu operations were lost, the first is %zu, and %u members are left, fewer than params->fewest_members of a member: "
                        "update the topology until more have joined",
                        lost, r->count, first, r->sum.local_world_size);
    }
    for (size_t i = 0; i < r->count && r->params.all_again; i++) {
        r->wanted[i] = true;
    }
    return pcclSuccess;
}

static pcclResult_t repeat_run(struct repeat *r)
{
    bool done = false;
    pcclResult_t rc = pcclSuccess;
    for (r->attempt = 0; rc == pcclSuccess && !done; r->attempt++) {
        repeat_try(r);
        rc = repeat_agree(r);
        rc = rc == pcclSuccess ? repeat_decide(r, &done) : rc;
    }
    return rc;
}

/* ---- The call ------------------------------------------------------------------------------------------------------------------- */

static pcclResult_t repeat_check(const struct repeat *r, const pcclRepeatParams_t *params)
{
    const char *phase = "repeat group";
    if (r->launch == NULL) {
        return api_null(phase, "launch", "pass a function that launches one operation");
    }
    if (r->count == 0 || r->count > API_MOST_BYTES / sizeof(pcclAsyncOp_t)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is %zu: expected 1 or more operations, which memory holds", r->count);
    }
    if (params != NULL && params->size != sizeof *params) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->size is %zu: set it to sizeof(pcclRepeatParams_t)", params->size);
    }
    if (api_group_open()) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "this thread has a group open: call pcclGroupEnd first");
    }
    return pcclSuccess;
}

static pcclResult_t repeat_member(const pcclComm_t *communicator)
{
    struct comm *c;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "repeat group", &c);
    if (rc == pcclSuccess) {
        rc = api_member(c, "repeat group", &member);
        api_leave(c);
    }
    return rc;
}

pcclResult_t pcclRepeatGroup(const pcclComm_t *communicator, size_t count, pcclLaunchCallback_t launch, void *user,
                             const pcclRepeatParams_t *params, pcclReduceInfo_t *info_out)
{
    struct repeat r = {.comm = communicator, .count = count, .launch = launch, .user = user, .bad = count, .deadline = CLOCK_NEVER};
    pcclResult_t rc = repeat_member(communicator);
    rc = rc == pcclSuccess ? repeat_check(&r, params) : rc;
    if (rc != pcclSuccess) {
        return rc;
    }
    if (params != NULL) {
        r.params = *params;
        r.deadline = params->timeout_ms == 0 ? CLOCK_NEVER : clock_now_ns() + (int64_t)params->timeout_ms * CLOCK_MS;
    }
    r.own = calloc(MARKS + count, sizeof *r.own);
    r.all = calloc(MARKS + count, sizeof *r.all);
    r.op = calloc(count, sizeof *r.op);
    r.wanted = calloc(count, sizeof *r.wanted);
    if (r.own == NULL || r.all == NULL || r.op == NULL || r.wanted == NULL) {
        rc = api_fail(pcclInternalError, pcclCauseNoMemory, "repeat group",
                      "no memory to keep track of count %zu operations: pass fewer at a time", count);
    } else {
        memset(r.wanted, true, count);
        rc = repeat_run(&r);
    }
    free(r.own);
    free(r.all);
    free(r.op);
    free(r.wanted);
    if (rc == pcclSuccess && info_out != NULL) {
        *info_out = r.sum;
    }
    return rc;
}
