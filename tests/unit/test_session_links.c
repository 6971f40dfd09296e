/* test_session_links.c - whom a session is linked with: admissions, pairs without a link, links that come back.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

static void admit(struct bench *b, uint32_t number, uint32_t attempt, uint32_t first, uint32_t count)
{
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_admit(&w, &(struct msg_admit){.view = view_id(number), .attempt = attempt, .members = count + 1});
    put_member_info(&w, &(struct member_info){.id = self, .lanes = 1});
    for (uint32_t i = 0; i < count; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(first + i), .lanes = 1});
    }
    from_master(b, FRAME_ADMIT, view_id(number), &w);
}

/* View 2: this one and `count` peers from 1 on. */
static void grow(struct bench *b, uint32_t count)
{
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .sizes = {count + 1, count + 1, 1, count + 1},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = count + 1, .added = count + 1 - PEERS};
    put_view(&w, &m);
    for (uint32_t i = PEERS; i <= count; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i <= count; i++) {
        put_u32(&w, i);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

static uint32_t wanted(const struct bench *b)
{
    return session_wanted(b->s, NULL, 0);
}

TEST(attempts_with_ever_new_peers_find_room_for_each) /* the table of peers holds a view and one proposal, not all attempts */
{
    struct bench *b = bench_new();
    grow(b, 7);
    EXPECT_EQ(wanted(b), 7);
    for (uint32_t attempt = 1; attempt <= 5; attempt++) {
        admit(b, 3, attempt, 10 * attempt, 7); /* everybody else is lost, newcomers come and go */
        EXPECT(!session_poisoned(b->s));
        EXPECT_EQ(wanted(b), 7 + 7);
    }
    bench_free(b);
}

static uint8_t hello(struct bench *b, uint64_t from, uint64_t view)
{
    struct msg_hello m = {.kind = LINK_CONTROL, .from = from, .to = self, .view = view, .number = 1};
    struct session_event e = {.kind = SESSION_HELLO, .peer = from, .hello = &m};
    step(b, &e);
    return e.verdict;
}

TEST(dialler_that_is_ahead_is_kept_and_one_that_is_behind_is_not) /* told that it is stale, it gives a link up that is wanted */
{
    struct bench *b = bench_new();
    EXPECT_EQ(hello(b, peer_id(1), view_id(1)), HELLO_OK);
    EXPECT_EQ(hello(b, peer_id(7), view_id(2)), HELLO_NOT_YET);
    EXPECT_EQ(hello(b, peer_id(7), view_id(1)), HELLO_STALE);
    bench_free(b);
}

TEST(malformed_admission_changes_nothing) /* half a proposal would stand */
{
    struct bench *b = bench_new();
    unsigned char raw[64];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_admit(&w, &(struct msg_admit){.view = view_id(2), .attempt = 1, .members = 2});
    put_member_info(&w, &(struct member_info){.id = peer_id(7), .lanes = 1});
    put_u64(&w, peer_id(8));
    put_u16(&w, 1);
    put_u8(&w, BOUNDS_ADDRESSES + 1);
    from_master(b, FRAME_ADMIT, view_id(2), &w);
    EXPECT_EQ(wanted(b), PEERS - 1);
    bench_free(b);
}

/* ms 0: only for the round trip. */
static void ask_to_measure(struct bench *b, uint32_t round, uint32_t ms, uint64_t to)
{
    unsigned char raw[64];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_probe(&w, &(struct msg_probe){.round = round, .duration_ms = ms, .to = to});
    from_master(b, FRAME_PROBE, 0, &w);
}

TEST(measurement_of_an_older_membership_is_not_told) /* the master would exclude a newcomer that says what it cannot know */
{
    struct bench *b = bench_new();
    unsigned char raw[256];
    struct writer w;
    ask_to_measure(b, 4, 200, peer_id(1));
    const struct msg_measured m = {.round = 4, .to = peer_id(1), .bits_per_second = 1000};
    struct session_event measured = {.kind = SESSION_MEASURED, .measured = &m};
    step(b, &(struct session_event){.kind = SESSION_LEAVE});
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    writer_init(&w, raw, sizeof raw);
    put_welcome(&w, &(struct msg_welcome){.run = run, .id = peer_id(9), .epoch = 1, .heartbeat_ms = 1000, .dead_ms = 10000});
    from_master(b, FRAME_WELCOME, 0, &w);
    step(b, &measured);
    EXPECT(!sent(b, FRAME_MEASURED));
    const struct msg_measured doubt = {.round = MEASURED_DOUBT, .to = peer_id(1), .bits_per_second = 1000};
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &doubt});
    EXPECT(!sent(b, FRAME_MEASURED));
    bench_free(b);
}

