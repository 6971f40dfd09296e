/* tour_local.c - or-3opt descent with don't-look bits inside an iterated local search.
 *
 * Its one idea: a descent follows (slowest edge, how many are that slow, sum), which falls with every move, so that it
 * ends; one of several equally slow edges can go at a time.  Whole rings are compared by tour_score alone.  Of any
 * improving exchange at least one peer gets a cheaper successor, so it is enough to look for that one (Lin and
 * Kernighan's gain criterion; Johnson and McGeoch 1997 for don't-look bits).
 * Invariant: position[order[i]] == i between units; a unit is never interrupted.
 * SPDX-License-Identifier: MIT */
#include "topology/tour_local.h"

#include <string.h>

enum { KICK_SEGMENT_MAX = 30, KICK_EXCHANGES_MAX = 3 };

/* An exchange of the segments [at + 1 .. at + first] and the `second` peers after them, positions taken round. */
struct exchange {
    size_t at, first, second;
    int slow;   /* change in the number of slowest edges */
    int64_t by; /* change of the sum */
};

static size_t ring_index(const struct tour_local *t, size_t i)
{
    return i >= t->n ? i - t->n : i;
}

static uint64_t edge_cost(const struct tour_local *t, size_t from, size_t to)
{
    return t->cost[from * t->n + to];
}

static size_t peer_after(const struct tour_local *t, size_t peer)
{
    return t->order[ring_index(t, t->position[peer] + 1u)];
}

static void slowest_update(struct tour_local *t)
{
    t->slowest = 0;
    t->slowest_count = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t c = edge_cost(t, t->order[i], t->order[ring_index(t, i + 1)]);
        if (c > t->slowest) {
            t->slowest = c;
            t->slowest_count = 0;
        }
        t->slowest_count += c == t->slowest;
    }
}

static void awake_around(struct tour_local *t, size_t index)
{
    t->awake[t->order[ring_index(t, index)]] = 1;
    t->awake[t->order[ring_index(t, index + 1)]] = 1;
}

static void exchange_apply(struct tour_local *t, const struct exchange *x)
{
    size_t begin = ring_index(t, x->at + 1), middle = ring_index(t, begin + x->first);
    for (size_t i = 0; i < x->second; i++) {
        t->scratch[i] = t->order[ring_index(t, middle + i)];
    }
    for (size_t i = 0; i < x->first; i++) {
        t->scratch[x->second + i] = t->order[ring_index(t, begin + i)];
    }
    for (size_t i = 0; i < x->first + x->second; i++) {
        size_t to = ring_index(t, begin + i);
        t->order[to] = t->scratch[i];
        t->position[t->scratch[i]] = (uint16_t)to;
    }
    awake_around(t, x->at);
    awake_around(t, ring_index(t, x->at + x->second));
    awake_around(t, ring_index(t, x->at + x->first + x->second));
    slowest_update(t);
    t->moves_used += t->n; /* not a move looked at, but as much work */
}

static void descent_enter(struct tour_local *t)
{
    slowest_update(t);
    t->phase = TOUR_LOCAL_DESCENT;
    t->cursor = 0;
    t->candidate = 0;
    t->asleep = 0;
}

/* Starts a descent from a new `order`, of which nothing is known. */
static void descent_begin(struct tour_local *t)
{
    for (size_t i = 0; i < t->n; i++) {
        t->position[t->order[i]] = (uint16_t)i;
        t->awake[i] = 1;
    }
    descent_enter(t);
}

bool tour_local_init(struct tour_local *t, const uint64_t *cost, size_t n, const uint16_t *start, uint32_t starts,
                     uint64_t moves_limit, uint64_t seed, uint16_t *storage)
{
    if (n < 1 || n > TOUR_PEERS_MAX) {
        return false;
    }
    *t = (struct tour_local){.cost = cost, .n = n, .moves_limit = moves_limit, .starts_left = starts};
    t->rng.state = seed;
    t->near_count = n - 1 < TOUR_LOCAL_NEAR ? n - 1 : TOUR_LOCAL_NEAR;
    t->order = storage;
    t->position = storage + n;
    t->best = storage + 2 * n;
    t->scratch = storage + 3 * n;
    t->awake = storage + 4 * n;
    t->near = storage + 5 * n;
    memset(t->awake, 0, n * sizeof *t->awake);
    for (size_t i = 0; i < n; i++) {
        if (start[i] >= n || t->awake[start[i]] != 0) {
            return false;
        }
        t->awake[start[i]] = 1;
        t->order[i] = t->best[i] = start[i];
    }
    t->best_score = tour_score_of(cost, n, start);
    t->phase = n < 3 ? TOUR_LOCAL_DONE : TOUR_LOCAL_LISTS;
    return true;
}

