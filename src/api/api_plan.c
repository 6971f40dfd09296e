/* api_plan.c - which algorithm was chosen, and how long that should take.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"

pcclResult_t pcclGetPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count, pcclDataType_t datatype,
                         pcclRedOp_t op, pcclPlan_t *plan_out)
{
    const char *phase = "get plan";
    struct comm *c;
    struct session_info member;
    if (plan_out == NULL) {
        return api_null(phase, "plan_out", "pass where the plan is to be told");
    }
    if ((unsigned)collective >= PLAN_SEND || (unsigned)datatype >= DTYPE_COUNT) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "collective is %u, datatype %u: expected 0 (pcclCollectiveAllReduce) to 7 and "
                        API_DATATYPES, (unsigned)collective, (unsigned)datatype);
    }
    struct op_params p = {.kind = (uint8_t)collective, .dtype = (uint8_t)datatype, .count = count};
    if (count > API_MOST_BYTES / dtype_size((enum dtype)datatype)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is %zu: expected no more than memory holds", count);
    }
    pcclResult_t rc = api_enter(communicator, phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    struct api_redop redop = {0};
    char why[API_WHY];
    if (plan_kind_sums(p.kind) && !api_redop(c, op, (enum dtype)datatype, &redop, why)) {
        api_leave(c);
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s", why);
    }
    p.op = (uint8_t)redop.op;
    rc = api_member(c, phase, &member);
    if (rc == pcclSuccess) {
        pthread_mutex_lock(&c->lock);
        struct choose_answer a = session_plan(c->machine.session, &p);
        pthread_mutex_unlock(&c->lock);
        plan_out->algorithm = plan_algorithm_name((uint8_t)a.algorithm);
        plan_out->predicted_us = (double)a.ns / 1e3;
    }
    api_leave(c);
    return rc;
}
