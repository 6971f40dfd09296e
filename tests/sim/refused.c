/* refused.c - up to 300 calls in the order of issue, each of which is refused.
 *
 * One idea: a member that refuses runs ahead of those that have not come to the number yet, and how far it may do so has to end well:
 * whether the others come, or come late, or never come since the deadline is over.  One seed of 64 makes such calls in some of its steps: by deadlines,
 * by cancels, with wrong arguments, or for members of whom one is lost; all at once, or one process one by one ahead of the rest.
 * Invariant: a function of the seed alone; other seeds draw nothing here.
 * SPDX-License-Identifier: MIT */
#include "program.h"

enum { REFUSED_SEEDS = 64, REFUSED_MOST = 300 };
enum refused_by { BY_DEADLINE, BY_CANCEL, BY_ARGUMENT, BY_LOSS, BY_KINDS };

void refused_draw(struct options *o)
{
    if (o->seed % REFUSED_SEEDS != 37) {
        return;
    }
    struct rng r = {.state = mix64(o->seed, 0x4EF)};
    o->refused = REFUSED_MOST >> rng_below(&r, 3);
    o->refused -= (uint32_t)rng_below(&r, o->refused / 4);
    o->refused_by = (uint32_t)rng_below(&r, BY_KINDS);
    o->refused_ahead = rng_below(&r, 2) != 0 && o->refused_by != BY_LOSS; /* what is not refused takes its time */
    o->peers = 2 + (uint32_t)rng_below(&r, 4);
    o->groups = 1;
    o->lanes = 1;
    o->steps = 5;
    o->op_bytes = 64;
    o->think = rng_below(&r, 2) != 0;
    o->split_percent = 0;
    o->faults = rng_below(&r, 2) == 0 ? 0 : o->faults;
}

/* The first steps belong to the process that comes first, until the others have joined. */
bool refused_step(const struct cluster *cl, uint64_t step)
{
    return cl->opt.refused != 0 && step <= 5 && step % 2 == 1;
}

/* Those calls are made for the first time. */
static bool refuses(const struct cluster *cl, const struct node *n)
{
    return refused_step(cl, n->program->step) && n->program->attempt == 0;
}

bool refused_one_by_one(const struct cluster *cl, const struct node *n)
{
    return cl->opt.refused_ahead && refuses(cl, n) && n->index == 0;
}

/* The others come to them later, perhaps when all have been refused. */
void refused_begin(struct cluster *cl, struct node *n)
{
    if (cl->opt.refused_ahead && refuses(cl, n) && n->index != 0) {
        n->program->not_before = cl->now + (int64_t)rng_below(&cl->rng, 8 * cl->opt.refused * (uint64_t)cl->opt.latency_ns);
    }
}

void refused_wish(struct cluster *cl, struct node *n, struct call *c, struct session_launch *launch)
{
    bool all = mix64(cl->opt.seed, 0xA11) % 2 == 0 && !cl->opt.refused_ahead;
    if (!refuses(cl, n) || (n->index != 0 && !all) || c->op == PROGRAM_OPS) {
        return;
    }
    switch ((enum refused_by)cl->opt.refused_by) {
    case BY_DEADLINE:
        launch->call.deadline = cl->now + (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.latency_ns);
        break;
    case BY_CANCEL:
        cluster_post(cl, (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.latency_ns), EVENT_STEP, n->index, SESSION_CANCEL, c->slot,
                     n->run[c->slot].use);
        break;
    case BY_ARGUMENT:
        launch->call.bad_argument = c->bad_argument = true;
        break;
    case BY_LOSS:
        if (c->op == cl->opt.refused / 8 && cl->fault_count < FAULTS_MAX) {
            cl->faults[cl->fault_count] = (struct fault){.kind = FAULT_CRASH, .node = (uint16_t)(cl->opt.peers - 1), .other = n->index};
            cluster_post(cl, 0, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
        }
        break;
    case BY_KINDS:
        break;
    }
}
