/* test_master_journal.c - records that come back as they went in, or not at all.
 * SPDX-License-Identifier: MIT */
#include "master/journal.h"
#include "tests/testing.h"

static size_t put_batch(unsigned char *out, size_t size, uint32_t group, uint32_t count, uint64_t value)
{
    struct writer w;
    writer_init(&w, out, size);
    for (uint32_t i = 0; i < count; i++) {
        struct record head = {.kind = RECORD_VIEW, .left = count - 1 - i, .run = 5, .epoch = 2,
                                      .group = group + i, .number = 11, .value = value};
        size_t at = record_begin(&w, &head);
        put_u64(&w, 0x1234567890abcdefu);
        put_text(&w, "why");
        record_end(&w, at);
    }
    EXPECT(!w.bad);
    return w.used;
}

TEST(records_come_back_as_they_went_in)
{
    unsigned char bytes[1024];
    size_t size = put_batch(bytes, sizeof bytes, 3, 2, 99), at = 0;
    struct record r;
    EXPECT(record_next(bytes, size, &at, &r));
    EXPECT_EQ(r.kind, RECORD_VIEW);
    EXPECT_EQ(r.left, 1);
    EXPECT_EQ(r.run, 5);
    EXPECT_EQ(r.epoch, 2);
    EXPECT_EQ(r.group, 3);
    EXPECT_EQ(r.number, 11);
    EXPECT_EQ(r.value, 99);
    EXPECT_EQ(r.body_bytes, 8 + 2 + 3);
    struct reader body;
    reader_init(&body, r.body, r.body_bytes);
    EXPECT(get_u64(&body) == 0x1234567890abcdefu);
    EXPECT(record_next(bytes, size, &at, &r));
    EXPECT_EQ(r.left, 0);
    EXPECT(!record_next(bytes, size, &at, &r));
    EXPECT_EQ(at, size);
}

static bool read_view_body(const unsigned char *bytes, size_t size, struct record_view *m)
{
    struct reader r;
    struct member_info info;
    struct op_decision decision;
    struct record_seat seat;
    reader_init(&r, bytes, size);
    bool good = get_record_view(&r, m);
    for (uint32_t i = 0; good && i < m->members; i++) {
        good = get_member_info(&r, &info) && info.id == 10u + i && info.key == i;
    }
    for (uint32_t i = 0; good && i < m->decisions; i++) {
        good = get_op_decision(&r, &decision) && decision.name.seq == 7 + i && decision.outcome == OUTCOME_REFUSED;
    }
    for (uint32_t i = 0; good && i < m->seats; i++) {
        good = get_record_seat(&r, &seat) && seat.attempt == 100u + i && seat.id == 10u + i;
    }
    return good && reader_done(&r);
}

TEST(body_of_a_view_comes_back_whole_or_not_at_all)
{
    unsigned char bytes[1024];
    struct writer w;
    struct record_view in = {.parent = 6, .answers = VOTE_UPDATE, .over = true, .cause = CAUSE_PEER_LOST, .culprit = 9, .text = "why",
                             .revision = 4, .members = 3, .decisions = 2, .seats = 3, .loss = LOSS_SHRINK, .once = true}, out;
    writer_init(&w, bytes, sizeof bytes);
    put_record_view(&w, &in);
    for (uint32_t i = 0; i < in.members; i++) {
        put_member_info(&w, &(struct member_info){.id = 10u + i, .key = i, .lanes = 1});
    }
    for (uint32_t i = 0; i < in.decisions; i++) {
        put_op_decision(&w, &(struct op_decision){.name.seq = 7 + i, .outcome = OUTCOME_REFUSED, .cause = CAUSE_CANCEL});
    }
    for (uint32_t i = 0; i < in.seats; i++) {
        put_record_seat(&w, &(struct record_seat){.attempt = 100u + i, .id = 10u + i});
    }
    EXPECT(!w.bad && read_view_body(bytes, w.used, &out));
    EXPECT(out.parent == in.parent && out.answers == in.answers && out.over && out.cause == in.cause && out.culprit == in.culprit);
    EXPECT(out.revision == in.revision && out.loss == in.loss && out.once);
    EXPECT_STR(out.text, "why");
    for (size_t cut = 0; cut < w.used; cut++) {
        EXPECT(!read_view_body(bytes, cut, &out));
    }
}

TEST(counts_that_no_body_can_hold_are_refused) /* before anything is made for so many */
{
    unsigned char bytes[256];
    struct record_view in[] = {{.members = 16385}, {.seats = 1u << 30}, {.decisions = UINT32_MAX}, {.members = 9}};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        struct writer w;
        struct record_view out;
        writer_init(&w, bytes, sizeof bytes);
        put_record_view(&w, &in[i]);
        EXPECT(!w.bad && !read_view_body(bytes, w.used, &out));
    }
}

