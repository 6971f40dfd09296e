/* faults.c - what goes wrong, when, and when it ends.
 *
 * One idea: half of the faults come at a drawn time, the others wait until their process enters a drawn phase of the protocol: rare
 * phases are hit as often as common ones.  At the end of the safety phase everything that can heal heals.
 * Invariant: after faults_heal nothing new goes wrong.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program.h"
#include "world.h"

#define FAULT_TEXT_(name, text) text,
static const char *const fault_names[FAULT_COUNT] = {FAULT_LIST(FAULT_TEXT_)};
static const char *const phase_names[PHASE_COUNT] = {PHASE_LIST(FAULT_TEXT_)};

const char *fault_name(enum fault_kind kind)
{
    return fault_names[kind];
}

const char *phase_name(enum phase phase)
{
    return phase_names[phase];
}

/* A vote against an operation leaves programs that answer errors alike in step only if nothing else is voted on. */
static void faults_fit_program(struct world *w)
{
    for (uint32_t i = 0; i < w->fault_count; i++) {
        if (w->faults[i].kind == FAULT_VOTE) {
            w->opt.sync_percent = w->opt.query_percent = w->opt.optimise_percent = 0;
            w->opt.update_on_error_percent = w->opt.update_on_error_percent == 0 ? 45 : w->opt.update_on_error_percent;
        }
    }
}

void faults_draw(struct world *w)
{
    w->bandwidth_seed = w->opt.seed;
    if (faults_draw_chain(w)) {
        return;
    }
    uint32_t kinds = 1 + (uint32_t)rng_below(&w->rng, 6), enabled[8];
    for (uint32_t i = 0; i < kinds; i++) {
        enabled[i] = (uint32_t)rng_below(&w->rng, FAULT_COUNT);
    }
    static const uint8_t themes[][6] = { /* what rare rules are for */
        {FAULT_CRASH, FAULT_LATE, FAULT_LATE, FAULT_LEAVE, FAULT_LATE, FAULT_CRASH},
        {FAULT_CANCEL, FAULT_DEADLINE, FAULT_MISMATCH, FAULT_CRASH, FAULT_MEMORY, FAULT_LINK},
        {FAULT_MASTER_LINE, FAULT_CRASH, FAULT_MASTER_LINE, FAULT_LATE, FAULT_LEAVE, FAULT_MASTER_LINE},
        {FAULT_LINK, FAULT_BUNDLE, FAULT_ONE_WAY, FAULT_APART, FAULT_CRASH, FAULT_LATE},
        {FAULT_MASTER_DEATH, FAULT_CRASH, FAULT_LINK, FAULT_MASTER_PAUSE, FAULT_POWER, FAULT_DEADLINE},
        {FAULT_PAIR, FAULT_RELAY, FAULT_PAIR, FAULT_SPARSE, FAULT_LINK, FAULT_RELAY},
        {FAULT_RETURN, FAULT_JOIN, FAULT_LINK, FAULT_RETURN, FAULT_MASTER_LINE, FAULT_CRASH},
        {FAULT_LIE_READY, FAULT_LIE_HOLD, FAULT_LIE_FINISHED, FAULT_LIE_STAGED, FAULT_GROWTH, FAULT_LINK},
    };
    if (rng_below(&w->rng, 3) == 0) {
        uint64_t theme = rng_below(&w->rng, sizeof themes / sizeof *themes);
        for (uint32_t i = 0; i < 6; i++) {
            enabled[i] = themes[theme][i];
        }
        kinds = 6;
    }
    for (uint32_t i = 0; i < w->opt.faults; i++) {
        struct fault *f = &w->faults[w->fault_count++];
        *f = (struct fault){.kind = (enum fault_kind)enabled[rng_below(&w->rng, kinds)]};
        f->node = (uint16_t)rng_below(&w->rng, w->opt.peers);
        f->other = (uint16_t)rng_below(&w->rng, w->opt.peers);
        f->armed = rng_below(&w->rng, 3) != 0;
        f->phase = (enum phase)rng_below(&w->rng, PHASE_COUNT);
        uint64_t span = rng_below(&w->rng, 3) == 0 ? (uint64_t)w->opt.dead_ns * 2 : (uint64_t)w->opt.latency_ns * 40;
        f->for_ns = 1 + (int64_t)rng_below(&w->rng, span);
        if (f->armed) {
            w->armed++;
        } else {
            world_post(w, (int64_t)rng_below(&w->rng, (uint64_t)w->opt.fault_ns), EVENT_FAULT, WORLD_NOBODY, i, 0, 0);
        }
    }
    faults_fit_program(w);
}

