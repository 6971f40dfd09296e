/* sim_match.h - what the oracle remembers of messages that one receiver takes from several sources on one tag: oracle_match.c.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_MATCH_H
#define PCCL_TESTS_SIM_MATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { MATCH_RECORDS = 24 }; /* calls of a step that one receiver makes, or others to it, those made again included */

enum match_end {
    MATCH_OPEN, MATCH_OK, MATCH_ERROR,
    MATCH_MAYBE, /* an error, with a number or without */
    MATCH_VOID,  /* it never had a number */
    MATCH_GONE   /* its process left */
};

struct match_call { /* in the order of calls */
    uint64_t source, culprit; /* source: of a receive 0 until it is matched */
    int64_t ended;
    uint32_t rank[3];         /* of the sources, as they counted for its call */
    uint32_t slot, come;      /* come: index of the send that a receive has, or the other way */
    uint8_t op, cause, end;
    bool any, behind;         /* behind: one from any source had been called, and not ended */
};

struct match_record { /* messages of a step to one receiver: oracle_match.c */
    uint64_t key;
    uint32_t sends, receives;
    bool loose;               /* not compared */
    struct match_call send[MATCH_RECORDS], receive[MATCH_RECORDS];
};

enum match_kind { MATCH_FROM_ANY, MATCH_AT_ONCE, MATCH_BEHIND, MATCH_KINDS };
enum match_told { MATCH_TOLD_OK, MATCH_TOLD_LOST, MATCH_TOLD_BLOCKED, MATCH_TOLD_ALONE, MATCH_TOLD_OWN, MATCH_TOLD_SOURCE, MATCH_TOLD };

struct stats;

uint32_t match_print(const struct stats *s); /* how many cells are empty */

#endif