TEST(doubt_of_an_edge_is_told_without_a_question) /* the master would never measure again what has changed */
{
    struct bench *b = bench_new();
    const struct msg_measured doubt = {.round = MEASURED_DOUBT, .to = peer_id(1), .bits_per_second = 1000};
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &doubt});
    EXPECT(sent(b, FRAME_MEASURED));
    bench_free(b);
}

TEST(time_of_operations_is_told_of_the_view_in_which_they_ran) /* the master would correct a prediction that is no longer made */
{
    struct bench *b = bench_new();
    const struct msg_took m = {.kind = TOOK_RING, .permille = 1500, .bytes = 4096, .took_us = 7};
    struct session_event took = {.kind = SESSION_TOOK, .view = view_id(0), .took = &m};
    step(b, &took);
    EXPECT(!sent(b, FRAME_TOOK));
    took.view = view_id(1);
    step(b, &took);
    EXPECT(sent(b, FRAME_TOOK));
    step(b, &(struct session_event){.kind = SESSION_LEAVE});
    step(b, &took);
    EXPECT(!sent(b, FRAME_TOOK));
    bench_free(b);
}

TEST(measurement_is_told_once_and_only_of_the_edge_asked_for) /* another edge's rate would be taken for this one's */
{
    struct bench *b = bench_new();
    ask_to_measure(b, 4, 200, peer_id(1));
    const struct msg_measured other = {.round = 4, .to = peer_id(2), .bits_per_second = 1000}, asked = {.round = 4, .to = peer_id(1), .bits_per_second = 1000};
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &other});
    EXPECT(!sent(b, FRAME_MEASURED));
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &asked});
    EXPECT(sent(b, FRAME_MEASURED));
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &asked});
    EXPECT(!sent(b, FRAME_MEASURED));
    bench_free(b);
}

TEST(question_for_a_round_trip_leaves_a_measurement_under_way) /* its answer was thrown away, and waited for */
{
    struct bench *b = bench_new();
    ask_to_measure(b, 4, 200, peer_id(1));
    for (uint32_t i = 0; i < 100; i++) { /* more than it remembers are not answered: the newest ones count */
        ask_to_measure(b, 5 + i, 0, peer_id(1 + i % 2));
        if (i == 1) {
            const struct msg_measured first = {.round = 4, .to = peer_id(1), .bits_per_second = 1000};
            step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &first});
            EXPECT(sent(b, FRAME_MEASURED));
        }
    }
    const struct msg_measured late = {.round = 5, .to = peer_id(1)}, last = {.round = 104, .to = peer_id(2), .rtt_us = 300};
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &late});
    EXPECT(!sent(b, FRAME_MEASURED));
    step(b, &(struct session_event){.kind = SESSION_MEASURED, .measured = &last});
    EXPECT(sent(b, FRAME_MEASURED));
    bench_free(b);
}

/* View 2 of the three: the pair of this one and peer 1 has no link. */
static void part(struct bench *b, uint32_t number, bool apart)
{
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(number), .parent = view_id(number - 1), .sizes = {PEERS, PEERS, 1, PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096},
                         .members = PEERS, .weights = apart ? PEERS : 0, .edges = apart};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    for (uint32_t i = 0; i < m.weights; i++) {
        put_u32(&w, i == 2);
    }
    if (apart) {
        put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(1), .relay = peer_id(2)});
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

/* The last step gave up the control link to this peer. */
static bool unlinked(const struct bench *b, uint32_t peer)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == ACT_UNLINK && b->out.actions[i].id == peer_id(peer)) {
            return true;
        }
    }
    return false;
}

static struct session_wanted want(const struct bench *b, uint32_t peer)
{
    struct session_wanted list[8], none = {0};
    uint32_t n = session_wanted(b->s, list, 8);
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].info.id == peer_id(peer)) {
            return list[i];
        }
    }
    return none;
}

