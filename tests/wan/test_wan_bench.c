/* test_wan_bench.c - "pccl bench --wan": ranks, master and plain links are in the emulated network, and nowhere else.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/wan/wan_lab.h"

static struct program bench; /* large */

static const char network[] = "[host a]\n[host b]\n[host c]\n[path a b]\nrate = 100mbit\ndelay = 10ms\n[path b c]\nrate = 100mbit\ndelay = 10ms\n"
                              "[path a c]\nrate = 100mbit\ndelay = 10ms\n";

/* Runs it with the words up to a null; repeated while the run is void. */
static int run_bench(const char *text, char *const words[])
{
    char path[PATH_MAX], file[] = "/tmp/pccl-wan-XXXXXX", name[] = "pccl", word[] = "bench", wan[] = "--wan";
    char *args[LAB_WORDS] = {name, word, wan, file};
    int fd = mkstemp(file), status = LAB_VOID;
    EXPECT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    for (int i = 0; words[i] != NULL; i++) {
        args[4 + i] = words[i];
    }
    spawn_path("bin/pccl", path);
    for (int i = 0; i < LAB_TRIES && status == LAB_VOID; i++) {
        status = program_start(&bench, path, args) ? program_wait(&bench) : -1;
    }
    unlink(file);
    return status;
}

static double number(const char *from, const char *name)
{
    const char *at = from != NULL ? strstr(from, name) : NULL;
    return at != NULL ? atof(at + strlen(name)) : -1;
}

TEST(ranks_and_plain_links_are_as_far_away_as_the_network_says) /* figures of loopback that pass for those of a wide area */
{
    LAB_NEEDED();
    char b[] = "-b", e[] = "-e", size[] = "256K", iters[] = "--iters", three[] = "3", json[] = "--json", out[] = "-";
    char *words[] = {b, size, e, size, iters, three, json, out, NULL};
    EXPECT_EQ(run_bench(network, words), 0);
    EXPECT_EQ((int)number(bench.out_text, "\"ranks\": "), 3);
    EXPECT_EQ((int)number(bench.out_text, "\"emulated_hosts\": "), 3);
    EXPECT_EQ((int)number(bench.out_text, "\n  \"wrong\": "), 0);
    EXPECT(strstr(bench.out_text, "\"transport\": \"tcp\"") != NULL && strstr(bench.out_text, "\"limit\": \"tcp\"") != NULL);
    /* a round trip, or 2/3 of the bytes at 100 Mb/s: whatever is less cannot have gone over these paths */
    EXPECT(number(bench.out_text, "\"time_us\": ") > 14000);
    EXPECT(number(bench.out_text, "\"limit_us\": ") > 14000);
    EXPECT(strstr(bench.err_text, "\na               b ") != NULL && strstr(bench.err_text, "\nc               b ") != NULL);
}

TEST(fewer_ranks_than_hosts_are_the_first_ones_and_a_kill_is_recovered_from)
{
    LAB_NEEDED();
    char n[] = "-n", two[] = "2", b[] = "-b", e[] = "-e", size[] = "64K", kills[] = "--kill-rank", one[] = "1", rounds[] = "--rounds";
    char *words[] = {n, two, b, size, e, size, kills, one, rounds, one, NULL};
    EXPECT_EQ(run_bench(network, words), 0);
    EXPECT(strstr(bench.out_text, "at 10.77.0.2:") != NULL);
    EXPECT(strstr(bench.err_text, "\na               b ") != NULL && strstr(bench.err_text, "\na               c ") == NULL);
}

TEST(a_network_that_cannot_be_used_is_said_before_anything_is_measured)
{
    LAB_NEEDED();
    char n[] = "-n", four[] = "4";
    char *words[] = {n, four, NULL}, *none[] = {NULL};
    EXPECT_EQ(run_bench(network, words), 2);
    EXPECT(strstr(bench.err_text, "pccl bench: -n 4 is more than the 3 hosts of /tmp/") == bench.err_text);
    EXPECT_EQ(run_bench("[host a]\nrate = 3\n", none), 2);
    EXPECT(strstr(bench.err_text, ":2: [host] has no key 'rate': give one of ") != NULL);
    EXPECT_STR(bench.out_text, "");
}

TEST(a_sender_that_fills_a_socket_is_named_with_the_remedy) /* the kernel's limits are the operator's, who does not know of them */
{
    LAB_NEEDED();
    char b[] = "-b", e[] = "-e", size[] = "2M", iters[] = "--iters", many[] = "6";
    char *words[] = {b, size, e, size, iters, many, NULL};
    setenv("PCCL_SOCKET_RCVBUF", "262144", 1);
    setenv("PCCL_STRIPE", "1", 1);
    EXPECT_EQ(run_bench("[defaults]\ntcp_rmem = 256KB\n[host a]\n[host b]\n[path a b]\nrate = 100mbit\ndelay = 25ms\n", words), 0);
    unsetenv("PCCL_SOCKET_RCVBUF");
    unsetenv("PCCL_STRIPE");
    EXPECT(strstr(bench.err_text, " fills its receive buffers: to let it send faster, sysctl -w net.ipv4.tcp_rmem='4096 131072 ") != NULL);
    EXPECT_EQ(run_bench(network, words), 0);
    EXPECT(strstr(bench.err_text, "receive buffer") == NULL);
}