/* One unit: the list of the cheapest successors of peer `cursor`, cheapest first. */
static void lists_unit(struct tour_local *t)
{
    uint16_t *near = &t->near[t->cursor * t->near_count];
    size_t count = 0;
    for (size_t to = 0; to < t->n; to++) {
        uint64_t c = edge_cost(t, t->cursor, to);
        if (to == t->cursor || (count == t->near_count && c >= edge_cost(t, t->cursor, near[count - 1]))) {
            continue;
        }
        size_t i = count < t->near_count ? count++ : count - 1;
        while (i > 0 && edge_cost(t, t->cursor, near[i - 1]) > c) {
            near[i] = near[i - 1];
            i--;
        }
        near[i] = (uint16_t)to;
    }
    t->moves_used += t->n;
    if (++t->cursor == t->n) {
        descent_begin(t);
    }
}

/* One random exchange, at a slowest edge every second time. */
static void exchange_random(struct tour_local *t)
{
    size_t at = (size_t)rng_below(&t->rng, t->n);
    if ((rng_next(&t->rng) & 1) != 0) {
        while (edge_cost(t, t->order[at], t->order[ring_index(t, at + 1)]) != t->slowest) {
            at = ring_index(t, at + 1);
        }
    }
    size_t most = (t->n - 1) / 2 < KICK_SEGMENT_MAX ? (t->n - 1) / 2 : KICK_SEGMENT_MAX;
    struct exchange x = {.at = at};
    x.first = 1 + (size_t)rng_below(&t->rng, most);
    x.second = 1 + (size_t)rng_below(&t->rng, most);
    exchange_apply(t, &x);
}

/* Takes up the best ring again, disturbed in a few places: a descent undoes a single exchange too often. */
static void kick(struct tour_local *t)
{
    memcpy(t->order, t->best, t->n * sizeof *t->order);
    for (size_t i = 0; i < t->n; i++) {
        t->position[t->order[i]] = (uint16_t)i;
    }
    slowest_update(t);
    for (uint64_t left = 1 + rng_below(&t->rng, KICK_EXCHANGES_MAX); left > 0; left--) {
        exchange_random(t);
    }
    descent_enter(t);
}

/* The descent is over: keep the ring if it is better, and begin the next one. */
static void descent_end(struct tour_local *t)
{
    struct tour_score s = tour_score_of(t->cost, t->n, t->order);
    if (tour_score_less(s, t->best_score)) {
        t->best_score = s;
        memcpy(t->best, t->order, t->n * sizeof *t->best);
    }
    t->moves_used += t->n;
    if (t->starts_left == 0) {
        kick(t);
        return;
    }
    t->starts_left--;
    for (size_t i = 0; i < t->n; i++) {
        t->order[i] = (uint16_t)i;
    }
    size_t first = (size_t)rng_below(&t->rng, t->n);
    t->order[0] = (uint16_t)first;
    t->order[first] = 0;
    t->cursor = 1;
    t->phase = TOUR_LOCAL_GREEDY;
}

/* One unit: order[cursor] becomes the cheapest of the peers from there on; the smallest one on a tie. */
static void greedy_unit(struct tour_local *t)
{
    size_t last = t->order[t->cursor - 1], best = t->cursor;
    for (size_t i = t->cursor + 1; i < t->n; i++) {
        uint64_t a = edge_cost(t, last, t->order[i]), b = edge_cost(t, last, t->order[best]);
        if (a < b || (a == b && t->order[i] < t->order[best])) {
            best = i;
        }
    }
    uint16_t chosen = t->order[best];
    t->order[best] = t->order[t->cursor];
    t->order[t->cursor] = chosen;
    t->moves_used += t->n - t->cursor;
    if (++t->cursor == t->n) {
        descent_begin(t);
    }
}

