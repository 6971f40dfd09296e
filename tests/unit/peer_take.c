/* peer_take.c - what a fake peer makes of the master's longer frames: the real codec reads them, what cannot be ends the test.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "master_peers.h"

static void take_trees(struct peer *p, const struct msg_view *v, struct reader *r)
{
    p->trees = (struct tree_set){.members = v->members, .count = v->trees, .parent = p->tree_parent};
    for (uint32_t i = 0; i < v->trees; i++) {
        (void)get_view_tree(r, &p->trees.share[i], p->tree_parent + (size_t)i * v->members, v->members);
    }
}

void peer_take_view(struct peer *p, struct reader *r)
{
    uint64_t ids[PEERS_MOST], removed[PEERS_MOST];
    uint32_t count = 0;
    if (!get_view(r, &p->last_view)) {
        abort();
    }
    const struct msg_view *v = &p->last_view;
    if (v->parent != 0 && v->parent != p->view) { /* never more than one behind */
        abort();
    }
    for (uint32_t i = 0; i < v->removed; i++) {
        removed[i] = get_u64(r);
    }
    for (uint32_t i = 0; v->parent != 0 && i < p->member_count; i++) {
        bool gone = false;
        for (uint32_t k = 0; k < v->removed; k++) {
            gone = gone || removed[k] == p->members[i];
        }
        if (!gone) {
            ids[count++] = p->members[i];
        }
    }
    for (uint32_t i = 0; i < v->added; i++) {
        struct member_info info;
        if (!get_member_info(r, &info)) {
            abort();
        }
        p->infos[i] = info;
        uint32_t at = count++;
        for (; at > 0 && ids[at - 1] > info.id; at--) {
            ids[at] = ids[at - 1];
        }
        ids[at] = info.id;
    }
    memcpy(p->members, ids, sizeof ids);
    p->member_count = count;
    for (uint32_t i = 0; i < v->members; i++) {
        p->ring[i] = get_u32(r);
    }
    for (uint32_t i = 0; i < v->weights; i++) {
        p->weights[i] = get_u32(r);
    }
    take_trees(p, v, r);
    p->edge_count = v->edges;
    for (uint32_t i = 0; i < v->edges; i++) {
        (void)get_missing_edge(r, &p->edges[i]);
    }
    p->decision_count = v->decisions;
    for (uint32_t i = 0; i < v->decisions; i++) {
        uint32_t at = i < PEERS_OPS ? i : PEERS_OPS;
        (void)get_op_decision(r, &p->decisions[at]);
        p->decided_clash[at] = (struct op_clash){0};
        if (p->decisions[at].cause == CAUSE_MISMATCH) {
            (void)get_op_clash(r, &p->decided_clash[at]);
        }
    }
    if (!reader_done(r) || count != v->members) {
        abort();
    }
    p->parent = p->view;
    p->view = v->view;
    if (v->parent == 0) {
        p->answered = v->vote_number;
    } else if (v->answers != VOTE_NONE && p->voting && p->vote_kind == v->answers) {
        p->answered++;
        p->voting = false;
    }
}

void peer_take_elected(struct peer *p, struct reader *r)
{
    if (!get_elected(r, &p->elected)) {
        abort();
    }
    for (uint32_t i = 0; i < p->elected.holders; i++) {
        p->holders[i] = get_u64(r);
    }
    for (uint32_t i = 0; i < p->elected.receivers; i++) {
        p->receivers[i] = get_u64(r);
    }
}

void peer_take_answer(struct peer *p, struct reader *r)
{
    if (!get_answer(r, &p->answer)) {
        abort();
    }
    if (p->answer.number == p->answered) { /* a replay may come twice */
        p->answered++;
        p->voting = false;
    }
}

void peer_take_part(struct peer *p, struct reader *r)
{
    struct msg_view_part part;
    if (!get_view_part(r, &part) || part.size > sizeof p->parts - p->parts_used) {
        abort();
    }
    memcpy(p->parts + p->parts_used, r->at, part.size);
    p->parts_used += part.size;
}

void peer_log_frame(struct peer *p, uint8_t type)
{
    if (type != FRAME_HEARTBEAT && strlen(p->log) + 20 < sizeof p->log) {
        strncat(p->log, frame_name(type), 16);
        strncat(p->log, " ", 2);
    }
}

static void take_topology(struct peer *p, struct reader *r)
{
    bool good = get_topology_page(r, &p->links);
    for (uint32_t i = 0; good && i < p->links.listed; i++) {
        struct topology_member m;
        good = get_topology_member(r, i < PEERS_MOST ? &p->linked[i] : &m);
    }
    for (uint32_t i = 0; good && i < p->links.edges; i++) {
        good = get_topology_edge(r, &p->measured[i]);
    }
    if (!good || !reader_done(r)) {
        abort();
    }
}

void peer_take_answered(struct peer *p, uint8_t type, struct reader *r)
{
    if (type == FRAME_TOPOLOGY_PAGE) {
        take_topology(p, r);
        return;
    }
    if (type != FRAME_STATUS_PAGE || !get_status_page(r, &p->page)) {
        abort();
    }
    for (uint32_t i = 0; i < p->page.worlds; i++) {
        if (!get_world_status(r, &p->worlds[i])) {
            abort();
        }
    }
    if (!reader_done(r)) {
        abort();
    }
}

bool peer_asked(struct peer *p, struct msg_probe *out)
{
    if (p->probes == 0) {
        return false;
    }
    *out = p->probe[0];
    memmove(p->probe, p->probe + 1, --p->probes * sizeof *p->probe);
    return true;
}

bool peer_take_probe(const struct cluster *c, struct peer *p, struct reader *r, struct writer *answer)
{
    struct msg_probe m;
    if (p->probes == PEER_PROBES || !get_probe(r, &m)) {
        return false;
    }
    if (m.duration_ms > 0) {
        p->probe[p->probes++] = m;
        return false;
    }
    put_measured(answer, &(struct msg_measured){.round = m.round, .to = m.to, .rtt_us = peer_trip_us(c, p->id, m.to)});
    return !p->no_trip;
}
