/* program_ops.c - the all-reduces of a program: parameters, inputs, launch, return.
 *
 * One idea: parameters are a function of (seed, group, step, op) and inputs of (seed, process, step, op), so that the oracle needs no
 * record of either.  Values are small integers and powers of two: their reductions are exact in every order.
 * Invariant: buffers of a returned call keep their content until they are used again; whoever writes later is caught.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "peer_room.h"
#include "sim_window.h"

uint32_t program_op_count(const struct cluster *cl, uint32_t group, uint64_t step)
{
    uint64_t h = mix64(mix64(cl->opt.seed, group), step * 7 + 1);
    if (cl->opt.burst != 0 && (step == 1 || step == 3)) {
        return cl->opt.burst;
    }
    return refused_step(cl, step) ? cl->opt.refused : (uint32_t)(h % (cl->opt.ops + 1));
}

void program_describe_op(const struct cluster *cl, uint32_t group, uint64_t step, uint32_t j, struct op_params *params,
                         bool *in_place, uint64_t *tag)
{
    static const uint8_t quantised[] = {DTYPE_U8, DTYPE_I8, DTYPE_U16, DTYPE_I16};
    if (j == PROGRAM_OPS) {
        *params = (struct op_params){.count = 1, .dtype = DTYPE_U64, .op = REDOP_MAX};
        *in_place = false;
        *tag = 1;
        return;
    }
    uint64_t h = mix64(mix64(mix64(cl->opt.seed, group), step), j + 100);
    enum dtype type = (enum dtype)(h % DTYPE_COUNT);
    type = redop_for(REDOP_SUM, type) ? type : DTYPE_BOOL; /* what only moves comes by parts_shape */
    *params = (struct op_params){.dtype = (uint8_t)type, .op = (uint8_t)((h >> 8) % REDOP_COUNT)};
    params->op = redop_for((enum redop)params->op, (enum dtype)params->dtype) ? params->op : REDOP_SUM;
    uint64_t most = cl->opt.op_bytes / dtype_size(params->dtype);
    switch ((h >> 16) % 6) {
    case 0:
        params->count = (h >> 24) % 3;
        break;
    case 1:
        params->count = 1 + (h >> 24) % 40;
        break;
    default:
        params->count = (h >> 24) % (most + 1);
        break;
    }
    if ((h >> 48) % 5 == 0 && (params->dtype == DTYPE_F32 || params->dtype == DTYPE_F64)) {
        params->quant = (uint8_t)(1 + (h >> 52) % 2);
        params->quant_dtype = quantised[(h >> 54) % 4];
        if (params->op == REDOP_PROD ||
            !numeric_quant_supported(params->dtype, params->quant, params->quant_dtype)) {
            params->quant = params->quant_dtype = 0;
        }
    }
    *in_place = (h >> 60) % 2;
    *tag = 10 + j % (cl->opt.growth ? PROGRAM_OPS : 1 + cl->opt.seed % 5);
    if (cl->opt.burst != 0) { /* all at once: a tag each; full payloads, but for some */
        *tag = 10 + j;
        params->count = (h >> 16) % 6 == 0 ? params->count : most - params->count % 3;
    }
}

/* Small values: sums, products and averages of any members are exact, or rounded once. */
static inline __attribute__((always_inline)) double input_value(uint64_t h, bool product, enum dtype type)
{
    if (product) {
        static const double factors[] = {1, 2, 1, 1, 1, 2, 1, 1};
        double v = factors[h % 8];
        return (h >> 8) % 2 && type != DTYPE_U8 && type != DTYPE_U16 && type != DTYPE_U32 && type != DTYPE_U64 ? -v : v;
    }
    if (type == DTYPE_BOOL) {
        return (h >> 4) % 3 == 0 ? 0 : (double)(h % 16);
    }
    bool is_signed = type == DTYPE_I8 || type == DTYPE_I16 || type == DTYPE_I32 || type == DTYPE_I64 ||
                     (type >= DTYPE_F16 && type <= DTYPE_F64);
    return (double)(h % 16) - (is_signed ? 8 : 0);
}

/* bfloat16 and half hold small integers exactly. */
static uint16_t half_bits(double v, bool bfloat)
{
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (bfloat) {
        return (uint16_t)(u >> 16);
    }
    if (v == 0) {
        return 0;
    }
    return (uint16_t)(((u >> 16) & 0x8000) | ((((u >> 23) & 0xFF) - 112) << 10) | ((u >> 13) & 0x3FF));
}

