/* comm_calls.h - the program's calls about membership.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_COMM_CALLS_H
#define PCCL_ENGINE_COMM_CALLS_H

#include "engine/comm.h"

/* Calls of the program (comm_calls.c); each fills `outcome` (result RESULT_OK or why not). */
void comm_connect(struct comm *c, struct session_outcome *outcome);
/* The same of one that a call of `parent` makes: ends when the program leaves that.  The caller is inside of both. */
void comm_derive(struct comm *parent, struct comm *c, struct session_outcome *outcome);
/* Begins it.  True: it ends with an operation by the handle of that number; false: it has not begun, see *outcome. */
bool comm_connect_async(struct comm *c, uint64_t *number_out, struct session_outcome *outcome);
void comm_connect_ended(struct comm *c, struct comm_after *after); /* with comm.lock, after each step: ends that operation when it is time */
void comm_vote(struct comm *c, const struct msg_vote *vote, struct sync_state *state, struct session_outcome *outcome);
void comm_leave(struct comm *c, const char *why);
/* Leaves, and the world ends for all; false: there never was one. */
bool comm_revoke(struct comm *c);
void comm_exit(struct comm *c);
/* Leaves for good, and waits for the calls inside; no call comes in any more. */
void comm_close(struct comm *c);
/* Waits once more for calls inside, which came by what queues had of it. */
void comm_wait_out(struct comm *c);
/* With comm.lock: no session, or one that is neither a member nor becoming one. */
bool comm_idle(struct comm *c);
/* With comm.lock: what the session says to the call that waits for it. */
void comm_say_connected(struct comm *c);
void comm_say_voted(struct comm *c);
void comm_say_apply(struct comm *c);

#endif
