/* control_view.c - messages by which the master stops a view, hears what was done in it, and hands
 * out the next.
 *
 * The lists of a VIEW follow one another, so their counts are also checked together: a count that
 * only fits because another list's bytes were counted twice is refused before anybody makes room
 * for it.
 * SPDX-License-Identifier: MIT */
#include "core/plan_kind.h"
#include "wire/control.h"
#include "wire/parts.h"

/* Members: removed and added ids, ring, weights; trees. */
_Static_assert(BOUNDS_MEMBERS * (PARTS_ID_BYTES + PARTS_MEMBER_MOST + 2 * PARTS_RANK_BYTES) + BOUNDS_EDGES * PARTS_EDGE_BYTES +
                       BOUNDS_TREES * (PARTS_TREE_BYTES + BOUNDS_TREE_MEMBERS * PARTS_PARENT_BYTES) + BOUNDS_DECISIONS * (PARTS_DECISION_MOST + 1) + BOUNDS_CLASHES * PARTS_CLASH_MOST + 1024 <= BOUNDS_VIEW_BYTES,
               "the largest view fits what travels in parts");
_Static_assert((uint32_t)BOUNDS_MEMBERS <= (uint32_t)PARTS_MEMBERS, "all members fit a list");
_Static_assert((BOUNDS_OPS + BOUNDS_RECORDS) * (PARTS_REPORT_MOST + PARTS_CLASH_MOST) + 1024 <= BOUNDS_CONTROL_FRAME,
               "what a member has launched fits its report");

void put_freeze(struct writer *w, const struct msg_freeze *m)
{
    put_u64(w, m->view);
    put_u32(w, m->attempt);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_u32(w, m->survivors);
}

bool get_freeze(struct reader *r, struct msg_freeze *m)
{
    m->view = get_u64(r);
    m->attempt = get_u32(r);
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    m->survivors = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    return !r->bad;
}

void put_frozen(struct writer *w, const struct msg_frozen *m)
{
    put_u64(w, m->view);
    put_u32(w, m->attempt);
    put_u32(w, m->reports);
}

bool get_frozen(struct reader *r, struct msg_frozen *m)
{
    m->view = get_u64(r);
    m->attempt = get_u32(r);
    m->reports = get_count(r, PARTS_REPORT_BYTES, BOUNDS_LISTED);
    return !r->bad;
}

void put_op_report(struct writer *w, const struct op_report *m)
{
    put_op_name(w, &m->name);
    put_u8(w, m->state);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_u64(w, m->params);
    put_u64(w, m->digest);
    parts_put_params(w, &m->call);
}

bool get_op_report(struct reader *r, struct op_report *m)
{
    (void)get_op_name(r, &m->name);
    m->state = parts_get_u8(r, OP_RUNNING, OP_REFUSED);
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    m->params = get_u64(r);
    m->digest = get_u64(r);
    parts_get_params(r, &m->call);
    return !r->bad;
}

void put_op_clash(struct writer *w, const struct op_clash *m)
{
    parts_put_clash(w, m);
}

bool get_op_clash(struct reader *r, struct op_clash *m)
{
    parts_get_clash(r, m);
    return !r->bad;
}

void put_op_decision(struct writer *w, const struct op_decision *m)
{
    put_op_name(w, &m->name);
    put_u8(w, m->outcome);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
}

bool get_op_decision(struct reader *r, struct op_decision *m)
{
    (void)get_op_name(r, &m->name);
    m->outcome = parts_get_u8(r, OUTCOME_COMMIT, OUTCOME_REFUSED);
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    return !r->bad;
}

void put_missing_edge(struct writer *w, const struct missing_edge *m)
{
    put_u64(w, m->a);
    put_u64(w, m->b);
    put_u64(w, m->relay);
}

bool get_missing_edge(struct reader *r, struct missing_edge *m)
{
    m->a = get_u64(r);
    m->b = get_u64(r);
    m->relay = get_u64(r);
    return !r->bad;
}

void put_view_part(struct writer *w, const struct msg_view_part *m)
{
    put_u32(w, m->bytes);
    put_u32(w, m->size);
}

bool get_view_part(struct reader *r, struct msg_view_part *m)
{
    m->bytes = parts_get_u32(r, 1, BOUNDS_VIEW_BYTES);
    m->size = parts_get_u32(r, 1, m->bytes);
    r->bad = r->bad || r->left != m->size;
    return !r->bad;
}

