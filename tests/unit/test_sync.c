/* test_sync.c - shared state: the tree of hashes, and who fetches what from whom.
 *
 * Real sessions talk through real frames; the test plays the master.  What arrives is compared with the bytes of the holder,
 * and user memory is looked at before and after the answer.
 * SPDX-License-Identifier: MIT */
#include "session/state/fetch.h"
#include "session/tables/peers.h"
#include "tests/unit/sync_world.h"

enum { ELEMENTS = 800 }; /* of the first entry: 50 leaves; 59 in all */

/* ---- the tree ---- */

TEST(leaves_cover_every_byte_once)
{
    struct world *w = world_new(1, ELEMENTS + 3);
    struct sync_state *s = &w->peer[0].state;
    EXPECT_EQ(sync_leaves(0, 64), 0);
    EXPECT_EQ(sync_leaves(1, 64), 1);
    EXPECT_EQ(sync_leaves(64, 64), 1);
    EXPECT_EQ(sync_leaves(65, 64), 2);
    EXPECT_EQ(sync_leaves(UINT64_MAX, 1u << 20), 1ull << 44);
    uint32_t index = 0;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        uint64_t at = 0;
        for (uint32_t leaf = 0; leaf < s->entries[i].leaves; leaf++, index++) {
            uint32_t size = sync_leaf_size(s, i, leaf);
            EXPECT_EQ(sync_entry_of(s, index), i);
            EXPECT(s->leaf_hash[index] == hash_simple64(s->entries[i].data + at, size));
            at += size;
        }
        EXPECT_EQ(at, s->entries[i].bytes);
        EXPECT(s->entries[i].hash == hash_simple64(s->leaf_hash + s->entries[i].first_leaf,
                                                   (size_t)s->entries[i].leaves * 8));
    }
    EXPECT_EQ(index, s->leaf_count);
    world_free(w);
}

TEST(digests_cover_what_they_are_said_to_cover)
{
    struct world *w = world_new(2, 40);
    struct world_peer *p = &w->peer[0];
    uint64_t keys = p->state.key_digest, content = p->state.content_digest;
    EXPECT(keys == w->peer[1].state.key_digest && content == w->peer[1].state.content_digest);
    for (uint32_t i = 0; i < WORLD_ENTRIES; i++) {
        for (uint64_t k = 0; k < p->entries[i].bytes; k += 13) {
            p->entries[i].data[k] ^= 0x10;
            world_hash(p);
            EXPECT(p->state.key_digest == keys);
            EXPECT((p->state.content_digest == content) == p->entries[i].inequality);
            p->entries[i].data[k] ^= 0x10;
        }
        struct sync_entry kept = p->entries[i];
        for (int what = 0; what < 3; what++) {
            p->entries[i].name_hash ^= what == 0;
            p->entries[i].dtype = what == 1 ? DTYPE_BF16 : kept.dtype;
            p->entries[i].inequality = what == 2 ? !kept.inequality : kept.inequality;
            world_hash(p);
            EXPECT(p->state.key_digest != keys);
            p->entries[i] = kept;
        }
        p->entries[i].count++; /* the key alone: bytes stay */
        world_hash(p);
        EXPECT(p->state.key_digest != keys);
        p->entries[i] = kept;
    }
    world_hash(p);
    EXPECT(p->state.key_digest == keys && p->state.content_digest == content && p->state.has_inequality);
    world_free(w);
}

TEST(shown_hashes_give_the_same_digest_at_any_address)
{
    struct world *w = world_new(1, ELEMENTS);
    unsigned char raw[WORLD_LEAVES * 8 + 8];
    for (uint32_t shift = 0; shift < 8; shift++) {
        memcpy(raw + shift, w->peer[0].leaf_hash, w->peer[0].state.leaf_count * 8);
        EXPECT(sync_content_digest(&w->peer[0].state, raw + shift) == w->peer[0].state.content_digest);
    }
    world_free(w);
}

