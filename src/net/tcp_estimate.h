/* tcp_estimate.h - what a connection's congestion control takes for the rate of its bottleneck.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_TCP_ESTIMATE_H
#define PCCL_NET_TCP_ESTIMATE_H

#include <stdint.h>

/* Bits per second; 0: it has no such idea (only BBR has). */
uint64_t tcp_estimate_bps(int fd);

#endif
