/* exec.c - lays an executor out in its arena, and dispatches its events.
 *
 * Its one idea: all sizes follow from the plan, so a step never allocates.  Invariant: every SEND of the plan is counted
 * once in `unsent`, every frame once in `pending`; the executor is idle when both are zero.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include <string.h>

#include "core/check.h"

enum { EXEC_ALIGN = 64, EXEC_MIN_WINDOW = 2, EXEC_CACHED_BYTES = 4 << 20 };

/* Offsets into the arena. */
struct exec_layout {
    size_t peers, frames, cursors, queues, touched, starving, folds, accs, wires, own, total;
    size_t acc_stride, wire_bytes, wire_stride;
};

/* Steps that hand on the input, before all others. */
static uint32_t exec_leading(const struct exec *x, const struct plan_segment *segment)
{
    uint32_t i = 0;
    while (i < segment->steps && (x->plan->steps[segment->step + i].kind == STEP_GIVE || x->plan->steps[segment->step + i].kind == STEP_SEND)) {
        i++;
    }
    return i;
}

static size_t round_up(size_t bytes)
{
    return (bytes + EXEC_ALIGN - 1) / EXEC_ALIGN * EXEC_ALIGN;
}

/* Puts `bytes` at the end; returns where. */
static size_t layout_add(struct exec_layout *l, size_t bytes)
{
    size_t at = l->total;
    l->total += round_up(bytes);
    return at;
}

/* SENDs of a segment that hand on what has become final here. */
static uint32_t later_sends(const struct exec *x, const struct plan_segment *s)
{
    uint32_t sends = 0;
    for (uint32_t j = exec_leading(x, s); j < s->steps; j++) {
        sends += x->plan->steps[s->step + j].kind == STEP_SEND;
    }
    return sends;
}

/* If one segment alone hands on final frames, all who get any get the same ones in the same order: one list is enough for all of them,
 * which each fills in alike and reads at its own pace.  Else memory would grow with members times frames. */
static bool shares_list(const struct exec *x)
{
    uint32_t segments = 0;
    for (uint32_t i = 0; i < x->plan->segment_count; i++) {
        const struct plan_segment *s = &x->plan->segments[i];
        segments += exec_frame_count(x, s) > 0 && later_sends(x, s) > 0;
    }
    return segments == 1;
}

static struct exec_layout layout_of(const struct exec_config *c)
{
    const struct exec x = {.plan = c->plan, .lane = c->lane, .lanes = c->lanes};
    bool ordered = plan_orders(c->plan->params.algorithm);
    struct exec_layout l = {0};
    size_t sends = 0, largest = 0, folds = 0, contributions = 0;
    bool shared = shares_list(&x);
    for (uint32_t i = 0; i < c->plan->segment_count; i++) {
        const struct plan_segment *s = &c->plan->segments[i];
        uint32_t frames = exec_frame_count(&x, s), leading = exec_leading(&x, s);
        size_t most = s->count < c->plan->params.frame_elements ? s->count : c->plan->params.frame_elements;
        if (frames == 0) {
            continue;
        }
        largest = most > largest ? most : largest;
        for (uint32_t j = ordered ? 0 : leading; j < s->steps; j++) {
            const struct plan_step *step = &c->plan->steps[s->step + j];
            sends += step->kind == STEP_GIVE ? frames : 0;
            folds += step->kind == STEP_FOLD;
            contributions += ordered && step->kind == STEP_FOLD && step->partner != PLAN_NOBODY ? frames : 0;
        }
        uint32_t finals = later_sends(&x, s);
        sends += (size_t)frames * (shared && finals > 0 ? 1 : finals);
    }
    bool encoded = c->numeric->encoded;
    size_t accs = !c->numeric->plain && folds > 0 ? EXEC_ACCS : 0;
    l.acc_stride = round_up(numeric_acc_bytes(c->numeric, largest));
    l.wire_bytes = numeric_wire_bytes(c->numeric, largest);
    l.wire_stride = round_up(l.wire_bytes);
    l.peers = layout_add(&l, c->plan->partner_count * sizeof(struct exec_peer));
    l.frames = layout_add(&l, (c->plan->frame_count / (size_t)c->lanes + 1) * sizeof(struct exec_frame));
    l.cursors = layout_add(&l, c->plan->step_count * sizeof(uint32_t));
    l.queues = layout_add(&l, sends * sizeof(uint32_t));
    l.touched = layout_add(&l, c->plan->partner_count * sizeof(uint32_t));
    l.starving = layout_add(&l, ((size_t)c->plan->partner_count + 63) / 64 * sizeof(uint64_t));
    l.folds = layout_add(&l, contributions * sizeof(uint32_t));
    l.accs = layout_add(&l, accs * l.acc_stride);
    l.wires = layout_add(&l, encoded && folds > 0 ? EXEC_WIRES * l.wire_stride : 0);
    l.own = layout_add(&l, encoded && folds > 0 ? l.wire_stride : 0);
    return l;
}

