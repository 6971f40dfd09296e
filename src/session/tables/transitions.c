/* transitions.c - the state machines of a session as tables, and the one function that writes a phase.
 * SPDX-License-Identifier: MIT */
#include "session/tables/transitions.h"

#define TO(phase) (uint8_t)(1u << (phase))
static const struct phase_table phases[] = {
    [MACHINE_SESSION] = {"session", 4, {"IDLE", "DIALING", "JOINING", "MEMBER"},
                         {TO(PHASE_DIALING), TO(PHASE_JOINING) | TO(PHASE_IDLE),
                          TO(PHASE_MEMBER) | TO(PHASE_DIALING) | TO(PHASE_IDLE), TO(PHASE_IDLE)}},
    [MACHINE_CALL] = {"call", 5, {"FREE", "DEFERRED", "RUNNING", "ENDING", "RETURNED"},
                      {TO(SLOT_DEFERRED), TO(SLOT_RUNNING) | TO(SLOT_ENDING), TO(SLOT_ENDING), TO(SLOT_RETURNED),
                       TO(SLOT_FREE)}},
    [MACHINE_OPERATION] = {"operation", 5, {"FREE", "GHOST", "RUN", "HOLDING", "DONE"},
                           {TO(OP_GHOST), TO(OP_RUN) | TO(OP_FREE), TO(OP_HOLDING) | TO(OP_DONE) | TO(OP_FREE),
                            TO(OP_DONE) | TO(OP_FREE), TO(OP_FREE)}},
};

void phase_move(enum session_machine machine, uint8_t *phase, uint8_t to)
{
    PCCL_ASSERT(phase_allowed(&phases[machine], *phase, to));
    *phase = to;
}

const struct phase_table *session_phases(uint32_t *count)
{
    *count = sizeof phases / sizeof phases[0];
    return phases;
}
