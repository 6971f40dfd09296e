/* test_log.c - what a process prints: nothing, unless its log is switched on; then lines that say when, who and what.
 *
 * Each case runs in a child of its own whose two output streams are pipes.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <regex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

/* A run of two peers and its end: what the library does in a healthy process. */
static void healthy_run(struct cluster_peer *p, void *context)
{
    float value[4] = {1, 2, 3, 4};
    pcclReduceDescriptor_t desc = cluster_floats(4, 1);
    (void)context;
    EXPECT_EQ(pcclAllReduce(value, value, &desc, p->comm, NULL), pcclSuccess);
    EXPECT_EQ((int)value[3], 8);
}

/* Without any setting: the second launches when the first has complained on standard error, which is a pipe here. */
static void late_run(struct cluster_peer *p, void *context)
{
    const int *complaints = context;
    char line[600] = "";
    float value[4] = {1, 2, 3, 4};
    pcclReduceDescriptor_t desc = cluster_floats(4, 1);
    if (p->index == 1) {
        for (size_t used = 0; used + 1 < sizeof line && strchr(line, '\n') == NULL && read(*complaints, line + used, 1) == 1; used++) {
        }
        fputs(line, stdout);
    }
    EXPECT_EQ(pcclAllReduce(value, value, &desc, p->comm, NULL), pcclSuccess);
    EXPECT_EQ((int)value[3], 8);
}

static int child_late(void)
{
    static struct cluster c;
    int complaints[2];
    unsetenv("PCCL_LOG_LEVEL");
    EXPECT_EQ(pipe(complaints), 0);
    dup2(complaints[1], STDERR_FILENO);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, late_run, &complaints[0]);
    cluster_stop(&c);
    close(complaints[1]);
    close(STDERR_FILENO);
    char rest;
    EXPECT_EQ(read(complaints[0], &rest, 1), 0); /* nothing but that one line */
    fflush(stdout);
    return test_failures;
}

static void quiet(pcclLogLevel_t level, const char *message, void *user)
{
    (void)level;
    (void)message;
    (void)user;
}

/* In the child: the run, under a level (null: none) and with or without a callback of its own. */
static int child(const char *level, bool callback)
{
    static struct cluster c;
    unsetenv("PCCL_LOG_LEVEL");
    if (level != NULL) {
        setenv("PCCL_LOG_LEVEL", level, 1);
    }
    if (callback) {
        pcclSetLogCallback(quiet, pcclLogTrace, NULL);
    }
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, healthy_run, NULL);
    cluster_stop(&c);
    return test_failures;
}

/* Runs the child; what it wrote to both streams together lies in `text`.  `late`: child_late in its place. */
static int run_child_of(const char *level, bool callback, bool late, char *text, size_t size)
{
    int fds[2], status = -1;
    size_t used = 0;
    EXPECT_EQ(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        _exit(late ? child_late() : child(level, callback));
    }
    close(fds[1]);
    for (ssize_t n; used + 1 < size && (n = read(fds[0], text + used, size - 1 - used)) > 0;) {
        used += (size_t)n;
    }
    text[used] = 0;
    close(fds[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_child(const char *level, bool callback, char *text, size_t size)
{
    return run_child_of(level, callback, false, text, size);
}

static bool matches(const char *text, const char *pattern)
{
    regex_t re;
    bool found = regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) == 0 && regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return found;
}

static char text[1 << 18];
static const char any_line[] = "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\.[0-9]{3}Z pccl\\[[0-9]+\\] (trace|debug|info|warn|error) +.";

TEST(a_call_that_waits_for_a_program_says_so_without_any_setting) /* a first user believes that it hangs */
{
    EXPECT_EQ(run_child_of(NULL, false, true, text, sizeof text), 0);
    EXPECT(matches(text, any_line));
    EXPECT(matches(text, " warn +reduce waits for peer .* to launch tag 1; .*PCCL_LOG_LEVEL=info"));
}

TEST(nothing_is_printed_by_calls_that_go_well) /* a library that writes to the streams of its host */
{
    static const char *const silent[] = {NULL, "", "none", "NONE"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        EXPECT_EQ(run_child(silent[i], false, text, sizeof text), 0);
        EXPECT_STR(text, "");
    }
}

TEST(the_environment_switches_the_log_on_without_code) /* PCCL_LOG_LEVEL ignored, or lines without date and process */
{
    EXPECT_EQ(run_child("DEBUG", false, text, sizeof text), 0);
    EXPECT(matches(text, any_line));
    size_t lines = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        EXPECT(matches(line, any_line));
        lines++;
    }
    EXPECT(lines > 2);
}

TEST(a_callback_goes_before_the_environment) /* lines twice, or not where the program wants them */
{
    EXPECT_EQ(run_child("trace", true, text, sizeof text), 0);
    EXPECT_STR(text, "");
}

TEST(a_level_that_does_not_exist_is_named_once) /* a typo that is taken for silence */
{
    EXPECT_EQ(run_child("verbose", false, text, sizeof text), 0);
    EXPECT(matches(text, any_line));
    const char *first = strstr(text, "PCCL_LOG_LEVEL is 'verbose'");
    EXPECT(first != NULL && strstr(first + 1, "PCCL_LOG_LEVEL") == NULL);
}
