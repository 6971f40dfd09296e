/* comm.c - the life of a communicator: made, detached from threads and lanes, freed.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"
#include "engine/comm_calls.h"
#include "engine/threads/comm_step.h"

#include <stdlib.h>

#include "core/condition.h"
#include "engine/links/link.h"
#include "engine/links/control_link.h"
#include "engine/links/dial.h"
#include "engine/links/probe.h"
#include "engine/links/state_link.h"
#include "engine/links/uplink.h"
#include "engine/calls/op_lanes.h"
#include "engine/op_queue.h"
#include "engine/threads/lane_hold.h"

pccl_status comm_new(struct engine *engine, const struct comm_params *params, struct comm **out)
{
    struct comm *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return PCCL_ERR_NOMEM;
    }
    comm_ops_init(c);
    c->engine = engine;
    c->seam = &comm_acts;
    c->generation = atomic_load(&engine->generation);
    c->params = *params;
    op_lanes_init(c);
    list_init(&c->in_engine);
    list_init(&c->deriving);
    list_init(&c->in_parent);
    link_init(c);
    controls_init(c);
    uplink_init(c);
    list_init(&c->sync_links);
    list_init(&c->probes);
    pthread_mutex_init(&c->lock, NULL);
    cond_init(&c->changed);
    *out = c;
    return PCCL_OK;
}

static void comm_free_memory(struct comm *c)
{
    comm_session_free(c);
    op_lanes_rest(c);
    comm_ops_fini(c);
    free(c->params.callers);
    free(c->lists.use);
    premul_fini(c);
    free(c);
}

void comm_abandon(struct comm *c)
{
    comm_free_memory(c);
}

/* On the service thread. */
static void comm_detach(void *argument)
{
    struct comm *c = argument;
    struct comm_after after;
    pthread_mutex_lock(&c->engine->lock);
    list_remove(&c->in_engine);
    pthread_mutex_unlock(&c->engine->lock);
    comm_lock(c, &after);
    LIST_FOR_EACH(l, next, &c->engine->dials) {
        struct dial *d = LIST_ENTRY(l, struct dial, all);
        if (d->comm == c) {
            dial_cancel(d);
        }
    }
    sync_link_drop_all(c);
    probe_drop_all(c);
    uplink_drop_all(c);
    comm_unlock(c, &after);
}

static void comm_drop_lanes(struct comm *c)
{
    uint32_t lanes = atomic_load(&c->engine->lanes);
    struct lane_done done = {.left = lanes};
    pthread_mutex_init(&done.lock, NULL);
    pthread_cond_init(&done.zero, NULL);
    for (uint32_t i = 0; i < lanes; i++) {
        struct lane_order order = {.kind = LANE_DROP, .comm = c, .done = &done};
        lane_post_surely(c->engine->lane[i], &order);
        lane_poke(c->engine->lane[i]);
    }
    pthread_mutex_lock(&done.lock);
    while (done.left > 0) {
        pthread_cond_wait(&done.zero, &done.lock);
    }
    pthread_mutex_unlock(&done.lock);
    pthread_cond_destroy(&done.zero);
    pthread_mutex_destroy(&done.lock);
}

void comm_free(struct comm *c)
{
    op_queue_orphan(c);
    comm_wait_out(c);
    if (atomic_load(&c->joined)) {
        engine_run(c->engine, comm_detach, c);
        comm_drop_lanes(c);
        comm_ops_unreserve(c);
        engine_leave(c->engine);
    }
    link_forget_all(c);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    comm_free_memory(c);
}
