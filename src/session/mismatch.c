/* mismatch.c - whose call of an operation differs from whose, and how that is told.
 *
 * Two members are named, the lower id first; the second is the culprit, so that all name the same one (P10).  Whoever hears of them
 * knows both calls (of counts that only two know the sender compares with what the receiver expects, P12), and tells its own program of the one that differs from its own.
 * Invariant: what a member said of itself is not replaced by what another says of it.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/id.h"
#include "session/session_state.h"
#include "wire/address.h"

static bool equal(const struct op_params *a, const struct op_params *b)
{
    return a->count == b->count && a->root == b->root && a->layout == b->layout && a->kind == b->kind && a->dtype == b->dtype &&
           a->op == b->op && a->quant == b->quant && a->quant_dtype == b->quant_dtype;
}

void mismatch_hear(struct session *s, struct op *op, uint32_t rank, const struct op_params *params)
{
    struct mark *m = op_mark(s, op, rank);
    m->ready = true;
    m->called = true;
    m->params = *params;
}

bool mismatch_with(struct session *s, const struct op *op, uint32_t rank)
{
    const struct mark *m = op_mark(s, op, rank), *own = op_mark(s, op, s->view.rank);
    if (!m->ready || !own->ready || rank == s->view.rank) {
        return false;
    }
    bool pairs = own->params.layout == LAYOUT_PAIRS && op->slot != NONE && op->refused == 0;
    return !equal(&m->params, &own->params) || (pairs && !MUTANT(EXPECTS_BLIND) && m->expects != work_sends(s, &s->slots[op->slot].launch, rank).count);
}

struct op_clash mismatch_clash(struct session *s, const struct op *op)
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
        struct mark *m = rank == NONE || rank == s->view.rank || op->marks == NONE ? NULL : op_mark(s, op, rank);
        if (m != NULL && !m->called) {
            m->called = true;
            m->params = clash->params[i];
        }
    }
}

/* "broadcast of 40 f32, root 1.2", "all-to-all of f32 by counts" */
static void say_moved(const struct op_params *p, char *out, size_t size)
{
    static const char *const kinds[PLAN_KINDS] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "scatter", "all-to-all",
                                                   "reduce", "gather"};
    char count[24] = "", more[48] = "";
    if (p->layout != LAYOUT_PAIRS) {
        snprintf(count, sizeof count, "%llu ", (unsigned long long)p->count);
    }
    if (plan_kind_sums(p->kind)) {
        snprintf(more, sizeof more, ", %s", redop_name((enum redop)p->op));
    }
    if (p->root != 0) {
        size_t used = strlen(more);
        snprintf(more + used, sizeof more - used, ", root " ID_FORMAT, ID_PARTS(p->root));
    }
    snprintf(out, size, "%s of %s%s%s%s", kinds[p->kind % PLAN_KINDS], count, dtype_name((enum dtype)p->dtype),
             p->layout != 0 ? " by counts" : "", more);
}

/* "40 f32, sum, min-max u8" */
static void say_params(const struct op_params *p, char *out, size_t size)
{
    const char *const quants[] = {"", ", min-max ", ", zero-point "};
    bool quantised = p->quant > QUANT_NONE && p->quant < QUANT_COUNT;
    if (p->kind != PLAN_ALL_REDUCE) {
        say_moved(p, out, size);
        return;
    }
    snprintf(out, size, "%llu %s, %s%s%s", (unsigned long long)p->count, dtype_name((enum dtype)p->dtype),
             redop_name((enum redop)p->op), quantised ? quants[p->quant] : "",
             quantised ? dtype_name((enum dtype)p->quant_dtype) : "");
}

void mismatch_tell(const struct session *s, struct slot *c, const struct op_clash *clash)
{
    char own[64], theirs[64], where[ADDRESS_TEXT]; /* the longest of all three are cut */
    say_params(&c->launch.params, own, sizeof own);
    for (int i = 1; i >= 0; i--) {
        uint32_t p = peer_find(s, clash->id[i]);
        bool pairs = clash->params[i].layout == LAYOUT_PAIRS; /* what they expect of each other is not said */
        if (clash->id[i] == 0 || clash->id[i] == s->id || (equal(&clash->params[i], &c->launch.params) && !pairs)) {
            continue;
        }
        c->outcome.differs = clash->id[i];
        say_params(&clash->params[i], theirs, sizeof theirs);
        where[0] = 0;
        if (p != NONE && s->peers[p].info.addresses > 0) {
            address_text(&s->peers[p].info.address[0], where);
        }
        snprintf(c->outcome.text, sizeof c->outcome.text, "this peer has %s; peer " ID_FORMAT "%s%s%s has %s", own,
                 ID_PARTS(clash->id[i]), where[0] != 0 ? " (" : "", where, where[0] != 0 ? ")" : "",
                 strcmp(own, theirs) == 0 ? "other counts" : theirs);
        return;
    }
    snprintf(c->outcome.text, sizeof c->outcome.text, "this peer has %s", own);
}

void mismatch_owe(struct session *s, uint64_t view, const struct op_name *name, const struct op_clash *clash)
{
    s->clashes[s->clash_next] = (struct owed_clash){.view = view, .name = *name, .clash = *clash};
    s->clash_next = (s->clash_next + 1) % SESSION_CLASHES;
}

struct op_clash mismatch_owed(const struct session *s, const struct owed *owed)
{
    struct op_name name = {.space = owed->space, .tag = owed->tag, .seq = owed->seq};
    for (uint32_t i = 0; i < SESSION_CLASHES; i++) {
        const struct owed_clash *k = &s->clashes[i];
        if (k->view == owed->view && op_name_equal(&k->name, &name)) {
            return k->clash;
        }
    }
    return (struct op_clash){0};
}
