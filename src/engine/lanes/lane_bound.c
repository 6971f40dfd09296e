/* lane_bound.c - which connections a bound on staging memory holds back, for the statistics and the log.
 *
 * Its one idea: a sender that was granted less than half of its window cannot show that its link carries more, so its window stays as it is.
 * Invariant: an operation counts at most once for each connection, and the log names a peer once.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "core/clock.h"
#include "core/id.h"
#include "core/log.h"
#include "engine/links/link.h"
#include "engine/lanes/lane_bound.h"

static double mebibytes(uint64_t frames)
{
    return (double)(frames * LANE_SLOT_BYTES) / (1 << 20);
}

/* The first peer is a warning: the others are likely to be held back by the same bound. */
static void tell_bound(const struct stream *s, uint32_t granted)
{
    struct engine *e = s->comm->engine;
    if (atomic_exchange(&s->link->bound_told, true)) {
        return;
    }
    bool process = s->lane->bound == LANE_BOUND_PROCESS;
    int64_t limit = process ? e->staging_most : (int64_t)LANE_ROOM_BYTES * ROOM_BLOCKS;
    log_line(atomic_exchange(&e->staging_told, true) ? LOG_INFO : LOG_WARN,
             "peer " ID_FORMAT ", %" PRId64 " ms away and back, may have %.1f of %.1f MiB under way: the staging memory of this %s is at its "
             "limit of %" PRId64 " bytes; raise %s", ID_PARTS(s->peer), s->rtt_ns / CLOCK_MS, mebibytes(granted), mebibytes(s->flow.frames),
             process ? "process" : "lane", limit, process ? "PCCL_STAGING_BYTES" : "p2p_connection_pool_size");
}

void lane_bound_note(struct lane_exec *e)
{
    for (uint32_t i = exec_starving(&e->x, 0); i != PLAN_NOBODY; i = exec_starving(&e->x, i + 1)) {
        struct lane_partner *p = &e->partner[i];
        struct exec_grants grants = exec_grants(&e->x, i);
        if (p->bounded || p->stream == NULL || p->stream->flow.frames == FLOW_BASE || !flow_window_cut(grants.window, grants.held)) {
            continue;
        }
        p->bounded = true;
        atomic_store(&p->stream->bound.granted, grants.held);
        atomic_fetch_add(&p->stream->bound.operations, 1);
        tell_bound(p->stream, grants.held);
    }
}
