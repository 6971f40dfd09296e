/* test_bench.c - "pccl bench" as a user meets it: its words, its table, its files, what it says when a rank is killed.
 *
 * Its figures are read from --json, which is taken apart here: what is not JSON is a failure.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2, posix_openpt */
#include "tests/testing.h"

#include "pccl.h"
#include "tests/spawn.h"

enum { WORDS_MOST = 32, COLLECTIVES = 14, MESSAGES = 1, IN_PLACE_TOO = 9 };

/* Starts pccl with the words of one text, blanks between them; the words are written to `room`. */
static bool start_pccl(struct program *p, char room[512], const char *words)
{
    char path[PATH_MAX], name[] = "pccl", *args[WORDS_MOST] = {name};
    size_t count = 1;
    snprintf(room, 512, "%s", words);
    for (char *at = room; *at != 0 && count + 1 < WORDS_MOST;) {
        args[count++] = at;
        at += strcspn(at, " ");
        if (*at != 0) {
            *at++ = 0;
        }
    }
    args[count] = NULL;
    spawn_path("bin/pccl", path);
    return program_start(p, path, args);
}

static int run_pccl(struct program *p, const char *words)
{
    char room[512];
    return start_pccl(p, room, words) ? program_wait(p) : -1;
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) {
        count++;
    }
    return count;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *skip_value(const char *at);

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \n");
}

static const char *skip_string(const char *at)
{
    const char *end = *at == '"' ? strpbrk(at + 1, "\"\\") : NULL; /* ours need no escapes */
    return end != NULL && *end == '"' ? end + 1 : NULL;
}

/* What stands between braces or brackets; null: that is not JSON. */
static const char *skip_list(const char *at, char end, bool named)
{
    at = skip_space(at + 1);
    for (bool first = true; *at != end; first = false) {
        if (!first) {
            if (*at != ',') {
                return NULL;
            }
            at = skip_space(at + 1);
        }
        if (named) {
            at = skip_string(at);
            if (at == NULL || *at != ':') {
                return NULL;
            }
            at = skip_space(at + 1);
        }
        at = skip_value(at);
        if (at == NULL) {
            return NULL;
        }
        at = skip_space(at);
    }
    return at + 1;
}

static const char *skip_value(const char *at)
{
    static const char *const words[] = {"null", "true", "false"};
    char *end;
    for (int i = 0; i < 3; i++) {
        if (strncmp(at, words[i], strlen(words[i])) == 0) {
            return at + strlen(words[i]);
        }
    }
    if (*at == '{' || *at == '[') {
        return skip_list(at, *at == '{' ? '}' : ']', *at == '{');
    }
    if (*at == '"') {
        return skip_string(at);
    }
    (void)strtod(at, &end);
    return end != at && *at != 'n' && *at != 'i' ? end : NULL; /* nan and inf are no numbers there */
}

static bool is_json(const char *text)
{
    const char *end = skip_value(text);
    return end != NULL && *skip_space(end) == 0;
}

