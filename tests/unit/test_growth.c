/* test_growth.c - tables of a session grow with use: each past its first size, what each holds when idle, and each without memory.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "session/tables/optable.h"
#include "session/session_state.h"

enum { MANY = 100 };

/* All tables begin as small as can be, and may become as large as the library's. */
static struct session_config from_one(void)
{
    struct session_config c = bench_config();
    c.first = 1;
    c.max_members = 256;
    c.max_ops = BOUNDS_OPS;
    c.max_records = BOUNDS_RECORDS;
    c.max_tags = 1 << 20;
    c.max_owed = BOUNDS_OWED;
    c.park_blocks = 64;
    c.park_block_bytes = 2 * BOUNDS_EAGER_BYTES + 256;
    c.park_per_link = 16;
    return c;
}

/* A view of so many members, all of them listed; what was heard of but not launched is owed. */
static void view_of(struct bench *b, uint32_t number, uint32_t members, uint32_t edges, uint32_t aborts)
{
    static unsigned char raw[1 << 19];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(number), .sizes = {members, members, 1, members},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = members, .added = members, .edges = edges, .decisions = aborts};
    put_view(&w, &m);
    for (uint32_t i = 0; i < members; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < members; i++) {
        put_u32(&w, i);
    }
    for (uint32_t i = 0; i < edges; i++) {
        put_missing_edge(&w, &(struct missing_edge){.a = peer_id(1), .b = peer_id(2 + i), .relay = self});
    }
    for (uint32_t i = 0; i < aborts; i++) {
        put_op_decision(&w, &(struct op_decision){.name.tag = 500 + i, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST});
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

static bool connected(const struct bench *b)
{
    struct session_info info;
    session_info(b->s, &info);
    EXPECT(!session_poisoned(b->s));
    return info.connected;
}

/* Operations of others, until there is no room for one more. */
static void fill(struct bench *b)
{
    uint64_t tag = 1000;
    while (op_make(b->s, &(struct op_name){.tag = tag}) != NULL) {
        tag++;
    }
}

/* Bytes that the session holds: its arena and what it has grown to. */
static size_t held(const struct session_config *c, const struct bench *b)
{
    size_t bytes = session_arena_bytes(c);
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        bytes += b->grown[i];
    }
    return bytes;
}

TEST(every_table_grows_under_use) /* what it held is lost, or found at its old place */
{
    static float in[MANY], out[MANY];
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    EXPECT(b->s->view.room >= PEERS && b->s->peers.count >= PEERS - 1 && b->s->slots.count == 1 && b->s->tags.count == 1);
    for (uint32_t i = 0; i < MANY; i++) { /* early payloads, then the calls: slots, tags, operations */
        eager(b, 1, 1, i, 10);
    }
    EXPECT(b->s->park.count >= c.park_per_link && b->s->ops.count >= MANY && b->s->marks.count >= MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        in[i] = (float)i;
        launch(b, i, i, &in[i], &out[i]);
    }
    EXPECT(b->s->slots.count >= MANY && b->s->tags.count >= MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        eager(b, 2, 1, i, 100);
        eager(b, 1, 1, i, 10); /* what was dropped for want of room was asked for again */
        hold(b, 1, 1, i);
        hold(b, 2, 1, i);
        EXPECT_EQ(collect(b, i), RESULT_OK);
        EXPECT(out[i] == (float)i + 110);
    }
    eager(b, 1, 1, 7777, 10); /* an operation of this view, in a table that becomes wider */
    view_of(b, 2, 200, 150, MANY);
    EXPECT(connected(b) && b->s->view.world == 200 && b->s->view.edges == 150);
    EXPECT(b->s->view.room >= 200 && b->s->peers.count >= 199 && b->s->ops.width >= 200 && b->s->owed.count >= MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        launch(b, i, 500 + i, &in[i], &out[i]);
        EXPECT_EQ(collect(b, i), RESULT_LOST);
        EXPECT_EQ(b->outcome.cause, CAUSE_LINK_LOST);
    }
    EXPECT(connected(b));
    bench_free(b);
}

