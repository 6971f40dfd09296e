/* rest.c - what a communicator that is not used gives back: pages of shared memory, buffers, spare backups, plans.
 *
 * A process may be in hundreds of worlds, few of which work at a time.  Looks come with the timers of others, of which signs of life
 * see to enough; nobody is woken for them.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/op_lanes.h"
#include "engine/rest.h"
#include "engine/threads/lane_hold.h"

#define REST_NS (1 * (int64_t)CLOCK_S)
#define REST_AGAIN_NS (60 * (int64_t)CLOCK_S) /* signs of life take a page again, now and then */

void rest_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    bool used = c->ops.launched != c->rest.launched || c->running.count > 0;
    if (now < c->rest.look_at && !(used && c->rest.resting)) {
        return;
    }
    c->rest.launched = c->ops.launched;
    c->rest.resting = !used;
    c->rest.look_at = now + (used ? REST_NS : REST_AGAIN_NS);
    if (used) {
        return;
    }
    comm_ops_rest(c);
    op_lanes_rest(c);
    comm_session_rest(c);
    for (uint32_t i = 0; i < c->machine.config.lanes; i++) {
        lane_post_surely(c->engine->lane[i], &(struct lane_order){.kind = LANE_REST, .comm = c});
        after->lanes |= UINT64_C(1) << i;
    }
}
