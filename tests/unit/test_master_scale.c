/* test_master_scale.c - a master with as many members and worlds as its bounds allow, and one more.
 * SPDX-License-Identifier: MIT */
#include "bench/master_crowd.h"
#include "tests/testing.h"

static struct crowd *lenient(uint32_t worlds, uint32_t members, bool sized)
{
    struct crowd *b = crowd_new(worlds, members, sized);
    b->lenient = true;
    return b;
}

/* The members of one elastic world: the first is admitted at once, the others wait for its update. */
static struct crowd *one_world(uint32_t members)
{
    struct crowd *b = lenient(1, members, false);
    b->config.check_every = 1 << 20;
    for (uint32_t i = 0; i < members; i++) {
        crowd_open_peer(b, i, 0, i);
    }
    crowd_all_vote(b, VOTE_UPDATE);
    return b;
}

static bool all_in(const struct crowd *b, uint64_t view)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct peer *p = &b->peers[i];
        if (p->open && (p->view != view || p->kind != VOTE_NONE)) {
            return false;
        }
    }
    return !master_poisoned(b->master);
}

TEST(world_takes_as_many_members_as_a_view_may_have_and_refuses_one_more) /* a list that is too long for its message */
{
    struct crowd *b = one_world(BOUNDS_MEMBERS);
    EXPECT_EQ(b->refused, 0);
    EXPECT(b->peers[0].view != 0 && all_in(b, b->peers[0].view));
    crowd_open_peer(b, BOUNDS_MEMBERS, 0, 0);
    EXPECT(b->refused == 1 && strstr(b->refusal, "full") != NULL);
    b->count = BOUNDS_MEMBERS;
    uint64_t before = b->peers[0].view;
    b->peers[7].open = false; /* dies */
    crowd_run(b, &(struct master_event){.kind = MASTER_CLOSED, .connection = b->peers[7].conn});
    say_lost(b, &b->peers[8], b->peers[7].id, CAUSE_PEER_LOST);
    crowd_deliver(b);
    EXPECT(b->peers[0].view > before && all_in(b, b->peers[0].view));
    crowd_free(b);
}

TEST(configuration_beyond_the_bounds_is_none) /* a place that its numbers have no bits for */
{
    struct crowd *b = lenient(1, 4, false);
    struct master_config c = b->config;
    EXPECT(master_arena_bytes(&c) > 0);
    c.max_worlds = BOUNDS_WORLDS;
    c.max_connections = c.max_registered = BOUNDS_CONNECTIONS;
    c.max_members = BOUNDS_MEMBERS;
    EXPECT(master_arena_bytes(&c) > 0);
    c.max_worlds++;
    EXPECT_EQ(master_arena_bytes(&c), 0);
    c.max_worlds--;
    c.max_connections++;
    EXPECT_EQ(master_arena_bytes(&c), 0);
    c.max_connections--;
    c.max_members++;
    EXPECT_EQ(master_arena_bytes(&c), 0);
    crowd_free(b);
}

TEST(worlds_find_places_in_tables_that_grow_until_the_limit) /* one name takes the place of another, or none is found any more */
{
    enum { WORLDS = 300 };
    struct crowd *b = lenient(WORLDS, 1, false); /* the default one has a place of its own */
    for (uint32_t w = 0; w < WORLDS; w++) {
        crowd_open_peer(b, w, w, 0);
    }
    EXPECT(b->refused == 0 && master_world_count(b->master) == WORLDS);
    for (uint32_t w = 0; w < WORLDS; w++) {
        for (uint32_t k = w > 3 ? w - 3 : 0; k < w; k++) {
            EXPECT(b->peers[k].run != b->peers[w].run);
        }
    }
    crowd_open_peer(b, WORLDS, WORLDS, 0);
    EXPECT(b->refused == 1 && strstr(b->refusal, "no room for another world") != NULL);
    for (uint32_t w = 0; w < WORLDS; w += 2) { /* they end with their only member, and give their places to others */
        crowd_run(b, &(struct master_event){.kind = MASTER_CLOSED, .connection = b->peers[w].conn});
        b->peers[w].open = false;
    }
    b->now += b->config.reconnect_ns;
    crowd_ticks(b);
    EXPECT_EQ(master_world_count(b->master), WORLDS / 2);
    for (uint32_t w = 0; w < WORLDS; w += 2) {
        crowd_open_peer(b, w, w, 0);
    }
    EXPECT(b->refused == 1 && master_world_count(b->master) == WORLDS && !master_poisoned(b->master));
    crowd_free(b);
}

