/* test_session_parts.c - messages between two that have no link: what their relay passes on, how the parts of a message go and come.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { TAG = 9, PART = 4096 /* bytes, by the view */, FLOATS = 5 * PART / 4 - 10 };

static struct op_name name_of(uint64_t from, uint64_t to, uint32_t seq)
{
    return (struct op_name){.space = SPACE_PAIR, .tag = TAG, .from = from, .to = to, .seq = seq};
}

static const struct op_params message = {.kind = PLAN_SEND, .count = FLOATS, .dtype = DTYPE_F32, .algorithm = PLAN_CHAIN};

static unsigned char raw[PART + 512];

static struct writer *writer(void)
{
    static struct writer w;
    writer_init(&w, raw, sizeof raw);
    return &w;
}

static void ready_from(struct bench *b, uint32_t peer, uint64_t from, uint64_t to)
{
    struct writer *w = writer();
    put_ready(w, &(struct msg_ready){.name = name_of(from, to, 0), .params = message, .launch = 1});
    from_peer(b, peer, FRAME_READY, view_id(1), w);
}

static void part_from(struct bench *b, uint64_t offset, const float *x, uint32_t bytes)
{
    struct writer *w = writer();
    put_part(w, &(struct msg_part){.name = name_of(peer_id(1), self, 0), .offset = offset, .bytes = bytes});
    put_bytes(w, x, bytes);
    from_peer(b, 2, FRAME_PART, view_id(1), w);
}

static void got_from(struct bench *b, uint32_t seq, uint64_t offset, bool anew)
{
    struct writer *w = writer();
    put_got(w, &(struct msg_got){.name = name_of(self, peer_id(1), seq), .offset = offset, .anew = anew});
    from_peer(b, 2, FRAME_GOT, view_id(1), w);
}

static void hold_from(struct bench *b, uint32_t seq)
{
    struct writer *w = writer();
    put_hold(w, &(struct msg_hold){.name = name_of(self, peer_id(1), seq), .origin = peer_id(1)});
    from_peer(b, 2, FRAME_HOLD, view_id(1), w);
}

static void path_from(struct bench *b, bool up)
{
    struct writer *w = writer();
    put_path(w, &(struct msg_path){.with = peer_id(1), .up = up});
    from_peer(b, 2, FRAME_PATH, view_id(1), w);
}

static void call(struct bench *b, uint32_t slot, bool receives, float *x)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = info.snapshot.group,
                                        .params = message, .root_rank = 1, .receives = receives, .count = FLOATS, .in = x, .out = x,
                                        .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

/* The GOT of the last step: how far, and whether anew; UINT64_MAX: none. */
static uint64_t said_got(const struct bench *b, bool *anew)
{
    uint32_t at = 0;
    struct reader r;
    struct msg_got m = {.offset = UINT64_MAX};
    const struct action *a = sent_next(b, ACT_PEERS, FRAME_GOT, &at, &r);
    if (a != NULL) {
        EXPECT(get_got(&r, &m) && a->dests == 1 && b->out.dest_ids[a->dest] == peer_id(2)); /* to the relay */
    }
    *anew = m.anew != 0;
    return m.offset;
}

/* The parts of the last step, of that message: they begin at `offset`; what they hold is what lies there.  Returns how many. */
static uint32_t said_parts(const struct bench *b, uint32_t seq, uint64_t offset, const float *x)
{
    uint32_t at = 0, n = 0;
    struct reader r;
    struct msg_part m;
    const void *payload;
    for (const struct action *a; (a = sent_next(b, ACT_PEERS, FRAME_PART, &at, &r)) != NULL; n++) {
        EXPECT(get_part(&r, &m, &payload) && m.name.seq == seq && m.offset == offset && m.bytes <= PART);
        EXPECT(b->out.dest_ids[a->dest] == peer_id(2) && memcmp(payload, (const char *)x + offset, m.bytes) == 0);
        offset += m.bytes;
    }
    return n;
}

static void fill(float *x)
{
    for (uint32_t i = 0; i < FLOATS; i++) {
        x[i] = (float)i;
    }
}

/* This member has no link with peer 1, peer 2 stands in. */
static struct bench *behind(void)
{
    struct bench *b = bench_apart();
    path_from(b, true);
    return b;
}

TEST(relay_passes_on_what_two_say_to_each_other_and_nothing_else)
{
    struct bench *b = bench_with(32, true); /* between peers 1 and 2 */
    uint32_t at = 0;
    struct reader r;
    struct msg_ready m;
    ready_from(b, 1, peer_id(1), peer_id(2));
    const struct action *a = sent_next(b, ACT_PEERS, FRAME_READY, &at, &r);
    EXPECT(a != NULL && a->dests == 1 && b->out.dest_ids[a->dest] == peer_id(2));
    EXPECT(a != NULL && get_ready(&r, &m) && m.name.from == peer_id(1) && m.name.to == peer_id(2) && m.params.count == FLOATS);
    ready_from(b, 2, peer_id(1), peer_id(2)); /* the receiver's word, as in a message of two that have a link */
    EXPECT(sent(b, FRAME_READY));
    bench_free(b);
}

