/* link_table.c - which links a communicator has, how long each lives, and what its connections say at first.
 *
 * A link lives as long as it is in the table or a connection on a lane belongs to it.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/mix.h"
#include "engine/links/link.h"
#include "engine/tables/link_table.h"
#include "engine/tables/link_why.h"
#include "net/conn.h"
#include "net/shm_ring.h"

void link_ref(struct link *l)
{
    atomic_fetch_add(&l->refs, 1);
}

void link_unref(struct link *l)
{
    if (atomic_fetch_sub(&l->refs, 1) == 1) {
        free(l);
    }
}

static uint32_t peer_hash(uint64_t peer)
{
    return (uint32_t)mix64(0, peer);
}

uint32_t link_hash(struct list *by_peer)
{
    return peer_hash(LIST_ENTRY(by_peer, struct link, by_peer)->peer);
}

void link_enter(struct link *l)
{
    list_append(&l->comm->links.all, &l->all);
    buckets_add(&l->comm->links.by_peer, &l->by_peer);
}

void link_remove(struct link *l)
{
    list_remove(&l->all);
    list_remove(&l->by_peer);
    link_unref(l);
}

static struct link *find(struct comm *c, uint64_t peer, bool listed)
{
    LIST_FOR_EACH(i, after, buckets_chain(&c->links.by_peer, peer_hash(peer))) {
        struct link *l = LIST_ENTRY(i, struct link, by_peer);
        if (l->peer == peer && l->want.listed == listed) {
            return l;
        }
    }
    return NULL;
}

struct link *link_find(struct comm *c, uint64_t peer)
{
    return find(c, peer, true);
}

struct link *link_unlisted(struct comm *c, uint64_t peer)
{
    return find(c, peer, false);
}

static void traffic_bound(struct comm_traffic *one, const struct stream_bound *b)
{
    one->bounded = atomic_load(&b->operations);
    one->window_bytes = (uint64_t)atomic_load(&b->window) * LANE_SLOT_BYTES;
    one->granted_bytes = one->bounded > 0 ? (uint64_t)atomic_load(&b->granted) * LANE_SLOT_BYTES : one->window_bytes;
}

void comm_traffic(struct comm *c, void (*tell)(void *user, const struct comm_traffic *one), void *user)
{
    LIST_FOR_EACH(i, after, &c->links.all) {
        const struct link *l = LIST_ENTRY(i, struct link, all);
        struct comm_traffic one = {.peer = l->peer, .lane = UINT32_MAX, .provider = ""};
        if (l->control.conn != NULL) {
            one.by = conn_shares(l->control.conn) ? TRANSPORT_SHM : TRANSPORT_TCP;
            link_why_control(l, one.by == TRANSPORT_SHM, one.why);
            one.tx_bytes = atomic_load(&l->control.conn->tx_bytes);
            one.rx_bytes = atomic_load(&l->control.conn->rx_bytes);
            tell(user, &one);
        }
        for (one.lane = 0; one.lane < BOUNDS_LANES; one.lane++) {
            const struct stream *s = l->bundle.streams[one.lane];
            if (s != NULL) {
                one.transport = &s->transport;
                one.by = transport_kind(&s->transport);
                one.provider = one.by == TRANSPORT_FABRIC ? fabric_port_provider(c->engine->lane[one.lane]->fabric) : "";
                link_why_data(l, one.by, one.why);
                one.tx_bytes = atomic_load(&s->tx_bytes);
                one.rx_bytes = atomic_load(&s->rx_bytes);
                traffic_bound(&one, &s->bound);
                tell(user, &one);
            }
        }
    }
}

struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number)
{
    struct comm *c = l->comm;
    return (struct msg_hello){
        .kind = (uint8_t)kind, .group = c->params.group, .from = c->master.id, .to = l->peer, .view = c->master.newest,
        .number = number, .lanes = 1,
    };
}

bool link_shares(const struct link *l, const uint64_t distrusted[2])
{
    const uint64_t *name = l->control.host_name;
    return (name[0] | name[1]) != 0 && link_share_own(l->comm) == SHARE_CAN &&
           memcmp(distrusted, name, sizeof l->control.host_name) != 0;
}

uint32_t link_ring_most(uint8_t kind)
{
    return kind == LINK_SHARE ? SHM_RING_CONTROL_BYTES : SHM_RING_BYTES;
}

/* Where processes outnumber cores, the rings of all of them pass through few caches. */
uint32_t link_ring_bytes(const struct comm *c, uint8_t kind)
{
    uint32_t most = link_ring_most(kind);
    return kind == LINK_DATA && comm_crowded(c) ? most / 2 : most;
}

struct fabric_port *link_fabric(const struct link *l, uint16_t lane)
{
    struct fabric_port *port = l->comm->engine->lane[lane]->fabric;
    return l->bundle.fabric_failed || !fabric_suits(port, l->comm->carriers.net) ? NULL : port;
}

uint8_t link_net_own(const struct link *l, uint16_t lane)
{
    return l->bundle.fabric_failed ? NET_BROKE
           : l->comm->carriers.net == FABRIC_NEVER ? NET_OFF
           : link_fabric(l, lane) == NULL ? NET_NONE
                                          : NET_CAN;
}
