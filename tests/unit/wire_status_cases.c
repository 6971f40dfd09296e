/* wire_status_cases.c - the messages of whoever only asks what a master serves, as cases (see wire_cases.h).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/unit/wire_cases.h"

static void status_fill(void *at, struct rng *rng)
{
    struct msg_status *m = at;
    m->from = (uint32_t)rng_next(rng);
}
WIRE_PLAIN(status)

struct whole_status_page {
    struct msg_status_page m;
    struct world_status world[WIRE_CASE_ITEMS];
};

static void status_page_fill(void *at, struct rng *rng)
{
    struct whole_status_page *x = at;
    x->m.next = (uint32_t)rng_next(rng);
    x->m.worlds = (uint16_t)rng_below(rng, WIRE_CASE_ITEMS + 1);
    for (uint32_t i = 0; i < x->m.worlds; i++) {
        struct world_status *s = &x->world[i];
        wire_rnd_world(rng, s->name);
        s->run = rng_next(rng);
        s->view = rng_next(rng);
        s->phase = (uint8_t)rng_below(rng, STATUS_GIVEN_UP + 1);
        s->size = (uint16_t)rng_below(rng, BOUNDS_MEMBERS + 1);
        s->loss = (uint8_t)rng_below(rng, 2);
        s->once = (uint8_t)rng_below(rng, 2);
        s->members = (uint32_t)rng_next(rng);
        s->pending = (uint32_t)rng_next(rng);
        s->groups = (uint32_t)rng_next(rng);
        s->freezing = (uint32_t)rng_next(rng);
        wire_rnd_text(rng, s->waits);
    }
}

static void status_page_put(struct writer *w, const void *at)
{
    const struct whole_status_page *x = at;
    put_status_page(w, &x->m);
    for (uint32_t i = 0; i < x->m.worlds; i++) {
        put_world_status(w, &x->world[i]);
    }
}

static bool status_page_get(struct reader *r, void *at)
{
    struct whole_status_page *x = at;
    bool good = get_status_page(r, &x->m) && x->m.worlds <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < x->m.worlds; i++) {
        good = get_world_status(r, &x->world[i]);
    }
    return good && reader_done(r);
}

static void topology_fill(void *at, struct rng *rng)
{
    struct msg_topology *m = at;
    bool first = rng_below(rng, 2) == 0;
    m->run = rng_next(rng);
    wire_rnd_world(rng, m->world);
    m->group = (uint32_t)rng_next(rng);
    m->view = first ? 0 : rng_next(rng) | 1;
    m->from = first ? 0 : (uint32_t)rng_next(rng) | 1;
}
WIRE_PLAIN(topology)

struct whole_topology_page {
    struct msg_topology_page m;
    struct topology_member member[WIRE_CASE_ITEMS];
    struct topology_edge edge[WIRE_CASE_ITEMS];
};

static void topology_page_fill(void *at, struct rng *rng)
{
    struct whole_topology_page *x = at;
    x->m.state = (uint8_t)rng_below(rng, TOPOLOGY_CHANGED + 1);
    if (x->m.state != TOPOLOGY_FOUND) {
        return;
    }
    x->m.view = rng_next(rng) | 1;
    x->m.members = WIRE_CASE_ITEMS + (uint32_t)rng_below(rng, BOUNDS_MEMBERS - WIRE_CASE_ITEMS + 1);
    x->m.next = (uint32_t)rng_next(rng);
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        x->m.took[kind] = (struct topology_took){(uint16_t)rng_next(rng), rng_next(rng), rng_next(rng)};
    }
    x->m.listed = (uint16_t)rng_below(rng, WIRE_CASE_ITEMS + 1);
    x->m.edges = (uint16_t)rng_below(rng, WIRE_CASE_ITEMS + 1);
    for (uint32_t i = 0; i < x->m.listed; i++) {
        x->member[i].link = (struct topology_link){rng_next(rng), rng_next(rng), rng_next(rng), rng_next(rng)};
        x->member[i].id = rng_next(rng) | 1;
        x->member[i].key = (uint32_t)rng_next(rng);
        x->member[i].ring = (uint32_t)rng_below(rng, BOUNDS_MEMBERS);
        if (rng_below(rng, 4) > 0) {
            wire_rnd_address(rng, &x->member[i].address);
        }
    }
    for (uint32_t i = 0; i < x->m.edges; i++) {
        struct topology_edge *e = &x->edge[i];
        e->from = (uint16_t)rng_below(rng, BOUNDS_RING);
        e->to = (uint16_t)((e->from + 1 + rng_below(rng, BOUNDS_RING - 1)) % BOUNDS_RING);
        e->rate_bps = rng_next(rng);
        e->rtt_us = (uint32_t)rng_next(rng);
        e->loss_ppm = (uint32_t)rng_below(rng, 1000001);
        e->age_s = (uint32_t)rng_next(rng);
    }
}

static void topology_page_put(struct writer *w, const void *at)
{
    const struct whole_topology_page *x = at;
    put_topology_page(w, &x->m);
    for (uint32_t i = 0; i < x->m.listed; i++) {
        put_topology_member(w, &x->member[i]);
    }
    for (uint32_t i = 0; i < x->m.edges; i++) {
        put_topology_edge(w, &x->edge[i]);
    }
}

static bool topology_page_get(struct reader *r, void *at)
{
    struct whole_topology_page *x = at;
    bool good = get_topology_page(r, &x->m) && x->m.listed <= WIRE_CASE_ITEMS && x->m.edges <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < x->m.listed; i++) {
        good = get_topology_member(r, &x->member[i]);
    }
    for (uint32_t i = 0; good && i < x->m.edges; i++) {
        good = get_topology_edge(r, &x->edge[i]);
    }
    return good && reader_done(r);
}

const struct wire_case wire_status_cases[] = {
    WIRE_ROW(status, FRAME_STATUS, struct msg_status),
    WIRE_ROW(status_page, FRAME_STATUS_PAGE, struct whole_status_page),
    WIRE_ROW(topology, FRAME_TOPOLOGY, struct msg_topology),
    WIRE_ROW(topology_page, FRAME_TOPOLOGY_PAGE, struct whole_topology_page),
};
const size_t wire_status_case_count = sizeof wire_status_cases / sizeof wire_status_cases[0];