size_t exec_arena_bytes(const struct exec_config *config)
{
    return layout_of(config).total;
}

/* The input goes to one rank, and nothing is folded here. */
static bool given_away(const struct exec *x, const struct plan_segment *s, uint32_t leading)
{
    bool folds = false;
    for (uint32_t j = leading; j < s->steps; j++) {
        folds |= x->plan->steps[s->step + j].kind == STEP_FOLD;
    }
    return leading == 1 && !folds;
}

/* Counts what a segment's program gives and takes. */
static void init_segment(struct exec *x, const struct plan_segment *s)
{
    uint32_t frames = exec_frame_count(x, s), first = exec_first_frame(x, s), leading = exec_leading(x, s);
    bool first_fold = true, completes = plan_completes(x->plan, s), alone = given_away(x, s, leading);
    for (uint32_t f = first, k = 0; k < frames; f += x->lanes, k++) {
        x->frames[f / x->lanes].step = (uint16_t)leading;
        x->frames[f / x->lanes].complete = !completes;
    }
    x->pending += completes ? frames : 0;
    for (uint32_t j = 0; j < s->steps; j++) {
        const struct plan_step *step = &x->plan->steps[s->step + j];
        struct exec_peer *p = step->partner != PLAN_NOBODY ? &x->peers[step->partner] : NULL;
        if (step->kind == STEP_FOLD && p != NULL) {
            p->contributes = true; /* of an empty segment too: the launcher reserved for every sender of the program */
        }
        if (frames == 0) {
            continue;
        }
        x->cursors[s->step + j] = first;
        switch ((enum step_kind)step->kind) {
        case STEP_GIVE:
        case STEP_SEND:
            x->unsent += frames;
            if (step->kind == STEP_GIVE && x->ordered) {
                p->gives += frames;
                p->queue[0].tail += frames;
            } else if (j < leading) {
                uint32_t phase = step->kind == STEP_SEND ? 1 : 0;
                bool behind = p->lead_end > 0; /* segments that begin with the input lie one behind the other */
                PCCL_ASSERT(!behind || (p->lead_phase == phase && first / x->lanes == (p->lead_end - 1 - x->lane) / x->lanes + 1));
                p->lead_next = behind ? p->lead_next : first;
                p->lead_end = s->frame + s->frames;
                p->lead_phase = phase;
                p->lead_alone = alone && (!behind || p->lead_alone);
            } else {
                p->queue[step->kind == STEP_SEND ? 1 : 0].tail += frames;
            }
            break;
        case STEP_FOLD:
            if (p != NULL) {
                bool in_place = first_fold && x->numeric->plain;
                bool more = p->expected > 0; /* what is staged lies one behind the other */
                PCCL_ASSERT(!x->ordered || !in_place);
                PCCL_ASSERT(!more || x->ordered || (p->in_place == in_place && (in_place || p->fold_first + p->expected * x->lanes == first)));
                p->in_place = in_place;
                p->fold_first = more ? p->fold_first : first;
                p->expected += frames;
            }
            x->fold_first = x->fold_first == EXEC_NONE ? first : x->fold_first;
            x->fold_frames += first_fold ? frames : 0;
            first_fold = false;
            break;
        case STEP_COPY:
            x->copy_next = x->copy_end == 0 ? first : x->copy_next; /* they stand one after the other: exec_work looks */
            x->copy_end = s->frame + s->frames;
            break;
        case STEP_RECV:
        case STEP_FINISH:
        case STEP_PACK:
            break;
        }
    }
}

/* Turns the counted queue sizes into places, and settles the window with the room. */
static void init_peers(struct exec *x, uint32_t window)
{
    uint32_t *queue = x->queues, *list = NULL;
    bool shared = shares_list(x);
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        struct exec_peer *p = &x->peers[i];
        for (int phase = 0; phase < 2; phase++) {
            bool first = phase == 0 || !shared || (list == NULL && p->queue[1].tail > 0);
            p->queue[phase].frames = first ? queue : list;
            list = phase == 1 && first && shared ? queue : list;
            queue += first ? p->queue[phase].tail : 0;
            p->queue[phase].tail = 0;
        }
        p->slot_head = EXEC_NONE;
        p->in_slot = EXEC_NONE;
        p->window = window < EXEC_MIN_WINDOW ? EXEC_MIN_WINDOW : window;
        p->granted = window < p->expected ? window : p->expected;
        p->held_a = p->in_place ? 0 : p->granted;
        if (p->contributes) {
            room_unreserve(x->room, window - p->held_a); /* the launcher does not look at lanes */
        }
        if (p->in_place) {
            p->untold = p->expected - p->granted;
            p->granted = p->expected;
        }
    }
}

