/* chaos_plan.c - see chaos_plan.h.
 * SPDX-License-Identifier: MIT */
#include "chaos_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"

enum { TREES_PEERS = 3 };

const char *fault_name(enum fault_kind kind)
{
#define FAULT_TEXT_(name) #name,
    static const char *const names[] = {FAULT_LIST(FAULT_TEXT_)};
#undef FAULT_TEXT_
    return names[kind];
}

/* How often a kind is drawn beside the others, and for how long it lasts: in milliseconds, or as a share of the stall time,
 * since a stop or a hole shorter than that must be survived and a longer one costs a member. */
static const struct {
    int weight, ms_least, ms_most, stall_percent;
} habits[FAULT_KINDS] = {
    [FAULT_KILL] = {10, 0, 0, 0},        [FAULT_STOP] = {8, 20, 600, 220},
    [FAULT_JOIN] = {12, 0, 0, 0},        [FAULT_LEAVE] = {6, 0, 0, 0},
    [FAULT_QUIT] = {3, 0, 0, 0},         [FAULT_CUT] = {14, 0, 0, 0},
    [FAULT_SEVER] = {8, 50, 900, 150},   [FAULT_HALF_CLOSE] = {5, 0, 0, 0},
    [FAULT_BLACK_HOLE] = {8, 30, 700, 150}, [FAULT_SLOW] = {6, 200, 2000, 0},
    [FAULT_MASTER_CUT] = {8, 0, 0, 0},   [FAULT_MASTER_SEVER] = {5, 50, 1500, 120},
    [FAULT_MASTER_HOLE] = {5, 50, 900, 150}, [FAULT_MASTER_STOP] = {5, 50, 900, 150},
    [FAULT_MASTER_KILL] = {2, 50, 1000, 0}, [FAULT_SOCKET_KILL] = {6, 0, 0, 0},
    [FAULT_UNPLUG] = {5, 50, 800, 150},  [FAULT_STRANGER] = {8, 0, 0, 0},
};

static enum fault_kind draw_kind(const struct plan *p, struct dice *d)
{
    int all = 0;
    for (int k = 0; k < FAULT_KINDS; k++) {
        all += (p->kinds >> k & 1) != 0 ? habits[k].weight : 0;
    }
    int at = dice_from(d, 0, all - 1);
    for (int k = 0; k < FAULT_KINDS; k++) {
        at -= (p->kinds >> k & 1) != 0 ? habits[k].weight : 0;
        if (at < 0) {
            return (enum fault_kind)k;
        }
    }
    return FAULT_KILL;
}

static int order_of_time(const void *a, const void *b)
{
    return ((const struct fault *)a)->at_ms - ((const struct fault *)b)->at_ms;
}

static void draw_faults(struct plan *p, struct dice *d)
{
    bool together = dice_percent(d, 30); /* several faults at almost the same time */
    int at = 0;
    p->faults = dice_from(d, 1, dice_percent(d, 25) ? 24 : 10);
    for (int i = 0; i < p->faults; i++) {
        struct fault *f = &p->fault[i];
        f->kind = draw_kind(p, d);
        at = together && i > 0 && dice_percent(d, 70) ? at + dice_from(d, 0, 30) : dice_from(d, 0, p->trouble_ms);
        f->at_ms = at < p->trouble_ms ? at : p->trouble_ms;
        if (habits[f->kind].ms_most > 0) {
            f->for_ms = dice_from(d, habits[f->kind].ms_least, habits[f->kind].ms_most);
        }
        if (habits[f->kind].stall_percent > 0 && dice_percent(d, 25)) {
            f->for_ms = dice_from(d, p->stall_ms / 2, p->stall_ms * habits[f->kind].stall_percent / 100);
        }
        f->a = (uint32_t)dice_next(d);
        f->b = (uint32_t)dice_next(d);
        f->bytes = dice_percent(d, 50) ? dice_from(d, 0, 300) : dice_from(d, 0, 300000);
        f->form = dice_from(d, 0, 7);
        f->done_a = f->done_b = -1;
    }
    qsort(p->fault, (size_t)p->faults, sizeof p->fault[0], order_of_time);
}

static void draw_network(struct plan *p, struct dice *d)
{
    static const int delays_us[] = {0, 0, 0, 200, 1000, 5000, 20000, 60000};
    static const int64_t rates[] = {0, 0, 0, 0, 200000000, 50000000, 10000000, 3000000};
    p->delay_us = delays_us[dice_below(d, 8)];
    p->jitter_us = dice_percent(d, 40) ? p->delay_us / 2 + 500 : 0;
    p->bytes_per_s = rates[dice_below(d, 8)];
    p->segment = dice_percent(d, 25) ? dice_from(d, 1, 1460) : 0;
    p->same_port = dice_percent(d, 30);
}

static void draw_programs(struct plan *p, struct dice *d)
{
    p->on_loss = dice_percent(d, 35) ? ON_LOSS_UPDATE : ON_LOSS_RETRY;
    p->update = dice_percent(d, 60) ? UPDATE_ALWAYS : dice_percent(d, 50) ? UPDATE_ASKED : UPDATE_THIRD;
    p->sync = dice_percent(d, 70) ? SYNC_POPULAR : dice_percent(d, 50) ? SYNC_NEWCOMERS_RECEIVE : SYNC_FIRST_SENDS;
    p->optimise_every = dice_percent(d, 25) ? dice_from(d, 1, 3) : 0;
    if (p->groups > 1) { /* groups have steps of their own: what concerns all must come at the same place of each step */
        p->update = UPDATE_ALWAYS;
        p->optimise_every = p->optimise_every > 0 ? 1 : 0;
    }
    if (p->on_loss == ON_LOSS_UPDATE) {
        p->update = UPDATE_ALWAYS; /* a step that begins again begins with an update */
    }
    p->newcomers_update = dice_percent(d, 60) ? 0 : dice_percent(d, 50) ? 100 : 50;
    p->windows_differ = dice_percent(d, 60);
    p->state_bytes = dice_percent(d, 25) ? (size_t)dice_from(d, 1, 6) << 20 : (size_t)dice_from(d, 100, 300000);
    p->most_bytes = dice_percent(d, 30) ? 4u << 20 : 1u << 20;
    p->acts = dice_from(d, 1, 5);
    p->burst = dice_percent(d, 8) ? 1000 : dice_percent(d, 30) ? 200 : 24;
    p->late_ms = dice_percent(d, 30) ? dice_from(d, 1, 120) : 0;
}

