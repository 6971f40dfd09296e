/* program_split.c - programs that split a world whose members others are: of each process of that world one makes its calls.
 *
 * Its one idea: who expects whom follows from the first view of the parent, as it would from an all-gather in it; so all callers
 * expect the same, unless one is wrong on purpose.  Invariant: a formation has one outcome at all of its callers, in whatever
 * world, also without one (a world of its own, which it leaves at once).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "program.h"

enum { SPLITS = 2, COLOURS = 3, NO_COLOUR = COLOURS - 1 };

bool split_world(const struct options *o, uint32_t world)
{
    return o->forming && o->worlds > SPLIT_WORLD && world == SPLIT_WORLD && mix64(o->seed, 0xF8) % 4 != 0;
}

static void again(struct cluster *cl, struct node *n, enum program_phase phase)
{
    n->program->phase = phase;
    cluster_post(cl, cl->opt.fault_ns / 30 + CLOCK_MS, EVENT_PROGRAM, n->index, 0, 0, 0);
}

void split_again(struct cluster *cl, struct node *n)
{
    again(cl, n, PROGRAM_START);
}

/* The first view of that run; null: not seen. */
static const struct view_record *first_view(const struct cluster *cl, uint64_t run)
{
    for (uint32_t i = 0; i < cl->oracle.view_count; i++) {
        const struct view_record *v = &cl->oracle.views[i];
        if (v->run == run && v->group == (SPLIT_WORLD - 1) * CLUSTER_LABELS) {
            return v;
        }
    }
    return NULL;
}

static uint32_t colour_of(uint64_t formation, uint64_t id)
{
    return (uint32_t)(mix64(formation, id) % COLOURS);
}

/* Ranks are counted by (key, id). */
static bool before(uint64_t formation, uint64_t a, uint64_t b)
{
    uint64_t key_a = mix64(formation, ~a) % 3, key_b = mix64(formation, ~b) % 3;
    return key_a < key_b || (key_a == key_b && a < b);
}

static uint64_t formation_of(const struct program *p)
{
    return mix64(mix64(p->split_run, 0x51), p->splits) | 1;
}

/* One caller of some formations leaves one of the others out. */
static bool differs(const struct view_record *v, uint64_t formation, uint64_t id)
{
    return v->members > 2 && mix64(formation, 0x52) % 8 == 0 && v->ids[mix64(formation, 0x53) % v->members] == id;
}

static void configure(struct node *n, const struct view_record *v, uint64_t id)
{
    struct program *p = n->program;
    uint64_t f = formation_of(p);
    uint32_t count = 0, colour = colour_of(f, id);
    uint64_t left_out = !differs(v, f, id) ? 0 : v->ids[0] == id ? v->ids[1] : v->ids[0];
    for (uint32_t i = 0; i < v->members; i++) {
        if (v->ids[i] != left_out) {
            p->callers[count++] = v->ids[i];
        }
    }
    uint64_t draw = mix64(f, 0x54);
    struct claim c = {.deadline_ms = draw % 3 == 0 ? 0 : 500 + (uint32_t)(mix64(draw, id) % 12000),
                      .loss = draw % 2 == 0 ? LOSS_END : LOSS_SHRINK};
    for (uint32_t i = 0; i < count; i++) {
        bool same = colour == NO_COLOUR ? p->callers[i] == id : colour_of(f, p->callers[i]) == colour;
        c.size += same;
        c.rank += same && before(f, p->callers[i], id);
    }
    n->config.claim = c;
    n->config.derived = (struct derivation){.formation = {f, 1}, .parent = v->run, .member = id, .callers = count, .ids = p->callers};
    snprintf(n->config.world, sizeof n->config.world, "%c%u%015llx%016llx", WORLD_DERIVED, (unsigned)SPLIT_WORLD,
             (unsigned long long)(f >> 4), (unsigned long long)(colour == NO_COLOUR ? id : colour));
    node_renew(n);
}

/* Whether there is something to be split that it has not split yet. */
static bool may_call(struct cluster *cl, struct node *n, const struct node *parent)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(parent->session, &info);
    if (!info.connected || session_poisoned(parent->session)) {
        return false;
    }
    if (p->split_run != info.run) {
        p->split_run = info.run;
        p->splits = 0;
    }
    const struct view_record *v = first_view(cl, info.run);
    bool called = false;
    for (uint32_t i = 0; v != NULL && i < v->members; i++) {
        called = called || v->ids[i] == info.id; /* not one that joined later */
    }
    if (called && p->splits < SPLITS) {
        configure(n, v, info.id);
        return true;
    }
    return false;
}

/* True: it calls. */
static bool turn_start(struct cluster *cl, struct node *n)
{
    const struct node *parent = n->index > 0 ? &cl->nodes[n->index - 1] : n;
    bool paired = n->index < cl->opt.peers && n->index % cl->opt.worlds == SPLIT_WORLD;
    bool over = (cl->healed && cl->master.gone) || n->program->leave;
    if (!paired || over || !parent->alive || parent->program->phase == PROGRAM_ENDED) {
        n->program->phase = PROGRAM_ENDED;
        return false;
    }
    poison_renew(cl, n);
    if (!may_call(cl, n, parent)) {
        again(cl, n, PROGRAM_START);
        return false;
    }
    return true;
}

static void turn_call(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_outcome o;
    if (p->phase == PROGRAM_START && !turn_start(cl, n)) {
        return;
    }
    if (!program_connect(cl, n, &o)) {
        return;
    }
    const struct view_record *v = first_view(cl, n->config.derived.parent);
    bool begun = o.result == RESULT_OK;
    form_outcome(cl, n, &o, formation_of(p));
    cl->stats.splits += begun;
    cl->stats.splits_given_up += o.result == RESULT_GIVEN_UP;
    if (begun && v != NULL && v->members != n->config.derived.callers) {
        cluster_fail(cl, "W9: peer %u expected others than its siblings, and has begun with them", n->index);
    }
    p->splits++;
    if (begun && inside_begin(cl, n)) {
        program_turns(cl, n);
        return;
    }
    again(cl, n, begun ? PROGRAM_BODY : PROGRAM_START);
}

void split_event(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    if (p->phase == PROGRAM_START || p->phase == PROGRAM_CONNECTING) {
        turn_call(cl, n);
    } else if (p->phase == PROGRAM_BODY) {
        struct session_event e = {.kind = SESSION_LEAVE};
        node_step(cl, n, &e);
        again(cl, n, PROGRAM_START);
    }
}
