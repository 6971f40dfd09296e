/* wan_run.h - commands on the hosts of an emulated network, from their start to the report.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_RUN_H
#define PCCL_WAN_RUN_H

#include <stdio.h>

#include "pccl/wan_network.h"

struct wan_job {
    unsigned host;
    char *const *words; /* borrowed; up to a null */
};

struct wan_run {
    struct wan_network *network; /* borrowed */
    const char *name;            /* borrowed; null: the process id alone */
    FILE *json;                  /* borrowed; null: the table on standard error is enough */
    const struct wan_job *jobs;  /* borrowed */
    size_t job_count;
};

/* The exit status: that of the first command that failed; 128 + the signal that ended the run; WAN_EXIT_VOID; WAN_EXIT_FAILED. */
int wan_run_all(const struct wan_run *run);

#endif
