/* test_master_formation.c - worlds of a given size at the master: seats and claims, one word for all, tombstones, loss rules.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master_peers.h"
#include "tests/testing.h"

static struct peer *create(struct cluster *c, uint32_t size, uint32_t rank)
{
    return peer_create(c, "w", &(struct claim){.size = size, .rank = rank});
}

static void create_all(struct cluster *c, uint32_t size, uint8_t loss)
{
    for (uint32_t i = 0; i < size; i++) {
        peer_create(c, "w", &(struct claim){.size = size, .rank = i, .loss = loss});
    }
}

TEST(a_world_begins_with_the_claim_of_its_last_rank)
{
    struct cluster *c = cluster_new();
    struct peer *late = create(c, 3, 2), *first = create(c, 3, 0);
    cluster_pass(c, 30000); /* whoever has claimed waits as long as it takes */
    EXPECT_STR(late->log, "WELCOME WELCOME ");
    EXPECT_EQ(master_world_count(c->master), 1);
    struct peer *last = create(c, 3, 1);
    EXPECT_STR(last->log, "WELCOME WELCOME ADMIT VIEW "); /* three round trips, and no vote */
    EXPECT_EQ(late->member_count, 3);
    EXPECT(late->view == first->view && late->view == last->view && late->run == last->run);
    for (uint32_t i = 0; i < 3; i++) { /* ids ascend, keys are as claimed */
        const uint32_t keys[] = {2, 0, 1};
        EXPECT_EQ(last->infos[i].id, c->peers[i].id);
        EXPECT_EQ(last->infos[i].key, keys[i]);
    }
    cluster_free(c);
}

TEST(a_formed_name_can_be_used_again_at_once) /* W2 */
{
    struct cluster *c = cluster_new();
    create_all(c, 2, LOSS_END);
    create_all(c, 2, LOSS_END);
    EXPECT_EQ(master_world_count(c->master), 2);
    EXPECT(c->peers[0].run == c->peers[1].run && c->peers[2].run == c->peers[3].run && c->peers[0].run != c->peers[2].run);
    EXPECT_EQ(c->peers[3].member_count, 2);
    cluster_free(c);
}

TEST(a_register_without_its_claim_decides_nothing) /* W3 */
{
    struct cluster *c = cluster_new();
    uint32_t conn = cluster_open(c);
    struct msg_register reg = {.lanes = 1, .world = "w", .claim = {.size = 2, .attempt = 99}};
    unsigned char bytes[512];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_register(&w, &reg);
    cluster_frame(c, conn, FRAME_REGISTER, bytes, (uint32_t)w.used, 0);
    EXPECT_EQ(master_world_count(c->master), 0);
    create_all(c, 2, LOSS_END);
    EXPECT_EQ(c->peers[0].member_count, 2);
    cluster_pass(c, 6000);
    EXPECT(cluster_closed(c, conn)); /* a stranger, as before */
    conn = cluster_open(c);
    struct msg_claim claim = {.run = c->config.run, .epoch = 1, .reg = reg};
    writer_init(&w, bytes, sizeof bytes);
    put_claim(&w, &claim);
    cluster_frame(c, conn, FRAME_CLAIM, bytes, (uint32_t)w.used, 0);
    EXPECT(cluster_closed(c, conn)); /* without a WELCOME there is nothing to answer */
    cluster_free(c);
}

TEST(another_claim_to_a_rank_is_refused_alone_naming_both) /* W3 */
{
    struct cluster *c = cluster_new();
    struct peer *holder = create(c, 2, 1), *rival = create(c, 2, 1);
    EXPECT_EQ(rival->fence.cause, CAUSE_KICK_TAKEN);
    EXPECT_STR(rival->fence.text, "rank 1 of the world is claimed by peer 1.1 at 10.0.0.1:48150 already, not only from 10.0.0.2:1234");
    EXPECT(holder->open && !rival->open);
    create(c, 2, 0);
    EXPECT_EQ(holder->member_count, 2);
    cluster_free(c);
}

