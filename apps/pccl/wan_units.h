/* wan_units.h - numbers with units, as the description of a network has them: 2.5gbit, 50ms, 0.1%, 6MB.
 *
 * Each reader returns null and sets `out`, or returns what the value has to be, for the end of an error message; `out` is untouched then.
 * Invariant: no sign, no exponent, no blank within a value, and nothing behind its unit.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_UNITS_H
#define PCCL_WAN_UNITS_H

#include <stdint.h>

/* Bits per second; 0 stands for "unlimited". */
const char *wan_units_rate(const char *text, uint64_t *out);
const char *wan_units_bytes(const char *text, uint64_t *out);
/* Nanoseconds. */
const char *wan_units_time(const char *text, int64_t *out);
/* A probability: 0.001 or 0.1%. */
const char *wan_units_loss(const char *text, double *out);
/* The mean length of a burst of losses, in packets. */
const char *wan_units_burst(const char *text, double *out);
const char *wan_units_count(const char *text, uint64_t *out);
/* An IPv4 address in host byte order. */
const char *wan_units_address(const char *text, uint32_t *out);

#endif
