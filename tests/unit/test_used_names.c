/* test_used_names.c - names that are used once: the ring and its index, against a list.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "master/used_names.h"
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t name_of(uint32_t n)
{
    char name[32];
    snprintf(name, sizeof name, "name %u", n);
    return mix_text(1, name);
}

static void grow(struct used_names *u, uint32_t more)
{
    uint32_t room = used_wanted(u, more);
    if (room > u->room) {
        void *memory = malloc(used_bytes(room));
        memset(memory, 0xA5, used_bytes(room));
        free(used_move(u, room, memory));
    }
}

TEST(the_last_so_many_are_kept_and_nothing_else_is_found)
{
    struct used_names u = {.most = 1000};
    EXPECT(!used_has(&u, name_of(0)) && !used_fits(&u, 1));
    for (uint32_t n = 0; n < 5000; n++) {
        grow(&u, 1);
        EXPECT(used_fits(&u, 1));
        used_note(&u, name_of(n));
        used_note(&u, name_of(n)); /* once more changes nothing */
        EXPECT(used_has(&u, name_of(n)));
        EXPECT_EQ(u.count, n < 1000 ? n + 1 : 1000);
        if (n % 97 == 0) {
            for (uint32_t i = 0; i < n + 50; i++) {
                EXPECT_EQ(used_has(&u, name_of(i)), i <= n && i + 1000 > n);
            }
        }
    }
    EXPECT_EQ(u.room, 1000);
    free(u.hash);
}

TEST(names_that_meet_in_the_index_are_told_apart_when_some_of_them_go) /* all hashes end alike */
{
    struct used_names u = {.most = 60};
    grow(&u, 60);
    for (uint64_t n = 0; n < 500; n++) {
        used_note(&u, n / 3 << 32 | (n % 3 == 0 ? 5 : 127));
        for (uint64_t i = 0; i <= n; i++) {
            uint64_t hash = i / 3 << 32 | (i % 3 == 0 ? 5 : 127);
            uint64_t seen = i - i % 3 + (i % 3 == 0 ? 0 : 1); /* two of three are the same: the first counts */
            uint64_t kinds = n / 3 * 2 + (n % 3 == 0 ? 1 : 2), mine = seen / 3 * 2 + (seen % 3 == 0 ? 0 : 1);
            EXPECT_EQ(used_has(&u, hash), mine + 60 >= kinds);
        }
    }
    free(u.hash);
}

TEST(room_for_more_is_asked_for_before_it_is_needed)
{
    struct used_names u = {.most = 65536};
    EXPECT_EQ(used_wanted(&u, 1), 64);
    grow(&u, 1);
    EXPECT(used_fits(&u, 64) && !used_fits(&u, 65));
    EXPECT_EQ(used_wanted(&u, 65), 128);
    EXPECT_EQ(used_wanted(&u, 70000), 65536);
    free(u.hash);
}
