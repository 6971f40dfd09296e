/* program_window.c - what a process does with windows: makes one with the others of its group, works on theirs, closes it.
 *
 * One idea: a window is made and closed at steps that all its members share, as a function of the step; between these a second thread of
 * the program works on it, beside calls and votes, and what it does is drawn.  Each member has an area of its own in each window, so that
 * what must be in the memory is known whatever the others do, and a head that they have in common.
 * Invariant: a cell is put to again once the put before has ended.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "peer_room.h"
#include "sim_window.h"

enum { WINDOW_LIFE = 3, WINDOW_EVERY = 4, WINDOW_AT_ONCE = 6 };

bool window_fault_drawn(const struct cluster *cl, enum fault_kind kind)
{
    for (uint32_t i = 0; i < cl->fault_count; i++) {
        if (cl->faults[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* What is checked of honest members. */
static bool lies_drawn(const struct cluster *cl)
{
    return window_fault_drawn(cl, FAULT_LIE_READY) || window_fault_drawn(cl, FAULT_LIE_HOLD) || window_fault_drawn(cl, FAULT_LIE_FINISHED);
}

bool window_used(const struct cluster *cl)
{
    const struct options *o = &cl->opt;
    return mix64(o->seed, 91) % 8 == 0 && !o->scripted && !o->crowd && o->burst == 0 && o->peers <= WINDOW_MEMBERS;
}

/* ---- It is made ------------------------------------------------------------------------------------------------------ */

static void own_init(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    uint64_t h = mix64(mix64(cl->opt.seed, n->index), n->program->step + 0x5EED);
    pw->own = (struct window_member){.id = n->id, .serial = pw->serial++, .bytes = WINDOW_LARGEST, .rights = 7};
    if (h % 8 == 0) { /* less than the others think of */
        pw->own.bytes = (h >> 8) % (WINDOW_LARGEST / 8) * 8;
    }
    if (h % 8 == 1) {
        pw->own.rights = (uint32_t)(h >> 8) % 8;
    }
    struct writer w;
    writer_init(&w, pw->mine, sizeof pw->mine);
    put_window_member(&w, &pw->own);
}

/* False: later. */
static bool exchange(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct session_info info;
    uint32_t slot = 0;
    session_info(n->session, &info);
    while (slot < pw->first_slot && n->run[slot].taken) {
        slot++;
    }
    if (slot == pw->first_slot) {
        return false;
    }
    if (!info.connected || info.snapshot.group > WINDOW_MEMBERS || info.snapshot.group < 2) {
        pw->tried = n->program->step;
        return true;
    }
    own_init(cl, n);
    struct call *c = &n->program->call[slot];
    struct run *r = &n->run[slot];
    c->op = PROGRAM_WINDOW;
    c->failed = c->in_place = false;
    c->pending = true;
    r->use++;
    r->taken = true;
    r->started = r->done = r->idle = r->stopping = r->returned = r->lazy = false;
    r->failing = 0;
    r->call = c;
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = info.snapshot.group, .in = pw->mine,
                                        .out = pw->all,
                                        .params = {.kind = PLAN_ALL_GATHER, .dtype = DTYPE_U8, .count = WINDOW_MEMBER_BYTES},
                                        .count = WINDOW_MEMBER_BYTES, .deadline = CLOCK_NEVER}};
    r->senders = session_folding_senders(n->session, &l.call.params, 0);
    l.window = r->window_reserved = lanes_reserve(n, r->senders, 1 + (uint32_t)rng_below(&cl->rng, 3));
    pw->tried = n->program->step;
    pw->phase = WINDOW_EXCHANGES;
    struct session_event e = {.kind = SESSION_LAUNCH, .slot = slot, .launch = &l};
    cl->stats.operations++;
    node_step(cl, n, &e);
    cluster_trace(cl, n->index, "window exchange", info.snapshot.group, (uint64_t)e.outcome.result);
    if (e.outcome.result == RESULT_PENDING) {
        return true;
    }
    lanes_unreserve(n, r->senders * r->window_reserved);
    r->window_reserved = 0;
    r->taken = c->pending = false;
    pw->phase = WINDOW_NONE;
    bool later = e.outcome.result == RESULT_AHEAD || e.outcome.result == RESULT_FULL || (e.outcome.result == RESULT_NO_MEMORY && n->starved);
    pw->tried = later ? 0 : pw->tried;
    return !later;
}

