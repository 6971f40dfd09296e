/* group_call.h - calls of collectives, and which members one concerns.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_GROUP_CALL_H
#define PCCL_SESSION_GROUP_CALL_H

#include "session/session_state.h"

enum session_result group_check(struct session *s, const struct session_launch *l, struct call_of *call);
void group_no_number(struct session *s);
void group_launch(struct session *s, uint32_t slot, struct outbox *out);
bool group_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
bool group_concerns(const struct session *s, const struct op *op, uint32_t rank);
bool group_tells(const struct session *s, const struct op *op);
bool group_wanted(const struct session *s, const struct op *op, uint32_t rank);
bool group_apart(const struct session *s, const struct op *op, uint32_t rank);

#endif