static inline __attribute__((always_inline)) void input_store(void *out, uint64_t i, enum dtype type, double v)
{
    switch (type) {
    case DTYPE_U8: case DTYPE_BOOL: case DTYPE_F8E4M3: case DTYPE_F8E5M2: ((uint8_t *)out)[i] = (uint8_t)v; break;
    case DTYPE_I8: ((int8_t *)out)[i] = (int8_t)v; break;
    case DTYPE_I16: ((int16_t *)out)[i] = (int16_t)v; break;
    case DTYPE_U16: ((uint16_t *)out)[i] = (uint16_t)v; break;
    case DTYPE_U32: ((uint32_t *)out)[i] = (uint32_t)v; break;
    case DTYPE_I32: ((int32_t *)out)[i] = (int32_t)v; break;
    case DTYPE_U64: ((uint64_t *)out)[i] = (uint64_t)v; break;
    case DTYPE_I64: ((int64_t *)out)[i] = (int64_t)v; break;
    case DTYPE_F16: ((uint16_t *)out)[i] = half_bits(v, false); break;
    case DTYPE_BF16: ((uint16_t *)out)[i] = half_bits(v, true); break;
    case DTYPE_F32: ((float *)out)[i] = (float)v; break;
    case DTYPE_F64: ((double *)out)[i] = v; break;
    case DTYPE_COUNT: break;
    }
}

/* Products by these are exact. */
double program_factor(uint32_t node)
{
    static const double factors[] = {0.5, -1, 1, -0.5, 0.25};
    return factors[node % 5];
}

bool program_fractions(const struct op_params *params)
{
    bool wide = params->dtype == DTYPE_F32 || params->dtype == DTYPE_F64;
    return wide && params->quant == QUANT_NONE && (params->op == REDOP_SUM || params->op == REDOP_AVG || params->op == REDOP_PREMUL);
}

/* A loop for each type, which the compiler makes of one: these are the bytes of all inputs of all seeds. */
static inline __attribute__((always_inline)) void input_fill(struct rng r, const struct op_params *params, void *out, enum dtype type)
{
    bool fractions = program_fractions(params), product = params->op == REDOP_PROD;
    for (uint64_t i = 0; i < params->count; i++) {
        double value = input_value(rng_next(&r) >> 5, product, type);
        value += fractions ? (double)rng_below(&r, 1000003) / 1000003.0 : 0;
        input_store(out, i, type, value);
    }
}

void program_input(const struct cluster *cl, uint32_t node, uint64_t key, const struct op_params *params, void *out)
{
    struct rng r = {.state = mix64(mix64(cl->opt.seed, node), key)};
    switch ((enum dtype)params->dtype) {
    case DTYPE_U8: input_fill(r, params, out, DTYPE_U8); break;
    case DTYPE_I8: input_fill(r, params, out, DTYPE_I8); break;
    case DTYPE_U16: input_fill(r, params, out, DTYPE_U16); break;
    case DTYPE_I16: input_fill(r, params, out, DTYPE_I16); break;
    case DTYPE_U32: input_fill(r, params, out, DTYPE_U32); break;
    case DTYPE_I32: input_fill(r, params, out, DTYPE_I32); break;
    case DTYPE_U64: input_fill(r, params, out, DTYPE_U64); break;
    case DTYPE_I64: input_fill(r, params, out, DTYPE_I64); break;
    case DTYPE_F16: input_fill(r, params, out, DTYPE_F16); break;
    case DTYPE_BF16: input_fill(r, params, out, DTYPE_BF16); break;
    case DTYPE_F32: input_fill(r, params, out, DTYPE_F32); break;
    case DTYPE_F64: input_fill(r, params, out, DTYPE_F64); break;
    case DTYPE_BOOL: input_fill(r, params, out, DTYPE_BOOL); break;
    case DTYPE_F8E4M3: input_fill(r, params, out, DTYPE_F8E4M3); break;
    case DTYPE_F8E5M2: input_fill(r, params, out, DTYPE_F8E5M2); break;
    case DTYPE_COUNT: break;
    }
}

/* Something of this step, the same for all who may share a view: a forgotten member, also of a dead master, may live beside the group's
 * next life. */
uint64_t program_name(const struct node *n, uint64_t what)
{
    uint64_t group = n->life << 32 | n->group;
    uint64_t name = mix64(mix64(mix64(77, group), n->program->step), what);
    return n->program->inside == 0 ? name : mix64(name, n->program->inside);
}

/* Apart from the names of what is no call, 0xA1 and the like: a step may have as many calls. */
uint64_t program_key(const struct node *n, uint32_t op, uint32_t attempt)
{
    return mix64(program_name(n, op + UINT64_C(0x10000)), attempt);
}

