/* test_bench_figures.c - what "pccl bench" prints: bandwidths, shares, columns, files, the flags that change what is measured.
 *
 * Figures are read from --json, which is taken apart: what is not JSON is a failure.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <unistd.h>

#include "pccl.h"
#include "pccl/bench_limit.h"
#include "pccl/bench_report.h"
#include "tests/e2e/bench_said.h"

static void expect_near(double value, double want)
{
    EXPECT(value > want * 0.999 && value < want * 1.001);
}

TEST(bandwidths_follow_from_size_and_time) /* units, and the factors of nccl-tests */
{
    static const struct {
        const char *name;
        double factor; /* of 4 ranks */
    } row[] = {{"all_reduce", 1.5}, {"broadcast", 1}, {"reduce", 1}, {"all_gather", 0.75}, {"reduce_scatter", 0.75},
               {"all_to_all", 0.75}, {"gather", 0.75}, {"scatter", 0.75}, {"sendrecv", 1}, {"all_to_all_v", 0.75}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct program p;
        char words[128];
        snprintf(words, sizeof words, "bench %s -n 4 -b 64K -e 64K --iters 5 --limit 0 --json -", row[i].name);
        EXPECT_EQ(bench_run(&p, words), 0);
        double us = bench_number(p.out_text, "\"time_us\": "), algbw = bench_number(p.out_text, "\"algbw\": ");
        EXPECT_EQ(bench_number(p.out_text, "\"size\": "), 65536);
        EXPECT_EQ(bench_number(p.out_text, "\"iterations\": "), 5);
        EXPECT(us > 0 && bench_number(p.out_text, "\"min_us\": ") <= us && bench_number(p.out_text, "\"max_us\": ") >= us);
        expect_near(algbw, 65536 / 1e3 / us);
        expect_near(bench_number(p.out_text, "\"busbw\": "), algbw * row[i].factor);
        EXPECT(strstr(p.out_text, "\"limit_share\": null") != NULL && strstr(p.out_text, "\"limit\": null") != NULL);
    }
}

TEST(share_of_the_limit_is_of_plain_links_in_the_same_run)
{
    struct program p;
    EXPECT_EQ(bench_right(&p, "-n 2 -b 1M -e 1M --iters 3"), 2);
    double us = bench_number(p.out_text, "\"time_us\": "), limit = bench_number(p.out_text, "\"limit_us\": ");
    EXPECT(limit > 0);
    if (limit > us * 1.005) { /* plain links that are slower are no limit */
        EXPECT(strstr(p.out_text, "\"limit_share\": null, \"limit_failed\": true") != NULL);
    } else {
        expect_near(bench_number(p.out_text, "\"limit_share\": "), limit / us);
    }
}

TEST(slower_plain_links_are_a_failed_measurement) /* "limit 436%" */
{
    EXPECT(!bench_limit_failed(0, 10) && !bench_limit_failed(9, 10) && !bench_limit_failed(10.04, 10));
    EXPECT(bench_limit_failed(10.06, 10) && bench_limit_failed(43.6, 10));
    struct bench_options o = {.check = 1, .rounds = 1};
    struct bench_job job = {.call = bench_call_find("all_reduce"), .size = 4, .count = 1};
    struct bench_line line = {.job = job, .out_of_place = {.there = true, .us = 10, .limit_failed = true},
                              .in_place = {.there = true, .us = 10, .share = 0.9}};
    struct bench_results all = {.options = &o, .lines = &line, .line_count = 1};
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    EXPECT(out != NULL);
    if (out != NULL) {
        bench_table_line(out, &all, &line);
        bench_table_end(out, &all);
        fclose(out);
        EXPECT(strstr(text, "  fail   90% -\n") != NULL && strstr(text, "# limit \"fail\"         : 1; plain links were slower") != NULL);
    }
}

TEST(table_has_the_columns_of_nccl_tests_in_their_places) /* what others' scripts read; ours come behind */
{
    struct program p;
    char line[512], *words[32] = {NULL};
    EXPECT_EQ(bench_run(&p, "bench all_reduce reduce_scatter -b 4 -e 1K -f 16 --iters 2 -C 1"), 0);
    const char *titles = strstr(p.out_text, "size");
    static const char *const columns[] = {"count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
                                          "#wrong", "limit", "limit", "cpu", "cpu", "by"};
    for (size_t i = 0; titles != NULL && i < sizeof columns / sizeof columns[0]; i++) {
        titles = strstr(titles + 1, columns[i]);
    }
    EXPECT(titles != NULL);
    const char *other = strstr(p.out_text, "# reduce_scatter\n");
    EXPECT(strstr(p.out_text, "# all_reduce\n") != NULL && other != NULL);
    EXPECT_EQ(bench_count(p.out_text, " float "), 3 + 3); /* 4, 64, 1024 */
    EXPECT_EQ(bench_count(other != NULL ? other : "", " float "), 3);
    EXPECT_EQ(bench_count(p.out_text, "N/A"), 3 * 4); /* not in place */
    EXPECT(strstr(p.out_text, "# Out of bounds values : 0 OK") != NULL);
    EXPECT_STR(p.err_text, "");
    EXPECT_EQ(bench_words(p.out_text, "float", line, words), 18);
    static const struct {
        int at;
        const char *word;
    } fixed[] = {{0, "4"}, {1, "1"}, {2, "float"}, {3, "sum"}, {4, "-1"}, {8, "0"}, {12, "0"}};
    for (size_t i = 0; words[17] != NULL && i < sizeof fixed / sizeof fixed[0]; i++) {
        EXPECT_STR(words[fixed[i].at], fixed[i].word);
    }
    EXPECT_EQ(bench_run(&p, "bench -b 4 -e 12 -i 4 --iters 2 -c 0"), 0);
    EXPECT_EQ(bench_count(p.out_text, " float "), 3); /* 4, 8, 12 */
    EXPECT(strstr(p.out_text, "N/A") != NULL && strstr(p.out_text, "Out of bounds") == NULL);
}

