/* choose.h - which algorithm an operation takes, and how long that will take.
 *
 * Its one idea: the choice is a calculation from what all members know alike (the operation's parameters and the view, with the
 * costs that stand in it), in whole numbers, so that it comes out alike everywhere; what a member chose travels in the parameters
 * of its call all the same, where a difference is told as one.
 * Invariant: what is chosen has a plan (plan_offers), or travels with its launch (PLAN_TINY, small operations).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_CHOOSE_H
#define PCCL_COLLECTIVES_CHOOSE_H

#include "collectives/plan.h"
#include "core/machine_costs.h"

/* What PCCL_ALGO asks for: per kind a bit for each algorithm that may be taken.  Never empty. */
struct choose_wishes {
    uint16_t allowed[PLAN_KINDS];
};

/* What is known of a view's trees. */
struct forest {
    bool usable;       /* it has trees, and whoever is beside another in one of them is linked with it */
    uint32_t mib_ns;   /* predicted by their maker: a MiB of the buffer, all trees together */
    uint32_t delay_us; /* ... all one-way delays up the slowest tree and down again */
};

/* What is known of a view's ring. */
struct ring_costs {
    uint32_t link_ps;  /* as of a member's link, where only neighbours exchange data; 0: as on any link */
    uint32_t delay_us; /* beside it: all one-way delays once round the ring */
};

struct choose_call {
    enum plan_kind kind;
    uint32_t world;
    uint64_t bytes;       /* of the count in the operation's parameters, as they travel */
    uint32_t frame_bytes;
    bool small;           /* may travel with its launch: then that is PLAN_TINY, whatever the kind */
    bool plain;           /* a part of its sum may travel as it is */
    bool told;            /* all members hear of each launch, those too that exchange nothing with it */
    bool uneven;          /* not every member may own a part: direct */
    bool pairs;           /* of each part only two know how much it is */
    struct forest forest; /* of the view's trees */
    bool handed_on;       /* between its root and others some have to stand in: direct, too, though it is of pairs */
    uint16_t allowed;
    struct costs costs;   /* of the view */
    bool measured;        /* of the view: what follows of links was */
    uint32_t link_ps;     /* of the view: a byte on a member's link */
    struct ring_costs ring;
    uint32_t crowd;       /* of the view: members for each core of a host, in CHOOSE_CROWD-ths */
};
enum { CHOOSE_CROWD = 256 };

struct choose_answer {
    enum plan_algorithm algorithm;
    uint64_t ns;       /* predicted, from the last launch to the end; 0: nothing was measured */
    uint64_t delay_ns; /* of it, delays, however many bytes, */
    uint64_t hold_ns;  /* ... the last of which is that all say that they hold the result */
    bool measured;     /* from links that were measured */
    bool links;        /* the rest is what links take for the bytes; false: what processors do */
};

struct choose_answer choose_algorithm(const struct choose_call *call);

/* choose_forest.c: a sum of so many bytes along the trees; `own`: what the members need for it where no link is in the way;
 * `hold_ns`: that all hold it, as long as that all are ready. */
struct choose_answer choose_forest(const struct forest *forest, uint64_t bytes, struct choose_answer own, uint64_t hold_ns);

/* What each kind has. */
struct choose_wishes choose_all(void);

/* Reads PCCL_ALGO: sections apart by ';', each "list" (all kinds) or "function:list"; a list is names apart by ',', with '^' in
 * front all but these.  "allreduce:ring,tiny;broadcast:^chain".  Case does not matter; a later section replaces an earlier one.  A list without a
 * function changes nothing for a kind that has none of its names.  False: `why` says which word, and what was expected. */
bool choose_read(const char *text, struct choose_wishes *out, char *why, size_t why_bytes);

#endif