void exec_init(struct exec *x, const struct exec_config *c, void *arena)
{
    struct exec_layout l = layout_of(c);
    unsigned char *base = arena;
    memset(x, 0, sizeof(*x));
    memset(base, 0, l.accs); /* the tables; buffers need not be clean */
    x->plan = c->plan;
    x->numeric = c->numeric;
    x->room = c->room;
    x->pool = c->pool;
    x->in = c->in;
    x->out = c->out;
    x->scratch = c->scratch;
    x->backup = c->backup;
    x->saved = c->saved;
    x->lane = c->lane;
    x->lanes = c->lanes;
    x->verify = c->verify;
    x->large = numeric_user_bytes(c->numeric, c->plan->params.count) > EXEC_CACHED_BYTES;
    x->check_every = c->check_every;
    x->check_in = c->check_every;
    x->peers = (struct exec_peer *)(void *)(base + l.peers);
    x->frames = (struct exec_frame *)(void *)(base + l.frames);
    x->cursors = (uint32_t *)(void *)(base + l.cursors);
    x->queues = (uint32_t *)(void *)(base + l.queues);
    x->touched = (uint32_t *)(void *)(base + l.touched);
    x->starving = (uint64_t *)(void *)(base + l.starving);
    x->folds = (uint32_t *)(void *)(base + l.folds);
    x->accs = base + l.accs;
    x->wires = base + l.wires;
    x->own = base + l.own;
    x->acc_stride = l.acc_stride;
    x->wire_stride = l.wire_stride;
    x->fold_first = EXEC_NONE;
    x->direct_bytes = !c->numeric->encoded;
    x->oldest = c->lane;
    PCCL_ASSERT(c->lane < c->lanes && c->plan->frame_count < UINT32_MAX - (EXEC_ACCS + 1) * c->lanes);
    bool sums = plan_kind_sums((uint8_t)c->plan->params.kind);
    bool partial = plan_sends_sums(c->plan->params.algorithm);
    bool alone = c->plan->params.world == 1; /* what is copied is the sum */
    x->sums = sums && partial;
    PCCL_ASSERT(sums ? c->numeric->plain || !partial : x->direct_bytes || (alone && c->numeric->quant == QUANT_NONE));
    PCCL_ASSERT(c->room->slot_bytes >= l.wire_bytes && (x->direct_bytes || c->pool != NULL));
    PCCL_ASSERT(2 * c->plan->params.world < UINT16_MAX && (c->plan->piece_count == 0 || c->lanes == 1));
    x->ordered = plan_orders(c->plan->params.algorithm);
    for (uint32_t f = c->lane; f < c->plan->frame_count; f += c->lanes) {
        x->frames[f / c->lanes].complete = true; /* gaps are; the rest is told below */
    }
    for (uint32_t i = 0; i < c->plan->segment_count; i++) {
        init_segment(x, &c->plan->segments[i]);
    }
    while (x->oldest < c->plan->frame_count && x->frames[x->oldest / c->lanes].complete) {
        x->oldest += c->lanes;
    }
    init_peers(x, c->window);
    if (x->ordered) {
        exec_order_init(x);
    }
    x->done = x->pending == 0;
    x->idle = x->done && x->unsent == 0;
    x->work = exec_has_work(x);
}

static void add_credit(struct exec_peer *p, uint32_t credit)
{
    p->credit = credit > UINT32_MAX - p->credit ? UINT32_MAX : p->credit + credit; /* it came from outside */
}

/* Contributions are folded in the order of ranks, so the next ones are served first. */
uint32_t exec_starving(const struct exec *x, uint32_t partner)
{
    while (partner < x->plan->partner_count) {
        uint64_t rest = x->starving[partner / 64] >> partner % 64;
        if (rest != 0) {
            return partner + (uint32_t)__builtin_ctzll(rest);
        }
        partner = partner / 64 * 64 + 64;
    }
    return PLAN_NOBODY;
}

/* Of this move, unless a later one waits to be told. */
static void tell(struct exec *x, uint32_t partner, const struct exec_move *moved)
{
    struct exec_peer *p = &x->peers[partner];
    p->tell = moved->at > p->tell.at ? *moved : p->tell;
    exec_touch(x, partner);
}

