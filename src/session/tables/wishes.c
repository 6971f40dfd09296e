/* wishes.c - what a step has decided about this peer's membership, to be carried out at its end.
 *
 * Its one idea: whoever finds that this peer has to leave, or has to dial its master again, notes it and returns; join_settle
 * does it when the step is over.  Invariant: once a step wants to leave, it handles nothing further.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

void wish_leave(struct session *s, uint8_t cause, enum session_result result, const char *text, bool tell_master)
{
    if (s->wish.leave) {
        return; /* the first reason stands */
    }
    s->wish.leave = true;
    s->wish.cause = cause;
    s->wish.result = result;
    s->wish.tell_master = tell_master;
    snprintf(s->wish.text, sizeof s->wish.text, "%s", text);
}

void wish_redial(struct session *s, const char *text)
{
    s->wish.redial = true;
    if (!s->wish.leave) {
        snprintf(s->wish.text, sizeof s->wish.text, "%s", text);
    }
}

/* O3: the other end has its half of it, and the next one would be taken for it: this peer goes. */
void wish_no_message(struct session *s)
{
    wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory for a message of a window", true);
}
