/* took.c - see took.h.
 * SPDX-License-Identifier: MIT */
#include "engine/tables/took.h"

#include "core/clock.h"
#include "core/dtype.h"

enum {
    TOOK_FAR = 2,   /* times as long as predicted: an edge has changed, however well the model fits */
    TOOK_LATE = 20, /* a program is late by more than so small a part of the time */
    TOOK_LEAST = 100, TOOK_MOST = 10000,
    TOOK_MODEL_LEAST = 500, TOOK_MODEL_MOST = 4000, /* the model is not more wrong than that */
    TOOK_NEWS = 20, /* the part of what was told, by which it has to differ, is one of so many */
};
#define TOOK_LINKS_NS (50 * CLOCK_MS) /* less is about processors and delays */

static uint8_t kind_of(enum plan_algorithm algorithm)
{
    switch ((int)algorithm) {
    case PLAN_DIRECT:
        return TOOK_DIRECT;
    case PLAN_RING:
        return TOOK_RING;
    case PLAN_FOREST:
        return TOOK_FOREST;
    default:
        return TOOK_KINDS;
    }
}

struct took_forecast took_predicted(const struct op_params *p, const struct choose_answer *a)
{
    struct took_forecast f = {.kind = TOOK_KINDS};
    uint64_t links = a->ns - a->delay_ns, ends = 2 * a->hold_ns; /* READY, and HOLD */
    if (p->kind == PLAN_ALL_REDUCE && a->measured && a->links && links >= TOOK_LINKS_NS && links >= a->delay_ns && a->ns < INT64_MAX) {
        f = (struct took_forecast){kind_of(a->algorithm), p->count * dtype_size((enum dtype)p->dtype),
                                   (int64_t)(a->delay_ns - ends), (int64_t)links, (int64_t)(ends + links / TOOK_LATE)};
    }
    return f;
}

static uint16_t middle(const uint16_t v[TOOK_CALLS])
{
    uint16_t low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];
    return v[2] < low ? low : v[2] > high ? high : v[2];
}

static bool is_news(uint16_t told, uint16_t now)
{
    uint32_t apart = told > now ? told - now : now - told;
    return apart * TOOK_NEWS > told;
}

bool took_take(struct took *t, uint64_t view, const struct took_forecast *f, int64_t took_ns, struct msg_took *out)
{
    if (t->view != view) {
        *t = (struct took){.view = view};
    }
    if (f->kind >= TOOK_KINDS) {
        return false;
    }
    double permille = 1000.0 * (double)(took_ns - f->delays_ns) / (double)f->links_ns;
    struct took_kind_seen *k = &t->kind[f->kind];
    k->last[k->calls++ % TOOK_CALLS] = (uint16_t)(permille < TOOK_LEAST ? TOOK_LEAST : permille > TOOK_MOST ? TOOK_MOST : permille);
    if (k->calls < TOOK_CALLS || !is_news(k->told, middle(k->last))) {
        return false;
    }
    k->told = middle(k->last);
    k->first = k->first == 0 ? k->told : k->first;
    *out = (struct msg_took){.kind = f->kind, .permille = k->told, .bytes = f->bytes, .took_us = (uint64_t)(took_ns / 1000)};
    return true;
}

int64_t took_expected(const struct took *t, uint64_t view, const struct took_forecast *f, int64_t predicted_ns, int64_t took_ns)
{
    if (f->kind >= TOOK_KINDS) {
        return predicted_ns;
    }
    uint32_t first = t->view == view ? t->kind[f->kind].first : 0;
    bool model = first >= TOOK_MODEL_LEAST && first <= TOOK_MODEL_MOST;
    bool far = took_ns - f->delays_ns > TOOK_FAR * f->links_ns;
    return first == 0 && !far ? 0 : model ? f->delays_ns + f->links_ns / 1000 * first : predicted_ns;
}
