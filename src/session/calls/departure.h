/* departure.h - how this peer leaves, and what calls return after that.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_DEPARTURE_H
#define PCCL_SESSION_DEPARTURE_H

#include "session/session_state.h"

enum session_result left_result(const struct session *s);
void left_outcome(const struct session *s, struct session_outcome *out);
void wish_leave(struct session *s, uint8_t cause, enum session_result result, const char *text, bool tell_master);
void wish_redial(struct session *s, const char *text); /* the connection with the master is of no use */
void wish_no_message(struct session *s); /* O3 */
void wish_over(struct session *s, uint8_t cause, const char *text, const struct member_name *culprit); /* the world ends */
void wish_done(struct session *s);

#endif
