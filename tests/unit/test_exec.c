/* test_exec.c - whole worlds of executors in one process, joined by ordered in-memory channels, driven at random.
 *
 * Every run is drawn from a seed: algorithm, types, counts, lanes, rooms of a few slots, order of launches, and then which
 * event happens next.  Programs launch in different orders; some wait for one operation before they launch the next.  A run
 * ends when nothing can happen any more: then all must be complete, equal to a fold computed on whole buffers, and every
 * room as it was at the start.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec.h"

#include "core/rng.h"
#include "kernels/hash.h"
#include "tests/testing.h"

enum { MAX_RANKS = 6, MAX_LANES = 3, MAX_OPS = 6, CHANNEL_FRAMES = 2, MAX_SLOTS = 8 };

struct message {
    struct message *next;
    uint32_t op, lane, credit[MAX_LANES]; /* control: READY if `ready`, else CREDIT of `lane` */
    bool ready;
    uint32_t frame, phase, bytes; /* data */
    unsigned char payload[];
};

struct channel {
    struct message *first, **last;
    uint32_t count;
    void *landing;     /* of the head, once its header was accepted */
    bool head_open;    /* its header went in, its bytes not yet */
    struct message *leaving; /* pulled; enters the channel on SENT */
    const void *leaving_data;
    bool busy;
    uint32_t busy_op;
};

struct operation {
    struct plan_params params;
    uint32_t ring[MAX_RANKS], weights[MAX_RANKS];
    struct numeric numeric;
    size_t bytes;
    unsigned char *expected;
    bool aborted;
};

struct share { /* one rank's part of one operation */
    bool launched, stopped;
    struct plan plan;
    struct plan_segment segments[MAX_RANKS];
    struct plan_step steps[5 * MAX_RANKS];
    unsigned char *in, *in_copy, *out;
    struct exec lanes[MAX_LANES];
    void *arena[MAX_LANES];
};

struct cluster {
    struct rng rng;
    uint64_t seed;
    uint32_t world, lane_count, op_count, slot_count;
    size_t slot_bytes;
    struct operation ops[MAX_OPS];
    struct share shares[MAX_RANKS][MAX_OPS];
    uint32_t order[MAX_RANKS][MAX_OPS], launches[MAX_RANKS];
    bool serial[MAX_RANKS]; /* waits for an operation before it launches the next */
    struct room rooms[MAX_RANKS][MAX_LANES];
    unsigned char *slots[MAX_RANKS][MAX_LANES];
    uint32_t free_lists[MAX_RANKS][MAX_LANES][MAX_SLOTS];
    struct channel data[MAX_RANKS][MAX_RANKS][MAX_LANES];
    struct channel control[MAX_RANKS][MAX_RANKS];
    bool launch_nothing; /* set when a test has had enough */
};

static uint32_t draw(struct cluster *c, uint32_t bound)
{
    return (uint32_t)rng_below(&c->rng, bound);
}

/* ---- Making operations -------------------------------------------------------------------------------------------- */

static bool is_float(enum dtype type)
{
    return type == DTYPE_F16 || type == DTYPE_BF16 || type == DTYPE_F32 || type == DTYPE_F64;
}

/* Finite values of mixed sign and size, so that the order of folding shows in the bits; NaNs only where asked for. */
static void fill(struct cluster *c, enum dtype type, unsigned char *to, size_t count, bool nans)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = rng_next(&c->rng);
        double d = ((double)(bits >> 11) / (double)(1 << 26) / (double)(1 << 26) - 0.7) * (double)(1 + (bits & 63));
        float f = (float)d;
        uint16_t half = (uint16_t)((bits & 0x83FF) | 0x3800), bhalf = (uint16_t)((bits & 0x807F) | 0x3F80);
        if (nans && bits % 5 == 0) {
            uint32_t nan32 = 0x7FC00001u | (uint32_t)(bits >> 40 & 0x80000FFF);
            uint64_t nan64 = UINT64_C(0x7FF8000000000001) | (bits & UINT64_C(0x8000000000FFFFF0));
            memcpy(&f, &nan32, 4);
            memcpy(&d, &nan64, 8);
            half |= 0x7E00;
            bhalf |= 0x7FC0;
        }
        size_t size = dtype_size(type);
        switch (type) {
        case DTYPE_F16: memcpy(to + i * size, &half, size); break;
        case DTYPE_BF16: memcpy(to + i * size, &bhalf, size); break;
        case DTYPE_F32: memcpy(to + i * size, &f, size); break;
        case DTYPE_F64: memcpy(to + i * size, &d, size); break;
        case DTYPE_U8: case DTYPE_I8: case DTYPE_I16: case DTYPE_U16: case DTYPE_U32: case DTYPE_I32:
        case DTYPE_U64: case DTYPE_I64: case DTYPE_COUNT:
            memcpy(to + i * size, &bits, size);
            break;
        }
    }
}

