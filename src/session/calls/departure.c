/* departure.c - what a step has decided about this peer's membership, and what calls return once it has left.
 *
 * A function that finds that this peer has to leave, or has to dial its master again, notes it and returns; join_settle does it at the end of
 * the step.  Why the peer left is kept until it connects again, and every call tells it.
 * Invariant: once a step wants to leave, it handles nothing further.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/departure.h"

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

void wish_over(struct session *s, uint8_t cause, const char *text, const struct member_name *culprit)
{
    s->wish.named = *culprit;
    wish_leave(s, cause, RESULT_OVER, text, true);
}

void wish_done(struct session *s)
{
    s->wish.leave = s->wish.redial = false;
    s->wish.named.id = 0;
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

/* ---- afterwards ---- */

enum session_result left_result(const struct session *s)
{
    return s->left.over ? RESULT_OVER : s->left.cause != 0 ? RESULT_GONE : RESULT_USAGE;
}

void left_outcome(const struct session *s, struct session_outcome *out)
{
    out->cause = s->left.cause;
    out->culprit = s->left.named.id;
    out->named = s->left.named;
    session_name(s, out);
    memcpy(out->text, s->left.text, sizeof out->text);
}