/* Runs it with --json -; expects status 0, sound JSON, so many results and nothing wrong. */
static void expect_right(struct program *p, const char *words, int results)
{
    char all[400];
    snprintf(all, sizeof all, "bench %s --json -", words);
    EXPECT_EQ(run_pccl(p, all), 0);
    EXPECT_STR(p->err_text, "");
    EXPECT(is_json(p->out_text));
    EXPECT_EQ(count_of(p->out_text, "\"in_place\": "), results);
    EXPECT_EQ(count_of(p->out_text, "\"wrong\": 0"), results + 1); /* and of all */
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

TEST(help_names_every_command_and_flag) /* one that nobody can find */
{
    static const char *const names[] = {
        "-n, --ranks", "-b, --minbytes", "-e, --maxbytes", "-f, --stepfactor", "-i, --stepbytes", "-o, --op", "-d, --datatype",
        "-r, --root", "--iters", "--budget", "-w, --warmup_iters", "-c, --check", "-a, --average", "-C, --report_cputime",
        "--transport", "--lanes", "--limit", "--kill-rank", "--rounds", "--json", "--plot", "-h, --help", "all_reduce",
        "broadcast", "reduce,", "all_gather", "reduce_scatter", "all_to_all", "gather,", "scatter,", "all_gather_v,", "reduce_scatter_v,", "all_to_all_v,", "gather_v,", "scatter_v,", "barrier,",
        "sendrecv,", "algorithm", "predicted",
    };
    struct program p, brief;
    EXPECT_EQ(run_pccl(&p, "--help"), 0);
    EXPECT(strstr(p.out_text, "bench ") != NULL && strstr(p.out_text, "-V, --version") != NULL);
    EXPECT_EQ(run_pccl(&brief, "-h"), 0);
    EXPECT_STR(brief.out_text, p.out_text);
    EXPECT_EQ(run_pccl(&p, "bench --help"), 0);
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
    EXPECT_EQ(run_pccl(&p, "--version"), 0);
    EXPECT_STR(p.out_text, want);
    EXPECT_EQ(run_pccl(&p, "-V"), 0);
    EXPECT_STR(p.out_text, want);
}

/* Status 2, nothing on standard output, one sentence that begins and goes on like this. */
static void expect_refused(const char *words, const char *begins, const char *holds)
{
    struct program p;
    EXPECT_EQ(run_pccl(&p, words), 2);
    EXPECT_STR(p.out_text, "");
    EXPECT_EQ(count_of(p.err_text, "\n"), 1);
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
        {"-w 0", "-w takes a number from 1 to 1000000, not '0'"},
        {"-c 2", "-c takes 0 or 1, not '2'"},
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
        {"--json=", "--json takes the path of a file, not ''"},
        {"--plot=", "--plot takes the path of a file, not ''"},
        {"--plot -", "--plot takes the path of a file, not '-'"},
        {"sendrecv all_reduce --kill-rank 0", "--kill-rank is for collectives, which fail alike at all: leave sendrecv out"},
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
    EXPECT_EQ(run_pccl(&p, "bench -e 4 --json /nonexistent/x"), 1);
    EXPECT_STR(p.out_text, "");
    EXPECT(strstr(p.err_text, "--json '/nonexistent/x' cannot be written: ") != NULL);
    EXPECT_EQ(run_pccl(&p, "bench -e 4 --plot /nonexistent/x"), 1);
    EXPECT(strstr(p.err_text, "--plot '/nonexistent/x' cannot be written: ") != NULL);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

TEST(all_collectives_are_right_over_each_transport) /* also where parts are uneven, and the root is not rank 0 */
{
    struct program p;
    int each = COLLECTIVES - 1 + MESSAGES + IN_PLACE_TOO, barrier = 1; /* which has one size */
    expect_right(&p, "all -n 2 -b 4 -e 64K -f 128 --iters 2 -w 1 --transport tcp", 3 * each + barrier);
    EXPECT(strstr(p.out_text, "\"transport\": \"tcp\"") != NULL && strstr(p.out_text, "\"limit\": \"tcp\"") != NULL);
    expect_right(&p, "all -n 3 -b 100 -e 100000 -f 1000 --iters 2 -w 1 -r 2 --transport tcp", 2 * each + barrier);
    expect_right(&p, "all -n 3 -b 100 -e 100000 -f 1000 --iters 2 -w 1 -r 1 --transport shm", 2 * each + barrier);
    EXPECT(strstr(p.out_text, "\"transport\": \"shm\"") != NULL && strstr(p.out_text, "\"limit\": \"shm\"") != NULL);
    EXPECT_EQ(count_of(p.out_text, "\"collective\": \"scatter\", \"type\": \"float\", \"op\": \"none\", \"root\": 1"), 4);
    EXPECT_EQ(count_of(p.out_text, "\"collective\": \"barrier\", \"type\": \"float\", \"op\": \"none\", \"root\": -1, \"size\": 0"), 1);
    expect_right(&p, "all -n 1 -b 64 -e 64 --iters 2", each + barrier);
    expect_right(&p, "all_gather_v reduce_scatter_v all_to_all_v gather_v scatter_v -n 5 -b 4 -e 400 -f 100 -d int16 -o max --iters 1 -w 1 -r 3",
                 2 * (5 + 3)); /* an odd one, whose count is as of equal parts */
}

TEST(all_types_and_operators_are_right) /* a sum that wraps, an average that rounds, a product */
{
    struct program p;
    expect_right(&p, "-n 3 -o all -d all -b 600 -e 600 --iters 1 -w 1", (12 * 5 + 8 * 3 + 4 + 5) * 2); /* of bits: for integers; factors: floats; bool has five */
    EXPECT_EQ(count_of(p.out_text, "\"type\": \"bfloat16\", \"op\": \"avg\""), 2);
    expect_right(&p, "broadcast -n 2 -o all -d all -b 600 -e 600 --iters 1 -w 1", 15 * 2); /* no operator */
}

TEST(wrong_elements_are_counted) /* a check that finds nothing */
{
    struct program p;
#ifdef PCCL_MUTANTS
    setenv("PCCL_MUTANT", "BENCH_WRONG", 1);
    EXPECT_EQ(run_pccl(&p, "bench all -n 2 -b 1K -e 1K --iters 1 -w 1 --json -"), 1);
    EXPECT_EQ(count_of(p.out_text, "\"wrong\": 1}"), COLLECTIVES + MESSAGES + IN_PLACE_TOO);
    EXPECT_EQ(run_pccl(&p, "bench -b 1K -e 1K --iters 1 -w 1"), 1);
    EXPECT(strstr(p.out_text, "# Out of bounds values : 2 FAILED") != NULL);
    EXPECT_EQ(run_pccl(&p, "bench -b 1K -e 1K --iters 1 -w 1 -c 0"), 0); /* nobody looks */
    unsetenv("PCCL_MUTANT");
#else
    memset(&p, 0, sizeof p);
    TEST_SKIP("mistakes can be switched on in a build with PCCL_MUTANTS only");
#endif
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static double number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at == NULL ? -1 : strtod(at + strlen(name), NULL);
}

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
        EXPECT_EQ(run_pccl(&p, words), 0);
        double us = number_after(p.out_text, "\"time_us\": "), algbw = number_after(p.out_text, "\"algbw\": ");
        EXPECT_EQ(number_after(p.out_text, "\"size\": "), 65536);
        EXPECT_EQ(number_after(p.out_text, "\"iterations\": "), 5);
        EXPECT(us > 0 && number_after(p.out_text, "\"min_us\": ") <= us && number_after(p.out_text, "\"max_us\": ") >= us);
        expect_near(algbw, 65536 / 1e3 / us);
        expect_near(number_after(p.out_text, "\"busbw\": "), algbw * row[i].factor);
        EXPECT(strstr(p.out_text, "\"limit_share\": null") != NULL && strstr(p.out_text, "\"limit\": null") != NULL);
    }
}

