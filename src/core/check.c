/* check.c - where a failed assertion goes.
 *
 * One idea: a bug of ours ends one state machine, never the process.  Invariant: this file writes nothing but the pad
 * of the current thread and the sink's line.
 * SPDX-License-Identifier: MIT */
#include "core/check.h"

#include "core/log.h"

_Thread_local struct check_pad *check_current;
_Thread_local unsigned check_failed;

void check_fail(const char *what, const char *where)
{
    struct check_pad *pad = check_current;
    if (pad != NULL) {
        pad->what = what;
        pad->where = where;
        check_current = pad->outer; /* a failure on the way out must not land here again */
        longjmp(pad->env, 1);
    }
    if (check_failed++ == 0) {
        log_line(LOG_ERROR, "assertion failed: %s at %s; this is a bug, please report it", what, where);
    }
}
