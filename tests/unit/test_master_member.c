/* test_master_member.c - getting in, staying in, getting lost; and what strangers send.
 * SPDX-License-Identifier: MIT */
#include "core/check.h"
#include "core/random.h"
#include "master_peers.h"
#include "tests/testing.h"

TEST(first_peer_is_admitted_at_once) /* nobody is there to vote it in: it would wait for ever */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 3);
    EXPECT_STR(a->log, "WELCOME ADMIT VIEW ");
    EXPECT_EQ(a->member_count, 1);
    EXPECT_EQ(a->last_view.parent, 0);
    EXPECT_EQ(a->last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(a->last_view.sizes.global, 1);
    EXPECT_EQ(a->last_view.sizes.group, 1);
    EXPECT_EQ(a->last_view.sizes.groups, 1);
    EXPECT_EQ(a->last_view.sizes.largest, 1);
    EXPECT_EQ(a->welcome.run, 77);
    EXPECT_EQ(a->welcome.epoch, 1);
    EXPECT_EQ(a->welcome.heartbeat_ms, 1000);
    EXPECT_EQ(a->welcome.dead_ms, 10000);
    EXPECT_EQ(a->welcome.seen.port, 1234);
    EXPECT(a->id >> 32 == 1 && a->view >> 32 == 1); /* epoch above, counter below */
    cluster_free(c);
}

TEST(second_peer_waits_for_an_update) /* a newcomer must not change the world under running operations */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *b = peer_join(c, 0);
    EXPECT_STR(b->log, "WELCOME ");
    EXPECT_EQ(master_pending_count(c->master), 1);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_STR(b->log, "WELCOME ADMIT VIEW ");
    EXPECT_STR(a->log, "WELCOME ADMIT VIEW ADMIT VIEW ");
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(b->member_count, 2);
    EXPECT_EQ(a->answered, b->answered);
    EXPECT_EQ(a->last_view.sizes.global, 2);
    EXPECT_EQ(a->last_view.plan.lanes, 2); /* the smallest of the members and the master's */
    EXPECT_EQ(a->view, b->view);
    cluster_free(c);
}

TEST(transitions_read_as_a_trace) /* one line per transition, in order */
{
    struct cluster *c = cluster_new();
    peer_join(c, 0);
    EXPECT_STR(c->trace, "first peer\nregistered\nlinks are made\nviews decided\npublished\nadmitted\n");
    c->trace[0] = '\0';
    peer_leave(c, &c->peers[0]);
    EXPECT_STR(c->trace, "left\nforgotten\nnobody left\n");
    EXPECT_EQ(master_group_count(c->master), 0);
    cluster_free(c);
}

TEST(silence_excludes_and_fences) /* a stopped process keeps its sockets */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    p[2].mute = true;
    cluster_pass(c, 9000);
    EXPECT_EQ(p[0].member_count, 3);
    cluster_pass(c, 2500);
    EXPECT_EQ(p[0].member_count, 2);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_SILENT);
    EXPECT_EQ(p[2].fence.cause, CAUSE_PEER_SILENT);
    EXPECT(!p[2].open);
    cluster_free(c);
}

TEST(frozen_peer_that_never_answers_is_excluded) /* at most N attempts */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    struct peer *p = c->peers;
    peer_reports(&p[0], 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(&p[1], 7, 0, OP_HELD, CAUSE_NONE);
    p[2].mute = true;
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[0].member_count, 4);
    cluster_pass(c, 11000);
    EXPECT_EQ(p[0].member_count, 2);
    EXPECT_EQ(p[0].last_view.culprit, p[3].id);
    EXPECT_EQ(peer_decision(&p[0], 7, 0).outcome, OUTCOME_COMMIT);
    cluster_free(c);
}

TEST(frozen_peer_that_lives_but_never_reports_is_excluded) /* heartbeats alone must not hold up the others */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    p[1].no_frozen = true;
    peer_crash(c, &p[2]);
    cluster_pass(c, 9000);
    EXPECT(!peer_saw(&p[0], "FREEZE VIEW"));
    cluster_pass(c, 1500);
    EXPECT_EQ(p[0].member_count, 1);
    EXPECT_EQ(p[1].fence.cause, CAUSE_PEER_SILENT);
    cluster_free(c);
}

