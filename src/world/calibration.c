/* calibration.c - see calibration.h.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"

enum {
    CALIBRATION_LEAST = 500, CALIBRATION_MOST = 4000,
    CALIBRATION_STEP = 2000, /* a network in which more is told, or less than its inverse, has changed: its edges are measured again */
    CALIBRATION_MEMBERS = 256,                        /* views of more are not predicted from their links */
};

static uint32_t permille_of(const struct calibration *c, uint32_t kind)
{
    return c->permille[kind] == 0 ? CALIBRATION_ONE : c->permille[kind];
}

void calibration_take(const struct world *w, struct member *mb, uint64_t view, const struct msg_took *m)
{
    struct group *g = member_group(w, mb);
    if (g == NULL || view_current(g)->view != view) {
        return;
    }
    if (mb->took.view != view) {
        mb->took = (struct calibration_words){.view = view};
    }
    mb->took.word[m->kind] = *m;
}

/* Ascending. */
static void insert(uint16_t *sorted, uint32_t count, uint16_t one)
{
    uint32_t at = count;
    for (; at > 0 && sorted[at - 1] > one; at--) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = one;
}

/* The median of what the members of a view have told; CALIBRATION_ONE: too few have. */
static uint32_t told(const struct world *w, const struct view_record *v, uint32_t kind)
{
    uint16_t sorted[CALIBRATION_MEMBERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && mb->took.view == v->view && mb->took.word[kind].permille > 0) {
            insert(sorted, count++, mb->took.word[kind].permille);
        }
    }
    uint32_t median = count > v->members / 2 ? sorted[(count - 1) / 2] : CALIBRATION_ONE;
    return median <= CALIBRATION_STEP && median * CALIBRATION_STEP >= CALIBRATION_ONE * CALIBRATION_ONE ? median : CALIBRATION_ONE;
}

struct calibration calibration_next(const struct world *w, const struct view_record *from)
{
    struct calibration next = from->calibration;
    for (uint32_t kind = 0; kind < TOOK_KINDS && from->members <= CALIBRATION_MEMBERS; kind++) {
        uint32_t permille = (uint32_t)((uint64_t)permille_of(&from->calibration, kind) * told(w, from, kind) / CALIBRATION_ONE);
        next.permille[kind] = (uint16_t)(permille < CALIBRATION_LEAST ? CALIBRATION_LEAST : permille > CALIBRATION_MOST ? CALIBRATION_MOST : permille);
    }
    return next;
}

double calibration_apply(const struct calibration *c, enum took_kind kind, double links)
{
    return links * permille_of(c, kind) / CALIBRATION_ONE;
}

bool calibration_differs(const struct calibration *a, const struct calibration *b)
{
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        uint32_t one = permille_of(a, kind), other = permille_of(b, kind), greater = one > other ? one : other;
        if (greater - (one + other - greater) > greater / 10) {
            return true;
        }
    }
    return false;
}