TEST(a_claim_that_is_read_after_the_one_on_a_later_connection_means_nothing) /* W3 */
{
    struct cluster *c = cluster_new();
    struct peer *p = &c->peers[c->count++];
    memcpy(p->world, "w", 2);
    p->claim = (struct claim){.size = 2, .rank = 1, .attempt = 50};
    p->no_claim = true;
    peer_create_again(c, p);
    uint32_t first = p->conn;
    EXPECT_STR(p->log, "WELCOME ");
    p->no_claim = false;
    peer_create_again(c, p); /* it has answered on the first one too, which broke: nothing of that has been read yet */
    EXPECT(cluster_closed(c, first));
    create(c, 2, 0);
    EXPECT_EQ(p->member_count, 2);
    cluster_free(c);
}

TEST(the_end_of_a_claims_connection_gives_up_for_all) /* W5, W6 */
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 3, 0), *b = create(c, 3, 1);
    peer_cut(c, a);
    EXPECT_EQ(b->given_up.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(b->given_up.culprit, a->id);
    EXPECT_STR(b->given_up.text, "rank 0 (peer 1.1 at 10.0.0.1:48150): connection closed before it was accepted");
    EXPECT(!b->open);
    peer_create_again(c, a); /* W4: the same call; it had not heard */
    EXPECT_STR(a->given_up.text, b->given_up.text);
    struct peer *late = create(c, 3, 2); /* W7: its call is of what was given up */
    EXPECT_STR(late->given_up.text, b->given_up.text);
    cluster_pass(c, 59000);
    EXPECT_EQ(master_world_count(c->master), 1); /* all have come, but the word may have been lost with a connection */
    cluster_pass(c, 2000);
    EXPECT_EQ(master_world_count(c->master), 0);
    create_all(c, 3, LOSS_END);
    EXPECT_EQ(c->peers[5].member_count, 3);
    cluster_free(c);
}

TEST(the_oldest_tombstone_is_told_first_whatever_is_forming_by_then) /* W7 */
{
    struct cluster *c = cluster_new();
    uint64_t lost[2];
    for (int i = 0; i < 2; i++) {
        struct peer *a = create(c, 2, 0);
        lost[i] = a->id;
        cluster_pass(c, 1000);
        peer_cut(c, a);
        peer_create_again(c, a);
        EXPECT_EQ(a->given_up.cause, CAUSE_PEER_LOST);
    }
    struct peer *now = create(c, 2, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct peer *late = create(c, 2, 1);
        EXPECT_EQ(late->given_up.culprit, lost[i]);
    }
    struct peer *last = create(c, 2, 1);
    EXPECT(now->member_count == 2 && last->member_count == 2);
    cluster_free(c);
}

TEST(a_tombstone_is_forgotten_after_five_minutes)
{
    struct cluster *c = cluster_new();
    peer_cut(c, create(c, 2, 0));
    cluster_pass(c, 299000);
    EXPECT_EQ(master_world_count(c->master), 1);
    cluster_pass(c, 2000);
    EXPECT_EQ(master_world_count(c->master), 0);
    EXPECT_EQ(create(c, 2, 1)->given_up.cause, 0);
    cluster_free(c);
}

TEST(tombstone_that_is_told_again_is_not_kept_longer_for_the_rank_that_has_not_come)
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 2, 0);
    peer_cut(c, a);
    cluster_pass(c, 200000);
    peer_create_again(c, a); /* its call had not heard the outcome */
    EXPECT_EQ(a->given_up.cause, CAUSE_PEER_LOST);
    cluster_pass(c, 99000);
    EXPECT_EQ(master_world_count(c->master), 1);
    cluster_pass(c, 2000);
    EXPECT_EQ(master_world_count(c->master), 0); /* five minutes after the failure */
    cluster_free(c);
}

