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

static void check_places(const struct master *m)
{
    uint32_t over = 0;
    for (uint32_t i = 0; i < m->place_count; i++) {
        const struct place *p = &m->places[i];
        over += p->over;
        PCCL_ASSERT(!p->over || i != MASTER_DEFAULT); /* the default world never ends */
        PCCL_ASSERT(p->due == NEVER || registry_at(m, i) != NULL);
        PCCL_ASSERT(p->world == NULL || world_slot(p->world) == i);
        PCCL_ASSERT(p->world == NULL || (world_run(p->world) == m->common.config.run) == (i == MASTER_DEFAULT));
    }
    PCCL_ASSERT(over == m->ended);
}

void master_check(struct master *m)
{
    if (m->check_in-- > 1) {
        return;
    }
    m->check_in = check_interval(m->common.config.check_every, m->common.config.max_connections);
    check_places(m);
    uint32_t registered = 0;
    for (uint32_t i = 0; i < m->common.config.max_connections; i++) {
        check_conn(m, i);
        registered += m->common.conns[i].state == CONN_MEMBER;
    }
    PCCL_ASSERT(registered == m->common.registered);
}