TEST(master_that_stood_still_excludes_nobody) /* M7 */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    c->now += 60000000000;
    cluster_pass(c, 3000);
    EXPECT_EQ(c->peers[0].member_count, 3);
    EXPECT(c->peers[0].open && c->peers[1].open && c->peers[2].open);
    cluster_free(c);
}

TEST(master_that_stood_still_gives_time_to_resume) /* M7: its own pause does not count against a lost connection */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    peer_cut(c, &c->peers[2]);
    c->now += 60000000000;
    cluster_pass(c, 100);
    peer_resume(c, &c->peers[2]);
    EXPECT(c->peers[2].open);
    EXPECT_EQ(c->peers[0].member_count, 3);
    cluster_free(c);
}

TEST(more_than_half_silent_at_once_are_spared_once) /* M7: the fault may be on this side */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    p[1].mute = p[2].mute = true;
    cluster_pass(c, 15000);
    EXPECT_EQ(p[0].member_count, 3);
    cluster_pass(c, 10000);
    EXPECT_EQ(p[0].member_count, 1);
    cluster_free(c);
}

TEST(all_that_fall_silent_are_spared_although_each_was_heard_at_another_time) /* M7 */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    for (uint32_t i = 0; i < 3; i++) { /* a heartbeat of some is the last that comes through, one of others is not */
        p[i].mute = true;
        cluster_pass(c, 900);
    }
    cluster_pass(c, 15000);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT(p[i].open);
        p[i].mute = false;
    }
    cluster_pass(c, 15000);
    EXPECT_EQ(p[0].member_count, 3);
    cluster_free(c);
}

TEST(lost_control_connection_may_be_resumed) /* broken connection is not death */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    peer_cut(c, &p[1]);
    cluster_pass(c, 1500);
    peer_forget(&p[1]);
    peer_resume(c, &p[1]);
    EXPECT_STR(p[1].log, "WELCOME ");
    cluster_pass(c, 5000);
    EXPECT_EQ(p[0].member_count, 2);
    peer_cut(c, &p[1]);
    cluster_pass(c, 2100);
    EXPECT_EQ(p[0].member_count, 1);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_LOST);
    peer_forget(&p[1]);
    peer_resume(c, &p[1]); /* too late: an id does not come back */
    EXPECT_STR(p[1].log, "FENCE ");
    EXPECT_EQ(p[1].fence.cause, CAUSE_KICK_STALE);
    EXPECT(!p[1].open);
    cluster_free(c);
}

TEST(leave_is_a_death_that_needs_no_detection)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    peer_leave(c, &p[1]);
    EXPECT_EQ(p[0].member_count, 1);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_LEFT);
    EXPECT(!p[1].open);
    EXPECT(!peer_saw(&p[1], "FENCE"));
    cluster_free(c);
}

TEST(unset_address_becomes_what_the_master_saw)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0);
    EXPECT_EQ(a->infos[0].addresses, 1);
    EXPECT_EQ(a->infos[0].address[0].ip[0], 10);
    EXPECT_EQ(a->infos[0].address[0].ip[3], 1);
    EXPECT_EQ(a->infos[0].address[0].port, 48150); /* the peer's own port, not that of the connection */
    EXPECT_EQ(a->infos[0].lanes, 2);
    cluster_free(c);
}

TEST(full_run_refuses_with_the_reason)
{
    struct master_config config = cluster_config();
    config.max_members = 2;
    config.max_groups = 1;
    struct cluster *c = cluster_with(&config);
    peer_join(c, 0);
    struct peer *b = peer_join(c, 9);
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_FULL); /* no group left */
    EXPECT(!b->open);
    struct peer *d = peer_join(c, 0), *e = peer_join(c, 0);
    EXPECT(d->open);
    EXPECT_EQ(e->fence.cause, CAUSE_KICK_FULL);
    peer_leave(c, d);
    EXPECT(peer_join(c, 0)->open); /* its slot is free again */
    cluster_free(c);
}

