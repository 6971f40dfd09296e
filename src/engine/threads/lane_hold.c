/* lane_hold.c - who holds a lane, who looks at it, and the orders that wait for its holder.
 *
 * A lock that is held is never waited for: the poller hides the lane and goes on, a poster leaves an order and a wake-up, a
 * call sleeps on its operation.  So whoever gives the lock back looks at the inbox once more and shows the lane again.
 * SPDX-License-Identifier: MIT */
#include <sched.h>
#include <stdlib.h>

#include "core/mix.h"
#include "core/mutant.h"
#include "engine/lanes/lane.h"
#include "engine/threads/lane_hold.h"

static _Thread_local struct lane *lane_held; /* by this thread */

bool lane_is_mine(const struct lane *lane)
{
    return lane_held == lane;
}

bool lane_try(struct lane *lane)
{
    if (pthread_mutex_trylock(&lane->lock) != 0) {
        return false;
    }
    lane_held = lane;
    return true;
}

void lane_let(struct lane *lane)
{
    lane_held = NULL;
    pthread_mutex_unlock(&lane->lock);
}

void lane_mask(struct lane *lane)
{
    pthread_mutex_lock(&lane->mask_lock);
    if (!lane->masked) {
        lane->masked = true;
        loop_change(lane->poller, &lane->outer, 0);
    }
    pthread_mutex_unlock(&lane->mask_lock);
}

/* False: it was shown already, or is not to be. */
static bool lane_show(struct lane *lane)
{
    pthread_mutex_lock(&lane->mask_lock);
    bool show = lane->masked && !atomic_load(&lane->driven);
    if (show) {
        lane->masked = false;
        loop_change(lane->poller, &lane->outer, EPOLLIN);
    }
    pthread_mutex_unlock(&lane->mask_lock);
    return show;
}

void lane_unmask(struct lane *lane)
{
    struct lane *held = lane_held;
    lane_show(lane);
    /* What was looked at without a system call must tell by its descriptor now.  Who holds the lane sees to that. */
    while (atomic_load(&lane->loop.any_polled) && held != lane && !MUTANT(REST_NOT) && lane_try(lane)) {
        if (!loop_rest(&lane->loop)) {
            loop_wake(&lane->loop);
        }
        lane_let(lane);
        lane_held = held;
        if (atomic_load(&lane->inbox_full)) { /* who left an order met us here, and left it to us */
            loop_wake(&lane->loop);
        }
        if (!lane_show(lane)) { /* else the poller met us here, and left it to us to show the lane */
            break;
        }
    }
}

static uint32_t peer_hash(uint64_t peer)
{
    return (uint32_t)mix64(0, peer);
}

uint32_t lane_peer_hash(struct list *by_peer)
{
    return peer_hash(LIST_ENTRY(by_peer, struct stream, by_peer)->peer);
}

struct list *lane_peers(struct lane *lane, uint64_t peer)
{
    return buckets_chain(&lane->peers, peer_hash(peer));
}

bool lane_post(struct lane *lane, const struct lane_order *order)
{
    struct lane_order *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    *copy = *order;
    pthread_mutex_lock(&lane->inbox_lock);
    list_append(&lane->inbox, &copy->all);
    atomic_store(&lane->inbox_full, true);
    pthread_mutex_unlock(&lane->inbox_lock);
    return true;
}

void lane_post_surely(struct lane *lane, const struct lane_order *order)
{
    while (!lane_post(lane, order)) {
        sched_yield();
    }
}

void lane_poke(struct lane *lane)
{
    if (lane_held == lane) {
        return; /* this thread looks before it sleeps or lets go */
    }
    lane_unmask(lane);
    loop_wake(&lane->loop);
}