bool window_made(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    uint64_t step = n->program->step;
    if (pw == NULL || lies_drawn(cl) || step % WINDOW_EVERY != 1 || n->program->attempt > 0) {
        return true;
    }
    if (pw->tried != step && pw->phase == WINDOW_NONE && !exchange(cl, n)) {
        cluster_post(cl, cl->opt.latency_ns * 20, EVENT_PROGRAM, n->index, 0, 0, 0);
        return false;
    }
    return pw->phase != WINDOW_EXCHANGES;
}

static struct window *window_of(struct node *n, uint32_t world)
{
    struct peer_windows *pw = n->windows;
    struct window *w = calloc(1, sizeof *w + world * sizeof w->peer[0]);
    struct window_seat *seat = &pw->record->seat[pw->rank];
    size_t total = WINDOW_LARGEST + 2 * (size_t)WINDOW_GUARD;
    seat->memory = aligned_alloc(64, (total + 63) / 64 * 64);
    seat->tries = calloc(WINDOW_TRIES, sizeof *seat->tries);
    if (w == NULL || seat->memory == NULL || seat->tries == NULL) {
        abort();
    }
    memset(seat->memory, 0x99, total);
    memset(seat->memory + WINDOW_GUARD, 0, pw->own.bytes);
    seat->bytes = pw->own.bytes;
    seat->node = n->index;
    seat->id = n->id;
    seat->window = w;
    window_init(w, &pw->set, seat->memory + WINDOW_GUARD, pw->own.bytes, pw->own.rights, world);
    list_append(&pw->set.all, &w->all);
    return w;
}

static void join(struct cluster *cl, struct node *n, uint32_t world)
{
    struct peer_windows *pw = n->windows;
    struct window_member members[WINDOW_MEMBERS];
    struct reader r;
    reader_init(&r, pw->all, (size_t)world * WINDOW_MEMBER_BYTES);
    pw->rank = world;
    for (uint32_t i = 0; i < world; i++) {
        if (!get_window_member(&r, &members[i])) {
            cluster_fail(cl, "peer %u: what rank %u told of its window cannot be read", n->index, i);
        }
        pw->rank = members[i].id == n->id ? i : pw->rank;
    }
    if (pw->rank == world) {
        cluster_fail(cl, "peer %u: it is no member of the window that it has made", n->index);
        return;
    }
    pw->record = window_record_of(cl, program_name(n, NAME_WINDOW), world, n->program->step);
    pw->window = window_of(n, world);
    pw->made = n->program->step;
    pw->phase = WINDOW_OPENED;
    pw->told_end = false;
    cl->stats.windows++;
    peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_JOINED, .window = pw->window, .members = members, .rank = pw->rank});
    peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = pw->window});
    cluster_post(cl, 0, EVENT_WINDOW, n->index, WINDOW_TURN_PROGRAM, pw->serial, 0);
}

void window_exchanged(struct cluster *cl, struct node *n, const struct session_outcome *o)
{
    struct peer_windows *pw = n->windows;
    pw->phase = WINDOW_NONE;
    cluster_trace(cl, n->index, "window made", (uint64_t)o->result, o->world);
    bool alone = o->result == RESULT_GONE || o->result == RESULT_OVER || o->result == RESULT_POISONED || o->result == RESULT_NO_MEMORY;
    if (!alone) {
        oracle_agree(cl, n, "window", program_name(n, NAME_WINDOW_MADE), o->result == RESULT_OK);
    }
    if (o->result == RESULT_OK) {
        join(cl, n, o->world);
    }
}

/* ---- It is closed ---------------------------------------------------------------------------------------------------- */