/* A claim of another size has made room for more seats than the world has.  No call owns that room, and none is owed anything there. */
TEST(a_failed_world_knows_no_call_of_a_rank_that_it_never_had) /* W7 */
{
    const struct { uint8_t fill; uint64_t attempt; } rooms[] = {{0, 0}, {0xA5, 0xA5A5A5A5A5A5A5A5}}; /* an empty seat; one of this very call */
    for (int i = 0; i < 2; i++) {
        struct cluster *c = cluster_new();
        c->fill = rooms[i].fill;
        create(c, 2, 0);
        EXPECT_EQ(create(c, 20, 19)->given_up.cause, CAUSE_MISMATCH);
        struct peer *next = peer_create(c, "w", &(struct claim){.size = 20, .rank = 2, .attempt = rooms[i].attempt});
        EXPECT(next->given_up.cause == CAUSE_NONE && next->open); /* it begins another world */
        EXPECT_EQ(master_world_count(c->master), 2);
        cluster_free(c);
    }
}

TEST(another_size_or_loss_rule_ends_it_for_all) /* W9 */
{
    const struct claim other[] = {{.size = 3, .rank = 2}, {.size = 2, .rank = 1, .loss = LOSS_SHRINK},
                                  {.size = 2, .rank = 1, .once = 1}};
    const char *words[] = {"it is created with 2 ranks and the loss rule 'end', and with 3 and 'end'",
                           "it is created with 2 ranks and the loss rule 'end', and with 2 and 'shrink'",
                           "it is created with 2 ranks and the loss rule 'end', and for once with 2 and 'end'"};
    for (int i = 0; i < 3; i++) {
        struct cluster *c = cluster_new();
        struct peer *a = create(c, 2, 0), *b = peer_create(c, "w", &other[i]);
        EXPECT_EQ(a->given_up.cause, CAUSE_MISMATCH);
        EXPECT_STR(a->given_up.text, words[i]);
        EXPECT_EQ(b->given_up.cause, CAUSE_MISMATCH);
        EXPECT_STR(b->given_up.text, words[i]);
        EXPECT(!a->open && !b->open);
        cluster_free(c);
    }
}

TEST(the_earliest_deadline_counts_for_all_and_names_who_is_missing) /* W5 */
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 16, 3);
    struct peer *b = peer_create(c, "w", &(struct claim){.size = 16, .rank = 5, .deadline_ms = 3000});
    peer_create(c, "w", &(struct claim){.size = 16, .rank = 7, .deadline_ms = 9000});
    cluster_pass(c, 2900);
    EXPECT(a->open && b->open);
    cluster_pass(c, 200);
    EXPECT_EQ(a->given_up.cause, CAUSE_DEADLINE);
    EXPECT_STR(a->given_up.text, "these ranks have not come in time: 0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14 and 1 more");
    EXPECT_STR(b->given_up.text, a->given_up.text);
    EXPECT_EQ(create(c, 16, 0)->given_up.cause, CAUSE_DEADLINE);
    cluster_free(c);
}

TEST(who_cannot_be_linked_gives_up_for_all)
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 2, 0);
    a->no_link = true;
    struct peer *b = create(c, 2, 1);
    cluster_pass(c, 11000);
    EXPECT_EQ(b->given_up.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(a->given_up.culprit, a->id);
    peer_create_again(c, b); /* its connection broke with the word in it, for all that the master knows */
    EXPECT_EQ(b->given_up.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(create(c, 2, 0)->given_up.cause, 0); /* a new call is of the next one */
    cluster_free(c);
}

TEST(the_first_view_is_the_border) /* W6: on record it is, whoever is lost before it leaves */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    create_all(c, 2, LOSS_SHRINK);
    EXPECT_EQ(c->peers[0].view, 0);
    struct peer *next = create(c, 3, 0); /* it takes no claim any more: a new incarnation */
    peer_cut(c, &c->peers[1]);
    EXPECT_EQ(c->peers[0].given_up.cause, 0);
    c->hold_persist = false;
    cluster_persisted(c);
    EXPECT_EQ(c->peers[0].member_count, 1); /* an ordinary loss, of a member */
    EXPECT(next->open && next->view == 0);
    peer_create_again(c, &c->peers[1]);
    EXPECT_EQ(c->peers[1].fence.cause, CAUSE_KICK_STALE);
    cluster_free(c);
}