TEST(share_of_the_limit_is_of_plain_links_in_the_same_run)
{
    struct program p;
    expect_right(&p, "-n 2 -b 1M -e 1M --iters 3", 2);
    double us = number_after(p.out_text, "\"time_us\": "), limit = number_after(p.out_text, "\"limit_us\": ");
    EXPECT(limit > 0);
    expect_near(number_after(p.out_text, "\"limit_share\": "), limit / us);
}

TEST(table_has_the_columns_of_nccl_tests) /* what others' scripts read */
{
    struct program p;
    EXPECT_EQ(run_pccl(&p, "bench all_reduce reduce_scatter -b 4 -e 1K -f 16 --iters 2 -C 1"), 0);
    const char *titles = strstr(p.out_text, "collective");
    static const char *const columns[] = {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "limit", "cpu",
                                          "#wrong", "time", "algbw", "busbw", "limit", "cpu", "#wrong", "algorithm", "predicted"};
    for (size_t i = 0; titles != NULL && i < sizeof columns / sizeof columns[0]; i++) {
        titles = strstr(titles + 1, columns[i]);
    }
    EXPECT(titles != NULL);
    EXPECT_EQ(count_of(p.out_text, "\n     all_reduce "), 3); /* 4, 64, 1024 */
    EXPECT_EQ(count_of(p.out_text, "\n reduce_scatter "), 3);
    EXPECT_EQ(count_of(p.out_text, "N/A"), 3 * 4); /* not in place */
    EXPECT(strstr(p.out_text, "# Out of bounds values : 0 OK") != NULL);
    EXPECT_STR(p.err_text, "");
    EXPECT_EQ(run_pccl(&p, "bench -b 4 -e 12 -i 4 --iters 2 -c 0"), 0);
    EXPECT_EQ(count_of(p.out_text, "\n     all_reduce "), 3); /* 4, 8, 12 */
    EXPECT(strstr(p.out_text, "N/A") != NULL && strstr(p.out_text, "Out of bounds") == NULL);
}

