/* test_interfaces.c - which interfaces a choice names, and what addresses that leaves.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "net/addr.h"
#include "net/interfaces.h"

TEST(a_choice_is_read_as_NCCL_reads_its_own)
{
    static const struct {
        const char *choice, *name;
        bool chosen;
    } cases[] = {
        {"eth", "eth0", true}, {"eth", "eth1", true}, {"eth", "et", false}, {"eth", "ib0", false}, {"eth,ib", "ib0", true},
        {"=eth0", "eth0", true}, {"=eth0", "eth01", false}, {"=eth", "eth0", false}, {"=eth1,ib0", "ib0", true}, {"=eth1,ib0", "eth0", false},
        {"^docker", "docker0", false}, {"^docker", "eth0", true}, {"^docker,lo", "lo", false}, {"^=docker0", "docker0", false},
        {"^=docker0", "docker01", true}, {",eth", "eth0", true}, {",", "eth0", false}, {"=", "eth0", false}, {"^", "eth0", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (interfaces_chosen(cases[i].choice, cases[i].name) != cases[i].chosen) {
            printf("# '%s' and %s\n", cases[i].choice, cases[i].name);
            EXPECT_EQ(cases[i].chosen, !cases[i].chosen);
        }
    }
}

TEST(loopback_is_told_of_only_if_it_is_named) /* nobody else can reach it */
{
    static const struct {
        const char *choice;
        bool loopback;
    } cases[] = {{"", false}, {"^docker", false}, {"lo", true}, {"=lo", true}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct net_address a[8];
        size_t count = interfaces_list(cases[k].choice, a, 8, 77);
        bool loopback = false;
        for (size_t i = 0; i < count; i++) {
            loopback = loopback || addr_is_loopback(&a[i]);
            EXPECT_EQ(a[i].port, 77);
        }
        EXPECT_EQ(loopback, cases[k].loopback);
    }
    struct net_address one[1];
    EXPECT_EQ(interfaces_list("lo", one, 1, 77), 1);
    EXPECT_EQ(interfaces_list("=l", one, 1, 77), 0);
}

TEST(the_names_of_those_that_are_up_fit_where_they_are_put)
{
    char all[128], few[3] = "??";
    interfaces_names(all, sizeof all);
    EXPECT(strstr(all, "lo") != NULL);
    interfaces_names(few, sizeof few);
    EXPECT(strlen(few) < sizeof few);
}
