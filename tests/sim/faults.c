/* faults.c - what goes wrong, when, and when it ends.
 *
 * One idea: half of the faults come at a drawn time, the others wait until their process enters a drawn phase of the protocol: rare
 * phases are hit as often as common ones.  At the end of the safety phase everything that can heal heals.
 * Invariant: after faults_heal nothing new goes wrong.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program.h"
#include "reset_fault.h"

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
static void faults_fit_program(struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->fault_count; i++) {
        if (cl->faults[i].kind == FAULT_VOTE) {
            cl->opt.sync_percent = cl->opt.query_percent = cl->opt.optimise_percent = 0;
            cl->opt.update_on_error_percent = cl->opt.update_on_error_percent == 0 ? 45 : cl->opt.update_on_error_percent;
        }
    }
}

void faults_add(struct cluster *cl, const struct fault *f, struct rng *r)
{
    uint32_t index = cl->fault_count++;
    cl->faults[index] = *f;
    cl->armed += f->armed;
    if (!f->armed) {
        cluster_post(cl, (int64_t)rng_below(r, (uint64_t)cl->opt.fault_ns), EVENT_FAULT, CLUSTER_NOBODY, index, 0, 0);
    }
}

void faults_draw(struct cluster *cl)
{
    cl->bandwidth_seed = cl->opt.seed;
    if (faults_draw_chain(cl)) {
        return;
    }
    uint32_t kinds = 1 + (uint32_t)rng_below(&cl->rng, 6), enabled[8];
    for (uint32_t i = 0; i < kinds; i++) {
        enabled[i] = (uint32_t)rng_below(&cl->rng, FAULT_DRAWN);
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
    if (rng_below(&cl->rng, 3) == 0) {
        uint64_t theme = rng_below(&cl->rng, sizeof themes / sizeof *themes);
        for (uint32_t i = 0; i < 6; i++) {
            enabled[i] = themes[theme][i];
        }
        kinds = 6;
    }
    for (uint32_t i = 0; i < cl->opt.faults; i++) {
        struct fault f = {.kind = (enum fault_kind)enabled[rng_below(&cl->rng, kinds)]};
        f.node = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
        f.other = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
        f.armed = rng_below(&cl->rng, 3) != 0;
        f.phase = (enum phase)rng_below(&cl->rng, PHASE_COUNT);
        uint64_t span = rng_below(&cl->rng, 3) == 0 ? (uint64_t)cl->opt.dead_ns * 2 : (uint64_t)cl->opt.latency_ns * 40;
        f.for_ns = 1 + (int64_t)rng_below(&cl->rng, span);
        faults_add(cl, &f, &cl->rng);
    }
    faults_fit_program(cl);
}

/* Two of a group that never have a link, in some clusters with messages: they go round it from the first view on. */
static void draw_torn(struct cluster *cl)
{
    uint64_t h = mix64(cl->opt.seed, 97);
    uint32_t apart = cl->opt.worlds * cl->opt.groups, a = (uint32_t)(h >> 8) % cl->opt.peers, b = a + apart;
    if (h % 4 != 0 || !pair_used(cl) || cl->opt.faults == 0 || b >= cl->opt.peers || cl->fault_count == FAULTS_MAX) {
        return;
    }
    cl->faults[cl->fault_count] = (struct fault){.kind = FAULT_APART, .node = (uint16_t)a, .other = (uint16_t)b};
    cluster_post(cl, 0, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
}

/* A process that has run out of descriptors, for a while. */
static void draw_no_data(struct cluster *cl)
{
    uint64_t h = mix64(cl->opt.seed, 101);
    if (h % 8 != 0 || cl->opt.faults == 0 || cl->fault_count == FAULTS_MAX) {
        return;
    }
    struct fault *f = &cl->faults[cl->fault_count];
    *f = (struct fault){.kind = FAULT_NO_DATA, .node = (uint16_t)((h >> 8) % cl->opt.peers), .other = (uint16_t)((h >> 16) % cl->opt.peers)};
    f->for_ns = 1 + (int64_t)((h >> 24) % (uint64_t)(4 * cl->opt.dead_ns));
    cluster_post(cl, (int64_t)((h >> 40) % (uint64_t)cl->opt.fault_ns), EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
}

void faults_draw_own(struct cluster *cl)
{
    draw_torn(cl);
    draw_no_data(cl);
}

/* How far an operation is. */
enum phase run_phase(const struct run *r)
{
    uint64_t moved = 0;
    uint32_t pending = 0;
    for (uint32_t lane = 0; r->started && lane < r->op.lanes; lane++) {
        moved += r->exec[lane].progress;
        pending += r->exec[lane].pending;
    }
    if (!r->started || (moved == 0 && !r->done)) {
        return PHASE_ANNOUNCED;
    }
    return r->done ? PHASE_HOLD : pending <= 1 ? PHASE_LAST : moved <= 2 ? PHASE_FIRST : PHASE_MIDDLE;
}

/* Where the process stands in the protocol. */
static enum phase phase_of_run(const struct node *n)
{
    enum phase best = PHASE_IDLE;
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        const struct run *r = &n->run[i];
        enum phase phase = r->taken && !r->returned ? run_phase(r) : PHASE_IDLE;
        best = phase > best ? phase : best;
    }
    return best;
}

/* The master has published a view of its group that it has not installed. */
static bool view_is_due(const struct cluster *cl, const struct node *n, uint64_t view)
{
    for (uint32_t i = cl->oracle.view_count; i > 0; i--) {
        if (cl->oracle.views[i - 1].group == n->group && inside_same(n, cl->oracle.views[i - 1].run)) {
            return cl->oracle.views[i - 1].view != view;
        }
    }
    return false;
}

enum phase node_phase(const struct cluster *cl, const struct node *n)
{
    struct session_info info;
    session_info(n->session, &info);
    if (!info.connected) {
        return info.id == 0 ? PHASE_REGISTERING : PHASE_CONNECTING;
    }
    if (cl->master.persisting != 0) {
        return PHASE_DECIDING;
    }
    if (n->probes != 0) {
        return PHASE_PROBING;
    }
    if (view_is_due(cl, n, info.view)) {
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

void faults_check(struct cluster *cl, const struct node *n)
{
    enum phase phase = PHASE_COUNT;
    for (uint32_t i = 0; i < cl->fault_count; i++) {
        struct fault *f = &cl->faults[i];
        if (!f->armed || f->done || f->node != n->index) {
            continue;
        }
        phase = phase == PHASE_COUNT ? node_phase(cl, n) : phase;
        if (f->phase == phase) {
            f->done = true;
            cl->armed--;
            cluster_post(cl, 0, EVENT_FAULT, CLUSTER_NOBODY, i, 0, 0);
        }
    }
}

static void fault_cut(struct cluster *cl, struct fault *f, bool cut)
{
    uint32_t side = (uint32_t)mix64(cl->opt.seed, f->node * 31u + f->other);
    switch ((int)f->kind) {
    case FAULT_SLOW:
        slow_set(cl, f, cut);
        break;
    case FAULT_PARTITION: /* two halves; the master is with one of them */
        for (uint16_t i = 0; i < cl->node_count; i++) {
            for (uint16_t k = 0; k < cl->node_count; k++) {
                bool apart = ((side >> (cl->nodes[i].process % 32)) ^ (side >> (cl->nodes[k].process % 32))) & 1;
                if (i != k && apart && !cl->nodes[i].gone_host && !cl->nodes[k].gone_host) {
                    cluster_cut(cl, i, k, cut);
                }
            }
            if ((side >> (cl->nodes[i].process % 32)) & 1 && !cl->nodes[i].gone_host) {
                cluster_cut(cl, i, CLUSTER_MASTER, cut);
                cluster_cut(cl, CLUSTER_MASTER, i, cut);
            }
        }
        break;
    case FAULT_SPARSE: /* all that is left to some is one of them */
        for (uint16_t i = 0; i < cl->node_count; i++) {
            for (uint16_t k = 0; k < cl->node_count; k++) {
                uint32_t a = cl->nodes[i].process, b = cl->nodes[k].process;
                bool hub = process_same(cl, i, f->other) || process_same(cl, k, f->other);
                hub = hub || cl->nodes[i].gone_host || cl->nodes[k].gone_host;
                if (i != k && !hub && mix64(side, a < b ? a * 97u + b : b * 97u + a) % 3 != 0) {
                    cluster_cut(cl, i, k, cut);
                }
            }
        }
        break;
    case FAULT_PAIR:
        if (f->node != f->other && !cl->nodes[f->node].gone_host && !cl->nodes[f->other].gone_host) {
            cluster_cut(cl, f->node, f->other, cut);
            cluster_cut(cl, f->other, f->node, cut);
        }
        break;
    case FAULT_MASTER_CUT:
        if (side % 3 != 0) {
            cluster_cut(cl, f->node, CLUSTER_MASTER, cut);
        }
        if (side % 3 != 1) {
            cluster_cut(cl, CLUSTER_MASTER, f->node, cut);
        }
        break;
    default:
        if (f->node != f->other) {
            cluster_cut(cl, f->node, f->other, cut);
        }
        break;
    }
}

static struct link *fault_link(struct cluster *cl, const struct fault *f)
{
    struct node *n = &cl->nodes[f->node];
    for (uint32_t i = 0; i < n->link_count; i++) {
        struct link *l = n->links[(i + f->other) % n->link_count];
        if (l->wanted && l->state == LINK_UP) {
            return l;
        }
    }
    return NULL;
}

static void fault_on_link(struct cluster *cl, const struct fault *f)
{
    struct node *n = &cl->nodes[f->node];
    struct link *l = fault_link(cl, f);
    if (l == NULL) {
        return;
    }
    if (f->kind == FAULT_LINK && channel_valid(cl, l->channel, l->generation)) {
        channel_break(cl, l->channel);
    } else if ((f->kind == FAULT_BUNDLE || f->kind == FAULT_NO_DATA) && l->bundle_state == LINK_UP) {
        channel_break(cl, l->data_connection[f->other % l->bundle_lanes].channel);
    } else if (f->kind == FAULT_DUPLICATE) { /* an old hello that took its time */
        cluster_post(cl, cluster_delay(cl), EVENT_DIALLED, n->index,
                     (uint32_t)(f->other % 2 ? LINK_CONTROL : LINK_DATA) | 0x80u, l->peer, 0);
    }
}

/* Bytes of nobody: noise, or a frame that does not belong there. */
static void fault_hostile(struct cluster *cl, const struct fault *f)
{
    unsigned char bytes[FRAME_HEADER_BYTES + 64];
    bool master = f->other % 2 == 0;
    struct frame_header header = {.type = (uint8_t)(1 + rng_below(&cl->rng, 65)), .length = 64,
                                  .run = cl->master.config.run};
    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)rng_next(&cl->rng);
    }
    if (rng_below(&cl->rng, 3) != 0) {
        frame_put(bytes, &header);
    }
    uint16_t from = f->node;
    uint16_t to = master ? CLUSTER_MASTER : (uint16_t)(f->other % cl->node_count);
    if (!master && (to == from || !cl->nodes[to].alive)) {
        return;
    }
    uint32_t channel = channel_new(cl, from, to);
    cl->channels[channel].end[0].role = ROLE_NONE;
    cl->channels[channel].end[1].role = ROLE_HELLO;
    if (master && !master_shell_accept(cl, channel)) {
        cl->channels[channel].end[0].closed = cl->channels[channel].end[1].closed = true;
        cl->channels[channel].open = false;
        return;
    }
    channel_send(cl, channel, 0, bytes, sizeof bytes);
    if (f->other % 3 == 0) {
        channel_close(cl, channel, 0);
    }
}

static void fault_apart(struct cluster *cl, const struct fault *f)
{
    if (cl->opt.peers < 4 || process_same(cl, f->other, f->node) || cl->apart_any) {
        return;
    }
    for (uint32_t i = 0; i < cl->node_count; i++) {
        for (uint32_t k = 0; process_same(cl, i, f->node) && k < cl->node_count; k++) {
            if (process_same(cl, k, f->other)) {
                cl->apart_any = cl->apart[i][k] = cl->apart[k][i] = true;
            }
        }
    }
    cluster_cut(cl, f->node, f->other, true);
    cluster_cut(cl, f->other, f->node, true);
}

/* What a program does, or has happen to it. */
static void fault_in_process(struct cluster *cl, const struct fault *f)
{
    struct node *n = &cl->nodes[f->node];
    switch ((int)f->kind) {
    case FAULT_LATE:
        n->program->not_before = cl->now + f->for_ns * 3;
        break;
    case FAULT_JOIN:
        node_new(cl, n->group, cluster_delay(cl));
        break;
    case FAULT_RETURN: /* the program connects again, as after an exclusion */
        cluster_post(cl, 0, EVENT_STEP, f->node, SESSION_LEAVE, 0, 0);
        break;
    case FAULT_REVOKE: /* its world ends, and all connect again */
        cluster_post(cl, 0, EVENT_STEP, f->node, SESSION_REVOKE, 0, 0);
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
        poison_wish(cl, n);
        break;
    case FAULT_LIE_READY:
    case FAULT_LIE_HOLD:
    case FAULT_LIE_FINISHED:
    case FAULT_LIE_STAGED:
        lie_wish(cl, n, f->kind);
        break;
    case FAULT_GROWTH:
        growth_fail(n, f);
        break;
    default:
        program_wish(n, f->kind);
        break;
    }
}

static bool fault_begins(struct cluster *cl, const struct fault *f, const struct node *n)
{
    uint16_t relay = f->kind == FAULT_RELAY ? cluster_node_of(cl, n->relay) : f->node;
    if (cl->healed || !n->alive || relay == CLUSTER_NOBODY || !cl->nodes[relay].alive) {
        return false;
    }
    process_touch(cl, f, relay);
    cl->stats.faults++;
    cl->stats.cell[f->kind][node_phase(cl, n)]++;
    algorithms_fault(cl, n);
    cluster_trace(cl, f->node, fault_name(f->kind), f->other, node_phase(cl, n));
    return true;
}

/* Nobody can make a data connection with this process: from then on, and for a while after, a pair may be out of reach of each other. */
static void set_no_data(struct cluster *cl, struct node *n, bool none)
{
    cl->still_at = n->no_data != none ? cl->now : cl->still_at;
    n->no_data = none;
}

void faults_fire(struct cluster *cl, uint32_t index)
{
    struct fault *f = &cl->faults[index];
    struct node *n = &cl->nodes[f->node];
    if (!fault_begins(cl, f, n)) {
        return;
    }
    switch ((int)f->kind) {
    case FAULT_CRASH:
    case FAULT_POWER:
        if (process_others(cl, n) > 0) {
            node_kill(cl, n, f->kind == FAULT_POWER);
        }
        break;
    case FAULT_FREEZE:
        cluster_freeze(cl, f->node, true);
        cluster_post(cl, f->for_ns, EVENT_FAULT_END, CLUSTER_NOBODY, index, 0, 0);
        break;
    case FAULT_PARTITION:
    case FAULT_ONE_WAY:
    case FAULT_PAIR:
    case FAULT_SPARSE:
    case FAULT_MASTER_CUT:
    case FAULT_SLOW:
        fault_cut(cl, f, true);
        cluster_post(cl, f->for_ns, EVENT_FAULT_END, CLUSTER_NOBODY, index, 0, 0);
        break;
    case FAULT_RELAY:
        node_kill(cl, &cl->nodes[cluster_node_of(cl, n->relay)], f->other % 2 != 0);
        break;
    case FAULT_APART: /* one pair, and there must be somebody to relay */
        fault_apart(cl, f);
        break;
    case FAULT_MASTER_LINE:
        if (n->master_up && channel_valid(cl, n->master_channel, n->master_generation)) {
            channel_break(cl, n->master_channel);
        }
        break;
    case FAULT_LINK:
    case FAULT_BUNDLE:
    case FAULT_DUPLICATE:
        fault_on_link(cl, f);
        break;
    case FAULT_NO_DATA: /* what is open stays so, but for one */
        set_no_data(cl, n, true);
        fault_on_link(cl, f);
        cluster_post(cl, f->for_ns, EVENT_FAULT_END, CLUSTER_NOBODY, index, 0, 0);
        break;
    case FAULT_RESET:
        reset_fire(cl, f->node);
        break;
    case FAULT_DIAL:
        cl->still_at = cl->now;
        n->fail_dials += 1 + f->other % 4;
        break;
    case FAULT_HOSTILE:
        fault_hostile(cl, f);
        break;
    case FAULT_MASTER_PAUSE:
    case FAULT_MASTER_DEATH:
        master_fault_begin(cl, index);
        break;
    default:
        fault_in_process(cl, f);
        break;
    }
}

void faults_end(struct cluster *cl, uint32_t index)
{
    struct fault *f = &cl->faults[index];
    if (cl->healed) {
        return;
    }
    if (f->kind == FAULT_FREEZE) {
        cluster_freeze(cl, f->node, false);
    } else if (f->kind == FAULT_NO_DATA) {
        set_no_data(cl, &cl->nodes[f->node], false);
    } else if (f->kind == FAULT_MASTER_PAUSE || f->kind == FAULT_MASTER_DEATH) {
        master_fault_end(cl);
    } else {
        fault_cut(cl, f, false);
    }
}

void faults_heal(struct cluster *cl)
{
    cl->healed = true;
    cl->armed = 0;
    cluster_trace(cl, CLUSTER_NOBODY, "faults end", 0, 0);
    master_fault_end(cl);
    for (uint16_t i = 0; i <= CLUSTER_NODES; i++) {
        for (uint16_t k = 0; cl->cuts != 0 && k <= CLUSTER_NODES; k++) {
            bool gone = (i < CLUSTER_NODES && i < cl->node_count && cl->nodes[i].gone_host) ||
                        (k < CLUSTER_NODES && k < cl->node_count && cl->nodes[k].gone_host);
            if (!gone) {
                cluster_cut(cl, i, k, false);
            }
        }
    }
    slow_end(cl);
    for (uint16_t i = 0; i < cl->node_count; i++) {
        struct node *n = &cl->nodes[i];
        if (n->frozen) {
            cluster_freeze(cl, i, false);
        }
        n->fail_dials = 0;
        set_no_data(cl, n, false);
        n->poison_after = POISON_NEVER;
        n->wrong_result = n->fail_executor = false;
        n->fail_staging = n->lie = false;
        n->fail_growth = 0;
        lie_ends(cl, n);
        if (n->program->not_before > cl->now + cl->opt.dead_ns) {
            n->program->not_before = cl->now + cl->opt.dead_ns;
            cluster_post(cl, cl->opt.dead_ns, EVENT_PROGRAM, i, 0, 0, 0);
        }
    }
}
