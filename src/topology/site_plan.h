/* site_plan.h - trees for worlds too large for a matrix of their pairs: by sites and representatives.
 *
 * One idea: in each tree one member of a site, its representative, is the middle of a star of the site, and a tree over
 * sites joins the representatives.  The trees over sites are packed as those of members are; large ones are split, and
 * each part has other representatives, so that their links share the load.  Memory grows with members and with pairs of
 * sites, never with pairs of members.
 * Invariant of a plan: shares add up to TREE_SET_WHOLE; each tree spans all members and has one root.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_SITE_PLAN_H
#define PCCL_TOPOLOGY_SITE_PLAN_H

#include "topology/tree_load.h"

enum {
    SITE_PLAN_TREES = 64,
    SITE_PLAN_SITES = TREE_SET_MEMBERS,
};

/* What is known; all arrays are borrowed.  Rates are > 0, infinite without a limit; a path of 0: not linked. */
struct site_world {
    size_t n, sites;
    const uint16_t *site;            /* [n], < sites; each site has a member */
    const double *up_bps, *down_bps; /* [n] */
    const double *path_bps;          /* [sites][sites], what all members of two sites share, row: from */
    const double *delay_s;           /* [sites][sites], one way */
};

struct site_plan {
    size_t n, sites;
    const uint16_t *site; /* borrowed from the world */
    uint32_t count;
    uint32_t share[SITE_PLAN_TREES];
    uint32_t *representative; /* borrowed from the storage, [count][sites], members */
    uint16_t *parent_site;    /* borrowed from the storage, [count][sites]; the root's is itself */
};

/* Bytes of storage, aligned to 8. */
size_t site_plan_room(size_t n, size_t sites);

/* Makes a plan and predicts its time.  False, nothing to be used, if a number is not valid, a site has no member, there
 * are more than SITE_PLAN_SITES, or the sites are not linked. */
bool site_plan_make(const struct site_world *world, void *storage, struct site_plan *out,
                    struct tree_forecast *forecast);

/* The parent of a member in a tree of the plan; the root's is itself. */
uint32_t site_plan_parent(const struct site_plan *plan, uint32_t tree, uint32_t member);

#endif