/* The whole range of one chain, without frames or slots: rank chain[0] first. */
static void reduce_range(const struct cluster *c, uint32_t o, size_t first, size_t count, const uint32_t *chain)
{
    const struct operation *op = &c->ops[o];
    const struct numeric *n = &op->numeric;
    size_t offset = numeric_user_bytes(n, first);
    unsigned char *out = op->expected + offset;
    if (count == 0) {
        return;
    }
    if (n->plain) {
        memcpy(out, c->shares[chain[0]][o].in + offset, numeric_user_bytes(n, count));
        for (uint32_t i = 1; i < c->world; i++) {
            numeric_fold_plain(n, out, out, c->shares[chain[i]][o].in + offset, count);
        }
        numeric_finish_plain(n, out, count, c->world);
    } else {
        void *wire = malloc(numeric_wire_bytes(n, count)), *acc = malloc(numeric_acc_bytes(n, count));
        for (uint32_t i = 0; i < c->world; i++) {
            numeric_encode(n, wire, c->shares[chain[i]][o].in + offset, count);
            if (i == 0) {
                numeric_load(n, acc, wire, count);
            } else {
                numeric_fold(n, acc, wire, count);
            }
        }
        numeric_finish(n, out, wire, acc, count, c->world);
        free(wire);
        free(acc);
    }
    if (op->params.algorithm == PLAN_TINY) {
        numeric_canonical(n, out, count);
    }
}

static void op_expect(struct cluster *c, uint32_t o)
{
    struct operation *op = &c->ops[o];
    const struct plan *plan = &c->shares[0][o].plan;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        uint32_t chain[MAX_RANKS];
        for (uint32_t i = 0; i < c->world; i++) {
            bool ring = op->params.algorithm == PLAN_RING;
            chain[i] = ring ? op->ring[(s + 1 + i) % c->world] : i;
        }
        reduce_range(c, o, plan->segments[s].first, plan->segments[s].count, chain);
    }
}

struct op_choice {
    enum plan_algorithm algorithm;
    enum dtype dtype;
    enum redop op;
    enum quant quant;
    enum dtype quant_dtype;
    size_t count;
    bool even; /* no weights */
};

static void op_make(struct cluster *c, uint32_t o, const struct op_choice *choice)
{
    struct operation *op = &c->ops[o];
    EXPECT(numeric_init(&op->numeric, choice->dtype, choice->op, choice->quant, choice->quant_dtype, kernels_get()));
    if (!op->numeric.plain) {
        EXPECT(choice->algorithm != PLAN_RING);
    }
    op->params = (struct plan_params){.algorithm = choice->algorithm, .world = c->world, .count = choice->count};
    op->params.align = choice->quant != QUANT_NONE ? NUMERIC_BLOCK : 1;
    op->params.frame_elements = op->params.align * (1 + draw(c, choice->quant != QUANT_NONE ? 2 : 16));
    for (uint32_t i = 0; i < c->world; i++) {
        uint32_t j = draw(c, i + 1);
        op->ring[i] = op->ring[j];
        op->ring[j] = i;
        op->weights[i] = draw(c, 3) == 0 ? 0 : draw(c, 50);
    }
    op->weights[draw(c, c->world)] = 9;
    op->params.ring = op->ring;
    op->params.weights = choice->even || draw(c, 2) == 0 ? NULL : op->weights;
    op->bytes = numeric_user_bytes(&op->numeric, choice->count);
    op->expected = malloc(op->bytes + 1);
    size_t wire = numeric_wire_bytes(&op->numeric, op->params.frame_elements);
    c->slot_bytes = wire > c->slot_bytes ? wire : c->slot_bytes;
    for (uint32_t r = 0; r < c->world; r++) {
        struct share *s = &c->shares[r][o];
        op->params.rank = r;
        plan_make(&s->plan, &op->params, s->segments, s->steps);
        s->in = malloc(op->bytes + 1);
        s->in_copy = malloc(op->bytes + 1);
        s->out = malloc(op->bytes + 1);
        fill(c, choice->dtype, s->in, choice->count, choice->algorithm == PLAN_TINY && is_float(choice->dtype) &&
                                                         choice->quant == QUANT_NONE);
        memcpy(s->in_copy, s->in, op->bytes);
        memset(s->out, 0xA5, op->bytes + 1);
        s->in[op->bytes] = 0x77;
    }
    op_expect(c, o);
}

/* A random combination that numeric offers. */
static struct op_choice op_draw(struct cluster *c)
{
    const size_t counts[] = {0, 1, c->world - 1, c->world, c->world + 1, 97, 256, 611, 1000};
    struct op_choice choice;
    struct numeric n;
    do {
        choice = (struct op_choice){.algorithm = (enum plan_algorithm)draw(c, 3),
                                    .dtype = (enum dtype)draw(c, DTYPE_COUNT),
                                    .op = (enum redop)draw(c, REDOP_COUNT),
                                    .quant = draw(c, 2) ? QUANT_NONE : (enum quant)draw(c, QUANT_COUNT),
                                    .quant_dtype = (enum dtype)draw(c, DTYPE_COUNT),
                                    .count = counts[draw(c, sizeof(counts) / sizeof(counts[0]))]};
    } while (!numeric_init(&n, choice.dtype, choice.op, choice.quant, choice.quant_dtype, kernels_get()) ||
             (choice.algorithm == PLAN_RING && !n.plain));
    return choice;
}