static void dispatch(struct exec *x, const struct exec_event *e, struct exec_out *out)
{
    PCCL_ASSERT(e->partner < x->plan->partner_count || e->kind == EXEC_HEADER || e->kind >= EXEC_ROOM);
    switch (e->kind) {
    case EXEC_READY:
        x->peers[e->partner].ready = true;
        add_credit(&x->peers[e->partner], e->credit);
        exec_grant(x, e->partner);
        exec_touch(x, e->partner);
        break;
    case EXEC_CREDIT:
        add_credit(&x->peers[e->partner], e->credit);
        if (e->sums > x->peers[e->partner].sums) {
            x->peers[e->partner].sums = e->sums;
            exec_grant(x, e->partner);
        }
        exec_touch(x, e->partner);
        break;
    case EXEC_HEADER:
        exec_on_header(x, e, out);
        break;
    case EXEC_LENT:
        exec_on_lent(x, e);
        break;
    case EXEC_ARRIVED:
        exec_on_arrived(x, e->partner);
        break;
    case EXEC_PULL:
        exec_on_pull(x, e->partner, out);
        break;
    case EXEC_SENT:
        exec_on_sent(x, e->partner);
        break;
    case EXEC_ROOM:
        for (uint32_t i = exec_starving(x, 0); i != PLAN_NOBODY; i = exec_starving(x, i + 1)) {
            uint32_t before = x->peers[i].granted;
            exec_grant(x, i);
            out->granted |= x->peers[i].granted != before;
        }
        break;
    case EXEC_WORK:
        if (x->work) {
            exec_work(x);
        }
        break;
    case EXEC_TELL:
        for (uint32_t i = exec_starving(x, 0); i != PLAN_NOBODY; i = exec_starving(x, i + 1)) {
            tell(x, i, &e->moved);
        }
        break;
    case EXEC_WINDOW:
        x->peers[e->partner].window = e->credit < EXEC_MIN_WINDOW ? EXEC_MIN_WINDOW : e->credit;
        exec_grant(x, e->partner);
        break;
    case EXEC_MOVED:
        tell(x, e->partner, &e->moved);
        break;
    case EXEC_STOP:
        exec_stop(x);
        break;
    }
}

void exec_step(struct exec *x, const struct exec_event *event, struct exec_out *out)
{
    struct check_pad pad = {.outer = check_current};
    memset(out, 0, sizeof(*out));
    if (x->stopped) {
        return;
    }
    if (setjmp(pad.env) != 0) {
        /* check_fail has taken the pad away.  The room's books may be wrong; the lane must not be. */
        memset(out, 0, sizeof(*out));
        x->failed = true;
        x->failed_what = pad.what;
        x->failed_where = pad.where;
        x->stopped = true;
        return;
    }
    check_current = &pad;
    dispatch(x, event, out);
    x->done = x->pending == 0;
    x->idle = x->done && x->unsent == 0;
    x->work = exec_has_work(x);
    exec_check(x);
    check_current = pad.outer;
}

/* Contributions that are ready, those sent among them; 0 if there is no need to say so: it waits for none without credit, or knows. */
static uint32_t ready_untold(const struct exec *x, const struct exec_peer *p)
{
    if (!x->sums || !p->ready || p->credit > 0) {
        return 0;
    }
    uint32_t lead = p->lead_next < p->lead_end && p->lead_phase == 0 ? (p->lead_end - p->lead_next - 1) / x->lanes + 1 : 0;
    uint32_t waiting = lead + (p->queue[0].tail - p->queue[0].head);
    return waiting > 0 && p->gave + waiting > p->ready_told ? p->gave + waiting : 0;
}

bool exec_take_credit(struct exec *x, uint32_t partner, struct exec_credit *credit)
{
    struct exec_peer *p = &x->peers[partner];
    bool say = exec_has_credit(x, partner);
    *credit = (struct exec_credit){p->untold, say ? ready_untold(x, p) : 0, p->tell};
    p->ready_told = credit->sums > 0 ? credit->sums : p->ready_told;
    p->untold = 0;
    p->tell.at = 0;
    return say;
}

bool exec_has_credit(const struct exec *x, uint32_t partner)
{
    const struct exec_peer *p = &x->peers[partner];
    return !x->stopped && (p->untold > 0 || p->tell.at != 0 || ready_untold(x, p) > 0);
}

uint32_t exec_touched(struct exec *x)
{
    if (x->touched_count == 0) {
        return PLAN_NOBODY;
    }
    uint32_t partner = x->touched[--x->touched_count];
    x->peers[partner].touched = false;
    return partner;
}
