/* wire_control_cases.c - the messages between peers and the master as cases (see wire_cases.h).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/unit/wire_cases.h"

static void fill_costs(struct rng *rng, struct costs *c)
{
    *c = (struct costs){(uint32_t)rng_below(rng, COSTS_MOST), (uint32_t)rng_below(rng, COSTS_MOST), (uint32_t)rng_below(rng, COSTS_MOST),
                        (uint32_t)rng_below(rng, COSTS_MOST)};
}

static uint8_t fill_addresses(struct rng *rng, struct net_address *list)
{
    uint8_t count = (uint8_t)rng_below(rng, BOUNDS_ADDRESSES + 1);
    for (uint8_t i = 0; i < count; i++) {
        wire_rnd_address(rng, &list[i]);
    }
    return count;
}

static void fill_sizes(struct rng *rng, struct sizes *s)
{
    s->global = (uint32_t)rng_next(rng);
    s->group = (uint32_t)rng_next(rng);
    s->groups = (uint32_t)rng_next(rng);
    s->largest = (uint32_t)rng_next(rng);
}

static void fill_ids(struct rng *rng, uint64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = rng_next(rng);
    }
}

static void put_ids(struct writer *w, const uint64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_u64(w, ids[i]);
    }
}

static bool get_ids(struct reader *r, uint64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < WIRE_CASE_ITEMS; i++) {
        ids[i] = get_u64(r);
    }
    return !r->bad && count <= WIRE_CASE_ITEMS;
}

static uint32_t fill_stall(struct rng *rng)
{
    return rng_below(rng, 2) == 0 ? 0 : BOUNDS_STALL_LEAST_MS + (uint32_t)rng_below(rng, 1u << 31);
}

static void register_fill(void *at, struct rng *rng)
{
    struct msg_register *m = at;
    m->run = rng_next(rng);
    m->id = rng_next(rng);
    m->group = (uint32_t)rng_next(rng);
    m->lanes = (uint16_t)rng_below(rng, BOUNDS_LANES + 1);
    m->view = rng_next(rng);
    m->frozen = rng_next(rng);
    m->answered = (uint32_t)rng_next(rng);
    m->open_vote = (uint8_t)rng_below(rng, 5);
    m->verify = (uint8_t)rng_below(rng, 2);
    m->cores = (uint16_t)rng_next(rng);
    fill_costs(rng, &m->costs);
    m->stall_ms = fill_stall(rng);
    m->addresses = fill_addresses(rng, m->address);
    wire_rnd_world(rng, m->world);
    if (rng_below(rng, 2) == 0) {
        m->claim.size = 1 + (uint32_t)rng_below(rng, BOUNDS_MEMBERS);
        m->claim.rank = (uint32_t)rng_below(rng, m->claim.size);
        m->claim.attempt = rng_next(rng) | 1;
        m->claim.deadline_ms = (uint32_t)rng_next(rng);
        m->claim.loss = (uint8_t)rng_below(rng, 2);
        m->claim.once = (uint8_t)rng_below(rng, 2);
        if (rng_below(rng, 3) == 0) {
            m->claim = (struct claim){.size = m->claim.size, .rank = rng_below(rng, 2) == 0 ? CLAIM_ANY_RANK : m->claim.rank, .join = 1};
            m->group = 0;
        }
    }
}
WIRE_PLAIN(register)

static void claim_fill(void *at, struct rng *rng)
{
    struct msg_claim *m = at;
    m->run = rng_next(rng);
    m->epoch = (uint32_t)rng_next(rng);
    do {
        memset(&m->reg, 0, sizeof m->reg);
        register_fill(&m->reg, rng);
    } while (m->reg.claim.size == 0 || m->reg.claim.join != 0);
    m->reg.id = 0;
    m->reg.group = 0;
}
WIRE_PLAIN(claim)

struct whole_expect {
    struct msg_expect m;
    uint64_t callers[WIRE_CASE_ITEMS];
};
static void expect_fill(void *at, struct rng *rng)
{
    struct whole_expect *e = at;
    claim_fill(&e->m.claim, rng);
    struct claim *c = &e->m.claim.reg.claim;
    e->m.callers = 1 + (uint32_t)rng_below(rng, WIRE_CASE_ITEMS);
    c->size = 1 + (uint32_t)rng_below(rng, e->m.callers);
    c->rank = (uint32_t)rng_below(rng, c->size);
    c->once = 0;
    snprintf(e->m.claim.reg.world, sizeof e->m.claim.reg.world, "%c%016llx%016llx", WORLD_DERIVED, (unsigned long long)rng_next(rng),
             (unsigned long long)rng_next(rng));
    memset(e->m.claim.reg.world + 34, 0, sizeof e->m.claim.reg.world - 34);
    e->m.formation[0] = rng_next(rng);
    e->m.formation[1] = rng_next(rng);
    e->m.parent = rng_next(rng) | 1;
    for (uint32_t i = 0; i < e->m.callers; i++) {
        e->callers[i] = (i > 0 ? e->callers[i - 1] : 0) + 1 + rng_below(rng, 1000);
    }
    e->m.member = e->callers[rng_below(rng, e->m.callers)];
}
static void expect_put(struct writer *w, const void *at)
{
    const struct whole_expect *e = at;
    put_expect(w, &e->m);
    put_ids(w, e->callers, e->m.callers);
}
static bool expect_get(struct reader *r, void *at)
{
    struct whole_expect *e = at;
    return get_expect(r, &e->m) && get_ids(r, e->callers, e->m.callers) && reader_done(r);
}

static void decline_fill(void *at, struct rng *rng)
{
    struct msg_decline *m = at;
    m->cause = (uint8_t)(1 + rng_below(rng, CAUSE_INTERNAL));
}
WIRE_PLAIN(decline)

static void given_up_fill(void *at, struct rng *rng)
{
    struct msg_given_up *m = at;
    m->cause = wire_rnd_cause(rng);
    m->culprit = rng_next(rng);
    wire_rnd_text(rng, m->text);
}
WIRE_PLAIN(given_up)

static void welcome_fill(void *at, struct rng *rng)
{
    struct msg_welcome *m = at;
    m->run = rng_next(rng);
    m->id = rng_next(rng);
    m->epoch = (uint32_t)rng_next(rng);
    m->heartbeat_ms = (uint32_t)rng_next(rng);
    m->dead_ms = (uint32_t)rng_next(rng);
    if (rng_below(rng, 4) > 0) {
        wire_rnd_address(rng, &m->seen);
    }
}
WIRE_PLAIN(welcome)

static void heartbeat_fill(void *at, struct rng *rng)
{
    struct msg_heartbeat *m = at;
    m->sent_ns = rng_next(rng);
    m->echo_ns = rng_next(rng);
    m->vote_on = rng_next(rng);
    m->about = rng_next(rng);
    m->vote = (uint8_t)rng_below(rng, VOTE_SYNC + 1);
    wire_rnd_name(rng, &m->wait.name);
    m->wait.on = rng_next(rng);
    m->wait.ms = (uint32_t)rng_next(rng);
    m->wait.phase = (uint8_t)rng_below(rng, WAIT_HOLD + 1);
    if (m->wait.name.space == SPACE_PAIR && rng_below(rng, 2) == 0) { /* a receive from any source */
        m->wait.name.from = m->wait.on = 0;
        m->wait.phase = WAIT_LAUNCH;
    }
    m->seats.count = rng_below(rng, 2) == 0 ? 0 : (uint16_t)rng_below(rng, BOUNDS_MEMBERS + 1);
    for (uint32_t i = 0; i < (m->seats.count + 7u) / 8; i++) {
        m->seats.claimed[i] = (uint8_t)rng_next(rng);
    }
}
WIRE_PLAIN(heartbeat)