static struct cluster *cluster_new(uint64_t seed, uint32_t world, uint32_t lanes)
{
    struct cluster *c = calloc(1, sizeof(*c));
    c->rng.state = seed * 7919 + 1;
    c->seed = seed;
    c->world = world;
    c->lane_count = lanes;
    c->slot_count = 4 + draw(c, MAX_SLOTS - 3);
    c->slot_bytes = 64;
    return c;
}

static void channel_init(struct channel *ch)
{
    ch->last = &ch->first;
}

/* Rooms and programs, after the operations are made. */
static void cluster_start(struct cluster *c)
{
    for (uint32_t r = 0; r < c->world; r++) {
        c->serial[r] = draw(c, 2) == 0;
        for (uint32_t i = 0; i < c->op_count; i++) {
            c->order[r][i] = i;
            if (!c->serial[r]) { /* serial programs agree on an order, or they would dead-lock by themselves */
                uint32_t j = draw(c, i + 1), t = c->order[r][j];
                c->order[r][j] = c->order[r][i];
                c->order[r][i] = t;
            }
        }
        for (uint32_t l = 0; l < c->lane_count; l++) {
            c->slots[r][l] = malloc(c->slot_bytes * c->slot_count);
            room_init(&c->rooms[r][l], c->slots[r][l], (uint32_t)c->slot_bytes, c->slot_count, c->free_lists[r][l]);
        }
        for (uint32_t t = 0; t < c->world; t++) {
            channel_init(&c->control[r][t]);
            for (uint32_t l = 0; l < c->lane_count; l++) {
                channel_init(&c->data[r][t][l]);
            }
        }
    }
}

static void channel_free(struct channel *ch)
{
    while (ch->first != NULL) {
        struct message *m = ch->first;
        ch->first = m->next;
        free(m);
    }
    free(ch->leaving);
}

static void cluster_free(struct cluster *c)
{
    for (uint32_t r = 0; r < c->world; r++) {
        for (uint32_t o = 0; o < c->op_count; o++) {
            struct share *s = &c->shares[r][o];
            free(s->in);
            free(s->in_copy);
            free(s->out);
            for (uint32_t l = 0; l < c->lane_count; l++) {
                free(s->arena[l]);
            }
        }
        for (uint32_t l = 0; l < c->lane_count; l++) {
            free(c->slots[r][l]);
        }
        for (uint32_t t = 0; t < c->world; t++) {
            channel_free(&c->control[r][t]);
            for (uint32_t l = 0; l < c->lane_count; l++) {
                channel_free(&c->data[r][t][l]);
            }
        }
    }
    for (uint32_t o = 0; o < c->op_count; o++) {
        free(c->ops[o].expected);
    }
    free(c);
}

/* ---- What can happen ---------------------------------------------------------------------------------------------- */

static void channel_put(struct channel *ch, struct message *m)
{
    m->next = NULL;
    *ch->last = m;
    ch->last = &m->next;
    ch->count++;
}

static void channel_drop_head(struct channel *ch)
{
    struct message *m = ch->first;
    ch->first = m->next;
    if (ch->first == NULL) {
        ch->last = &ch->first;
    }
    ch->count--;
    free(m);
}

static struct message *message_new(size_t bytes)
{
    return calloc(1, sizeof(struct message) + bytes);
}

static void tell_credits(struct cluster *c, uint32_t r, uint32_t o, uint32_t l)
{
    for (uint32_t t = 0; t < c->world; t++) {
        uint32_t credit = exec_take_credit(&c->shares[r][o].lanes[l], t);
        if (credit > 0) {
            struct message *m = message_new(0);
            m->op = o;
            m->lane = l;
            m->credit[l] = credit;
            channel_put(&c->control[r][t], m);
        }
    }
}

static struct exec_out step(struct cluster *c, uint32_t r, uint32_t o, uint32_t l, struct exec_event event)
{
    struct exec *x = &c->shares[r][o].lanes[l];
    struct exec_out out;
    exec_step(x, &event, &out);
    EXPECT(!x->failed);
    tell_credits(c, r, o, l);
    return out;
}

static bool share_done(struct cluster *c, uint32_t r, uint32_t o)
{
    struct share *s = &c->shares[r][o];
    bool done = s->launched;
    for (uint32_t l = 0; done && l < c->lane_count; l++) {
        done = s->stopped || s->lanes[l].done;
    }
    return done;
}