TEST(link_of_a_missing_edge_is_made_anew_beside_the_traffic) /* it would look up for ever, or never be tried again */
{
    struct bench *b = bench_new();
    part(b, 2, true);
    EXPECT(unlinked(b, 1)); /* it may have been given up for its silence */
    EXPECT(!unlinked(b, 2));
    EXPECT(want(b, 1).spare && !want(b, 1).data);
    EXPECT(!want(b, 2).spare && want(b, 2).data);
    bench_free(b);
}

TEST(healed_link_is_told_once_when_both_are_heard_in_the_view) /* the master drops the edge for it */
{
    struct bench *b = bench_new();
    part(b, 2, true);
    ping(b, 2, view_id(2));
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(1)});
    EXPECT(!sent(b, FRAME_LINKED));
    ping(b, 1, view_id(1));
    EXPECT(!sent(b, FRAME_LINKED)); /* it is not in the view yet: the link is of before the cut */
    ping(b, 1, view_id(2));
    EXPECT(sent(b, FRAME_LINKED));
    ping(b, 1, view_id(2));
    EXPECT(!sent(b, FRAME_LINKED));
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    for (uint32_t i = 0; i < b->out.count; i++) { /* the view goes round it until it ends */
        const struct action *a = &b->out.actions[i];
        for (uint32_t k = 0; a->kind == ACT_PEERS && k < a->dests; k++) {
            EXPECT(b->out.dest_ids[a->dest + k] != peer_id(1));
        }
    }
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    EXPECT(sent(b, FRAME_SUSPECT)); /* taken back */
    bench_free(b);
}

TEST(healed_link_is_told_again_to_a_master_that_comes_back)
{
    struct bench *b = bench_new();
    part(b, 2, true);
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN});
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(1)});
    ping(b, 1, view_id(2));
    EXPECT(!sent(b, FRAME_LINKED));
    master_back(b);
    EXPECT(sent(b, FRAME_LINKED));
    bench_free(b);
}

TEST(edges_out_of_order_are_no_view) /* a pair would be looked for where it is not */
{
    struct bench *b = bench_new();
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096}, .members = PEERS, .edges = 2};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(2), .relay = peer_id(1)});
    put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(1), .relay = peer_id(2)});
    from_master(b, FRAME_VIEW, m.view, &w);
    struct session_info info;
    session_info(b->s, &info);
    EXPECT(!info.connected);
    bench_free(b);
}

TEST(bad_bytes_cost_their_sender_its_link) /* the shell would keep a link that the session thinks is gone */
{
    struct bench *b = bench_new();
    unsigned char raw[8] = {0};
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_u32(&w, 7);
    from_peer(b, 1, FRAME_HOLD, view_id(1), &w);
    EXPECT(unlinked(b, 1));
    EXPECT(sent(b, FRAME_SUSPECT));
    bench_free(b);
}

/* ---- the log ---- */

/* The line for everybody that the last step has for the log; null: none. */
static const char *logged(const struct bench *b)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct action *a = &b->out.actions[i];
        if (a->kind == ACT_TRACE && a->value == 1) {
            return (const char *)b->out.bytes + a->frame;
        }
    }
    return NULL;
}

enum { NEW = 5 };

/* After view 1: the other two are gone, five have come, the first of whom has no link with this peer. */
static void crowded(struct bench *b, const char *why)
{
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .sizes = {NEW + 1, NEW + 1, 1, NEW + 1},
                         .plan = {.lanes = 1, .frame_bytes = 4096}, .cause = CAUSE_PEER_LOST,
                         .culprit = peer_id(1), .members = NEW + 1, .added = NEW, .removed = PEERS - 1, .edges = 1};
    snprintf(m.text, sizeof m.text, "%s", why);
    put_view(&w, &m);
    put_u64(&w, peer_id(1));
    put_u64(&w, peer_id(2));
    for (uint32_t i = 0; i < NEW; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(PEERS + i), .lanes = 1, .addresses = 1,
                                                  .address = {{.family = 4, .ip = {10, 0, 0, (uint8_t)(4 + i)}, .port = 48150}}});
    }
    for (uint32_t i = 0; i <= NEW; i++) {
        put_u32(&w, i);
    }
    put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(PEERS), .relay = peer_id(PEERS + 1)});
    from_master(b, FRAME_VIEW, m.view, &w);
}