static void put_plan_view(struct writer *w, const struct plan_view *p)
{
    put_u16(w, p->lanes);
    put_u32(w, p->frame_bytes);
    put_u32(w, p->eager_bytes);
    put_u8(w, p->verify);
    parts_put_costs(w, &p->costs);
    put_u8(w, p->measured);
    put_u32(w, p->link_ps);
    put_u32(w, p->ring_ps);
    put_u32(w, p->ring_delay_us);
    put_u16(w, p->crowd);
    put_u32(w, p->stall_ms);
    put_u32(w, p->tree_mib_ns);
    put_u32(w, p->tree_delay_us);
}

static void get_plan_view(struct reader *r, struct plan_view *p)
{
    p->lanes = parts_get_u16(r, 0, BOUNDS_LANES);
    p->frame_bytes = parts_get_u32(r, 0, BOUNDS_FRAME_BYTES);
    p->eager_bytes = parts_get_u32(r, 0, BOUNDS_EAGER_BYTES);
    p->verify = parts_get_u8(r, 0, 1);
    parts_get_costs(r, &p->costs);
    p->measured = parts_get_u8(r, 0, 1);
    p->link_ps = get_u32(r);
    p->ring_ps = get_u32(r);
    p->ring_delay_us = get_u32(r);
    p->crowd = get_u16(r);
    p->stall_ms = parts_get_stall(r);
    p->tree_mib_ns = get_u32(r);
    p->tree_delay_us = get_u32(r);
}

void put_view_tree(struct writer *w, uint32_t share, const uint16_t *parent, uint32_t members)
{
    put_u32(w, share);
    for (uint32_t i = 0; i < members; i++) {
        put_u16(w, parent[i]);
    }
}

bool get_view_tree(struct reader *r, uint32_t *share, uint16_t *parent, uint32_t members)
{
    *share = get_u32(r);
    for (uint32_t i = 0; i < members; i++) {
        parent[i] = get_u16(r);
    }
    return !r->bad;
}

void put_view(struct writer *w, const struct msg_view *m)
{
    put_u64(w, m->view);
    put_u64(w, m->parent);
    put_u8(w, m->answers);
    put_u8(w, m->over);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_text(w, m->text);
    put_u32(w, m->vote_number);
    put_u64(w, m->value);
    parts_put_sizes(w, &m->sizes);
    put_plan_view(w, &m->plan);
    put_u32(w, m->removed);
    put_u32(w, m->added);
    put_u32(w, m->members);
    put_u32(w, m->weights);
    put_u32(w, m->trees);
    put_u32(w, m->edges);
    put_u32(w, m->decisions);
}

/* Whether the lists can all be in what is left; the sums cannot overflow, each count has been
 * bounded. */
static bool view_lists_fit(const struct msg_view *m, size_t left)
{
    uint64_t least = (uint64_t)m->removed * PARTS_ID_BYTES + (uint64_t)m->added * PARTS_MEMBER_BYTES +
                     (uint64_t)m->members * PARTS_RANK_BYTES + (uint64_t)m->weights * PARTS_RANK_BYTES +
                     (uint64_t)m->trees * (PARTS_TREE_BYTES + m->members * PARTS_PARENT_BYTES) + (uint64_t)m->edges * PARTS_EDGE_BYTES +
                     (uint64_t)m->decisions * PARTS_DECISION_BYTES;
    return least <= left && (m->weights == 0 || m->weights == m->members) && (m->trees == 0 || m->members <= BOUNDS_TREE_MEMBERS);
}

bool get_view(struct reader *r, struct msg_view *m)
{
    m->view = get_u64(r);
    m->parent = get_u64(r);
    m->answers = parts_get_u8(r, VOTE_NONE, VOTE_SYNC);
    m->over = parts_get_u8(r, 0, 1);
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    get_text(r, m->text, sizeof m->text);
    m->vote_number = get_u32(r);
    m->value = get_u64(r);
    parts_get_sizes(r, &m->sizes);
    get_plan_view(r, &m->plan);
    m->removed = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    m->added = get_count(r, PARTS_MEMBER_BYTES, PARTS_MEMBERS);
    m->members = get_count(r, PARTS_RANK_BYTES, PARTS_MEMBERS);
    m->weights = get_count(r, PARTS_RANK_BYTES, PARTS_MEMBERS);
    m->trees = get_count(r, PARTS_TREE_BYTES, BOUNDS_TREES);
    m->edges = get_count(r, PARTS_EDGE_BYTES, BOUNDS_EDGES);
    m->decisions = get_count(r, PARTS_DECISION_BYTES, BOUNDS_DECISIONS);
    if (!view_lists_fit(m, r->left)) {
        r->bad = true;
    }
    return !r->bad;
}
