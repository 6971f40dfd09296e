/* trace.h - a line for the log.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_TRACE_H
#define PCCL_SESSION_TRACE_H

#include "session/session_state.h"

enum trace_for { TRACE_CLOSER, TRACE_EVERYBODY };
void session_trace(struct outbox *out, enum trace_for reader, const char *fmt, ...) PCCL_PRINTF(3, 4);

#endif
