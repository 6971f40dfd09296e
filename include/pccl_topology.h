/* pccl_topology.h - the links of a peer group, as they were measured.
 *
 * pcclOptimizeTopology measures them, and the master keeps what was measured.  pcclGetTopology asks the master for it.
 * `pccl topo MASTER` shows the same.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_H
#define PCCL_TOPOLOGY_H

#include "pccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pcclEdgeSource_t {
    pcclEdgeUnknown = 0, /* not measured: all other members of the edge are 0 */
    pcclEdgeProbed = 1,  /* a probe has measured it */
    pcclEdgeObserved = 2, /* operations have moved more over it than its last probe: it carries at least `rate` */
    pcclEdgeAssumed = 3  /* not measured yet: taken to be like a measured edge between the same two sites */
} pcclEdgeSource_t;

/* The way from one member to another, as far as it is known. */
typedef struct pcclEdge_t {
    uint64_t rate;     /* bits per second; 0 of a known edge: no connection is possible in this direction */
    uint32_t rtt_us;   /* the least round-trip time; 0: not known */
    uint32_t loss_ppm; /* bytes that were sent again, in millionths */
    uint32_t age_s;    /* seconds since it was measured, or operations raised its rate */
    pcclEdgeSource_t source;
} pcclEdge_t;

typedef struct pcclTopology_t {
    size_t size;     /* sizeof(pcclTopology_t), as this program was compiled: see PCCL_INITIALIZER */
    size_t capacity; /* the number of members that the three arrays have room for */
    uint64_t *PCCL_NULLABLE ids;     /* capacity entries, or null: stores the id of each member, by rank */
    uint32_t *PCCL_NULLABLE ring;    /* capacity entries, or null: stores the rank at each place of the ring */
    pcclEdge_t *PCCL_NULLABLE edges; /* capacity * capacity entries, or null: edges[from * capacity + to], by rank */
    /* Stored by the call. */
    size_t count;       /* members of the group, which may be more than `capacity` */
    size_t measured;    /* edges that are measured or assumed, of count * (count - 1) */
    uint64_t ring_rate; /* bits per second of the slowest edge of the ring; 0: an edge of it is not known, or cannot connect */
    int32_t ring_from, ring_to; /* the ranks of that edge; PCCL_NO_RANK: not known */
} pcclTopology_t;

/* Asks the master how the members of this group are linked, and stores the answer.  It waits at most `timeout_ms`, 1 or
 * more, and waits for no other peer.  The ranks are those of the newest view, which may be newer than the snapshot of
 * pcclGetMembers: compare `ids`.  Of more than `capacity` members the first ones are stored.  Groups of more than 1,024
 * members are not measured.
 * InvalidUsage: this peer is not connected.  UpdateTopologyFailed: the master did not answer, with cause
 * pcclCauseMasterUnreachable or pcclCauseDeadline.  After an error nothing is stored. */
PCCL_EXPORT pcclResult_t pcclGetTopology(const pcclComm_t *communicator, pcclTopology_t *topology, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
