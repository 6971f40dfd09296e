/* test_master_stall.c - the stall time of a world, the smallest that a member of its view asks for: the master's silence in it.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/clock.h"
#include "tests/unit/master_peers.h"

/* A member of the world, which has been updated. */
static struct peer *member(struct cluster *c, const char *world, uint32_t stall_ms)
{
    c->stall_ms = stall_ms;
    struct peer *p = peer_join_world(c, 0, world);
    for (uint32_t i = 0; i + 1 < c->count && p->view == 0; i++) {
        if (strcmp(c->peers[i].world, world) == 0) {
            peer_vote(c, &c->peers[i], VOTE_UPDATE);
        }
    }
    EXPECT(p->view != 0);
    return p;
}

TEST(who_is_silent_is_excluded_after_the_stall_time_of_its_own_world) /* all worlds by one time, that of the master */
{
    struct cluster *c = cluster_new();
    c->beat_ms = 50;
    struct peer *long_one = member(c, "quick", 2000), *short_one = member(c, "quick", 400), *any = member(c, "quick", 0);
    for (int i = 0; i < 3; i++) {
        (void)member(c, "slow", 0);
    }
    struct peer *slow = &c->peers[4];
    EXPECT_EQ(long_one->last_view.plan.stall_ms, 400); /* the smallest */
    EXPECT_EQ(any->last_view.plan.stall_ms, 400);
    EXPECT_EQ(slow->last_view.plan.stall_ms, 0);
    short_one->mute = slow->mute = true;
    cluster_pass(c, 300);
    EXPECT(short_one->open && slow->open);
    EXPECT(c->now - (int64_t)any->told.sent_ns <= 80 * CLOCK_MS); /* a fifth */
    cluster_pass(c, 150);
    EXPECT(!short_one->open && slow->open);
    EXPECT_EQ(short_one->fence.cause, CAUSE_PEER_SILENT);
    EXPECT_EQ(any->member_count, 2);
    EXPECT_EQ(any->last_view.plan.stall_ms, 2000); /* of those that are left */
    any->mute = true;
    cluster_pass(c, 1900);
    EXPECT(any->open);
    cluster_pass(c, 200);
    EXPECT(!any->open && long_one->open && slow->open);
    cluster_pass(c, 8000);
    EXPECT(!slow->open);
    EXPECT_EQ(long_one->last_view.plan.stall_ms, 2000);
    cluster_free(c);
}

TEST(stall_time_of_a_world_is_at_most_the_masters) /* a world asks for an hour, and keeps its dead for so long */
{
    struct cluster *c = cluster_new();
    struct peer *a = member(c, "w", 3600000), *b = member(c, "w", 0), *other = member(c, "w", 0);
    b->mute = true;
    cluster_pass(c, 9900);
    EXPECT(b->open);
    cluster_pass(c, 200);
    EXPECT(!b->open && a->open && other->open);
    cluster_free(c);
}

TEST(a_short_pause_of_the_master_is_nobodys_silence) /* M7: all of a world with a short stall time are excluded when it wakes */
{
    struct cluster *c = cluster_new();
    c->beat_ms = 50;
    for (int i = 0; i < 2; i++) {
        (void)member(c, "quick", 400);
    }
    for (int i = 0; i < 6; i++) {
        (void)member(c, "slow", 0);
    }
    c->now += 900 * CLOCK_MS;
    cluster_pass(c, 300);
    EXPECT(c->peers[0].open && c->peers[1].open);
    c->peers[7].mute = true; /* in the other world it is not long enough */
    for (int i = 0; i < 20; i++) {
        c->now += 900 * CLOCK_MS;
        cluster_pass(c, 100);
    }
    EXPECT(c->peers[0].open && !c->peers[7].open);
    cluster_free(c);
}

TEST(silence_from_before_a_shorter_stall_time_is_no_fault) /* a view that is told of it excludes those who kept to the one before */
{
    struct cluster *c = cluster_new();
    struct peer *first = member(c, "w", 0);
    c->beat_ms = 100;
    c->stall_ms = 400;
    struct peer *second = peer_join_world(c, 0, "w");
    c->hold_persist = true;
    peer_vote(c, first, VOTE_UPDATE);
    EXPECT_EQ(second->view, 0);
    first->mute = true;
    cluster_pass(c, 3000);
    EXPECT(first->open && second->open);
    first->mute = false;
    cluster_persisted(c);
    EXPECT_EQ(second->member_count, 2);
    EXPECT_EQ(first->last_view.plan.stall_ms, 400);
    cluster_pass(c, 1000);
    EXPECT(first->open && second->open);
    c->hold_persist = false;
    cluster_persisted(c);
    first->mute = true;
    cluster_pass(c, 450);
    EXPECT(!first->open && second->open);
    cluster_free(c);
}
