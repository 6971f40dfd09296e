/* test_master_join.c - who joins a world of a given size later, and under which rank (W13).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "master_peers.h"
#include "tests/testing.h"

static struct peer *join(struct cluster *c, uint32_t size, uint32_t rank)
{
    struct peer *p = &c->peers[c->count++];
    memset(p, 0, sizeof *p);
    memcpy(p->world, "w", 2);
    p->claim = (struct claim){.size = size, .rank = rank, .join = 1};
    peer_create_again(c, p);
    return p;
}

/* A world of so many ranks that shrinks: peers 0 and so on. */
static struct cluster *shrinking(uint32_t size)
{
    struct cluster *c = cluster_new();
    for (uint32_t i = 0; i < size; i++) {
        peer_create(c, "w", &(struct claim){.size = size, .rank = i, .loss = LOSS_SHRINK});
    }
    return c;
}

static void update(struct cluster *c, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (c->peers[i].open && c->peers[i].view != 0) {
            peer_vote(c, &c->peers[i], VOTE_UPDATE);
        }
    }
}

/* The key under which one sees another. */
static uint32_t key_of(const struct peer *p, const struct peer *of)
{
    for (uint32_t i = 0; i < p->last_view.added; i++) {
        if (p->infos[i].id == of->id) {
            return p->infos[i].key;
        }
    }
    return UINT32_MAX;
}

TEST(joiners_enter_by_an_update_under_free_ranks_named_or_the_lowest)
{
    struct cluster *c = shrinking(5);
    struct peer *p = c->peers;
    peer_crash(c, &p[1]);
    peer_crash(c, &p[3]);
    peer_crash(c, &p[4]);
    cluster_pass(c, 3000);
    struct peer *any = join(c, 5, CLAIM_ANY_RANK), *named = join(c, 5, 3), *last = join(c, 5, CLAIM_ANY_RANK);
    EXPECT_STR(any->log, "WELCOME ");
    EXPECT_EQ(p[0].member_count, 2); /* not before the members ask for it */
    update(c, 0, 5);
    EXPECT(p[0].member_count == 5 && any->member_count == 5);
    EXPECT(key_of(&p[0], any) == 1 && key_of(&p[0], named) == 3 && key_of(&p[0], last) == 4);
    EXPECT(key_of(any, &p[2]) == 2 && key_of(any, any) == 1);
    EXPECT_EQ(any->run, p[0].run);
    peer_crash(c, named); /* a joiner's rank becomes free like any other */
    cluster_pass(c, 3000);
    struct peer *again = join(c, 5, CLAIM_ANY_RANK);
    update(c, 0, c->count);
    EXPECT(p[0].member_count == 5 && key_of(&p[0], again) == 3);
    cluster_free(c);
}

TEST(a_rank_that_is_held_when_the_update_is_answered_is_refused)
{
    struct cluster *c = shrinking(3);
    struct peer *p = c->peers;
    struct peer *held = join(c, 3, 1), *full = join(c, 3, CLAIM_ANY_RANK), *mine = join(c, 3, 2), *late = join(c, 3, 2);
    EXPECT(held->open && full->open && mine->open && late->open); /* a holder may go until then, */
    peer_crash(c, &p[2]);
    cluster_pass(c, 3000);
    p[0].no_link = true;
    update(c, 0, 3);
    EXPECT_EQ(held->fence.cause, CAUSE_KICK_TAKEN);
    EXPECT_STR(held->fence.text, "rank 1 of the world has not become free");
    EXPECT(full->open && !mine->open && !late->open); /* one after the other: the first takes what the next have named */
    EXPECT_EQ(mine->fence.cause, CAUSE_KICK_TAKEN);
    p[0].no_link = false;
    peer_linked(&p[0]);
    cluster_pass(c, 1100);
    EXPECT(p[0].member_count == 3 && key_of(&p[0], full) == 2);
    struct peer *none = join(c, 3, CLAIM_ANY_RANK);
    update(c, 0, c->count);
    EXPECT_EQ(none->fence.cause, CAUSE_KICK_FULL);
    EXPECT_STR(none->fence.text, "none of the world's ranks is free");
    EXPECT(p[0].member_count == 3 && !p[0].voting); /* answered all the same */
    cluster_free(c);
}

