/* probe_meter.c - see probe_meter.h.
 * SPDX-License-Identifier: MIT */
#include "topology/probe_meter.h"

#include "topology/rates.h"

enum {
    METER_PERIOD_NS = 20000000, /* at least, so that single acknowledgements do not count */
    METER_TRIPS = 4,            /* round trips that a measurement takes at least */
    METER_FLAT = 3,
    METER_WARM_TRIPS = 16, /* from one packet to 1 Gb/s, and what overran the queue is repaired */
};

#define METER_WARM_NS INT64_C(1500000000) /* at least, for streams that share a link */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void probe_meter_init(struct probe_meter *m, int64_t now_ns, int64_t measure_ns)
{
    *m = (struct probe_meter){.measure_ns = measure_ns, .begun = now_ns, .period_at = now_ns};
}

/* The rate of a period is known: it grows, or has stopped growing. */
static void end_period(struct probe_meter *m, int64_t now_ns)
{
    uint64_t bps = rate_of(m->delivered - m->period_bytes, now_ns - m->period_at);
    bool grows = bps / 11 > m->best_bps / 10; /* by a tenth */
    m->grew_at = grows ? now_ns : m->grew_at;
    m->period_ns = grows ? now_ns - m->period_at : m->period_ns;
    m->flat = grows ? 0 : m->flat + (bps > 0); /* a pause says nothing: some paths deliver in bursts */
    m->best_bps = bps > m->best_bps ? bps : m->best_bps;
    m->period_at = now_ns;
    m->period_bytes = m->delivered;
    if (m->settled_at == 0 && m->flat >= METER_FLAT) {
        m->settled_at = now_ns;
        m->settled_bytes = m->delivered;
    }
}

bool probe_meter_warm(const struct probe_meter *m, int64_t now_ns)
{
    return m->settled_at != 0 || now_ns - m->begun >= most(METER_WARM_NS, METER_WARM_TRIPS * m->least_rtt_ns);
}

bool probe_meter_late(const struct probe_meter *m, int64_t now_ns)
{
    int64_t limit = PROBE_METER_LIMIT * m->measure_ns, took = now_ns - m->begun;
    bool grew = m->settled_at == 0 ? m->grew_at != 0 && now_ns - m->grew_at <= METER_FLAT * m->period_ns : m->settled_at - m->begun >= limit;
    return took >= limit && (!grew || took >= 2 * limit);
}

bool probe_meter_look(struct probe_meter *m, int64_t now_ns, uint64_t delivered, int64_t rtt_ns, uint64_t estimate_bps)
{
    m->delivered = delivered;
    m->estimate_bps = estimate_bps;
    m->least_rtt_ns = m->least_rtt_ns == 0 || (rtt_ns > 0 && rtt_ns < m->least_rtt_ns) ? rtt_ns : m->least_rtt_ns;
    probe_peak_look(&m->peak, now_ns, delivered, rtt_ns);
    if (now_ns - m->period_at >= most(rtt_ns, METER_PERIOD_NS)) {
        end_period(m, now_ns);
    }
    bool measured = m->settled_at != 0 && now_ns - m->settled_at >= most(m->measure_ns, METER_TRIPS * rtt_ns);
    return measured || probe_meter_late(m, now_ns);
}

void probe_meter_share(struct probe_meter *m, int64_t now_ns)
{
    m->shared = true;
    m->settled_at = now_ns;
    m->settled_bytes = m->delivered;
}

uint64_t probe_meter_bps(const struct probe_meter *m, int64_t now_ns)
{
    bool measured = m->settled_at != 0 && (m->shared || now_ns - m->settled_at >= METER_PERIOD_NS);
    uint64_t best = m->peak.best_bps > 0 ? m->peak.best_bps : m->best_bps;
    uint64_t settled = measured ? rate_of(m->delivered - m->settled_bytes, now_ns - m->settled_at) : best;
    /* After a burst that overran a queue a stream is slow for a while; its congestion control still knows what went through before. */
    uint64_t estimate = m->estimate_bps < best ? m->estimate_bps : best;
    return settled > estimate || m->shared ? settled : estimate;
}

void probe_peak_look(struct probe_peak *p, int64_t now_ns, uint64_t bytes, int64_t period_ns)
{
    int64_t took = now_ns - p->at;
    if (p->at != 0 && took < most(period_ns, PROBE_PEAK_NS)) {
        return;
    }
    uint64_t bps = p->at != 0 ? rate_of(bytes - p->bytes, took) : 0;
    p->best_bps = bps > p->best_bps ? bps : p->best_bps;
    p->at = now_ns;
    p->bytes = bytes;
}

uint64_t probe_peak_end(struct probe_peak *p, int64_t now_ns, uint64_t bytes)
{
    if (p->best_bps == 0 && p->at != 0 && bytes > p->bytes && now_ns - p->at >= METER_PERIOD_NS) {
        p->best_bps = rate_of(bytes - p->bytes, now_ns - p->at);
    }
    return p->best_bps;
}
