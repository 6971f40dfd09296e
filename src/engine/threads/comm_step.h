/* comm_step.h - one step of a communicator's session.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_COMM_STEP_H
#define PCCL_ENGINE_COMM_STEP_H

#include "engine/comm.h"

/* A step (comm_step.c). */
void comm_fail(struct session_outcome *outcome, enum session_result result, const char *text);
void comm_lock(struct comm *c, struct comm_after *after);
void comm_step(struct comm *c, struct session_event *event, struct comm_after *after);
void comm_unlock(struct comm *c, struct comm_after *after);
/* With comm.lock: a line for the log when the lock is given back, if the log is on for that level. */
void comm_say(struct comm_after *after, enum log_level level, const char *fmt, ...) PCCL_PRINTF(3, 4);
pccl_status comm_receive(struct comm *c, struct conn *conn, uint32_t events, comm_frame_fn *frame, void *user,
                         struct comm_after *after) PCCL_MUST_CHECK;
/* Appends a frame to a connection; it is sent when the lock is given back.  The second form leaves the data where it is until then. */
void comm_send(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data, size_t data_size);
void comm_lend(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data, size_t data_size);
/* With comm.lock: a fresh session in place of the last one, which nobody uses any more.  False: no memory. */
bool comm_session_start(struct comm *c, const struct session_config *config);
void comm_staging_free(struct comm *c);
void comm_session_rest(struct comm *c); /* what is empty between steps */
void comm_session_free(struct comm *c);

#endif