TEST(algorithm_and_prediction_are_the_librarys) /* a time without what it was measured of */
{
    struct program p;
    setenv("PCCL_ALGO", "allreduce:ring;broadcast:tree;alltoall:pairwise", 1);
    expect_right(&p, "all_reduce broadcast all_to_all sendrecv -n 3 -b 1M -e 1M --iters 2 -w 1 --limit 0", 3 + 1 + 2);
    EXPECT_EQ(count_of(p.out_text, "\"algorithm\": \"ring\""), 2); /* in place too */
    EXPECT_EQ(count_of(p.out_text, "\"algorithm\": \"tree\""), 2);
    EXPECT_EQ(count_of(p.out_text, "\"algorithm\": \"pairwise\""), 1);
    EXPECT_EQ(count_of(p.out_text, "\"algorithm\": null, \"predicted_us\": null"), 1); /* messages */
    EXPECT(number_after(p.out_text, "\"predicted_us\": ") > 0);
    setenv("PCCL_ALGO", "allreduce:direct", 1);
    EXPECT_EQ(run_pccl(&p, "bench all_reduce sendrecv -n 3 -b 1M -e 1M --iters 2 -w 1 --limit 0"), 0);
    EXPECT_EQ(count_of(p.out_text, " direct "), 1);
    EXPECT_EQ(count_of(p.out_text, "         -          -\n"), 1);
    unsetenv("PCCL_ALGO");
}

TEST(messages_are_right_and_have_a_limit) /* what comes is the rank's before, not the own or the next one's */
{
    struct program p;
    expect_right(&p, "sendrecv -n 2 -b 4 -e 4M -f 1024 --iters 2 -w 1 --transport tcp", 3); /* 4, 4K, 4M */
    EXPECT(number_after(p.out_text, "\"limit_us\": ") > 0);
    expect_right(&p, "sendrecv -n 5 -b 100 -e 100000 -f 1000 -d all --iters 2 -w 1", 2 * 15);
    EXPECT(number_after(p.out_text, "\"limit_us\": ") > 0);
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
    EXPECT_EQ(run_pccl(&p, words), 0);
    EXPECT_EQ(count_of(p.out_text, "\n     all_reduce "), 3); /* 64, 2K, 64K */
    EXPECT(read_file(json, text, sizeof text) && is_json(text));
    EXPECT_EQ(count_of(text, "\"in_place\": "), 9);
    EXPECT(read_file(plot, text, sizeof text));
    EXPECT(strncmp(text, "<svg ", 5) == 0 && strstr(text, "</svg>\n") != NULL && strstr(text, "nan") == NULL);
    EXPECT_EQ(count_of(text, "stroke=\"#"), 5); /* both, in place, and plain links of both */
    EXPECT(strstr(text, ">all_reduce sum float, in place</text>") != NULL);
    unlink(json);
    unlink(plot);
    rmdir(folder);
}