TEST(a_call_whose_connection_broke_with_its_first_view_is_given_that) /* W4 */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    create_all(c, 2, LOSS_END);
    struct peer *p = &c->peers[1];
    uint64_t id = p->id;
    uint32_t conn = p->conn;
    p->open = false; /* hears nothing of what the master sends there */
    c->hold_persist = false;
    cluster_persisted(c);
    EXPECT_EQ(p->view, 0);
    peer_create_again(c, p);
    EXPECT(cluster_closed(c, conn));
    EXPECT_EQ(p->id, id);
    EXPECT_EQ(p->view, c->peers[0].view);
    EXPECT_EQ(p->member_count, 2);
    cluster_pass(c, 3000);
    EXPECT(p->open);
    cluster_free(c);
}

TEST(a_claim_that_comes_again_while_links_are_made_takes_part_in_a_new_attempt)
{
    struct cluster *c = cluster_new();
    create(c, 2, 0)->no_link = true;
    struct peer *b = create(c, 2, 1);
    uint32_t first = b->admit.attempt;
    c->peers[0].no_link = false;
    c->peers[0].open = false; /* its connection is dead; the master has not noticed */
    peer_create_again(c, &c->peers[0]);
    EXPECT(b->admit.attempt > first);
    EXPECT(b->member_count == 2 && c->peers[0].member_count == 2);
    cluster_free(c);
}

TEST(a_world_that_ends_with_its_first_loss_says_so_in_the_view)
{
    struct cluster *c = cluster_new();
    create_all(c, 3, LOSS_END);
    peer_crash(c, &c->peers[2]);
    cluster_pass(c, 3000);
    for (uint32_t i = 0; i < 2; i++) {
        struct peer *p = &c->peers[i];
        EXPECT_EQ(p->last_view.over, 1);
        EXPECT_EQ(p->last_view.culprit, c->peers[2].id);
        EXPECT(p->member_count == 2 && p->open);
    }
    peer_vote(c, &c->peers[0], VOTE_UPDATE); /* nothing is decided any more, nor frozen */
    peer_crash(c, &c->peers[1]);
    cluster_pass(c, 3000);
    EXPECT_EQ(c->peers[0].member_count, 2);
    EXPECT(c->peers[0].voting);
    peer_leave(c, &c->peers[0]);
    cluster_pass(c, 61000); /* it is remembered for those of whom nobody knows whether they heard of its first view */
    EXPECT_EQ(master_world_count(c->master), 0);
    cluster_free(c);
}

TEST(a_call_that_never_heard_of_a_world_that_has_begun_and_ended_is_not_one_of_the_next) /* W4 */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    create_all(c, 2, LOSS_END);
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    b->open = false; /* its connection breaks with the view in it */
    c->hold_persist = false;
    cluster_persisted(c);
    EXPECT_EQ(a->member_count, 2);
    peer_leave(c, a);
    peer_cut(c, b);
    cluster_pass(c, 3000);
    peer_create_again(c, b);
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_STALE);
    struct peer *next = create(c, 2, 0);
    EXPECT_EQ(next->view, 0); /* it waits for the other's next call */
    create(c, 2, 1);
    EXPECT_EQ(next->member_count, 2);
    cluster_free(c);
}

