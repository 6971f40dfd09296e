/* test_view_parts.c - lists that are too long for one message travel in parts: cut by the outbox, put together by the session.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "core/random.h"
#include "session/tables/peers.h"
#include "session/session_state.h"

/* ---- cutting ------------------------------------------------------------------------------------------------------- */

/* What is sent of a payload of so many bytes when `most` fit a message; the number of messages, 0: something is wrong. */
static uint32_t cut(uint8_t type, uint32_t payload, uint32_t most)
{
    static unsigned char bytes[1 << 18], whole[1 << 16];
    static struct action actions[8];
    uint64_t dests[4];
    struct outbox o;
    outbox_init(&o, actions, 8, bytes, sizeof bytes, dests, 4);
    o.part_bytes = most;
    struct writer *w = outbox_frame(&o, type, 7, 9);
    for (uint32_t i = 0; i < payload; i++) {
        put_u8(w, (uint8_t)(i * 31 + (i >> 8)));
    }
    const struct action *a = outbox_send(&o, 1, 3);
    uint32_t frames = 0, used = 0;
    struct frame_header h = {0};
    for (uint32_t at = a->frame; at < a->frame + a->frame_bytes; at += FRAME_HEADER_BYTES + h.length, frames++) {
        struct reader r;
        struct msg_view_part part = {0};
        if (!frame_get(bytes + at, &h) || h.run != 7 || h.view != 9 || h.length > most) {
            return 0;
        }
        reader_init(&r, bytes + at + FRAME_HEADER_BYTES, h.length);
        if (h.type == FRAME_VIEW_PART && !(get_view_part(&r, &part) && part.bytes == payload)) {
            return 0;
        }
        memcpy(whole + used, r.at, r.left);
        used += (uint32_t)r.left;
    }
    for (uint32_t i = 0; i < payload; i++) {
        used += whole[i] != (uint8_t)(i * 31 + (i >> 8));
    }
    return h.type == type && used == payload && o.used == a->frame_bytes && !o.overflow ? frames : 0;
}

TEST(long_lists_are_cut_into_messages_that_are_the_list_again) /* a byte is lost or moved where two pieces meet */
{
    EXPECT_EQ(cut(FRAME_VIEW, 100, 100), 1);
    EXPECT_EQ(cut(FRAME_VIEW, 101, 100), 3); /* pieces of 92 and 9, and the message itself */
    EXPECT_EQ(cut(FRAME_ADMIT, 184, 100), 3);
    EXPECT_EQ(cut(FRAME_ADMIT, 185, 100), 4);
    EXPECT_EQ(cut(FRAME_VIEW, 0, 100), 1);
    for (uint32_t most = 9; most < 300; most += 13) {
        for (uint32_t payload = 1; payload < 1200; payload += 7) {
            EXPECT(cut(FRAME_VIEW, payload, most) == (payload <= most ? 1 : 1 + (payload + most - 9) / (most - 8)));
        }
    }
}

TEST(what_does_not_fit_the_box_in_parts_overflows_it) /* bytes behind its end */
{
    unsigned char bytes[400];
    struct action actions[4];
    uint64_t dests[4];
    struct outbox o;
    outbox_init(&o, actions, 4, bytes, sizeof bytes, dests, 4);
    o.part_bytes = 40;
    struct writer *w = outbox_frame(&o, FRAME_VIEW, 7, 9);
    for (uint32_t i = 0; i < 300; i++) {
        put_u8(w, 1);
    }
    (void)outbox_send(&o, 1, 3);
    EXPECT(o.overflow);
}

/* ---- putting together ---------------------------------------------------------------------------------------------- */

enum { MANY = 2000 };
static unsigned char list[1 << 18];