static void suspect_fill(void *at, struct rng *rng)
{
    struct msg_suspect *m = at;
    m->view = rng_next(rng);
    m->target = (uint8_t)(1 + rng_below(rng, 3));
    m->cause = wire_rnd_cause(rng);
    m->peer = rng_next(rng);
    wire_rnd_name(rng, &m->name);
    wire_rnd_text(rng, m->text);
}
WIRE_PLAIN(suspect)

struct whole_freeze {
    struct msg_freeze m;
    uint64_t survivors[WIRE_CASE_ITEMS];
};
static void freeze_fill(void *at, struct rng *rng)
{
    struct whole_freeze *f = at;
    f->m.view = rng_next(rng);
    f->m.attempt = (uint32_t)rng_next(rng);
    f->m.cause = wire_rnd_cause(rng);
    f->m.culprit = rng_next(rng);
    f->m.survivors = wire_rnd_items(rng);
    fill_ids(rng, f->survivors, f->m.survivors);
}
static void freeze_put(struct writer *w, const void *at)
{
    const struct whole_freeze *f = at;
    put_freeze(w, &f->m);
    put_ids(w, f->survivors, f->m.survivors);
}
static bool freeze_get(struct reader *r, void *at)
{
    struct whole_freeze *f = at;
    return get_freeze(r, &f->m) && get_ids(r, f->survivors, f->m.survivors) && reader_done(r);
}