static bool unlinked(const struct bench *b, uint32_t peer)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == ACT_UNLINK && b->out.actions[i].id == peer_id(peer)) {
            return true;
        }
    }
    return false;
}

TEST(relay_passes_on_no_lie) /* it would be taken for its own, and cost its link with the other */
{
    for (int lie = 0; lie < 5; lie++) {
        struct bench *b = bench_with(32, true);
        struct writer *w = writer();
        struct op_name name = name_of(peer_id(1), peer_id(2), 0);
        uint8_t type = FRAME_PART;
        if (lie == 0) { /* to no member */
            type = FRAME_READY;
            put_ready(w, &(struct msg_ready){.name = name_of(peer_id(1), peer_id(7), 0), .params = message, .launch = 1});
        } else if (lie == 1) { /* longer than it says */
            put_part(w, &(struct msg_part){.name = name, .bytes = 1});
            put_u32(w, 1);
        } else if (lie == 2) { /* a part of the receiver's */
            put_part(w, &(struct msg_part){.name = name_of(peer_id(2), peer_id(1), 0), .bytes = 1});
            put_u8(w, 1);
        } else if (lie == 3) { /* the other's word */
            type = FRAME_HOLD;
            put_hold(w, &(struct msg_hold){.name = name, .origin = peer_id(2)});
        } else {
            type = FRAME_GOT;
            put_got(w, &(struct msg_got){.name = name});
        }
        from_peer(b, 1, type, view_id(1), w);
        EXPECT(!sent(b, type) && unlinked(b, 1) && !unlinked(b, 2));
        bench_free(b);
    }
}

TEST(lie_of_who_is_behind_a_relay_costs_no_link)
{
    struct bench *b = behind();
    hold_from(b, 3); /* of what was never sent */
    EXPECT(!unlinked(b, 2) && !unlinked(b, 1));
    path_from(b, false);
    EXPECT(!unlinked(b, 2));
    struct writer *w = writer();
    put_path(w, &(struct msg_path){.with = peer_id(2), .up = 1}); /* the relay itself: there is no such pair */
    from_peer(b, 2, FRAME_PATH, view_id(1), w);
    EXPECT(unlinked(b, 2));
    bench_free(b);
}

TEST(relay_says_when_there_is_a_path_and_when_there_is_none) /* else what is lost with a link is lost for good */
{
    struct bench *b = bench_with(32, true);
    uint32_t at = 0;
    struct reader r;
    struct msg_path m;
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(2)});
    const struct action *a = sent_next(b, ACT_PEERS, FRAME_PATH, &at, &r);
    EXPECT(a != NULL && b->out.dest_ids[a->dest] == peer_id(1) && get_path(&r, &m) && m.with == peer_id(2) && m.up == 0);
    ready_from(b, 1, peer_id(1), peer_id(2));
    EXPECT(!sent(b, FRAME_READY));
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(2)});
    ping(b, 2, view_id(1));
    uint32_t told = 0;
    for (at = 0; sent_next(b, ACT_PEERS, FRAME_PATH, &at, &r) != NULL; told++) {
        EXPECT(get_path(&r, &m) && m.up == 1);
    }
    EXPECT_EQ(told, 2);
    ready_from(b, 1, peer_id(1), peer_id(2));
    EXPECT(sent(b, FRAME_READY));
    ping(b, 2, view_id(1)); /* a sign of life is nothing new */
    EXPECT(!sent(b, FRAME_PATH));
    bench_free(b);
}

TEST(receiver_takes_each_part_once_and_asks_from_where_it_has_come_to)
{
    struct bench *b = behind();
    static float in[FLOATS], out[FLOATS + 1];
    bool anew;
    fill(in);
    out[FLOATS] = -1;
    call(b, 0, true, out);
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX); /* not announced yet */
    ready_from(b, 2, peer_id(1), self);
    EXPECT(said_got(b, &anew) == 0 && anew);
    ready_from(b, 2, peer_id(1), self); /* said again with PATH, which asks: parts would come twice, more than the relay keeps */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    part_from(b, 0, in, PART);
    EXPECT(said_got(b, &anew) == PART && !anew);
    part_from(b, 0, in + 7, PART); /* again */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    part_from(b, 2 * PART, in + 2 * PART / 4, PART); /* the one before was lost */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    path_from(b, true);
    EXPECT(said_got(b, &anew) == PART && anew);
    for (uint32_t at = PART; at < sizeof in; at += PART) {
        EXPECT(!b->returned);
        part_from(b, at, in + at / 4, sizeof in - at < PART ? (uint32_t)sizeof in - at : PART);
    }
    EXPECT(b->returned && sent(b, FRAME_HOLD));
    EXPECT(memcmp(in, out, sizeof in) == 0 && out[FLOATS] == -1);
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = 0});
    EXPECT(b->outcome.result == RESULT_OK && b->outcome.rx_bytes == sizeof in);
    path_from(b, true); /* its word may be lost, too */
    EXPECT(sent(b, FRAME_HOLD));
    bench_free(b);
}

