/* work.c - what an operation moves: its types, whether it travels with its launch, which plan it goes by, who sends how much to whom.
 *
 * Programs count ranks by (key, id), plans by id (P12: roots travel as ids): parts are asked for by the rank of a plan.  Invariant: whether an operation is eager
 * follows from its parameters and the view alone, so that all members say the same.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "session/calls/work.h"
#include "session/tables/peers.h"

bool work_numeric(const struct session *s, const struct op_params *p, struct numeric *n)
{
    bool good = (!plan_kind_sums(p->kind) || redop_for((enum redop)p->op, (enum dtype)p->dtype)) &&
                numeric_init(n, (enum dtype)p->dtype, (enum redop)p->op, s->view.world == 1 ? QUANT_NONE : (enum quant)p->quant,
                             (enum dtype)p->quant_dtype, s->cfg.kernels); /* of one it is the own part, exact */
    if (good) {
        n->exact = !plan_kind_alike(p->kind);
    }
    return good;
}

bool work_own_numeric(const struct session *s, const struct session_launch *l, struct numeric *n)
{
    bool good = work_numeric(s, &l->call.params, n);
    n->factor = MUTANT(FACTOR_NOT) ? 0 : l->call.factor;
    return good;
}

/* Whether it may travel with its launch. */
static bool fits_a_message(const struct session *s, const struct op_params *p)
{
    uint64_t size = dtype_size((enum dtype)p->dtype);
    uint64_t most = s->view.plan.eager_bytes; /* 0: a view with a missing edge, where not everybody can tell everybody */
    if (!plan_kind_alike(p->kind) && p->kind != PLAN_SEND) { /* what one member says in one step stays as little */
        most /= s->view.world;
    }
    return most != 0 && p->layout != LAYOUT_PAIRS && p->count <= most / size;
}

bool work_is_eager(const struct session *s, const struct op_params *p)
{
    return p->algorithm == PLAN_TINY && fits_a_message(s, p);
}

/* Of equal or uneven parts of a buffer. */
static struct work_range part(const struct session *s, const struct part_lists *parts, size_t count, uint32_t rank)
{
    uint32_t shown = s->view.shown[rank];
    return (struct work_range){.at = part_place(parts, count, shown), .count = part_count(parts, count, shown)};
}

static struct work_range whole(size_t count)
{
    return (struct work_range){.count = count};
}

struct work_range work_sends(const struct session *s, const struct session_launch *l, uint32_t to)
{
    bool root = l->call.params.root == s->id;
    switch ((enum plan_kind)l->call.params.kind) {
    case PLAN_ALL_REDUCE:
        return whole(l->call.count);
    case PLAN_ALL_GATHER:
        return whole(part(s, &l->call.parts, l->call.count, s->view.rank).count);
    case PLAN_BROADCAST:
        return whole(root ? l->call.count : 0);
    case PLAN_REDUCE_SCATTER:
    case PLAN_ALL_TO_ALL:
        return part(s, &l->call.parts, l->call.count, to);
    case PLAN_SCATTER:
        return root ? part(s, &l->call.parts, l->call.count, to) : whole(0);
    case PLAN_REDUCE:
        return whole(l->call.params.root == s->view.ids[to] ? l->call.count : 0);
    case PLAN_GATHER:
        return whole(l->call.params.root == s->view.ids[to] ? part(s, &l->call.parts, l->call.count, s->view.rank).count : 0);
    case PLAN_SEND:
        return whole(l->call.receives ? 0 : l->call.count);
    case PLAN_KINDS:
        break;
    }
    return whole(0);
}

struct work_range work_takes(const struct session *s, const struct session_launch *l, uint32_t from)
{
    bool root = l->call.params.root == s->view.ids[from], own = l->call.params.root == s->id;
    switch ((enum plan_kind)l->call.params.kind) {
    case PLAN_ALL_REDUCE:
        return whole(l->call.count);
    case PLAN_ALL_GATHER:
        return part(s, &l->call.parts, l->call.count, from);
    case PLAN_BROADCAST:
        return whole(root ? l->call.count : 0);
    case PLAN_REDUCE_SCATTER:
        return whole(part(s, &l->call.parts, l->call.count, s->view.rank).count);
    case PLAN_ALL_TO_ALL:
        return part(s, &l->call.out_parts, l->call.count, from);
    case PLAN_SCATTER: /* only the root has a list of all counts */
        return whole(!root ? 0 : part(s, &l->call.parts, l->call.count, s->view.rank).count);
    case PLAN_REDUCE:
        return whole(own ? l->call.count : 0);
    case PLAN_GATHER:
        return own ? part(s, &l->call.parts, l->call.count, from) : whole(0);
    case PLAN_SEND:
        return whole(l->call.receives ? l->call.count : 0);
    case PLAN_KINDS:
        break;
    }
    return whole(0);
}

