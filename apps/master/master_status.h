/* master_status.h - asks a running master what becomes of its worlds, and prints a line for each.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_APPS_MASTER_STATUS_H
#define PCCL_APPS_MASTER_STATUS_H

#include <stdio.h>

#include "core/status.h"
#include "wire/control.h"

/* In at most ten seconds for each page.  On failure lines may have been printed. */
pccl_status master_status(const struct net_address *master, FILE *out, struct err *err) PCCL_MUST_CHECK;

#endif
