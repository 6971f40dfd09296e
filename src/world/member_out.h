/* member_out.h - how a member is put out.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEMBER_OUT_H
#define PCCL_WORLD_MEMBER_OUT_H

#include "world/world_state.h"

/* "rank 2 (peer 1.3 at 10.0.0.4:48150)", with its rank in the view; `out` holds MEMBER_TEXT bytes. */
void member_who(struct world *w, const struct member *mb, char *out);
/* Out: FENCE unless it left by itself, connection closed, what it was part of notes the loss (M1).  `text` is static: it is logged. */
void member_exclude(struct world *w, struct member *mb, enum cause cause, const char *text);
/* The same; `why` is static, it is traced; `text` is copied: it goes to the log, to the others and to the excluded one. */
void member_exclude_told(struct world *w, struct member *mb, enum cause cause, const char *why, const char *text);
void member_violation(struct world *w, struct member *mb, const char *what); /* bytes or a state that cannot be */

#endif
