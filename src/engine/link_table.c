/* link_table.c - which links a communicator has, and how long each lives.
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
        if (l->peer == peer && l->wanted) {
            return l;
        }
    }
    return NULL;
}
