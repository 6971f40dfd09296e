/* test_sync_distance.c - shared state of holders that are far away.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/sync_world.h"

enum { LEAF_ELEMENTS = 16 }; /* of the first entry */

/* Peer `holders` lacks so many leaves, which all others hold. */
static struct world *lacking(uint32_t holders, uint32_t leaves)
{
    EXPECT(leaves < WORLD_LEAVES);
    struct world *w = world_new(1 + holders, leaves * LEAF_ELEMENTS);
    struct world_peer *p = &w->peer[holders];
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        p->entries[0].data[leaf * 64] ^= 1;
    }
    world_hash(p);
    vote_all(w);
    world_elect(w, holders, 0, (1u << holders) - 1, 1u << holders, NONE);
    return w;
}

/* One-way delays until peer 1 has a state of 50 leaves, of each of so many holders. */
static uint32_t delays(uint32_t holders, int64_t one_way)
{
    struct world *w = lacking(holders, 50);
    struct world_peer *p = &w->peer[holders];
    uint32_t passed = 0;
    for (; p->staged == 0 && passed < 100; passed++) {
        uint32_t there = 0;
        for (uint32_t i = 0; i < w->frames; i++) {
            there += w->frame[i].used;
        }
        w->now += one_way;
        while (there-- > 0) {
            EXPECT(world_deliver(w, 0)); /* the oldest */
        }
    }
    expect_staged(p, 1, STAGED_OK, 0);
    world_free(w);
    return passed;
}

TEST(more_is_asked_of_sources_far_away_the_more_comes) /* 4 MiB a round trip would be 335 Mb/s at 100 ms */
{
    for (uint32_t holders = 1; holders <= 2; holders++) { /* within a site four hide a round trip */
        uint32_t near = delays(holders, 100000), far = delays(holders, 50000000);
        EXPECT(near < 100 && 4 * far <= 3 * near);
    }
}

TEST(no_more_is_asked_of_a_source_that_was_busy_once) /* it copies what it sends: 64 leaves were 64 MiB */
{
    struct world *w = lacking(1, 200);
    struct world_peer *p = &w->peer[1];
    bool busy = true;
    for (int step = 0; p->staged == 0 && step < 1000; step++) {
        w->now += busy && p->open_asks[0] > 0 ? 10000000 : 100000;
        busy = busy && p->open_asks[0] == 0;
        EXPECT(world_deliver(w, 0));
    }
    expect_staged(p, 1, STAGED_OK, 0);
    EXPECT(p->most_open <= 16); /* the four that waited for the first, and what was asked meanwhile, came late, too */
    world_free(w);
}
