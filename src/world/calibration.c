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

/* Ascending by their ratio. */
static void insert(const struct msg_took **sorted, uint32_t count, const struct msg_took *one)
{
    uint32_t at = count;
    for (; at > 0 && sorted[at - 1]->permille > one->permille; at--) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = one;
}

/* The word of the median, of what the members of a view have told; null: too few have. */
static const struct msg_took *median(const struct world *w, const struct view_record *v, uint32_t kind)
{
    const struct msg_took *sorted[CALIBRATION_MEMBERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->members && v->members <= CALIBRATION_MEMBERS; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && mb->took.view == v->view && mb->took.word[kind].permille > 0) {
            insert(sorted, count++, &mb->took.word[kind]);
        }
    }
    return count > v->members / 2 ? sorted[(count - 1) / 2] : NULL;
}

static uint32_t told(const struct msg_took *m)
{
    uint32_t permille = m != NULL ? m->permille : CALIBRATION_ONE;
    return permille <= CALIBRATION_STEP && permille * CALIBRATION_STEP >= CALIBRATION_ONE * CALIBRATION_ONE ? permille : CALIBRATION_ONE;
}

static uint16_t next_permille(const struct view_record *from, uint32_t kind, const struct msg_took *m)
{
    uint32_t permille = permille_of(&from->calibration, kind) * told(m) / CALIBRATION_ONE;
    return (uint16_t)(permille < CALIBRATION_LEAST ? CALIBRATION_LEAST : permille > CALIBRATION_MOST ? CALIBRATION_MOST : permille);
}

struct calibration calibration_next(const struct world *w, const struct view_record *from)
{
    struct calibration next;
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        next.permille[kind] = next_permille(from, kind, median(w, from, kind));
    }
    return next;
}

void calibration_tell(const struct world *w, const struct view_record *v, enum took_kind kind, struct topology_took *out)
{
    const struct msg_took *m = median(w, v, kind);
    bool known = m != NULL || permille_of(&v->calibration, kind) != CALIBRATION_ONE;
    *out = (struct topology_took){known ? next_permille(v, kind, m) : 0, m != NULL ? m->bytes : 0, m != NULL ? m->took_us : 0};
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
