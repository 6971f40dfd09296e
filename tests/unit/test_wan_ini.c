/* test_wan_ini.c - the description of an emulated network: its values, its sections, and what is wrong with it.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "pccl/wan_ini.h"
#include "pccl/wan_parser.h"
#include "pccl/wan_units.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

TEST(rates_are_decimal_bits_per_second) /* 1024 for 1000 would be 2 to 10 % too fast */
{
    uint64_t rate = 7;
    EXPECT(wan_units_rate("100mbit", &rate) == NULL && rate == 100000000);
    EXPECT(wan_units_rate("2.5gbit", &rate) == NULL && rate == 2500000000);
    EXPECT(wan_units_rate("1Gbit", &rate) == NULL && rate == 1000000000);
    EXPECT(wan_units_rate("1500bit", &rate) == NULL && rate == 1500);
    EXPECT(wan_units_rate("64kbit", &rate) == NULL && rate == 64000);
    EXPECT(wan_units_rate("unlimited", &rate) == NULL && rate == 0);
}

TEST(bytes_times_and_losses_have_their_units) /* a value that is read as another one measures another network */
{
    uint64_t bytes = 0;
    int64_t ns = 0;
    double share = 0, burst = 0;
    EXPECT(wan_units_bytes("6MB", &bytes) == NULL && bytes == 6000000);
    EXPECT(wan_units_bytes("4MiB", &bytes) == NULL && bytes == 4194304);
    EXPECT(wan_units_bytes("1.5kB", &bytes) == NULL && bytes == 1500);
    EXPECT(wan_units_time("50ms", &ns) == NULL && ns == 50000000);
    EXPECT(wan_units_time("0.25s", &ns) == NULL && ns == 250000000);
    EXPECT(wan_units_time("200us", &ns) == NULL && ns == 200000);
    EXPECT(wan_units_time("0ms", &ns) == NULL && ns == 0);
    EXPECT(wan_units_loss("0.1%", &share) == NULL && share > 0.00099999 && share < 0.00100001);
    EXPECT(wan_units_loss("0.001", &share) == NULL && share > 0.00099999 && share < 0.00100001);
    EXPECT(wan_units_loss("100%", &share) == NULL && share > 0.9999 && share < 1.0001);
    EXPECT(wan_units_burst("3.5", &burst) == NULL && burst > 3.4999 && burst < 3.5001);
}

TEST(values_of_another_form_are_refused_and_leave_the_result_alone) /* "-5mbit" or "10mb" that counts as something */
{
    static const char *const rates[] = {"-5mbit", "+5mbit", "", "mbit", "10", "10mb", "10 mbit", "1e3mbit", "0x10mbit", "1.2.3mbit", "0mbit", "2tbit", "nan", "inf", ".5gbit"};
    static const char *const times[] = {"50", "-1ms", "61s", "50m", "ms"};
    static const char *const shares[] = {"1.01", "101%", "-1%", "0.1 %", "%", "x"};
    uint64_t value = 7, count = 7;
    uint32_t address = 7;
    int64_t ns = 7;
    double share = 7;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        EXPECT(wan_units_rate(rates[i], &value) != NULL);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        EXPECT(wan_units_time(times[i], &ns) != NULL);
    }
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        EXPECT(wan_units_loss(shares[i], &share) != NULL);
    }
    EXPECT(wan_units_bytes("6", &value) != NULL && wan_units_bytes("5GB", &value) != NULL);
    EXPECT(wan_units_burst("0.5", &share) != NULL);
    EXPECT(wan_units_count("12x", &count) != NULL && wan_units_count("-1", &count) != NULL);
    EXPECT(wan_units_address("127.0.0.1", &address) != NULL && wan_units_address("224.0.0.1", &address) != NULL);
    EXPECT(wan_units_address("10.0.0", &address) != NULL && wan_units_address("0.0.0.1", &address) != NULL);
    EXPECT(value == 7 && count == 7 && ns == 7 && address == 7 && share > 6.9 && share < 7.1);
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

static const struct wan_values *pair(const struct wan_network *n, const char *from, const char *to)
{
    return &n->pair[wan_network_host(n, from) * (int)n->host_count + wan_network_host(n, to)];
}

#define NEEDS_INIH()                                                                                                   \
    do {                                                                                                               \
        if (wan_parser_missing() != NULL) {                                                                              \
            TEST_SKIP("built without inih (libinih-dev)");                                                             \
        }                                                                                                              \
    } while (0)

