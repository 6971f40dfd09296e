/* test_master_worlds.c - the many worlds at one master: by name, each for itself; and their memory, which grows and is given back.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

TEST(idle_world_of_four_costs_at_most_16_kib)
{
    struct cluster *c = cluster_new();
    EXPECT_EQ(master_world_bytes(c->master), 0); /* what nobody uses costs nothing */
    cluster_members(c, 4, 0);
    EXPECT_EQ(c->peers[0].member_count, 4);
    EXPECT(master_world_bytes(c->master) <= 16384);
    cluster_free(c);
}

TEST(tables_grow_with_members_groups_and_reports_up_to_their_limits)
{
    struct master_config config = cluster_config();
    config.max_members = 20;
    config.max_groups = 3;
    struct cluster *c = cluster_with(&config);
    for (uint32_t i = 0; i < 20; i++) {
        EXPECT(!cluster_closed(c, peer_join(c, i % 3)->conn));
    }
    EXPECT_STR(peer_join(c, 0)->fence.text, "the run is full");
    for (uint32_t i = 0; i < 20; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
    struct peer *p = &c->peers[0];
    for (uint32_t i = 0; i < PEERS_OPS; i++) {
        peer_reports(p, 100 + i, 1, OP_RUNNING, CAUSE_NONE);
    }
    peer_crash(c, &c->peers[3]);
    EXPECT_EQ(p->decision_count, PEERS_OPS);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(without_memory_a_newcomer_is_refused_and_the_others_go_on)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    c->no_memory = true;
    EXPECT_STR(peer_join(c, 0)->fence.text, "the master has no memory for another peer");
    EXPECT_STR(peer_join(c, 1)->fence.text, "the master has no memory for another peer");
    c->no_memory = false;
    struct peer *late = peer_join(c, 0);
    for (uint32_t i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
    EXPECT_EQ(late->member_count, 5);
    cluster_free(c);
}

TEST(without_memory_for_its_report_a_member_goes_and_the_others_get_their_view)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    for (uint32_t i = 0; i < 20; i++) {
        peer_reports(&c->peers[1], 100 + i, 1, OP_RUNNING, CAUSE_NONE);
    }
    c->no_memory = true;
    peer_crash(c, &c->peers[3]);
    EXPECT_STR(c->peers[1].fence.text, "the master has no memory for its report");
    EXPECT_EQ(c->peers[0].member_count, 2);
    EXPECT_EQ(c->peers[2].member_count, 2);
    cluster_free(c);
}

TEST(a_report_that_nobody_waits_for_costs_no_memory) /* one client takes megabytes for each connection */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *pending = peer_join(c, 0);
    size_t before = master_world_bytes(c->master);
    for (uint32_t i = 0; i < PEERS_OPS; i++) {
        peer_reports(&c->peers[0], 100 + i, 1, OP_RUNNING, CAUSE_NONE);
        peer_reports(pending, 100 + i, 1, OP_RUNNING, CAUSE_NONE);
    }
    peer_frozen(&c->peers[0]); /* no freeze */
    cluster_pass(c, 600); /* with the next heartbeats */
    EXPECT(c->peers[0].open); /* of a freeze that was, it may come late */
    EXPECT_EQ(master_world_bytes(c->master), before);
    peer_frozen(pending);      /* no member: that cannot be */
    cluster_pass(c, 600); /* with the next heartbeats */
    EXPECT(!pending->open);
    EXPECT_EQ(master_world_bytes(c->master), before);
    cluster_free(c);
}

TEST(places_are_counted_over_all_worlds_and_who_resumes_finds_one) /* members of some worlds shut the others out */
{
    struct master_config config = cluster_config();
    config.max_registered = 5;
    struct cluster *c = cluster_with(&config);
    cluster_world(c, 3, 0, "left");
    cluster_world(c, 2, 0, "right");
    struct peer *late = peer_join_world(c, 0, "third");
    EXPECT_EQ(late->fence.cause, CAUSE_KICK_FULL);
    EXPECT_STR(late->fence.text, "the master has no place for more peers, in whatever world");
    EXPECT_EQ(master_world_count(c->master), 2);
    peer_cut(c, &c->peers[3]);
    peer_resume(c, &c->peers[3]);
    EXPECT(c->peers[3].open);
    EXPECT_EQ(peer_join_world(c, 0, "right")->fence.cause, CAUSE_KICK_FULL);
    peer_crash(c, &c->peers[0]);
    cluster_pass(c, 3000);
    EXPECT_EQ(peer_join_world(c, 0, "third")->fence.cause, 0);
    EXPECT_EQ(master_world_count(c->master), 3);
    cluster_free(c);
}

