/* api_plan.c - which algorithm was chosen, and how long that should take; and how long each of them.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"

#include "collectives/plan.h"

/* Looks at what a call asks of; with success the communicator is entered, and a member. */
static pcclResult_t plan_enter(const pcclComm_t *communicator, const char *phase, struct op_params *p, pcclRedOp_t op, struct comm **c)
{
    struct session_info member;
    if (p->count > API_MOST_BYTES / dtype_size((enum dtype)p->dtype)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is %llu: expected no more than memory holds",
                        (unsigned long long)p->count);
    }
    pcclResult_t rc = api_enter(communicator, phase, c);
    if (rc != pcclSuccess) {
        return rc;
    }
    struct api_redop redop = {0};
    char why[API_WHY];
    if (plan_kind_sums(p->kind) && !api_redop(*c, op, (enum dtype)p->dtype, &redop, why)) {
        api_leave(*c);
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s", why);
    }
    p->op = (uint8_t)redop.op;
    rc = api_member(*c, phase, &member);
    if (rc != pcclSuccess) {
        api_leave(*c);
    }
    return rc;
}

static pcclResult_t plan_params(const char *phase, pcclCollective_t collective, size_t count, pcclDataType_t datatype, struct op_params *out)
{
    if ((unsigned)collective >= PLAN_SEND) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "collective is %d: expected 0 (pcclCollectiveAllReduce) to 7 (pcclCollectiveGather)", (int)collective);
    }
    if ((unsigned)datatype >= DTYPE_COUNT) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "datatype is %d: expected " API_DATATYPES, (int)datatype);
    }
    *out = (struct op_params){.kind = (uint8_t)collective, .dtype = (uint8_t)datatype, .count = count};
    return pcclSuccess;
}

static pcclPlan_t plan_told(const struct choose_answer *a)
{
    return (pcclPlan_t){.algorithm = plan_algorithm_name((uint8_t)a->algorithm), .predicted_us = (double)a->ns / 1e3};
}

pcclResult_t pcclGetPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count, pcclDataType_t datatype,
                         pcclRedOp_t op, pcclPlan_t *plan_out)
{
    const char *phase = "get plan";
    struct comm *c;
    struct op_params p;
    if (plan_out == NULL) {
        return api_null(phase, "plan_out", "pass where to store the plan");
    }
    pcclResult_t rc = plan_params(phase, collective, count, datatype, &p);
    rc = rc == pcclSuccess ? plan_enter(communicator, phase, &p, op, &c) : rc;
    if (rc == pcclSuccess) {
        pthread_mutex_lock(&c->lock);
        struct choose_answer a = session_plan(c->machine.session, &p);
        pthread_mutex_unlock(&c->lock);
        *plan_out = plan_told(&a);
        api_leave(c);
    }
    return rc;
}

pcclResult_t pcclExplainPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count, pcclDataType_t datatype,
                             pcclRedOp_t op, pcclPlan_t *plans_out, size_t capacity, size_t *count_out)
{
    const char *phase = "explain plan";
    struct choose_answer all[1 + PLAN_ALGORITHMS];
    struct comm *c;
    struct op_params p;
    size_t found = 0;
    if (count_out == NULL || (plans_out == NULL && capacity > 0)) {
        return api_null(phase, count_out == NULL ? "count_out" : "plans_out", "pass where to store the plans");
    }
    pcclResult_t rc = plan_params(phase, collective, count, datatype, &p);
    rc = rc == pcclSuccess ? plan_enter(communicator, phase, &p, op, &c) : rc;
    if (rc != pcclSuccess) {
        return rc;
    }
    pthread_mutex_lock(&c->lock);
    all[found++] = session_plan(c->machine.session, &p);
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        struct choose_answer one = session_plan_by(c->machine.session, &p, (enum plan_algorithm)a);
        if (one.algorithm == a && a != all[0].algorithm) { /* else another had to do it */
            all[found++] = one;
        }
    }
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < found && i < capacity; i++) {
        plans_out[i] = plan_told(&all[i]);
    }
    *count_out = found;
    api_leave(c);
    return pcclSuccess;
}