/* The source of a sync is lost; a receiver says so when the world is over, and then nothing more. */
TEST(a_world_that_is_over_decides_nothing_and_takes_no_time_of_others)
{
    struct cluster *c = cluster_new();
    create_all(c, 3, LOSS_END);
    struct peer *p = c->peers, *other = peer_join_world(c, 0, "other");
    for (uint32_t i = 0; i < 3; i++) {
        peer_sync(c, &p[i], 0, 1, 5, i < 2 ? 10 : 11, false);
    }
    peer_crash(c, &p[0]);
    cluster_pass(c, 100);
    EXPECT_EQ(p[2].last_view.over, 1);
    peer_staged(c, &p[2], STAGED_NO_SOURCE, 0);
    p[1].mute = p[2].mute = true;
    cluster_pass(c, 100000); /* a tick that is always due would never let time pass */
    EXPECT(master_deadline(c->master) > c->now && other->open);
    EXPECT(!p[1].open && !p[2].open); /* silence costs a place there, too */
    EXPECT_EQ(master_world_count(c->master), 1);
    cluster_free(c);
}

TEST(nobody_enters_a_world_of_a_given_size_but_by_a_claim) /* not even who knows its run */
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 2, 0);
    for (int i = 0; i < 2; i++) {
        struct msg_register reg = {.run = a->run, .lanes = 1, .world = "w"};
        unsigned char bytes[512];
        struct writer w;
        uint32_t conn = cluster_open(c);
        writer_init(&w, bytes, sizeof bytes);
        put_register(&w, &reg);
        cluster_frame(c, conn, FRAME_REGISTER, bytes, (uint32_t)w.used, 0);
        EXPECT(cluster_closed(c, conn));
        if (i == 0) {
            create(c, 2, 1);
            EXPECT_EQ(a->member_count, 2);
        }
    }
    struct msg_claim claim = {.run = c->config.run, .epoch = 1, .reg = {.lanes = 1, .group = 1, .world = "g", .claim = {.size = 2, .attempt = 7}}};
    unsigned char bytes[512];
    struct writer w;
    struct peer *q = &c->peers[c->count++];
    memset(q, 0, sizeof *q);
    q->claim = claim.reg.claim;
    q->no_claim = true;
    memcpy(q->world, "g", 2);
    peer_create_again(c, q);
    writer_init(&w, bytes, sizeof bytes);
    put_claim(&w, &claim);
    cluster_frame(c, q->conn, FRAME_CLAIM, bytes, (uint32_t)w.used, 0);
    EXPECT(!q->open); /* such a world has one peer group, whatever a stranger says */
    cluster_free(c);
}

TEST(formations_that_fail_again_and_again_leave_room_for_other_worlds)
{
    struct cluster *c = cluster_new();
    for (uint64_t n = 0; n < 3 * c->config.max_worlds; n++) {
        c->count = 0;
        struct peer *p = peer_create(c, "w", &(struct claim){.size = 2, .deadline_ms = 100, .attempt = 100 + n});
        EXPECT_EQ(p->fence.cause, 0);
        cluster_pass(c, 150);
        EXPECT(master_world_count(c->master) <= c->config.max_worlds / 4 + 1);
    }
    c->count = 0;
    EXPECT(peer_join_world(c, 0, "another")->open);
    cluster_free(c);
}

TEST(a_world_that_shrinks_goes_on_and_nobody_joins_it)
{
    struct cluster *c = cluster_new();
    create_all(c, 3, LOSS_SHRINK);
    peer_crash(c, &c->peers[1]);
    cluster_pass(c, 3000);
    EXPECT(c->peers[0].member_count == 2 && c->peers[0].last_view.over == 0);
    peer_vote(c, &c->peers[0], VOTE_UPDATE);
    peer_vote(c, &c->peers[2], VOTE_UPDATE);
    EXPECT(!c->peers[0].voting);
    create_all(c, 2, LOSS_SHRINK); /* another world */
    EXPECT(c->peers[0].member_count == 2 && c->peers[4].run != c->peers[0].run);
    cluster_free(c);
}

