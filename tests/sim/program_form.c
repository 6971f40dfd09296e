/* program_form.c - programs that create worlds of a given size, live in them for a while, and create the next under the same name.
 *
 * Its one idea: what they do in a world matters little; that all calls of one formation have one outcome does.
 * Invariant: every call has a deadline, so each returns in the end whoever is missing.
 * SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdio.h>

enum { FORM_CALLS = 4, JOINER_CALLS = 4 * FORM_CALLS };

/* Some come later, or are one too many, and join. */
static bool joins(const struct options *o, uint32_t index, uint32_t size)
{
    return index >= o->peers ? mix64(mix64(o->seed, 0xF4), index) % 2 == 0 : index / o->worlds >= size;
}

static uint32_t world_of(uint32_t group)
{
    return group / CLUSTER_LABELS;
}

bool form_world(const struct options *o, uint32_t world)
{
    return o->forming && world > 0;
}

void form_config(const struct cluster *cl, const struct node *n, struct session_config *config)
{
    const struct options *o = &cl->opt;
    uint32_t world = world_of(n->group), size = 0;
    if (!form_world(o, world)) {
        return;
    }
    if (split_world(o, world)) {
        config->claim.size = 1; /* told when it calls */
        return;
    }
    for (uint32_t i = 0; i < o->peers; i++) {
        size += i % o->worlds == world;
    }
    bool spare = size > 2 && mix64(mix64(o->seed, 0xF5), world) % 2 == 0;
    size -= spare;
    if (joins(o, n->index, size)) {
        bool any = mix64(mix64(o->seed, 0xF6), n->index) % 4 != 0;
        config->claim = (struct claim){.size = size, .rank = any ? CLAIM_ANY_RANK : n->index % size, .join = 1};
        return;
    }
    uint64_t draw = mix64(mix64(o->seed, 0xF0), n->index);
    config->claim = (struct claim){
        .size = size, .rank = n->index / o->worlds % size, /* who comes later claims a rank that somebody else may hold */
        .deadline_ms = 500 + (uint32_t)(draw % 12000),
        .loss = mix64(mix64(o->seed, 0xF1), world) % (spare ? 8 : 2) != 0 ? LOSS_SHRINK : LOSS_END,
        .once = mix64(mix64(o->seed, 0xF3), world) % 4 == 0};
    bool differs = (draw >> 32) % 16 == 0 && mix64(o->seed, 0xF2) % 8 == 0;
    config->claim.size += differs;
}

static void go(struct cluster *cl, struct node *n, enum program_phase phase, int64_t delay)
{
    n->program->phase = phase;
    cluster_post(cl, delay, EVENT_PROGRAM, n->index, 0, 0, 0);
}

void form_again(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    bool over = cl->healed && cl->master.gone, joiner = n->config.claim.join != 0;
    bool ends = p->leave || over || p->connects >= (joiner ? JOINER_CALLS : FORM_CALLS);
    go(cl, n, ends ? PROGRAM_LEAVING : PROGRAM_START, joiner ? cl->opt.fault_ns / 8 : 50 * CLOCK_MS);
}

/* A joiner pauses before each call, stays in the world it joins, and may wait there for another that votes as seldom. */
int64_t form_longest_ns(const struct options *o)
{
    return o->forming ? JOINER_CALLS * 2 * o->fault_ns : 0;
}

/* ---- what is checked -------------------------------------------------------------------------------------------------- */

static struct formation_record *record_of(struct cluster *cl, uint64_t run)
{
    struct oracle *o = &cl->oracle;
    for (uint32_t i = 0; i < o->formation_count; i++) {
        if (o->formations[i].run == run) {
            return &o->formations[i];
        }
    }
    o->formations = cluster_grow(o->formations, &o->formation_capacity, o->formation_count + 1, sizeof *o->formations);
    o->formations[o->formation_count] = (struct formation_record){.run = run};
    return &o->formations[o->formation_count++];
}

/* A world begins with every rank once, and everybody reads the same ranks. */
static void check_begun(struct cluster *cl, const struct node *n, const struct session_info *info, struct formation_record *f)
{
    uint32_t rank = n->config.claim.rank;
    uint32_t last = 0;
    bool joiner = n->config.claim.join != 0;
    if (!joiner && (f->ranks[rank / 64] >> (rank % 64) & 1) != 0) {
        cluster_fail(cl, "W2: rank %u of run %llx has begun twice", rank, (unsigned long long)info->run);
    }
    if (!joiner) {
        f->ranks[rank / 64] |= (uint64_t)1 << (rank % 64);
    }
    cl->stats.joined += joiner;
    if (info->world > n->config.claim.size) {
        cluster_fail(cl, "peer %u: a world of %u ranks has %u members", n->index, n->config.claim.size, info->world);
    }
    for (uint32_t i = 0; i < info->called; i++) {
        struct session_member m;
        if (!session_member(n->session, i, &m) || (i > 0 && m.key <= last)) {
            cluster_fail(cl, "peer %u: key %u stands at rank %u", n->index, m.key, i);
        }
        bool own = m.key == rank || (joiner && rank == CLAIM_ANY_RANK);
        if (i == info->called_rank && (!own || m.id != info->id)) {
            cluster_fail(cl, "peer %u: key %u is its own at rank %u, it claimed %u", n->index, m.key, i, rank);
        }
        last = m.key;
    }
}

