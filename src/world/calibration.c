/* calibration.c - see calibration.h.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "world/world_state.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"

enum {
    CALIBRATION_ONE = 1000,    /* as predicted from the links alone */
    CALIBRATION_MEMBERS = 256, /* of larger views nothing is learnt */
};
#define CALIBRATION_MEMBER 0.05 /* what each member beyond two adds, until members have told */
#define CALIBRATION_UNTOLD 1.5  /* the most of it */
#define CALIBRATION_LEAST 0.5
#define CALIBRATION_MOST 4.0 /* where operations differ by more the network has changed: its edges are to be measured again */
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

/* What counts of the words of a view's members: their upper quartile.  An operation has ended when all have its result, and members with slow
 * links are the last ones.  Of two words the one that is nearer to 1 counts.  Null: no more than half have told. */
static const struct msg_took *word_of(const struct world *w, const struct view_record *v, uint32_t kind)
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
    if (count == 2) {
        return off(sorted[1]) < off(sorted[0]) ? sorted[1] : sorted[0];
    }
    return sorted[3 * (count - 1) / 4];
}

static double ratio(uint16_t permille)
{
    return permille == 0 ? 1 : (double)permille / CALIBRATION_ONE;
}

static double cut(double r)
{
    return r < CALIBRATION_LEAST ? CALIBRATION_LEAST : r > CALIBRATION_MOST ? CALIBRATION_MOST : r;
}

/* Operations end with the last member, and the more members there are, the later it is.  Figures of six emulated networks, decision 34. */
double calibration_untold(const struct view_record *v)
{
    if (v->members <= 2 || v->plan.costs.delay_ns <= WORLD_FAR_NS) {
        return 1;
    }
    double r = 1 + (v->members - 2) * CALIBRATION_MEMBER;
    return r < CALIBRATION_UNTOLD ? r : CALIBRATION_UNTOLD;
}

/* Else the network has changed. */
static bool is_model(const struct msg_took *m)
{
    return m != NULL && ratio(m->permille) >= CALIBRATION_LEAST && ratio(m->permille) <= CALIBRATION_MOST;
}

static bool is_fresh(const struct world *w, const struct calibration_kind *k)
{
    return k->told != 0 && w->common->now - k->at < CALIBRATION_FADES_NS;
}

/* What a plan takes that nobody has told of: what its size lets expect, or less if another plan of the view does.  Else a plan that is in use
 * and does well would never lose to a better one. */
static double assumed(const struct world *w, const struct view_record *from, uint32_t but)
{
    double least = 1;
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        const struct calibration_kind *k = &from->calibration.kind[kind];
        const struct msg_took *m = k->links > 0 ? word_of(w, from, kind) : NULL;
        double r = is_model(m) ? cut(ratio(k->permille) * ratio(m->permille)) : m == NULL && is_fresh(w, k) ? ratio(k->told) : 1;
        least = kind != but && r < least ? r : least;
    }
    return least;
}

/* What a view after `from` counts with that is expected to take `now`, as `from` was to take `then` when the word was told; 0: not known. */
static struct calibration_kind next_of(const struct world *w, const struct view_record *from, uint32_t kind, double then, double now)
{
    const struct calibration_kind *old = &from->calibration.kind[kind];
    const struct msg_took *m = word_of(w, from, kind);
    struct calibration_kind k = {.links = old->links, .told = old->told, .at = old->at};
    double r = assumed(w, from, kind);
    if (m != NULL && then > 0 && now > 0) {
        r = is_model(m) ? cut(ratio(old->permille) * ratio(m->permille) * then / now) : 1;
        k.told = (uint16_t)(CALIBRATION_ONE * r + 0.5);
        k.at = w->common->now;
    } else if (is_fresh(w, old)) {
        r += (ratio(old->told) - r) * (1 - (double)(w->common->now - old->at) / CALIBRATION_FADES_NS);
    }
    k.permille = (uint16_t)(CALIBRATION_ONE * r + 0.5);
    return k;
}

double calibration_apply(const struct world *w, const struct view_record *from, struct view_record *v, enum took_kind kind, bool same,
                         double links)
{
    bool members = v->members == from->members && memcmp(v->ids, from->ids, v->members * sizeof *v->ids) == 0;
    double known = links < __builtin_inf() ? links : 0, old = from->calibration.kind[kind].links;
    double now = known * calibration_untold(v);
    v->calibration.kind[kind] = next_of(w, from, kind, (same && members) || old == 0 ? old * calibration_untold(from) : now, now);
    v->calibration.kind[kind].links = known;
    return links * calibration_untold(v) * ratio(v->calibration.kind[kind].permille);
}

static uint64_t said(uint64_t value)
{
    return value < CALIBRATION_SAID_MOST ? value : CALIBRATION_SAID_MOST;
}

void calibration_tell(const struct world *w, const struct view_record *v, enum took_kind kind, struct topology_took *out)
{
    const struct msg_took *m = word_of(w, v, kind);
    double links = v->calibration.kind[kind].links, untold = calibration_untold(v);
    uint16_t permille = links > 0 ? (uint16_t)(untold * next_of(w, v, kind, links, links).permille + 0.5) : 0;
    bool known = m != NULL || permille != CALIBRATION_ONE;
    *out = (struct topology_took){known ? permille : 0, m != NULL ? said(m->bytes) : 0, m != NULL ? said(m->took_us) : 0};
}