static bool try_launch(struct cluster *c, uint32_t r)
{
    uint64_t senders = 0, edges = 0;
    while (c->launches[r] < c->op_count && c->ops[c->order[r][c->launches[r]]].aborted) {
        c->launches[r]++; /* owed an error: never launched here */
    }
    uint32_t k = c->launches[r];
    if (c->launch_nothing || k == c->op_count || (c->serial[r] && k > 0 && !c->ops[c->order[r][k - 1]].aborted &&
                                                  !share_done(c, r, c->order[r][k - 1]))) {
        return false;
    }
    uint32_t o = c->order[r][k];
    struct share *s = &c->shares[r][o];
    struct message ready = {.op = o, .ready = true};
    exec_edges(&s->plan, &senders, &edges);
    EXPECT((senders & ~edges) == 0 && (edges >> r & 1) == 0);
    uint32_t count = (uint32_t)__builtin_popcountll(senders), want = draw(c, 4);
    for (uint32_t l = 0; l < c->lane_count; l++) {
        uint32_t got = room_reserve(&c->rooms[r][l], want * count), window = count > 0 ? got / count : 0;
        room_unreserve(&c->rooms[r][l], got - window * count);
        struct exec_config config = {.plan = &s->plan, .numeric = &c->ops[o].numeric, .room = &c->rooms[r][l],
                                     .in = s->in, .out = s->out, .lane = l, .lanes = c->lane_count,
                                     .window = window, .verify = true};
        size_t bytes = exec_arena_bytes(&config);
        s->arena[l] = aligned_alloc(64, bytes);
        memset(s->arena[l], 0xEE, bytes);
        exec_init(&s->lanes[l], &config, s->arena[l]);
        ready.credit[l] = window;
    }
    s->launched = true;
    c->launches[r]++;
    for (uint32_t t = 0; t < c->world; t++) {
        if (edges >> t & 1) {
            struct message *m = message_new(0);
            *m = ready;
            if (!(senders >> t & 1)) {
                memset(m->credit, 0, sizeof(m->credit));
            }
            channel_put(&c->control[r][t], m);
        }
    }
    for (uint32_t l = 0; l < c->lane_count; l++) {
        tell_credits(c, r, o, l);
    }
    return true;
}

/* The head of a control link; what comes before the own launch is kept by the session, so it may wait here. */
static bool try_control(struct cluster *c, uint32_t r, uint32_t t)
{
    struct message **at = &c->control[r][t].first;
    while (*at != NULL && !c->shares[t][(*at)->op].launched && !c->ops[(*at)->op].aborted) {
        at = &(*at)->next;
    }
    struct message *m = *at;
    if (m == NULL) {
        return false;
    }
    for (uint32_t l = 0; l < c->lane_count && c->shares[t][m->op].launched; l++) {
        if (m->ready || l == m->lane) {
            step(c, t, m->op, l, (struct exec_event){.kind = m->ready ? EXEC_READY : EXEC_CREDIT, .rank = r,
                                                     .credit = m->credit[l]});
        }
    }
    *at = m->next;
    if (*at == NULL) {
        c->control[r][t].last = at;
    }
    free(m);
    return true;
}

static bool try_pull(struct cluster *c, uint32_t r, uint32_t t, uint32_t l)
{
    struct channel *ch = &c->data[r][t][l];
    uint32_t start = draw(c, c->op_count);
    if (ch->busy || ch->count >= CHANNEL_FRAMES) {
        return false; /* back-pressure: the other end must take its head first */
    }
    for (uint32_t i = 0; i < c->op_count; i++) {
        uint32_t o = (start + i) % c->op_count;
        if (!c->shares[r][o].launched || !exec_has_frame(&c->shares[r][o].lanes[l], t)) {
            continue;
        }
        struct exec_out out = step(c, r, o, l, (struct exec_event){.kind = EXEC_PULL, .rank = t});
        EXPECT(out.data != NULL && out.bytes <= c->slot_bytes);
        struct message *m = message_new(out.bytes);
        m->op = o;
        m->frame = out.frame;
        m->phase = out.phase;
        m->bytes = out.bytes;
        memcpy(m->payload, out.data, out.bytes);
        ch->busy = true;
        ch->busy_op = o;
        if (draw(c, 2) == 0) {
            channel_put(ch, m); /* the bytes are there before the sender hears that they have left */
        } else {
            ch->leaving = m;
            ch->leaving_data = out.data;
        }
        return true;
    }
    return false;
}

static bool try_sent(struct cluster *c, uint32_t r, uint32_t t, uint32_t l)
{
    struct channel *ch = &c->data[r][t][l];
    if (!ch->busy) {
        return false;
    }
    if (ch->leaving != NULL) {
        if (!c->shares[r][ch->busy_op].stopped) { /* what was pulled stays as it is until it has left */
            EXPECT(memcmp(ch->leaving_data, ch->leaving->payload, ch->leaving->bytes) == 0);
        }
        channel_put(ch, ch->leaving);
        ch->leaving = NULL;
    }
    ch->busy = false;
    step(c, r, ch->busy_op, l, (struct exec_event){.kind = EXEC_SENT, .rank = t});
    return true;
}

/* The head of a data connection must always be consumable: nothing here may answer "not now". */
static bool try_receive(struct cluster *c, uint32_t r, uint32_t t, uint32_t l)
{
    struct channel *ch = &c->data[r][t][l];
    struct message *m = ch->first;
    if (m == NULL) {
        return false;
    }
    struct share *s = &c->shares[t][m->op];
    if (!s->launched || s->stopped) {
        EXPECT(s->stopped || c->ops[m->op].aborted);
        ch->head_open = false;
        channel_drop_head(ch);
        return true;
    }
    if (!ch->head_open) {
        struct exec_out out = step(c, t, m->op, l, (struct exec_event){.kind = EXEC_HEADER, .rank = r,
                                   .frame = m->frame, .phase = m->phase, .bytes = m->bytes});
        EXPECT(!out.refused && out.dst != NULL);
        if (out.refused) {
            channel_drop_head(ch);
            return true;
        }
        ch->landing = out.dst;
        ch->head_open = true;
        return true;
    }
    memcpy(ch->landing, m->payload, m->bytes);
    uint32_t o = m->op;
    ch->head_open = false;
    channel_drop_head(ch);
    step(c, t, o, l, (struct exec_event){.kind = EXEC_ARRIVED, .rank = r});
    return true;
}

