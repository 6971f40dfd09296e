/* api_info.c - what a program may ask: itself, the others, who is waited for, counters, addresses.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"
#include "net/addr.h"
#include "engine/tables/link_table.h"

static void info_peer(struct comm *c, uint32_t rank, const struct session_info *self, pcclPeerInfo_t *out)
{
    struct session_member m;
    memset(out, 0, sizeof *out);
    if (session_member(c->machine.session, rank, &m)) {
        out->id = m.id;
        out->rank = rank;
        out->ring_position = m.ring_position;
        out->key = m.key;
        out->lost = m.lost;
        out->peer_group = c->params.group;
        out->is_self = m.id == self->id;
        if (out->is_self && addr_is_any(&m.address) && c->master.seen.family != 0) {
            uint16_t port = m.address.port; /* the first candidate means "what the master sees" */
            m.address = c->master.seen;
            m.address.port = port;
        }
        out->address = api_address_out(&m.address);
    }
}

pcclResult_t pcclGetSelf(const pcclComm_t *communicator, pcclPeerInfo_t *self_out)
{
    struct comm *c;
    struct session_info info;
    pcclResult_t rc = api_enter(communicator, "self", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = self_out == NULL ? api_fail(pcclInvalidArgument, pcclCauseUsage, "self", "self_out is null")
                          : api_member(c, "self", &info);
    if (rc == pcclSuccess) {
        pthread_mutex_lock(&c->lock);
        session_info(c->machine.session, &info);
        info_peer(c, info.called_rank, &info, self_out);
        pthread_mutex_unlock(&c->lock);
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclGetMembers(const pcclComm_t *communicator, pcclPeerInfo_t *members_out, size_t capacity, size_t *count_out)
{
    struct comm *c;
    struct session_info info;
    pcclResult_t rc = api_enter(communicator, "members", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = count_out == NULL || (members_out == NULL && capacity > 0)
             ? api_fail(pcclInvalidArgument, pcclCauseUsage, "members", "%s is null",
                        count_out == NULL ? "count_out" : "members_out")
             : api_member(c, "members", &info);
    if (rc == pcclSuccess) {
        pthread_mutex_lock(&c->lock);
        session_info(c->machine.session, &info);
        for (uint32_t i = 0; i < info.called && i < capacity; i++) {
            info_peer(c, i, &info, &members_out[i]);
        }
        pthread_mutex_unlock(&c->lock);
        *count_out = info.called;
    }
    api_leave(c);
    return rc;
}

static void info_then(pcclWaitInfo_t *out, const struct session_wait *w)
{
    out->then_peer = w->then;
    out->then_tag = w->then_name.tag;
    snprintf(out->then_phase, sizeof out->then_phase, "%s", w->then_phase != NULL ? w->then_phase : "");
    snprintf(out->then_vote, sizeof out->then_vote, "%s", w->then_vote != NULL ? w->then_vote : "");
}

pcclResult_t pcclGetWaits(const pcclComm_t *communicator, pcclWaitInfo_t *waits_out, size_t capacity, size_t *count_out)
{
    struct comm *c;
    enum { MOST = BOUNDS_OPS + 16 };
    pcclResult_t rc = api_enter(communicator, "waits", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    struct session_wait *waits = calloc(MOST, sizeof *waits);
    if (count_out == NULL || (waits_out == NULL && capacity > 0)) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "waits", "%s is null",
                      count_out == NULL ? "count_out" : "waits_out");
    } else if (waits == NULL) {
        rc = api_fail(pcclInternalError, pcclCauseNoMemory, "waits", "no memory");
    } else {
        rc = api_not_gone(c, "waits");
    }
    if (rc == pcclSuccess) {
        int64_t now = clock_now_ns();
        pthread_mutex_lock(&c->lock);
        uint32_t count = c->machine.session != NULL ? session_waits(c->machine.session, waits, MOST) : 0;
        count = count < MOST ? count : MOST;
        for (uint32_t i = 0; i < count && i < capacity; i++) {
            session_wait_text(c->machine.session, &waits[i], waits_out[i].text, sizeof waits_out[i].text);
        }
        pthread_mutex_unlock(&c->lock);
        for (uint32_t i = 0; i < count && i < capacity; i++) {
            waits_out[i].tag = waits[i].name.tag;
            waits_out[i].peer = waits[i].peer;
            waits_out[i].age_ns = waits[i].since > 0 ? now - waits[i].since : 0;
            memset(waits_out[i].phase, 0, sizeof waits_out[i].phase);
            snprintf(waits_out[i].phase, sizeof waits_out[i].phase, "%s", waits[i].phase);
            info_then(&waits_out[i], &waits[i]);
        }
        *count_out = count;
    }
    free(waits);
    api_leave(c);
    return rc;
}

pcclResult_t pcclGetMissingRanks(const pcclComm_t *communicator, uint32_t *ranks_out, size_t capacity, size_t *count_out)
{
    struct comm *c;
    pcclResult_t rc = api_enter(communicator, "missing ranks", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (count_out == NULL || (ranks_out == NULL && capacity > 0)) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "missing ranks", "%s is null", count_out == NULL ? "count_out" : "ranks_out");
    } else {
        uint32_t most = capacity < BOUNDS_MEMBERS ? (uint32_t)capacity : BOUNDS_MEMBERS;
        pthread_mutex_lock(&c->lock);
        *count_out = c->machine.session != NULL ? session_missing(c->machine.session, ranks_out, most) : 0;
        pthread_mutex_unlock(&c->lock);
    }
    api_leave(c);
    return rc;
}

struct info_stats {
    pcclConnectionStats_t *out;
    pcclTransport_t *transports; /* in place of `out` */
    pcclTcpConnection_t *tcp;    /* the same; */
    bool only_tcp;               /* ... these are what is counted */
    size_t capacity, count;
};

static void info_stat_tcp(struct info_stats *stats, const struct comm_traffic *one)
{
    if (one->transport == NULL || one->by != TRANSPORT_TCP) {
        return;
    }
    if (stats->count < stats->capacity) {
        struct transport_tcp seen;
        transport_tcp_look(one->transport, &seen);
        pcclTcpConnection_t *t = &stats->tcp[stats->count];
        *t = (pcclTcpConnection_t){
            .peer = one->peer, .lane = one->lane, .sockets = seen.sockets, .rate = seen.rate, .retransmitted_bytes = seen.retransmitted,
            .rtt_us = seen.rtt_us, .least_rtt_us = seen.least_rtt_us,
        };
        snprintf(t->congestion, sizeof t->congestion, "%s", seen.congestion);
    }
    stats->count++;
}

static void info_stat(void *user, const struct comm_traffic *one)
{
    struct info_stats *stats = user;
    if (stats->only_tcp) {
        info_stat_tcp(stats, one);
        return;
    }
    if (stats->count < stats->capacity && stats->transports != NULL) {
        static const pcclTransportKind_t kinds[] = {
            [TRANSPORT_TCP] = pcclTransportTcp, [TRANSPORT_SHM] = pcclTransportSharedMemory, [TRANSPORT_FABRIC] = pcclTransportFabric,
        };
        pcclTransport_t *t = &stats->transports[stats->count];
        *t = (pcclTransport_t){.peer = one->peer, .lane = one->lane, .kind = kinds[one->by]};
        snprintf(t->provider, sizeof t->provider, "%s", one->provider);
        snprintf(t->reason, sizeof t->reason, "%s", one->why);
    } else if (stats->count < stats->capacity) {
        stats->out[stats->count] = (pcclConnectionStats_t){
            .peer = one->peer, .lane = one->lane, .tx_bytes = one->tx_bytes, .rx_bytes = one->rx_bytes,
            .window_bytes = one->window_bytes, .granted_bytes = one->granted_bytes, .bounded_operations = one->bounded,
        };
    }
    stats->count++;
}

/* Tells of each connection. */
static pcclResult_t info_connections(const pcclComm_t *communicator, const char *call, const char *missing, struct info_stats *stats,
                                     size_t *count_out)
{
    struct comm *c;
    pcclResult_t rc = api_enter(communicator, call, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (missing != NULL) {
        api_leave(c);
        return api_fail(pcclInvalidArgument, pcclCauseUsage, call, "%s is null", missing);
    }
    rc = api_not_gone(c, call);
    if (rc == pcclSuccess) {
        pthread_mutex_lock(&c->lock);
        comm_traffic(c, info_stat, stats);
        pthread_mutex_unlock(&c->lock);
        *count_out = stats->count;
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclGetConnectionStats(const pcclComm_t *communicator, pcclConnectionStats_t *stats_out, size_t capacity,
                                    size_t *count_out)
{
    struct info_stats stats = {.out = stats_out, .capacity = capacity};
    const char *missing = count_out == NULL ? "count_out" : stats_out == NULL && capacity > 0 ? "stats_out" : NULL;
    return info_connections(communicator, "connection stats", missing, &stats, count_out);
}

pcclResult_t pcclGetTransports(const pcclComm_t *communicator, pcclTransport_t *transports_out, size_t capacity, size_t *count_out)
{
    struct info_stats stats = {.transports = transports_out, .capacity = capacity};
    const char *missing = count_out == NULL ? "count_out" : transports_out == NULL && capacity > 0 ? "transports_out" : NULL;
    return info_connections(communicator, "transports", missing, &stats, count_out);
}

pcclResult_t pcclGetTcpConnections(const pcclComm_t *communicator, pcclTcpConnection_t *connections_out, size_t capacity, size_t *count_out)
{
    struct info_stats stats = {.tcp = connections_out, .only_tcp = true, .capacity = capacity};
    const char *missing = count_out == NULL ? "count_out" : connections_out == NULL && capacity > 0 ? "connections_out" : NULL;
    return info_connections(communicator, "TCP connections", missing, &stats, count_out);
}

pcclResult_t pcclParseAddress(const char *text, uint16_t default_port, ccoip_socket_address_t *address_out)
{
    struct err err;
    struct net_address a;
    if (text == NULL || address_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "parse address", "%s is null",
                        text == NULL ? "text" : "address_out");
    }
    if (addr_parse(text, default_port, &a, &err) != PCCL_OK) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "parse address", "%s", err.text);
    }
    *address_out = api_address_out(&a);
    return pcclSuccess;
}
