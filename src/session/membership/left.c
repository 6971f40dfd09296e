/* left.c - what calls return when this peer is no member, or not any more.
 *
 * Its one idea: why it left is kept until it connects again, and every call tells it.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

enum session_result left_result(const struct session *s)
{
    return s->left_over ? RESULT_OVER : s->left_cause != 0 ? RESULT_GONE : RESULT_USAGE;
}

void left_outcome(const struct session *s, struct session_outcome *out)
{
    out->cause = s->left_cause;
    out->culprit = s->left_named.id;
    out->named = s->left_named;
    session_name(s, out);
    memcpy(out->text, s->left_text, sizeof out->text);
}
