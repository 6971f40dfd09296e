/* mismatch.h - calls of one operation that differ, and how that is told.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_MISMATCH_H
#define PCCL_SESSION_MISMATCH_H

#include "session/session_state.h"

void mismatch_hear(struct session *s, struct op *op, uint32_t rank, const struct op_params *params); /* a launch, the own one too */
bool mismatch_with(const struct session *s, const struct op *op, uint32_t rank); /* both have launched it, with other parameters */
uint32_t mismatch_first(const struct session *s, const struct op *op); /* the least rank with which it is so; NONE */
/* What is known of an operation that is refused for it; and what others know. */
struct op_clash mismatch_clash(const struct session *s, const struct op *op);
void mismatch_learn(struct session *s, struct op *op, const struct op_clash *clash);
/* The outcome of a call names a member whose call differs, and says both. */
void mismatch_tell(const struct session *s, struct slot *c, const struct op_clash *clash);
void mismatch_owe(struct session *s, uint64_t view, const struct op_name *name, const struct op_clash *clash);
struct op_clash mismatch_owed(const struct session *s, const struct owed *owed);

#endif
