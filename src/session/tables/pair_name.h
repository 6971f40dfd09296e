/* pair_name.h - whose message an operation of two is.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PAIR_NAME_H
#define PCCL_SESSION_PAIR_NAME_H

#include "session/session_state.h"

bool pair_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
bool pair_concerns(const struct session *s, const struct op *op, uint32_t rank);
uint32_t pair_partner(const struct session *s, const struct op_name *name); /* rank of the other one; NONE */
bool pair_owner(const struct session *s, const struct op_name *name);       /* this peer receives */

#endif