TEST(emptied_groups_give_their_slots_back) /* churn of labels must not fill the table */
{
    struct master_config config = cluster_config();
    config.max_groups = 2;
    struct cluster *c = cluster_with(&config);
    peer_join(c, 0);
    uint64_t last = 0;
    for (uint32_t label = 1; label < 20; label++) {
        struct peer *p = peer_join(c, label);
        peer_vote(c, &c->peers[0], VOTE_UPDATE);
        EXPECT_EQ(p->member_count, 1);
        EXPECT(p->view > last); /* a number is not used twice, whatever the label */
        last = p->view;
        peer_leave(c, p);
    }
    cluster_free(c);
}

/* ---- strangers ----------------------------------------------------------------------------------------------------- */

TEST(stranger_that_registers_too_late_is_closed)
{
    struct cluster *c = cluster_new();
    uint32_t conn = cluster_open(c);
    cluster_pass(c, 4900);
    EXPECT(!cluster_closed(c, conn));
    cluster_pass(c, 200);
    EXPECT(cluster_closed(c, conn));
    cluster_free(c);
}

TEST(every_message_before_register_closes) /* each type, in the state where it cannot be */
{
    struct cluster *c = cluster_new();
    for (int type = 0; type < 256; type++) {
        if (frame_limit((uint8_t)type) == 0) {
            continue; /* frame_get refuses it before the master */
        }
        uint32_t conn = cluster_open(c);
        cluster_frame(c, conn, (uint8_t)type, NULL, 0, 0);
        EXPECT(cluster_closed(c, conn));
    }
    EXPECT(!master_poisoned(c->master));
    EXPECT_EQ(master_group_count(c->master), 0);
    cluster_free(c);
}

TEST(message_that_no_member_may_send_excludes_it)
{
    for (int type = 1; type < 256; type++) {
        if (frame_limit((uint8_t)type) == 0) {
            continue;
        }
        struct cluster *c = cluster_new();
        cluster_members(c, 2, 0);
        cluster_frame(c, c->peers[1].conn, (uint8_t)type, NULL, 0, 77); /* an empty payload fits none of them */
        EXPECT_EQ(c->peers[1].fence.cause, CAUSE_KICK_PROTOCOL);
        EXPECT_EQ(c->peers[0].member_count, 1);
        EXPECT_EQ(c->peers[0].last_view.cause, CAUSE_KICK_PROTOCOL);
        cluster_free(c);
    }
}

TEST(another_run_is_refused)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    struct msg_heartbeat hb = {0};
    unsigned char bytes[256];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_heartbeat(&w, &hb);
    cluster_frame(c, p[1].conn, FRAME_HEARTBEAT, bytes, (uint32_t)w.used, 77);
    EXPECT(p[1].open);
    cluster_frame(c, p[1].conn, FRAME_HEARTBEAT, bytes, (uint32_t)w.used, 78);
    EXPECT(!p[1].open);
    struct msg_register reg = {.run = 78, .lanes = 1};
    writer_init(&w, bytes, sizeof bytes);
    put_register(&w, &reg);
    uint32_t conn = cluster_open(c);
    cluster_frame(c, conn, FRAME_REGISTER, bytes, (uint32_t)w.used, 78);
    EXPECT(cluster_closed(c, conn));
    cluster_free(c);
}

TEST(resume_with_an_impossible_state_is_refused)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    p[1].view += 5;
    peer_resume(c, &p[1]);
    EXPECT_EQ(p[1].fence.cause, CAUSE_KICK_PROTOCOL);
    p[2].answered += 3;
    peer_resume(c, &p[2]);
    EXPECT_EQ(p[2].fence.cause, CAUSE_KICK_PROTOCOL);
    EXPECT_EQ(p[0].member_count, 1);
    cluster_free(c);
}

