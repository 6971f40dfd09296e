/* session_check.h - what must hold between two steps.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SESSION_CHECK_H
#define PCCL_SESSION_SESSION_CHECK_H

#include "session/session_state.h"

void session_check(struct session *s);

#endif