size_t work_payload(const struct numeric *n, uint8_t kind, size_t count)
{
    return plan_kind_sums(kind) ? numeric_wire_bytes(n, count) : numeric_user_bytes(n, count);
}

const void *work_given(struct session *s, const struct session_launch *l, const struct numeric *n, uint32_t to, size_t *bytes)
{
    struct work_range range = work_sends(s, l, to);
    *bytes = work_payload(n, l->call.params.kind, range.count);
    const unsigned char *in = range.count == 0 ? NULL : (const unsigned char *)l->call.in + numeric_user_bytes(n, range.at);
    if (n->plain || !plan_kind_sums(l->call.params.kind)) {
        return in;
    }
    numeric_encode(n, s->wire, in, range.count);
    return s->wire;
}

bool work_told(const struct session *s)
{
    return s->view.world <= s->cfg.mesh_members;
}

/* Whether its root lacks a link, or of an all-to-all anybody, so that others hand on what it has for all, or all for it: but no parts that
 * only two know the size of, which go between these two (path.c). */
static bool handed_on(const struct session *s, const struct op_params *p)
{
    if (p->layout == LAYOUT_PAIRS) {
        return false;
    }
    if (p->kind == PLAN_ALL_TO_ALL) {
        return s->view.edges > 0;
    }
    uint32_t root = s->view.weighted && plan_kind_has_root(p->kind) ? view_rank(s, p->root) : NONE;
    return root != NONE && s->view.weights[root] == 0;
}

static struct choose_answer plan_among(const struct session *s, const struct op_params *p, uint16_t allowed)
{
    if (p->kind == PLAN_SEND) {
        return (struct choose_answer){.algorithm = fits_a_message(s, p) ? PLAN_TINY : PLAN_CHAIN};
    }
    struct numeric n;
    PCCL_ASSERT(work_numeric(s, p, &n));
    struct choose_call call = {
        .kind = (enum plan_kind)p->kind, .world = s->view.world, .frame_bytes = s->view.plan.frame_bytes,
        .bytes = work_payload(&n, p->kind, (size_t)p->count),
        .small = fits_a_message(s, p), .plain = n.plain,
        .told = work_told(s), .uneven = s->view.weighted || s->view.edges > 0, .pairs = p->layout == LAYOUT_PAIRS,
        .forest = {s->view.trees.count > 0 && s->view.trees_linked, s->view.plan.tree_mib_ns, s->view.plan.tree_delay_us}, .handed_on = handed_on(s, p),
        .allowed = allowed != 0 ? allowed : UINT16_MAX, .costs = s->view.plan.costs,
        .measured = s->view.plan.measured != 0, .link_ps = s->view.plan.link_ps, .ring = {s->view.plan.ring_ps, s->view.plan.ring_delay_us}, .crowd = s->view.plan.crowd};
    return choose_algorithm(&call);
}

bool work_same(const struct op_params *a, const struct op_params *b)
{
    return a->count == b->count && a->root == b->root && a->layout == b->layout && a->kind == b->kind && a->dtype == b->dtype &&
           a->op == b->op && a->quant == b->quant && a->quant_dtype == b->quant_dtype;
}

/* It follows from the call and the view, and calls repeat. */
struct choose_answer session_plan(struct session *s, const struct op_params *p)
{
    uint64_t h = mix64(mix64(p->count, p->root), (uint64_t)p->kind << 16 | (uint64_t)p->dtype << 8 | p->quant);
    struct plan_answer *known = &s->plans.at[h % SESSION_PLANS];
    if (known->view != s->view.view || !work_same(&known->asked, p)) {
        *known = (struct plan_answer){.view = s->view.view, .asked = *p, .answer = plan_among(s, p, s->cfg.wishes.allowed[p->kind])};
    }
    return known->answer;
}

struct choose_answer session_plan_by(const struct session *s, const struct op_params *p, enum plan_algorithm algorithm)
{
    return plan_among(s, p, (uint16_t)(1u << algorithm));
}