/* In some clusters where things go wrong a network is cut just then, for about as long as its members wait. */
static void cut_network(struct cluster *cl, struct node *n)
{
    static const enum fault_kind kinds[] = {FAULT_PARTITION, FAULT_PAIR, FAULT_ONE_WAY};
    uint64_t h = mix64(mix64(cl->opt.seed, 0xC105E), n->program->step);
    if (cl->opt.faults == 0 || cl->healed || h % 6 != 0 || (h >> 4) % cl->opt.peers != n->index || cl->fault_count == FAULTS_MAX) {
        return;
    }
    cl->faults[cl->fault_count] = (struct fault){.kind = kinds[(h >> 12) % 3], .node = n->index, .other = (uint16_t)((h >> 16) % cl->opt.peers),
                                                 .for_ns = cl->opt.dead_ns / 2 * (int64_t)(1 + (h >> 32) % 8)};
    cluster_post(cl, (int64_t)((h >> 40) % 3) * cl->opt.latency_ns, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
}

/* The program has it no more. */
static struct window *window_take(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct window *w = pw->window;
    oracle_window_closed(cl, pw->record, pw->rank);
    pw->window = NULL;
    pw->record = NULL;
    pw->phase = WINDOW_NONE;
    return w;
}

static void window_drop(struct cluster *cl, struct node *n)
{
    peer_window_bury(window_take(cl, n));
}

static struct window_op *op_new(struct window *w, const struct window_call *k)
{
    struct window_op *op = malloc(sizeof *op);
    if (op == NULL) {
        abort();
    }
    window_op_init(op, w, k);
    return op;
}

static void tell_end(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct window *w = pw->window;
    pw->told_end = true;
    for (uint32_t r = 0; r < w->world && n->windows->window == w; r++) {
        if (r != w->rank && !w->peer[r].missing) {
            struct window_op *op = op_new(w, &(struct window_call){.kind = WINDOW_CLOSE, .rank = r});
            peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = op});
        }
    }
}

/* It goes on without what silent members owe it; lanes still hold no buffer then.  False: they do. */
static bool leave(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (!pw->window->left) {
        cluster_trace(cl, n->index, "window left", pw->window->calls, pw->window->under_way);
        cl->stats.windows_left++;
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_LEFT, .window = pw->window});
    }
    if (peer_window_lends(n)) {
        return false;
    }
    pw->record->seat[pw->rank].unsaid = true;
    window_take(cl, n)->kept = true;
    return true;
}

/* As pcclDestroyWindow: its own operations, the last word, those of all others that it hears. */
bool window_closed(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (pw == NULL || pw->window == NULL || n->program->seen_step + 1 < pw->made + WINDOW_LIFE) {
        return true;
    }
    struct window *w = pw->window;
    if (pw->phase == WINDOW_OPENED) {
        pw->phase = WINDOW_CLOSES;
        cluster_trace(cl, n->index, "window closes", w->calls, w->waits);
        cut_network(cl, n);
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = w});
    }
    if (pw->phase == WINDOW_CLOSES) {
        peer_window_silence(cl, n);
        (void)peer_window_lends(n);
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_ABANDON, .window = w});
    }
    if (!pw->told_end && !window_acts(w)) {
        tell_end(cl, n);
    }
    if (pw->phase == WINDOW_CLOSES && pw->told_end && window_done(w)) {
        pw->phase = WINDOW_CLOSED;
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = w});
    } else if (pw->phase == WINDOW_CLOSES && pw->told_end && !window_waits(w) && leave(cl, n)) {
        return true;
    }
    if (pw->phase != WINDOW_CLOSED || !peer_window_quiet(n)) {
        peer_window_wake(cl, n, false);
        return false;
    }
    cluster_trace(cl, n->index, "window closed", 0, 0);
    window_drop(cl, n);
    return true;
}

bool window_retired(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (pw == NULL) {
        return true;
    }
    if (!list_empty(&pw->set.all) && pw->phase != WINDOW_RETIRES) {
        pw->phase = WINDOW_RETIRES;
        peer_windows_quiet(cl, n);
    }
    if (pw->window != NULL && peer_window_quiet(n)) {
        window_drop(cl, n);
        pw->phase = WINDOW_RETIRES;
    }
    if (!list_empty(&pw->set.all)) {
        peer_window_wake(cl, n, true);
        return false;
    }
    pw->phase = pw->phase == WINDOW_RETIRES ? WINDOW_NONE : pw->phase;
    return true;
}