TEST(any_flipped_bit_or_missing_byte_is_seen) /* a torn or rotten record must not become a view */
{
    unsigned char bytes[256], bad[256];
    size_t size = put_batch(bytes, sizeof bytes, 0, 1, 1);
    struct record r;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        memcpy(bad, bytes, size);
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = 0;
        EXPECT(!record_next(bad, size, &at, &r));
    }
    for (size_t cut = 0; cut < size; cut++) {
        size_t at = 0;
        EXPECT(!record_next(bytes, cut, &at, &r));
    }
}

TEST(of_a_group_only_the_last_view_is_kept)
{
    unsigned char memory[1024], batch[512];
    struct journal j;
    journal_init(&j, memory, sizeof memory);
    EXPECT(journal_append(&j, batch, put_batch(batch, sizeof batch, 1, 3, 7)));
    size_t full = j.used;
    for (int i = 0; i < 100; i++) {
        EXPECT(journal_append(&j, batch, put_batch(batch, sizeof batch, 2, 1, 8 + (uint64_t)i)));
        EXPECT_EQ(j.used, full);
    }
    uint64_t value[4] = {0};
    struct record r;
    for (size_t at = 0; record_next(j.bytes, j.used, &at, &r);) {
        value[r.group] = r.value;
    }
    EXPECT_EQ(value[1], 7);
    EXPECT_EQ(value[2], 107);
    EXPECT_EQ(value[3], 7);
}

TEST(a_batch_replaces_the_views_of_all_its_groups)
{
    unsigned char memory[1024], batch[512];
    struct journal j;
    journal_init(&j, memory, sizeof memory);
    EXPECT(journal_append(&j, batch, put_batch(batch, sizeof batch, 1, 3, 7)));
    size_t full = j.used;
    EXPECT(journal_append(&j, batch, put_batch(batch, sizeof batch, 1, 3, 8)));
    EXPECT_EQ(j.used, full);
    struct record r;
    for (size_t at = 0; record_next(j.bytes, j.used, &at, &r);) {
        EXPECT_EQ(r.value, 8);
    }
}

TEST(half_batches_and_full_journals_change_nothing)
{
    unsigned char memory[256], batch[512];
    struct journal j;
    journal_init(&j, memory, sizeof memory);
    size_t size = put_batch(batch, sizeof batch, 1, 3, 7);
    struct record r;
    size_t first = 0;
    EXPECT(record_next(batch, size, &first, &r));
    EXPECT(!journal_append(&j, batch, first)); /* two more were announced */
    EXPECT(!journal_append(&j, batch, size - 1));
    EXPECT(!journal_append(&j, batch + first, 0));
    EXPECT(journal_append(&j, batch, size));
    size_t used = j.used;
    EXPECT(!journal_append(&j, batch, put_batch(batch, sizeof batch, 9, 3, 7))); /* no room */
    EXPECT_EQ(j.used, used);
}

TEST(what_several_worlds_begin_with_is_cut_into_what_is_of_each) /* else their records stay where nothing of theirs replaces them */
{
    unsigned char memory[2][512], batch[1024];
    struct journal j[2];
    struct writer w;
    writer_init(&w, batch, sizeof batch);
    for (uint32_t i = 0; i < 3; i++) { /* a used name and a view of place 6, a view of place 9 */
        struct record head = {.kind = i == 0 ? RECORD_USED : RECORD_VIEW, .left = 2 - i, .run = i < 2 ? 5 : 8, .epoch = 2,
                              .number = (uint64_t)(i < 2 ? 6 : 9) << 48 | 3};
        record_end(&w, record_begin(&w, &head));
    }
    EXPECT(journal_whole(batch, w.used) && !journal_whole(batch, w.used / 3));
    uint32_t place = 0;
    size_t first = journal_piece(batch, w.used, 0, &place);
    EXPECT_EQ(place, 6);
    size_t second = journal_piece(batch, w.used, first, &place);
    EXPECT_EQ(place, 9);
    EXPECT_EQ(first + second, w.used);
    EXPECT_EQ(journal_piece(batch, w.used, w.used, &place), 0);
    for (int i = 0; i < 2; i++) {
        journal_init(&j[i], memory[i], sizeof memory[i]);
        EXPECT(journal_keep(&j[i], batch + (i == 0 ? 0 : first), i == 0 ? first : second));
        EXPECT_EQ(j[i].used, i == 0 ? first : second);
    }
}