TEST(calls_that_find_no_memory_say_so_and_take_no_number) /* they fail the machine, or wait for ever */
{
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    uint16_t half[2] = {0, 0};
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    struct session_launch encoded = {.call = {.tag = 5, .params = {.count = 1, .dtype = DTYPE_BF16, .op = REDOP_SUM},
                                              .in = &half[0], .out = &half[1], .deadline = INT64_MAX}, .scratch = &y};
    b->no_memory = true;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l}); /* no slot */
    EXPECT_EQ(b->outcome.result, RESULT_NO_MEMORY);
    EXPECT(b->outcome.cause == CAUSE_NO_MEMORY && b->outcome.culprit == self && b->outcome.text[0] != 0);
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &encoded}); /* no room to encode */
    EXPECT_EQ(b->outcome.result, RESULT_NO_MEMORY);
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    b->no_memory = false;
    bench_grow(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 2, .launch = &l}); /* slots, and no more tags */
    b->no_memory = true;
    b->s->tags.count = b->s->tags.used;
    l.call.tag = 6;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_NO_MEMORY);
    EXPECT(connected(b));
    bench_free(b);
}

TEST(receive_that_waited_finds_room_whatever_lets_it_go) /* it failed for want of memory that there was, and its sender waited for ever */
{
    struct session_config c = from_one();
    float x = 1, y[4] = {0};
    c.max_records = 1;
    struct bench *b = bench_of(&c, false);
    launch(b, 0, 5, &x, &y[0]);
    for (uint32_t peer = 1; peer < PEERS; peer++) {
        eager(b, peer, 1, 5, 1);
    }
    for (uint32_t peer = 1; peer < PEERS; peer++) {
        hold(b, peer, 1, 5);
    }
    EXPECT(b->returned && b->s->ops.records == 1); /* all later calls wait until the others have finished it */
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = 9, .known = view_id(1), .world = PEERS,
                                        .params = {.kind = PLAN_SEND, .count = 1, .dtype = DTYPE_F32}, .root_rank = 1,
                                        .receives = true, .out = &y[1], .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->s->deferred.count, 1);
    for (uint32_t slot = 2; slot < MANY && b->s->tags.used < b->s->tags.count; slot++) { /* their tags take the room that was there for it */
        launch(b, slot, 100 + slot, &x, &y[2]);
    }
    b->returned = false;
    b->s->cfg.max_records = 2; /* as if that one had been finished */
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT_EQ(b->s->deferred.count, 0);
    EXPECT(!b->returned && connected(b)); /* they all run, and the receive waits for its message */
    bench_free(b);
}

