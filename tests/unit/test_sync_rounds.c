/* test_sync_rounds.c - shared state: memory, entries that may differ, elections that follow each other, and everything at random.
 *
 * As in test_sync.c; here the master changes its mind, and the shell is slow or has no memory.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/sync_world.h"

enum { ELEMENTS = 800 }; /* of the first entry: 50 leaves; 59 in all */

/* ---- memory ---- */

TEST(a_receiver_without_memory_says_so_and_leaves)
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    uint64_t before = w->peer[1].state.content_digest;
    w->peer[1].no_memory = true;
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    EXPECT_EQ(w->peer[1].staged, 1);
    EXPECT_EQ(w->peer[1].said.status, STAGED_NO_MEMORY);
    EXPECT(w->peer[1].left);
    struct session_event e = {.kind = SESSION_COLLECT_VOTE};
    world_step(w, &w->peer[1], &e);
    EXPECT(e.outcome.result == RESULT_NO_MEMORY && e.outcome.left);
    world_hash(&w->peer[1]);
    EXPECT(w->peer[1].state.content_digest == before);
    EXPECT_EQ(w->peer[1].state.rx_bytes, 0);
    world_free(w);
}

TEST(memory_for_an_earlier_round_is_not_taken_for_more) /* it would be written past its end */
{
    struct world *w = world_new(3, ELEMENTS);
    struct world_peer *p = &w->peer[2];
    make_stale(w, 0, 9);
    p->entries[1].data[0] ^= 1; /* 7 bytes away from peer 1, all away from peer 0 */
    world_hash(p);
    p->hold_memory = true;
    vote_all(w);
    world_elect(w, 2, 1, 2, 4, NONE);
    world_run(w);
    EXPECT_EQ(p->alloc_bytes, 7);
    w->round++;
    world_elect(w, 2, 0, 1, 4, NONE);
    world_run(w);
    EXPECT_EQ(p->allocated, 1); /* one at a time */
    world_memory(w, p);
    EXPECT_EQ(p->allocated, 2);
    EXPECT_EQ(p->alloc_bytes, ELEMENTS * 4 + 7 + 129);
    EXPECT_EQ(p->leaves_asked, 0);
    world_memory(w, p);
    world_run(w);
    expect_staged(p, 1, STAGED_OK, 0);
    world_answer(w, 2, ANSWER_OK);
    EXPECT(same_bytes(p, &w->peer[0], false));
    world_free(w);
}

TEST(memory_that_comes_after_the_vote_is_not_touched)
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    w->peer[1].hold_memory = true;
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    world_answer(w, 1, ANSWER_RETRY);
    struct session_event e = {.kind = SESSION_COLLECT_VOTE};
    world_step(w, &w->peer[1], &e);
    world_memory(w, &w->peer[1]);
    EXPECT_EQ(w->peer[1].leaves_asked, 0);
    EXPECT_EQ(w->peer[1].staged, 0);
    world_free(w);
}

/* ---- entries that may differ ---- */

TEST(entries_that_may_differ_stay_as_they_are) /* unless the master says otherwise */
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    unsigned char own[300];
    memcpy(own, w->peer[1].entries[3].data, sizeof own);
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    world_answer(w, 1, ANSWER_OK);
    EXPECT(same_bytes(&w->peer[1], &w->peer[0], false));
    EXPECT(memcmp(own, w->peer[1].entries[3].data, sizeof own) == 0);
    world_free(w);
}

TEST(a_newcomer_takes_them_from_the_one_source_named)
{
    for (uint32_t source = 0; source < 3; source++) { /* 0, 1: holders; 2: a receiver */
        for (int equal = 0; equal < 2; equal++) {
            struct world *w = world_new(4, ELEMENTS);
            for (uint32_t i = 0; i < 4; i++) {
                world_write(&w->peer[i], 3, 40 + i); /* everybody has its own */
                world_hash(&w->peer[i]);
            }
            w->peer[2].entries[0].data[5] ^= 1;
            world_hash(&w->peer[2]);
            for (uint32_t k = 0; !equal && k < WORLD_ENTRIES; k++) {
                world_write(&w->peer[3], k, 77);
            }
            world_hash(&w->peer[3]);
            vote_all(w);
            world_elect(w, 3, 0, 3, 12, source);
            world_elect(w, 2, 0, 3, 12, NONE);
            world_run(w);
            expect_staged(&w->peer[3], 1, STAGED_OK, 0);
            EXPECT_EQ(w->peer[3].manifests_asked, equal || source == 1 ? 1 : 2);
            EXPECT_EQ(w->peer[3].state.rx_bytes, 300 + (equal ? 0 : ELEMENTS * 4 + 7 + 129));
            world_answer(w, 3, ANSWER_OK);
            EXPECT(same_bytes(&w->peer[3], &w->peer[0], false));
            EXPECT(same_bytes(&w->peer[3], &w->peer[source], true));
            world_free(w);
        }
    }
}