TEST(apply_writes_staged_leaves_and_nothing_else)
{
    struct world *w = world_new(2, 40);
    struct world_peer *p = &w->peer[0];
    struct sync_state *s = &p->state;
    unsigned char staging[WORLD_LEAF_BYTES + 36], before[2048];
    memset(staging, 0xEE, sizeof staging);
    memcpy(before, p->data, p->data_bytes);
    s->staging = staging; /* leaf 1 of the first entry, and its last: 160 bytes are 64 + 64 + 32 */
    s->stage_at[1] = 1;
    s->stage_at[2] = 1 + WORLD_LEAF_BYTES;
    s->leaf_state[1] = s->leaf_state[2] = LEAF_HERE;
    sync_apply(s);
    for (uint64_t i = 0; i < p->data_bytes; i++) {
        bool staged = i >= 1 + 64 && i < 1 + 160;
        EXPECT_EQ(p->data[i], staged ? 0xEE : before[i]);
    }
    world_free(w);
}

/* ---- one receiver ---- */

TEST(only_leaves_that_differ_move) /* and staging is exactly as large as they are */
{
    struct world *w = world_new(2, ELEMENTS);
    struct world_peer *p = &w->peer[1];
    p->entries[0].data[64 * 7 + 3] ^= 1;
    p->entries[0].data[64 * 30] ^= 1;
    p->entries[1].data[6] ^= 1;
    p->entries[4].data[128] ^= 1; /* its last leaf has one byte */
    world_hash(p);
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    expect_staged(p, 1, STAGED_OK, 0);
    EXPECT_EQ(p->leaves_asked, 4);
    EXPECT_EQ(p->alloc_bytes, 64 + 64 + 7 + 1);
    EXPECT_EQ(p->state.rx_bytes, 64 + 64 + 7 + 1);
    EXPECT_EQ(w->peer[0].state.tx_bytes, 64 + 64 + 7 + 1);
    EXPECT_EQ(p->state.tx_bytes, 0);
    EXPECT(!same_bytes(p, &w->peer[0], false)); /* G6: not before the answer */
    world_answer(w, 1, ANSWER_OK);
    EXPECT_EQ(p->applied, 1);
    EXPECT_EQ(p->closed, 1);
    EXPECT_EQ(p->voted, 1);
    EXPECT(same_bytes(p, &w->peer[0], false));
    world_hash(p);
    EXPECT(p->state.content_digest == w->peer[0].state.content_digest);
    world_free(w);
}

TEST(an_answer_other_than_ok_applies_nothing)
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    uint64_t before = w->peer[1].state.content_digest;
    vote_all(w);
    elect_all(w, 0, 1, 2, NONE);
    world_run(w);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    world_answer(w, 1, ANSWER_CONFLICT);
    world_hash(&w->peer[1]);
    EXPECT_EQ(w->peer[1].applied, 0);
    EXPECT(w->peer[1].state.content_digest == before);
    EXPECT_EQ(w->peer[1].voted, 1);
    world_free(w);
}

TEST(who_has_everything_is_staged_at_once) /* without a byte between peers */
{
    struct world *w = world_new(2, ELEMENTS);
    vote_all(w);
    world_elect(w, 1, 0, 1, 2, NONE);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    EXPECT_EQ(w->peer[1].sync_frames, 0);
    EXPECT_EQ(w->peer[1].allocated, 0);
    world_answer(w, 1, ANSWER_OK);
    EXPECT_EQ(w->peer[1].applied, 0);
    EXPECT_EQ(w->peer[1].closed, 0);
    world_free(w);
}

TEST(two_holders_each_serve_at_least_a_quarter)
{
    for (uint32_t receiver = 0; receiver < 3; receiver++) {
        struct world *w = world_new(3, ELEMENTS);
        make_stale(w, receiver, 5);
        vote_all(w);
        elect_all(w, (receiver + 1) % 3, 7u & ~(1u << receiver), 1u << receiver, NONE);
        world_run(w);
        expect_staged(&w->peer[receiver], 1, STAGED_OK, 0);
        EXPECT(w->peer[receiver].most_open <= 4);
        uint64_t all = w->peer[receiver].state.rx_bytes;
        EXPECT_EQ(all, ELEMENTS * 4 + 7 + 129);
        for (uint32_t i = 0; i < 3; i++) {
            EXPECT(i == receiver || w->peer[i].state.tx_bytes * 4 >= all);
        }
        world_free(w);
    }
}

TEST(a_few_leaves_come_from_both_holders)
{
    struct world *w = world_new(3, ELEMENTS);
    for (uint32_t leaf = 0; leaf < 4; leaf++) {
        w->peer[2].entries[0].data[leaf * 640] ^= 1;
    }
    world_hash(&w->peer[2]);
    vote_all(w);
    elect_all(w, 0, 3, 4, NONE);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    EXPECT_EQ(w->peer[0].state.tx_bytes, 2 * 64);
    EXPECT_EQ(w->peer[1].state.tx_bytes, 2 * 64);
    world_free(w);
}

