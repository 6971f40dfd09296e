/* test_master_calibration.c - what members tell of how long operations took, and what the next view counts with.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

static const uint32_t order[4] = {0, 1, 2, 3};

/* Four members with trees; each link carries 100 Mb/s. */
static struct cluster *measured(void)
{
    struct cluster *c = cluster_voted(4);
    cluster_measure(c, peer_rate_alike, true);
    cluster_solved(c, c->solve, order, 4);
    EXPECT(c->peers[0].trees.count > 0);
    return c;
}

static void says(struct cluster *c, const struct peer *p, uint64_t view, enum took_kind kind, uint16_t permille)
{
    unsigned char bytes[64];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_took(&w, &(struct msg_took){.kind = (uint8_t)kind, .permille = permille, .bytes = 1 << 24, .took_us = 1000000});
    cluster_frame_of(c, p->conn, FRAME_TOOK, bytes, (uint32_t)w.used, p->run, view);
}

static void vote(struct cluster *c)
{
    uint64_t before = c->solve;
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    EXPECT(c->solve != before);
    cluster_solved(c, c->solve, order, 4);
    EXPECT(!c->peers[0].voting);
}

static bool times(uint32_t now, uint32_t before, double factor)
{
    return now > before * (factor - 0.01) && now < before * (factor + 0.01);
}

TEST(view_counts_with_what_operations_have_shown) /* it chose a plan that took twice as long as another one would */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    struct plan_view before = p[0].last_view.plan;
    uint64_t view = p[0].view;
    for (int i = 0; i < 3; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1500);
        says(c, &p[i], view, TOOK_FOREST, 1200);
    }
    EXPECT_EQ(p[0].view, view); /* nobody has asked */
    vote(c);
    EXPECT(p[0].view != view);
    EXPECT(times(p[0].last_view.plan.link_ps, before.link_ps, 1.5));
    EXPECT(times(p[0].last_view.plan.tree_mib_ns, before.tree_mib_ns, 1.2));
    EXPECT_EQ(p[0].last_view.plan.ring_ps, before.ring_ps);
    EXPECT_EQ(p[0].last_view.plan.ring_delay_us, before.ring_delay_us);
    view = p[0].view;
    vote(c); /* nothing is new */
    EXPECT_EQ(p[0].view, view);
    for (int i = 0; i < 3; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1050); /* within what times differ by */
    }
    vote(c);
    EXPECT_EQ(p[0].view, view);
    for (int i = 0; i < 3; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 800); /* on top of what the view counts with */
        says(c, &p[i], view, TOOK_RING, 1300);
    }
    vote(c);
    EXPECT(times(p[0].last_view.plan.link_ps, before.link_ps, 1.2));
    EXPECT(times(p[0].last_view.plan.ring_ps, before.ring_ps, 1.3));
    EXPECT(times(p[0].last_view.plan.tree_mib_ns, before.tree_mib_ns, 1.2));
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

static void update(struct cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
    EXPECT(!c->peers[0].voting);
}

/* All members have told that, and nobody asks for a while. */
static void all_say(struct cluster *c, enum took_kind kind, uint16_t permille)
{
    for (uint32_t i = 0; i < c->count; i++) {
        says(c, &c->peers[i], c->peers[i].view, kind, permille);
    }
    cluster_pass(c, 31000);
}

TEST(update_makes_a_view_of_what_operations_have_shown) /* a loop that never asks for a better ring kept its slow plan */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.link_ps;
    uint64_t view = p[0].view;
    cluster_pass(c, 29000);
    for (int i = 0; i < 3; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1500);
    }
    update(c);
    EXPECT_EQ(p[0].view, view); /* not more often than every 30 s */
    cluster_pass(c, 2000);
    EXPECT_EQ(p[0].view, view); /* nobody has asked */
    update(c);
    EXPECT(p[0].view != view && p[3].view == p[0].view);
    EXPECT_EQ(p[0].last_view.answers, VOTE_UPDATE);
    EXPECT(times(p[0].last_view.plan.link_ps, before, 1.5));
    EXPECT(p[0].trees.count > 0);
    view = p[0].view;
    update(c);
    cluster_pass(c, 31000);
    update(c); /* nothing is new */
    EXPECT_EQ(p[0].view, view);
    for (int i = 0; i < 3; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1300);
    }
    update(c); /* it has just been looked at */
    EXPECT_EQ(p[0].view, view);
    cluster_pass(c, 31000);
    update(c);
    EXPECT(p[0].view != view);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(one_member_alone_changes_no_prediction) /* one that lies could send all others another way */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    says(c, &p[0], view, TOOK_DIRECT, 1900);
    says(c, &p[1], view, TOOK_DIRECT, 2000); /* two of four are no majority */
    vote(c);
    EXPECT_EQ(p[0].view, view);
    says(c, &p[1], view, TOOK_DIRECT, 1000);
    says(c, &p[2], view, TOOK_DIRECT, 1000);
    vote(c);
    EXPECT_EQ(p[0].view, view);
    says(c, &p[3], view, TOOK_DIRECT, 600);
    vote(c);
    EXPECT_EQ(p[0].view, view);
    cluster_free(c);
}

