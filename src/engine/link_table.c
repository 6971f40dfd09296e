/* link_table.c - which links a communicator has, how long each lives, and what its connections say at first.
 *
 * A link lives as long as it is in the table or a connection on a lane belongs to it.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "engine/link.h"

void link_ref(struct link *l)
{
    atomic_fetch_add(&l->refs, 1);
}

void link_unref(struct link *l)
{
    if (atomic_fetch_sub(&l->refs, 1) == 1) {
        free(l);
    }
}

struct link *link_find(struct comm *c, uint64_t peer)
{
    LIST_FOR_EACH(i, after, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (l->peer == peer && l->want.listed) {
            return l;
        }
    }
    return NULL;
}

void comm_traffic(struct comm *c, void (*tell)(void *user, const struct comm_traffic *one), void *user)
{
    LIST_FOR_EACH(i, after, &c->links.all) {
        const struct link *l = LIST_ENTRY(i, struct link, all);
        struct comm_traffic one = {.peer = l->peer, .lane = UINT32_MAX};
        if (l->control.conn != NULL) {
            one.tx_bytes = atomic_load(&l->control.conn->tx_bytes);
            one.rx_bytes = atomic_load(&l->control.conn->rx_bytes);
            tell(user, &one);
        }
        for (one.lane = 0; one.lane < BOUNDS_LANES; one.lane++) {
            const struct stream *s = l->bundle.streams[one.lane];
            if (s != NULL) {
                one.tx_bytes = atomic_load(&s->tx_bytes);
                one.rx_bytes = atomic_load(&s->rx_bytes);
                tell(user, &one);
            }
        }
    }
}

struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number)
{
    struct comm *c = l->comm;
    return (struct msg_hello){
        .kind = (uint8_t)kind, .group = c->params.group, .from = c->master.id, .to = l->peer, .view = c->master.newest,
        .number = number, .lanes = 1,
    };
}