static void fill_member(struct rng *rng, struct member_info *m)
{
    m->id = rng_next(rng);
    m->key = (uint32_t)rng_next(rng);
    m->lanes = (uint16_t)rng_below(rng, BOUNDS_LANES + 1);
    m->addresses = fill_addresses(rng, m->address);
}

struct whole_view {
    struct msg_view m;
    uint64_t removed[WIRE_CASE_ITEMS];
    struct member_info added[WIRE_CASE_ITEMS];
    uint32_t ring[WIRE_CASE_ITEMS], weights[WIRE_CASE_ITEMS], shares[BOUNDS_TREES];
    uint16_t parents[BOUNDS_TREES][WIRE_CASE_ITEMS];
    struct missing_edge edges[WIRE_CASE_ITEMS];
    struct op_decision decisions[WIRE_CASE_ITEMS];
};

static void view_fill_lists(struct whole_view *v, struct rng *rng)
{
    fill_ids(rng, v->removed, v->m.removed);
    for (uint32_t i = 0; i < v->m.added; i++) {
        fill_member(rng, &v->added[i]);
    }
    for (uint32_t i = 0; i < v->m.members; i++) {
        v->ring[i] = (uint32_t)rng_next(rng);
    }
    for (uint32_t i = 0; i < v->m.weights; i++) {
        v->weights[i] = (uint32_t)rng_next(rng);
    }
    for (uint32_t i = 0; i < v->m.trees; i++) {
        v->shares[i] = (uint32_t)rng_next(rng);
        for (uint32_t k = 0; k < v->m.members; k++) {
            v->parents[i][k] = (uint16_t)rng_next(rng);
        }
    }
    for (uint32_t i = 0; i < v->m.edges; i++) {
        v->edges[i] = (struct missing_edge){rng_next(rng), rng_next(rng), rng_next(rng)};
    }
    for (uint32_t i = 0; i < v->m.decisions; i++) {
        wire_rnd_name(rng, &v->decisions[i].name);
        v->decisions[i].outcome = (uint8_t)(1 + rng_below(rng, 3));
        v->decisions[i].cause = wire_rnd_cause(rng);
        v->decisions[i].culprit = rng_next(rng);
    }
}

static void view_fill(void *at, struct rng *rng)
{
    struct whole_view *v = at;
    v->m.view = rng_next(rng);
    v->m.parent = rng_next(rng);
    v->m.answers = (uint8_t)rng_below(rng, 5);
    v->m.over = (uint8_t)rng_below(rng, 2);
    v->m.cause = wire_rnd_cause(rng);
    v->m.culprit = rng_next(rng);
    wire_rnd_text(rng, v->m.text);
    v->m.vote_number = (uint32_t)rng_next(rng);
    v->m.value = rng_next(rng);
    fill_sizes(rng, &v->m.sizes);
    v->m.plan.lanes = (uint16_t)rng_below(rng, BOUNDS_LANES + 1);
    v->m.plan.frame_bytes = (uint32_t)rng_below(rng, BOUNDS_FRAME_BYTES + 1);
    v->m.plan.eager_bytes = (uint32_t)rng_below(rng, BOUNDS_EAGER_BYTES + 1);
    v->m.plan.verify = (uint8_t)rng_below(rng, 2);
    fill_costs(rng, &v->m.plan.costs);
    v->m.plan.measured = (uint8_t)rng_below(rng, 2);
    v->m.plan.link_ps = (uint32_t)rng_next(rng);
    v->m.plan.ring_ps = (uint32_t)rng_next(rng);
    v->m.plan.ring_delay_us = (uint32_t)rng_next(rng);
    v->m.plan.crowd = (uint16_t)rng_next(rng);
    v->m.plan.stall_ms = fill_stall(rng);
    v->m.plan.tree_mib_ns = (uint32_t)rng_next(rng);
    v->m.plan.tree_delay_us = (uint32_t)rng_next(rng);
    v->m.removed = wire_rnd_items(rng);
    v->m.added = wire_rnd_items(rng);
    v->m.members = wire_rnd_items(rng);
    v->m.weights = rng_below(rng, 2) ? v->m.members : 0;
    v->m.trees = wire_rnd_items(rng);
    v->m.edges = wire_rnd_items(rng);
    v->m.decisions = wire_rnd_items(rng);
    view_fill_lists(v, rng);
}

