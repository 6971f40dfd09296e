/* master_check.c - what must hold between two steps of the master, in one place; of each world in src/world/world_check.c.
 *
 * Connections cost as much as there are: they are looked at every so many steps (core/check.h).
 * Invariant: nothing is written but the count-down.
 * SPDX-License-Identifier: MIT */
#include "master/master_state.h"

static void check_conn(const struct master *m, uint32_t conn)
{
    const struct conn *c = &m->common.conns[conn];
    if (c->state == CONN_MEMBER) {
        const struct world *w = registry_at(m, c->world);
        PCCL_ASSERT(w != NULL && world_holds(w, c->member, conn));
    }
}

void master_check(struct master *m)
{
    PCCL_ASSERT(m->common.touched == NULL);
    if (m->check_in-- > 1) {
        return;
    }
    m->check_in = check_interval(m->common.config.check_every, m->common.conn_room + 4 * m->place_room);
    registry_check(m);
    uint32_t registered = 0, strangers = 0;
    for (uint32_t i = 0; i < m->common.conn_room; i++) {
        check_conn(m, i);
        registered += m->common.conns[i].state == CONN_MEMBER;
        strangers += m->common.conns[i].state == CONN_OPEN;
    }
    for (uint32_t i = m->common.stranger_first; i != SLOT_NONE; i = m->common.conns[i].after) {
        PCCL_ASSERT(m->common.conns[i].state == CONN_OPEN && strangers > 0);
        strangers--;
    }
    PCCL_ASSERT(strangers == 0);
    PCCL_ASSERT(registered == m->common.registered);
}