TEST(slow_members_count_more_than_fast_ones) /* the fast half had its results early, and the median said that all had */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.link_ps;
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_DIRECT, (uint16_t)(i < 2 ? 1000 : 1500 + 100 * i));
    }
    vote(c);
    EXPECT(times(p[0].last_view.plan.link_ps, before, 1.7)); /* but the slowest one alone does not */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(what_was_true_of_another_view_is_not_counted) /* its factor would be applied twice */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint64_t old = p[0].view;
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], old, TOOK_DIRECT, 2000);
    }
    vote(c);
    uint64_t view = p[0].view;
    uint32_t ps = p[0].last_view.plan.link_ps;
    EXPECT(view != old);
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], old, TOOK_DIRECT, 2000); /* was on its way */
    }
    vote(c);
    EXPECT_EQ(p[0].view, view);
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1500);
    }
    peer_crash(c, &p[3]); /* a view for another reason takes it, too: as a factor, since other members have other links */
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(times(p[0].last_view.plan.link_ps, ps, 1.5));
    cluster_free(c);
}

TEST(what_no_model_is_wrong_by_is_left_to_probes) /* a network that has changed so much is to be measured again */
{
    static const uint16_t told[] = {4001, 10000, 499, 1};
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    uint32_t before = p[0].last_view.plan.link_ps;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 4; i++) {
            says(c, &p[i], view, TOOK_DIRECT, told[k]);
        }
        vote(c);
        EXPECT_EQ(p[0].view, view);
    }
    static const uint16_t steps[] = {2000, 2000, 600, 1000}; /* 2, 4, 2.4 */
    static const double sum[] = {2, 4, 2.4, 2.4};
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 4; i++) {
            says(c, &p[i], p[0].view, TOOK_DIRECT, steps[k]);
        }
        vote(c);
        EXPECT(times(p[0].last_view.plan.link_ps, before, sum[k]));
    }
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_DIRECT, 2000); /* 4.8 in all */
    }
    vote(c);
    EXPECT(times(p[0].last_view.plan.link_ps, before, 4)); /* near the bound noise does not make the fourfold of it */
    cluster_free(c);
}

static uint64_t three_quarters(const struct cluster *c, uint64_t from, uint64_t to)
{
    return peer_rate_alike(c, from, to) / 4 * 3;
}

TEST(links_that_are_measured_again_do_not_count_twice) /* a network that had become slower was predicted to be slower by the square of it */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.link_ps;
    cluster_pass(c, 31000);
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_DIRECT, 1333);
        for (int k = 0; k < 4; k++) {
            struct msg_measured doubt = {.round = MEASURED_DOUBT, .to = p[k].id, .bits_per_second = 75000000};
            if (i != k) {
                peer_says_measured(c, &p[i], &doubt);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT(cluster_measure(c, three_quarters, true) > 0);
    cluster_solved(c, c->solve, order, 4);
    EXPECT(times(p[0].last_view.plan.link_ps, before, 1.333)); /* as operations took, and as links are now */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(what_nobody_has_told_for_twenty_minutes_is_forgotten) /* a plan that was slow once would never be tried again */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.ring_ps;
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_RING, 2000);
    }
    vote(c);
    EXPECT(times(p[0].last_view.plan.ring_ps, before, 2));
    for (int minute = 1; minute <= 21; minute++) { /* views in between do not keep it */
        cluster_pass(c, 60000);
        update(c);
        uint32_t now = p[0].last_view.plan.ring_ps;
        EXPECT(minute != 10 || (now > before / 100 * 140 && now < before / 100 * 170));
        EXPECT(minute != 21 || now < before / 100 * 112);
    }
    cluster_free(c);
}

TEST(other_ring_does_not_take_the_time_of_the_old_one) /* it is there to be faster */
{
    struct cluster *c = measured();
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.ring_ps;
    cluster_pass(c, 31000);
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_RING, 1500);
        peer_says_measured(c, &p[i], &(struct msg_measured){.round = MEASURED_DOUBT, .to = p[(i + 1) % 4].id, .bits_per_second = 75000000});
    }
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT(cluster_measure(c, three_quarters, true) > 0);
    static const uint32_t other[4] = {0, 2, 1, 3};
    cluster_solved(c, c->solve, other, 4);
    EXPECT(times(p[0].last_view.plan.ring_ps, before, 1.5 / 0.75)); /* as a factor: on the old ring it would be 1.5 */
    cluster_free(c);
}