TEST(lines_are_stamped_with_their_time) /* where nccl-tests has it: behind its own columns */
{
    struct program p;
    char line[512], *words[32] = {NULL};
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    EXPECT_EQ(bench_run(&p, "bench -b 4 -e 4 --iters 2 -S 1 --limit 0"), 0);
    EXPECT_EQ(bench_words(p.out_text, "float", line, words), 18);
    if (words[14] != NULL) {
        EXPECT_EQ(sscanf(words[13], "%d-%d-%d", &year, &month, &day), 3);
        EXPECT_EQ(sscanf(words[14], "%d:%d:%d", &hour, &minute, &second), 3);
        EXPECT(year > 2000 && month >= 1 && month <= 12 && hour < 24 && second <= 60);
    }
    EXPECT_EQ(bench_right(&p, "-b 4 -e 4 --iters 2 -S 1 -N 3"), 3 * 2);
    EXPECT_EQ(bench_count(p.out_text, "\"timestamp\": \"20"), 3 * 2);
    EXPECT_EQ(bench_count(p.out_text, "\"cycle\": 3"), 2);
}

TEST(operations_that_start_together_are_right_each) /* buffers that two of them share */
{
    struct program p;
    int each = COLLECTIVES + MESSAGES + IN_PLACE_TOO;
    EXPECT_EQ(bench_right(&p, "all -n 3 -b 10000 -e 10000 -m 5 --iters 2 -w 0 -c 3"), each);
    EXPECT_EQ(bench_count(p.out_text, "\"iterations\": 2, \"together\": 5"), each);
    EXPECT_EQ(bench_right(&p, "-n 2 -b 4 -e 4 -w 0 --budget 20"), 2); /* the first one tells how many there are time for */
    EXPECT(bench_number(p.out_text, "\"iterations\": ") >= 3);
}

TEST(what_takes_too_long_is_given_up)
{
    struct program p;
    EXPECT_EQ(bench_run(&p, "bench -b 64M -e 64M --iters 1000000 -T 1"), 1);
    EXPECT(strstr(p.err_text, "pccl bench: all_reduce of 67108864 B has not ended at rank 0 in 1 s (-T): aborted") != NULL);
}

TEST(cost_model_is_explained) /* the algorithm taken is the one that is measured, with the same prediction */
{
    struct program p;
    char line[512], *words[32] = {NULL};
    setenv("PCCL_ALGO", "allreduce:ring", 1);
    EXPECT_EQ(bench_run(&p, "bench all_reduce all_to_all sendrecv -n 3 -b 1M -e 4M --explain"), 0);
    EXPECT_STR(p.err_text, "");
    EXPECT(strstr(p.out_text, "tiny     direct       ring    halving       tree      chain      bruck   pairwise     forest  collective\n") != NULL);
    EXPECT_EQ(bench_count(p.out_text, "  all_reduce\n"), 2); /* 1M, 4M */
    EXPECT_EQ(bench_count(p.out_text, "  all_to_all\n"), 2);
    EXPECT_EQ(bench_count(p.out_text, "sendrecv"), 0);
    EXPECT_EQ(bench_words(p.out_text, "all_reduce", line, words), 14);
    if (words[13] != NULL) {
        EXPECT(strtod(words[5], NULL) > 0 && strchr(words[5], '*') == NULL); /* direct: it could, but may not */
        EXPECT(strtod(words[6], NULL) > 0 && strchr(words[6], '*') != NULL); /* ring */
        EXPECT(strcmp(words[11], "-") == 0 && strcmp(words[12], "-") == 0); /* pairwise: it cannot; forest: there are no trees */
    }
    unsetenv("PCCL_ALGO");
}