TEST(a_path_serves_both_directions_unless_the_other_one_has_its_own)
{
    NEEDS_INIH();
    char error[WAN_ERROR];
    struct wan_network *n = wan_ini_read("t.ini",
                                         "; a comment\n# another one\n[host a]\n[host b]\r\n  [host c] ; the third\n"
                                         "[path a b]\nrate = 10mbit ; slow\n delay = 5ms\nqueue: 20kB\n"
                                         "[path b c]\nloss=1%\nburst=3\n[path c b]\nloss=2%\njitter=1ms\n", error);
    EXPECT_STR(error, "");
    if (n == NULL) {
        return;
    }
    EXPECT_EQ(n->host_count, 3);
    EXPECT_EQ(pair(n, "a", "b")->rate_bps, 10000000);
    EXPECT_EQ(pair(n, "b", "a")->rate_bps, 10000000);
    EXPECT_EQ(pair(n, "b", "a")->delay_ns, 5000000);
    EXPECT_EQ(pair(n, "a", "b")->queue_bytes, 20000);
    EXPECT_EQ(pair(n, "a", "c")->rate_bps, 0);
    EXPECT_EQ((int)(pair(n, "b", "c")->loss * 1000 + 0.5), 10);
    EXPECT_EQ((int)pair(n, "b", "c")->burst, 3);
    EXPECT_EQ((int)(pair(n, "c", "b")->loss * 1000 + 0.5), 20);
    EXPECT_EQ((int)pair(n, "c", "b")->burst, 1);
    EXPECT_EQ(pair(n, "c", "b")->jitter_ns, 1000000);
    EXPECT_EQ(pair(n, "b", "c")->jitter_ns, 0);
    wan_network_free(n);
}

TEST(the_most_exact_section_gives_each_value) /* a host's own path would be overruled by its site's */
{
    NEEDS_INIH();
    char error[WAN_ERROR];
    struct wan_network *n = wan_ini_read("t.ini",
                                         "[path a1 b1]\nloss = 3%\n[path a1 B]\njitter = 2ms\n[path A B]\ndelay = 40ms\njitter = 1ms\nrate = 1gbit\n"
                                         "[path A A]\ndelay = 1ms\n[defaults]\ndelay = 7ms\nuplink = 50mbit\nmtu = 1400\nseed = 9\n"
                                         "[site A]\nuplink = 3gbit\n[site B]\n"
                                         "[host a1]\nsite = A\nuplink = 80mbit\n[host a2]\nsite = A\n[host b1]\nsite = B\naddress = 10.77.0.1\n"
                                         "[host lone]\ntcp_rmem = 64MB\ncongestion = reno\n", error);
    EXPECT_STR(error, "");
    if (n == NULL) {
        return;
    }
    EXPECT_EQ(pair(n, "a1", "b1")->delay_ns, 40000000); /* of the sites */
    EXPECT_EQ(pair(n, "b1", "a1")->delay_ns, 40000000);
    EXPECT_EQ(pair(n, "a1", "b1")->jitter_ns, 2000000); /* of host and site */
    EXPECT_EQ(pair(n, "a2", "b1")->jitter_ns, 1000000);
    EXPECT_EQ((int)(pair(n, "b1", "a1")->loss * 100 + 0.5), 3); /* of the hosts, given in the other direction */
    EXPECT_EQ(pair(n, "a1", "a2")->delay_ns, 1000000); /* within the site */
    EXPECT_EQ(pair(n, "lone", "a1")->delay_ns, 7000000);
    EXPECT_EQ(pair(n, "lone", "a1")->mtu, UINT64_MAX); /* the default is the hosts' */
    EXPECT_EQ(n->hosts[0].values.uplink_bps, 80000000);
    EXPECT_EQ(n->hosts[1].values.uplink_bps, 50000000);
    EXPECT_EQ(n->hosts[1].values.mtu, 1400);
    EXPECT_EQ(n->hosts[1].values.uplink_queue_bytes, 312500); /* 50 ms */
    EXPECT_EQ(n->sites[0].values.uplink_bps, 3000000000);
    EXPECT_EQ(n->sites[1].values.uplink_bps, 0); /* [defaults] has the hosts' uplinks */
    EXPECT_EQ(n->hosts[2].values.address, 0x0A4D0001);
    EXPECT_EQ(n->hosts[0].values.address, 0x0A4D0002); /* the first that nobody has */
    EXPECT_EQ(n->hosts[3].values.address, 0x0A4D0004);
    EXPECT_STR(n->hosts[3].values.congestion, "reno");
    EXPECT_EQ(n->defaults.seed, 9);
    wan_network_free(n);
}