/* ---- a rank that is killed --------------------------------------------------------------------------------------- */

TEST(killed_rank_is_survived_and_shown) /* for each collective, also when it was the root */
{
    struct program p;
    EXPECT_EQ(run_pccl(&p, "bench all -n 3 -b 256K -e 256K --kill-rank 0 --rounds 1 --json -"), 0);
    EXPECT(is_json(p.out_text));
    EXPECT_EQ(count_of(p.out_text, "\"killed\": 0"), COLLECTIVES);
    EXPECT_EQ(count_of(p.out_text, "\"wrong\": 0}"), COLLECTIVES);
    EXPECT(number_after(p.out_text, "\"retried_ms\": ") >= number_after(p.out_text, "\"error_ms\": "));
    EXPECT(number_after(p.out_text, "\"error_ms\": ") > 0 && number_after(p.out_text, "\"after_ms\": ") > 0);
    EXPECT_EQ(run_pccl(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 2 --transport tcp"), 0);
    EXPECT_EQ(count_of(p.out_text, "\n     all_reduce "), 4);
    EXPECT_EQ(count_of(p.out_text, " was told: "), 1);
    EXPECT(strstr(p.out_text, " was told: all-reduce: ") != NULL);
    EXPECT_EQ(run_pccl(&p, "bench -n 2 -b 64K -e 64K --kill-rank 1 --rounds 1"), 0); /* who is left is alone */
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
    EXPECT_EQ(run_pccl(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 3 --transport shm"), 0);
    EXPECT_EQ(count_of(p.out_text, ", median of 3 rounds:\n"), 2); /* for each size */
    expect_verdict(p.out_text, "#   errors ", ", at most ");
    EXPECT(strstr(p.out_text, ", at most 5: ") != NULL);
    const char *retry = strstr(p.out_text, "#   the retry took ");
    EXPECT(retry != NULL);
    if (retry != NULL) {
        double after = number_after(retry, ", at most 1.3 x ");
        EXPECT(after > 0 && number_after(retry, " + 10 = ") > 1.3 * after + 9.97 && number_after(retry, " + 10 = ") < 1.3 * after + 10.03);
        expect_verdict(retry, "#   the retry took ", " + 10 = ");
    }
    EXPECT_EQ(run_pccl(&p, "bench -n 3 -b 1M -e 4M --kill-rank 2 --rounds 2 --transport tcp --json -"), 0);
    EXPECT(is_json(p.out_text));
    EXPECT_EQ(count_of(p.out_text, "\"rounds\": 2, \"error_ms\": "), 2);
    EXPECT_EQ(count_of(p.out_text, "\"error_most_ms\": 5.000, \"error_met\": "), 2);
    const char *verdict = strstr(p.out_text, "\"verdicts\": [");
    EXPECT(verdict != NULL);
    if (verdict != NULL) {
        bool met = number_after(verdict, "\"retry_ms\": ") <= number_after(verdict, "\"retry_most_ms\": ");
        EXPECT(strncmp(strstr(verdict, "\"retry_met\": ") + strlen("\"retry_met\": "), met ? "true" : "false", 4) == 0);
    }
}

TEST(rank_that_fails_is_named) /* a benchmark that hangs, or shows half a table as if it were whole */
{
    struct program p;
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a sanitizer ends a program that asks for so much memory");
    }
    EXPECT_EQ(run_pccl(&p, "bench -b 1024G -e 1024G"), 1);
    EXPECT(strstr(p.err_text, "pccl bench: rank 0: no memory for a buffer of 1099511627776 bytes: lower -e") != NULL);
}

TEST(terminal_sees_how_far_it_is) /* and nothing else does */
{
    struct program p;
    char path[PATH_MAX], name[] = "pccl", bench[] = "bench", e[] = "-e", size[] = "16", *args[] = {name, bench, e, size, NULL},
         text[4096] = "";
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
    EXPECT_EQ(run_pccl(&p, "bench -e 16"), 0);
    EXPECT_STR(p.err_text, "");
}
