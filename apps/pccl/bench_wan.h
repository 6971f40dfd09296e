/* bench_wan.h - the emulated network in which a benchmark has its ranks: rank i is on host i, the master on host 0.
 *
 * Packets are moved by a process of its own, so that this one stays without threads.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_WAN_H
#define PCCL_BENCH_WAN_H

#include <stdbool.h>
#include <stdint.h>

struct wan_network;
struct bench_wan;

/* Begins; `n` is borrowed.  Null: the reason is on standard error. */
struct bench_wan *bench_wan_begin(struct wan_network *n);
/* Ends it, with the report on standard error; false: it failed, or what was measured is void. */
bool bench_wan_end(struct bench_wan *w);
/* In a process that is to be on that host. */
bool bench_wan_enter(const struct bench_wan *w, unsigned host);
/* A TCP socket of that host; -1. */
int bench_wan_socket(const struct bench_wan *w, unsigned host);
/* In host byte order. */
uint32_t bench_wan_address(const struct bench_wan *w, unsigned host);

#endif