/* Without a draw of the others.  A view of three or more has trees once its links are measured; votes with a deadline have no time for that. */
static void draw_trees(struct plan *p)
{
    p->along_trees = p->vote_ms == 0 && dice_hash(p->seed, 0x7472656573) % 4 == 0;
    if (p->along_trees && p->optimise_every == 0) {
        p->optimise_every = 1;
    }
    if (p->along_trees && p->groups == 1 && p->processes * p->members < TREES_PEERS) {
        p->processes = TREES_PEERS;
    }
}

/* A slow network gets less to carry, and many peers get fewer calls, so that a step takes seconds at most. */
static void tame(struct plan *p)
{
    size_t most = p->bytes_per_s > 0 ? (size_t)p->bytes_per_s / 10 : SIZE_MAX;
    p->most_bytes = p->most_bytes < most ? p->most_bytes : most;
    p->state_bytes = p->state_bytes < 2 * most ? p->state_bytes : 2 * most;
    if (p->delay_us >= 5000 && p->acts > 2) {
        p->acts = 2;
    }
    if (p->deadline_ms > 0) { /* what cannot be done by then is never done */
        p->most_bytes = p->most_bytes < 200000 ? p->most_bytes : 200000;
        p->burst = 24;
        p->delay_us = p->delay_us < 5000 ? p->delay_us : 5000;
    }
    if (p->optimise_every > 0) {
        p->vote_ms = 0; /* measuring takes as long as it takes */
    }
    if (p->burst > 200 && (p->processes * p->members > 4 || p->segment > 0)) {
        p->burst = 200;
    }
}

void plan_draw(struct plan *p, uint64_t seed)
{
    struct dice d = {dice_hash(seed, 0x706c616e)};
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->groups = dice_percent(&d, 25) ? dice_from(&d, 2, PLAN_GROUPS) : 1;
    p->processes = p->groups > 1 ? 2 * p->groups + dice_from(&d, 0, 2) : dice_from(&d, 2, 4) + (dice_percent(&d, 30) ? 2 : 0);
    p->members = dice_percent(&d, 20) ? PLAN_MEMBERS : 1;
    p->processes = p->members > 1 ? (p->processes + 1) / 2 : p->processes;
    p->pool = dice_percent(&d, 60) ? 1 : (uint32_t)dice_from(&d, 2, 6);
    p->stall_ms = dice_from(&d, 1500, 3000);
    p->loss_ms = dice_from(&d, 1000, 4000);
    p->connect_ms = dice_from(&d, 500, 3000);
    p->deadline_ms = dice_percent(&d, 20) ? dice_from(&d, 800, 3000) : 0;
    p->vote_ms = dice_percent(&d, 8) ? dice_from(&d, 4000, 8000) : 0;
    draw_programs(p, &d);
    draw_trees(p);
    draw_network(p, &d);
    tame(p);
    p->trouble_ms = dice_percent(&d, 20) ? dice_from(&d, 3000, 6000) : dice_from(&d, 400, 2500);
    for (int k = 0; k < FAULT_KINDS; k++) {
        p->kinds |= dice_percent(&d, 45) ? 1u << k : 0;
    }
    p->kinds |= p->kinds == 0 ? 1u << FAULT_KILL : 0;
    draw_faults(p, &d);
}

void plan_print(const struct plan *p, FILE *out)
{
    static const char *const on_loss[] = {"retry", "update"}, *const update[] = {"always", "asked", "third"},
                             *const sync[] = {"popular", "newcomers receive", "first sends"};
    fprintf(out,
            "seed %" PRIu64 ": processes %d, members of each %d, groups %d, pool %u, stall %d ms, loss %d ms, connect %d ms, deadline %d ms, vote "
            "deadline %d ms\n  program: on loss %s, update %s, newcomers update %d %%, sync %s, optimise every %d, state %zu "
            "bytes, in flight %zu bytes, acts %d, burst %d, late %d ms\n  network: delay %d us, jitter %d us, segment %d, "
            "%" PRId64 " bytes/s%s; trouble for %d ms%s\n",
            p->seed, p->processes, p->members, p->groups, p->pool, p->stall_ms, p->loss_ms, p->connect_ms, p->deadline_ms, p->vote_ms,
            on_loss[p->on_loss], update[p->update], p->newcomers_update, sync[p->sync], p->optimise_every, p->state_bytes,
            p->most_bytes, p->acts, p->burst, p->late_ms, p->delay_us, p->jitter_us, p->segment, p->bytes_per_s,
            p->same_port ? ", one port for all" : "", p->trouble_ms, p->along_trees ? "; sums along trees" : "");
    for (int i = 0; i < p->faults; i++) {
        const struct fault *f = &p->fault[i];
        fprintf(out, "  fault at %5d ms: %-12s for %4d ms, whom %u and %u, after %d bytes, form %d\n", f->at_ms,
                fault_name(f->kind), f->for_ms, f->a % 1000, f->b % 1000, f->bytes, f->form);
    }
}
