/* work.h - what an operation moves, and by which plan; ranks are those of plans.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_WORK_H
#define PCCL_SESSION_WORK_H

#include "session/session_state.h"

bool work_numeric(const struct session *s, const struct op_params *p, struct numeric *n);
bool work_own_numeric(const struct session *s, const struct session_launch *l, struct numeric *n); /* that encodes what is given here */
bool work_same(const struct op_params *a, const struct op_params *b); /* the same call, by whatever algorithm */
bool work_is_eager(const struct session *s, const struct op_params *p);
bool work_encodes(const struct session *s, const struct op_params *p); /* its input travels with it, and not as it is */
bool work_told(const struct session *s); /* in this view launches of all-reduces and reduces are told to all, whatever their plan */
struct work_range { /* elements of a buffer */
    size_t at, count;
};
struct work_range work_sends(const struct session *s, const struct session_launch *l, uint32_t to);   /* of the input */
struct work_range work_takes(const struct session *s, const struct session_launch *l, uint32_t from); /* in the output */
size_t work_payload(const struct numeric *n, uint8_t kind, size_t count); /* bytes that so many elements are, small operations */
/* What this rank gives to `to`, as it travels with its launch; in the input, or in s->wire. */
const void *work_given(struct session *s, const struct session_launch *l, const struct numeric *n, uint32_t to, size_t *bytes);
void work_plan(struct session *s, struct slot *c, const struct op_name *name); /* what lanes are to do */
void work_forget(struct session *s); /* the plans of a run: another master may number its views alike */

#endif
