/* test_wan_control.c - commands that change an emulated network while it runs.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "pccl/wan_control.h"
#include "pccl/wan_keep.h"

static struct wan_order order; /* large */
static char error[WAN_ERROR];

/* Hosts a, b, c; a and b are site s. */
static struct wan_network *three(void)
{
    struct wan_network *n = wan_network_new();
    int line = 0;
    n->host_count = 3;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(n->hosts[i].name, WAN_NAME, "%c", (int)('a' + i));
    }
    for (unsigned i = 0; i < 2; i++) {
        n->hosts[i].values.given = 1u << WAN_SITE;
        snprintf(n->hosts[i].values.site, WAN_NAME, "s");
    }
    n->site_count = 1;
    snprintf(n->sites[0].name, WAN_NAME, "s");
    EXPECT(wan_network_resolve(n, &line, error));
    return n;
}

/* Which ordered pairs a command reaches, as "ab ba". */
static void expect_cuts(const struct wan_network *n, const char *line, const char *want)
{
    char got[64] = "";
    struct wan_flow *f = wan_flow_new(n, 1 << 20);
    EXPECT(wan_control_read(n, line, &order, error) && wan_control_apply(n, &order, f, error));
    for (unsigned pair = 0; pair < 9; pair++) {
        uint8_t packet[10 + 20] = {[10] = 0x45, [13] = 20};
        for (int i = 0; i < 4; i++) {
            packet[26 + i] = (uint8_t)(n->hosts[pair % 3].values.address >> (24 - 8 * i));
        }
        if (pair / 3 != pair % 3) {
            wan_flow_take(f, pair / 3, packet, sizeof packet, 0);
            if (wan_flow_counts(f, pair / 3, pair % 3)->cut == 1) {
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%c%c", got[0] != 0 ? " " : "", (int)('a' + pair / 3), (int)('a' + pair % 3));
            }
        }
    }
    EXPECT_STR(got, want);
    wan_flow_free(f);
}

TEST(a_cut_reaches_the_pairs_that_it_names) /* a cut of one direction that cuts both, or of a site that leaves a host out */
{
    struct wan_network *n = three();
    expect_cuts(n, "cut a b", "ab ba");
    expect_cuts(n, "cut a to b", "ab");
    expect_cuts(n, "cut b", "ab ba bc cb");
    expect_cuts(n, " cut  s\tc \n", "ac bc ca cb");
    expect_cuts(n, "cut c to s", "ca cb");
    expect_cuts(n, "cut s s", "ab ba");
    wan_network_free(n);
}

TEST(a_path_command_changes_what_it_names_and_nothing_else)
{
    struct wan_network *n = three();
    struct wan_flow *f = wan_flow_new(n, 1 << 20);
    EXPECT(wan_control_read(n, "path a b loss 20% burst 3", &order, error) && wan_control_apply(n, &order, f, error));
    EXPECT(wan_flow_loss(f, 0, 1) > 0.19 && wan_flow_loss(f, 1, 0) > 0.19 && wan_flow_loss(f, 0, 2) < 0.01);
    EXPECT(wan_flow_burst(f, 0, 1) > 2.9);
    EXPECT(wan_control_read(n, "path a to c loss 0.5", &order, error) && wan_control_apply(n, &order, f, error));
    EXPECT(wan_flow_loss(f, 0, 2) > 0.49 && wan_flow_loss(f, 2, 0) < 0.01);
    EXPECT(wan_control_read(n, "path a b rate 1mbit delay 3ms jitter 1ms queue 5kB mtu 1400", &order, error));
    EXPECT_EQ(order.values.rate_bps, 1000000);
    EXPECT_EQ(order.values.delay_ns, 3000000);
    EXPECT(wan_control_read(n, "path a b loss 90%", &order, error) && !wan_control_apply(n, &order, f, error));
    EXPECT_STR(error, "loss 90% cannot come in bursts of 3: lower loss to 75%, or raise burst");
    EXPECT(wan_flow_loss(f, 0, 1) < 0.3);
    wan_flow_free(f);
    wan_network_free(n);
}

TEST(a_wrong_command_is_one_sentence) /* a fault test that faults nothing */
{
    static const struct {
        const char *line, *error;
    } bad[] = {
        {"cutt a b", "there is no command 'cutt': give path, cut or heal"},
        {"", "there is no command '': give path, cut or heal"},
        {"cut", "cut takes a host or site, or two: such as cut a b, or cut a to b for one direction"},
        {"cut a b c", "cut takes a host or site, or two"},
        {"cut a x", "there is no host or site 'x': correct the name"},
        {"cut a a", "host 'a' has no path to itself: name two hosts"},
        {"heal a to b c", "heal takes a host or site"},
        {"path a b", "path needs a value behind each key: such as path a b loss 20%"},
        {"path a b loss", "path needs a value behind each key"},
        {"path a", "path needs two hosts or sites, then keys and values: such as path a b loss 20%"},
        {"path a b speed 3", "a path has no key 'speed': give one of rate, queue, delay, jitter, loss, burst, mtu"},
        {"path a b uplink 3mbit", "a path has no key 'uplink'"},
        {"path a b loss 2", "loss takes a share from 0 to 1, such as 0.001 or 0.1%, not '2'"},
    };
    struct wan_network *n = three();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT(!wan_control_read(n, bad[i].line, &order, error));
        if (strncmp(error, bad[i].error, strlen(bad[i].error)) != 0) {
            EXPECT_STR(error, bad[i].error);
        }
    }
    wan_network_free(n);
}

TEST(words_in_braces_stand_for_the_host_and_others_stay) /* a program that is told another host's name */
{
    static const char *const words[][2] = {
        {"{host}:{rank}/{hosts}", "b:1/3"}, {"--at={address}", "--at=10.77.0.2"}, {"{first}", "10.77.0.1"},
        {"{}{hos}{host", "{}{hos}{host"},   {"${rank}x", "$1x"},                  {"", ""},
    };
    struct wan_network *n = three();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char *got = wan_keep_word(n, 1, words[i][0]);
        EXPECT_STR(got, words[i][1]);
        free(got);
    }
    wan_network_free(n);
}
