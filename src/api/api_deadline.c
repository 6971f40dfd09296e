/* api_deadline.c - deadlines: how long a wait lasts, how long what a thread calls may take, and how long its launches wait.
 *
 * The last two are the thread's, so that each call can have one of its own, with nothing to pass and nothing that another thread could change
 * in between.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "api/api.h"
#include "core/clock.h"

static _Thread_local int64_t call_limit_ms = -1; /* -1: as PCCL_OPTION_OPERATION_DEADLINE_MS says; 0: none */
static _Thread_local int64_t call_patience_ms;   /* -1: without end; 0: none */

/* Some have been taken for no limit by the system. */
static int64_t deadline_in(int64_t ms)
{
    return ms > INT64_MAX / 4 / CLOCK_MS ? CLOCK_NEVER : clock_now_ns() + ms * CLOCK_MS;
}

pcclResult_t api_deadline(const char *phase, int64_t timeout_ms, int64_t *deadline_out)
{
    if (timeout_ms < -1) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "timeout_ms is %" PRId64 ": expected -1 (no limit), 0 or more", timeout_ms);
    }
    *deadline_out = timeout_ms < 0 ? CLOCK_NEVER : deadline_in(timeout_ms);
    return pcclSuccess;
}

int64_t api_call_deadline(void)
{
    return call_limit_ms < 0 ? 0 : call_limit_ms == 0 ? CLOCK_NEVER : deadline_in(call_limit_ms);
}

pcclResult_t pcclSetCallDeadline(int64_t timeout_ms)
{
    if (timeout_ms < -1) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "set call deadline",
                        "timeout_ms is %" PRId64 ": expected -1 (as the communicator's option says), 0 (none) or more", timeout_ms);
    }
    call_limit_ms = timeout_ms;
    return pcclSuccess;
}

int64_t api_call_patience(void)
{
    return call_patience_ms == 0 ? 0 : call_patience_ms < 0 ? CLOCK_NEVER : deadline_in(call_patience_ms);
}

pcclResult_t pcclSetCallPatience(int64_t timeout_ms)
{
    int64_t until;
    pcclResult_t rc = api_deadline("set call patience", timeout_ms, &until);
    call_patience_ms = rc == pcclSuccess ? timeout_ms : call_patience_ms;
    return rc;
}