TEST(each_mistake_is_one_sentence_with_file_line_and_remedy) /* a network that is not the one described */
{
    NEEDS_INIH();
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "t.ini:1: there is no host: add a section such as [host a]"},
        {"[host a]\n[path a b]\n", "t.ini:2: there is no host or site 'b': add [host b], or correct the name"},
        {"[host a]\nsite = x\n", "t.ini:2: there is no site 'x': add [site x], or correct the name"},
        {"[host a]\n[host b]\n[path a b]\nrate = -1mbit\n", "t.ini:4: rate takes a rate from 1kbit to 1tbit, such as 100mbit or 2.5gbit, or unlimited, not '-1mbit'"},
        {"[host a]\n[host b]\n[path a b]\nloss = 1.5\n", "t.ini:4: loss takes a share from 0 to 1, such as 0.001 or 0.1%, not '1.5'"},
        {"[host a]\n[host b]\n[path a b]\ndelay = 50\n", "t.ini:4: delay takes a time from 0ms to 60s, such as 50ms or 0.5s, not '50'"},
        {"[host a]\n[host b]\n[path a b]\nqueue = 5\n", "t.ini:4: queue takes a number of bytes up to 4GB with its unit, such as 64kB, 6MB or 4MiB, not '5'"},
        {"[host a]\naddress = 10.0.0.1\n[host b]\naddress = 10.0.0.1\n", "t.ini:4: the hosts 'a' and 'b' have one address: give each its own, or leave the key out"},
        {"[host abcdefghijklmnop]\n", "t.ini:1: the name 'abcdefghijklmnop' is longer than that of a network device, 15 characters: shorten it"},
        {"[host lo]\n", "t.ini:1: 'lo' cannot name a host: take letters, digits, '-' and '_', and not lo"},
        {"[host a/b]\n", "t.ini:1: 'a/b' cannot name a host: take letters, digits, '-' and '_', and not lo"},
        {"[host a]\n[host a]\n", "t.ini:2: the name 'a' is given twice, first to the host in line 1: hosts and sites need a name each"},
        {"[site a]\n[host a]\n", "t.ini:2: the name 'a' is given twice, first to the site in line 1: hosts and sites need a name each"},
        {"[host a]\nmtu = 1500\nmtu = 1400\n", "t.ini:3: key 'mtu' is there twice, first in line 2: remove one"},
        {"[host a]\nmtu = 100\n", "t.ini:2: mtu takes a number of bytes from 576 to 65000, such as 1500, not '100'"},
        {"[host a]\nspeed = 1\n", "t.ini:2: [host] has no key 'speed': give one of mtu, uplink, downlink, uplink_queue, downlink_queue, tcp_wmem, tcp_rmem, congestion, address, site"},
        {"[host a]\nrate = 1mbit\n", "t.ini:2: [host] has no key 'rate': give one of"},
        {"[host a]\n[path a a]\n", "t.ini:2: a host has no path to itself: name two hosts, or remove the section"},
        {"[host a]\n[host b]\n[path a b]\n[path a b]\n", "t.ini:4: [path a b] is there twice, first in line 3: remove one"},
        {"[defaults]\n[defaults]\n", "t.ini:2: [defaults] is there twice, first in line 1: make one of them"},
        {"[host a]\n[nat a]\n", "t.ini:2: [nat] is not emulated by this version: remove the section"},
        {"[hosts a]\n", "t.ini:1: there is no section '[hosts ...]': give [defaults], [site NAME], [host NAME] or [path FROM TO]"},
        {"[path a]\n", "t.ini:1: there is no section '[path ...]': give"},
        {"[host a\n", "t.ini:1: a section without ']': close it"},
        {"rate = 1mbit\n[host a]\n", "t.ini:1: key 'rate' stands before the first section: put it into [defaults]"},
        {"[host a]\nwhat\n", "t.ini:2: neither a section nor a key with its value: write such as rate = 100mbit"},
        {"[host a]\n[host b]\n[path a b]\nloss = 90%\nburst = 2\n", "t.ini:3: loss 90% of 'a' to 'b' cannot come in bursts of 2: lower loss to 66.6667%, or raise burst"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char error[WAN_ERROR];
        struct wan_network *n = wan_ini_read("t.ini", bad[i].text, error);
        EXPECT(n == NULL);
        if (strncmp(error, bad[i].error, strlen(bad[i].error)) != 0) {
            EXPECT_STR(error, bad[i].error);
        }
        wan_network_free(n);
    }
}

TEST(the_first_mistake_counts_and_long_lines_are_refused) /* a line that inih cuts would be two */
{
    NEEDS_INIH();
    char error[WAN_ERROR], text[600] = "[host a]\n";
    EXPECT(wan_ini_read("t.ini", "[host a]\nmtu = 1\nrate = 2\n[nat]\n", error) == NULL);
    EXPECT(strncmp(error, "t.ini:2: mtu", 12) == 0);
    memset(text + 9, '#', 300);
    EXPECT(wan_ini_read("t.ini", text, error) == NULL);
    EXPECT_STR(error, "t.ini:2: a line of more than 190 characters: shorten it");
    EXPECT(wan_ini_load("/nowhere/at/all.ini", error) == NULL);
    EXPECT_STR(error, "/nowhere/at/all.ini: No such file or directory: give the path of a network description");
}

TEST(a_description_of_256_hosts_is_read_and_one_of_257_refused) /* a table that overflows */
{
    NEEDS_INIH();
    char error[WAN_ERROR], *text = NULL;
    size_t size = 0;
    for (int count = 256; count <= 257; count++) {
        FILE *f = open_memstream(&text, &size);
        for (int i = 0; i < count; i++) {
            fprintf(f, "[host h%d]\n", i);
        }
        fclose(f);
        struct wan_network *n = wan_ini_read("t.ini", text, error);
        EXPECT_STR(error, count == 256 ? "" : "t.ini:257: more than 256 hosts: remove some");
        EXPECT(count == 257 || (n != NULL && n->hosts[255].values.address == 0x0A4D0100));
        wan_network_free(n);
        free(text);
    }
}