/* Where the process stands in the protocol. */
static enum phase phase_of_run(const struct node *n)
{
    enum phase best = PHASE_IDLE;
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        const struct run *r = &n->run[i];
        if (!r->taken || r->returned) {
            continue;
        }
        enum phase phase = PHASE_ANNOUNCED;
        if (r->started) {
            uint64_t moved = 0;
            uint32_t pending = 0;
            for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
                moved += r->exec[lane].progress;
                pending += r->exec[lane].pending;
            }
            phase = r->done ? PHASE_HOLD : moved == 0 ? PHASE_ANNOUNCED : pending <= 1 ? PHASE_LAST : moved <= 2 ? PHASE_FIRST
                                                                                                    : PHASE_MIDDLE;
        }
        best = phase > best ? phase : best;
    }
    return best;
}

/* The master has published a view of its group that it has not installed. */
static bool view_is_due(const struct world *w, const struct node *n, uint64_t view)
{
    for (uint32_t i = w->oracle.view_count; i > 0; i--) {
        if (w->oracle.views[i - 1].group == n->group) {
            return w->oracle.views[i - 1].view != view;
        }
    }
    return false;
}

enum phase node_phase(const struct world *w, const struct node *n)
{
    struct session_info info;
    session_info(n->session, &info);
    if (!info.connected) {
        return info.id == 0 ? PHASE_REGISTERING : PHASE_CONNECTING;
    }
    if (w->master.persisting != 0) {
        return PHASE_DECIDING;
    }
    if (n->probes != 0) {
        return PHASE_PROBING;
    }
    if (view_is_due(w, n, info.view)) {
        return PHASE_INSTALLING;
    }
    if (info.newest > info.view) {
        return PHASE_LINKING;
    }
    if (info.frozen) {
        return n->elected ? PHASE_STAGING_FROZEN : PHASE_FROZEN;
    }
    enum phase phase = phase_of_run(n);
    if (phase != PHASE_IDLE || !info.voting) {
        return phase;
    }
    return n->elected ? PHASE_STAGING : PHASE_VOTING;
}

void faults_check(struct world *w, const struct node *n)
{
    enum phase phase = PHASE_COUNT;
    for (uint32_t i = 0; i < w->fault_count; i++) {
        struct fault *f = &w->faults[i];
        if (!f->armed || f->done || f->node != n->index) {
            continue;
        }
        phase = phase == PHASE_COUNT ? node_phase(w, n) : phase;
        if (f->phase == phase) {
            f->done = true;
            w->armed--;
            world_post(w, 0, EVENT_FAULT, WORLD_NOBODY, i, 0, 0);
        }
    }
}

static void fault_cut(struct world *w, struct fault *f, bool cut)
{
    uint32_t side = (uint32_t)mix64(w->opt.seed, f->node * 31u + f->other);
    switch ((int)f->kind) {
    case FAULT_SLOW:
        slow_set(w, f, cut);
        break;
    case FAULT_PARTITION: /* two halves; the master is with one of them */
        for (uint16_t i = 0; i < w->node_count; i++) {
            for (uint16_t k = 0; k < w->node_count; k++) {
                bool apart = ((side >> (i % 32)) ^ (side >> (k % 32))) & 1;
                if (i != k && apart && !w->nodes[i].gone_host && !w->nodes[k].gone_host) {
                    world_cut(w, i, k, cut);
                }
            }
            if ((side >> (i % 32)) & 1 && !w->nodes[i].gone_host) {
                world_cut(w, i, WORLD_MASTER, cut);
                world_cut(w, WORLD_MASTER, i, cut);
            }
        }
        break;
    case FAULT_SPARSE: /* all that is left to some is one of them */
        for (uint16_t i = 0; i < w->node_count; i++) {
            for (uint16_t k = 0; k < w->node_count; k++) {
                bool hub = i == f->other || k == f->other || w->nodes[i].gone_host || w->nodes[k].gone_host;
                if (i != k && !hub && mix64(side, i < k ? i * 97u + k : k * 97u + i) % 3 != 0) {
                    world_cut(w, i, k, cut);
                }
            }
        }
        break;
    case FAULT_PAIR:
        if (f->node != f->other && !w->nodes[f->node].gone_host && !w->nodes[f->other].gone_host) {
            world_cut(w, f->node, f->other, cut);
            world_cut(w, f->other, f->node, cut);
        }
        break;
    case FAULT_MASTER_CUT:
        if (side % 3 != 0) {
            world_cut(w, f->node, WORLD_MASTER, cut);
        }
        if (side % 3 != 1) {
            world_cut(w, WORLD_MASTER, f->node, cut);
        }
        break;
    default:
        if (f->node != f->other) {
            world_cut(w, f->node, f->other, cut);
        }
        break;
    }
}

