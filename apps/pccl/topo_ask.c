/* topo_ask.c - the matrix of a running group, from its master.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "ccoip.h"
#include "core/clock.h"
#include "net/addr.h"
#include "net/group_links.h"
#include "pccl/topo_matrix.h"

_Static_assert((int)TOPO_DIRECT == (int)TOOK_DIRECT && (int)TOPO_RING == (int)TOOK_RING && (int)TOPO_FOREST == (int)TOOK_FOREST, "alike");

#define ASK_PATIENCE_NS (30 * CLOCK_S)

static void fill_cells(struct topo_matrix *m, const struct group_links *l)
{
    static const uint8_t sources[] = {
        [TOPOLOGY_PROBED] = TOPO_PROBED, [TOPOLOGY_OBSERVED] = TOPO_OBSERVED, [TOPOLOGY_ASSUMED] = TOPO_ASSUMED};
    for (uint32_t i = 0; i < l->edge_count; i++) {
        const struct topology_edge *e = &l->edges[i];
        m->cells[(size_t)e->from * m->count + e->to] = (struct topo_cell){
            .rate_bps = e->rate_bps, .rtt_us = e->rtt_us, .loss_ppm = e->loss_ppm, .age_s = e->age_s, .source = sources[e->source],
        };
    }
}

static bool fill(struct topo_matrix *m, const struct group_links *l)
{
    uint16_t *order = calloc(l->members, sizeof *order);
    for (uint32_t i = 0; order != NULL && i < l->members; i++) {
        char where[ADDR_TEXT];
        bool known = l->list[i].address.family != 0;
        snprintf(m->peers[i].name, sizeof m->peers[i].name, "%s", known ? addr_format(&l->list[i].address, where) : "lost");
        order[i] = (uint16_t)l->list[i].ring;
        const struct topology_link *link = &l->list[i].link;
        m->peers[i].up_bps = link->up_bps;
        m->peers[i].down_bps = link->down_bps;
        m->peers[i].far_up_bps = link->far_up_bps;
        m->peers[i].far_down_bps = link->far_down_bps;
    }
    bool good = order != NULL && topo_matrix_use_ring(m, order);
    free(order);
    fill_cells(m, l);
    for (uint32_t kind = 0; kind < TOPO_KINDS; kind++) {
        m->times[kind] = (struct topo_time){l->took[kind].permille, l->took[kind].bytes, l->took[kind].took_us};
    }
    return good && topo_matrix_find_sites(m);
}

struct topo_matrix *topo_ask(const char *master, const char *world, uint32_t group, char error[TOPO_ERROR])
{
    struct net_address at;
    struct group_links links;
    struct err err;
    struct group_asked asked = {.world = world, .group = group};
    if (addr_parse(master, CCOIP_PROTOCOL_PORT_MASTER, &at, &err) != PCCL_OK) {
        (void)topo_refuse(error, "'%s' is neither a file nor the address of a master: %s", master, err.text);
        return NULL;
    }
    if (group_links_ask(&links, &at, clock_now_ns() + ASK_PATIENCE_NS, &asked, &err) != PCCL_OK) {
        (void)topo_refuse(error, "%s: %s", master, err.text);
        return NULL;
    }
    struct topo_matrix *m = NULL;
    if (links.members > TOPO_PEERS_MOST) {
        (void)topo_refuse(error, "%s: the group has %u members; links of more than %d are not measured", master, links.members, TOPO_PEERS_MOST);
    } else {
        m = topo_matrix_new(links.members);
        if (m == NULL || !fill(m, &links)) {
            (void)topo_refuse(error, "no memory");
            topo_matrix_free(m);
            m = NULL;
        } else {
            snprintf(m->title, sizeof m->title, "group %u of world '%s' at %.64s", group, world, master);
        }
    }
    group_links_fini(&links);
    return m;
}