TEST(reports_that_list_twice_or_too_much_exclude_their_sender)
{
    struct master_config config = cluster_config();
    config.max_operations = 4;
    struct cluster *c = cluster_with(&config);
    cluster_members(c, 4, 0);
    struct peer *p = c->peers;
    peer_reports(&p[0], 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(&p[1], 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(&p[1], 7, 0, OP_HELD, CAUSE_NONE);
    for (uint32_t i = 0; i < 6; i++) {
        peer_reports(&p[2], 8, i, OP_RUNNING, CAUSE_NONE);
    }
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[1].fence.cause, CAUSE_KICK_PROTOCOL);
    EXPECT_EQ(p[2].fence.cause, CAUSE_KICK_FULL); /* no more than it may, but more than there is room */
    EXPECT(strstr(p[2].fence.text, "more operations in flight than a view can decide") != NULL);
    EXPECT_EQ(p[0].member_count, 1);
    EXPECT_EQ(p[0].decision_count, 1); /* nothing of the dropped reports is left */
    EXPECT_EQ(peer_decision(&p[0], 7, 0).outcome, OUTCOME_COMMIT);
    cluster_free(c);
}

/* So many operations, running and finished, that were launched, from this tag on, and heard to be refused. */
static void long_report(struct cluster *c, struct peer *p, uint64_t tag, uint32_t running, uint32_t finished, uint32_t heard)
{
    static unsigned char raw[BOUNDS_CONTROL_FRAME];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_frozen(&w, &(struct msg_frozen){.view = p->freeze.view, .attempt = p->freeze.attempt,
                                        .reports = running + finished + heard});
    for (uint32_t i = 0; i < running; i++) {
        put_op_report(&w, &(struct op_report){.name.tag = tag + i, .state = OP_RUNNING, .params = 1, .call = {.count = 1}});
    }
    for (uint32_t i = 0; i < finished; i++) {
        put_op_report(&w, &(struct op_report){.name = {.tag = tag % 7 + i, .seq = 1}, .state = OP_FINISHED, .params = 1});
    }
    for (uint32_t i = 0; i < heard; i++) {
        put_op_report(&w, &(struct op_report){.name = {.tag = tag + i, .seq = 2}, .state = OP_REFUSED, .cause = CAUSE_CANCEL});
    }
    EXPECT(!w.bad && w.used <= frame_limit(FRAME_FROZEN));
    cluster_frame(c, p->conn, FRAME_FROZEN, raw, (uint32_t)w.used, 77);
}

/* As the master has it: so many members that say what they list by hand, and one more that dies. */
static struct cluster *freeze_of(uint32_t members)
{
    struct master_config config = cluster_config();
    config.max_operations = 2 * BOUNDS_DECISIONS;
    struct cluster *c = cluster_with(&config);
    cluster_members(c, members + 1, 0);
    for (uint32_t i = 0; i < members; i++) {
        c->peers[i].no_frozen = true;
    }
    peer_crash(c, &c->peers[members]);
    return c;
}

TEST(ten_members_with_all_their_calls_to_themselves_keep_their_places) /* the one that reports last was put out for it */
{
    enum { MEMBERS = BOUNDS_DECISIONS / BOUNDS_OPS };
    struct cluster *c = freeze_of(MEMBERS);
    struct peer *p = c->peers;
    for (uint32_t i = 0; i < MEMBERS; i++) { /* what all have finished is no more for that */
        long_report(c, &p[i], 70000 * (i + 1), BOUNDS_OPS, BOUNDS_RECORDS, 0);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(p[i].fence.cause, 0);
        EXPECT_EQ(p[i].member_count, MEMBERS);
        EXPECT_EQ(p[i].decision_count, BOUNDS_DECISIONS);
        EXPECT_EQ(p[i].decisions[0].outcome, OUTCOME_ABORT);
    }
    cluster_free(c);
}

TEST(one_report_of_lies_costs_nobody_else_its_place) /* it fills the table, and the honest that come later find no room */
{
    struct cluster *c = freeze_of(4);
    struct peer *p = c->peers;
    long_report(c, &p[0], 700001, BOUNDS_OPS, BOUNDS_RECORDS, BOUNDS_LISTED - BOUNDS_OPS - BOUNDS_RECORDS);
    for (uint32_t i = 1; i < 4; i++) {
        long_report(c, &p[i], 700000 * (i + 1), BOUNDS_OPS, BOUNDS_RECORDS, BOUNDS_OPS);
    }
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(p[i].fence.cause, 0);
        EXPECT_EQ(p[i].member_count, 4);
    }
    cluster_free(c);
}