TEST(operation_without_a_record_is_told_so) /* the call waits for room that never comes */
{
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    struct session_launch l = {.call = {.tag = 6, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    for (uint32_t slot = 1; slot < 3; slot++, l.call.tag++) { /* at once, and put off by a freeze */
        struct session_event e = {.kind = SESSION_LAUNCH, .slot = slot, .launch = &l};
        bench_grow(b, &e);
        b->no_memory = true;
        fill(b);
        b->returned = false;
        step(b, &e);
        EXPECT(b->outcome.result == RESULT_PENDING && b->returned);
        EXPECT_EQ(collect(b, slot), RESULT_NO_MEMORY);
        EXPECT(b->outcome.cause == CAUSE_NO_MEMORY && b->outcome.culprit == self && !b->outcome.left);
        b->no_memory = false;
    }
    EXPECT(connected(b));
    bench_free(b);
}

TEST(frames_of_a_peer_that_find_no_memory_cost_its_link_or_a_second_sending) /* an assertion, or the place of this peer */
{
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    b->no_memory = true;
    fill(b);
    eager(b, 1, 1, 5, 10);
    EXPECT(b->out.count > 0 && b->out.actions[0].kind == ACT_UNLINK && connected(b));
    b = (bench_free(b), bench_of(&c, false));
    float x = 1, y = 0;
    b->no_memory = true;
    eager(b, 2, 1, 5, 100); /* nowhere to park it */
    EXPECT_EQ(b->s->park.count, 0);
    b->no_memory = false;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    EXPECT(sent(b, FRAME_WANT));
    eager(b, 2, 1, 5, 100);
    hold(b, 1, 1, 5);
    hold(b, 2, 1, 5);
    EXPECT(collect(b, 0) == RESULT_OK && y == 111);
    bench_free(b);
}

TEST(view_that_finds_no_memory_ends_the_membership_and_says_why) /* a view half installed, or calls that never return */
{
    static const struct {
        uint32_t members, edges, aborts;
    } view[] = {{200, 0, 0}, {PEERS, 1, 0}, {PEERS, 0, 9}};
    for (uint32_t i = 0; i < sizeof view / sizeof view[0]; i++) {
        struct session_config c = from_one();
        struct bench *b = bench_of(&c, false);
        float x = 1, y = 0;
        launch(b, 0, 5, &x, &y);
        hold(b, 1, 1, 5);
        struct session_launch l = {.call = {.tag = 6, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
        freeze(b, 1);
        step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l}); /* deferred */
        b->no_memory = true;
        view_of(b, 2, view[i].members, view[i].edges, view[i].aborts);
        EXPECT(!connected(b));
        for (uint32_t slot = 0; slot < 2; slot++) {
            EXPECT_EQ(collect(b, slot), RESULT_NO_MEMORY);
            EXPECT_EQ(b->outcome.cause, CAUSE_NO_MEMORY);
            EXPECT(b->outcome.left && strstr(b->outcome.text, "no memory") != NULL);
        }
        bench_free(b);
    }
}

TEST(what_others_lost_many_times_over_is_owed_to_a_late_caller) /* honest neighbours cost the one that is late its place */
{
    enum { VIEWS = 6 };
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    for (uint32_t lost = 0; lost < VIEWS; lost++) { /* all calls that one may have in flight, made again each time */
        view_of(b, 2 + lost, PEERS, 0, BOUNDS_OPS);
        EXPECT(connected(b));
    }
    EXPECT_EQ(b->s->owed.used, VIEWS * BOUNDS_OPS);
    for (uint32_t lost = 0; lost < VIEWS; lost++) {
        launch(b, 0, 500 + BOUNDS_OPS - 1, &x, &y);
        EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    }
    launch(b, 0, 500 + BOUNDS_OPS - 1, &x, &y);
    EXPECT(!b->returned);
    bench_free(b);
}

TEST(report_lists_what_was_launched_and_as_much_of_what_was_heard_as_fits) /* no frame of that size is read */
{
    enum { MEMBERS = 12, MANY_REFUSED = BOUNDS_LISTED / (MEMBERS - 1) + 100 };
    struct session_config c = from_one();
    c.check_every = 1 << 20;
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    struct reader r;
    struct msg_frozen f;
    struct op_report o;
    view_of(b, 2, MEMBERS, 0, 0);
    for (uint32_t i = 1; i < MEMBERS; i++) {
        step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(i)});
        ping(b, i, view_id(2));
    }
    for (uint32_t i = 0; i < MANY_REFUSED * (MEMBERS - 1); i++) {
        unsigned char raw[128];
        struct writer w;
        writer_init(&w, raw, sizeof raw);
        uint32_t peer = 1 + i % (MEMBERS - 1);
        put_refuse(&w, &(struct msg_refuse){.name = {.tag = 1000 + i}, .origin = peer_id(peer), .cause = CAUSE_CANCEL,
                                            .culprit = peer_id(peer)});
        from_peer(b, peer, FRAME_REFUSE, view_id(2), &w);
    }
    launch(b, 0, 5, &x, &y);
    freeze(b, 2);
    uint32_t at = 0;
    EXPECT(sent_next(b, ACT_MASTER, FRAME_FROZEN, &at, &r) != NULL && get_frozen(&r, &f));
    EXPECT_EQ(f.reports, BOUNDS_LISTED);
    EXPECT(get_op_report(&r, &o) && o.name.tag == 5 && o.state == OP_RUNNING);
    bench_free(b);
}

TEST(idle_sessions_of_64_members_hold_4_MB_in_all) /* 8.1 MB each, before anything was in flight */
{
    struct session_config c = from_one();
    c.first = 0;
    static const struct {
        uint32_t members;
        size_t most;
    } world[] = {{4, 64 << 10}, {64, (4 << 20) / 64}};
    for (uint32_t i = 0; i < 2; i++) {
        struct bench *b = bench_of(&c, false);
        view_of(b, 2, world[i].members, 0, 0);
        EXPECT(connected(b));
        size_t bytes = held(&c, b);
        printf("# an idle session among %u members holds %zu bytes\n", world[i].members, bytes);
        EXPECT(bytes <= world[i].most);
        bench_free(b);
    }
}