static bool try_room(struct cluster *c, uint32_t r, uint32_t l)
{
    uint32_t start = draw(c, c->op_count);
    for (uint32_t i = 0; i < c->op_count && c->rooms[r][l].half_a + c->rooms[r][l].half_b > 0; i++) {
        uint32_t o = (start + i) % c->op_count;
        struct exec *x = &c->shares[r][o].lanes[l];
        if (c->shares[r][o].launched && x->starved) {
            int32_t before = c->rooms[r][l].half_a + c->rooms[r][l].half_b;
            step(c, r, o, l, (struct exec_event){.kind = EXEC_ROOM});
            if (c->rooms[r][l].half_a + c->rooms[r][l].half_b != before) {
                return true;
            }
        }
    }
    return false;
}

static bool try_action(struct cluster *c, uint32_t kind, uint32_t r, uint32_t t, uint32_t l)
{
    switch (kind) {
    case 0:
        return try_launch(c, r);
    case 1:
        return try_control(c, r, t);
    case 2:
        return try_pull(c, r, t, l);
    case 3:
        return try_sent(c, r, t, l);
    case 4:
        return try_receive(c, r, t, l);
    default:
        return try_room(c, r, l);
    }
}

/* One event; false if nothing at all can happen. */
static bool cluster_step(struct cluster *c, uint32_t launch_odds)
{
    for (int i = 0; i < 64; i++) {
        uint32_t kind = draw(c, 6);
        if (kind == 0 && draw(c, launch_odds) != 0) {
            continue;
        }
        if (try_action(c, kind, draw(c, c->world), draw(c, c->world), draw(c, c->lane_count))) {
            return true;
        }
    }
    for (uint32_t kind = 6; kind-- > 0;) {
        for (uint32_t i = 0; i < c->world * c->world * c->lane_count; i++) {
            uint32_t l = i % c->lane_count, t = i / c->lane_count % c->world, r = i / c->lane_count / c->world;
            if (try_action(c, kind, r, t, l)) {
                return true;
            }
        }
    }
    return false;
}

static void cluster_run(struct cluster *c)
{
    uint32_t odds = 1 + draw(c, 200);
    while (cluster_step(c, odds)) {
    }
}

/* ---- What must hold at the end ------------------------------------------------------------------------------------ */

static void check_rooms(struct cluster *c)
{
    for (uint32_t r = 0; r < c->world; r++) {
        for (uint32_t l = 0; l < c->lane_count; l++) {
            struct room *room = &c->rooms[r][l];
            uint32_t seen = 0;
            EXPECT_EQ(room->half_a, (int32_t)(c->slot_count / 2));
            EXPECT_EQ(room->half_b, (int32_t)(c->slot_count - c->slot_count / 2));
            EXPECT_EQ(room->free_slots, c->slot_count);
            for (uint32_t i = 0; i < room->free_slots; i++) {
                seen |= 1u << room->free_list[i];
            }
            EXPECT_EQ(seen, (1u << c->slot_count) - 1);
        }
    }
}

static uint64_t expected_digest(const struct cluster *c, uint32_t o)
{
    const struct plan *plan = &c->shares[0][o].plan;
    uint64_t sum = 0;
    for (uint32_t f = 0; f < plan->frame_count; f++) {
        size_t first, count;
        plan_frame(plan, f, &first, &count);
        size_t offset = numeric_user_bytes(&c->ops[o].numeric, first);
        sum += hash_mix64(hash_simple64(c->ops[o].expected + offset, numeric_user_bytes(&c->ops[o].numeric, count)),
                          offset);
    }
    return sum;
}

static void check_share(struct cluster *c, uint32_t r, uint32_t o)
{
    struct share *s = &c->shares[r][o];
    struct operation *op = &c->ops[o];
    uint64_t digest = 0, tx = 0, rx = 0;
    size_t sent, received;
    for (uint32_t l = 0; l < c->lane_count; l++) {
        EXPECT(s->lanes[l].done && s->lanes[l].idle && !s->lanes[l].starved);
        EXPECT_EQ(exec_waits_for(&s->lanes[l]), r);
        digest += s->lanes[l].digest;
        tx += s->lanes[l].tx_bytes;
        rx += s->lanes[l].rx_bytes;
    }
    EXPECT(memcmp(s->out, op->expected, op->bytes) == 0);
    EXPECT(s->out[op->bytes] == 0xA5);
    EXPECT(digest == expected_digest(c, o));
    plan_traffic(&s->plan, &sent, &received);
    if (op->numeric.quant == QUANT_NONE) {
        EXPECT_EQ(tx, numeric_user_bytes(&op->numeric, sent));
        EXPECT_EQ(rx, numeric_user_bytes(&op->numeric, received));
    }
}

