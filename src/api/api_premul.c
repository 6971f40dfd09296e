/* api_premul.c - operators: those of the enumeration, and pre-multiplied sums, which the program makes of a factor of its own.
 *
 * A made one is a value beyond the enumeration, API_PREMUL_FIRST and its number.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "api/api.h"

enum { API_PREMUL_FIRST = 256 }; /* and below 256 + 2^30 */

pcclResult_t pcclRedOpCreatePreMulSum(pcclRedOp_t *op_out, const void *factor, pcclDataType_t datatype,
                                      pcclFactorResidence_t residence, const pcclComm_t *communicator)
{
    const char *phase = "create operator";
    struct comm *c;
    uint32_t number;
    if (op_out == NULL || factor == NULL) {
        return api_null(phase, op_out == NULL ? "op_out" : "factor", op_out == NULL ? "pass where to store the operator"
                                                                                     : "point to a number of that type");
    }
    if (!redop_for(REDOP_PREMUL, (enum dtype)datatype)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "datatype is %u (%s): inputs are multiplied as pcclFloat16, pcclBFloat16, "
                        "pcclFloat and pcclDouble", (unsigned)datatype, dtype_name((enum dtype)datatype));
    }
    if (residence != pcclFactorByValue && residence != pcclFactorByPointer) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "residence is %u: expected 0 (pcclFactorByPointer) or 1 (pcclFactorByValue)",
                        (unsigned)residence);
    }
    pcclResult_t rc = api_enter(communicator, phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (premul_add(c, (enum dtype)datatype, factor, residence == pcclFactorByPointer, &number)) {
        *op_out = (pcclRedOp_t)(API_PREMUL_FIRST + number);
    } else {
        rc = api_fail(pcclInternalError, pcclCauseNoMemory, phase, "no room for one more: destroy those that are not used any more");
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclRedOpDestroy(pcclRedOp_t op, const pcclComm_t *communicator)
{
    struct comm *c;
    pcclResult_t rc = api_enter(communicator, "destroy operator", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if ((unsigned)op < API_PREMUL_FIRST || !premul_drop(c, (unsigned)op - API_PREMUL_FIRST)) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "destroy operator",
                      "op is %u: expected one of pcclRedOpCreatePreMulSum, once", (unsigned)op);
    }
    api_leave(c);
    return rc;
}

bool api_redop(struct comm *c, unsigned given, enum dtype type, struct api_redop *out, char why[API_WHY])
{
    struct premul_op made = {.dtype = type};
    bool named = given < REDOP_PREMUL;
    if (!named && (given < API_PREMUL_FIRST || !premul_find(c, given - API_PREMUL_FIRST, &made))) {
        snprintf(why, API_WHY, "op is %u: expected " API_REDOPS, given);
        return false;
    }
    *out = (struct api_redop){.op = named ? (enum redop)given : REDOP_PREMUL, .factor = made.factor};
    if (made.dtype != type) {
        snprintf(why, API_WHY, "op is %u, which multiplies %s, of %s: create one of that type", given, dtype_name(made.dtype),
                 dtype_name(type));
        return false;
    }
    const char *refusal = redop_refusal(out->op, type);
    if (refusal != NULL) {
        snprintf(why, API_WHY, "op is %u (%s) of %s: %s", given, redop_name(out->op), dtype_name(type), refusal);
    }
    return refusal == NULL;
}
