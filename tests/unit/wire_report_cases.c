/* wire_report_cases.c - the messages that list operations, as cases (see wire_cases.h).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/wire_cases.h"

#include "wire/control.h"

static void fill_reports(struct rng *rng, struct op_report *reports, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct op_report *o = &reports[i];
        wire_rnd_name(rng, &o->name);
        o->state = (uint8_t)(1 + rng_below(rng, 4));
        o->cause = wire_rnd_cause(rng);
        o->culprit = rng_next(rng);
        o->params = rng_next(rng);
        o->digest = rng_next(rng);
    }
}

static void put_reports(struct writer *w, const struct op_report *reports, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_op_report(w, &reports[i]);
    }
}

static bool get_reports(struct reader *r, struct op_report *reports, uint32_t count)
{
    bool good = count <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < count; i++) {
        good = get_op_report(r, &reports[i]);
    }
    return good && reader_done(r);
}

struct whole_leave {
    struct msg_leave m;
    struct op_report reports[WIRE_CASE_ITEMS];
};
static void leave_fill(void *at, struct rng *rng)
{
    struct whole_leave *l = at;
    l->m.revoke = (uint8_t)rng_below(rng, 2);
    l->m.view = rng_next(rng);
    l->m.reports = wire_rnd_items(rng);
    fill_reports(rng, l->reports, l->m.reports);
}
static void leave_put(struct writer *w, const void *at)
{
    const struct whole_leave *l = at;
    put_leave(w, &l->m);
    put_reports(w, l->reports, l->m.reports);
}
static bool leave_get(struct reader *r, void *at)
{
    struct whole_leave *l = at;
    return get_leave(r, &l->m) && get_reports(r, l->reports, l->m.reports);
}

struct whole_frozen {
    struct msg_frozen m;
    struct op_report reports[WIRE_CASE_ITEMS];
};
static void frozen_fill(void *at, struct rng *rng)
{
    struct whole_frozen *f = at;
    f->m.view = rng_next(rng);
    f->m.attempt = (uint32_t)rng_next(rng);
    f->m.reports = wire_rnd_items(rng);
    fill_reports(rng, f->reports, f->m.reports);
}
static void frozen_put(struct writer *w, const void *at)
{
    const struct whole_frozen *f = at;
    put_frozen(w, &f->m);
    put_reports(w, f->reports, f->m.reports);
}
static bool frozen_get(struct reader *r, void *at)
{
    struct whole_frozen *f = at;
    return get_frozen(r, &f->m) && get_reports(r, f->reports, f->m.reports);
}

const struct wire_case wire_report_cases[] = {
    WIRE_ROW(leave, FRAME_LEAVE, struct whole_leave),
    WIRE_ROW(frozen, FRAME_FROZEN, struct whole_frozen),
};
const size_t wire_report_case_count = sizeof wire_report_cases / sizeof wire_report_cases[0];