TEST(rings_are_searched_without_memory_to_measure) /* what is not known stays so, and the vote ends */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    c->no_memory = true;
    peer_vote(c, &c->peers[0], VOTE_OPTIMISE);
    peer_vote(c, &c->peers[1], VOTE_OPTIMISE);
    EXPECT_EQ(c->peers[0].answer.result, ANSWER_OK);
    EXPECT_EQ(c->peers[0].answered, 2);
    cluster_free(c);
}

/* ---- worlds by name ------------------------------------------------------------------------------------------------- */

TEST(two_names_are_two_worlds) /* sizes, votes and ids of one would reach the other's programs */
{
    struct cluster *c = cluster_new();
    cluster_world(c, 3, 0, "left");
    cluster_world(c, 2, 0, "right");
    struct peer *left = &c->peers[0], *right = &c->peers[3];
    EXPECT_EQ(master_world_count(c->master), 2);
    EXPECT(left->run != right->run && left->run != c->config.run && right->run != c->config.run);
    EXPECT_EQ(left->last_view.sizes.global, 3);
    EXPECT_EQ(right->last_view.sizes.global, 2);
    EXPECT_EQ(right->last_view.sizes.largest, 2);
    EXPECT(right->id > left->id); /* one counter for all: an id means one peer at this master */
    cluster_free(c);
}

TEST(a_vote_is_answered_by_its_own_world_alone)
{
    struct cluster *c = cluster_new();
    cluster_world(c, 2, 0, "left");
    cluster_world(c, 2, 0, "right");
    uint32_t answered = c->peers[0].answered, others = c->peers[2].answered;
    peer_vote(c, &c->peers[2], VOTE_OPTIMISE); /* would stand against the update, were they one world */
    peer_vote(c, &c->peers[0], VOTE_UPDATE);
    EXPECT_EQ(c->peers[0].answered, answered);
    peer_vote(c, &c->peers[1], VOTE_UPDATE);
    EXPECT_EQ(c->peers[0].answer.result, ANSWER_OK);
    EXPECT_EQ(c->peers[0].answered, answered + 1);
    EXPECT_EQ(c->peers[2].answered, others);
    struct peer *late = peer_join_world(c, 0, "right"); /* somebody waits, but not here */
    peer_vote(c, &c->peers[0], VOTE_QUERY);
    peer_vote(c, &c->peers[1], VOTE_QUERY);
    EXPECT_EQ(c->peers[0].answer.value, 0);
    EXPECT_EQ(late->view, 0);
    cluster_free(c);
}

TEST(a_freeze_stays_in_its_world)
{
    struct cluster *c = cluster_new();
    cluster_world(c, 3, 0, "left");
    cluster_world(c, 3, 0, "right");
    uint64_t view = c->peers[3].view;
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    peer_crash(c, &c->peers[1]);
    EXPECT(peer_saw(&c->peers[0], "FREEZE VIEW"));
    EXPECT_EQ(c->peers[0].member_count, 2);
    EXPECT_EQ(c->peers[3].view, view);
    EXPECT_STR(c->peers[3].log, "");
    EXPECT_STR(c->peers[5].log, "");
    cluster_free(c);
}

TEST(a_report_about_another_worlds_peer_changes_nothing)
{
    struct cluster *c = cluster_new();
    cluster_world(c, 2, 0, "left");
    cluster_world(c, 2, 0, "right");
    peer_suspect(c, &c->peers[0], SUSPECT_LINK, CAUSE_LINK_LOST, &c->peers[2]);
    EXPECT(!peer_saw(&c->peers[2], "FREEZE") && !peer_saw(&c->peers[0], "FREEZE"));
    EXPECT_EQ(c->peers[2].member_count, 2);
    cluster_free(c);
}

TEST(a_member_resumes_in_its_own_world_only)
{
    struct cluster *c = cluster_new();
    cluster_world(c, 2, 0, "left");
    cluster_world(c, 2, 0, "right");
    struct peer *p = &c->peers[0];
    peer_cut(c, p);
    peer_resume(c, p);
    EXPECT(p->open);
    peer_cut(c, p);
    p->run = c->peers[2].run; /* its id is no one's there */
    strncpy(p->world, "right", sizeof p->world);
    peer_resume(c, p);
    EXPECT_EQ(p->fence.cause, CAUSE_KICK_STALE);
    EXPECT(!p->open);
    cluster_free(c);
}

/* A peer that mixes up two runs would become a member of the one that its header names, with what it knows of the other. */
TEST(a_register_that_names_two_runs_is_refused)
{
    for (int same = 0; same < 2; same++) {
        struct cluster *c = cluster_new();
        cluster_members(c, 2, 0);
        uint64_t run = c->peers[0].run;
        uint32_t conn = cluster_open(c);
        struct msg_register reg = {.run = same ? run : run + 1, .lanes = 1, .addresses = 1, .address = {{.family = 4, .port = 48150}}};
        unsigned char bytes[512];
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_register(&w, &reg);
        cluster_frame(c, conn, FRAME_REGISTER, bytes, (uint32_t)w.used, run);
        EXPECT_EQ(cluster_closed(c, conn), !same);
        cluster_free(c);
    }
}