bool program_idle(const struct node *n)
{
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        if (n->program->call[i].pending) {
            return false;
        }
    }
    return true;
}

uint64_t program_hash(const unsigned char *bytes, size_t size)
{
    uint64_t h = size;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t v;
        memcpy(&v, bytes, 8);
        h = (h ^ v) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    for (; size > 0; size--) {
        h = (h ^ *bytes++) * 0x100000001B3u;
    }
    return h;
}

static uint64_t call_hash(const struct call *c)
{
    return program_hash(c->in, c->bytes) ^ mix64(1, program_hash(c->out, c->out_bytes));
}

static void call_check_retired(struct cluster *cl, const struct call *c)
{
    if (c->retired_hash != 0 && !c->pending && c->retired_hash != call_hash(c)) {
        cluster_fail(cl, "G3: peer %u: a buffer of slot %u was written after its call had returned", c->node->index, c->slot);
    }
}

static void call_buffers(struct cluster *cl, struct call *c, const struct op_params *params)
{
    call_check_retired(cl, c);
    size_t size = dtype_size((enum dtype)params->dtype), out_bytes = params->count * size, in_bytes = out_bytes;
    if (c->ordered) {
        uint32_t rank = c->rank < c->world ? c->rank : 0;
        in_bytes = parts_input(c, rank) * size;
        out_bytes = parts_output(c, rank) * size;
    }
    size_t bytes = in_bytes > out_bytes ? in_bytes : out_bytes;
    if (bytes > c->capacity || c->in == NULL) {
        free(c->in);
        free(c->out);
        free(c->scratch);
        c->in = malloc(bytes + 8);
        c->out = malloc(bytes + 8);
        c->scratch = malloc(2 * bytes + 64);
        c->capacity = bytes;
        if (c->in == NULL || c->out == NULL || c->scratch == NULL) {
            abort();
        }
    }
    c->bytes = in_bytes;
    c->out_bytes = out_bytes;
    c->params = *params;
    c->retired_hash = 0;
}

/* What this process passes differs from the others' in one parameter. */
static void call_odd(struct cluster *cl, struct call *c, struct op_params *params)
{
    c->odd = true;
    bool once = cl->odd_ops++ == 0 && rng_below(&cl->rng, 2) == 0; /* two processes that are odd alike agree */
    if (once && c->ordered && parts_other_root(c)) {
        return;
    }
    if (once) {
        params->op = params->op == REDOP_SUM ? REDOP_MAX : REDOP_SUM;
    } else {
        params->count += 1 + c->node->index;
    }
}

static void call_wishes(struct cluster *cl, struct node *n, struct call *c, struct session_launch *launch)
{
    struct program *p = n->program;
    if (c->op == PROGRAM_OPS) {
        return;
    }
    if (p->want_deadline != 0) {
        p->want_deadline--;
        launch->call.deadline = cl->now + (int64_t)rng_below(&cl->rng, 8 * (uint64_t)cl->opt.latency_ns);
    }
    refused_wish(cl, n, c, launch);
    if (p->want_no_memory && (c->ordered || c->pair) && n->fail_growth == 0 && rng_below(&cl->rng, 2) == 0) {
        p->want_no_memory = false;
        launch->call.bad_argument = c->bad_argument = true;
    } else if (p->want_no_memory && c->in_place && n->fail_growth == 0) { /* else it may end before anybody knows of it */
        p->want_no_memory = false;
        launch->call.no_memory = c->no_memory = c->failed = true;
    }
    if (p->want_cancel != 0) {
        p->want_cancel--;
        p->cancel_ns = cl->now;
        cluster_post(cl, (int64_t)rng_below(&cl->rng, 6 * (uint64_t)cl->opt.latency_ns), EVENT_STEP, n->index, SESSION_CANCEL,
                     c->slot, n->run[c->slot].use);
    }
}

static bool result_later(enum session_result result)
{
    return result == RESULT_FULL || result == RESULT_AHEAD || result == RESULT_TAG_IN_USE;
}

/* A table of its session could not grow: nobody else knows of the call.  It is made again a while later, or this process leaves. */
static bool outcome_unsaid(struct cluster *cl, struct node *n, struct call *c, const struct session_outcome *o)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    if (o->result != RESULT_NO_MEMORY || !n->starved || (c->failed && info.connected)) {
        return false; /* a session that could not hold a view has left: that is its own affair, too */
    }
    bool listed = p->listed && c->op != PROGRAM_OPS;
    if (c->pair) {
        pair_unsaid(cl, n, c);
    }
    p->leave = listed || cluster_chance(cl, 20);
    p->status[c->op] = listed ? OP_DONE_BAD : OP_TODO;
    if (listed) {
        program_bulk_ended(cl, n, c->op, o);
    }
    p->not_before = cl->now + cl->opt.latency_ns * 20;
    cluster_post(cl, p->not_before - cl->now, EVENT_PROGRAM, n->index, 0, 0, 0);
    cl->stats.refusals++;
    return true;
}

