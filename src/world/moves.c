/* moves.c - the phases of a world's machines, the moves that each allows, and the one writer of phases.
 *
 * Its one idea: a phase changes along an edge of a table or not at all, so the tables are the diagrams of docs/internals/PROTOCOL.md.
 * Invariant: every change of a phase is traced, and makes world_settle look again.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/moves.h"

#define TO(phase) (1u << (phase))
const struct phase_table phase_next[PHASE_MACHINES] = {
    [PHASE_MEMBER] = {"member", MEMBER_PHASES, {"FREE", "PENDING", "ACCEPTED", "GONE"},
                      {TO(MEMBER_PENDING), TO(MEMBER_ACCEPTED) | TO(MEMBER_GONE), TO(MEMBER_GONE), TO(MEMBER_FREE)}},
    [PHASE_GROUP] = {"group", GROUP_PHASES, {"FREE", "NORMAL", "FREEZING", "LINKING", "PERSISTING"},
                     {TO(GROUP_NORMAL), TO(GROUP_FREE) | TO(GROUP_FREEZING) | TO(GROUP_PERSISTING),
                      TO(GROUP_NORMAL) | TO(GROUP_LINKING) | TO(GROUP_PERSISTING),
                      TO(GROUP_NORMAL) | TO(GROUP_FREEZING) | TO(GROUP_PERSISTING), TO(GROUP_NORMAL)}},
    [PHASE_ADMIT] = {"admission", ADMIT_PHASES, {"IDLE", "LINKING", "READY", "PERSISTING"},
                     {TO(ADMIT_LINKING) | TO(ADMIT_PERSISTING), TO(ADMIT_IDLE) | TO(ADMIT_READY) | TO(ADMIT_PERSISTING),
                      TO(ADMIT_IDLE) | TO(ADMIT_LINKING) | TO(ADMIT_PERSISTING), TO(ADMIT_IDLE)}},
    [PHASE_SYNC] = {"sync", SYNC_PHASES, {"IDLE", "STAGING", "PERSISTING", "DURABLE"},
                    {TO(SYNC_STAGING) | TO(SYNC_PERSISTING), TO(SYNC_IDLE) | TO(SYNC_PERSISTING),
                     TO(SYNC_IDLE) | TO(SYNC_DURABLE), TO(SYNC_IDLE)}},
    [PHASE_OPTIMISE] = {"optimise", OPTIMISE_PHASES, {"IDLE", "PROBING", "SOLVING", "PERSISTING"},
                        {TO(OPTIMISE_PROBING) | TO(OPTIMISE_SOLVING),
                         TO(OPTIMISE_IDLE) | TO(OPTIMISE_SOLVING),
                         TO(OPTIMISE_IDLE) | TO(OPTIMISE_PERSISTING), TO(OPTIMISE_IDLE)}},
    [PHASE_FORMATION] = {"formation", FORM_PHASES, {"ELASTIC", "FORMING", "FORMED", "OVER", "GIVEN_UP"},
                         {TO(FORM_FORMING) | TO(FORM_OVER), TO(FORM_FORMED) | TO(FORM_GIVEN_UP), TO(FORM_OVER),
                          TO(FORM_ELASTIC), 0}},
};

const struct phase_table *world_phases(uint32_t *count)
{
    *count = PHASE_MACHINES;
    return phase_next;
}

void world_move(struct world *w, enum phase_machine machine, uint8_t *phase, uint8_t to, uint64_t id, uint64_t view,
                 const char *why)
{
    PCCL_ASSERT(phase_allowed(&phase_next[machine], *phase, to));
    struct action *a = outbox_add(w->common->out, MASTER_TRACE);
    a->slot = (uint32_t)machine << 16 | (uint32_t)*phase << 8 | to;
    a->id = id;
    a->value = view;
    a->order = w->slot;
    a->data = why;
    *phase = to;
    w->changed = true;
}

void world_tell(struct world *w, const char *what)
{
    struct action *a = outbox_add(w->common->out, MASTER_TRACE);
    a->slot = (uint32_t)PHASE_MACHINES << 16;
    a->order = w->slot;
    a->data = what;
}
