/* test_trees_make.c - the memory in which a master packs the trees of its views.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "world/trees_make.h"

TEST(room_for_so_many_members_is_enough_for_fewer) /* a view of 32 members wrote behind the arena of a master for 33 */
{
    for (uint32_t most = 1; most <= TREES_MEMBERS + 1; most++) {
        for (uint32_t n = 1; n <= most && n <= TREES_MEMBERS; n++) {
            EXPECT(tree_packing_room(n, n) <= trees_room(most));
        }
    }
    EXPECT(trees_room(TREES_MEMBERS + 100) == trees_room(TREES_MEMBERS));
}