/* A VIEW of so many members. */
static uint32_t view_of(uint32_t number, uint32_t members)
{
    struct writer w;
    struct msg_view m = {.view = view_id(number), .sizes = {members, members, 1, members},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = members, .added = members};
    writer_init(&w, list, sizeof list);
    put_view(&w, &m);
    for (uint32_t i = 0; i < members; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < members; i++) {
        put_u32(&w, i);
    }
    EXPECT(!w.bad);
    return (uint32_t)w.used;
}

static void part(struct bench *b, uint32_t bytes, uint32_t from, uint32_t size)
{
    static unsigned char raw[1 << 18];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_view_part(&w, &(struct msg_view_part){.bytes = bytes, .size = size});
    put_bytes(&w, list + from, size);
    from_master(b, FRAME_VIEW_PART, view_id(2), &w);
}

static void empty_view(struct bench *b)
{
    struct writer w;
    writer_init(&w, list, 0);
    from_master(b, FRAME_VIEW, view_id(2), &w);
}

static struct bench *member(void)
{
    struct session_config c = bench_config();
    c.max_members = BOUNDS_MEMBERS;
    c.max_ops = BOUNDS_OPS;
    c.max_records = 16;
    c.first = 1;
    return bench_of(&c, false);
}

static uint32_t world_of(const struct bench *b)
{
    EXPECT(!session_poisoned(b->s));
    return b->s->phase == PHASE_MEMBER && b->s->master.up ? b->s->view.world : 0;
}

TEST(view_of_two_thousand_comes_in_parts_and_operations_run_in_it) /* tables of 1,024, or of what fits one message */
{
    struct bench *b = member();
    uint32_t bytes = view_of(2, MANY), half = bytes / 2;
    float in = 1, out = 0;
    part(b, bytes, 0, half);
    EXPECT_EQ(world_of(b), PEERS); /* nothing of it is believed before all is here */
    part(b, bytes, half, bytes - half);
    empty_view(b);
    EXPECT_EQ(world_of(b), MANY);
    EXPECT_EQ(peer_find(b->s, peer_id(MANY)), NONE);
    for (uint32_t i = 1; i < MANY; i++) {
        EXPECT(b->s->peers.at[peer_find(b->s, peer_id(i))].id == peer_id(i) && view_rank(b->s, peer_id(i)) == i);
    }
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(MANY - 1)});
    ping(b, MANY - 1, view_id(2));
    launch(b, 0, 5, &in, &out);
    EXPECT(!b->returned);
    EXPECT_EQ(world_of(b), MANY);
    bench_free(b);
}

TEST(parts_that_cannot_be_cost_the_master_its_connection_and_nothing_else) /* a read beyond what has come */
{
    uint32_t bytes = view_of(2, MANY);
    struct bench *b[5];
    for (uint32_t i = 0; i < 5; i++) {
        b[i] = member();
        part(b[i], bytes, 0, 1000);
    }
    empty_view(b[0]);                                /* the rest is missing */
    part(b[1], bytes + 1, 1000, 1000);               /* of another list */
    part(b[2], bytes, 0, bytes - 999);               /* a byte too many */
    from_master(b[3], FRAME_VIEW, view_id(2), &(struct writer){.start = list, .used = view_of(2, PEERS)}); /* not empty */
    part(b[4], BOUNDS_VIEW_BYTES + 1, 0, 10);        /* more than any */
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT(!b[i]->s->master.up && b[i]->s->phase == PHASE_MEMBER && b[i]->s->view.world == PEERS);
        step(b[i], &(struct session_event){.kind = SESSION_MASTER_UP}); /* the next one begins anew */
        EXPECT_EQ(b[i]->s->parts.used, 0);
        bench_free(b[i]);
    }
}

TEST(parts_that_find_no_memory_end_the_membership_and_say_why) /* a list that is cut off */
{
    struct bench *b = member();
    uint32_t bytes = view_of(2, MANY);
    b->no_memory = true;
    part(b, bytes, 0, 1000);
    EXPECT_EQ(world_of(b), 0);
    EXPECT(strstr(b->s->left.text, "no memory") != NULL);
    bench_free(b);
}
