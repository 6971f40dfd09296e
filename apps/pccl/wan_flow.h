/* wan_flow.h - packets on their way through an emulated network.
 *
 * A packet passes the uplink of its source, that of the source's site, its path, the delay, the downlink of the target's site and that of
 * the target.  Each link is a wan_clock; what several hosts share is passed in order of arrival, by one heap of times.
 * Pure: time and bytes come as arguments.  Invariant: every segment that was taken is forwarded, lost, dropped, cut or still on its way.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_FLOW_H
#define PCCL_WAN_FLOW_H

#include "pccl/wan_network.h"

/* Of an ordered pair of hosts; packets are segments as they go over a wire. */
struct wan_counts {
    uint64_t forwarded, forwarded_bytes;
    uint64_t lost;    /* at random */
    uint64_t dropped; /* at the tail of a full queue */
    uint64_t cut;     /* while the pair was cut */
    uint64_t too_big; /* for the MTU of the path */
    uint64_t highest_queue_bytes;
    uint64_t writes, late; /* to the device; more than WAN_LATE_NS after they were due */
    int64_t latest_ns;
};

enum { WAN_LATE_NS = 1000000 };

struct wan_flow;

/* How packets leave. */
struct wan_output {
    /* Writes a packet, with its vnet header, to a host's device; sets when.  False: the device did not take it. */
    bool (*write)(void *user, unsigned to, const uint8_t *bytes, size_t size, int64_t *at_ns);
    void *user; /* borrowed */
};

/* `n` is borrowed and resolved; at most so many bytes are on their way.  Null: no memory. */
struct wan_flow *wan_flow_new(const struct wan_network *n, size_t most_bytes);
void wan_flow_free(struct wan_flow *f);

/* A packet, with its vnet header, as it was read from a host's device. */
void wan_flow_take(struct wan_flow *f, unsigned from, const uint8_t *bytes, size_t size, int64_t now_ns);
/* When wan_flow_run has something to do; INT64_MAX: never. */
int64_t wan_flow_next(const struct wan_flow *f);
/* Does what is due, at most so many steps; how many. */
unsigned wan_flow_run(struct wan_flow *f, int64_t now_ns, unsigned most, const struct wan_output *out);

/* Takes over the keys that are given; in one direction. */
void wan_flow_set(struct wan_flow *f, unsigned from, unsigned to, const struct wan_values *v);
/* From now on nothing arrives; `on` false: packets pass again. */
void wan_flow_cut(struct wan_flow *f, unsigned from, unsigned to, bool on);
/* Of the path as it is now. */
double wan_flow_burst(const struct wan_flow *f, unsigned from, unsigned to);
double wan_flow_loss(const struct wan_flow *f, unsigned from, unsigned to);

const struct wan_counts *wan_flow_counts(const struct wan_flow *f, unsigned from, unsigned to);
/* Packets that belong to no pair: other protocols, other addresses, no memory. */
uint64_t wan_flow_strays(const struct wan_flow *f);
/* Packets that found no memory. */
uint64_t wan_flow_overflow(const struct wan_flow *f);

#endif
