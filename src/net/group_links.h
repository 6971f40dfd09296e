/* group_links.h - how the members of a group are linked, as their master tells it.
 *
 * Its one idea: the pages of an answer are put together here, and believed only if they fit each other.
 * The master counts members by id; here they get the ranks that programs know, by key, then id.
 * Invariant: the ring has each rank once, edges ascend by their pair.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_GROUP_LINKS_H
#define PCCL_NET_GROUP_LINKS_H

#include "core/status.h"
#include "wire/control.h"

struct group_links {
    uint64_t view;
    uint32_t members;             /* 0: nothing is known yet */
    struct topology_member *list; /* owned, as all here; of which `listed` are known so far.  When all is known: by rank */
    uint32_t listed;
    struct topology_edge *edges; /* the known ones, row by row */
    uint32_t edge_count, edge_room;
    struct topology_took took[TOOK_KINDS];
};

/* What is asked for: one group of a world of that run, or of that name if the run is 0. */
struct group_asked {
    uint64_t run;
    const char *world; /* borrowed */
    uint32_t group;
};

/* Adds a page, which began at `from`.  AGAIN: the view has changed, and *l is empty as at the beginning. */
pccl_status group_links_add(struct group_links *l, struct reader *page, const struct group_asked *asked, uint32_t from, uint32_t *next_out,
                            struct err *err) PCCL_MUST_CHECK;

/* Asks for all pages, on a connection each, and again if the view changes meanwhile. */
pccl_status group_links_ask(struct group_links *l, const struct net_address *master, int64_t deadline, const struct group_asked *asked,
                            struct err *err) PCCL_MUST_CHECK;

/* The slowest edge of the ring, by its number in `edges`; UINT32_MAX: one is not measured, or there is none. */
uint32_t group_links_slowest(const struct group_links *l);
/* Null: not measured. */
const struct topology_edge *group_links_find(const struct group_links *l, uint32_t from, uint32_t to);

void group_links_fini(struct group_links *l);

#endif