TEST(the_one_source_cannot_be_replaced_by_a_holder)
{
    for (uint32_t after = 0; after < 4; after++) {
        for (int lies = 0; lies < 2; lies++) {
            struct world *w = world_new(3, ELEMENTS);
            make_stale(w, 2, 5);
            world_write(&w->peer[1], 3, 50);
            world_hash(&w->peer[1]);
            vote_all(w);
            meddle_peer = 1;
            meddle_type = after == 0 && !lies ? FRAME_MANIFEST : FRAME_LEAF;
            meddle_left = after;
            w->meddle = lies ? spoil : die;
            world_elect(w, 2, 0, 1, 4, 1);
            world_run(w);
            expect_staged(&w->peer[2], 1, STAGED_NO_SOURCE, lies ? w->peer[1].id : 0);
            w->meddle = NULL;
            w->round++;
            world_elect(w, 2, 0, 1, 4, 0);
            world_run(w);
            expect_staged(&w->peer[2], 2, STAGED_OK, 0);
            world_answer(w, 2, ANSWER_OK);
            EXPECT(same_bytes(&w->peer[2], &w->peer[0], false) && same_bytes(&w->peer[2], &w->peer[0], true));
            world_free(w);
        }
    }
}

/* ---- rounds ---- */

TEST(a_new_round_voids_what_was_staged) /* also a whole content that was staged and not answered */
{
    for (uint32_t frames = 0; frames < 60; frames += 4) {
        struct world *w = world_new(3, 100);
        make_stale(w, 1, 7);
        make_stale(w, 2, 5);
        vote_all(w);
        world_elect(w, 2, 0, 1, 4, NONE);
        for (uint64_t i = 0; i < frames; i++) {
            world_deliver(w, i);
        }
        uint32_t staged = w->peer[2].staged;
        w->round++;
        world_elect(w, 2, 1, 2, 4, NONE);
        world_run(w); /* answers of the round before come in between */
        expect_staged(&w->peer[2], staged + 1, STAGED_OK, 0);
        EXPECT_EQ(w->peer[2].said.round, w->round);
        world_answer(w, 2, ANSWER_OK);
        EXPECT_EQ(w->peer[2].applied, 1);
        EXPECT(same_bytes(&w->peer[2], &w->peer[1], false));
        world_free(w);
    }
}

TEST(only_what_the_last_round_needs_is_asked_and_applied)
{
    for (int finished = 0; finished < 2; finished++) {
        struct world *w = world_new(3, ELEMENTS);
        struct world_peer *p = &w->peer[2];
        for (uint32_t leaf = 0; leaf < 12; leaf++) { /* content of peer 0 */
            w->peer[0].entries[0].data[leaf * 64] ^= 1;
        }
        w->peer[1].entries[0].data[64 * 20] ^= 1; /* content of peer 1 */
        world_hash(&w->peer[0]);
        world_hash(&w->peer[1]);
        vote_all(w);
        world_elect(w, 2, 0, 1, 4, NONE);
        for (uint64_t i = 0; i < 2 || (finished && p->staged == 0); i++) {
            EXPECT(world_deliver(w, i));
        }
        uint32_t asked = p->leaves_asked;
        EXPECT_EQ(asked, finished ? 12 : 4);
        w->round++;
        world_elect(w, 2, 1, 2, 4, NONE);
        world_run(w);
        EXPECT_EQ(p->leaves_asked, asked + 1);
        world_answer(w, 2, ANSWER_OK);
        EXPECT(same_bytes(p, &w->peer[1], false));
        world_free(w);
    }
}

TEST(who_received_may_hold_in_the_next_round) /* and then applies nothing */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 2, 5);
    uint64_t before = w->peer[2].state.content_digest;
    vote_all(w);
    world_elect(w, 2, 0, 3, 4, NONE);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    w->round++;
    elect_all(w, 2, 4, 3, NONE);
    world_run(w);
    for (uint32_t i = 0; i < 3; i++) {
        world_answer(w, i, ANSWER_OK);
        world_hash(&w->peer[i]);
        EXPECT(w->peer[i].state.content_digest == before);
        EXPECT_EQ(w->peer[i].applied, i < 2);
    }
    world_free(w);
}

