/* api_launch.c - the three ways in which an operation without a tag of its own is called: blocking, as a handle, or in a group.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"

/* What is known when the call returns at once. */
static pcclResult_t launch_async(const pcclComm_t *communicator, struct comm_launch *launch, pcclAsyncOp_t *handle,
                                 struct session_outcome *o)
{
    struct comm *c = communicator->comm;
    struct comm_op *op = NULL;
    comm_launch(c, launch, &op, o);
    if (o->result != RESULT_PENDING) {
        return pcclInternalError; /* o says which */
    }
    *handle = (pcclAsyncOp_t){.comm = api_own(communicator), .id = op->given.tag};
    comm_undriven(c);
    return pcclSuccess;
}

pcclResult_t api_launch(const pcclComm_t *communicator, struct comm_launch *launch, pcclAsyncOp_t *async_op_out, const char *phase,
                        uint64_t tag)
{
    struct session_outcome o;
    pcclAsyncOp_t in_group;
    if (async_op_out == NULL && !api_group_open()) {
        launch->awaited = true;
        comm_reduce(communicator->comm, launch, &o);
        if (o.result == RESULT_OK && launch->source != NULL) {
            *launch->source = o.source;
        }
        return api_outcome(&o, phase, tag);
    }
    if (launch_async(communicator, launch, async_op_out != NULL ? async_op_out : &in_group, &o) != pcclSuccess) {
        return api_group_note(api_outcome(&o, phase, tag));
    }
    return async_op_out != NULL ? pcclSuccess : api_group_add(&in_group);
}