static void view_put(struct writer *w, const void *at)
{
    const struct whole_view *v = at;
    put_view(w, &v->m);
    put_ids(w, v->removed, v->m.removed);
    for (uint32_t i = 0; i < v->m.added; i++) {
        put_member_info(w, &v->added[i]);
    }
    for (uint32_t i = 0; i < v->m.members; i++) {
        put_u32(w, v->ring[i]);
    }
    for (uint32_t i = 0; i < v->m.weights; i++) {
        put_u32(w, v->weights[i]);
    }
    for (uint32_t i = 0; i < v->m.trees; i++) {
        put_view_tree(w, v->shares[i], v->parents[i], v->m.members);
    }
    for (uint32_t i = 0; i < v->m.edges; i++) {
        put_missing_edge(w, &v->edges[i]);
    }
    for (uint32_t i = 0; i < v->m.decisions; i++) {
        put_op_decision(w, &v->decisions[i]);
    }
}

static bool view_get(struct reader *r, void *at)
{
    struct whole_view *v = at;
    bool good = get_view(r, &v->m) && v->m.added <= WIRE_CASE_ITEMS && v->m.members <= WIRE_CASE_ITEMS &&
                v->m.weights <= WIRE_CASE_ITEMS && v->m.edges <= WIRE_CASE_ITEMS &&
                v->m.decisions <= WIRE_CASE_ITEMS && get_ids(r, v->removed, v->m.removed);
    for (uint32_t i = 0; good && i < v->m.added; i++) {
        good = get_member_info(r, &v->added[i]);
    }
    for (uint32_t i = 0; good && i < v->m.members; i++) {
        v->ring[i] = get_u32(r);
    }
    for (uint32_t i = 0; good && i < v->m.weights; i++) {
        v->weights[i] = get_u32(r);
    }
    for (uint32_t i = 0; good && i < v->m.trees; i++) {
        good = get_view_tree(r, &v->shares[i], v->parents[i], v->m.members);
    }
    for (uint32_t i = 0; good && i < v->m.edges; i++) {
        good = get_missing_edge(r, &v->edges[i]);
    }
    for (uint32_t i = 0; good && i < v->m.decisions; i++) {
        good = get_op_decision(r, &v->decisions[i]);
    }
    return good && reader_done(r);
}

static void vote_fill(void *at, struct rng *rng)
{
    struct msg_vote *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->kind = (uint8_t)(1 + rng_below(rng, 4));
    m->idle = m->kind == VOTE_UPDATE ? (uint32_t)rng_next(rng) : 0;
    m->first = m->kind == VOTE_UPDATE && rng_below(rng, 2);
    m->passed = m->first && rng_below(rng, 2);
    if (m->kind == VOTE_SYNC) {
        m->strategy = (uint8_t)rng_below(rng, 3);
        m->revision = rng_next(rng);
        m->key_digest = rng_next(rng);
        m->content_digest = rng_next(rng);
        m->has_inequality = (uint8_t)rng_below(rng, 2);
    }
}
WIRE_PLAIN(vote)

