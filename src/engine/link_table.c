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

struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number)
{
    struct comm *c = l->comm;
    return (struct msg_hello){
        .kind = (uint8_t)kind, .group = c->params.group, .from = c->master.id, .to = l->peer, .view = c->master.newest,
        .number = number, .lanes = 1,
    };
}