TEST(a_name_ends_with_its_last_member_and_can_be_used_again)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 1, 0);
    cluster_world(c, 2, 0, "left");
    uint64_t run = c->peers[1].run, view = c->peers[1].view;
    peer_crash(c, &c->peers[1]);
    cluster_pass(c, 3000);
    EXPECT_EQ(master_world_count(c->master), 2);
    peer_crash(c, &c->peers[2]);
    cluster_pass(c, 3000);
    EXPECT_EQ(master_world_count(c->master), 1);
    struct peer *again = peer_join_world(c, 0, "left");
    EXPECT(again->run != run && again->run != 0);
    EXPECT(again->view > view);
    EXPECT_EQ(again->member_count, 1);
    cluster_free(c);
}

TEST(the_default_world_never_ends)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 1, 0);
    peer_crash(c, &c->peers[0]);
    cluster_pass(c, 3000);
    EXPECT_EQ(master_group_count(c->master), 0);
    EXPECT_EQ(master_world_count(c->master), 1);
    uint64_t before = c->peers[0].view;
    struct peer *again = peer_join(c, 0);
    EXPECT_EQ(again->run, c->config.run);
    EXPECT(again->view > before); /* numbers of its views go on */
    cluster_free(c);
}

TEST(a_name_that_is_too_long_is_refused) /* 64 bytes and more, and what no terminal should be sent */
{
    static const struct {
        uint32_t size;
        char byte;
        bool taken;
    } rows[] = {{63, 'x', true}, {64, 'x', false}, {255, 'x', false}, {3, 0, false}, {3, 27, false}, {3, 127, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster *c = cluster_new();
        unsigned char bytes[512];
        struct writer w;
        struct msg_register reg = {.lanes = 1};
        uint32_t conn = cluster_open(c);
        writer_init(&w, bytes, sizeof bytes);
        put_register(&w, &reg);
        bytes[w.used - 1] = (unsigned char)rows[i].size; /* the name comes last */
        memset(bytes + w.used, rows[i].byte, rows[i].size);
        cluster_frame(c, conn, FRAME_REGISTER, bytes, (uint32_t)w.used + rows[i].size, 0);
        EXPECT_EQ(cluster_closed(c, conn), !rows[i].taken);
        EXPECT_EQ(master_world_count(c->master), rows[i].taken);
        cluster_free(c);
    }
}

TEST(worlds_beyond_the_most_are_refused_with_a_reason)
{
    struct master_config config = cluster_config();
    config.max_worlds = 3; /* the default one among them, used or not */
    struct cluster *c = cluster_with(&config);
    peer_join_world(c, 0, "a");
    peer_join_world(c, 0, "b");
    EXPECT_STR(peer_join_world(c, 0, "c")->fence.text, "no room for another world at this master");
    EXPECT(peer_join(c, 0)->view != 0);
    EXPECT(peer_join_world(c, 0, "a")->open);
    cluster_free(c);
}

TEST(memory_is_flat_over_many_worlds_that_end)
{
    struct cluster *c = cluster_new();
    size_t most = 0;
    char name[20];
    for (uint32_t round = 0; round < 300; round++) {
        snprintf(name, sizeof name, "world %u", round);
        c->count = 0;
        cluster_world(c, 4, round % 3, name);
        EXPECT_EQ(c->peers[0].member_count, 4);
        for (uint32_t i = 0; i < 20; i++) {
            peer_reports(&c->peers[1], 100 + i, 1, OP_RUNNING, CAUSE_NONE);
        }
        size_t bytes = master_world_bytes(c->master);
        EXPECT(round == 0 || bytes == most);
        most = bytes;
        for (uint32_t i = 0; i < 4; i++) {
            peer_crash(c, &c->peers[i]);
        }
        cluster_pass(c, 3000);
        EXPECT_EQ(master_world_count(c->master), 0);
        EXPECT_EQ(master_world_bytes(c->master), 0);
        EXPECT_EQ(c->journal.used, 0); /* of what has ended nothing has to be told */
    }
    cluster_free(c);
}

TEST(many_worlds_at_once_each_with_its_own_silence)
{
    enum { WORLDS = 24 };
    struct cluster *c = cluster_new();
    char name[20];
    for (uint32_t i = 0; i < WORLDS; i++) {
        snprintf(name, sizeof name, "w%u", i);
        EXPECT_EQ(peer_join_world(c, 0, name)->member_count, 1);
    }
    EXPECT_EQ(master_world_count(c->master), WORLDS);
    c->peers[7].mute = true;
    cluster_pass(c, 12000);
    EXPECT_EQ(master_world_count(c->master), WORLDS - 1);
    EXPECT_EQ(c->peers[7].fence.cause, CAUSE_PEER_SILENT);
    for (uint32_t i = 0; i < WORLDS; i++) {
        EXPECT_EQ(c->peers[i].open, i != 7);
    }
    cluster_free(c);
}

TEST(silence_is_judged_over_all_worlds) /* M7: most of one small world are silent, few of all */
{
    struct cluster *c = cluster_new();
    cluster_world(c, 2, 0, "small");
    cluster_world(c, 6, 0, "large");
    c->peers[0].mute = c->peers[1].mute = true;
    cluster_pass(c, 12000);
    EXPECT(!c->peers[0].open && !c->peers[1].open); /* alone they would have been spared: both at once */
    EXPECT(c->peers[2].open);
    cluster_free(c);
    c = cluster_new();
    cluster_world(c, 2, 0, "small");
    cluster_world(c, 3, 0, "large");
    for (uint32_t i = 1; i < 5; i++) {
        c->peers[i].mute = true;
    }
    cluster_pass(c, 12000);
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT(c->peers[i].open); /* four of five: it may well be the master */
    }
    cluster_free(c);
}

