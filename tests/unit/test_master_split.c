/* test_master_split.c - worlds that members of another one create together: all begin with one record, or none does.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "master_peers.h"
#include "tests/testing.h"

enum { PARENTS = 5 };

/* A world of five, whose members are peers 0 to 4; ids[] names them. */
static struct cluster *parent(uint64_t ids[PARENTS])
{
    struct cluster *c = cluster_new();
    for (uint32_t i = 0; i < PARENTS; i++) {
        peer_create(c, "parent", &(struct claim){.size = PARENTS, .rank = i, .loss = LOSS_SHRINK});
    }
    for (uint32_t i = 0; i < PARENTS; i++) {
        ids[i] = c->peers[i].id;
    }
    return c;
}

/* Member i of the parent calls: 0, 2 are colour a, 1, 3 colour b with their ranks reversed, 4 has none: a world of its own. */
static struct peer *call(struct cluster *c, uint32_t i, const uint64_t ids[PARENTS])
{
    static const struct claim claims[PARENTS] = {
        {.size = 2, .rank = 0}, {.size = 2, .rank = 1}, {.size = 2, .rank = 1}, {.size = 2, .rank = 0}, {.size = 1, .rank = 0}};
    static const char *const worlds[PARENTS] = {"a", "b", "a", "b", "z"};
    return peer_derive(c, &c->peers[i], worlds[i], &claims[i], 7, ids, PARENTS);
}

TEST(no_world_of_a_split_begins_before_all_callers_have_come) /* W10 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *p[PARENTS];
    for (uint32_t i = PARENTS; i-- > 1;) {
        p[i] = call(c, i, ids);
    }
    EXPECT_STR(p[1]->log, "WELCOME WELCOME ADMIT "); /* both of its colour are there, and linked */
    EXPECT_STR(p[4]->log, "WELCOME WELCOME ADMIT "); /* who has no colour waits as well */
    cluster_pass(c, 30000);
    EXPECT_STR(p[4]->log, "WELCOME WELCOME ADMIT ");
    EXPECT(p[4]->told.vote_on == ids[0] && p[1]->told.vote_on == ids[0]); /* who has not called */
    uint32_t records = c->persists;
    p[0] = call(c, 0, ids);
    EXPECT_EQ(c->persists, records + 1); /* one for all */
    for (uint32_t i = 0; i < PARENTS; i++) {
        cluster_pass(c, 1);
        EXPECT_STR(p[i]->log, "WELCOME WELCOME ADMIT VIEW ");
        EXPECT_EQ(p[i]->member_count, i < 4 ? 2 : 1);
    }
    EXPECT(p[0]->run == p[2]->run && p[1]->run == p[3]->run && p[0]->run != p[1]->run && p[4]->run != p[0]->run);
    EXPECT_EQ(p[3]->infos[0].key, 0); /* it came first, and asked for rank 0 */
    peer_crash(c, p[0]); /* from now on they are worlds of their own */
    cluster_pass(c, 20000);
    EXPECT(p[2]->last_view.over && !p[1]->last_view.over);
    EXPECT_EQ(c->peers[0].member_count, PARENTS);
    cluster_free(c);
}

TEST(nothing_of_a_split_is_published_before_its_record) /* W10, M4 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *p[PARENTS];
    c->hold_persist = true;
    for (uint32_t i = 0; i < PARENTS; i++) {
        p[i] = call(c, i, ids);
    }
    peer_cut(c, p[3]); /* too late to give anything up */
    cluster_pass(c, 100);
    for (uint32_t i = 0; i < PARENTS; i++) {
        EXPECT_STR(p[i]->log, "WELCOME WELCOME ADMIT ");
    }
    c->hold_persist = false;
    cluster_persisted(c);
    cluster_pass(c, 10);
    EXPECT(peer_saw(p[0], "VIEW") && peer_saw(p[1], "VIEW") && peer_saw(p[2], "VIEW") && peer_saw(p[4], "VIEW"));
    cluster_free(c);
}

TEST(what_fails_in_one_colour_fails_in_all) /* W10 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *p[PARENTS];
    for (uint32_t i = 1; i < PARENTS; i++) {
        p[i] = call(c, i, ids);
    }
    peer_cut(c, p[2]);
    cluster_pass(c, 10);
    for (uint32_t i = 1; i < PARENTS; i++) {
        if (i != 2) {
            EXPECT_EQ(p[i]->given_up.cause, CAUSE_PEER_LOST);
            EXPECT_EQ(p[i]->given_up.culprit, p[2]->id);
            EXPECT(!p[i]->open);
        }
    }
    peer_create_again(c, p[2]); /* W4 */
    EXPECT_EQ(p[2]->given_up.culprit, p[1]->given_up.culprit);
    p[0] = call(c, 0, ids); /* W7: comes when it is over */
    EXPECT_STR(p[0]->given_up.text, p[1]->given_up.text);
    EXPECT_EQ(master_world_count(c->master), 4); /* the parent, and three tombstones */
    cluster_pass(c, 301000);
    EXPECT_EQ(master_world_count(c->master), 1);
    cluster_free(c);
}