TEST(a_rank_of_who_is_lost_while_links_are_made_is_free_in_that_update)
{
    struct cluster *c = shrinking(3);
    struct peer *p = c->peers;
    peer_crash(c, &p[2]);
    cluster_pass(c, 3000);
    struct peer *any = join(c, 3, CLAIM_ANY_RANK);
    any->no_link = true;
    update(c, 0, 3);
    struct peer *named = join(c, 3, 2);
    any->no_link = false;
    peer_crash(c, &p[1]); /* a new attempt: all are looked at once more */
    EXPECT(p[0].member_count == 3 && key_of(&p[0], any) == 1 && key_of(&p[0], named) == 2);
    cluster_free(c);
}

TEST(a_world_without_members_refuses_who_waits_to_join_it)
{
    for (int i = 0; i < 3; i++) {
        struct cluster *c = shrinking(2);
        struct peer *p = c->peers, *late = join(c, 2, CLAIM_ANY_RANK);
        if (i == 0) { /* the last ones go */
            peer_leave(c, &p[0]);
            peer_leave(c, &p[1]);
        } else if (i == 1) { /* ... while they admit it */
            peer_leave(c, &p[1]);
            late->no_link = true;
            update(c, 0, 1);
            EXPECT(late->open);
            peer_leave(c, &p[0]);
        } else {
            peer_revoke(c, &p[0]);
        }
        EXPECT_EQ(late->fence.cause, CAUSE_KICK_NO_WORLD);
        EXPECT_STR(late->fence.text, "nobody is left in that world");
        EXPECT(!late->open);
        cluster_free(c);
    }
}

TEST(who_joins_gets_the_newest_world_that_has_begun)
{
    struct cluster *c = shrinking(2);
    peer_leave(c, &c->peers[1]);
    for (uint32_t i = 0; i < 2; i++) {
        peer_create(c, "w", &(struct claim){.size = 2, .rank = i, .loss = LOSS_SHRINK});
    }
    struct peer *p = c->peers, *forming = peer_create(c, "w", &(struct claim){.size = 2});
    peer_leave(c, &p[3]);
    struct peer *joiner = join(c, 2, CLAIM_ANY_RANK);
    EXPECT(joiner->run == p[2].run && joiner->run != p[0].run);
    update(c, 2, 3);
    EXPECT(joiner->member_count == 2 && p[0].member_count == 1);
    EXPECT(forming->open && forming->view == 0);
    peer_leave(c, joiner);
    peer_leave(c, &p[2]);
    EXPECT_EQ(join(c, 2, CLAIM_ANY_RANK)->run, p[0].run); /* the newest that has members */
    cluster_free(c);
}

TEST(what_cannot_be_joined_is_refused_at_once_with_the_reason)
{
    struct cluster *c = cluster_new();
    struct peer *p = join(c, 2, 0);
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_NO_WORLD);
    EXPECT_STR(p->fence.text, "no world of that name has members");
    EXPECT_EQ(master_world_count(c->master), 0);
    peer_create(c, "w", &(struct claim){.size = 2});
    EXPECT_STR(join(c, 2, 0)->fence.text, "the world of that name has not begun");
    peer_create(c, "w", &(struct claim){.size = 2, .rank = 1});
    p = join(c, 2, 0);
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_TAKEN);
    EXPECT_STR(p->fence.text, "that world ends with its first loss, so none of its ranks is ever free");
    cluster_free(c);
    c = shrinking(2);
    EXPECT_STR(join(c, 3, 0)->fence.text, "that world was created with 2 ranks, not with 3");
    cluster_free(c);
    c = cluster_new();
    peer_join_world(c, 0, "w");
    EXPECT_STR(join(c, 2, 0)->fence.text, "the world of that name is open to all who join: it has no size");
    cluster_free(c);
}

TEST(a_joiner_that_is_lost_with_its_admission_on_record_keeps_its_rank_in_that_view) /* nobody else is seen under it */
{
    struct cluster *c = shrinking(3);
    struct peer *p = c->peers;
    peer_crash(c, &p[2]);
    cluster_pass(c, 3000);
    struct peer *one = join(c, 3, 2);
    c->hold_persist = true;
    update(c, 0, 2);
    peer_cut(c, one);
    cluster_pass(c, 100);
    c->hold_persist = false;
    p[0].no_frozen = true;
    cluster_persisted(c);
    EXPECT(p[0].member_count == 3 && key_of(&p[0], one) == 2);
    p[0].no_frozen = false;
    peer_frozen(&p[0]);
    cluster_pass(c, 1100);
    EXPECT_EQ(p[0].member_count, 2);
    cluster_free(c);
}
