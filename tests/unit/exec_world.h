/* exec_world.h - a world of executors in one process, joined by ordered in-memory channels, driven at random.
 *
 * Every run is drawn from a seed: rooms of a few slots, order of launches, and which event happens next.  Programs launch
 * in different orders; some wait for one operation before they launch the next.  A data channel holds two frames and
 * its head must be consumable at once, as on a connection.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_UNIT_EXEC_WORLD_H
#define PCCL_TESTS_UNIT_EXEC_WORLD_H

#include "tests/unit/exec_ops.h"

static struct cluster *cluster_new(uint64_t seed, uint32_t world, uint32_t lanes)
{
    struct cluster *c = calloc(1, sizeof(*c));
    c->rng.state = seed * 7919 + 1;
    c->seed = seed;
    c->world = world;
    c->lane_count = lanes;
    c->slot_count = 2 + draw(c, MAX_SLOTS - 1);
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
            room_init(&c->rooms[r][l], c->slots[r][l], (uint32_t)c->slot_bytes, c->slot_count, c->room_slots[r][l]);
        }
        for (uint32_t t = 0; t < c->world; t++) {
            channel_init(&c->control[r][t]);
            c->slow[r][t] = draw(c, 4) == 0 ? 30 : 1;
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
            free(s->in_place ? NULL : s->in);
            free(s->in_copy);
            free(s->backup);
            free(s->saved);
            free(s->segments);
            free(s->steps);
            free(s->out);
            free(s->scratch);
            free(s->expected);
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
    while (c->pool.first != NULL) {
        free(frame_pool_take(&c->pool));
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

/* What rank `t` is called by the executors of `r`. */
static uint32_t number_of(const struct cluster *c, uint32_t r, uint32_t o, uint32_t t)
{
    return plan_number(&c->shares[r][o].plan, t);
}

static void tell_credits(struct cluster *c, uint32_t r, uint32_t o, uint32_t l)
{
    for (uint32_t i = 0; i < c->shares[r][o].plan.partner_count; i++) {
        uint32_t t = c->shares[r][o].partners[i];
        struct exec_credit credit;
        if (exec_take_credit(&c->shares[r][o].lanes[l], i, &credit)) {
            struct message *m = message_new(0);
            m->op = o;
            m->lane = l;
            m->credit[l] = credit.frames;
            m->sums = credit.sums;
            channel_put(&c->control[r][t], m);
        }
    }
}

static struct exec_out step(struct cluster *c, uint32_t r, uint32_t o, uint32_t l, struct exec_event event)
{
    struct exec *x = &c->shares[r][o].lanes[l];
    struct exec_out out;
    if (c->pool.first == NULL) {
        frame_pool_give(&c->pool, malloc(c->slot_bytes + sizeof(void *)));
    }
    exec_step(x, &event, &out);
    EXPECT(!x->failed);
    tell_credits(c, r, o, l);
    return out;
}

static bool share_done(struct cluster *c, uint32_t r, uint32_t o)
{
    struct share *s = &c->shares[r][o];
    bool done = s->launched;
    for (uint32_t l = 0; done && l < c->ops[o].params.lanes; l++) {
        done = s->stopped || s->lanes[l].done;
    }
    return done;
}

