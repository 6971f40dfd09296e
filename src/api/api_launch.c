/* api_launch.c - the three ways in which an operation without a tag of its own is called: blocking, as a handle, or in a group.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "engine/calls/await.h"

static pcclResult_t launch_async(const pcclComm_t *communicator, struct comm_launch *launch, int64_t until, pcclAsyncOp_t *handle,
                                 struct session_outcome *o)
{
    uint64_t id = 0;
    comm_launch(communicator->comm, launch, until, &id, o);
    if (o->result != RESULT_PENDING) {
        return pcclInternalError; /* o says which */
    }
    *handle = (pcclAsyncOp_t){.comm = api_own(communicator), .id = id};
    return pcclSuccess;
}

pcclResult_t api_launch(const pcclComm_t *communicator, struct comm_launch *launch, pcclAsyncOp_t *async_op_out, const char *phase,
                        uint64_t tag)
{
    struct session_outcome o;
    pcclAsyncOp_t in_group;
    int64_t until = api_group_open() ? 0 : api_call_patience(); /* calls of a group may need each other */
    if (async_op_out == NULL && !api_group_open()) {
        launch->call.awaited = true;
        comm_reduce(communicator->comm, launch, &o);
        if (o.result == RESULT_OK && launch->source != NULL) {
            *launch->source = o.source;
        }
        return api_outcome(&o, phase, tag);
    }
    if (launch_async(communicator, launch, until, async_op_out != NULL ? async_op_out : &in_group, &o) != pcclSuccess) {
        return api_group_note(api_outcome(&o, phase, tag));
    }
    return async_op_out != NULL ? pcclSuccess : api_group_add(&in_group);
}
