/* measure.h - what messages, bytes and sums cost this process; measured once, in a few milliseconds.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_MEASURE_H
#define PCCL_ENGINE_MEASURE_H

#include "core/machine_costs.h"

/* All zero where the machine has no loopback, or no thread to spare. */
struct costs measure_costs(void);

#endif
