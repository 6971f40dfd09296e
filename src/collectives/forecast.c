/* forecast.c - see forecast.h.
 * SPDX-License-Identifier: MIT */
#include "collectives/forecast.h"

/* How many times as much as the lesser one is the greater one; 0: the lesser one is nothing. */
static double times(double lesser, double greater)
{
    return lesser > 0 ? greater / lesser : 0;
}

static const double wrong_times = 1.3;

bool forecast_missed(struct forecast *f, uint64_t view, int64_t predicted_ns, int64_t took_ns)
{
    bool slower = took_ns > predicted_ns;
    if (predicted_ns < FORECAST_LEAST_NS) {
        return false;
    }
    if (f->view != view) {
        *f = (struct forecast){.view = view};
    }
    if (f->wrong >= FORECAST_CALLS) {
        return false;
    }
    double off = slower ? times((double)predicted_ns, (double)took_ns) : times((double)took_ns, (double)predicted_ns);
    if (off <= wrong_times) {
        f->wrong = 0;
        return false;
    }
    f->wrong = slower == f->slower ? f->wrong + 1 : 1;
    f->slower = slower;
    return f->wrong == FORECAST_CALLS;
}

static double off(const struct forecast *f, const struct forecast_edge *e)
{
    return f->slower ? times((double)e->bps, (double)e->measured_bps) : times((double)e->measured_bps, (double)e->bps);
}

void forecast_edge(const struct forecast *f, struct forecast_edge *worst, const struct forecast_edge *edge)
{
    double this_one = off(f, edge);
    if (this_one > wrong_times && (worst->peer == 0 || this_one > off(f, worst))) {
        *worst = *edge;
    }
}

bool forecast_worth_telling(uint64_t told_bps, uint64_t bps, int64_t told_ns)
{
    return bps > 0 && ((bps > told_bps && bps - told_bps > told_bps / 10) || told_ns >= FORECAST_TELL_NS);
}