TEST(measured_rates_that_are_like_the_guess_make_a_view) /* members would go on as if nothing were known: no word of times, no doubt */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 50000000;
    c->rtt_us = 100000;
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    EXPECT(p[0].last_view.plan.link_ps == 80000 && p[0].last_view.plan.measured == 0);
    for (int i = 0; i < 2; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, peer_rate_alike, true);
    EXPECT(p[0].last_view.plan.link_ps == 80000 && p[0].last_view.plan.measured == 1);
    cluster_free(c);
}

/* What a group of that many counts with once its links are measured, `delay_ns` apart. */
static struct cluster *measured_apart(uint32_t members, uint32_t delay_ns)
{
    struct cluster *c = cluster_new();
    c->delay_ns = delay_ns;
    c->rtt_us = delay_ns / 500;
    cluster_members(c, members, 0);
    for (uint32_t i = 0; i < members; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, peer_rate_alike, true);
    uint32_t ring[16];
    for (uint32_t i = 0; i < members; i++) {
        ring[i] = i;
    }
    cluster_solved(c, c->solve, ring, members);
    EXPECT_EQ(c->peers[0].last_view.plan.measured, 1);
    return c;
}

TEST(more_members_that_are_far_apart_count_with_more_time) /* the first prediction of eight was 30 % too short for each plan */
{
    static const struct {
        uint32_t members, delay_ns;
        double factor;
    } groups[] = {{2, 50000000, 1}, {3, 50000000, 1.05}, {4, 50000000, 1.1}, {8, 50000000, 1.3}, {12, 50000000, 1.5}, {14, 50000000, 1.5},
                  {8, 2500000, 1},  {8, 2502000, 1.3}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        struct cluster *near = measured_apart(groups[i].members, 50000), *far = measured_apart(groups[i].members, groups[i].delay_ns);
        const struct plan_view *a = &near->peers[0].last_view.plan, *b = &far->peers[0].last_view.plan;
        EXPECT(times(b->link_ps, a->link_ps, groups[i].factor));
        EXPECT(groups[i].members < 3 || times(b->ring_ps, a->ring_ps, groups[i].factor));
        EXPECT(groups[i].members < 3 || times(b->tree_mib_ns, a->tree_mib_ns, groups[i].factor));
        EXPECT(!master_poisoned(near->master) && !master_poisoned(far->master));
        cluster_free(near);
        cluster_free(far);
    }
}

TEST(word_of_members_takes_the_place_of_what_their_number_says) /* ... and is forgotten in its favour */
{
    struct cluster *c = measured_apart(8, 50000000);
    struct peer *p = c->peers;
    uint32_t before = p[0].last_view.plan.link_ps;
    all_say(c, TOOK_DIRECT, 2000); /* of a prediction that has the factor in it */
    for (int minute = 0; minute <= 21; minute++) {
        update(c);
        EXPECT(minute != 0 || times(p[0].last_view.plan.link_ps, before, 2));
        cluster_pass(c, 60000);
    }
    EXPECT(p[0].last_view.plan.link_ps >= before && p[0].last_view.plan.link_ps < before / 100 * 112);
    cluster_free(c);
}

TEST(plan_that_does_well_does_not_make_others_look_slow) /* a ring that was a quarter faster would never be tried */
{
    struct cluster *c = measured_apart(8, 50000000);
    struct peer *p = c->peers;
    struct plan_view before = p[0].last_view.plan;
    all_say(c, TOOK_DIRECT, 770); /* as its links need */
    update(c);
    EXPECT(times(p[0].last_view.plan.link_ps, before.link_ps, 0.77));
    EXPECT(times(p[0].last_view.plan.ring_ps, before.ring_ps, 0.77));
    EXPECT(times(p[0].last_view.plan.tree_mib_ns, before.tree_mib_ns, 0.77));
    before = p[0].last_view.plan;
    all_say(c, TOOK_DIRECT, 1600);
    update(c);
    EXPECT(times(p[0].last_view.plan.link_ps, before.link_ps, 1.6));
    EXPECT(times(p[0].last_view.plan.ring_ps, before.ring_ps, 1.3)); /* not more than is usual */
    cluster_free(c);
}

TEST(fewer_members_take_less_time) /* a group that had shrunk left its plan, whose factor was that of the larger one */
{
    struct cluster *c = measured_apart(8, 50000000);
    struct peer *p = c->peers;
    all_say(c, TOOK_DIRECT, 1000);
    update(c);
    for (int i = 7; i > 3; i--) {
        peer_crash(c, &p[i]);
    }
    EXPECT_EQ(p[0].member_count, 4);
    struct cluster *fresh = measured_apart(4, 50000000);
    EXPECT(times(p[0].last_view.plan.link_ps, fresh->peers[0].last_view.plan.link_ps, 1));
    cluster_free(fresh);
    cluster_free(c);
}