TEST(no_more_is_remembered_of_failed_worlds_than_the_bound) /* who fails again and again takes all places, or all memory */
{
    enum { FAILED = BOUNDS_TOMBSTONES + 200 };
    struct crowd *b = lenient(4 * FAILED, 2, true);
    for (uint32_t w = 0; w < FAILED; w++) { /* one of two ranks claims, and goes */
        crowd_open_peer(b, 0, w, 0);
        crowd_run(b, &(struct master_event){.kind = MASTER_CLOSED, .connection = b->peers[0].conn});
    }
    EXPECT_EQ(master_world_count(b->master), BOUNDS_TOMBSTONES);
    EXPECT(!master_poisoned(b->master));
    crowd_free(b);
}

TEST(group_beyond_the_bound_keeps_its_ring_and_says_so) /* tables of n^2 entries for ten thousand members */
{
    static const struct {
        uint32_t members;
        bool searched;
    } rows[] = {{5, true}, {BOUNDS_RING + 1, false}};
    for (uint32_t i = 0; i < 2; i++) {
        struct crowd *b = one_world(rows[i].members);
        uint64_t view = b->peers[0].view;
        b->listen = "keeps its ring";
        crowd_all_vote(b, VOTE_OPTIMISE);
        EXPECT_EQ(b->probes > 0, rows[i].searched);
        EXPECT_EQ(b->solves, 0);
        EXPECT_EQ(all_in(b, view), !rows[i].searched); /* measuring takes its time; else all are answered at once */
        EXPECT_EQ(b->heard, !rows[i].searched);
        crowd_free(b);
    }
}

TEST(each_of_many_is_told_once_what_was_elected) /* lists to each of many members overflow what a step may say */
{
    enum { MEMBERS = 2000 };
    struct crowd *b = one_world(MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        b->peers[i].content = i % 3 == 0 ? 5 : 8;
    }
    crowd_all_vote(b, VOTE_SYNC);
    crowd_ticks(b);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        wrong += b->peers[i].content != 8 || b->peers[i].elected != 1;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT(all_in(b, b->peers[0].view));
    EXPECT((uint64_t)b->out_most < (uint64_t)MEMBERS * MEMBERS * 8); /* it was more than one step's */
    crowd_free(b);
}

TEST(heartbeat_follows_waits_no_further_than_the_bound) /* each heartbeat of ten thousand walks along ten thousand */
{
    enum { MEMBERS = BOUNDS_WAIT_CHAIN + 20 };
    struct crowd *b = one_world(MEMBERS);
    for (uint32_t i = 0; i + 1 < MEMBERS; i++) { /* each waits for the next one's data */
        struct msg_heartbeat hb = {.wait = {.name = {.tag = i, .seq = 1}, .on = b->peers[i + 1].id, .phase = WAIT_DATA}};
        put_heartbeat(say(), &hb);
        said(b, b->peers[i].conn, FRAME_HEARTBEAT, b->peers[i].run, b->peers[i].view);
    }
    crowd_deliver(b);
    b->now += b->config.heartbeat_ns;
    crowd_ticks(b);
    EXPECT(b->told.phase == WAIT_DATA && b->told.name.tag == BOUNDS_WAIT_CHAIN);
    EXPECT_EQ(b->told.on, b->peers[BOUNDS_WAIT_CHAIN + 1].id);
    crowd_free(b);
}

TEST(pairs_that_break_are_counted_apart_however_many_they_are) /* the count of one pair goes to another, or is forgotten too soon */
{
    enum { MEMBERS = 40, TIMES = 3 };
    struct crowd *b = one_world(MEMBERS);
    uint64_t first = b->peers[0].view;
    for (uint32_t times = 0; times < TIMES; times++) { /* in each view every link between neighbours, but the first member's */
        uint64_t view = b->peers[0].view;
        for (uint32_t i = 2; i < MEMBERS; i++) {
            uint32_t other = i == 2 ? 10 + times : i - 1; /* of one member another link each time: none of them counts thrice */
            say_lost(b, &b->peers[i], b->peers[other].id, CAUSE_LINK_LOST);
            say_lost(b, &b->peers[other], b->peers[i].id, CAUSE_LINK_LOST); /* both ends tell, and it counts once */
        }
        crowd_deliver(b);
        EXPECT(b->peers[0].view > view && all_in(b, b->peers[0].view));
    }
    EXPECT_EQ(b->peers[0].view, first + TIMES);
    EXPECT_EQ(b->edges, MEMBERS - 3); /* the third time makes each a missing one */
    crowd_free(b);
}
