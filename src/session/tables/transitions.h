/* transitions.h - the one writer of phases.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_TRANSITIONS_H
#define PCCL_SESSION_TRANSITIONS_H

#include "session/session_state.h"

enum session_machine { MACHINE_SESSION, MACHINE_CALL, MACHINE_OPERATION }; /* transitions.c: the one writer of phases */
void phase_move(enum session_machine machine, uint8_t *phase, uint8_t to);

#endif