/* Best exchange that makes `to`, a cheaper one, the successor of `peer`; false if none improves.
 * Before: peer | head .. tail | to .. end | rest; after: peer | to .. end | head .. tail | rest. */
static bool exchange_find(struct tour_local *t, size_t peer, size_t to, struct exchange *x)
{
    size_t n = t->n, at = t->position[peer], head = peer_after(t, peer);
    size_t first = ring_index(t, t->position[to] + n - at) - 1;
    size_t tail = t->order[ring_index(t, at + first)];
    uint64_t gone = edge_cost(t, peer, head), gone_too = edge_cost(t, tail, to);
    uint64_t in = edge_cost(t, peer, to); /* < gone, so never a slowest edge */
    bool found = false;
    for (size_t second = 1; first + second < n; second++) {
        size_t end_at = ring_index(t, at + first + second);
        size_t end = t->order[end_at], rest = t->order[ring_index(t, end_at + 1)];
        uint64_t out = edge_cost(t, end, rest);
        uint64_t back = edge_cost(t, end, head), on = edge_cost(t, tail, rest);
        if (back > t->slowest || on > t->slowest) {
            continue;
        }
        int slow = (back == t->slowest) + (on == t->slowest) - (out == t->slowest) - (gone == t->slowest) -
                   (gone_too == t->slowest);
        int64_t by = (int64_t)(in + back + on) - (int64_t)(gone + gone_too + out);
        if (slow > 0 || (slow == 0 && by >= 0)) {
            continue;
        }
        if (!found || slow < x->slow || (slow == x->slow && by < x->by)) {
            *x = (struct exchange){.at = at, .first = first, .second = second, .slow = slow, .by = by};
            found = true;
        }
    }
    t->moves_used += n - first;
    return found;
}

/* One unit: one candidate successor of the peer at the cursor. */
static void descent_unit(struct tour_local *t)
{
    size_t peer = t->cursor;
    if (t->awake[peer] != 0 && t->candidate < t->near_count) {
        size_t to = t->near[peer * t->near_count + t->candidate];
        if (edge_cost(t, peer, to) < edge_cost(t, peer, peer_after(t, peer))) {
            struct exchange x;
            t->candidate++;
            if (exchange_find(t, peer, to, &x)) {
                exchange_apply(t, &x);
                t->candidate = 0;
                t->asleep = 0;
            }
            return;
        }
    }
    t->awake[peer] = 0;
    t->candidate = 0;
    t->cursor = ring_index(t, t->cursor + 1);
    if (++t->asleep >= t->n) {
        descent_end(t);
    }
}

bool tour_local_step(struct tour_local *t, uint64_t moves)
{
    uint64_t until = moves > UINT64_MAX - t->moves_used ? UINT64_MAX : t->moves_used + moves;
    while (t->phase != TOUR_LOCAL_DONE && t->moves_used < until) {
        if (t->moves_used >= t->moves_limit) {
            struct tour_score s = {UINT64_MAX, UINT64_MAX};
            if (t->phase == TOUR_LOCAL_DESCENT) { /* cut short, but a ring all the same */
                s = tour_score_of(t->cost, t->n, t->order);
            }
            if (tour_score_less(s, t->best_score)) {
                t->best_score = s;
                memcpy(t->best, t->order, t->n * sizeof *t->best);
            }
            t->phase = TOUR_LOCAL_DONE;
            break;
        }
        switch (t->phase) {
        case TOUR_LOCAL_LISTS:
            lists_unit(t);
            break;
        case TOUR_LOCAL_DESCENT:
            descent_unit(t);
            break;
        case TOUR_LOCAL_GREEDY:
            greedy_unit(t);
            break;
        case TOUR_LOCAL_DONE:
            break;
        }
    }
    return t->phase == TOUR_LOCAL_DONE;
}

struct tour_score tour_local_best(const struct tour_local *t, uint16_t *order_out)
{
    size_t zero = 0;
    while (t->best[zero] != 0) {
        zero++;
    }
    for (size_t i = 0; i < t->n; i++) {
        order_out[i] = t->best[ring_index(t, zero + i)];
    }
    return t->best_score;
}