TEST(names_of_open_worlds_and_of_sized_ones_exclude_each_other)
{
    struct cluster *c = cluster_new();
    peer_join_world(c, 0, "open");
    EXPECT_EQ(peer_create(c, "open", &(struct claim){.size = 1})->fence.cause, CAUSE_KICK_TAKEN);
    EXPECT_EQ(peer_create(c, "", &(struct claim){.size = 1})->fence.cause, CAUSE_KICK_TAKEN);
    create(c, 2, 0);
    EXPECT_EQ(peer_join_world(c, 0, "w")->fence.cause, CAUSE_KICK_TAKEN);
    create(c, 2, 1);
    EXPECT(peer_join_world(c, 0, "w")->open); /* nobody is forming it any more */
    cluster_free(c);
}

TEST(a_claim_of_another_time_of_the_master_connects_again) /* W8 */
{
    struct cluster *c = cluster_new();
    const uint64_t runs[] = {78, 77};
    const uint32_t epochs[] = {1, 2};
    for (int i = 0; i < 2; i++) {
        struct peer *p = create(c, 2, 0);
        peer_cut(c, p);
        struct peer *q = &c->peers[c->count++];
        memset(q, 0, sizeof *q);
        q->no_claim = true;
        memcpy(q->world, "w", 2);
        q->claim = (struct claim){.size = 2, .rank = 1, .attempt = 1000 + (uint64_t)i};
        peer_create_again(c, q);
        peer_claim(c, q, &q->claim, runs[i], epochs[i]); /* the others may have begun: it is not told of what failed since */
        EXPECT_EQ(q->fence.cause, CAUSE_KICK_STALE);
        EXPECT_EQ(create(c, 2, 1)->given_up.cause, CAUSE_PEER_LOST);
        cluster_pass(c, 301000);
    }
    cluster_free(c);
}

TEST(sizes_and_memory_have_limits_that_are_told)
{
    struct cluster *c = cluster_new();
    struct peer *p = create(c, c->config.max_members + 1, 0);
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_FULL);
    EXPECT_STR(p->fence.text, "a world of 25 ranks is larger than this master takes, 24");
    c->no_memory = true;
    EXPECT_EQ(create(c, 2, 0)->fence.cause, CAUSE_KICK_FULL);
    c->no_memory = false;
    create_all(c, 20, LOSS_END);
    EXPECT_EQ(c->peers[2].member_count, 20);
    cluster_free(c);
}

/* The text of a refusal is the same for each rank, and for who comes without a size. */
static void expect_used(const struct peer *p)
{
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_USED);
    EXPECT_STR(p->fence.text, "a world was created under that name to be the only one");
    EXPECT(!p->open);
}

TEST(under_a_name_for_one_world_only_one_is_formed_and_all_later_ones_are_refused_alike) /* W12 */
{
    struct cluster *c = cluster_new();
    const struct claim once[] = {{.size = 2, .once = 1}, {.size = 2, .rank = 1, .once = 1}};
    peer_cut(c, peer_create(c, "w", &once[0])); /* given up: that uses nothing */
    EXPECT_EQ(peer_create(c, "w", &once[1])->given_up.cause, CAUSE_PEER_LOST);
    c->hold_persist = true;
    struct peer *a = peer_create(c, "w", &once[0]), *b = peer_create(c, "w", &once[1]);
    expect_used(peer_create(c, "w", &once[0])); /* the record is on its way */
    c->hold_persist = false;
    cluster_persisted(c);
    EXPECT(a->member_count == 2 && b->member_count == 2);
    uint32_t size = (uint32_t)c->journal.used, kept = 0;
    expect_used(peer_create(c, "w", &once[1]));
    expect_used(peer_create(c, "w", &(struct claim){.size = 3, .rank = 2})); /* whatever else it says */
    expect_used(peer_join_world(c, 0, "w"));
    peer_leave(c, a);
    peer_leave(c, b);
    cluster_pass(c, 400000);
    EXPECT_EQ(master_world_count(c->master), 0);
    expect_used(peer_create(c, "w", &once[0])); /* the name outlives its world, */
    struct record r;
    for (size_t at = 0; record_next(c->journal.bytes, c->journal.used, &at, &r);) {
        kept += r.kind == RECORD_USED && strcmp(r.name, "w") == 0;
    }
    EXPECT(kept == 1 && c->journal.used < size); /* on record, too */
    EXPECT(peer_create(c, "v", &once[0])->open);
    cluster_free(c);
}