TEST(message_without_bytes_is_held_as_soon_as_both_have_launched_it)
{
    const struct op_params none = {.kind = PLAN_SEND, .dtype = DTYPE_F32, .algorithm = PLAN_TINY};
    for (int early = 0; early < 2; early++) {
        struct bench *b = behind();
        struct session_info info;
        session_info(b->s, &info);
        struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = PEERS, .params = none,
                                            .root_rank = 1, .receives = true, .deadline = INT64_MAX}};
        for (int k = 0; k < 2; k++) {
            EXPECT(!b->returned);
            if (k == early) {
                step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
            } else {
                struct writer *w = writer();
                put_ready(w, &(struct msg_ready){.name = name_of(peer_id(1), self, 0), .params = none, .launch = 1});
                from_peer(b, 2, FRAME_READY, view_id(1), w);
            }
        }
        EXPECT(b->returned && sent(b, FRAME_HOLD) && !sent(b, FRAME_GOT));
        EXPECT_EQ(collect(b, 0), RESULT_OK);
        bench_free(b);
    }
}

TEST(part_that_is_longer_than_what_is_left_writes_nothing)
{
    struct bench *b = behind();
    static float in[FLOATS], out[FLOATS + PART];
    bool anew;
    call(b, 0, true, out);
    ready_from(b, 2, peer_id(1), self);
    for (uint32_t i = 0; i < 4; i++) {
        part_from(b, (uint64_t)i * PART, in, PART);
    }
    out[FLOATS] = -1;
    for (uint32_t i = 0; i < FLOATS; i++) {
        in[i] = 1;
    }
    part_from(b, 4 * PART, in, PART);
    EXPECT(said_got(b, &anew) == UINT64_MAX && !b->returned && out[FLOATS] == -1 && out[FLOATS - 1] == 0);
    bench_free(b);
}

TEST(sender_says_two_parts_ahead_of_one_message_at_a_time) /* more would fill its relay's memory */
{
    struct bench *b = behind();
    static float x[FLOATS], y[FLOATS];
    fill(x);
    call(b, 0, false, x);
    EXPECT(sent(b, FRAME_READY) && !sent(b, FRAME_PART));
    call(b, 1, false, y);
    got_from(b, 0, 0, true);
    EXPECT_EQ(said_parts(b, 0, 0, x), 2);
    got_from(b, 1, 0, true);
    EXPECT_EQ(said_parts(b, 1, 0, y), 0);
    got_from(b, 0, PART, false);
    EXPECT_EQ(said_parts(b, 0, 2 * PART, x), 1);
    got_from(b, 0, PART, true); /* two were lost */
    EXPECT_EQ(said_parts(b, 0, PART, x), 2);
    got_from(b, 0, 3 * PART, false);
    EXPECT_EQ(said_parts(b, 0, 3 * PART, x), 2);
    EXPECT(!b->returned);
    hold_from(b, 0);
    EXPECT(b->returned && said_parts(b, 1, 0, y) == 2); /* the next one has its turn */
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = 0});
    EXPECT(b->outcome.result == RESULT_OK && b->outcome.tx_bytes == sizeof x);
    bench_free(b);
}

TEST(turn_passes_from_a_message_that_is_refused_in_the_middle)
{
    struct bench *b = behind();
    static float x[FLOATS], y[FLOATS];
    call(b, 0, false, x);
    call(b, 1, false, y);
    got_from(b, 0, 0, true);
    got_from(b, 1, 0, true);
    struct writer *w = writer();
    put_refuse(w, &(struct msg_refuse){.name = name_of(self, peer_id(1), 0), .origin = peer_id(1), .cause = CAUSE_CANCEL, .culprit = peer_id(1)});
    from_peer(b, 2, FRAME_REFUSE, view_id(1), w);
    EXPECT(b->returned && said_parts(b, 1, 0, y) == 2);
    bench_free(b);
}

TEST(without_master_and_path_a_call_ends_all_the_same) /* nobody else would end it */
{
    struct bench *b = behind();
    static float x[FLOATS];
    call(b, 0, false, x);
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "closed"});
    b->now += 20000000000;
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(1));
    }
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(!b->returned);
    path_from(b, false);
    EXPECT(!sent(b, FRAME_SUSPECT));
    b->now += 11000000000;
    ping(b, 2, view_id(1));
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(b->returned);
    bench_free(b);
}