static struct link *fault_link(struct world *w, const struct fault *f)
{
    struct node *n = &w->nodes[f->node];
    for (uint32_t i = 0; i < n->link_count; i++) {
        struct link *l = n->links[(i + f->other) % n->link_count];
        if (l->wanted && l->state == LINK_UP) {
            return l;
        }
    }
    return NULL;
}

static void fault_on_link(struct world *w, const struct fault *f)
{
    struct node *n = &w->nodes[f->node];
    struct link *l = fault_link(w, f);
    if (l == NULL) {
        return;
    }
    if (f->kind == FAULT_LINK && channel_valid(w, l->channel, l->generation)) {
        channel_break(w, l->channel);
    } else if (f->kind == FAULT_BUNDLE && l->bundle_state == LINK_UP) {
        channel_break(w, l->data_connection[f->other % l->bundle_lanes].channel);
    } else if (f->kind == FAULT_DUPLICATE) { /* an old hello that took its time */
        world_post(w, world_delay(w), EVENT_DIALLED, n->index,
                   (uint32_t)(f->other % 2 ? LINK_CONTROL : LINK_DATA) | 0x80u, l->peer, 0);
    }
}

/* Bytes of nobody: noise, or a frame that does not belong there. */
static void fault_hostile(struct world *w, const struct fault *f)
{
    unsigned char bytes[FRAME_HEADER_BYTES + 64];
    bool master = f->other % 2 == 0;
    struct frame_header header = {.type = (uint8_t)(1 + rng_below(&w->rng, 65)), .length = 64,
                                  .run = w->master.config.run};
    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)rng_next(&w->rng);
    }
    if (rng_below(&w->rng, 3) != 0) {
        frame_put(bytes, &header);
    }
    uint16_t from = f->node;
    uint16_t to = master ? WORLD_MASTER : (uint16_t)(f->other % w->node_count);
    if (!master && (to == from || !w->nodes[to].alive)) {
        return;
    }
    uint32_t channel = channel_new(w, from, to);
    w->channels[channel].end[0].role = ROLE_NONE;
    w->channels[channel].end[1].role = ROLE_HELLO;
    if (master && !master_shell_accept(w, channel)) {
        w->channels[channel].end[0].closed = w->channels[channel].end[1].closed = true;
        w->channels[channel].open = false;
        return;
    }
    channel_send(w, channel, 0, bytes, sizeof bytes);
    if (f->other % 3 == 0) {
        channel_close(w, channel, 0);
    }
}

static void fault_apart(struct world *w, const struct fault *f)
{
    if (w->opt.peers >= 4 && f->other != f->node && !w->apart_any) {
        w->apart_any = w->apart[f->node][f->other] = w->apart[f->other][f->node] = true;
        world_cut(w, f->node, f->other, true);
        world_cut(w, f->other, f->node, true);
    }
}

static uint32_t members_left(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->node_count; i++) {
        count += w->nodes[i].alive;
    }
    return count;
}

/* What a program does, or has happen to it. */
static void fault_in_process(struct world *w, const struct fault *f)
{
    struct node *n = &w->nodes[f->node];
    switch ((int)f->kind) {
    case FAULT_LATE:
        n->program->not_before = w->now + f->for_ns * 3;
        break;
    case FAULT_JOIN:
        node_new(w, n->group, world_delay(w));
        break;
    case FAULT_RETURN: /* the program connects again, as after an exclusion */
        world_post(w, 0, EVENT_STEP, f->node, SESSION_LEAVE, 0, 0);
        break;
    case FAULT_STAGING:
        n->fail_staging = true;
        break;
    case FAULT_LIAR:
        n->lie = true;
        break;
    case FAULT_RESULT:
        n->wrong_result = true;
        break;
    case FAULT_EXECUTOR:
        n->fail_executor = true;
        break;
    case FAULT_POISON:
        poison_wish(w, n);
        break;
    case FAULT_LIE_READY:
    case FAULT_LIE_HOLD:
    case FAULT_LIE_FINISHED:
    case FAULT_LIE_STAGED:
        lie_wish(w, n, f->kind);
        break;
    case FAULT_GROWTH:
        growth_fail(n, f);
        break;
    default:
        program_wish(n, f->kind);
        break;
    }
}