TEST(a_call_that_made_the_only_world_is_given_its_view_when_it_asks_again) /* W4 before W12 */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    peer_create(c, "w", &(struct claim){.size = 2, .once = 1});
    struct peer *b = peer_create(c, "w", &(struct claim){.size = 2, .rank = 1, .once = 1});
    b->open = false; /* its connection breaks with the view in it */
    c->hold_persist = false;
    cluster_persisted(c);
    peer_create_again(c, b);
    EXPECT(b->open && b->member_count == 2);
    cluster_free(c);
}

TEST(of_names_for_one_world_the_last_ones_are_kept_as_far_as_there_is_memory)
{
    struct cluster *c = cluster_new();
    char name[16];
    for (uint32_t i = 0; i < c->config.max_used_names + 1; i++) {
        c->count = 0;
        snprintf(name, sizeof name, "w%u", i);
        struct peer *p = peer_create(c, name, &(struct claim){.size = 1, .once = 1, .attempt = 1000 + i});
        EXPECT_EQ(p->member_count, 1);
        peer_leave(c, p);
    }
    expect_used(peer_create(c, "w1", &(struct claim){.size = 1, .once = 1}));
    EXPECT(peer_create(c, "w0", &(struct claim){.size = 2})->open); /* the oldest is forgotten */
    cluster_free(c);
    c = cluster_new();
    peer_join_world(c, 0, "x");
    c->no_memory = true;
    struct peer *p = peer_create(c, "w", &(struct claim){.size = 1, .once = 1});
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_FULL);
    EXPECT_STR(p->fence.text, "the master has no memory to keep that name used");
    cluster_free(c);
}

/* Says that it cannot go on. */
static void decline(struct cluster *c, const struct peer *p)
{
    unsigned char byte = CAUSE_NO_MEMORY;
    cluster_frame(c, p->conn, FRAME_DECLINE, &byte, 1, p->run);
}

TEST(who_declines_gives_up_for_all_and_hears_the_same_word) /* W5 */
{
    struct cluster *c = cluster_new();
    struct peer *a = create(c, 3, 0), *b = create(c, 3, 1);
    a->no_link = true;
    struct peer *last = create(c, 3, 2);
    decline(c, b);
    struct peer *all[] = {a, b, last};
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(all[i]->given_up.cause, CAUSE_NO_MEMORY);
        EXPECT_EQ(all[i]->given_up.culprit, b->id);
        EXPECT_STR(all[i]->given_up.text, "rank 1 (peer 1.2 at 10.0.0.2:48150): it has no memory for so many");
        EXPECT(!all[i]->open);
    }
    cluster_free(c);
}

TEST(who_declines_too_late_has_begun_and_who_creates_nothing_may_not) /* W6 */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    create_all(c, 2, LOSS_END);
    decline(c, &c->peers[0]); /* its view is on the way to the journal, and then to it */
    c->hold_persist = false;
    cluster_persisted(c);
    decline(c, &c->peers[1]);
    EXPECT(c->peers[0].member_count == 2 && c->peers[1].member_count == 2 && c->peers[0].open && c->peers[1].open);
    struct peer *other = peer_join_world(c, 0, "open");
    decline(c, other);
    EXPECT_EQ(other->fence.cause, CAUSE_KICK_PROTOCOL);
    cluster_free(c);
}
