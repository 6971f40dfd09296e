/* api_topology.c - what the master knows of the links of a group.
 *
 * Its one idea: the question goes over a connection of its own, so it waits behind nothing that the run is about, and the run behind nothing
 * of it.
 * SPDX-License-Identifier: MIT */
#include "include/pccl_topology.h"

#include <inttypes.h>

#include "api/api.h"
#include "core/clock.h"
#include "net/group_links.h"

static const char topology_phase[] = "get topology";

static pcclResult_t topology_check(const pcclTopology_t *t, int64_t timeout_ms)
{
    if (t == NULL) {
        return api_null(topology_phase, "topology", "pass where to store it");
    }
    if (t->size != sizeof *t) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, topology_phase, "topology->size is %zu: set it to sizeof(pcclTopology_t)", t->size);
    }
    if (timeout_ms < 1) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, topology_phase,
                        "timeout_ms is %" PRId64 ": expected 1 or more, the most that the answer may take", timeout_ms);
    }
    return pcclSuccess;
}

static pcclResult_t topology_failed(pccl_status st, const struct err *err)
{
    if (st == PCCL_ERR_NOMEM) {
        return api_fail(pcclInternalError, pcclCauseNoMemory, topology_phase, "%s", err->text);
    }
    return api_fail(pcclUpdateTopologyFailed, st == PCCL_ERR_TIMEOUT ? pcclCauseDeadline : pcclCauseMasterUnreachable, topology_phase,
                    "%s; call again", err->text);
}

static pcclEdgeSource_t source_of(const struct topology_edge *e)
{
    static const pcclEdgeSource_t sources[] = {
        [TOPOLOGY_PROBED] = pcclEdgeProbed, [TOPOLOGY_OBSERVED] = pcclEdgeObserved, [TOPOLOGY_ASSUMED] = pcclEdgeAssumed};
    return sources[e->source];
}

static void store_edge(pcclTopology_t *t, const struct topology_edge *e)
{
    if (e->from < t->capacity && e->to < t->capacity) {
        t->edges[e->from * t->capacity + e->to] = (pcclEdge_t){
            .rate = e->rate_bps, .rtt_us = e->rtt_us, .loss_ppm = e->loss_ppm, .age_s = e->age_s, .source = source_of(e),
        };
    }
}

static void topology_store(const struct group_links *l, pcclTopology_t *t)
{
    size_t stored = l->members < t->capacity ? l->members : t->capacity;
    uint32_t slowest = group_links_slowest(l);
    bool known = slowest != UINT32_MAX;
    t->count = l->members;
    t->measured = l->edge_count;
    t->ring_rate = known ? l->edges[slowest].rate_bps : 0;
    t->ring_from = known ? (int32_t)l->edges[slowest].from : PCCL_NO_RANK;
    t->ring_to = known ? (int32_t)l->edges[slowest].to : PCCL_NO_RANK;
    for (size_t i = 0; t->ids != NULL && i < stored; i++) {
        t->ids[i] = l->list[i].id;
    }
    for (size_t i = 0; t->ring != NULL && i < stored; i++) {
        t->ring[i] = l->list[i].ring;
    }
    for (size_t i = 0; t->edges != NULL && i < stored * stored; i++) {
        t->edges[i / stored * t->capacity + i % stored] = (pcclEdge_t){.source = pcclEdgeUnknown};
    }
    for (uint32_t i = 0; t->edges != NULL && i < l->edge_count; i++) {
        store_edge(t, &l->edges[i]);
    }
}

pcclResult_t pcclGetTopology(const pcclComm_t *communicator, pcclTopology_t *topology, int64_t timeout_ms)
{
    struct session_info info;
    struct group_links links;
    struct comm *c;
    struct err err = {0};
    int64_t deadline;
    pcclResult_t rc = api_enter(communicator, topology_phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = topology_check(topology, timeout_ms);
    rc = rc == pcclSuccess ? api_deadline(topology_phase, timeout_ms, &deadline) : rc;
    rc = rc == pcclSuccess ? api_member(c, topology_phase, &info) : rc;
    if (rc == pcclSuccess) {
        struct group_asked asked = {.run = info.run, .world = "", .group = c->params.group};
        pccl_status st = group_links_ask(&links, &c->params.master, deadline, &asked, &err);
        if (st == PCCL_OK) {
            topology_store(&links, topology);
            group_links_fini(&links);
        } else {
            rc = topology_failed(st, &err);
        }
    }
    api_leave(c);
    return rc;
}