static bool journal_finds(const struct journal *j, uint8_t kind, uint64_t run, const char *name, uint32_t group)
{
    struct record r;
    uint32_t found = 0;
    for (size_t at = 0; record_next(j->bytes, j->used, &at, &r);) {
        found += r.kind == kind && r.run == run && strcmp(r.name, name) == 0 && r.group == group;
    }
    return found == 1;
}

TEST(the_journal_of_several_worlds_is_read_back) /* same groups, different worlds: neither replaces the other's */
{
    struct cluster *c = cluster_new();
    cluster_world(c, 2, 5, "left");
    cluster_world(c, 2, 5, "right");
    peer_join(c, 5);
    peer_sync(c, &c->peers[2], 0, 1, 7, 8, false);
    peer_sync(c, &c->peers[3], 0, 1, 7, 8, false);
    EXPECT(journal_finds(&c->journal, RECORD_VIEW, c->peers[0].run, "left", 5));
    EXPECT(journal_finds(&c->journal, RECORD_VIEW, c->peers[2].run, "right", 5));
    EXPECT(journal_finds(&c->journal, RECORD_VIEW, c->config.run, "", 5));
    EXPECT(journal_finds(&c->journal, RECORD_REVISION, c->peers[2].run, "right", 5));
    EXPECT(!journal_finds(&c->journal, RECORD_REVISION, c->peers[0].run, "left", 5));
    peer_crash(c, &c->peers[2]);
    peer_crash(c, &c->peers[3]);
    cluster_pass(c, 3000);
    EXPECT(journal_finds(&c->journal, RECORD_VIEW, c->peers[0].run, "left", 5));
    EXPECT(!journal_finds(&c->journal, RECORD_VIEW, c->peers[2].run, "right", 5));
    EXPECT(!journal_finds(&c->journal, RECORD_REVISION, c->peers[2].run, "right", 5));
    cluster_free(c);
}

TEST(the_log_names_the_world)
{
    struct cluster *c = cluster_new();
    snprintf(c->listen, sizeof c->listen, "registered");
    peer_join_world(c, 3, "blue");
    EXPECT(strstr(c->heard, "of group 3 of world 'blue' registered") != NULL);
    peer_join(c, 3);
    EXPECT(strstr(c->heard, "world") == NULL);
    snprintf(c->listen, sizeof c->listen, "ended");
    peer_crash(c, &c->peers[0]);
    cluster_pass(c, 3000);
    EXPECT_STR(c->heard, "world 'blue' ended: no member is left");
    cluster_free(c);
}

TEST(late_word_of_a_world_that_has_ended_is_nobodys) /* its place may have another world by then */
{
    struct cluster *c = cluster_new();
    c->hold_persist = true;
    struct peer *p = peer_join_world(c, 0, "short");
    EXPECT_EQ(c->persists, 1);
    peer_cut(c, p);
    EXPECT_EQ(master_world_count(c->master), 1); /* its first view is on its way to the journal */
    c->hold_persist = false;
    cluster_persisted(c);
    cluster_pass(c, 3000);
    EXPECT_EQ(master_world_count(c->master), 0);
    peer_join_world(c, 0, "next");
    struct peer *next = &c->peers[1];
    EXPECT(next->view != 0);
    uint32_t order[3] = {0, 1, 2};
    cluster_solved(c, (uint64_t)1 << 48 | 1, order, 3);
    EXPECT(!master_poisoned(c->master) && next->open);
    cluster_free(c);
}
