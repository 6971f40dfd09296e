/* wan_emulator.h - a network that runs: its hosts, the packets between them, and the report at its end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_EMULATOR_H
#define PCCL_WAN_EMULATOR_H

#include <stdio.h>

#include "pccl/wan_pump.h"

enum { WAN_EXIT_FAILED = 125, WAN_EXIT_VOID = 75, WAN_EXIT_WORDS = 2 };

struct wan_emulator {
    struct wan_network *network; /* borrowed */
    struct wan_space *spaces;    /* owned */
    struct wan_flow *flow;       /* owned */
    struct wan_pump *pump;       /* owned; null: it does not run */
    bool is_first;               /* when it ran: before all other processes */
    uint64_t *unread;            /* owned; by host: what its device dropped, since the emulator was too late */
};

/* Makes the hosts; to be called while there is one thread.  False: `error`. */
bool wan_emulator_open(struct wan_emulator *e, struct wan_network *n, char error[WAN_ERROR]);
/* From now on packets move. */
bool wan_emulator_start(struct wan_emulator *e, char error[WAN_ERROR]);
void wan_emulator_stop(struct wan_emulator *e);
void wan_emulator_close(struct wan_emulator *e);

/* Of one that has stopped.  Whether its figures say nothing, since the host was too busy: over 5 % of writes were late. */
bool wan_report_void(const struct wan_emulator *e);
void wan_report_table(FILE *to, const struct wan_emulator *e);
void wan_report_json(FILE *to, const struct wan_emulator *e);

#endif