static void cluster_check(struct cluster *c)
{
    int before = test_failures;
    for (uint32_t r = 0; r < c->world; r++) {
        for (uint32_t o = 0; o < c->op_count; o++) {
            struct share *s = &c->shares[r][o];
            EXPECT(memcmp(s->in, s->in_copy, c->ops[o].bytes) == 0);
            if (!c->ops[o].aborted) {
                EXPECT(s->launched);
                if (s->launched) {
                    check_share(c, r, o);
                }
            }
        }
    }
    check_rooms(c);
    if (test_failures != before && before == 0) {
        fprintf(stderr, "  seed %" PRIu64 ": world %u, %u lanes, %u operations, %u slots\n", c->seed, c->world,
                c->lane_count, c->op_count, c->slot_count);
    }
}

/* ---- Tests -------------------------------------------------------------------------------------------------------- */

static void run_one(uint64_t seed, uint32_t world, uint32_t lanes, const struct op_choice *choice)
{
    struct cluster *c = cluster_new(seed, world, lanes);
    c->op_count = 1;
    op_make(c, 0, choice);
    cluster_start(c);
    cluster_run(c);
    cluster_check(c);
    cluster_free(c);
}

TEST(every_type_and_operator_gives_the_bits_of_a_fold_in_order) /* order or conversion differs: peers drift apart */
{
    uint64_t seed = 1;
    for (int type = 0; type < DTYPE_COUNT; type++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            for (int algorithm = 0; algorithm < 3; algorithm++) {
                if (algorithm == PLAN_RING && (type == DTYPE_F16 || type == DTYPE_BF16)) {
                    continue;
                }
                for (uint32_t world = 2; world <= MAX_RANKS; world++) {
                    run_one(seed++, world, 1 + world % 3,
                            &(struct op_choice){.algorithm = (enum plan_algorithm)algorithm,
                                                .dtype = (enum dtype)type, .op = (enum redop)op, .count = 131});
                }
            }
        }
    }
}

TEST(quantised_operations_do_not_depend_on_who_owns_what) /* an owner's own input must be quantised like the others' */
{
    uint64_t seed = 1;
    uint32_t combinations = 0;
    for (int type = 0; type < DTYPE_COUNT * DTYPE_COUNT * QUANT_COUNT; type++) {
        enum dtype from = (enum dtype)(type % DTYPE_COUNT), to = (enum dtype)(type / DTYPE_COUNT % DTYPE_COUNT);
        enum quant quant = (enum quant)(type / DTYPE_COUNT / DTYPE_COUNT);
        if (quant == QUANT_NONE || !numeric_quant_supported(from, quant, to)) {
            continue;
        }
        combinations++;
        for (uint32_t world = 2; world <= 4; world++) {
            for (int i = 0; i < 4; i++, seed++) {
                run_one(seed, world, 1 + (uint32_t)i % 2,
                        &(struct op_choice){.algorithm = i == 3 ? PLAN_TINY : PLAN_DIRECT, .dtype = from,
                                            .op = (enum redop)(seed % REDOP_COUNT), .quant = quant,
                                            .quant_dtype = to, .count = 700 + 256 * (size_t)(i * i * 2)});
            }
        }
    }
    EXPECT(combinations >= 8);
}

TEST(integer_sums_equal_a_plain_loop) /* independent of the kernels */
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct cluster *c = cluster_new(seed, 2 + (uint32_t)seed % 5, 2);
        c->op_count = 1;
        op_make(c, 0, &(struct op_choice){.algorithm = (enum plan_algorithm)(seed % 3), .dtype = DTYPE_I64,
                                          .count = 333});
        cluster_start(c);
        cluster_run(c);
        for (size_t i = 0; i < 333; i++) {
            uint64_t sum = 0, v;
            for (uint32_t r = 0; r < c->world; r++) {
                memcpy(&v, c->shares[r][0].in + 8 * i, 8);
                sum += v;
            }
            memcpy(&v, c->shares[seed % c->world][0].out + 8 * i, 8);
            EXPECT(v == sum);
        }
        cluster_check(c);
        cluster_free(c);
    }
}

TEST(traffic_is_two_w_minus_one_over_w_of_the_buffer)
{
    for (uint32_t world = 2; world <= MAX_RANKS; world++) {
        for (uint64_t seed = 0; seed < 6; seed++) {
            size_t bytes = (size_t)60 * 4 * world;
            struct cluster *c = cluster_new(seed, world, 1 + (uint32_t)seed % 3);
            c->op_count = 1;
            op_make(c, 0, &(struct op_choice){.algorithm = seed & 1 ? PLAN_RING : PLAN_DIRECT, .dtype = DTYPE_F32,
                                              .count = bytes / 4, .even = true});
            cluster_start(c);
            cluster_run(c);
            for (uint32_t r = 0; r < world; r++) {
                uint64_t tx = 0, rx = 0;
                for (uint32_t l = 0; l < c->lane_count; l++) {
                    tx += c->shares[r][0].lanes[l].tx_bytes;
                    rx += c->shares[r][0].lanes[l].rx_bytes;
                }
                EXPECT_EQ(tx, 2 * (world - 1) * bytes / world);
                EXPECT_EQ(rx, tx);
            }
            cluster_check(c);
            cluster_free(c);
        }
    }
}

static struct cluster *cluster_mixed(uint64_t seed)
{
    struct cluster *c = cluster_new(seed, 2 + (uint32_t)(seed % 4), 1 + (uint32_t)(seed / 4 % 2));
    c->op_count = 2 + draw(c, MAX_OPS - 1);
    for (uint32_t o = 0; o < c->op_count; o++) {
        struct op_choice choice = op_draw(c);
        op_make(c, o, &choice);
    }
    cluster_start(c);
    return c;
}

