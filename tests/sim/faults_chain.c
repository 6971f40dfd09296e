/* faults_chain.c - faults that show something only together, or one after the other.
 *
 * One idea: what a rule is for often takes three things that go wrong in the right order; a drawn chain makes that common.
 * Invariant: a chain takes the place of the single faults of its seed.
 * SPDX-License-Identifier: MIT */
#include "world.h"

static void chain_at(struct world *w, int64_t at, struct fault f)
{
    w->faults[w->fault_count] = f;
    world_post(w, at, EVENT_FAULT, WORLD_NOBODY, w->fault_count++, 0, 0);
}

static int64_t chain_begin(struct world *w)
{
    return (int64_t)rng_below(&w->rng, (uint64_t)w->opt.fault_ns);
}

/* One process is late while two others die, one after the other: it owes two errors that came with different members. */
static void faults_draw_debts(struct world *w)
{
    int64_t at = (int64_t)rng_below(&w->rng, (uint64_t)w->opt.fault_ns);
    uint16_t first = (uint16_t)rng_below(&w->rng, w->opt.peers);
    for (uint32_t i = 0; i < 3; i++) {
        w->faults[w->fault_count] = (struct fault){
            .kind = i == 0 ? FAULT_LATE : FAULT_CRASH, .node = (uint16_t)((first + i) % w->opt.peers), .for_ns = w->opt.latency_ns * 60};
        world_post(w, at, EVENT_FAULT, WORLD_NOBODY, w->fault_count++, 0, 0);
        at += w->opt.latency_ns * (int64_t)(10 + rng_below(&w->rng, 30));
    }
}

/* Several processes refuse for different causes while the view ends. */
static void faults_draw_refusals(struct world *w)
{
    static const uint8_t kinds[] = {FAULT_DEADLINE, FAULT_CANCEL, FAULT_MEMORY, FAULT_LINK, FAULT_LINK, FAULT_LINK};
    int64_t at = (int64_t)rng_below(&w->rng, (uint64_t)w->opt.fault_ns);
    for (uint32_t i = 0; i < sizeof kinds; i++) {
        w->faults[w->fault_count] = (struct fault){.kind = (enum fault_kind)kinds[i], .node = (uint16_t)(i % w->opt.peers),
                                                   .other = (uint16_t)rng_below(&w->rng, w->opt.peers)};
        world_post(w, at, EVENT_FAULT, WORLD_NOBODY, w->fault_count++, 0, 0);
        at += i < 2 ? 0 : (int64_t)rng_below(&w->rng, 8 * (uint64_t)w->opt.latency_ns);
    }
}

/* A process loses the master's connection with an answer under way, and another dies before it is back. */
static void faults_draw_lost_answer(struct world *w)
{
    static const uint8_t phases[] = {PHASE_DECIDING, PHASE_VOTING, PHASE_DECIDING};
    uint16_t first = (uint16_t)rng_below(&w->rng, w->opt.peers);
    for (uint32_t i = 0; i < 3; i++) {
        w->faults[w->fault_count++] = (struct fault){
            .kind = FAULT_MASTER_LINE, .node = (uint16_t)((first + i / 2) % w->opt.peers), .armed = true, .phase = phases[i]};
        w->armed++;
    }
    for (uint32_t i = 0; i < 2; i++) {
        w->faults[w->fault_count] = (struct fault){.kind = i == 0 ? FAULT_LINK : FAULT_CRASH,
                                                   .node = (uint16_t)((first + 2) % w->opt.peers), .other = first};
        world_post(w, (int64_t)rng_below(&w->rng, (uint64_t)w->opt.fault_ns), EVENT_FAULT, WORLD_NOBODY, w->fault_count++, 0, 0);
    }
}

/* All but one leave and come back, again and again: an admission gets ever new peers. */
static void faults_draw_returns(struct world *w)
{
    int64_t at = chain_begin(w);
    uint32_t peers = w->opt.peers < 8 ? w->opt.peers : 8;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 1; i < peers; i++) {
            chain_at(w, at, (struct fault){.kind = FAULT_RETURN, .node = (uint16_t)i});
        }
        at += 50 * CLOCK_MS + w->opt.latency_ns * (int64_t)(4 + rng_below(&w->rng, 20));
    }
}

