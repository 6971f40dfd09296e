/* server_solve.c - ring searches between the turns of the loop.
 *
 * One idea: a search is cut into slices of some 100 us, so that no client waits for it.  The costs are read when the
 * search begins; an answer that comes too late is the master's to ignore.
 * Invariant: every search that was asked for is answered, in that order.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_state.h"
#include "topology/tour_exact.h"

enum { SOLVE_STARTS = 4 };

enum { SOLVE_WANTED = 64 };

bool solve_init(struct solve *v, uint32_t members)
{
    size_t n = members < BOUNDS_RING ? members : BOUNDS_RING, edges = n * n;
    v->capacity = (uint32_t)n;
    v->wanted_capacity = SOLVE_WANTED;
    v->wanted = calloc(v->wanted_capacity, sizeof *v->wanted);
    v->matrix = malloc(edges * sizeof *v->matrix); /* large ones stay untouched until used */
    v->cost = malloc(edges * sizeof *v->cost);
    v->order = malloc(n * sizeof *v->order);
    v->ring = malloc(n * sizeof *v->ring);
    v->storage = malloc(TOUR_LOCAL_ROOM(n) * sizeof *v->storage);
    return v->wanted != NULL && v->matrix != NULL && v->cost != NULL && v->order != NULL && v->ring != NULL &&
           v->storage != NULL;
}

void solve_fini(struct solve *v)
{
    free(v->wanted);
    free(v->matrix);
    free(v->cost);
    free(v->order);
    free(v->ring);
    free(v->storage);
}

static void solve_remove_first(struct solve *v)
{
    v->wanted_count--;
    memmove(v->wanted, v->wanted + 1, v->wanted_count * sizeof *v->wanted);
    v->begun = false;
}

void solve_add(struct server *s, uint64_t number)
{
    struct solve *v = &s->solve;
    if (v->wanted_count == v->wanted_capacity) {
        uint64_t *grown = realloc(v->wanted, 2 * v->wanted_capacity * sizeof *grown);
        if (grown != NULL) {
            v->wanted = grown;
            v->wanted_capacity *= 2;
        } else {
            solve_remove_first(v); /* most likely it has been given up: it waited longest */
        }
    }
    v->wanted[v->wanted_count++] = number;
}

/* Reads the costs; true if there is a search to go on with. */
static bool solve_begin(struct server *s, struct solve *v)
{
    uint32_t n = master_matrix(s->master, v->wanted[0], v->matrix, v->order, v->capacity);
    v->count = n;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        double seconds = v->matrix[i]; /* per gigabit */
        v->cost[i] = isinf(seconds) || !(seconds > 0) ? TOUR_FORBIDDEN : tour_edge_cost((uint64_t)(1e9 / seconds));
    }
    for (uint32_t i = 0; i < n; i++) {
        v->ring[i] = (uint16_t)v->order[i];
    }
    v->begun = true;
    if (n <= TOUR_EXACT_MAX) {
        struct tour_score score;
        (void)tour_exact_solve(v->cost, n, v->ring, &score); /* refuses only an empty group, which has no order */
        return false;
    }
    return tour_local_init(&v->search, v->cost, n, v->ring, SOLVE_STARTS, tour_local_moves(n), s->config.seed,
                           v->storage);
}

/* True when v->ring holds the answer. */
static bool solve_slice(struct server *s, struct solve *v)
{
    if (!v->begun && !solve_begin(s, v)) {
        return true;
    }
    if (!tour_local_step(&v->search, SERVER_SLICE_MOVES)) {
        return false;
    }
    (void)tour_local_best(&v->search, v->ring);
    return true;
}

bool solve_work(struct server *s, struct master_event *out)
{
    struct solve *v = &s->solve;
    if (v->wanted_count == 0 || !solve_slice(s, v)) {
        return false;
    }
    for (uint32_t i = 0; i < v->count; i++) {
        v->order[i] = v->ring[i];
    }
    *out = (struct master_event){
        .kind = MASTER_SOLVED, .number = v->wanted[0], .order = v->order, .count = v->count};
    solve_remove_first(v);
    return true;
}