TEST(algorithm_and_prediction_are_the_librarys) /* a time without what it was measured of */
{
    struct program p;
    setenv("PCCL_ALGO", "allreduce:ring;broadcast:tree;alltoall:pairwise", 1);
    EXPECT_EQ(bench_right(&p, "all_reduce broadcast all_to_all sendrecv -n 3 -b 1M -e 1M --iters 2 -w 1 --limit 0"), 3 + 1 + 2);
    EXPECT_EQ(bench_count(p.out_text, "\"algorithm\": \"ring\""), 2); /* in place too */
    EXPECT_EQ(bench_count(p.out_text, "\"algorithm\": \"tree\""), 2);
    EXPECT_EQ(bench_count(p.out_text, "\"algorithm\": \"pairwise\""), 1);
    EXPECT_EQ(bench_count(p.out_text, "\"algorithm\": null, \"predicted_us\": null"), 1); /* messages */
    EXPECT(bench_number(p.out_text, "\"predicted_us\": ") > 0);
    setenv("PCCL_ALGO", "allreduce:direct", 1);
    EXPECT_EQ(bench_run(&p, "bench all_reduce sendrecv -n 3 -b 1M -e 1M --iters 2 -w 1 --limit 0"), 0);
    EXPECT_EQ(bench_count(p.out_text, " direct\n"), 1);
    EXPECT_EQ(bench_count(p.out_text, " -\n"), 1); /* messages */
    unsetenv("PCCL_ALGO");
}

TEST(messages_are_right_and_have_a_limit) /* what comes is the rank's before, not the own or the next one's */
{
    struct program p;
    EXPECT_EQ(bench_right(&p, "sendrecv -n 2 -b 4 -e 4M -f 1024 --iters 2 -w 1 --transport tcp"), 3); /* 4, 4K, 4M */
    EXPECT(bench_number(p.out_text, "\"limit_us\": ") > 0);
    EXPECT_EQ(bench_right(&p, "sendrecv -n 5 -b 100 -e 100000 -f 1000 -d all --iters 2 -w 1"), 2 * 15);
    EXPECT(bench_number(p.out_text, "\"limit_us\": ") > 0);
}

static bool read_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
    return true;
}

TEST(files_hold_the_figures_beside_the_table)
{
    static char text[1 << 16];
    struct program p;
    char folder[] = "/tmp/pccl-bench-XXXXXX", json[64], plot[64], words[300];
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(json, sizeof json, "%s/x.json", folder);
    snprintf(plot, sizeof plot, "%s/x.svg", folder);
    snprintf(words, sizeof words, "bench all_reduce all_to_all -b 64 -e 64K -f 32 --iters 2 --json %s --plot=%s", json, plot);
    EXPECT_EQ(bench_run(&p, words), 0);
    EXPECT_EQ(bench_count(p.out_text, " float "), 6); /* 64, 2K, 64K, of both */
    EXPECT(read_file(json, text, sizeof text) && bench_is_json(text));
    EXPECT_EQ(bench_count(text, "\"in_place\": "), 9);
    EXPECT(read_file(plot, text, sizeof text));
    EXPECT(strncmp(text, "<svg ", 5) == 0 && strstr(text, "</svg>\n") != NULL && strstr(text, "nan") == NULL);
    EXPECT_EQ(bench_count(text, "<path fill=\"none\" stroke=\"#"), 5); /* both, in place, and plain links of both */
    EXPECT_EQ(bench_count(text, "<line "), 5);                          /* the legend shows the line of each */
    EXPECT_EQ(bench_count(text, "stroke-dasharray=\"8 4\""), 2);        /* in place: the curve and its sample */
    EXPECT(strstr(text, ">bus bandwidth (GB/s)</text>") != NULL && strstr(text, "bytes)</text>") != NULL);
    EXPECT(strstr(text, ">all_reduce sum float, in place</text>") != NULL);
    unlink(json);
    unlink(plot);
    rmdir(folder);
}

TEST(data_goes_through_the_fabric_where_it_is_asked_to) /* and the limit says that it is another way's */
{
    struct program p;
    setenv("FI_PROVIDER", "tcp", 1);
    setenv("FI_TCP_IFACE", "lo", 1);
    int status = bench_run(&p, "bench all_reduce broadcast -n 2 -b 4 -e 64K -f 128 --iters 2 -w 1 --transport fabric");
    if (status != 0 && strstr(p.err_text, "PCCL_NET") != NULL) {
        TEST_SKIP("no libfabric here");
    }
    EXPECT_EQ(status, 0);
    EXPECT(strstr(p.out_text, "data over fabric, ") != NULL && strstr(p.out_text, "plain links (tcp: not of the fabric's own)") != NULL);
    EXPECT(strstr(p.out_text, "# Out of bounds values : 0 OK") != NULL);
    EXPECT_EQ(bench_right(&p, "all_reduce broadcast -n 3 -b 4 -e 64K -f 128 --iters 2 -w 1 --transport fabric"), 2 * 2 * 3);
    EXPECT(strstr(p.out_text, "\"transport\": \"fabric\"") != NULL);
}