static void answer_fill(void *at, struct rng *rng)
{
    struct msg_answer *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->kind = (uint8_t)(1 + rng_below(rng, 4));
    m->result = (uint8_t)rng_below(rng, 5);
    m->alone = m->kind == VOTE_UPDATE && rng_below(rng, 2);
    m->round = (uint32_t)rng_next(rng);
    m->view = rng_next(rng);
    m->value = rng_next(rng);
    fill_sizes(rng, &m->sizes);
    wire_rnd_text(rng, m->text);
}
WIRE_PLAIN(answer)

struct whole_admit {
    struct msg_admit m;
    struct member_info members[WIRE_CASE_ITEMS];
};
static void admit_fill(void *at, struct rng *rng)
{
    struct whole_admit *a = at;
    a->m.view = rng_next(rng);
    a->m.attempt = (uint32_t)rng_next(rng);
    a->m.members = wire_rnd_items(rng);
    for (uint32_t i = 0; i < a->m.members; i++) {
        fill_member(rng, &a->members[i]);
    }
}
static void admit_put(struct writer *w, const void *at)
{
    const struct whole_admit *a = at;
    put_admit(w, &a->m);
    for (uint32_t i = 0; i < a->m.members; i++) {
        put_member_info(w, &a->members[i]);
    }
}
static bool admit_get(struct reader *r, void *at)
{
    struct whole_admit *a = at;
    bool good = get_admit(r, &a->m) && a->m.members <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < a->m.members; i++) {
        good = get_member_info(r, &a->members[i]);
    }
    return good && reader_done(r);
}

struct whole_linked {
    struct msg_linked m;
    uint64_t failed[WIRE_CASE_ITEMS];
};
static void linked_fill(void *at, struct rng *rng)
{
    struct whole_linked *l = at;
    l->m.attempt = (uint32_t)rng_next(rng);
    l->m.failed = wire_rnd_items(rng);
    fill_ids(rng, l->failed, l->m.failed);
}
static void linked_put(struct writer *w, const void *at)
{
    const struct whole_linked *l = at;
    put_linked(w, &l->m);
    put_ids(w, l->failed, l->m.failed);
}
static bool linked_get(struct reader *r, void *at)
{
    struct whole_linked *l = at;
    return get_linked(r, &l->m) && get_ids(r, l->failed, l->m.failed) && reader_done(r);
}

static void fence_fill(void *at, struct rng *rng)
{
    struct msg_fence *m = at;
    m->view = rng_next(rng);
    m->cause = wire_rnd_cause(rng);
    wire_rnd_text(rng, m->text);
}
WIRE_PLAIN(fence)

struct whole_elected {
    struct msg_elected m;
    uint64_t holders[WIRE_CASE_ITEMS], receivers[WIRE_CASE_ITEMS];
};
static void elected_fill(void *at, struct rng *rng)
{
    struct whole_elected *e = at;
    e->m.number = (uint32_t)rng_next(rng);
    e->m.round = (uint32_t)rng_next(rng);
    e->m.role = (uint8_t)(1 + rng_below(rng, 2));
    e->m.revision = rng_next(rng);
    e->m.key_digest = rng_next(rng);
    e->m.content_digest = rng_next(rng);
    e->m.whole = (uint8_t)rng_below(rng, 2);
    e->m.whole_source = rng_next(rng);
    e->m.holders = wire_rnd_items(rng);
    e->m.receivers = wire_rnd_items(rng);
    fill_ids(rng, e->holders, e->m.holders);
    fill_ids(rng, e->receivers, e->m.receivers);
}
static void elected_put(struct writer *w, const void *at)
{
    const struct whole_elected *e = at;
    put_elected(w, &e->m);
    put_ids(w, e->holders, e->m.holders);
    put_ids(w, e->receivers, e->m.receivers);
}
static bool elected_get(struct reader *r, void *at)
{
    struct whole_elected *e = at;
    return get_elected(r, &e->m) && get_ids(r, e->holders, e->m.holders) &&
           get_ids(r, e->receivers, e->m.receivers) && reader_done(r);
}

static void staged_fill(void *at, struct rng *rng)
{
    struct msg_staged *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->round = (uint32_t)rng_next(rng);
    m->status = (uint8_t)rng_below(rng, 4);
    m->liar = rng_next(rng);
    if (m->status == STAGED_KEYS) {
        wire_rnd_text(rng, m->text);
    }
}
WIRE_PLAIN(staged)