/* A room shared by operations that are launched in different orders: a grant that waits for a program would stop all. */
TEST(operations_launched_in_opposite_orders_never_dead_lock)
{
    for (uint64_t seed = 0; seed < 1500 && test_failures == 0; seed++) {
        struct cluster *c = cluster_mixed(seed);
        cluster_run(c);
        cluster_check(c);
        cluster_free(c);
    }
}

static void abort_op(struct cluster *c, uint32_t o)
{
    c->ops[o].aborted = true;
    for (uint32_t r = 0; r < c->world; r++) {
        struct share *s = &c->shares[r][o];
        for (uint32_t l = 0; s->launched && l < c->lane_count; l++) {
            step(c, r, o, l, (struct exec_event){.kind = EXEC_STOP});
            EXPECT(s->lanes[l].stopped && !exec_has_frame(&s->lanes[l], (r + 1) % c->world));
        }
        s->stopped = s->launched;
    }
}

TEST(stop_at_any_point_gives_everything_back) /* a leaked grant starves every later operation of the lane */
{
    for (uint64_t seed = 0; seed < 1500 && test_failures == 0; seed++) {
        struct cluster *c = cluster_mixed(seed + 100000);
        uint32_t steps = draw(c, 400);
        for (uint32_t i = 0; i < steps && cluster_step(c, 4); i++) {
        }
        for (uint32_t o = 0; o < c->op_count; o++) { /* the others must finish as if nothing had happened */
            if (seed % 3 == 0 || draw(c, 2) == 0) {
                abort_op(c, o);
            }
        }
        if (seed % 3 == 0) {
            check_rooms(c);
        }
        cluster_run(c);
        cluster_check(c);
        cluster_free(c);
    }
}

/* One executor by hand: rank 1 of 3, direct, i32, one lane, frames of 4 elements, 8 per shard. */
struct single {
    struct plan plan;
    struct plan_segment segments[3];
    struct plan_step steps[15];
    struct numeric numeric;
    struct room room;
    unsigned char slots[8 * 16];
    uint32_t free_list[8];
    int32_t in[24], out[24];
    struct exec exec;
    void *arena;
};

static struct single *single_new(enum plan_algorithm algorithm, uint32_t window)
{
    struct single *s = calloc(1, sizeof(*s));
    struct plan_params params = {.algorithm = algorithm, .world = 3, .rank = 1, .count = 24, .align = 1,
                                 .frame_elements = 4};
    plan_make(&s->plan, &params, s->segments, s->steps);
    EXPECT(numeric_init(&s->numeric, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    room_init(&s->room, s->slots, 16, 8, s->free_list);
    EXPECT_EQ(room_reserve(&s->room, 2 * window), 2 * window);
    struct exec_config config = {.plan = &s->plan, .numeric = &s->numeric, .room = &s->room, .in = s->in,
                                 .out = s->out, .lanes = 1, .window = window};
    s->arena = aligned_alloc(64, exec_arena_bytes(&config));
    exec_init(&s->exec, &config, s->arena);
    return s;
}

static void single_free(struct single *s)
{
    free(s->arena);
    free(s);
}

static struct exec_out single_step(struct single *s, struct exec_event event)
{
    struct exec_out out;
    exec_step(&s->exec, &event, &out);
    return out;
}

static bool refused(struct single *s, uint32_t rank, uint32_t frame, uint32_t phase, uint32_t bytes)
{
    struct exec_event e = {.kind = EXEC_HEADER, .rank = rank, .frame = frame, .phase = phase, .bytes = bytes};
    struct exec_out out = single_step(s, e);
    EXPECT(out.refused ? out.dst == NULL : out.dst != NULL);
    return out.refused;
}

TEST(headers_outside_the_plan_are_refused) /* a hostile length or frame must not reach memory */
{
    struct single *s = single_new(PLAN_DIRECT, 1);
    EXPECT(refused(s, 1, 2, 0, 16));          /* own rank */
    EXPECT(refused(s, 3, 2, 0, 16));          /* no such rank */
    EXPECT(refused(s, UINT32_MAX, 2, 0, 16));
    EXPECT(refused(s, 2, 3, 0, 16));          /* not the next frame */
    EXPECT(refused(s, 2, 0, 0, 16));          /* a shard that is not reduced here */
    EXPECT(refused(s, 2, 6, 0, 16));          /* no such frame */
    EXPECT(refused(s, 2, UINT32_MAX, 0, 16));
    EXPECT(refused(s, 2, 2, 0, 17));          /* wrong length */
    EXPECT(refused(s, 2, 2, 0, 0));
    EXPECT(refused(s, 2, 2, 1, 16));          /* final data of a shard that is reduced here */
    EXPECT(refused(s, 2, 2, 2, 16));          /* no such phase */
    EXPECT(refused(s, 2, 5, 1, 16));          /* final data out of order */
    EXPECT(refused(s, 2, 0, 1, 16));          /* somebody else's shard */
    EXPECT(!refused(s, 2, 2, 0, 16));
    EXPECT(refused(s, 2, 4, 1, 16));          /* a second header before the bytes of the first */
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 2});
    EXPECT(refused(s, 2, 2, 0, 16));          /* twice */
    EXPECT(refused(s, 2, 3, 0, 16));          /* beyond the credit: the window was one frame, rank 2 waits for rank 0 */
    EXPECT(!refused(s, 2, 4, 1, 16));
    EXPECT(!s->exec.failed);
    single_free(s);
}