/* W12: of a name for one world only there is one, and nobody is refused before it. */
static void check_once(struct cluster *cl, const struct node *n, uint8_t cause, uint64_t run, uint64_t view)
{
    uint64_t *only = &cl->oracle.only[view >> 32 & 7][world_of(n->group)]; /* a master that starts again remembers nothing yet */
    if (n->config.claim.once && run != 0) {
        if (*only != 0 && *only != run) {
            cluster_fail(cl, "W12: peer %u: a second world has begun under a name for one, run %llx after %llx", n->index,
                         (unsigned long long)run, (unsigned long long)*only);
        }
        *only = run;
    }
    if (!n->config.claim.once && cause == CAUSE_KICK_USED) {
        cluster_fail(cl, "W12: peer %u: the name is said to be used, but was never for one world", n->index);
    }
}

/* W5, W6: one outcome for all calls that a formation has counted; who was refused, or lost the master, says nothing. */
void form_outcome(struct cluster *cl, const struct node *n, const struct session_outcome *o, uint64_t formation)
{
    struct session_info info;
    session_info(n->session, &info);
    bool begun = o->result == RESULT_OK;
    check_once(cl, n, o->cause, begun ? info.run : 0, info.view);
    if (!begun && o->result != RESULT_GIVEN_UP) {
        return;
    }
    struct formation_record *f = record_of(cl, formation != 0 ? formation : info.run);
    if (f->calls++ == 0) {
        f->begun = begun;
        f->cause = o->cause;
        f->culprit = o->culprit;
        cl->stats.formed += begun;
        cl->stats.given_up += !begun;
    } else if (f->begun != begun || (!begun && (f->cause != o->cause || f->culprit != o->culprit))) {
        cluster_fail(cl, "W5: peer %u: the formation of run %llx %s with cause %u of %llx, before it %s with cause %u of %llx", n->index,
                     (unsigned long long)info.run, begun ? "began" : "was given up", o->cause, (unsigned long long)o->culprit,
                     f->begun ? "began" : "was given up", f->cause, (unsigned long long)f->culprit);
    }
    if (begun) {
        check_begun(cl, n, &info, record_of(cl, info.run));
    }
}

/* ---- turns ------------------------------------------------------------------------------------------------------------ */

static void turn_call(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_outcome o;
    if (!program_connect(cl, n, &o)) {
        return;
    }
    form_outcome(cl, n, &o, 0);
    if (o.result == RESULT_OK && inside_begin(cl, n)) {
        program_turns(cl, n);
    } else if (o.result == RESULT_OK) {
        p->attempt = 0;
        p->not_before = cl->now + (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns);
        go(cl, n, PROGRAM_UPDATE, 0);
    } else {
        form_again(cl, n);
    }
}

/* A vote, or nothing; then it leaves, for the next call. */
static void turn_inside(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    struct session_outcome o;
    session_info(n->session, &info);
    bool ends = n->config.claim.loss == LOSS_END && n->config.claim.join == 0;
    if (info.connected && ends && info.world < n->config.claim.size) {
        cluster_fail(cl, "peer %u: a world that ends with its first loss has %u members of %u", n->index, info.world,
                     n->config.claim.size);
    }
    if (p->vote != 0 || (info.connected && p->phase == PROGRAM_UPDATE && mix64(info.run, 3) % 2 == 0)) {
        if (!program_vote(cl, n, VOTE_UPDATE, &o)) {
            return;
        }
        if (o.result == RESULT_OVER && o.cause != CAUSE_REVOKED && !ends) {
            cluster_fail(cl, "peer %u: a world that shrinks is over", n->index);
        }
        bool again = ++p->attempt < 20 && o.result == RESULT_OK && cl->now < p->not_before; /* somebody may wait to join */
        p->phase = again ? PROGRAM_UPDATE : PROGRAM_BODY;
        if (again) {
            cluster_post(cl, (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns / 4 + 1), EVENT_PROGRAM, n->index, 0, 0, 0);
            return;
        }
    }
    if (cl->now < p->not_before && info.connected) {
        cluster_post(cl, p->not_before - cl->now, EVENT_PROGRAM, n->index, 0, 0, 0);
        return;
    }
    bool revokes = mix64(mix64(info.run, 5), n->index) % 8 == 0;
    struct session_event e = {.kind = revokes ? SESSION_REVOKE : SESSION_LEAVE};
    node_step(cl, n, &e);
    form_again(cl, n);
}

void form_event(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    switch (p->phase) {
    case PROGRAM_START:
    case PROGRAM_CONNECTING:
        turn_call(cl, n);
        break;
    case PROGRAM_UPDATE:
    case PROGRAM_BODY:
        turn_inside(cl, n);
        break;
    case PROGRAM_LEAVING: {
        struct session_event e = {.kind = SESSION_LEAVE};
        p->phase = PROGRAM_ENDED;
        node_step(cl, n, &e);
        break;
    }
    case PROGRAM_SIZES:
    case PROGRAM_OPTIMISE:
    case PROGRAM_ALIGN:
    case PROGRAM_SYNC:
    case PROGRAM_ENDED:
        break;
    }
}
