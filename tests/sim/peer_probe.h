/* peer_probe.h - probes of edges, as a simulated peer makes them.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_PEER_PROBE_H
#define PCCL_TESTS_SIM_PEER_PROBE_H

#include "sim_cluster.h"

uint64_t probe_bandwidth(const struct cluster *cl, uint16_t from, uint16_t to); /* bits per second; the same for the whole run */
uint32_t probe_trip_us(const struct cluster *cl, uint32_t a, uint32_t b); /* the same; near or far */
void probe_tell_took(struct cluster *cl, struct node *n); /* how long its operations took, as programs of its view have seen alike, or not */
void probe_start(struct cluster *cl, struct node *n, const struct action *a);
void probe_event(struct cluster *cl, struct node *n, const struct event *e);

#endif