TEST(who_has_staged_passes_it_on) /* for a receiver that has a link with no holder */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 1, 31);
    make_stale(w, 2, 32);
    w->peer[1].entries[0].data[0] = w->peer[0].entries[0].data[0]; /* of some leaves it has its own */
    memcpy(w->peer[1].entries[1].data, w->peer[0].entries[1].data, w->peer[0].entries[1].bytes);
    world_hash(&w->peer[1]);
    vote_all(w);
    world_elect(w, 1, 0, 1, 6, NONE);
    world_run(w);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    world_elect(w, 2, 0, 2, 6, NONE);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    EXPECT_EQ(w->peer[2].asked_of[0], 0);
    EXPECT(w->peer[2].asked_of[1] > 0);
    world_answer(w, 1, ANSWER_OK);
    world_answer(w, 2, ANSWER_OK);
    EXPECT(same_bytes(&w->peer[1], &w->peer[0], false));
    EXPECT(same_bytes(&w->peer[2], &w->peer[0], false));
    world_free(w);
}

TEST(what_was_staged_in_another_round_is_not_passed_on) /* who asks in a later one would take it for a lie */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 1, 31);
    make_stale(w, 2, 32);
    vote_all(w);
    world_elect(w, 1, 0, 1, 6, NONE);
    world_run(w);
    w->round++;
    world_elect(w, 2, 1, 2, 4, NONE); /* 1 holds what this round elects, but has not heard of it yet */
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    world_free(w);
}

TEST(an_answer_to_a_later_round_applies_nothing_staged_before) /* the later ELECTED was never sent, or was lost */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 2, 5);
    uint64_t before = w->peer[2].state.content_digest;
    vote_all(w);
    world_elect(w, 2, 0, 3, 4, NONE);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    w->round++; /* the holders died; those left are equal, nobody has to receive */
    world_answer(w, 2, ANSWER_OK);
    world_hash(&w->peer[2]);
    EXPECT_EQ(w->peer[2].applied, 0);
    EXPECT_EQ(w->peer[2].voted, 1);
    EXPECT(w->peer[2].state.content_digest == before);
    world_free(w);
}

TEST(a_resumed_connection_hears_staged_again)
{
    unsigned char raw[128];
    struct writer out;
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    vote_all(w);
    world_elect(w, 1, 0, 1, 2, NONE);
    struct session_event down = {.kind = SESSION_MASTER_DOWN, .text = "test"}, up = {.kind = SESSION_MASTER_UP};
    world_step(w, &w->peer[1], &down);
    world_run(w); /* G7: goes on without the master */
    EXPECT_EQ(w->peer[1].staged, 0);
    world_step(w, &w->peer[1], &up);
    struct msg_welcome m = {.run = 9, .id = w->peer[1].id, .heartbeat_ms = 1000, .dead_ms = 10000,
                            .seen = {.family = 4}};
    writer_init(&out, raw, sizeof raw);
    put_welcome(&out, &m);
    world_from_master(w, &w->peer[1], FRAME_WELCOME, &out);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    uint64_t moved = w->peer[1].state.rx_bytes;
    world_elect(w, 1, 0, 1, 2, NONE); /* said again too: the same round begins nothing */
    world_run(w);
    EXPECT_EQ(w->peer[1].state.rx_bytes, moved);
    world_answer(w, 1, ANSWER_OK);
    EXPECT_EQ(w->peer[1].applied, 1);
    world_free(w);
}

TEST(an_election_of_another_vote_changes_nothing)
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    world_elect(w, 1, 0, 1, 2, NONE); /* no vote is open */
    vote_all(w);
    w->skew = UINT32_MAX; /* the vote before */
    world_elect(w, 1, 0, 1, 2, NONE);
    w->skew = 1;
    world_elect(w, 1, 0, 1, 2, NONE);
    EXPECT_EQ(w->peer[1].staged + w->peer[1].sync_frames, 0);
    w->skew = 0;
    world_answer(w, 1, ANSWER_OK);
    w->skew = UINT32_MAX; /* again the one before, answered and not collected */
    world_elect(w, 1, 0, 1, 2, NONE);
    EXPECT_EQ(w->peer[1].staged + w->peer[1].sync_frames, 0);
    world_free(w);
}

TEST(other_keys_are_said_and_nothing_is_fetched)
{
    struct world *w = world_new(2, ELEMENTS);
    w->peer[1].entries[1].name_hash ^= 1;
    make_stale(w, 1, 5);
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    expect_staged(&w->peer[1], 1, STAGED_KEYS, 0);
    EXPECT_EQ(w->peer[1].manifests_asked + w->peer[1].leaves_asked, 0);
    EXPECT_EQ(w->peer[1].allocated, 0);
    world_free(w);
}

