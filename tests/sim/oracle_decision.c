/* oracle_decision.c - what the master decides, held against the reports it decided from.
 *
 * Every FROZEN that leaves a peer is kept; every VIEW that arrives is compared: a refused operation carries the gravest cause
 * that a survivor listed, and an operation that a survivor finished is never aborted.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "program.h"

void oracle_frozen(struct node *n, const unsigned char *frame, uint32_t bytes)
{
    struct frame_header h;
    struct session_info info;
    session_info(n->session, &info); /* n->id is of the event before */
    if (!frame_get(frame, &h) || h.type != FRAME_FROZEN) {
        return;
    }
    unsigned char *copy = realloc(n->report, bytes);
    if (copy != NULL) {
        n->report = copy;
        n->report_view = h.view;
        n->report_id = info.id;
        n->report_run = h.run;
        n->report_bytes = bytes - FRAME_HEADER_BYTES;
        memcpy(copy, frame + FRAME_HEADER_BYTES, n->report_bytes);
    }
}

/* crowded: what was only heard to be refused may have found no room at the master. */
static void check(struct cluster *cl, const struct node *n, const struct op_decision *d, bool crowded)
{
    struct reader r;
    struct msg_frozen f;
    reader_init(&r, n->report, n->report_bytes);
    bool good = get_frozen(&r, &f);
    for (uint32_t i = 0; good && i < f.reports; i++) {
        struct op_report o;
        good = get_op_report(&r, &o);
        if (!good || !op_name_equal(&o.name, &d->name)) {
            continue;
        }
        bool kept = o.params != 0 || !crowded;
        if (o.state == OP_REFUSED && kept && (d->outcome != OUTCOME_REFUSED || o.cause > d->cause)) {
            cluster_fail(cl, "M3: peer %u listed op %llu/%u as refused with cause %u, decided %u with cause %u", n->index,
                         (unsigned long long)o.name.tag, o.name.seq, o.cause, d->outcome, d->cause);
        }
        if (o.state == OP_FINISHED && d->outcome != OUTCOME_COMMIT) {
            cluster_fail(cl, "M3: peer %u had finished op %llu/%u, decided %u", n->index, (unsigned long long)o.name.tag, o.name.seq,
                         d->outcome);
        }
    }
}

/* The ids that left with this view; the reader stands behind the ring, weights and edges afterwards. */
static bool skip_lists(struct reader *r, const struct msg_view *m, uint64_t *removed)
{
    for (uint32_t i = 0; i < m->removed; i++) {
        uint64_t id = get_u64(r);
        if (i < CLUSTER_NODES) {
            removed[i] = id;
        }
    }
    struct member_info info;
    bool good = true;
    for (uint32_t i = 0; good && i < m->added; i++) {
        good = get_member_info(r, &info);
    }
    for (uint32_t i = 0; i < m->members + m->weights; i++) {
        (void)get_u32(r);
    }
    for (uint32_t i = 0; i < m->trees; i++) {
        uint16_t parent[BOUNDS_TREE_MEMBERS];
        uint32_t share;
        (void)get_view_tree(r, &share, parent, m->members);
    }
    struct missing_edge edge;
    for (uint32_t i = 0; good && i < m->edges; i++) {
        good = get_missing_edge(r, &edge);
    }
    return good;
}

/* Its report is of the view that this one ends, and it has not left with it: it may be a newcomer by now. */
static bool survives(const struct node *n, const struct node *at, const struct msg_view *m, uint64_t run, const uint64_t *removed)
{
    bool survivor = n->report != NULL && n->group == at->group && n->report_view == m->parent && n->report_run == run &&
                    n->program->inside == at->program->inside;
    for (uint32_t x = 0; x < m->removed && x < CLUSTER_NODES; x++) {
        survivor = survivor && removed[x] != n->report_id;
    }
    return survivor;
}

static uint32_t reports_of(const struct node *n)
{
    struct reader r;
    struct msg_frozen f;
    reader_init(&r, n->report, n->report_bytes);
    return get_frozen(&r, &f) ? f.reports : 0;
}

enum { HEARD_PART = 8 }; /* what was only heard to be refused gets this part of the master's records */

void oracle_decisions(struct cluster *cl, const struct node *at, const struct frame_header *h, const void *payload)
{
    struct reader r;
    struct msg_view m;
    uint64_t removed[CLUSTER_NODES] = {0};
    reader_init(&r, payload, h->length);
    if (h->type != FRAME_VIEW || !get_view(&r, &m) || m.parent == 0 || !skip_lists(&r, &m, removed)) {
        return;
    }
    uint32_t listed = 0;
    for (uint32_t k = 0; k < cl->node_count; k++) {
        listed += survives(&cl->nodes[k], at, &m, h->run, removed) ? reports_of(&cl->nodes[k]) : 0;
    }
    for (uint32_t i = 0; i < m.decisions; i++) {
        struct op_decision d;
        if (!get_op_decision(&r, &d)) {
            return;
        }
        for (uint32_t k = 0; k < cl->node_count; k++) {
            if (survives(&cl->nodes[k], at, &m, h->run, removed)) {
                check(cl, &cl->nodes[k], &d, listed > cl->master.config.max_operations / HEARD_PART);
            }
        }
    }
}
