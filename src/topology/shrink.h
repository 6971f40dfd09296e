/* shrink.h - rates moved towards equal, by as much as their differences may be errors of measurement.
 *
 * One idea: of estimates that scatter no more than their own error, the mean is the better guess (James and Stein
 * 1961).  A plan made of raw estimates trusts the highest ones most, which are the most wrong.
 * Invariant: the geometric mean of the rates that are moved stays.  Rates of 0 and without limit are not touched.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_SHRINK_H
#define PCCL_TOPOLOGY_SHRINK_H

#include <stddef.h>

/* Rates of one kind (links, or paths), each known to about `error` (0.15: within 15 %). */
void shrink_rates(double *rates, size_t count, double error);

#endif