TEST(log_of_a_view_names_who_went_why_and_who_came) /* numbers that nobody can read, or nothing */
{
    struct bench *b = bench_new();
    crowded(b, lost_text);
    EXPECT_STR(logged(b), "view 2: rank 1 (peer 1.2 at 10.0.0.2:48150), group 0: its connections closed; rank 2 (peer 1.3) is gone; "
                          "peer 1.4 (10.0.0.4:48150) joined; peer 1.5 (10.0.0.5:48150) joined; "
                          "peer 1.6 (10.0.0.6:48150) joined; 2 more joined; 6 members; no link between 1.1 and 1.4");
    bench_free(b);
}

/* After crowded: peer 1.5 is gone; operation 0 of tags 7 and 8 is aborted with it. */
static void lose_one_of_a_crowd(struct bench *b)
{
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(3), .parent = view_id(2), .sizes = {NEW, NEW, 1, NEW},
                         .plan = {.lanes = 1, .frame_bytes = 4096}, .cause = CAUSE_PEER_LOST,
                         .culprit = peer_id(4), .members = NEW, .removed = 1, .decisions = 2};
    put_view(&w, &m);
    put_u64(&w, peer_id(4));
    for (uint32_t i = 0; i < NEW; i++) {
        put_u32(&w, i);
    }
    for (uint64_t tag = 7; tag < 9; tag++) {
        put_op_decision(&w, &(struct op_decision){.name.tag = tag, .outcome = OUTCOME_ABORT, .cause = CAUSE_PEER_LOST, .culprit = peer_id(4)});
    }
    freeze(b, 2);
    from_master(b, FRAME_VIEW, m.view, &w);
}

static void expect_named(const struct bench *b)
{
    static const uint8_t ip[4] = {10, 0, 0, 5};
    const struct member_name *n = &b->outcome.named;
    EXPECT_EQ(b->outcome.culprit, peer_id(4));
    EXPECT_EQ(n->id, peer_id(4));
    EXPECT_EQ(n->ranked, 1 + 2); /* behind 1.1 and 1.4; now 1.6 has that rank */
    EXPECT(n->address.family == 4 && memcmp(n->address.ip, ip, sizeof ip) == 0 && n->address.port == 48150);
}

TEST(lost_member_is_named_with_rank_and_address_of_the_view_before) /* the view that tells the loss knows neither any more */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    crowded(b, lost_text);
    launch(b, 0, 7, &x, &y);
    lose_one_of_a_crowd(b);
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = 0}); /* lanes had it */
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    expect_named(b);
    launch(b, 0, 8, &x, &y); /* with the program's snapshot of the view after it */
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    expect_named(b);
    bench_free(b);
}

TEST(log_of_a_view_keeps_its_end_behind_a_long_reason) /* the size of the group would be cut off */
{
    char why[BOUNDS_TEXT];
    struct bench *b = bench_new();
    memset(why, 'x', sizeof why - 1);
    why[sizeof why - 1] = 0;
    crowded(b, why);
    EXPECT(logged(b) != NULL && strstr(logged(b), "; 6 members; no link between 1.1 and 1.4") != NULL);
    bench_free(b);
}

TEST(log_of_a_view_with_the_same_members_says_so) /* or "view 2: ; 3 members" */
{
    struct bench *b = bench_new();
    decided(b, 2, CAUSE_NONE, NULL, NULL);
    EXPECT_STR(logged(b), "view 2: the same 3 members");
    bench_free(b);
}

TEST(log_tells_a_freeze_once_whatever_its_attempts) /* a line for each attempt */
{
    struct bench *b = bench_new();
    freeze(b, 1);
    EXPECT_STR(logged(b), "view 1 is being ended: a link between two living peers broke");
    freeze(b, 1);
    EXPECT(logged(b) == NULL);
    bench_free(b);
}

/* What the last step told the master of the link with peer 1; CAUSE_NONE: nothing. */
static uint8_t told_of_link(const struct bench *b)
{
    struct reader r;
    struct msg_suspect m;
    for (uint32_t at = 0; sent_next(b, ACT_MASTER, FRAME_SUSPECT, &at, &r) != NULL;) {
        if (get_suspect(&r, &m) && m.target == SUSPECT_LINK && m.peer == peer_id(1)) {
            return m.cause;
        }
    }
    return CAUSE_NONE;
}

