/* faults_chain.c - faults that show something only together, or one after the other.
 *
 * One idea: what a rule is for often takes three things that go wrong in the right order; a drawn chain makes that common.
 * Invariant: a chain takes the place of the single faults of its seed.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

static void chain_at(struct cluster *cl, int64_t at, struct fault f)
{
    cl->faults[cl->fault_count] = f;
    cluster_post(cl, at, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
}

static int64_t chain_begin(struct cluster *cl)
{
    return (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns);
}

/* One process is late while two others die, one after the other: it owes two errors that came with different members. */
static void faults_draw_debts(struct cluster *cl)
{
    int64_t at = (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns);
    uint16_t first = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
    for (uint32_t i = 0; i < 3; i++) {
        cl->faults[cl->fault_count] = (struct fault){
            .kind = i == 0 ? FAULT_LATE : FAULT_CRASH, .node = (uint16_t)((first + i) % cl->opt.peers), .for_ns = cl->opt.latency_ns * 60};
        cluster_post(cl, at, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
        at += cl->opt.latency_ns * (int64_t)(10 + rng_below(&cl->rng, 30));
    }
}

/* Several processes refuse for different causes while the view ends. */
static void faults_draw_refusals(struct cluster *cl)
{
    static const uint8_t kinds[] = {FAULT_DEADLINE, FAULT_CANCEL, FAULT_MEMORY, FAULT_LINK, FAULT_LINK, FAULT_LINK};
    int64_t at = (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns);
    for (uint32_t i = 0; i < sizeof kinds; i++) {
        cl->faults[cl->fault_count] = (struct fault){.kind = (enum fault_kind)kinds[i], .node = (uint16_t)(i % cl->opt.peers),
                                                     .other = (uint16_t)rng_below(&cl->rng, cl->opt.peers)};
        cluster_post(cl, at, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
        at += i < 2 ? 0 : (int64_t)rng_below(&cl->rng, 8 * (uint64_t)cl->opt.latency_ns);
    }
}

/* A process loses the master's connection with an answer under way, and another dies before it is back. */
static void faults_draw_lost_answer(struct cluster *cl)
{
    static const uint8_t phases[] = {PHASE_DECIDING, PHASE_VOTING, PHASE_DECIDING};
    uint16_t first = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
    for (uint32_t i = 0; i < 3; i++) {
        cl->faults[cl->fault_count++] = (struct fault){
            .kind = FAULT_MASTER_LINE, .node = (uint16_t)((first + i / 2) % cl->opt.peers), .armed = true, .phase = phases[i]};
        cl->armed++;
    }
    for (uint32_t i = 0; i < 2; i++) {
        cl->faults[cl->fault_count] = (struct fault){.kind = i == 0 ? FAULT_LINK : FAULT_CRASH,
                                                     .node = (uint16_t)((first + 2) % cl->opt.peers), .other = first};
        cluster_post(cl, (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.fault_ns), EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
    }
}

/* All but one leave and come back, again and again: an admission gets ever new peers. */
static void faults_draw_returns(struct cluster *cl)
{
    int64_t at = chain_begin(cl);
    uint32_t peers = cl->opt.peers < 8 ? cl->opt.peers : 8;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 1; i < peers; i++) {
            chain_at(cl, at, (struct fault){.kind = FAULT_RETURN, .node = (uint16_t)i});
        }
        at += 50 * CLOCK_MS + cl->opt.latency_ns * (int64_t)(4 + rng_below(&cl->rng, 20));
    }
}

/* A process loses the master's connection in a sync, and comes back while the view is being ended: a third one answers late. */
static void faults_draw_resumed_sync(struct cluster *cl)
{
    static const struct {
        uint8_t kind, phase, node;
    } plan[] = {{FAULT_MASTER_LINE, PHASE_VOTING, 0}, {FAULT_LINK, PHASE_STAGING, 1}, {FAULT_FREEZE, PHASE_STAGING, 2},
                {FAULT_MASTER_LINE, PHASE_STAGING, 0}, {FAULT_MASTER_LINE, PHASE_STAGING_FROZEN, 0}};
    uint16_t first = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
    for (uint32_t i = 0; i < sizeof plan / sizeof plan[0]; i++) {
        cl->faults[cl->fault_count++] = (struct fault){
            .kind = (enum fault_kind)plan[i].kind, .node = (uint16_t)((first + plan[i].node) % cl->opt.peers),
            .other = (uint16_t)rng_below(&cl->rng, cl->opt.peers), .armed = true, .phase = (enum phase)plan[i].phase,
            .for_ns = (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.dead_ns)};
        cl->armed++;
    }
}

/* A pair is cut for longer than it takes to notice, heals, and a while later its relay goes; or the relay goes first. */
static void faults_draw_relay_lost(struct cluster *cl)
{
    uint16_t a = (uint16_t)rng_below(&cl->rng, cl->opt.peers), b = (uint16_t)((a + 1) % cl->opt.peers);
    bool many = rng_below(&cl->rng, 3) == 0;
    int64_t at = chain_begin(cl), cut = cl->opt.stall_ns + 6 * CLOCK_S + (int64_t)rng_below(&cl->rng, 4 * CLOCK_S);
    chain_at(cl, at, (struct fault){.kind = many ? FAULT_SPARSE : FAULT_PAIR, .node = a, .other = b, .for_ns = cut});
    cl->opt.fault_ns += cut + 8 * CLOCK_S; /* the faults go on for so long */
    for (uint32_t i = 0; i < 2; i++) {
        int64_t late = cut - 3 * CLOCK_S + (int64_t)rng_below(&cl->rng, 12 * CLOCK_S);
        chain_at(cl, at + late, (struct fault){.kind = FAULT_RELAY, .node = i == 0 ? a : b, .other = (uint16_t)rng_below(&cl->rng, 2)});
    }
    if (rng_below(&cl->rng, 2) == 0) {
        chain_at(cl, at + cut - 4 * CLOCK_S, (struct fault){.kind = FAULT_LINK, .node = a, .other = b});
    }
}

/* Any fault in the phases that are seldom met: a view ends while shared state is on its way, or is published. */
static void faults_draw_rare(struct cluster *cl)
{
    static const uint8_t phases[] = {PHASE_STAGING_FROZEN, PHASE_STAGING_FROZEN, PHASE_INSTALLING, PHASE_DECIDING, PHASE_PROBING,
                                     PHASE_PROBING, PHASE_FROZEN, PHASE_FROZEN, PHASE_HOLD, PHASE_FIRST};
    cl->opt.sync_percent = 100;
    cl->opt.optimise_percent = 60;
    cl->faults[cl->fault_count++] = (struct fault){
        .kind = FAULT_LINK, .node = (uint16_t)rng_below(&cl->rng, cl->opt.peers), .armed = true, .phase = PHASE_STAGING};
    for (uint32_t i = 0; i < 2 * sizeof phases; i++) {
        cl->faults[cl->fault_count++] = (struct fault){
            .kind = (enum fault_kind)rng_below(&cl->rng, FAULT_COUNT), .node = (uint16_t)rng_below(&cl->rng, cl->opt.peers),
            .other = (uint16_t)rng_below(&cl->rng, cl->opt.peers), .armed = true, .phase = (enum phase)phases[i % sizeof phases],
            .for_ns = 1 + (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.latency_ns * 40)};
    }
    for (uint32_t i = 0; i < cl->fault_count; i++) { /* votes that others answer by calls keep in step only where nothing else is voted on */
        cl->faults[i].kind = cl->faults[i].kind == FAULT_VOTE ? FAULT_CRASH : cl->faults[i].kind;
    }
    cl->armed += cl->fault_count;
}

bool faults_draw_chain(struct cluster *cl)
{
    if (cl->opt.faults < 3 || cl->opt.peers < 3) {
        return false;
    }
    switch (rng_below(&cl->rng, 20)) {
    case 8:
    case 9:
    case 10:
        if (cl->opt.peers > 8 || cl->opt.burst != 0) {
            return false;
        }
        faults_draw_rare(cl);
        return true;
    case 1:
        faults_draw_refusals(cl);
        return true;
    case 2:
        faults_draw_lost_answer(cl);
        return true;
    case 3:
        if (cl->opt.peers < 4) {
            return false;
        }
        faults_draw_debts(cl);
        return true;
    case 4:
        faults_draw_returns(cl);
        return true;
    case 5:
    case 6:
        if (cl->opt.latency_ns < 5 * CLOCK_MS || cl->opt.peers > 8) { /* so long a time would be too many calls */
            return false;
        }
        faults_draw_relay_lost(cl);
        return true;
    case 7:
        if (cl->opt.sync_percent == 0) {
            return false;
        }
        faults_draw_resumed_sync(cl);
        return true;
    default:
        return false;
    }
}