static void frames_of(const struct session *s, struct session_op *run)
{
    run->plan.frame_elements =
        plan_frame_elements(plan_largest(&run->plan), numeric_wire_bytes(&run->numeric, 1024), run->plan.align, s->view.plan.frame_bytes);
}

/* A message: in the plan there are its two, ascending by id like all ranks. */
static void plan_of_two(const struct session *s, struct slot *c, const struct op_name *name)
{
    struct session_op *run = &c->run;
    bool ascending = name->from < name->to;
    c->two[0] = ascending ? name->from : name->to;
    c->two[1] = ascending ? name->to : name->from;
    run->ranks = c->two;
    run->verify = false;
    run->plan = (struct plan_params){.kind = PLAN_SEND, .algorithm = PLAN_CHAIN, .world = 2, .rank = c->two[1] == s->id,
                                     .root = !ascending, .lanes = run->lanes, .count = c->launch.call.count, .align = 1};
    frames_of(s, run);
}

void work_plan(struct session *s, struct slot *c, const struct op_name *name)
{
    const struct session_launch *l = &c->launch;
    const struct op_params *p = &l->call.params;
    struct session_op *run = &c->run;
    memset(run, 0, sizeof *run);
    run->view = s->view.view;
    run->name = *name;
    run->params = *p;
    run->lanes = s->view.plan.lanes;
    run->in = l->call.in;
    run->out = l->call.out;
    run->verify = s->view.plan.verify != 0 && plan_kind_alike(p->kind);
    run->ranks = s->view.ids;
    run->launch = ++s->plans.launches;
    PCCL_ASSERT(work_own_numeric(s, l, &run->numeric));
    if (p->kind == PLAN_SEND) {
        plan_of_two(s, c, name);
        return;
    }
    uint32_t root = view_rank(s, p->root);
    run->plan.kind = (enum plan_kind)p->kind;
    run->plan.algorithm = (enum plan_algorithm)p->algorithm;
    if (s->view.world == 1 && plan_kind_sums(p->kind)) { /* of one is the own part */
        run->plan.kind = PLAN_SCATTER;
        run->plan.algorithm = PLAN_PAIRWISE;
    }
    run->plan.world = s->view.world;
    run->plan.rank = s->view.rank;
    run->plan.root = root == NONE ? 0 : root;
    run->lanes = plan_packs(run->plan.kind, run->plan.algorithm) ? 1 : run->lanes;
    run->plan.lanes = run->lanes;
    run->plan.ring = s->view.ring;
    run->plan.places = s->view.places;
    run->plan.weights = s->view.weighted ? s->view.weights : NULL;
    run->plan.trees = &s->view.trees;
    run->plan.apart = p->layout == LAYOUT_PAIRS ? s->view.apart : NULL;
    run->plan.shown = s->view.shown;
    run->plan.count = l->call.count;
    run->plan.parts = l->call.parts;
    run->plan.out_parts = l->call.out_parts;
    run->plan.align = run->numeric.quant != QUANT_NONE ? NUMERIC_BLOCK : 1;
    frames_of(s, run);
}

uint32_t session_folding_senders(struct session *s, const struct op_params *params, uint32_t root_rank)
{
    struct numeric n;
    struct op_params p = *params;
    if (s->phase != PHASE_MEMBER || s->view.frozen || s->view.world < 2 || !plan_kind_sums(p.kind) || !work_numeric(s, &p, &n)) {
        return 0;
    }
    p.algorithm = (uint8_t)session_plan(s, &p).algorithm;
    bool owner = p.kind == PLAN_REDUCE && root_rank < s->view.world;
    struct plan_params plan = {.kind = (enum plan_kind)p.kind, .algorithm = (enum plan_algorithm)p.algorithm, .world = s->view.world,
                               .rank = s->view.rank, .ring = s->view.ring, .places = s->view.places,
                               .weights = s->view.weighted ? s->view.weights : NULL, .trees = &s->view.trees,
                               .root = owner ? s->view.ranked[root_rank] : 0};
    return work_is_eager(s, &p) ? 0 : plan_senders(&plan);
}

bool work_encodes(const struct session *s, const struct op_params *p)
{
    struct numeric n;
    uint64_t size = dtype_size((enum dtype)p->dtype);
    return size != 0 && plan_kind_sums(p->kind) && p->count <= BOUNDS_EAGER_BYTES / size && work_numeric(s, p, &n) && !n.plain;
}

void work_forget(struct session *s)
{
    memset(s->plans.at, 0, sizeof s->plans.at);
}