/* W5: nobody has claimed a world of its colour, so there is no tombstone but the split's own. */
TEST(who_comes_to_a_split_that_was_given_up_hears_why_whatever_its_colour)
{
    uint64_t ids[PARENTS];
    for (int ends = 0; ends < 3; ends++) {
        struct cluster *c = parent(ids);
        struct peer *a = call(c, 0, ids), *z = call(c, 4, ids), *other = call(c, 2, ids);
        peer_cut(c, z);
        cluster_pass(c, 10);
        EXPECT_EQ(a->given_up.cause, CAUSE_PEER_LOST);
        cluster_pass(c, 301000);
        EXPECT_EQ(master_world_count(c->master), 1); /* the tombstones have gone */
        struct peer *late = call(c, 1, ids);
        cluster_pass(c, 10);
        EXPECT_EQ(late->given_up.culprit, a->given_up.culprit);
        EXPECT_STR(late->given_up.text, other->given_up.text);
        if (ends == 1) {
            peer_leave(c, &c->peers[3]); /* the last one that could come */
        } else if (ends == 0) {
            struct peer *last = call(c, 3, ids);
            EXPECT_STR(last->given_up.text, other->given_up.text);
        } else {
            for (uint32_t i = 0; i < PARENTS; i++) {
                peer_leave(c, &c->peers[i]);
            }
        }
        cluster_pass(c, 10);
        cluster_free(c); /* what is kept for nobody would be found by the sanitizer */
    }
}

TEST(a_member_that_leaves_the_parent_before_it_has_called_is_not_waited_for) /* W11 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *first = call(c, 0, ids), *other = call(c, 1, ids);
    peer_leave(c, &c->peers[1]); /* has called: only its claim counts */
    EXPECT(other->open);
    peer_leave(c, &c->peers[2]);
    cluster_pass(c, 10);
    EXPECT_EQ(first->given_up.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(first->given_up.culprit, ids[2]);
    EXPECT_STR(other->given_up.text, first->given_up.text);
    struct peer *again = peer_derive(c, &c->peers[0], "n", &(struct claim){.size = 4, .rank = 0}, 8, ids, 4); /* gone when the list comes */
    cluster_pass(c, 10);
    EXPECT_EQ(again->given_up.culprit, ids[1]);
    struct peer *late = peer_derive(c, &c->peers[3], "n", &(struct claim){.size = 4, .rank = 3}, 8, ids, 4);
    EXPECT_STR(late->given_up.text, again->given_up.text);
    struct peer *gone = peer_derive(c, &c->peers[2], "m", &(struct claim){.size = 4, .rank = 2}, 9, ids, 4);
    EXPECT_EQ(gone->fence.cause, CAUSE_KICK_STALE); /* who is no member begins nothing */
    cluster_free(c);
}

TEST(a_colour_that_fails_before_it_has_heard_of_the_first_failure_is_told_that_one) /* W5, W10 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *a = call(c, 0, ids), *cut = call(c, 1, ids), *b = call(c, 3, ids);
    peer_leave(c, &c->peers[2]); /* fails them all; no world has been told */
    peer_cut(c, cut);
    cluster_pass(c, 10);
    EXPECT_EQ(a->given_up.culprit, ids[2]);
    EXPECT_EQ(b->given_up.culprit, ids[2]);
    EXPECT_STR(b->given_up.text, a->given_up.text);
    cluster_free(c);
}

TEST(callers_that_expect_others_are_told_the_same_error) /* W9 */
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    const uint64_t fewer[] = {ids[0], ids[1], ids[3]};
    struct peer *a = peer_derive(c, &c->peers[0], "a", &(struct claim){.size = 4, .rank = 0}, 3, ids, 4);
    struct peer *b = peer_derive(c, &c->peers[1], "a", &(struct claim){.size = 3, .rank = 1}, 3, fewer, 3);
    cluster_pass(c, 10);
    EXPECT_EQ(a->given_up.cause, CAUSE_MISMATCH);
    EXPECT_STR(b->given_up.text, a->given_up.text);
    struct peer *x = peer_derive(c, &c->peers[0], "x", &(struct claim){.size = 2, .rank = 0}, 4, ids, 2); /* seats that nobody takes */
    struct peer *y = peer_derive(c, &c->peers[1], "y", &(struct claim){.size = 2, .rank = 0}, 4, ids, 2);
    cluster_pass(c, 10);
    EXPECT_EQ(x->given_up.cause, CAUSE_MISMATCH);
    EXPECT_STR(y->given_up.text, x->given_up.text);
    cluster_free(c);
}

TEST(the_earliest_deadline_of_all_colours_counts)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *a = peer_derive(c, &c->peers[0], "a", &(struct claim){.size = 1, .rank = 0, .deadline_ms = 9000}, 3, ids, 3);
    struct peer *b = peer_derive(c, &c->peers[2], "b", &(struct claim){.size = 1, .rank = 0, .deadline_ms = 2000}, 3, ids, 3);
    cluster_pass(c, 1900);
    EXPECT(a->open && b->open);
    cluster_pass(c, 200);
    EXPECT_EQ(a->given_up.cause, CAUSE_DEADLINE);
    EXPECT_STR(a->given_up.text, "1 of its 3 callers have not come in time, peer 1.2 the first of them");
    EXPECT_STR(b->given_up.text, a->given_up.text);
    cluster_free(c);
}