static void probe_fill(void *at, struct rng *rng)
{
    struct msg_probe *m = at;
    m->round = (uint32_t)rng_next(rng);
    m->duration_ms = (uint32_t)rng_next(rng);
    m->to = rng_next(rng);
}
WIRE_PLAIN(probe)

static void measured_fill(void *at, struct rng *rng)
{
    struct msg_measured *m = at;
    m->round = (uint32_t)rng_next(rng);
    m->to = rng_next(rng);
    m->bits_per_second = rng_next(rng);
    m->rtt_us = (uint32_t)rng_next(rng);
    m->loss_ppm = (uint32_t)rng_next(rng);
}
WIRE_PLAIN(measured)

static void took_fill(void *at, struct rng *rng)
{
    struct msg_took *m = at;
    m->kind = (uint8_t)rng_below(rng, TOOK_KINDS);
    m->permille = 1 + (uint16_t)rng_below(rng, UINT16_MAX);
    m->bytes = rng_next(rng);
    m->took_us = rng_next(rng);
}
WIRE_PLAIN(took)

struct whole_view_part {
    struct msg_view_part m;
    unsigned char piece[64];
};
static void view_part_fill(void *at, struct rng *rng)
{
    struct whole_view_part *p = at;
    p->m.size = 1 + (uint32_t)rng_below(rng, sizeof p->piece);
    p->m.bytes = p->m.size + (uint32_t)rng_below(rng, 1000);
    for (uint32_t i = 0; i < p->m.size; i++) {
        p->piece[i] = (unsigned char)rng_next(rng);
    }
}
static void view_part_put(struct writer *w, const void *at)
{
    const struct whole_view_part *p = at;
    put_view_part(w, &p->m);
    put_bytes(w, p->piece, p->m.size);
}
static bool view_part_get(struct reader *r, void *at)
{
    struct whole_view_part *p = at;
    if (!get_view_part(r, &p->m) || p->m.size > sizeof p->piece) {
        return false;
    }
    memcpy(p->piece, get_bytes(r, p->m.size), p->m.size);
    return reader_done(r);
}

const struct wire_case wire_control_cases[] = {
    WIRE_ROW(register, FRAME_REGISTER, struct msg_register),
    WIRE_ROW(claim, FRAME_CLAIM, struct msg_claim),
    WIRE_ROW(expect, FRAME_EXPECT, struct whole_expect),
    WIRE_ROW(given_up, FRAME_GIVEN_UP, struct msg_given_up),
    WIRE_ROW(welcome, FRAME_WELCOME, struct msg_welcome),
    WIRE_ROW(decline, FRAME_DECLINE, struct msg_decline),
    WIRE_ROW(heartbeat, FRAME_HEARTBEAT, struct msg_heartbeat),
    WIRE_ROW(suspect, FRAME_SUSPECT, struct msg_suspect),
    WIRE_ROW(freeze, FRAME_FREEZE, struct whole_freeze),
    WIRE_ROW(view, FRAME_VIEW, struct whole_view),
    WIRE_ROW(vote, FRAME_VOTE, struct msg_vote),
    WIRE_ROW(answer, FRAME_ANSWER, struct msg_answer),
    WIRE_ROW(admit, FRAME_ADMIT, struct whole_admit),
    WIRE_ROW(linked, FRAME_LINKED, struct whole_linked),
    WIRE_ROW(fence, FRAME_FENCE, struct msg_fence),
    WIRE_ROW(elected, FRAME_ELECTED, struct whole_elected),
    WIRE_ROW(staged, FRAME_STAGED, struct msg_staged),
    WIRE_ROW(probe, FRAME_PROBE, struct msg_probe),
    WIRE_ROW(measured, FRAME_MEASURED, struct msg_measured),
    WIRE_ROW(took, FRAME_TOOK, struct msg_took),
    WIRE_ROW(view_part, FRAME_VIEW_PART, struct whole_view_part),
};
const size_t wire_control_case_count = sizeof wire_control_cases / sizeof wire_control_cases[0];