/* A process loses the master's connection in a sync, and comes back while the view is being ended: a third one answers late. */
static void faults_draw_resumed_sync(struct world *w)
{
    static const struct {
        uint8_t kind, phase, node;
    } plan[] = {{FAULT_MASTER_LINE, PHASE_VOTING, 0}, {FAULT_LINK, PHASE_STAGING, 1}, {FAULT_FREEZE, PHASE_STAGING, 2},
                {FAULT_MASTER_LINE, PHASE_STAGING, 0}, {FAULT_MASTER_LINE, PHASE_STAGING_FROZEN, 0}};
    uint16_t first = (uint16_t)rng_below(&w->rng, w->opt.peers);
    for (uint32_t i = 0; i < sizeof plan / sizeof plan[0]; i++) {
        w->faults[w->fault_count++] = (struct fault){
            .kind = (enum fault_kind)plan[i].kind, .node = (uint16_t)((first + plan[i].node) % w->opt.peers),
            .other = (uint16_t)rng_below(&w->rng, w->opt.peers), .armed = true, .phase = (enum phase)plan[i].phase,
            .for_ns = (int64_t)rng_below(&w->rng, (uint64_t)w->opt.dead_ns)};
        w->armed++;
    }
}

/* A pair is cut for longer than it takes to notice, heals, and a while later its relay goes; or the relay goes first. */
static void faults_draw_relay_lost(struct world *w)
{
    uint16_t a = (uint16_t)rng_below(&w->rng, w->opt.peers), b = (uint16_t)((a + 1) % w->opt.peers);
    bool many = rng_below(&w->rng, 3) == 0;
    int64_t at = chain_begin(w), cut = w->opt.stall_ns + 6 * CLOCK_S + (int64_t)rng_below(&w->rng, 4 * CLOCK_S);
    chain_at(w, at, (struct fault){.kind = many ? FAULT_SPARSE : FAULT_PAIR, .node = a, .other = b, .for_ns = cut});
    w->opt.fault_ns += cut + 8 * CLOCK_S; /* the faults go on for so long */
    for (uint32_t i = 0; i < 2; i++) {
        int64_t late = cut - 3 * CLOCK_S + (int64_t)rng_below(&w->rng, 12 * CLOCK_S);
        chain_at(w, at + late, (struct fault){.kind = FAULT_RELAY, .node = i == 0 ? a : b, .other = (uint16_t)rng_below(&w->rng, 2)});
    }
    if (rng_below(&w->rng, 2) == 0) {
        chain_at(w, at + cut - 4 * CLOCK_S, (struct fault){.kind = FAULT_LINK, .node = a, .other = b});
    }
}

/* Any fault in the phases that are seldom met: a view ends while shared state is on its way, or is published. */
static void faults_draw_rare(struct world *w)
{
    static const uint8_t phases[] = {PHASE_STAGING_FROZEN, PHASE_STAGING_FROZEN, PHASE_INSTALLING, PHASE_DECIDING, PHASE_PROBING,
                                     PHASE_PROBING, PHASE_FROZEN, PHASE_FROZEN, PHASE_HOLD, PHASE_FIRST};
    w->opt.sync_percent = 100;
    w->opt.optimise_percent = 60;
    w->faults[w->fault_count++] = (struct fault){
        .kind = FAULT_LINK, .node = (uint16_t)rng_below(&w->rng, w->opt.peers), .armed = true, .phase = PHASE_STAGING};
    for (uint32_t i = 0; i < 2 * sizeof phases; i++) {
        w->faults[w->fault_count++] = (struct fault){
            .kind = (enum fault_kind)rng_below(&w->rng, FAULT_COUNT), .node = (uint16_t)rng_below(&w->rng, w->opt.peers),
            .other = (uint16_t)rng_below(&w->rng, w->opt.peers), .armed = true, .phase = (enum phase)phases[i % sizeof phases],
            .for_ns = 1 + (int64_t)rng_below(&w->rng, (uint64_t)w->opt.latency_ns * 40)};
    }
    for (uint32_t i = 0; i < w->fault_count; i++) { /* votes that others answer by calls keep in step only where nothing else is voted on */
        w->faults[i].kind = w->faults[i].kind == FAULT_VOTE ? FAULT_CRASH : w->faults[i].kind;
    }
    w->armed += w->fault_count;
}

bool faults_draw_chain(struct world *w)
{
    if (w->opt.faults < 3 || w->opt.peers < 3) {
        return false;
    }
    switch (rng_below(&w->rng, 20)) {
    case 8:
    case 9:
    case 10:
        if (w->opt.peers > 8 || w->opt.burst != 0) {
            return false;
        }
        faults_draw_rare(w);
        return true;
    case 1:
        faults_draw_refusals(w);
        return true;
    case 2:
        faults_draw_lost_answer(w);
        return true;
    case 3:
        if (w->opt.peers < 4) {
            return false;
        }
        faults_draw_debts(w);
        return true;
    case 4:
        faults_draw_returns(w);
        return true;
    case 5:
    case 6:
        if (w->opt.latency_ns < 5 * CLOCK_MS || w->opt.peers > 8) { /* so long a time would be too many calls */
            return false;
        }
        faults_draw_relay_lost(w);
        return true;
    case 7:
        if (w->opt.sync_percent == 0) {
            return false;
        }
        faults_draw_resumed_sync(w);
        return true;
    default:
        return false;
    }
}
