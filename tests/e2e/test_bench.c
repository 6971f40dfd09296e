/* test_bench.c - "pccl bench" as a user meets it: its words, its table, its files, what it says when a rank is killed.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2, posix_openpt */
#include "tests/testing.h"

#include <sched.h>

#include "kernels/kernels.h"
#include "pccl.h"
#include "wire/frame.h"
#include "tests/e2e/bench_said.h"
#include "tests/spawn.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

TEST(help_names_every_command_and_flag) /* one that nobody can find */
{
    static const char *const names[] = {
        "-n, --ranks", "-b, --minbytes", "-e, --maxbytes", "-f, --stepfactor", "-i, --stepbytes", "-o, --op", "-d, --datatype",
        "-r, --root", "--iters", "--budget", "-w, --warmup_iters", "-m, --agg_iters", "-N, --run_cycles", "-T, --timeout", "-z, --blocking", "-S, --report_timestamps", "--explain",
        "-c, --check", "-a, --average", "-C, --report_cputime",
        "--transport", "--lanes", "--bind", "--limit", "--kill-rank", "--rounds", "--wan", "--json", "--plot", "-h, --help", "all_reduce",
        "broadcast", "reduce,", "all_gather", "reduce_scatter", "all_to_all", "gather,", "scatter,", "all_gather_v,", "reduce_scatter_v,", "all_to_all_v,", "gather_v,", "scatter_v,", "barrier,",
        "sendrecv,", "algorithm", "predicted",
    };
    struct program p, brief;
    EXPECT_EQ(bench_run(&p, "--help"), 0);
    EXPECT(strstr(p.out_text, "bench ") != NULL && strstr(p.out_text, "-V, --version") != NULL);
    EXPECT_EQ(bench_run(&brief, "-h"), 0);
    EXPECT_STR(brief.out_text, p.out_text);
    EXPECT_EQ(bench_run(&p, "bench --help"), 0);
    EXPECT_STR(p.err_text, "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(p.out_text, names[i]) == NULL) {
            EXPECT_STR(names[i], "in the help");
        }
    }
    for (char *line = strtok(p.out_text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        EXPECT(strlen(line) <= 120);
    }
}

TEST(version_is_of_the_header)
{
    struct program p;
    char want[64];
    snprintf(want, sizeof want, "pccl %d.%d.%d\n", PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH);
    EXPECT_EQ(bench_run(&p, "--version"), 0);
    EXPECT(strncmp(p.out_text, want, strlen(want)) == 0);
    EXPECT_EQ(bench_run(&p, "-V"), 0);
    EXPECT(strncmp(p.out_text, want, strlen(want)) == 0);
}

TEST(version_comes_with_how_the_program_was_built) /* a report of a fault lacks the compiler, or the protocol that peers refuse */
{
    struct program p;
    char kernels[64], protocol[64], version[64];
    snprintf(kernels, sizeof kernels, "\nkernels:   %s on", kernels_get()->name);
    snprintf(protocol, sizeof protocol, "\nprotocol:  version %d\n", FRAME_VERSION);
    snprintf(version, sizeof version, "%s, ", __VERSION__);
    EXPECT_EQ(bench_run(&p, "--version"), 0);
    EXPECT(strstr(p.out_text, "\ncompiler:  ") != NULL && strstr(p.out_text, version) != NULL);
    EXPECT(strstr(p.out_text, kernels) != NULL && strstr(p.out_text, protocol) != NULL && strstr(p.out_text, "\nlibfabric: ") != NULL);
    EXPECT_EQ(bench_count(p.out_text, "\n"), 5);
}

/* Status 2, nothing on standard output, one sentence that begins and goes on like this. */
static void expect_refused(const char *words, const char *begins, const char *holds)
{
    struct program p;
    EXPECT_EQ(bench_run(&p, words), 2);
    EXPECT_STR(p.out_text, "");
    EXPECT_EQ(bench_count(p.err_text, "\n"), 1);
    EXPECT(strncmp(p.err_text, begins, strlen(begins)) == 0);
    if (strstr(p.err_text, holds) == NULL) {
        EXPECT_STR(p.err_text, holds);
    }
}