bool window_left(struct cluster *cl, struct node *n)
{
    if (n->windows == NULL || n->windows->phase != WINDOW_RETIRES) { /* else it has left, and waits for the end of what its window has open */
        cluster_trace(cl, n->index, "program ends", n->program->step, 0);
        node_step(cl, n, &(struct session_event){.kind = SESSION_LEAVE});
    }
    return window_retired(cl, n);
}

/* ---- Its operations -------------------------------------------------------------------------------------------------- */

static uint32_t open_tries(const struct window_seat *seat)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < seat->count; i++) {
        open += seat->tries[i].state == TRY_OPEN;
    }
    return open;
}

static bool cell_free(const struct window_seat *seat, uint32_t target, uint32_t cell)
{
    for (uint32_t i = 0; i < seat->count; i++) {
        const struct window_try *t = &seat->tries[i];
        if (t->kind == WINDOW_PUT && t->target == target && t->cell == cell && t->state == TRY_OPEN) {
            return false;
        }
    }
    return true;
}

static size_t area_of(uint32_t rank)
{
    return WINDOW_HEAD_BYTES + (size_t)rank * WINDOW_AREA_BYTES;
}

static bool fits(const struct window_peer *p, const struct window_call *k)
{
    uint32_t needed = k->kind == WINDOW_PUT ? WINDOW_MAY_WRITE : k->kind == WINDOW_GET ? WINDOW_MAY_READ : WINDOW_MAY_COUNT;
    bool moves = k->kind == WINDOW_PUT || window_answers(k->kind);
    return !moves || ((p->rights & needed) != 0 && k->bytes <= p->bytes && k->offset <= p->bytes - k->bytes);
}

/* What is to be done next; false: nothing just now. */
static bool draw(struct cluster *cl, struct node *n, struct window_try *t, struct window_call *k)
{
    struct peer_windows *pw = n->windows;
    struct window_seat *seat = &pw->record->seat[pw->rank];
    static const uint8_t kinds[] = {WINDOW_PUT, WINDOW_PUT, WINDOW_PUT, WINDOW_GET, WINDOW_ADD, WINDOW_ADD, WINDOW_ADD, WINDOW_SWAP,
                                    WINDOW_SIGNAL, WINDOW_SIGNAL, WINDOW_VOID, WINDOW_VOID};
    t->kind = kinds[rng_below(&cl->rng, sizeof kinds)];
    t->origin = pw->rank;
    t->target = (uint32_t)rng_below(&cl->rng, pw->record->world);
    t->place = seat->started[t->target];
    t->cell = (uint8_t)rng_below(&cl->rng, WINDOW_CELLS);
    *k = (struct window_call){.kind = t->kind, .rank = t->target, .limit = CLOCK_NEVER, .phase = "window"};
    size_t area = area_of(pw->rank), cell = area + 16 + (size_t)t->cell * WINDOW_CELL_BYTES;
    switch (t->kind) {
    case WINDOW_PUT:
        t->pattern = rng_next(&cl->rng) | 1;
        k->offset = cell;
        k->bytes = WINDOW_CELL_BYTES;
        k->source = t->bytes;
        window_pattern(t->pattern, t->bytes, sizeof t->bytes);
        return cell_free(seat, t->target, t->cell);
    case WINDOW_GET:
        k->offset = cell;
        k->bytes = WINDOW_CELL_BYTES;
        k->target = t->bytes;
        return true;
    case WINDOW_ADD: /* a digit of its own, of base 4, in the own area; or 1 in the head */
        t->width = rng_below(&cl->rng, 3) == 0 && t->place < 15 ? 4 : 8;
        t->cell = rng_below(&cl->rng, 4) == 0;
        t->operand = t->cell ? 1 : UINT64_C(1) << (2 * t->place);
        t->width = t->cell ? 8 : t->width;
        k->offset = t->cell ? 0 : t->width == 8 ? area : area + 8;
        k->bytes = t->width;
        k->operand = t->operand;
        k->target = &t->got;
        return true;
    case WINDOW_SWAP:
        t->width = 8;
        t->expected = seat->latest[t->target];
        t->operand = (uint64_t)(pw->rank + 1) << 32 | (seat->count + 1);
        k->offset = 8;
        k->bytes = 8;
        k->operand = t->operand;
        k->expected = t->expected;
        k->target = &t->got;
        return true;
    case WINDOW_VOID:
        k->deadline = rng_below(&cl->rng, 3) == 0 ? CLOCK_NEVER : cl->now + (int64_t)rng_below(&cl->rng, 200 * (uint64_t)cl->opt.latency_ns);
        t->limited = k->deadline != CLOCK_NEVER;
        return true;
    default:
        return true;
    }
}