TEST(a_fast_holder_serves_more) /* what is asked of the slow one stays few */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 2, 5);
    vote_all(w);
    elect_all(w, 0, 3, 4, NONE);
    while (world_deliver_but(w, 0, 1) || world_deliver(w, 0)) { /* 1 gets on only when nobody else can */
    }
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    EXPECT_EQ(w->peer[2].asked_of[1], 4);
    EXPECT_EQ(w->peer[2].most_open, 4);
    EXPECT(w->peer[0].state.tx_bytes + w->peer[1].state.tx_bytes == w->peer[2].state.rx_bytes);
    world_free(w);
}

TEST(receivers_begin_with_different_holders)
{
    struct world *w = world_new(7, ELEMENTS);
    for (uint32_t i = 3; i < 7; i++) {
        make_stale(w, i, 5);
    }
    vote_all(w);
    elect_all(w, 0, 7, 0x78, NONE);
    for (uint32_t i = 3; i < 7; i++) {
        EXPECT_EQ(w->peer[i].first_asked, w->peer[(i - 3) % 3].id);
    }
    world_run(w);
    for (uint32_t i = 3; i < 7; i++) {
        expect_staged(&w->peer[i], 1, STAGED_OK, 0);
        world_answer(w, i, ANSWER_OK);
        EXPECT(same_bytes(&w->peer[i], &w->peer[0], false));
    }
    world_free(w);
}

/* ---- sources that lie or die ---- */

TEST(a_false_manifest_is_found_and_another_holder_asked)
{
    struct world *w = world_new(4, ELEMENTS);
    make_stale(w, 3, 5);
    vote_all(w);
    meddle_peer = 0;
    meddle_type = FRAME_MANIFEST;
    meddle_left = 0;
    w->meddle = spoil;
    elect_all(w, 0, 7, 8, NONE);
    world_run(w);
    expect_staged(&w->peer[3], 1, STAGED_OK, w->peer[0].id);
    EXPECT_EQ(w->peer[3].manifests_asked, 2);
    EXPECT_EQ(w->peer[0].state.tx_bytes, 0);
    world_answer(w, 3, ANSWER_OK);
    EXPECT(same_bytes(&w->peer[3], &w->peer[1], false));
    world_free(w);
}

TEST(a_false_leaf_is_found_and_its_sender_not_asked_again) /* the leaf check is what makes a source's word worthless */
{
    for (uint32_t after = 0; after < 12; after++) {
        struct world *w = world_new(3, ELEMENTS);
        make_stale(w, 2, 5);
        vote_all(w);
        meddle_peer = 1;
        meddle_type = FRAME_LEAF;
        meddle_left = after;
        w->meddle = spoil;
        elect_all(w, 0, 3, 4, NONE);
        world_run(w);
        expect_staged(&w->peer[2], 1, STAGED_OK, w->peer[1].id);
        EXPECT(w->peer[2].asked_of[1] <= after + 4);
        world_answer(w, 2, ANSWER_OK);
        EXPECT(same_bytes(&w->peer[2], &w->peer[0], false));
        world_free(w);
    }
}

TEST(a_holder_that_dies_is_replaced)
{
    for (uint32_t after = 0; after < 20; after++) {
        struct world *w = world_new(3, ELEMENTS);
        make_stale(w, 2, 5);
        vote_all(w);
        meddle_peer = after % 2;
        meddle_type = after < 2 ? FRAME_MANIFEST : FRAME_LEAF;
        meddle_left = after < 2 ? 0 : after - 2;
        w->meddle = die;
        elect_all(w, 0, 3, 4, NONE);
        world_run(w);
        expect_staged(&w->peer[2], 1, STAGED_OK, 0);
        world_answer(w, 2, ANSWER_OK);
        EXPECT(same_bytes(&w->peer[2], &w->peer[1 - meddle_peer], false));
        world_free(w);
    }
}