TEST(wrong_words_are_one_sentence_with_flag_value_and_remedy) /* a typo that measures something else */
{
    static const struct {
        const char *words, *holds;
    } bad[] = {
        {"-n 0", "-n takes a number from 1 to 64, not '0'"},
        {"--ranks=65", "--ranks takes a number from 1 to 64, not '65'"},
        {"-n +2", "not '+2'"},
        {"-n 2x", "not '2x'"},
        {"-n", "a value is missing after '-n', try --help"},
        {"-b 0", "-b takes a number of bytes up to 1024G, such as 4, 64K, 16M or 1G, not '0'"},
        {"-b 4KB", "not '4KB'"},
        {"-e 2048G", "not '2048G'"},
        {"-e -4", "not '-4'"},
        {"-b 2M -e 1M", "-b 2097152 is more than -e 1048576: raise -e"},
        {"-f 1", "-f takes a number from 2 to 1024, not '1'"},
        {"-i x", "-i takes a number of bytes"},
        {"-i 4 -f 2", "-i and -f exclude each other: leave one out"},
        {"-i 4 -e 1M", "more than 512 sizes from -b to -e: raise -i or -f"},
        {"-o mean", "-o takes sum, prod, min, max, avg, and, or, xor, mulsum or all, not 'mean'"},
        {"-o xor", "-o xor means nothing for -d float: operators of bits are for integer types"},
        {"-d f8e5m2", "-o sum means nothing for -d f8e5m2: numbers of 8 bits travel as bytes"},
        {"-d fp32", "float, double, bool, f8e4m3, f8e5m2 or all, not 'fp32'"},
        {"-r 2", "-r 2 is no rank of -n 2: give 0 to 1"},
        {"--iters 0", "--iters takes a number from 1 to 1000000, not '0'"},
        {"--budget 0", "--budget takes a number from 1 to 3600000, not '0'"},
        {"--iters 2 --budget 2", "--iters and --budget exclude each other: leave one out"},
        {"-w -1", "-w takes a number from 0 to 1000000, not '-1'"},
        {"-m 65", "-m takes a number from 1 to 64, not '65'"},
        {"-m 2 --kill-rank 0", "-m is for measuring, and --kill-rank has rounds of single operations: leave one out"},
        {"-N 0", "-N 0 would go on for ever, and never sum up: give a number from 1 to 1000"},
        {"-N 1001", "-N takes a number from 1 to 1000, not '1001'"},
        {"-N 2 --plot x", "--plot draws one cycle: leave -N out"},
        {"-T 0", "-T takes a number from 1 to 86400, not '0'"},
        {"-z 2", "-z takes 0 or 1, not '2'"},
        {"-z 0", "-z 0: each operation is waited for, since its time is what is measured; -m launches several at once"},
        {"-S 2", "-S takes 0 or 1, not '2'"},
        {"--explain=1", "--explain takes no value, but there is '1'"},
        {"--explain --json -", "--explain measures nothing: leave --json out"},
        {"-c x", "-c takes a number from 0 to 1000000, not 'x'"},
        {"-a 4", "-a takes a number from 0 to 3, not '4'"},
        {"-C yes", "-C takes 0 or 1, not 'yes'"},
        {"--transport ib", "--transport takes auto, tcp, shm or fabric, not 'ib'"},
        {"--lanes 65", "--lanes takes a number from 1 to 64, not '65'"},
        {"--limit 10", "--limit takes 0 or 1, not '10'"},
        {"--kill-rank 2", "--kill-rank 2 is no rank of -n 2: give 0 to 1"},
        {"--kill-rank 0 -n 1", "--kill-rank 0 with -n 1 leaves nobody: raise -n"},
        {"--rounds 2", "--rounds is for --kill-rank: give that, too"},
        {"--rounds 0 --kill-rank 0", "--rounds takes a number from 1 to 1000, not '0'"},
        {"--kill-rank 0 --plot x", "--plot draws bandwidth, of which --kill-rank measures none: leave one out"},
        {"--wan=", "--wan takes the path of a file, not ''"},
        {"--wan x --transport shm", "--wan has sockets between its hosts: leave --transport out"},
        {"--json=", "--json takes the path of a file, not ''"},
        {"--plot=", "--plot takes the path of a file, not ''"},
        {"--plot -", "--plot takes the path of a file, not '-'"},
        {"sendrecv all_reduce --kill-rank 0", "--kill-rank is for collectives, which fail on all ranks: leave sendrecv out"},
        {"-g 2", "-g is for threads and GPUs, of which there are none here: say with -n how many processes"},
        {"--rank 2", "unknown flag '--rank', try --help"},
        {"-x", "unknown flag '-x', try --help"},
        {"allreduce", "there is no collective 'allreduce': give all_reduce"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "bench %s", bad[i].words);
        expect_refused(words, "pccl bench: ", bad[i].holds);
    }
    expect_refused("", "pccl: ", "a command is missing, try --help");
    expect_refused("bnech", "pccl: ", "unknown command 'bnech', try --help");
    expect_refused("--bench", "pccl: ", "unknown option '--bench', try --help");
}