static uint8_t link_event(struct bench *b, enum session_event_kind kind)
{
    step(b, &(struct session_event){.kind = kind, .peer = peer_id(1)});
    return told_of_link(b);
}

TEST(refused_link_is_told_once_and_not_of_one_that_is_up) /* the master waits a second for the dead, or excludes the living */
{
    struct bench *b = bench_new();
    EXPECT_EQ(link_event(b, SESSION_LINK_REFUSED), CAUSE_NONE); /* an old dial's word */
    EXPECT_EQ(link_event(b, SESSION_LINK_DOWN), CAUSE_LINK_LOST);
    EXPECT_EQ(link_event(b, SESSION_LINK_REFUSED), CAUSE_PEER_LOST);
    EXPECT_EQ(link_event(b, SESSION_LINK_REFUSED), CAUSE_NONE); /* each further dial is refused, too */
    decided(b, 2, CAUSE_LINK_LOST, NULL, NULL);
    EXPECT_EQ(link_event(b, SESSION_LINK_REFUSED), CAUSE_PEER_LOST); /* the word about the old view came too late */
    bench_free(b);
}

TEST(refusal_that_is_known_with_the_end_of_the_link_is_told_with_it) /* within a host: one message, and one attempt of the freeze */
{
    struct bench *b = bench_new();
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1), .number = 1});
    EXPECT_EQ(told_of_link(b), CAUSE_PEER_LOST);
    EXPECT_EQ(link_event(b, SESSION_LINK_REFUSED), CAUSE_NONE);
    bench_free(b);
}

TEST(refusal_is_not_told_again_of_a_link_that_came_back) /* a master that was away would exclude a member that lives */
{
    struct bench *b = bench_new();
    link_event(b, SESSION_LINK_DOWN);
    link_event(b, SESSION_LINK_REFUSED);
    link_event(b, SESSION_LINK_UP);
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "the connection to the master closed"});
    master_back(b);
    EXPECT_EQ(told_of_link(b), CAUSE_LINK_LOST);
    bench_free(b);
}

/* How long after it is lost the master's connection is dialled again. */
static int64_t redialled_after(struct bench *b, int64_t lasted)
{
    b->now += lasted;
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "the connection to the master closed"});
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == ACT_DIAL_MASTER) {
            return (int64_t)b->out.actions[i].value - b->now;
        }
    }
    return INT64_MAX;
}

TEST(master_is_dialled_again_at_once_if_its_connection_lasted) /* half of the second passed; one that closes at once is not hammered */
{
    struct bench *b = bench_new();
    EXPECT_EQ(redialled_after(b, INT64_C(2000000000)), 0);
    EXPECT(redialled_after(b, 0) > 0);
    bench_free(b);
    b = bench_new();
    EXPECT(redialled_after(b, INT64_C(100000000)) > 0);
    bench_free(b);
}

TEST(silence_of_a_member_is_counted_from_its_last_word_whatever_the_view)
{
    struct bench *b = bench_new();
    int64_t stall = session_stall_ns(b->s);
    ping(b, 1, view_id(1));
    int64_t at = session_silent_at(b->s, peer_id(1));
    EXPECT_EQ(at, b->now + stall);
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    freeze(b, 1);
    decided(b, 2, CAUSE_LINK_LOST, NULL, NULL);
    EXPECT_EQ(session_silent_at(b->s, peer_id(1)), at);
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(1)});
    EXPECT_EQ(session_silent_at(b->s, peer_id(1)), b->now + stall);
    EXPECT_EQ(session_silent_at(b->s, peer_id(7)), INT64_MAX);
    bench_free(b);
}

TEST(member_behind_a_relay_is_as_silent_as_its_relay)
{
    struct bench *b = bench_apart();
    ping(b, 2, view_id(1));
    EXPECT_EQ(session_silent_at(b->s, peer_id(1)), session_silent_at(b->s, peer_id(2)));
    EXPECT_EQ(session_silent_at(b->s, peer_id(1)), b->now + session_stall_ns(b->s));
    bench_free(b);
}