TEST(more_than_a_member_can_have_launched_excludes_who_lists_it)
{
    struct cluster *c = freeze_of(3);
    struct peer *p = c->peers;
    long_report(c, &p[0], 700001, BOUNDS_OPS + 1, 0, 0);
    EXPECT_EQ(p[0].fence.cause, CAUSE_KICK_PROTOCOL);
    long_report(c, &p[1], 700001, BOUNDS_OPS, BOUNDS_RECORDS + 1, 0);
    EXPECT_EQ(p[1].fence.cause, CAUSE_KICK_PROTOCOL);
    long_report(c, &p[2], 700001, BOUNDS_OPS, BOUNDS_RECORDS, 0);
    EXPECT_EQ(p[2].fence.cause, 0);
    EXPECT_EQ(p[2].member_count, 1);
    cluster_free(c);
}

TEST(random_bytes_never_harm_the_others)
{
    struct rng r = {.state = 99};
    for (int round = 0; round < 300; round++) {
        struct cluster *c = cluster_new();
        cluster_members(c, 3, 0);
        for (int i = 0; i < 20; i++) {
            unsigned char bytes[300];
            uint32_t size = (uint32_t)rng_below(&r, sizeof bytes);
            for (uint32_t k = 0; k < size; k++) {
                uint64_t v = rng_next(&r);
                bytes[k] = v >> 60 < 10 ? (unsigned char)(v & 3) : (unsigned char)v; /* small numbers get further */
            }
            uint8_t type = (uint8_t)(1 + rng_below(&r, 9));
            bool member = c->peers[2].open && rng_below(&r, 4) != 0;
            uint32_t conn = member ? c->peers[2].conn : cluster_open(c);
            cluster_frame(c, conn, type, bytes, size, rng_below(&r, 2) * 77);
        }
        EXPECT(!master_poisoned(c->master));
        EXPECT(c->peers[0].open && c->peers[1].open);
        peer_vote(c, &c->peers[0], VOTE_QUERY);
        peer_vote(c, &c->peers[1], VOTE_QUERY);
        cluster_pass(c, 25000);
        EXPECT(c->peers[0].open);
        cluster_free(c);
    }
}

TEST(own_bug_poisons_the_master_and_closes_everybody) /* nobody waits for a machine that no longer thinks */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    cluster_bug(c);
    EXPECT(master_poisoned(c->master));
    EXPECT(!c->peers[0].open && !c->peers[1].open);
    EXPECT_EQ(master_deadline(c->master), INT64_MAX);
    EXPECT(check_current == NULL);
    EXPECT_EQ(check_failed, 0);
    cluster_free(c);
}

TEST(limits_out_of_range_are_refused)
{
    struct master_config config = cluster_config();
    EXPECT(master_arena_bytes(&config) > 0);
    config.max_members = 1u << 20;
    EXPECT_EQ(master_arena_bytes(&config), 0);
    config = cluster_config();
    config.run = 0;
    EXPECT_EQ(master_arena_bytes(&config), 0);
    config = cluster_config();
    config.max_operations = 0;
    EXPECT_EQ(master_arena_bytes(&config), 0);
}

TEST(log_names_who_was_excluded_with_its_address_and_why) /* "peer 3 (view 7): gone" helps nobody at night */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    snprintf(c->listen, sizeof c->listen, "excluded");
    p[2].mute = true;
    cluster_pass(c, 11500);
    EXPECT(strstr(c->heard, "peer 1.3 (") != NULL);
    EXPECT(strstr(c->heard, "of group 0 excluded from view ") != NULL && strstr(c->heard, ": no sign of life") != NULL);
    snprintf(c->listen, sizeof c->listen, "left");
    peer_leave(c, &p[1]);
    EXPECT(strstr(c->heard, "peer 1.2 (") != NULL && strstr(c->heard, "of group 0 left view ") != NULL);
    EXPECT(strstr(c->heard, "excluded") == NULL);
    cluster_free(c);
}
