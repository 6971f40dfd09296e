/* test_spares.c - what is kept of calls that have ended: never more, with what is in use, than was in use at once.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdint.h>
#include <string.h>

#include "engine/tables/spares.h"

enum { MOST = 200 };

TEST(a_block_is_of_its_class_and_serves_all_that_fit_it)
{
    struct spares s = {0};
    size_t before = 0;
    for (size_t want = 1; want < (size_t)1 << 28; want += want / 7 + 1) {
        size_t bytes = want, again;
        unsigned char *at = spares_take(&s, &bytes);
        EXPECT(at != NULL && bytes >= want && bytes >= before && bytes % 4096 == 0);
        EXPECT(want < 16384 || bytes - want <= want / 4); /* four classes to an octave */
        at[0] = 1;
        at[bytes - 1] = 1;
        spares_give(&s, at, bytes);
        again = bytes;
        EXPECT(spares_take(&s, &again) == (void *)at && again == bytes);
        spares_give(&s, at, again);
        before = bytes;
    }
    spares_rest(&s);
    EXPECT(s.kept == 0 && s.used == 0 && s.most == 0);
}

TEST(kept_and_used_are_never_more_than_was_used_at_once)
{
    struct spares s = {0};
    struct {
        unsigned char *at;
        size_t bytes;
    } have[MOST] = {{0}};
    size_t used = 0, most = 0;
    uint64_t dice = 1;
    for (int step = 0; step < 20000; step++) {
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t i = (uint32_t)(dice >> 33) % MOST;
        if (have[i].at == NULL) {
            have[i].bytes = (size_t)1 << (10 + (dice >> 20) % 13); /* some are below the least class */
            have[i].bytes += have[i].bytes / 3;
            have[i].at = spares_take(&s, &have[i].bytes);
            EXPECT(have[i].at != NULL);
            have[i].at[0] = (unsigned char)i;
            used += have[i].bytes;
        } else {
            EXPECT_EQ(have[i].at[0], (unsigned char)i); /* nobody else got it */
            spares_give(&s, have[i].at, have[i].bytes);
            used -= have[i].bytes;
            have[i].at = NULL;
        }
        most = used > most ? used : most;
        EXPECT(s.used == used && s.kept + used <= most);
        if (step % 5000 == 4999) {
            spares_rest(&s);
            EXPECT_EQ(s.kept, 0);
            most = used;
        }
    }
    for (int i = 0; i < MOST; i++) {
        if (have[i].at != NULL) {
            spares_give(&s, have[i].at, have[i].bytes);
        }
    }
    spares_rest(&s);
}

/* One at a time, of two sizes by turns: dropped for each other, both would be fresh memory every time. */
TEST(the_larger_one_serves_where_another_would_have_it_dropped)
{
    struct spares s = {0};
    size_t large = (size_t)100 << 20, small = (size_t)30 << 20, tiny = 16384;
    unsigned char *at = spares_take(&s, &large);
    EXPECT(at != NULL);
    spares_give(&s, at, large);
    for (int turn = 0; turn < 4; turn++) {
        size_t bytes = turn % 2 == 0 ? small : large;
        EXPECT(spares_take(&s, &bytes) == (void *)at && bytes == large);
        spares_give(&s, at, bytes);
    }
    void *one = spares_take(&s, &small), *other = spares_take(&s, &tiny); /* not by what is far too large */
    EXPECT(one == (void *)at && small == large && other != NULL && tiny == 16384);
    EXPECT(s.used == large + tiny && s.kept == 0);
    spares_give(&s, one, small);
    spares_give(&s, other, tiny);
    size_t again = tiny;
    EXPECT(spares_take(&s, &again) == other && again == tiny);
    spares_give(&s, other, tiny);
    spares_rest(&s);
}

TEST(more_than_there_is_is_refused_and_counts_as_nothing)
{
    struct spares s = {0};
    for (uint32_t shift = 47; shift < 64; shift += 4) {
        size_t bytes = (size_t)1 << shift;
        EXPECT(spares_take(&s, &bytes) == NULL);
        EXPECT(s.used == 0 && s.most == 0);
    }
}