/* ---- at random ---- */

static uint32_t liars;
static struct rng liar_rng;

static bool lie_sometimes(struct world *w, uint32_t from, uint32_t to, unsigned char *frame, uint32_t bytes)
{
    struct frame_header h;
    (void)w, (void)to;
    bool answer = frame_get(frame, &h) && (h.type == FRAME_LEAF || h.type == FRAME_MANIFEST);
    if (answer && (liars >> from & 1) != 0 && rng_next(&liar_rng) % 4 == 0) {
        uint32_t head = FRAME_HEADER_BYTES + (h.type == FRAME_LEAF ? 24 : 12);
        frame[head + rng_next(&liar_rng) % (bytes - head)] ^= 0x40;
    }
    return true;
}

/* Any holders, deaths, lies and orders: staged means the elected bytes; no source only if no honest one was left all the time. */
static void run_random(uint64_t seed)
{
    struct rng rng = {.state = seed};
    uint32_t peers = 2 + (uint32_t)(rng_next(&rng) % 6), holders = 0, receivers = 0, dead = 0;
    struct world *w = world_new(peers, 20 + rng_next(&rng) % 200);
    for (uint32_t i = 0; i < peers; i++) {
        bool holds = i == 0 || rng_next(&rng) % 2 == 0;
        holders |= (uint32_t)holds << i;
        receivers |= (uint32_t)!holds << i;
        if (!holds) {
            for (uint32_t k = 0; k < 1 + rng_next(&rng) % 40; k++) {
                w->peer[i].entries[0].data[rng_next(&rng) % w->peer[i].entries[0].bytes] ^= 1;
            }
            world_write(&w->peer[i], 3, seed + i);
            world_hash(&w->peer[i]);
        }
    }
    uint32_t whole = rng_next(&rng) % 2 == 0 ? 0 : NONE;
    liars = (uint32_t)rng_next(&rng) & (uint32_t)rng_next(&rng) & holders;
    liar_rng = rng;
    w->meddle = lie_sometimes;
    vote_all(w);
    elect_all(w, 0, holders, receivers, whole);
    while (world_deliver(w, rng_next(&rng))) {
        uint32_t victim = (uint32_t)(rng_next(&rng) % peers);
        if (rng_next(&rng) % 64 == 0 && (holders >> victim & 1) != 0) {
            dead |= 1u << victim;
            world_kill(w, victim);
        }
    }
    for (uint32_t i = 0; i < peers; i++) {
        struct world_peer *p = &w->peer[i];
        if ((receivers >> i & 1) == 0) {
            continue;
        }
        EXPECT_EQ(p->staged, 1);
        EXPECT(p->most_open <= 4);
        EXPECT(p->said.liar == 0 || (liars >> world_index(w, p->said.liar) & 1) != 0);
        bool faulty_source = whole != NONE && ((liars | dead) & 1) != 0;
        bool nobody = (holders & ~liars & ~dead) == 0;
        EXPECT(p->said.status == STAGED_OK || (p->said.status == STAGED_NO_SOURCE && (nobody || faulty_source)));
        uint64_t before = p->state.content_digest;
        world_hash(p);
        EXPECT(p->state.content_digest == before); /* G6 */
        if (p->said.status == STAGED_OK) {
            world_answer(w, i, ANSWER_OK);
            EXPECT(same_bytes(p, &w->peer[0], false));
            EXPECT(whole == NONE || same_bytes(p, &w->peer[0], true));
        }
    }
    world_free(w);
}

TEST(random_worlds_stage_the_elected_bytes_or_say_why_not)
{
    for (uint64_t seed = 1; seed <= 400 && test_failures == 0; seed++) {
        run_random(seed);
        if (test_failures != 0) {
            fprintf(stderr, "seed %" PRIu64 "\n", seed);
        }
    }
}

/* ---- other entries than the elected ones ---- */

static const char *const names[WORLD_ENTRIES] = {"w", "b", "empty", "step", "mask"};

/* Peer 1 has other entries than peer 0, of which it is told; `said` is what it tells the master. */
static void expect_difference(void (*change)(struct world_peer *p), const char *said)
{
    struct world *w = world_new(2, ELEMENTS);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < WORLD_ENTRIES; k++) {
            w->peer[i].entries[k].name = names[k];
        }
    }
    change(&w->peer[1]);
    world_hash(&w->peer[1]);
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    EXPECT_EQ(w->peer[1].staged, 1);
    EXPECT_EQ(w->peer[1].said.status, STAGED_KEYS);
    EXPECT_STR(w->peer[1].said.text, said);
    EXPECT(!w->peer[1].left); /* the master says so, with this text */
    world_free(w);
}

