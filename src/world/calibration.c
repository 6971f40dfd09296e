/* calibration.c - see calibration.h.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "world/world_state.h"

enum {
    CALIBRATION_ONE = 1000,    /* as predicted from the links alone */
    CALIBRATION_MEMBERS = 256, /* views of more are not predicted from their links */
};
#define CALIBRATION_LEAST 0.5
#define CALIBRATION_MOST 4.0 /* a network that differs by more has changed: its edges are to be measured again */
#define CALIBRATION_FADES_NS (1200 * CLOCK_S) /* a plan that was slower once is tried again */
#define CALIBRATION_SAID_MOST (UINT64_C(1) << 56)

void calibration_take(const struct world *w, struct member *mb, uint64_t view, const struct msg_took *m)
{
    if (view_current(member_group(w, mb))->view != view) {
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

static uint32_t off(const struct msg_took *m)
{
    return m->permille > CALIBRATION_ONE ? m->permille - CALIBRATION_ONE : CALIBRATION_ONE - m->permille;
}

/* The word in the middle of what the members of a view have told, of two the one that says less; null: too few have. */
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
    if (count <= v->members / 2) {
        return NULL;
    }
    const struct msg_took *low = sorted[(count - 1) / 2], *high = sorted[count / 2];
    return off(high) < off(low) ? high : low;
}

/* How many times as long as `links` it takes, after what is known in `from`; `links_then`: what the links took when that was known. */
static double times(const struct world *w, const struct calibration_kind *old, const struct msg_took *m, double links_then, double links)
{
    double r = old->permille == 0 ? 1 : (double)old->permille / CALIBRATION_ONE;
    if (m != NULL && links_then > 0 && links > 0) {
        r *= (double)m->permille / CALIBRATION_ONE * links_then / links;
    } else {
        int64_t age = w->common->now - old->at;
        r = age < CALIBRATION_FADES_NS ? 1 + (r - 1) * (1 - (double)age / CALIBRATION_FADES_NS) : 1;
    }
    return r >= CALIBRATION_LEAST && r <= CALIBRATION_MOST ? r : 1;
}

static uint16_t rounded(double r)
{
    return (uint16_t)(CALIBRATION_ONE * r + 0.5);
}

double calibration_apply(const struct world *w, const struct view_record *from, struct view_record *v, enum took_kind kind, double links)
{
    const struct calibration_kind *old = &from->calibration.kind[kind];
    bool same = v->members == from->members && memcmp(v->ids, from->ids, v->members * sizeof *v->ids) == 0;
    double known = links < __builtin_inf() ? links : 0, then = same || old->links == 0 ? old->links : known; /* other members have other links */
    double r = times(w, old, median(w, from, kind), then, known);
    v->calibration.kind[kind] = (struct calibration_kind){rounded(r), known, w->common->now};
    return links * r;
}

static uint64_t said(uint64_t value)
{
    return value < CALIBRATION_SAID_MOST ? value : CALIBRATION_SAID_MOST;
}

void calibration_tell(const struct world *w, const struct view_record *v, enum took_kind kind, struct topology_took *out)
{
    const struct msg_took *m = median(w, v, kind);
    const struct calibration_kind *k = &v->calibration.kind[kind];
    uint16_t permille = rounded(times(w, k, m, k->links, k->links));
    bool known = m != NULL || permille != CALIBRATION_ONE;
    *out = (struct topology_took){known ? permille : 0, m != NULL ? said(m->bytes) : 0, m != NULL ? said(m->took_us) : 0};
}
