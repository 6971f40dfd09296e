/* control_topology.c - messages by which anybody asks a master how the members of a group are linked.
 *
 * Its one idea: the answer comes in pages, members before edges, and only known edges are in it.  So the largest group costs the master one
 * page at a time.
 * SPDX-License-Identifier: MIT */
#include "wire/control.h"
#include "wire/parts.h"

void put_topology(struct writer *w, const struct msg_topology *m)
{
    put_u64(w, m->run);
    put_world_name(w, m->world);
    put_u32(w, m->group);
    put_u64(w, m->view);
    put_u32(w, m->from);
}

bool get_topology(struct reader *r, struct msg_topology *m)
{
    m->run = get_u64(r);
    get_world_name(r, m->world);
    m->group = get_u32(r);
    m->view = get_u64(r);
    m->from = get_u32(r);
    r->bad = r->bad || ((m->view == 0) != (m->from == 0)); /* who goes on knows the view */
    return reader_done(r);
}

void put_topology_page(struct writer *w, const struct msg_topology_page *m)
{
    put_u8(w, m->state);
    put_u64(w, m->view);
    put_u32(w, m->members);
    put_u32(w, m->next);
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        put_u16(w, m->took[kind].permille);
        put_u64(w, m->took[kind].bytes);
        put_u64(w, m->took[kind].took_us);
    }
    put_u16(w, m->listed);
    put_u16(w, m->edges);
}

bool get_topology_page(struct reader *r, struct msg_topology_page *m)
{
    m->state = parts_get_u8(r, TOPOLOGY_FOUND, TOPOLOGY_CHANGED);
    m->view = get_u64(r);
    m->members = parts_get_u32(r, 0, BOUNDS_MEMBERS);
    m->next = get_u32(r);
    bool took = false;
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        struct topology_took *t = &m->took[kind];
        *t = (struct topology_took){.permille = get_u16(r)};
        t->bytes = get_u64(r);
        t->took_us = get_u64(r);
        took = took || t->permille != 0 || t->bytes != 0 || t->took_us != 0;
    }
    m->listed = parts_get_u16(r, 0, TOPOLOGY_PAGE_MEMBERS);
    m->edges = parts_get_u16(r, 0, TOPOLOGY_PAGE_EDGES);
    bool found = m->state == TOPOLOGY_FOUND;
    bool empty = m->view == 0 && m->members == 0 && m->next == 0 && m->listed == 0 && m->edges == 0 && !took;
    r->bad = r->bad || (found ? m->view == 0 || m->members == 0 || m->listed > m->members : !empty);
    return !r->bad;
}

void put_topology_member(struct writer *w, const struct topology_member *m)
{
    put_u64(w, m->id);
    put_u32(w, m->key);
    put_u32(w, m->ring);
    parts_put_address(w, &m->address);
    put_u64(w, m->link.up_bps);
    put_u64(w, m->link.down_bps);
    put_u64(w, m->link.far_up_bps);
    put_u64(w, m->link.far_down_bps);
}

bool get_topology_member(struct reader *r, struct topology_member *m)
{
    m->id = get_u64(r);
    m->key = get_u32(r);
    m->ring = parts_get_u32(r, 0, BOUNDS_MEMBERS - 1);
    parts_get_address(r, &m->address, true);
    m->link.up_bps = get_u64(r);
    m->link.down_bps = get_u64(r);
    m->link.far_up_bps = get_u64(r);
    m->link.far_down_bps = get_u64(r);
    r->bad = r->bad || m->id == 0;
    return !r->bad;
}

void put_topology_edge(struct writer *w, const struct topology_edge *m)
{
    put_u16(w, m->from);
    put_u16(w, m->to);
    put_u64(w, m->rate_bps);
    put_u32(w, m->rtt_us);
    put_u32(w, m->loss_ppm);
    put_u32(w, m->age_s);
    put_u8(w, m->source);
}

bool get_topology_edge(struct reader *r, struct topology_edge *m)
{
    m->from = parts_get_u16(r, 0, BOUNDS_RING - 1);
    m->to = parts_get_u16(r, 0, BOUNDS_RING - 1);
    m->rate_bps = get_u64(r);
    m->rtt_us = get_u32(r);
    m->loss_ppm = parts_get_u32(r, 0, 1000000);
    m->age_s = get_u32(r);
    m->source = parts_get_u8(r, 0, TOPOLOGY_ASSUMED);
    r->bad = r->bad || m->from == m->to;
    return !r->bad;
}