static void other_count(struct world_peer *p)
{
    p->entries[4].count = 100;
}

static void other_type(struct world_peer *p)
{
    p->entries[1].dtype = DTYPE_I8;
}

static void other_flag(struct world_peer *p)
{
    p->entries[3].inequality = false;
}

static void one_less(struct world_peer *p)
{
    memmove(&p->entries[1], &p->entries[2], 3 * sizeof p->entries[0]);
    p->state.entry_count = 4;
}

static void last_less(struct world_peer *p)
{
    p->state.entry_count = 4;
}

static void other_name(struct world_peer *p)
{
    p->entries[2].name = "vacant";
    p->entries[2].name_hash = 99;
}

static void swapped(struct world_peer *p)
{
    struct sync_entry e = p->entries[1];
    p->entries[1] = p->entries[4];
    p->entries[4] = e;
}

static void none(struct world_peer *p)
{
    p->state.entry_count = 0;
}

TEST(which_entry_differs_and_in_what) /* the user of a thousand entries compares two programs line by line */
{
    expect_difference(other_count, "'mask' has 100 i8, elected: 129 i8");
    expect_difference(other_type, "'b' has 7 i8, elected: 7 u8");
    expect_difference(other_flag, "'step' has allow_content_inequality false, elected: true");
    expect_difference(one_less, "'b' is missing, elected: 7 u8");
    expect_difference(last_less, "'mask' is missing, elected: 129 i8");
    expect_difference(other_name, "'empty' is missing, elected: 0 f64");
    expect_difference(swapped, "entry 1 is 'mask', elected: 'b', in another order");
    expect_difference(none, "'w' is missing, elected: 800 f32");
}

TEST(an_entry_too_many_is_found_at_the_end_of_their_list) /* their list is a prefix of ours, or has a gap where ours has it */
{
    for (int last = 0; last < 2; last++) {
        struct world *w = world_new(2, ELEMENTS);
        for (uint32_t k = 0; k < WORLD_ENTRIES; k++) {
            w->peer[0].entries[k].name = w->peer[1].entries[k].name = names[k];
        }
        if (last) {
            last_less(&w->peer[0]);
        } else {
            one_less(&w->peer[0]);
        }
        world_hash(&w->peer[0]);
        vote_all(w);
        elect_all(w, 0, 1, 2, NONE);
        world_run(w);
        EXPECT_STR(w->peer[1].said.text, last ? "'mask' with 129 i8 is one more" : "'b' with 7 u8 is one more");
        world_free(w);
    }
}

TEST(entries_beyond_one_message_are_compared_too)
{
    enum { MANY = 3 * P2P_ENTRIES + 5 };
    struct sync_entry own[MANY] = {{0}};
    struct sync_state state = {.entries = own, .entry_count = MANY};
    struct entries_diff d;
    for (uint32_t odd = 0; odd < MANY; odd += 7) {
        bool open = true;
        char want[80];
        entries_begin(&d);
        for (uint32_t i = 0; i < MANY; i++) {
            own[i] = (struct sync_entry){.name_hash = i + 1, .dtype = DTYPE_F32, .count = i};
        }
        for (uint32_t i = 0; i < MANY && open; i++) {
            struct entry_key theirs = entries_key(&own[i], i);
            theirs.count += i == odd;
            open = entries_next(&d, &state, &theirs);
        }
        snprintf(want, sizeof want, "'#%u' has %u f32, elected: %u f32", odd, odd, odd + 1);
        EXPECT_STR(d.text, want);
    }
}

TEST(source_that_is_lost_while_entries_are_compared_is_replaced_and_none_is_no_reason_to_stay)
{
    for (uint32_t others = 1; others < 3; others++) {
        struct world *w = world_new(3, ELEMENTS);
        for (uint32_t i = 0; i < 3; i++) {
            for (uint32_t k = 0; k < WORLD_ENTRIES; k++) {
                w->peer[i].entries[k].name = names[k];
            }
        }
        other_count(&w->peer[2]);
        world_hash(&w->peer[2]);
        vote_all(w);
        elect_all(w, 0, others == 1 ? 1 : 3, 4, NONE);
        uint32_t first = world_index(w, w->peer[2].first_asked);
        world_kill(w, first);
        world_run(w);
        EXPECT_EQ(w->peer[2].staged, 1);
        EXPECT_EQ(w->peer[2].said.status, STAGED_KEYS);
        EXPECT_STR(w->peer[2].said.text, others == 1 ? "" : "'mask' has 100 i8, elected: 129 i8");
        world_free(w);
    }
}