TEST(final_data_before_the_partial_sum_left_is_refused) /* it would overwrite what is still to be sent */
{
    struct single *s = single_new(PLAN_RING, 0);
    uint32_t frame = s->segments[2].frame; /* chain 0, 1, 2 */
    EXPECT(refused(s, 0, frame, 1, 16));
    EXPECT(!refused(s, 0, frame, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 0});
    EXPECT(refused(s, 0, frame, 1, 16));
    single_step(s, (struct exec_event){.kind = EXEC_READY, .rank = 2, .credit = 6});
    for (int i = 0; i < 3; i++) { /* two leading frames, then the partial sum */
        EXPECT(single_step(s, (struct exec_event){.kind = EXEC_PULL, .rank = 2}).data != NULL);
        single_step(s, (struct exec_event){.kind = EXEC_SENT, .rank = 2});
    }
    EXPECT(!refused(s, 0, frame, 1, 16));
    single_free(s);
}

TEST(what_comes_straight_into_place_takes_no_room) /* a ring needs no staging: it cannot starve */
{
    struct single *s = single_new(PLAN_RING, 0);
    EXPECT_EQ(exec_take_credit(&s->exec, 0), 4);
    EXPECT_EQ(exec_take_credit(&s->exec, 2), 0);
    EXPECT_EQ(s->room.half_a, 4);
    single_free(s);
    s = single_new(PLAN_DIRECT, 2);
    EXPECT_EQ(exec_take_credit(&s->exec, 0), 0); /* the window covers both frames */
    EXPECT_EQ(s->room.half_a, 2);                /* rank 0 comes first: only rank 2 is staged */
    single_step(s, (struct exec_event){.kind = EXEC_STOP});
    EXPECT_EQ(s->room.half_a, 4);
    single_free(s);
}

TEST(half_b_serves_only_what_is_folded_on_arrival) /* or a late program would hold it for ever */
{
    struct single *s = single_new(PLAN_DIRECT, 0);
    EXPECT_EQ(room_reserve(&s->room, 8), 4); /* half A is gone */
    single_step(s, (struct exec_event){.kind = EXEC_READY, .rank = 2});
    EXPECT(s->exec.starved && exec_take_credit(&s->exec, 2) == 0); /* rank 0 comes before it */
    EXPECT_EQ(s->room.half_b, 4);
    EXPECT(!refused(s, 0, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 0});
    EXPECT_EQ(exec_take_credit(&s->exec, 2), 1); /* frame 2 only */
    EXPECT(s->exec.starved);
    EXPECT_EQ(s->room.half_b, 3);
    EXPECT(!refused(s, 2, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 2});
    EXPECT_EQ(s->room.half_b, 4);
    room_unreserve(&s->room, 4);
    single_step(s, (struct exec_event){.kind = EXEC_ROOM});
    EXPECT(!s->exec.starved && exec_take_credit(&s->exec, 2) == 1);
    EXPECT_EQ(s->room.half_a, 3);
    single_free(s);
}

TEST(who_is_waited_for_is_named)
{
    struct single *s = single_new(PLAN_DIRECT, 2);
    EXPECT_EQ(exec_waits_for(&s->exec), 0); /* its final shard comes first */
    for (uint32_t f = 0; f < 2; f++) {
        EXPECT(!refused(s, 0, f, 1, 16));
        single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 0});
    }
    EXPECT_EQ(exec_waits_for(&s->exec), 0); /* its contribution */
    EXPECT(!refused(s, 0, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = 0});
    EXPECT_EQ(exec_waits_for(&s->exec), 2);
    EXPECT_EQ(s->exec.progress, 3);
    single_free(s);
}

TEST(finals_go_before_contributions) /* they end other ranks' waiting */
{
    struct single *s = single_new(PLAN_DIRECT, 2);
    single_step(s, (struct exec_event){.kind = EXEC_READY, .rank = 2, .credit = 2});
    struct exec_out first = single_step(s, (struct exec_event){.kind = EXEC_PULL, .rank = 2});
    EXPECT(first.data == s->in + 16 && first.phase == 0 && first.frame == 4);
    EXPECT(single_step(s, (struct exec_event){.kind = EXEC_PULL, .rank = 2}).data == NULL); /* one at a time */
    single_step(s, (struct exec_event){.kind = EXEC_SENT, .rank = 2});
    for (uint32_t r = 0; r < 3; r += 2) {
        EXPECT(!refused(s, r, 2, 0, 16));
        single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .rank = r});
    }
    struct exec_out final = single_step(s, (struct exec_event){.kind = EXEC_PULL, .rank = 2});
    EXPECT(final.data == s->out + 8 && final.phase == 1 && final.frame == 2);
    EXPECT(!exec_has_frame(&s->exec, 0)); /* its READY is not in */
    single_free(s);
}