static bool fault_begins(struct world *w, const struct fault *f, const struct node *n)
{
    uint16_t relay = f->kind == FAULT_RELAY ? world_node_of(w, n->relay) : f->node;
    if (w->healed || !n->alive || relay == WORLD_NOBODY || !w->nodes[relay].alive) {
        return false;
    }
    w->stats.faults++;
    w->stats.cell[f->kind][node_phase(w, n)]++;
    world_trace(w, f->node, fault_name(f->kind), f->other, node_phase(w, n));
    return true;
}

void faults_fire(struct world *w, uint32_t index)
{
    struct fault *f = &w->faults[index];
    struct node *n = &w->nodes[f->node];
    if (!fault_begins(w, f, n)) {
        return;
    }
    switch ((int)f->kind) {
    case FAULT_CRASH:
    case FAULT_POWER:
        if (members_left(w) > 1) {
            node_kill(w, n, f->kind == FAULT_POWER);
        }
        break;
    case FAULT_FREEZE:
        world_freeze(w, f->node, true);
        world_post(w, f->for_ns, EVENT_FAULT_END, WORLD_NOBODY, index, 0, 0);
        break;
    case FAULT_PARTITION:
    case FAULT_ONE_WAY:
    case FAULT_PAIR:
    case FAULT_SPARSE:
    case FAULT_MASTER_CUT:
    case FAULT_SLOW:
        fault_cut(w, f, true);
        world_post(w, f->for_ns, EVENT_FAULT_END, WORLD_NOBODY, index, 0, 0);
        break;
    case FAULT_RELAY:
        node_kill(w, &w->nodes[world_node_of(w, n->relay)], f->other % 2 != 0);
        break;
    case FAULT_APART: /* one pair, and there must be somebody to relay */
        fault_apart(w, f);
        break;
    case FAULT_MASTER_LINE:
        if (n->master_up && channel_valid(w, n->master_channel, n->master_generation)) {
            channel_break(w, n->master_channel);
        }
        break;
    case FAULT_LINK:
    case FAULT_BUNDLE:
    case FAULT_DUPLICATE:
        fault_on_link(w, f);
        break;
    case FAULT_DIAL:
        w->still_at = w->now;
        n->fail_dials += 1 + f->other % 4;
        break;
    case FAULT_HOSTILE:
        fault_hostile(w, f);
        break;
    case FAULT_MASTER_PAUSE:
    case FAULT_MASTER_DEATH:
        master_fault_begin(w, index);
        break;
    default:
        fault_in_process(w, f);
        break;
    }
}

void faults_end(struct world *w, uint32_t index)
{
    struct fault *f = &w->faults[index];
    if (w->healed) {
        return;
    }
    if (f->kind == FAULT_FREEZE) {
        world_freeze(w, f->node, false);
    } else if (f->kind == FAULT_MASTER_PAUSE || f->kind == FAULT_MASTER_DEATH) {
        master_fault_end(w);
    } else {
        fault_cut(w, f, false);
    }
}

void faults_heal(struct world *w)
{
    w->healed = true;
    w->armed = 0;
    world_trace(w, WORLD_NOBODY, "faults end", 0, 0);
    master_fault_end(w);
    for (uint16_t i = 0; i <= WORLD_NODES; i++) {
        for (uint16_t k = 0; w->cuts != 0 && k <= WORLD_NODES; k++) {
            bool gone = (i < WORLD_NODES && i < w->node_count && w->nodes[i].gone_host) ||
                        (k < WORLD_NODES && k < w->node_count && w->nodes[k].gone_host);
            if (!gone) {
                world_cut(w, i, k, false);
            }
        }
    }
    slow_end(w);
    for (uint16_t i = 0; i < w->node_count; i++) {
        struct node *n = &w->nodes[i];
        if (n->frozen) {
            world_freeze(w, i, false);
        }
        n->fail_dials = 0;
        n->poison_after = POISON_NEVER;
        n->wrong_result = n->fail_executor = false;
        n->fail_staging = n->lie = false;
        n->fail_growth = 0;
        lie_ends(w, n);
        if (n->program->not_before > w->now + w->opt.dead_ns) {
            n->program->not_before = w->now + w->opt.dead_ns;
            world_post(w, w->opt.dead_ns, EVENT_PROGRAM, i, 0, 0, 0);
        }
    }
}