TEST(an_update_looks_at_few_groups_and_begins_with_those_that_waited_longest) /* the last one would never be looked at */
{
    struct master_config config = cluster_config();
    enum { GROUPS = 20 };
    config.max_members = config.max_groups = 2 * GROUPS;
    config.max_connections = config.max_registered = 4 * GROUPS;
    struct cluster *c = cluster_with(&config);
    struct peer *p = c->peers;
    for (uint32_t i = 0; i < 2 * GROUPS; i++) {
        peer_join(c, 1 + i / 2);
    }
    peer_vote(c, &p[0], VOTE_UPDATE);
    for (uint32_t i = 0; i < 2 * GROUPS; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, peer_rate_alike, true);
    uint32_t before = p[0].last_view.plan.link_ps, changed[2] = {0, 0};
    for (uint32_t i = 0; i < 2 * GROUPS; i++) {
        EXPECT(p[i].last_view.plan.measured == 1 && p[i].last_view.plan.link_ps == before);
        says(c, &p[i], p[i].view, TOOK_DIRECT, 1500);
    }
    for (int round = 0; round < 2; round++) {
        cluster_pass(c, 31000);
        for (uint32_t i = 0; i < 2 * GROUPS; i++) {
            peer_vote(c, &p[i], VOTE_UPDATE);
        }
        for (uint32_t i = 0; i < 2 * GROUPS; i++) {
            changed[round] += times(p[i].last_view.plan.link_ps, before, 1.5);
        }
    }
    EXPECT(changed[0] == 2 * 16 && changed[1] == 2 * GROUPS);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(guess_is_not_corrected) /* a factor would grow with each view, since the guess stays */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 50000000;
    cluster_members(c, 4, 0);
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    EXPECT(p[0].last_view.plan.link_ps == 80000 && p[0].last_view.plan.measured == 0);
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], view, TOOK_DIRECT, 1900);
    }
    cluster_pass(c, 31000);
    update(c);
    EXPECT(p[0].view == view && p[0].last_view.plan.link_ps == 80000);
    cluster_free(c);
}

TEST(of_two_the_one_that_changes_less_counts) /* one of a pair could halve what is predicted for both */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    for (int i = 0; i < 2; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, peer_rate_alike, true);
    uint32_t before = p[0].last_view.plan.link_ps;
    static const uint16_t lies[] = {600, 1900};
    for (int k = 0; k < 2; k++) {
        says(c, &p[0], p[0].view, TOOK_DIRECT, lies[k]);
        says(c, &p[1], p[0].view, TOOK_DIRECT, 1050);
        for (int i = 0; i < 2; i++) {
            peer_vote(c, &p[i], VOTE_OPTIMISE);
        }
        EXPECT(!p[0].voting && p[0].last_view.plan.measured == 1);
        EXPECT_EQ(p[0].last_view.plan.link_ps, before);
    }
    cluster_free(c);
}

static void vote_of(struct cluster *c, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, peer_rate_alike, true);
    cluster_solved(c, c->solve, order, 4);
    EXPECT(!c->peers[first].voting);
}

TEST(group_that_begins_anew_has_learnt_nothing) /* others had its place, on other links */
{
    struct cluster *c = cluster_new();
    struct peer *p = c->peers;
    for (uint32_t i = 0; i < 5; i++) {
        peer_join(c, i < 4 ? 7 : 8); /* the last one stays */
    }
    peer_vote(c, &p[0], VOTE_UPDATE);
    vote_of(c, 0, 5);
    uint32_t before = p[0].last_view.plan.link_ps;
    for (int i = 0; i < 4; i++) {
        says(c, &p[i], p[0].view, TOOK_DIRECT, 2000);
    }
    vote_of(c, 0, 5);
    EXPECT(times(p[0].last_view.plan.link_ps, before, 2));
    for (int i = 0; i < 4; i++) {
        peer_leave(c, &p[i]);
    }
    for (int i = 0; i < 4; i++) {
        peer_join(c, 9);
    }
    peer_vote(c, &p[4], VOTE_UPDATE);
    EXPECT_EQ(p[5].member_count, 4);
    vote_of(c, 4, 9);
    EXPECT(times(p[5].last_view.plan.link_ps, before, 1));
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(a_time_that_cannot_be_costs_its_sender_its_place)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct cluster *c = measured();
        struct peer *p = c->peers;
        says(c, &p[3], p[0].view, wrong ? TOOK_KINDS : TOOK_RING, wrong ? 1000 : 0);
        EXPECT(!p[3].open && p[0].open);
        EXPECT_EQ(p[0].member_count, 3);
        EXPECT(!master_poisoned(c->master));
        cluster_free(c);
    }
}