TEST(without_a_source_the_receiver_says_so_and_names_the_liar)
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 2, 5);
    uint64_t before = w->peer[2].state.content_digest;
    vote_all(w);
    meddle_peer = 1;
    meddle_type = FRAME_LEAF;
    meddle_left = 2;
    w->meddle = spoil;
    elect_all(w, 0, 3, 4, NONE);
    for (uint64_t i = 0; w->peer[1].state.tx_bytes < 64 * 5; i++) {
        EXPECT(world_deliver(w, i));
    }
    world_kill(w, 0);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_NO_SOURCE, w->peer[1].id);
    EXPECT(w->peer[2].state.rx_bytes > 64);
    world_answer(w, 2, ANSWER_OK); /* a master that errs */
    EXPECT_EQ(w->peer[2].applied, 0);
    world_hash(&w->peer[2]);
    EXPECT(w->peer[2].state.content_digest == before);
    world_free(w);
}

static void send_leaf(struct world *w, uint32_t from, uint32_t to, const struct msg_leaf *m, const void *payload)
{
    unsigned char raw[256];
    struct writer out;
    writer_init(&out, raw, sizeof raw);
    put_leaf(&out, m);
    put_bytes(&out, payload, m->bytes);
    struct frame_header h = {.type = FRAME_LEAF, .length = (uint32_t)out.used, .run = 9, .view = world_view};
    struct session_event e = {.kind = SESSION_SYNC_FRAME, .peer = w->peer[from].id, .header = &h, .payload = raw};
    world_step(w, &w->peer[to], &e);
}

TEST(a_leaf_of_another_length_is_a_lie) /* even if it begins, or ends, with the right bytes */
{
    for (uint32_t bytes = 6; bytes <= 8; bytes++) {
        struct world *w = world_new(3, 0); /* leaf 0 is the entry of 7 bytes */
        unsigned char payload[8] = {0};
        w->peer[2].entries[1].data[6] ^= 1;
        world_hash(&w->peer[2]);
        vote_all(w);
        world_elect(w, 2, 0, 3, 4, NONE);
        EXPECT(world_deliver(w, 0) && world_deliver(w, 0)); /* MANIFEST_WANT, MANIFEST */
        EXPECT_EQ(w->peer[2].asked_of[0], 1);
        memcpy(payload, w->peer[0].entries[1].data, 7);
        struct msg_leaf m = {.number = w->peer[2].session->vote.answered, .round = w->round, .entry = 1, .bytes = bytes};
        send_leaf(w, 0, 2, &m, payload);
        EXPECT_EQ(w->peer[2].staged, bytes == 7);
        world_run(w);
        expect_staged(&w->peer[2], 1, STAGED_OK, bytes == 7 ? 0 : w->peer[0].id);
        world_free(w);
    }
}

