/* path.h - what two members move that have no link.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PATH_H
#define PCCL_SESSION_PATH_H

#include "session/session_state.h"

bool path_used(const struct session *s, const struct op_name *name); /* such words go by a relay in this view */
bool path_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
struct op_name path_operation(const struct op_name *name); /* whose part it is; itself */
struct op_name path_name(const struct op *op, uint64_t from, uint64_t to); /* the other way round */
void path_tell(struct session *s, uint32_t rank, struct outbox *out); /* whom this peer stands in for: it hears that member, or does no more */
void path_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void path_enter(struct session *s, struct op *op, uint32_t rank); /* its parts have their turn when those of the operations before it are in place */
void path_leave(struct session *s, struct op *op, uint32_t rank); /* ... or not any more */
void path_stop(struct session *s, struct op *op); /* it gives nobody any more */
bool path_passed_on(const struct session *s, uint32_t from, const struct op_name *name); /* that peer did not say it: it is not to blame */
struct path_range { /* of a buffer */
    uint64_t at, bytes;
};
struct path_range path_gives(const struct session *s, const struct op *op, uint32_t rank);
struct path_range path_takes(const struct session *s, const struct op *op, uint32_t rank);
uint64_t path_given(const struct session *s, const struct op *op); /* bytes, by relays, to all */
bool path_in_place(const struct session *s, const struct op *op); /* all that comes by relays */
void path_say_got(struct session *s, const struct op *op, uint32_t rank, bool anew, struct outbox *out);
void path_take(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* asks for it, if it was announced */
void path_settle(struct session *s, struct outbox *out); /* parts of what has its turn now */
enum path_pass { PATH_OWN, PATH_PASSED, PATH_LIE }; /* to this peer; between two others; a lie of the peer that said it */
enum path_pass path_passes(struct session *s, const struct said *said, struct outbox *out);
/* False: that peer may not say it. */
bool path_message(struct session *s, uint32_t from, struct reader *r);
bool path_part(struct session *s, uint32_t from, struct reader *r, struct outbox *out);
bool path_got(struct session *s, uint32_t from, struct reader *r);

#endif