static void program_outcome(struct cluster *cl, struct node *n, struct call *c, const struct session_outcome *o)
{
    struct program *p = n->program;
    if (outcome_unsaid(cl, n, c, o)) {
        return;
    }
    if (c->pair) {
        bool again = pair_outcome(cl, n, c, o);
        p->status[c->op] = again ? OP_TODO : OP_DONE_OK; /* all but these two know nothing of it */
        c->retired_hash = call_hash(c);
        if (again) {
            cluster_post(cl, cl->opt.latency_ns * 20, EVENT_PROGRAM, n->index, 0, 0, 0);
        }
        return;
    }
    oracle_call(cl, n, c, o);
    bool own = c->failed && (o->result == RESULT_NO_MEMORY || o->result == RESULT_POISONED); /* not a graver cause, the same on all */
    if (c->op == PROGRAM_OPS && o->result == RESULT_OK) {
        memcpy(&p->seen_step, c->out, sizeof p->seen_step);
    }
    if (o->result == RESULT_OK) {
        p->status[c->op] = OP_DONE_OK;
        p->results += parts_same_for_all(c) ? mix64(c->op, program_hash(c->out, c->out_bytes)) : c->op; /* calls may end in any order */
    } else if (own && cluster_chance(cl, 50)) {
        p->status[c->op] = OP_DONE_BAD;
        p->leave = true; /* the others go on without it */
    } else if (o->result == RESULT_LOST || own) {
        p->status[c->op] = OP_AGAIN;
    } else {
        p->status[c->op] = OP_DONE_BAD;
    }
    if (p->listed && c->op != PROGRAM_OPS) {
        program_bulk_ended(cl, n, c->op, o);
    }
    c->retired_hash = call_hash(c);
}

void program_backup(struct run *r)
{
    r->sums = realloc(r->sums, numeric_user_bytes(&r->op.numeric, r->plan.scratch) + 1);
    r->lazy = r->call->in_place;
    if (r->lazy) {
        r->backup = realloc(r->backup, r->call->bytes + 1);
        r->saved = realloc(r->saved, r->plan.frame_count + 1);
        memset(r->backup, 0xB5, r->call->bytes);
        memset(r->saved, 0, r->plan.frame_count);
    }
}

/* Large ones by what their executors have saved; whatever they have not, they have not written either. */
static void call_restore(const struct run *r, struct call *c, const struct session_outcome *o)
{
    if (o->restore && !r->lazy) {
        memcpy(c->out, c->in, c->bytes);
    }
    for (uint32_t f = 0; o->restore && r->lazy && f < r->plan.frame_count; f++) {
        size_t first, count;
        const struct plan_segment *s = plan_frame(&r->plan, f, &first, &count);
        size_t at = numeric_user_bytes(&r->op.numeric, s->in + first);
        if (r->saved[f]) {
            memcpy(c->out + at, r->backup + at, numeric_user_bytes(&r->op.numeric, count));
        }
    }
}

static void call_inputs(const struct cluster *cl, const struct node *n, struct call *c)
{
    if (c->op == PROGRAM_OPS) {
        memcpy(c->in, &n->program->step, sizeof n->program->step);
    } else {
        struct op_params p = c->params;
        p.count = c->bytes / dtype_size((enum dtype)p.dtype);
        program_input(cl, n->index, program_key(n, c->op, 0), &p, c->in);
        uint64_t word = match_word(n, n->index, c->op);
        memcpy(c->in, &word, c->many ? sizeof word : 0);
    }
    c->input_hash = program_hash(c->in, c->bytes);
    memset(c->out, 0xC3, c->out_bytes);
    if (c->in_place) {
        memcpy(c->out, c->in, c->bytes);
    }
}

