/* forest.c - all-reduce along several trees at once: each tree carries a slice of the buffer up to its root, and the sum down again.
 *
 * Its one idea: the load of a tree on a member is its degree there, so trees with shares fill unequal links that one ring or one star
 * leaves idle.  The buffer is cut into rounds, and each round into the slices of all trees, so all trees move from the first frame on
 * and a member holds a few rounds of every slice, not whole slices.
 * Invariant: a member folds its own input, then its children's sums by rank; only the root computes the final value, and all others
 * copy it, so the bits are the same everywhere.  Between two members contributions go in the order of frames (exec.h, `ordered`): a frame
 * waits only for frames that are not behind it, so trees that cross in both directions cannot dead-lock.
 * Partial sums are sent in full precision, as they are accumulated: for plain types only.  Types that travel encoded, rounded or
 * multiplied are refused here (plan_sends_sums), and the choice takes an algorithm without inner nodes.
 * Cost per member and tree: share x degree of the buffer each way; twice the depth of the tree in one-way delays.
 * Source: Zhao et al., "ForestColl: efficient collective communications on heterogeneous network fabrics", 2024.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

enum {
    FOREST_FRAMES = 2,     /* of a slice in a round, on average: enough that few frames are cut short */
    FOREST_SEGMENTS = 1024, /* rounds x trees at most */
};

static const uint16_t *tree_of(const struct plan_params *q, uint32_t tree)
{
    return q->trees->parent + (size_t)tree * q->world;
}

/* At least one, and less than 2^16, which share_floor counts on. */
static uint32_t rounds_of(const struct plan_params *q)
{
    size_t frames = q->count / q->frame_elements, most = FOREST_SEGMENTS / q->trees->count, rounds = frames / (FOREST_FRAMES * q->trees->count);
    rounds = rounds > most ? most : rounds;
    return rounds == 0 ? 1 : (uint32_t)rounds;
}

uint32_t forest_segments(const struct plan_params *q)
{
    return rounds_of(q) * q->trees->count;
}

static uint32_t children(const struct plan_params *q, uint32_t tree)
{
    const uint16_t *parent = tree_of(q, tree);
    uint32_t n = 0;
    for (uint32_t r = 0; r < q->world; r++) {
        n += parent[r] == q->rank && r != q->rank;
    }
    return n;
}

uint32_t forest_steps(const struct plan_params *q)
{
    uint32_t steps = 0;
    for (uint32_t t = 0; t < q->trees->count; t++) {
        steps += 2 * children(q, t) + 3; /* a fold and a send of each; the own fold, and a gift and what comes back, or the end */
    }
    return rounds_of(q) * steps;
}

uint32_t forest_senders(const struct plan_params *q)
{
    uint32_t senders = 0;
    for (uint32_t r = 0; r < q->world; r++) {
        bool gives = false;
        for (uint32_t t = 0; t < q->trees->count && r != q->rank && !gives; t++) {
            gives = tree_of(q, t)[r] == q->rank;
        }
        senders += gives;
    }
    return senders;
}

/* One of its steps with each child, by rank. */
static void with_children(struct plan *plan, uint32_t segment, const uint16_t *parent, enum step_kind kind)
{
    for (uint32_t r = 0; r < plan->params.world; r++) {
        if (parent[r] == plan->params.rank && r != plan->params.rank) {
            plan_add_step(plan, segment, kind, r);
        }
    }
}

static void make_segment(struct plan *plan, uint32_t segment, uint32_t tree)
{
    const struct plan_params *q = &plan->params;
    const uint16_t *parent = tree_of(q, tree);
    bool root = parent[q->rank] == q->rank, leaf = children(q, tree) == 0;
    plan_begin_segment(plan, segment);
    if (root || !leaf) {
        plan_add_step(plan, segment, STEP_FOLD, q->rank);
    }
    with_children(plan, segment, parent, STEP_FOLD);
    if (root) {
        plan_add_step(plan, segment, STEP_FINISH, 0);
    } else {
        plan_add_step(plan, segment, STEP_GIVE, parent[q->rank]);
        plan_add_step(plan, segment, STEP_RECV, parent[q->rank]);
    }
    with_children(plan, segment, parent, STEP_SEND);
}

void plan_make_forest(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t rounds = rounds_of(q), trees = q->trees->count, segment = 0;
    size_t first = 0;
    PCCL_ASSERT(q->trees->members == q->world);
    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t sum = (uint64_t)round * TREE_SET_WHOLE;
        for (uint32_t t = 0; t < trees; t++, segment++) {
            sum += q->trees->share[t];
            size_t end = plan_border(q, sum, (uint64_t)rounds * TREE_SET_WHOLE);
            plan_add_segment(plan, first, first, end - first);
            make_segment(plan, segment, t);
            first = end;
        }
    }
}
