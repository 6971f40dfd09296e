/* mismatch.c - whose call of an operation differs from whose, and how that is told.
 *
 * Two members are named, the lower id first; the second is the culprit, so that all name the same one (P10).  Whoever hears of them
 * knows both calls, and tells its own program of the one that differs from its own.  Counts that only two know are compared by the
 * sender with what the receiver expects (P12).
 * Invariant: what a member said of itself is not replaced by what another says of it.
 * SPDX-License-Identifier: MIT */
#include "core/id.h"
#include "session/calls/mismatch.h"
#include "session/calls/sentence.h"
#include "session/calls/work.h"
#include "session/tables/marks.h"
#include "session/tables/peers.h"

static bool equal(const struct op_params *a, const struct op_params *b)
{
    return work_same(a, b) && a->algorithm == b->algorithm;
}

void mismatch_hear(struct session *s, struct op *op, uint32_t rank, const struct op_params *params)
{
    struct mark *m = mark_of(s, op, rank); /* as it was heard */
    op->launched += !m->ready;
    m->ready = true;
    m->called = true;
    m->params = *params;
}

bool mismatch_with(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct mark *m = op_mark(s, op, rank), *own = op_mark(s, op, s->view.rank);
    if (!m->ready || !own->ready || rank == s->view.rank) {
        return false;
    }
    if (MUTANT(NOMISMATCH) && (m->params.kind != own->params.kind || m->params.root != own->params.root)) { /* B6 */
        return false;
    }
    bool pairs = own->params.layout == LAYOUT_PAIRS && op->slot != NONE && op->refused == 0;
    return !equal(&m->params, &own->params) || (pairs && !MUTANT(EXPECTS_BLIND) && m->expects != work_sends(s, &s->slots.at[op->slot].launch, rank).count);
}

uint32_t mismatch_first(const struct session *s, const struct op *op)
{
    uint32_t first = NONE;
    for (uint32_t i = op->marks; i != NONE; i = s->marks.at[i].after) {
        uint32_t rank = s->marks.at[i].rank;
        first = rank < first && mismatch_with(s, op, rank) ? rank : first;
    }
    return first;
}

struct op_clash mismatch_clash(const struct session *s, const struct op *op)
{
    struct op_clash clash = {.id = {op->other, op->culprit}};
    for (int i = 0; i < 2; i++) {
        uint32_t rank = view_rank(s, clash.id[i]);
        const struct mark *m = rank == NONE || op->marks == NONE ? NULL : op_mark(s, op, rank);
        if (m == NULL || !m->called || op->other >= op->culprit) {
            return (struct op_clash){0};
        }
        clash.params[i] = m->params;
    }
    return clash;
}

void mismatch_learn(struct session *s, struct op *op, const struct op_clash *clash)
{
    op->other = clash->id[0];
    op->culprit = clash->id[1] != 0 ? clash->id[1] : op->culprit;
    for (int i = 0; i < 2; i++) {
        uint32_t rank = view_rank(s, clash->id[i]);
        struct mark *m = rank == NONE || rank == s->view.rank || op->marks == NONE ? NULL : mark_of(s, op, rank);
        if (m != NULL && !m->called) {
            m->called = true;
            m->params = clash->params[i];
        }
    }
}

/* "all-reduce of 40 f32, sum, min-max u8", "broadcast of 40 f32, root 1.2", "all-to-all of f32 by counts", "receive of 3 f32" */
static void say_params(struct sentence *t, const struct op_params *p, bool receives)
{
    static const char *const quants[] = {"", ", min-max ", ", zero-point "};
    bool quantised = p->quant > QUANT_NONE && p->quant < QUANT_COUNT;
    say(t, "%s of ", receives ? "receive" : plan_kind_name(p->kind));
    if (p->layout != LAYOUT_PAIRS) {
        say(t, "%llu ", (unsigned long long)p->count);
    }
    say(t, "%s%s", dtype_name((enum dtype)p->dtype), p->layout != 0 ? " by counts" : "");
    if (plan_kind_sums(p->kind)) {
        say(t, ", %s%s%s", redop_name((enum redop)p->op), quantised ? quants[p->quant] : "",
            quantised ? dtype_name((enum dtype)p->quant_dtype) : "");
    }
    if (p->root != 0) {
        say(t, ", root " ID_FORMAT, ID_PARTS(p->root));
    }
}

/* By which algorithm, where that is all that differs: only what the environment asks for makes it so. */
static void say_way(struct sentence *t, const struct op_params *p, bool way)
{
    if (way && p->algorithm < PLAN_ALGORITHMS) { /* else it was never chosen: an error was owed to this call */
        say(t, ", by %s", plan_algorithm_name(p->algorithm));
    }
}

/* Which of the two has another call than this member; -1: none. */
static int differs(const struct session *s, const struct op_params *own, const struct op_clash *clash,
                   bool (*same)(const struct op_params *a, const struct op_params *b))
{
    int i = 1;
    while (i >= 0 && (clash->id[i] == 0 || clash->id[i] == s->id ||
                      (same(&clash->params[i], own) && clash->params[i].layout != LAYOUT_PAIRS))) {
        i--;
    }
    return i;
}

void mismatch_tell(const struct session *s, struct slot *c, const struct op_clash *clash)
{
    struct sentence t = {.out = c->outcome.text, .size = sizeof c->outcome.text};
    const struct op_params *own = &c->launch.call.params;
    int i = differs(s, own, clash, work_same);
    i = i < 0 ? differs(s, own, clash, equal) : i;
    bool way = i >= 0 && work_same(&clash->params[i], own) && clash->params[i].algorithm != own->algorithm;
    bool pair = own->kind == PLAN_SEND;
    say(&t, "this peer has ");
    say_params(&t, own, pair && c->launch.call.receives);
    say_way(&t, own, way);
    if (i < 0) {
        return;
    }
    c->outcome.differs = clash->id[i];
    say(&t, "; ");
    say_rank(&t, s, clash->id[i]);
    say(&t, " has ");
    if (equal(&clash->params[i], own)) { /* what the two of a pair expect of each other is not told */
        say(&t, "other counts");
    } else {
        say_params(&t, &clash->params[i], pair && !c->launch.call.receives);
        say_way(&t, &clash->params[i], way);
        say(&t, way ? ": set the same PCCL_ALGO on all peers" : "");
    }
}

void mismatch_owe(struct session *s, uint64_t view, const struct op_name *name, const struct op_clash *clash)
{
    s->clashes.at[s->clashes.next] = (struct owed_clash){.view = view, .name = *name, .clash = *clash};
    s->clashes.next = (s->clashes.next + 1) % SESSION_CLASHES;
}

struct op_clash mismatch_owed(const struct session *s, const struct owed *owed)
{
    for (uint32_t i = 0; i < SESSION_CLASHES; i++) {
        const struct owed_clash *k = &s->clashes.at[i];
        if (k->view == owed->view && op_name_equal(&k->name, &owed->name)) {
            return k->clash;
        }
    }
    return (struct op_clash){0};
}