TEST(files_that_cannot_be_written_are_said_before_anything_is_measured)
{
    struct program p;
    EXPECT_EQ(bench_run(&p, "bench -e 4 --json /nonexistent/x"), 1);
    EXPECT_STR(p.out_text, "");
    EXPECT(strstr(p.err_text, "--json '/nonexistent/x' cannot be written: ") != NULL);
    EXPECT_EQ(bench_run(&p, "bench -e 4 --plot /nonexistent/x"), 1);
    EXPECT(strstr(p.err_text, "--plot '/nonexistent/x' cannot be written: ") != NULL);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

TEST(all_collectives_are_right_over_each_transport) /* also where parts are uneven, and the root is not rank 0 */
{
    struct program p;
    int each = COLLECTIVES - 1 + MESSAGES + IN_PLACE_TOO, barrier = 1; /* which has one size */
    EXPECT_EQ(bench_right(&p, "all -n 2 -b 4 -e 64K -f 128 --iters 2 -w 1 --transport tcp"), 3 * each + barrier);
    EXPECT(strstr(p.out_text, "\"transport\": \"tcp\"") != NULL && strstr(p.out_text, "\"limit\": \"tcp\"") != NULL);
    EXPECT_EQ(bench_right(&p, "all -n 3 -b 100 -e 100000 -f 1000 --iters 2 -w 1 -r 2 --transport tcp"), 2 * each + barrier);
    EXPECT_EQ(bench_right(&p, "all -n 3 -b 100 -e 100000 -f 1000 --iters 2 -w 1 -r 1 --transport shm"), 2 * each + barrier);
    EXPECT(strstr(p.out_text, "\"transport\": \"shm\"") != NULL && strstr(p.out_text, "\"limit\": \"shm\"") != NULL);
    EXPECT_EQ(bench_count(p.out_text, "\"collective\": \"scatter\", \"type\": \"float\", \"op\": \"none\", \"root\": 1"), 4);
    EXPECT_EQ(bench_count(p.out_text, "\"collective\": \"barrier\", \"type\": \"float\", \"op\": \"none\", \"root\": -1, \"size\": 0"), 1);
    EXPECT_EQ(bench_right(&p, "all -n 1 -b 64 -e 64 --iters 2"), each + barrier);
    EXPECT_EQ(bench_right(&p, "all_gather_v reduce_scatter_v all_to_all_v gather_v scatter_v -n 5 -b 4 -e 400 -f 100 -d int16 -o max --iters 1 -w 1 -r 3"), 2 * (5 + 3)); /* an odd one, whose count is as of equal parts */
}

TEST(ranks_keep_to_cores_of_their_own_where_there_are_enough)
{
    struct program p;
    cpu_set_t set;
    char words[100], told[100];
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int cores = CPU_COUNT(&set);
    EXPECT_EQ(bench_right(&p, "-n 1 -b 64 -e 64 --iters 2"), 2);
    EXPECT(strstr(p.out_text, "\"bound\": true") != NULL);
    EXPECT_EQ(bench_right(&p, "-n 1 -b 64 -e 64 --iters 2 --bind 0"), 2);
    EXPECT(strstr(p.out_text, "\"bound\": false") != NULL);
    snprintf(words, sizeof words, "bench -n %d --bind 1", cores + 1);
    snprintf(told, sizeof told, "--bind 1 with -n %d needs as many cores, and there are %d", cores + 1, cores);
    EXPECT_EQ(bench_run(&p, words), 2);
    EXPECT(strstr(p.err_text, told) != NULL || cores >= 16); /* so many ranks are refused for being so many */
}

TEST(all_types_and_operators_are_right) /* a sum that wraps, an average that rounds, a product */
{
    struct program p;
    EXPECT_EQ(bench_right(&p, "-n 3 -o all -d all -b 600 -e 600 --iters 1 -w 1"), (12 * 5 + 8 * 3 + 4 + 5) * 2); /* of bits: for integers; factors: floats; bool has five */
    EXPECT_EQ(bench_count(p.out_text, "\"type\": \"bfloat16\", \"op\": \"avg\""), 2);
    EXPECT_EQ(bench_right(&p, "broadcast -n 2 -o all -d all -b 600 -e 600 --iters 1 -w 1"), 15 * 2); /* no operator */
}

TEST(wrong_elements_are_counted) /* a check that finds nothing */
{
    struct program p;
#ifdef PCCL_MUTANTS
    setenv("PCCL_MUTANT", "BENCH_WRONG", 1);
    EXPECT_EQ(bench_run(&p, "bench all -n 2 -b 1K -e 1K --iters 1 -w 1 --json -"), 1);
    EXPECT_EQ(bench_count(p.out_text, "\"wrong\": 1}"), COLLECTIVES + MESSAGES + IN_PLACE_TOO);
    EXPECT_EQ(bench_run(&p, "bench -b 1K -e 1K --iters 1 -w 1"), 1);
    EXPECT(strstr(p.out_text, "# Out of bounds values : 2 FAILED") != NULL);
    EXPECT_EQ(bench_run(&p, "bench -b 1K -e 1K --iters 1 -w 1 -c 0"), 0); /* nobody looks */
    unsetenv("PCCL_MUTANT");
#else
    memset(&p, 0, sizeof p);
    TEST_SKIP("mistakes can be switched on in a build with PCCL_MUTANTS only");
#endif
}

/* ---- a rank that is killed --------------------------------------------------------------------------------------- */

TEST(killed_rank_is_survived_and_shown) /* for each collective, also when it was the root */
{
    struct program p;
    EXPECT_EQ(bench_run(&p, "bench all -n 3 -b 256K -e 256K --kill-rank 0 --rounds 1 --json -"), 0);
    EXPECT(bench_is_json(p.out_text));
    EXPECT_EQ(bench_count(p.out_text, "\"killed\": 0"), COLLECTIVES);
    EXPECT_EQ(bench_count(p.out_text, "\"wrong\": 0}"), COLLECTIVES);
    EXPECT(bench_number(p.out_text, "\"retried_ms\": ") >= bench_number(p.out_text, "\"error_ms\": "));
    EXPECT(bench_number(p.out_text, "\"error_ms\": ") > 0 && bench_number(p.out_text, "\"after_ms\": ") > 0);
    EXPECT_EQ(bench_run(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 2 --transport tcp"), 0);
    EXPECT_EQ(bench_count(p.out_text, "\n     all_reduce "), 4);
    EXPECT_EQ(bench_count(p.out_text, "# error at rank "), 1);
    EXPECT(strstr(p.out_text, ": all-reduce: ") != NULL);
    EXPECT_EQ(bench_run(&p, "bench -n 2 -b 64K -e 64K --kill-rank 1 --rounds 1"), 0); /* who is left is alone */
    EXPECT_EQ(bench_run(&p, "bench broadcast -n 3 -r 2 -b 256K -e 256K --kill-rank 0 --rounds 1 --json -"), 0); /* the root is rank 1 then */
    EXPECT_EQ(bench_count(p.out_text, "\"wrong\": 0}"), 1);
}

/* A line of the summary has these words, numbers in place of '%', and the verdict that follows from the first and the last of them. */
static void expect_verdict(const char *text, const char *begin, const char *middle)
{
    const char *at = strstr(text, begin), *most = at != NULL ? strstr(at, middle) : NULL, *end = most != NULL ? strchr(most, '\n') : NULL;
    EXPECT(end != NULL);
    if (end != NULL) {
        double value = strtod(at + strlen(begin), NULL), limit = strtod(most + strlen(middle), NULL);
        const char *word = value <= limit ? ": met\n" : ": missed\n";
        EXPECT(strncmp(end + 1 - strlen(word), word, strlen(word)) == 0);
    }
}

TEST(recovery_is_judged) /* as what is wanted, not as whoever reads the table likes */
{
    struct program p;
    EXPECT_EQ(bench_run(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 3 --transport shm"), 0);
    EXPECT_EQ(bench_count(p.out_text, ", median of 3 rounds:\n"), 2); /* for each size */
    expect_verdict(p.out_text, "#   errors ", ", at most ");
    EXPECT(strstr(p.out_text, ", at most 5: ") != NULL);
    const char *retry = strstr(p.out_text, "#   the retry took ");
    EXPECT(retry != NULL);
    if (retry != NULL) {
        double after = bench_number(retry, ", at most 1.3 x ");
        EXPECT(after > 0 && bench_number(retry, " + 10 = ") > 1.3 * after + 9.97 && bench_number(retry, " + 10 = ") < 1.3 * after + 10.03);
        expect_verdict(retry, "#   the retry took ", " + 10 = ");
    }
    EXPECT_EQ(bench_run(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 2 --transport tcp --json -"), 0);
    EXPECT(bench_is_json(p.out_text));
    EXPECT_EQ(bench_count(p.out_text, "\"rounds\": 2, \"error_ms\": "), 2);
    EXPECT_EQ(bench_count(p.out_text, "\"error_most_ms\": 5.000, \"error_met\": "), 2);
    const char *verdict = strstr(p.out_text, "\"verdicts\": [");
    EXPECT(verdict != NULL);
    if (verdict != NULL) {
        bool met = bench_number(verdict, "\"retry_ms\": ") <= bench_number(verdict, "\"retry_most_ms\": ");
        EXPECT(strncmp(strstr(verdict, "\"retry_met\": ") + strlen("\"retry_met\": "), met ? "true" : "false", 4) == 0);
    }
}

TEST(rank_that_fails_is_named) /* a benchmark that hangs, or shows half a table as if it were whole */
{
    struct program p;
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a sanitizer ends a program that asks for so much memory");
    }
    EXPECT_EQ(bench_run(&p, "bench -b 1024G -e 1024G"), 1);
    EXPECT(strstr(p.err_text, "pccl bench: rank 0: no memory for a buffer of 1099511627776 bytes: lower -e") != NULL);
}

TEST(terminal_sees_how_far_it_is) /* and nothing else does */
{
    struct program p;
    char path[PATH_MAX], name[] = "pccl", bench[] = "bench", e[] = "-e", size[] = "16", iters[] = "--iters", few[] = "3",
         *args[] = {name, bench, e, size, iters, few, NULL}, text[4096] = "";
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        TEST_SKIP("there are no terminals here");
    }
    int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC), status = -1;
    spawn_path("bin/pccl", path);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(slave, 2);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
        execv(path, args);
        _exit(127);
    }
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT(read(terminal, text, sizeof text - 1) > 0);
    EXPECT(strstr(text, "# 1 of 2: all_reduce of 4 B ...") != NULL && strstr(text, "# 2 of 2: ") != NULL);
    close(terminal);
    close(slave);
    EXPECT_EQ(bench_run(&p, "bench -e 16 --iters 3"), 0);
    EXPECT_STR(p.err_text, "");
}