/* What a peer says of operations that it knows to have finished. */
static void finished_from(struct bench *b, uint32_t peer, uint32_t first_tag, uint32_t names)
{
    unsigned char raw[8192];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.origin = peer_id(peer), .names = names});
    for (uint32_t i = 0; i < names; i++) {
        put_op_name(&w, &(struct op_name){.tag = first_tag + i});
    }
    from_peer(b, peer, FRAME_FINISHED, view_id(1), &w);
}

/* Every table that is given back is overwritten, as by whoever gets that memory next. */
static void rest(struct bench *b)
{
    bool given[SESSION_TABLES];
    session_rest(b->s, given);
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        if (given[i]) {
            memset(b->table[i], 0x5A, b->grown[i]);
            free(b->table[i]);
            b->table[i] = NULL;
            b->grown[i] = 0;
        }
    }
}

/* Calls that all succeed: payloads of both others come first, and are parked where there is room. */
static void reduces(struct bench *b, uint32_t first_tag, uint32_t calls)
{
    static float in[MANY], out[MANY];
    for (uint32_t i = 0; i < calls; i++) {
        eager(b, 1, 1, first_tag + i, 10);
    }
    for (uint32_t i = 0; i < calls; i++) {
        in[i] = (float)(first_tag + i);
        launch(b, i, first_tag + i, &in[i], &out[i]);
    }
    for (uint32_t i = 0; i < calls; i++) {
        eager(b, 2, 1, first_tag + i, 100);
        eager(b, 1, 1, first_tag + i, 10);
        hold(b, 1, 1, first_tag + i);
        hold(b, 2, 1, first_tag + i);
        EXPECT_EQ(collect(b, i), RESULT_OK);
        EXPECT(out[i] == (float)(first_tag + i) + 110);
    }
}

TEST(session_at_rest_holds_what_it_began_with_and_goes_on) /* 60 KB of tables for each of hundreds of idle worlds */
{
    struct session_config c = from_one();
    c.first = 0;
    struct bench *b = bench_of(&c, false);
    view_of(b, 1, PEERS, 0, 0);
    for (uint32_t round = 0; round < 3; round++) {
        reduces(b, 1 + round * MANY, MANY);
        rest(b); /* all are on record: others may still ask for them */
        EXPECT(b->s->ops.used >= MANY && b->s->ops.count >= MANY);
        EXPECT(b->s->slots.count == 1 && b->s->park.count == 0);
        finished_from(b, 1, 1 + round * MANY, MANY);
        finished_from(b, 2, 1 + round * MANY, MANY);
        EXPECT_EQ(b->s->ops.used, 0);
        rest(b);
        EXPECT_EQ(held(&c, b), session_arena_bytes(&c) + b->grown[SESSION_TAGS] + b->grown[SESSION_PEERS]);
        EXPECT(b->s->ops.count <= 4 && b->s->marks.count <= 4);
    }
    eager(b, 1, 1, 7000, 10); /* heard of, not launched here: it stays */
    rest(b);
    float x = 1, y = 0;
    launch(b, 0, 7000, &x, &y);
    rest(b);
    eager(b, 2, 1, 7000, 100);
    hold(b, 1, 1, 7000);
    hold(b, 2, 1, 7000);
    EXPECT(collect(b, 0) == RESULT_OK && y == 111);
    EXPECT(connected(b));
    bench_free(b);
}