/* Which call this is, and in what it is odd. */
static void call_describe(struct cluster *cl, struct node *n, struct call *c, struct op_params *params, uint64_t *tag)
{
    struct program *p = n->program;
    c->odd = c->no_memory = c->failed = c->uneven = c->bad_argument = false;
    program_describe_op(cl, n->group, p->step, c->op, params, &c->in_place, tag);
    c->pair = pair_chosen(cl, n, c->op);
    c->any = c->many = false;
    c->ordered = !c->pair && parts_ordered(cl, n->group, p->step, c->op);
    if (c->pair) {
        pair_shape(cl, n, c, params);
        *tag = c->pair_tag;
    } else if (c->ordered) {
        parts_shape(cl, n, c, params);
    }
    if (p->want_mismatch && c->op != PROGRAM_OPS && params->count < 200 && !c->uneven) {
        p->want_mismatch = false;
        call_odd(cl, c, params);
        c->base = params->count;
    } else if (p->want_mismatch && c->uneven) {
        c->odd = parts_odd(c, params);
        p->want_mismatch = !c->odd;
    }
}

bool program_launch(struct cluster *cl, struct node *n, uint32_t op)
{
    struct program *p = n->program;
    struct op_params params;
    uint32_t slot = 0;
    uint32_t slots = n->config.max_ops - peer_window_slots(cl);
    while (slot < slots && n->run[slot].taken) {
        slot++;
    }
    if (slot == slots) {
        return false;
    }
    struct call *c = &p->call[slot];
    uint64_t tag;
    c->op = op;
    call_describe(cl, n, c, &params, &tag);
    bool listed = p->listed && op != PROGRAM_OPS;
    c->key = program_key(n, op, listed ? p->tries[op] : op == PROGRAM_OPS ? p->align_attempt : p->attempt);
    call_buffers(cl, c, &params);
    call_inputs(cl, n, c);
    struct run *r = &n->run[slot];
    r->use++;
    r->taken = true;
    r->started = r->done = r->idle = r->stopping = r->returned = r->lazy = false;
    r->failing = 0;
    r->call = c;
    r->senders = session_folding_senders(n->session, &params, c->ordered ? c->root : 0);
    r->window_reserved = lanes_reserve(n, r->senders, 1 + (uint32_t)rng_below(&cl->rng, 3));
    struct session_launch launch = {.call = {.tag = tag, .params = params, .in = c->in, .out = c->out, .deadline = CLOCK_NEVER, .awaited = true},
                                    .scratch = c->scratch, .in_place = c->in_place, .window = r->window_reserved};
    if (c->ordered) {
        parts_lists(c, &launch);
    }
    if (c->pair && !pair_launch_of(cl, n, c, &launch)) {
        r->taken = false;
        p->status[op] = OP_DONE_OK;
        return true;
    }
    if (params.op == REDOP_PREMUL) {
        input_store(&launch.call.factor, 0, (enum dtype)params.dtype, program_factor(n->index));
    }
    call_wishes(cl, n, c, &launch);
    struct session_event e = {.kind = SESSION_LAUNCH, .slot = slot, .launch = &launch};
    c->pending = true;
    p->status[op] = OP_PENDING;
    cl->stats.operations++;
    oracle_launched(cl, c);
    burst_launched(cl, n->index);
    node_step(cl, n, &e);
    cluster_trace(cl, n->index, "launch", tag, (uint64_t)e.outcome.result);
    if (e.outcome.result == RESULT_PENDING) {
        match_launched(cl, n, c);
        p->tries[op] += listed;
        return true;
    }
    lanes_unreserve(n, r->senders * r->window_reserved);
    r->window_reserved = 0;
    r->taken = false;
    c->pending = false;
    if (result_later(e.outcome.result)) {
        p->status[op] = OP_TODO;
        return false;
    }
    p->tries[op] += listed;
    call_restore(r, c, &e.outcome);
    if (e.outcome.result == RESULT_OK) {
        cluster_fail(cl, "peer %u: a launch succeeded at once", n->index);
    }
    program_outcome(cl, n, c, &e.outcome);
    return true;
}

void program_collect(struct cluster *cl, struct node *n)
{
    for (uint32_t slot = 0; slot < n->config.max_ops && !cl->failed; slot++) {
        struct run *r = &n->run[slot];
        struct call *c = r->call;
        if (!r->taken || !r->returned || c->window != NULL) {
            continue;
        }
        struct session_event e = {.kind = SESSION_COLLECT, .slot = slot};
        node_step(cl, n, &e);
        if (r->window_reserved != 0) { /* never started */
            lanes_unreserve(n, r->senders * r->window_reserved);
            r->window_reserved = 0;
        }
        r->taken = false;
        c->pending = false;
        cluster_trace(cl, n->index, "call ended", c->op, (uint64_t)e.outcome.result);
        if (c->op == PROGRAM_WINDOW) {
            window_exchanged(cl, n, &e.outcome);
            continue;
        }
        algorithms_ended(cl, r, &e.outcome);
        call_restore(r, c, &e.outcome);
        program_outcome(cl, n, c, &e.outcome);
    }
}