static bool try_launch(struct cluster *c, uint32_t r)
{
    while (c->launches[r] < c->op_count && c->ops[c->order[r][c->launches[r]]].aborted) {
        c->launches[r]++; /* owed an error: never launched here */
    }
    uint32_t k = c->launches[r];
    if (k == c->op_count || (c->serial[r] && k > 0 && !c->ops[c->order[r][k - 1]].aborted &&
                                                  !share_done(c, r, c->order[r][k - 1]))) {
        return false;
    }
    uint32_t o = c->order[r][k];
    struct share *s = &c->shares[r][o];
    struct message ready = {.op = o, .ready = true};
    struct plan_params mine = c->ops[o].params;
    mine.rank = r;
    uint32_t count = plan_senders(&mine), want = draw(c, 4);
    for (uint32_t l = 0; l < mine.lanes; l++) {
        uint32_t got = room_reserve(&c->rooms[r][l], want * count), window = count > 0 ? got / count : 0;
        room_unreserve(&c->rooms[r][l], got - window * count);
        struct exec_config config = {
            .check_every = c->seed % 4 == 0 ? 1 : 16, .plan = &s->plan, .numeric = &s->numeric, .room = &c->rooms[r][l],
            .pool = &c->pool, .in = s->in, .out = s->out, .scratch = s->scratch, .backup = s->backup, .saved = s->saved,
            .lane = l, .lanes = mine.lanes, .window = window, .verify = true};
        size_t bytes = exec_arena_bytes(&config);
        s->arena[l] = aligned_alloc(64, bytes);
        memset(s->arena[l], 0xEE, bytes);
        exec_init(&s->lanes[l], &config, s->arena[l]);
        ready.credit[l] = window;
    }
    s->launched = true;
    c->launches[r]++;
    for (uint32_t t = 0; t < c->world; t++) {
        if (t != r && plan_partners(s->plan.params.algorithm, c->world, s->plan.params.root, r, t)) {
            struct message *m = message_new(0);
            *m = ready;
            channel_put(&c->control[r][t], m);
        }
    }
    for (uint32_t l = 0; l < mine.lanes; l++) {
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
    uint32_t partner = number_of(c, t, m->op, r); /* READY comes of some that nothing else comes of */
    bool takes = c->shares[t][m->op].launched && partner != PLAN_NOBODY;
    for (uint32_t l = 0; l < c->ops[m->op].params.lanes && takes; l++) {
        if (m->ready || l == m->lane) {
            step(c, t, m->op, l, (struct exec_event){.kind = m->ready ? EXEC_READY : EXEC_CREDIT, .partner = partner,
                                                     .credit = m->credit[l], .sums = m->sums});
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
        uint32_t o = (start + i) % c->op_count, partner = number_of(c, r, o, t);
        if (!c->shares[r][o].launched || l >= c->ops[o].params.lanes || partner == PLAN_NOBODY ||
            !exec_has_frame(&c->shares[r][o].lanes[l], partner)) {
            continue;
        }
        struct exec_out out = step(c, r, o, l, (struct exec_event){.kind = EXEC_PULL, .partner = partner});
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
    step(c, r, ch->busy_op, l, (struct exec_event){.kind = EXEC_SENT, .partner = number_of(c, r, ch->busy_op, t)});
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
    uint32_t o = m->op, partner = number_of(c, t, o, r);
    if (!ch->head_open) {
        struct exec_out out = step(c, t, o, l, (struct exec_event){.kind = EXEC_HEADER, .partner = partner,
                                   .frame = m->frame, .phase = m->phase, .bytes = m->bytes});
        EXPECT(!out.refused && out.dst != NULL);
        if (out.dst == NULL) {
            channel_drop_head(ch);
            return true;
        }
        ch->landing = out.dst;
        ch->lend = draw(c, 2) == 0 ? out.lend : 0;
        ch->lent = 0;
        ch->head_open = true;
        return true;
    }
    if (ch->lend > 0 && ch->lent < m->bytes) {
        uint32_t part = (1 + draw(c, (m->bytes - ch->lent) / ch->lend)) * ch->lend;
        step(c, t, o, l, (struct exec_event){.kind = EXEC_LENT, .partner = partner, .data = m->payload + ch->lent, .bytes = part});
        ch->lent += part;
        return true;
    }
    if (ch->lend == 0) {
        memcpy(ch->landing, m->payload, m->bytes);
    }
    ch->head_open = false;
    channel_drop_head(ch);
    step(c, t, o, l, (struct exec_event){.kind = EXEC_ARRIVED, .partner = partner});
    return true;
}

static bool try_room(struct cluster *c, uint32_t r, uint32_t l)
{
    uint32_t start = draw(c, c->op_count);
    for (uint32_t i = 0; i < c->op_count && c->rooms[r][l].half_a + c->rooms[r][l].half_b > 0; i++) {
        uint32_t o = (start + i) % c->op_count;
        struct exec *x = &c->shares[r][o].lanes[l];
        if (c->shares[r][o].launched && l < c->ops[o].params.lanes && x->starved) {
            int32_t before = c->rooms[r][l].half_a + c->rooms[r][l].half_b;
            struct exec_out out = step(c, r, o, l, (struct exec_event){.kind = EXEC_ROOM});
            EXPECT_EQ(out.granted, c->rooms[r][l].half_a + c->rooms[r][l].half_b != before);
            if (out.granted) {
                return true;
            }
        }
    }
    return false;
}

/* A copy that the lane has time for. */
static bool try_work(struct cluster *c, uint32_t r, uint32_t l)
{
    uint32_t start = draw(c, c->op_count);
    for (uint32_t i = 0; i < c->op_count; i++) {
        uint32_t o = (start + i) % c->op_count;
        struct share *s = &c->shares[r][o];
        if (s->launched && !s->stopped && l < c->ops[o].params.lanes && s->lanes[l].work) {
            step(c, r, o, l, (struct exec_event){.kind = EXEC_WORK});
            return true;
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
    case 5:
        return try_room(c, r, l);
    default:
        return try_work(c, r, l);
    }
}

/* Whether an action of this kind is one between two ranks. */
static bool takes_partner(uint32_t kind)
{
    return kind >= 1 && kind <= 4;
}

/* Some sender's link fills, or its window is set to less. */
static void widen(struct cluster *c)
{
    uint32_t r = draw(c, c->world), o = draw(c, c->op_count), l = draw(c, c->lane_count);
    struct share *s = &c->shares[r][o];
    if (s->launched && !s->stopped && l < c->ops[o].params.lanes && s->plan.partner_count > 0) {
        step(c, r, o, l, (struct exec_event){.kind = EXEC_WINDOW, .partner = draw(c, s->plan.partner_count), .credit = draw(c, MAX_SLOTS)});
    }
}

/* One event; false if nothing at all can happen. */
static bool cluster_step(struct cluster *c, uint32_t launch_odds)
{
    if (draw(c, 32) == 0) {
        widen(c);
    }
    for (int i = 0; i < 64; i++) {
        uint32_t kind = draw(c, 7);
        uint32_t r = draw(c, c->world), t = draw(c, c->world);
        if (draw(c, kind == 0 ? launch_odds : kind == 2 || kind == 3 ? c->slow[r][t] : 1) != 0) {
            continue;
        }
        if (try_action(c, kind, r, t, draw(c, c->lane_count))) {
            return true;
        }
    }
    for (uint32_t kind = 7; kind-- > 0;) {
        for (uint32_t r = 0; r < c->world; r++) {
            for (uint32_t t = 0; t < (takes_partner(kind) ? c->world : 1); t++) {
                for (uint32_t l = 0; l < c->lane_count; l++) {
                    if (try_action(c, kind, r, t, l)) {
                        return true;
                    }
                }
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

#endif