TEST(answers_to_other_questions_change_nothing) /* of another round or vote, of a leaf not asked, out of range */
{
    struct world *w = world_new(3, 100);
    make_stale(w, 2, 5);
    vote_all(w);
    world_elect(w, 2, 0, 3, 4, NONE);
    EXPECT(world_deliver(w, 0) && world_deliver(w, 0));
    uint32_t number = w->peer[2].session->vote.answered, asked = w->peer[2].leaves_asked;
    const struct msg_leaf odd[] = {
        {.number = number, .round = w->round - 1}, /* bytes 0: I do not have it */
        {.number = number - 1, .round = w->round},
        {.number = number, .round = w->round, .entry = 4, .leaf = 2},
        {.number = number, .round = w->round, .entry = 4, .leaf = 3},
        {.number = number, .round = w->round, .entry = 4, .leaf = UINT64_MAX},
        {.number = number, .round = w->round, .entry = 5},
        {.number = number, .round = w->round, .entry = UINT32_MAX, .leaf = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        send_leaf(w, 0, 2, &odd[i], NULL);
    }
    EXPECT_EQ(w->peer[2].leaves_asked, asked);
    world_run(w);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    EXPECT(w->peer[2].asked_of[0] > 4 && w->peer[2].asked_of[1] > 4); /* nobody was given up */
    world_free(w);
}

TEST(a_holder_without_an_open_vote_has_nothing) /* it answers, so that nobody waits for it, and is no liar */
{
    for (int answered = 0; answered < 2; answered++) {
        struct world *w = world_new(3, ELEMENTS);
        make_stale(w, 2, 5);
        world_vote(w, 1);
        world_vote(w, 2);
        if (answered) { /* its program may write its memory from now on */
            world_vote(w, 0);
            world_answer(w, 0, ANSWER_OK);
        }
        world_elect(w, 2, 0, 3, 4, NONE);
        world_run(w);
        expect_staged(&w->peer[2], 1, STAGED_OK, 0);
        EXPECT_EQ(w->peer[0].state.tx_bytes, 0);
        w->round++;
        world_elect(w, 2, 0, 1, 4, NONE);
        world_run(w);
        expect_staged(&w->peer[2], 2, STAGED_NO_SOURCE, 0);
        world_free(w);
    }
}

TEST(a_holder_serves_before_its_own_election_has_come) /* whoever asks has it already; votes are counted per peer */
{
    struct world *w = world_new(2, ELEMENTS);
    make_stale(w, 1, 5);
    vote_all(w);
    EXPECT(w->peer[0].session->vote.answered != w->peer[1].session->vote.answered);
    world_elect(w, 1, 0, 1, 2, NONE);
    world_run(w);
    expect_staged(&w->peer[1], 1, STAGED_OK, 0);
    world_elect(w, 0, 0, 1, 2, NONE);
    EXPECT_EQ(w->peer[0].staged, 0); /* holders have nothing to stage */
    world_answer(w, 0, ANSWER_OK);
    EXPECT_EQ(w->peer[0].applied, 0);
    EXPECT_EQ(w->peer[0].closed, 1);
    world_free(w);
}

TEST(malformed_frames_take_their_sender_out)
{
    static const uint8_t types[] = {FRAME_LEAF, FRAME_MANIFEST, FRAME_LEAF_WANT, FRAME_MANIFEST_WANT, FRAME_READY};
    for (size_t i = 0; i < sizeof types; i++) {
        struct world *w = world_new(3, ELEMENTS);
        make_stale(w, 2, 5);
        vote_all(w);
        elect_all(w, 0, 3, 4, NONE);
        struct frame_header h = {.type = types[i], .length = 3, .run = 9, .view = world_view};
        struct session_event e = {.kind = SESSION_SYNC_FRAME, .peer = w->peer[0].id, .header = &h, .payload = "abc"};
        world_step(w, &w->peer[2], &e);
        world_run(w);
        expect_staged(&w->peer[2], 1, STAGED_OK, 0);
        EXPECT_EQ(w->peer[0].state.tx_bytes, 0);
        e.peer = w->peer[2].id; /* at a holder: nothing */
        world_step(w, &w->peer[1], &e);
        world_free(w);
    }
}

/* Peer leaves the view of peer `at`; the next view comes. */
static void exclude(struct world *w, uint32_t at, uint32_t peer)
{
    struct session *s = w->peer[at].session;
    uint32_t rank = view_rank(s, w->peer[peer].id);
    memset(&s->peers.at[s->view.peer[rank]], 0, sizeof *s->peers.at);
    s->view.world--;
    for (uint32_t r = 0; r < s->view.world; r++) {
        uint32_t from = r < rank ? r : r + 1;
        s->view.ids[r] = s->view.ids[from];
        s->view.peer[r] = s->view.peer[from];
        s->view.ring[r] = s->view.places[r] = r;
        if (s->view.peer[r] == NONE) {
            s->view.rank = r;
        } else {
            s->peers.at[s->view.peer[r]].rank = r;
        }
    }
    outbox_reset(&w->out);
    fetch_members_changed(s, &w->out);
    for (uint32_t i = 0; i < w->out.count; i++) {
        world_action(w, &w->peer[at], &w->out.actions[i]);
    }
}

TEST(holders_that_left_the_view_are_not_waited_for) /* also when their connection still looks well */
{
    struct world *w = world_new(3, ELEMENTS);
    make_stale(w, 2, 5);
    vote_all(w);
    elect_all(w, 0, 3, 4, NONE);
    for (uint64_t i = 0; i < 9; i++) {
        world_deliver(w, i);
    }
    exclude(w, 2, 0);
    EXPECT_EQ(w->peer[2].staged, 0);
    uint32_t asked = w->peer[2].asked_of[0];
    world_run(w);
    EXPECT_EQ(w->peer[2].asked_of[0], asked);
    expect_staged(&w->peer[2], 1, STAGED_OK, 0);
    w->round++;
    world_elect(w, 2, 0, 1, 4, NONE);
    expect_staged(&w->peer[2], 2, STAGED_NO_SOURCE, 0);
    world_free(w);
}