static void give_up_one(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct window_seat *seat = &pw->record->seat[pw->rank];
    uint32_t i = (uint32_t)rng_below(&cl->rng, WINDOW_TRIES);
    if (i < seat->count && seat->tries[i].op != NULL) {
        seat->tries[i].cancelled = true;
        seat->tries[i].op->unwanted = true;
        cluster_trace(cl, n->index, "window cancel", seat->tries[i].kind, i);
        peer_window_wake(cl, n, true);
    }
}

static void begin_one(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct window_seat *seat = &pw->record->seat[pw->rank];
    struct window_try *t = &seat->tries[seat->count];
    struct window_call k;
    memset(t, 0, sizeof *t);
    if (!draw(cl, n, t, &k)) {
        return;
    }
    const struct window_peer *p = &pw->window->peer[t->target];
    t->bad = !fits(p, &k);
    if (t->bad && (t->target == pw->rank || rng_below(&cl->rng, 3) != 0)) {
        return; /* what the interface refuses; some ask all the same */
    }
    if (mix64(cl->opt.seed, 92) % 4 == 0 && k.kind != WINDOW_VOID && k.kind != WINDOW_SIGNAL && rng_below(&cl->rng, 8) == 0) {
        t->limited = true;
        k.limit = cl->now + (int64_t)rng_below(&cl->rng, 8 * (uint64_t)cl->opt.latency_ns);
    }
    pw->refuse = pw->refuse || (window_fault_drawn(cl, FAULT_MEMORY) && !cl->healed && rng_below(&cl->rng, 40) == 0);
    seat->count++;
    seat->started[t->target]++;
    oracle_window_begun(n, pw->record, t);
    cl->stats.window_calls++;
    t->op = op_new(pw->window, &k);
    t->op->call = (struct comm_op *)(void *)t;
    cluster_trace(cl, n->index, "window call", t->kind, t->target);
    peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = t->op});
}

void window_program(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (pw->phase != WINDOW_OPENED) {
        return;
    }
    struct window_seat *seat = &pw->record->seat[pw->rank];
    if (mix64(cl->opt.seed, 93) % 3 == 0 && rng_below(&cl->rng, 6) == 0) {
        give_up_one(cl, n);
    } else if (seat->count < WINDOW_TRIES && open_tries(seat) < WINDOW_AT_ONCE) {
        begin_one(cl, n);
    } else if (seat->count == WINDOW_TRIES && open_tries(seat) == 0) {
        return;
    }
    bool burst = rng_below(&cl->rng, 4) != 0;
    cluster_post(cl, burst ? 0 : (int64_t)rng_below(&cl->rng, 4 * (uint64_t)cl->opt.latency_ns) + 1000, EVENT_WINDOW, n->index, WINDOW_TURN_PROGRAM,
                 pw->serial, 0);
}

void window_settled(struct cluster *cl, struct node *n, struct window_op *op)
{
    struct peer_windows *pw = n->windows;
    struct window_try *t = (struct window_try *)(void *)op->call;
    op->call = NULL;
    if (t == NULL && op->window == pw->window) { /* the last word */
        pw->record->seat[pw->rank].unsaid |= op->outcome.result != RESULT_OK;
    }
    if (t == NULL) {
        return;
    }
    t->op = NULL;
    t->repeated = op->repeated;
    cluster_trace(cl, n->index, "window call ended", t->kind, (uint64_t)op->outcome.result << 8 | op->outcome.cause);
    oracle_window_ended(cl, n, pw->record, t, &op->outcome);
}