TEST(a_view_that_tells_of_many_clashes_finds_room_for_all_who_differ) /* of those after the second only that they differ was told */
{
    enum { CLASHES = 12 };
    static unsigned char raw[1 << 14];
    static const struct op_params ours = {.count = 1, .dtype = DTYPE_F32, .op = REDOP_SUM},
                                  theirs = {.count = 2, .dtype = DTYPE_F32, .op = REDOP_MAX};
    struct session_config c = from_one();
    struct bench *b = bench_of(&c, false);
    float x[CLASHES] = {0}, y[CLASHES];
    struct writer w;
    for (uint32_t i = 0; i < CLASHES; i++) {
        launch(b, i, 500 + i, &x[i], &y[i]);
    }
    freeze(b, 1);
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS}, .members = PEERS, .decisions = CLASHES,
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024}};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    for (uint32_t i = 0; i < CLASHES; i++) {
        put_op_decision(&w, &(struct op_decision){
                                .name.tag = 500 + i, .outcome = OUTCOME_ABORT, .cause = CAUSE_MISMATCH, .culprit = peer_id(2)});
        put_op_clash(&w, &(struct op_clash){.id = {peer_id(1), peer_id(2)}, .params = {ours, theirs}});
    }
    from_master(b, FRAME_VIEW, m.view, &w);
    for (uint32_t i = 0; i < CLASHES; i++) {
        EXPECT_EQ(collect(b, i), RESULT_MISMATCH);
        EXPECT_EQ(b->outcome.differs, peer_id(2));
    }
    bench_free(b);
}

TEST(a_wide_view_at_rest_has_no_marks_and_gets_them_again) /* sets of many members in the place of those of few */
{
    struct session_config c = from_one();
    c.first = 0;
    struct bench *b = bench_of(&c, false);
    view_of(b, 2, 200, 0, 0);
    EXPECT(b->s->ops.width >= 200);
    rest(b);
    EXPECT(b->s->ops.width >= 200 && b->s->ops.count == 0 && b->grown[SESSION_OPS] == 0);
    float x = 1, y = 0;
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    b->no_memory = true; /* now there is none for them */
    bench_grow(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT_EQ(collect(b, 0), RESULT_NO_MEMORY);
    b->no_memory = false;
    eager(b, 1, 2, 6, 10);
    EXPECT(b->s->ops.used == 1 && b->s->ops.count > 0);
    launch(b, 0, 6, &x, &y);
    EXPECT(b->outcome.result == RESULT_PENDING && connected(b));
    bench_free(b);
}

TEST(who_creates_a_world_and_has_no_memory_for_it_declines_and_waits_for_the_masters_word) /* W5 */
{
    unsigned char raw[8192];
    struct writer w;
    struct reader r;
    struct msg_decline d;
    struct session_config c = from_one();
    c.claim = (struct claim){.size = 200};
    memcpy(c.world, "w", 2);
    struct bench *b = bench_idle(&c);
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    for (uint64_t id = 0; id <= self; id += self) { /* to be answered with CLAIM, then with its id */
        writer_init(&w, raw, sizeof raw);
        put_welcome(&w, &(struct msg_welcome){.run = run, .id = id, .epoch = 1, .heartbeat_ms = 1000, .dead_ms = 10000});
        from_master(b, FRAME_WELCOME, 0, &w);
    }
    b->no_memory = true;
    for (uint32_t attempt = 1; attempt < 3; attempt++) {
        uint32_t at = 0;
        writer_init(&w, raw, sizeof raw);
        put_admit(&w, &(struct msg_admit){.view = view_id(1), .attempt = attempt, .members = 200});
        for (uint32_t i = 0; i < 200; i++) {
            put_member_info(&w, &(struct member_info){.id = peer_id(i), .key = i, .lanes = 1});
        }
        from_master(b, FRAME_ADMIT, view_id(1), &w);
        EXPECT(sent_next(b, ACT_MASTER, FRAME_DECLINE, &at, &r) != NULL && get_decline(&r, &d));
        EXPECT_EQ(d.cause, CAUSE_NO_MEMORY);
        EXPECT(!sent(b, FRAME_LEAVE) && !sent(b, FRAME_LINKED));
        step(b, &(struct session_event){.kind = SESSION_COLLECT_CONNECT});
        EXPECT_EQ(b->outcome.result, RESULT_USAGE); /* it has not ended */
    }
    writer_init(&w, raw, sizeof raw);
    put_given_up(&w, &(struct msg_given_up){.cause = CAUSE_NO_MEMORY, .culprit = self, .text = "why"});
    from_master(b, FRAME_GIVEN_UP, 0, &w);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_CONNECT});
    EXPECT_EQ(b->outcome.result, RESULT_GIVEN_UP);
    EXPECT(b->outcome.cause == CAUSE_NO_MEMORY && b->outcome.culprit == self);
    bench_free(b);
}
