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