TEST(the_end_of_the_parent_gives_up_what_not_all_have_come_to_and_nothing_else)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *waits = peer_derive(c, &c->peers[0], "a", &(struct claim){.size = 2, .rank = 0}, 3, ids, 2);
    struct peer *all[2];
    for (uint32_t i = 0; i < 2; i++) {
        all[i] = peer_derive(c, &c->peers[3 + i], "b", &(struct claim){.size = 2, .rank = i}, 4, ids + 3, 2);
        all[i]->no_link = true;
    }
    for (uint32_t i = 0; i < PARENTS; i++) {
        peer_leave(c, &c->peers[i]);
    }
    cluster_pass(c, 10);
    EXPECT_EQ(waits->given_up.cause, CAUSE_PEER_LOST);
    EXPECT(all[0]->open && all[1]->open);
    cluster_free(c);
}

TEST(a_caller_whose_connection_breaks_while_its_siblings_are_awaited_gives_up_for_all_and_one_dialled_anew_goes_on)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *p[PARENTS];
    for (uint32_t i = 1; i < PARENTS; i++) {
        p[i] = call(c, i, ids);
    }
    peer_create_again(c, p[1]); /* its earlier connection is closed by the master, unread: linked once more */
    EXPECT_STR(p[1]->log, "WELCOME WELCOME ADMIT WELCOME WELCOME ADMIT ");
    p[0] = call(c, 0, ids);
    cluster_pass(c, 10);
    for (uint32_t i = 0; i < PARENTS; i++) {
        EXPECT(peer_saw(p[i], "VIEW"));
    }
    cluster_free(c);
}

TEST(a_list_that_cannot_be_costs_its_sender_the_connection_and_nobody_else)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct peer *honest = peer_derive(c, &c->peers[0], "a", &(struct claim){.size = 2, .rank = 0}, 3, ids, 2);
    const uint64_t wrong[][3] = {{ids[1], ids[0], ids[2]}, {ids[0], ids[2], ids[3]}, {ids[1], ids[1], ids[2]}, {0, ids[1], ids[2]}};
    for (uint32_t i = 0; i < 4; i++) {
        struct peer *p = peer_derive(c, &c->peers[1], "a", &(struct claim){.size = 2, .rank = 1}, 3, wrong[i], 3);
        EXPECT(!p->open && p->given_up.cause == 0 && p->fence.cause == 0);
    }
    struct peer *large = peer_derive(c, &c->peers[1], "a", &(struct claim){.size = 3, .rank = 1}, 3, ids, 2); /* more ranks than callers */
    EXPECT(!large->open && large->given_up.cause == 0 && large->fence.cause == 0);
    struct peer *twice = peer_derive(c, &c->peers[0], "b", &(struct claim){.size = 2, .rank = 0}, 3, ids, 2);
    EXPECT_EQ(twice->fence.cause, CAUSE_KICK_TAKEN);
    EXPECT(honest->open);
    peer_derive(c, &c->peers[1], "a", &(struct claim){.size = 2, .rank = 1}, 3, ids, 2);
    cluster_pass(c, 10);
    EXPECT_EQ(honest->member_count, 2);
    cluster_free(c);
}

TEST(without_memory_for_a_formation_its_caller_is_refused)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    c->no_memory = true;
    struct peer *p = call(c, 0, ids);
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_FULL);
    c->no_memory = false;
    for (uint32_t i = 0; i < PARENTS; i++) {
        p = call(c, i, ids);
    }
    cluster_pass(c, 10);
    EXPECT(peer_saw(p, "VIEW"));
    cluster_free(c);
}

TEST(a_derived_name_is_nobodys_to_choose)
{
    uint64_t ids[PARENTS];
    struct cluster *c = parent(ids);
    struct msg_register reg = {.lanes = 1, .claim = {.size = 1, .attempt = 5}};
    unsigned char bytes[512];
    struct writer w;
    struct reader r;
    memcpy(reg.world, "\1" "0123456789abcdef0123456789abcdef", 34);
    for (int kind = 0; kind < 2; kind++) {
        struct msg_register got;
        writer_init(&w, bytes, sizeof bytes);
        reg.claim = kind == 0 ? (struct claim){0} : (struct claim){.size = 1, .attempt = 5};
        put_register(&w, &reg);
        reader_init(&r, bytes, w.used);
        EXPECT_EQ(get_register(&r, &got), kind == 1); /* EXPECT follows that one */
    }
    struct msg_claim claim = {.reg = reg}, got;
    writer_init(&w, bytes, sizeof bytes);
    put_claim(&w, &claim);
    reader_init(&r, bytes, w.used);
    EXPECT(!get_claim(&r, &got));
    cluster_free(c);
}
