/* took.h - how many times as long as predicted operations take, by the kind of their plan.
 *
 * One operation may be late because a program or another transfer was beside it: the median of the last three counts.
 * Invariant: what was told is told again only when it is clearly something else.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_TOOK_H
#define PCCL_ENGINE_TOOK_H

#include "collectives/choose.h"
#include "wire/control.h"

enum { TOOK_CALLS = 3 };

struct took {
    uint64_t view; /* of the operations that count */
    struct took_kind_seen {
        uint16_t last[TOOK_CALLS]; /* permille of what was predicted */
        uint32_t calls;
        uint16_t first, told; /* medians: of the first three, and the one that was told last */
    } kind[TOOK_KINDS];
};

/* How long one operation should take, and of which kind it is. */
struct took_forecast {
    uint8_t kind;      /* enum took_kind; TOOK_KINDS: it says nothing about links */
    uint64_t bytes;    /* of its buffer */
    int64_t delays_ns; /* from the last READY until its data are there, however many */
    int64_t links_ns;  /* what is predicted for the bytes */
    int64_t late_ns;   /* if READY comes later than that, somebody's program was late */
};

struct took_forecast took_predicted(const struct op_params *p, const struct choose_answer *a);

/* An operation that ran alone in that view has its data after `took_ns`.  True: `out` is news for the master. */
bool took_take(struct took *t, uint64_t view, const struct took_forecast *f, int64_t took_ns, struct msg_took *out);

/* Until an operation has its data, after what the first of its kind have shown in this view; 0: nothing is known yet, and it took no more than
 * twice as long as predicted.  Where they were off by more than the model is, edges had changed, and `predicted_ns` stays. */
int64_t took_expected(const struct took *t, uint64_t view, const struct took_forecast *f, int64_t predicted_ns, int64_t took_ns);

#endif
