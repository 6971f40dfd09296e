/* test_tree_set.c - which sets of trees are valid.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "topology/tree_set.h"

TEST(two_trees_that_share_the_buffer_are_valid) /* a plan would refuse what the master made */
{
    uint16_t parent[] = {0, 0, 1, 1, 2, 2};
    struct tree_set s = {.members = 3, .count = 2, .share = {40000, TREE_SET_WHOLE - 40000}, .parent = parent};
    EXPECT(tree_set_valid(&s));
    EXPECT_EQ(tree_set_root(&s, 0), 0);
    EXPECT_EQ(tree_set_root(&s, 1), 2);
}

TEST(shares_that_leave_a_part_out_are_refused) /* that part of the buffer would never be summed */
{
    uint16_t parent[] = {0, 0, 1, 1, 1, 1};
    struct tree_set s = {.members = 3, .count = 2, .share = {40000, 20000}, .parent = parent};
    EXPECT(!tree_set_valid(&s));
    s.share[0] = TREE_SET_WHOLE;
    s.share[1] = 0;
    EXPECT(!tree_set_valid(&s));
}

TEST(a_cycle_a_second_root_and_a_strange_rank_are_refused) /* a walk to the root would never end, or leave the table */
{
    uint16_t cycle[] = {0, 2, 1}, two[] = {0, 1, 1}, strange[] = {0, 0, 7};
    struct tree_set s = {.members = 3, .count = 1, .share = {TREE_SET_WHOLE}, .parent = cycle};
    EXPECT(!tree_set_valid(&s));
    s.parent = two;
    EXPECT(!tree_set_valid(&s));
    s.parent = strange;
    EXPECT(!tree_set_valid(&s));
}

TEST(a_set_without_members_or_with_too_many_trees_is_refused) /* its tables would be read beyond their ends */
{
    uint16_t parent[] = {0};
    struct tree_set s = {.members = 0, .count = 1, .share = {TREE_SET_WHOLE}, .parent = parent};
    EXPECT(!tree_set_valid(&s));
    s.members = 1;
    EXPECT(tree_set_valid(&s));
    s.count = TREE_SET_MOST + 1;
    EXPECT(!tree_set_valid(&s));
    s.count = 1;
    s.members = TREE_SET_MEMBERS + 1;
    EXPECT(!tree_set_valid(&s));
}
