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

/* Runs the child; what it wrote to both streams together lies in `text`. */
static int run_child(const char *level, bool callback, char *text, size_t size)
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
        _exit(child(level, callback));
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

static bool matches(const char *text, const char *pattern)
{
    regex_t re;
    bool found = regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) == 0 && regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return found;
}

static char text[1 << 18];
static const char any_line[] = "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\.[0-9]{3}Z pccl\\[[0-9]+\\] (trace|debug|info|warn|error) +.";

TEST(nothing_is_printed_unless_the_log_is_switched_on) /* a library that writes to the streams of its host */
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
