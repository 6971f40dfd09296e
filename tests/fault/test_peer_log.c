/* test_peer_log.c - what a peer's log says of the run at level info: who came, who went and why, one line for each event.
 *
 * The library's own sink is used: PCCL_LOG_LEVEL and standard error, which is a file that the test reads at the end.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <regex.h>
#include <unistd.h>

#include "tests/fault/peer_calls.h"

enum { PEERS = 3, VICTIM = 2, NEWCOMER = 3, LOG_BYTES = 1 << 16 };

#define WHO "peer 1\\.[0-9]+"
#define WHERE "[0-9.]+:[0-9]+"

static char text[LOG_BYTES];

/* argument: a descriptor.  From here on this process logs, and into that file. */
static void log_into(struct peer *self, const void *argument, struct reply *reply)
{
    (void)self;
    (void)reply;
    setenv("PCCL_LOG_LEVEL", "info", 1);
    EXPECT(dup2(*(const int *)argument, STDERR_FILENO) == STDERR_FILENO);
}

/* Processes that have not called the library yet, the log of one of them in the file returned; null: they cannot be had. */
static FILE *start(struct processes *all, const struct processes_options *options, int logged)
{
    FILE *file = tmpfile(); /* before the processes are made: they have the descriptor, too */
    EXPECT(file != NULL);
    if (file == NULL || !processes_start(all, options)) {
        return NULL;
    }
    int fd = fileno(file);
    process_do(all, logged, log_into, &fd, sizeof fd);
    return file;
}

/* All have ended: the log is complete. */
static void read_log(FILE *file)
{
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    fclose(file);
}

/* Each event has one line; "..." of its date, process and level goes before. */
static void expect_lines(uint32_t want, const char *pattern)
{
    regex_t re;
    uint32_t count = 0;
    char whole[512], line[512];
    snprintf(whole, sizeof whole, "^[-0-9]+ [0-9:.]+Z pccl\\[[0-9]+\\] info +%s$", pattern);
    if (regcomp(&re, whole, REG_EXTENDED | REG_NOSUB) != 0) {
        EXPECT(!"a pattern");
        return;
    }
    for (const char *from = text; *from != 0; from += strcspn(from, "\n") + (strchr(from, '\n') != NULL)) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(from, "\n"), from);
        count += regexec(&re, line, 0, NULL, 0) == 0;
    }
    regfree(&re);
    EXPECT_EQ(count, want);
    if (count != want) {
        fprintf(stderr, "%u lines like '%s' in:\n%s", count, pattern, text);
    }
}

TEST(a_survivors_log_says_who_came_who_died_and_why) /* "installed view (4294967300, 4294967301)", or not a word */
{
    struct processes all;
    struct processes_options o = {.count = PEERS, .failures = &test_failures, .pool = 1};
    int three = PEERS, two = 2;
    FILE *log = start(&all, &o, 0);
    if (log == NULL) {
        return;
    }
    processes_do(&all, 7, peer_join, &three, sizeof three, NULL);
    int64_t victim = process_do(&all, VICTIM, peer_look, NULL, 0).value[6];
    struct reduce_job job = {.count = 4 << 20, .tag = 2, .members = 3, .announce = true};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 3, peer_reduce, &job, sizeof job);
    EXPECT(process_note(&all, 0) == 3 && process_note(&all, 1) == 3); /* it runs: launched by both */
    process_signal(&all, VICTIM, SIGKILL);
    processes_take(&all, 3, reply);
    EXPECT_EQ(reply[0].result, pcclRankConnectionLost);
    EXPECT_EQ(processes_add(&all, 0, NULL), NEWCOMER);
    process_send(&all, NEWCOMER, peer_join, &three, sizeof three);
    processes_send(&all, 3, peer_update_until, &three, sizeof three);
    processes_take(&all, 3 | 1u << NEWCOMER, NULL);
    int64_t newcomer = process_do(&all, NEWCOMER, peer_look, NULL, 0).value[6];
    process_do(&all, NEWCOMER, peer_destroy, NULL, 0);
    processes_do(&all, 3, peer_update_until, &two, sizeof two, NULL);
    processes_stop(&all);
    read_log(log);
    char died[300], ended[300], joined[300], left[300];
    snprintf(died, sizeof died, WHO ": view [0-9]+: rank [0-2] \\(peer 1\\.%u at " WHERE "\\), group 0: its connections closed; 2 members",
             (unsigned)victim);
    snprintf(ended, sizeof ended, WHO ": view [0-9]+ is being ended: (a peer died|a link between two living peers broke), rank [0-2] \\(peer 1\\.%u at " WHERE "\\)", (unsigned)victim);
    snprintf(joined, sizeof joined, WHO ": view [0-9]+: peer 1\\.%u \\(" WHERE "\\) joined; 3 members", (unsigned)newcomer);
    snprintf(left, sizeof left, WHO ": view [0-9]+: rank [0-2] \\(peer 1\\.%u at " WHERE "\\), group 0: it left the run; 2 members",
             (unsigned)newcomer);
    expect_lines(1, WHO ": registered for group 0, waits until the members update");
    expect_lines(1, "connected to the master at 127\\.0\\.0\\.1:[0-9]+ as " WHO " of group 0, one of [123], view [0-9]+");
    expect_lines(1, ended);
    expect_lines(1, died);
    expect_lines(1, joined);
    expect_lines(1, left);
    expect_lines(1, WHO ": out of the run: the communicator was destroyed");
    EXPECT(strstr(text, " warn ") == NULL && strstr(text, " debug ") == NULL);
    EXPECT(strstr(text, "429496") == NULL); /* an id as one number */
}

TEST(an_excluded_peers_log_says_why) /* only the error that its program may have swallowed */
{
    struct processes all;
    struct processes_options o = {.count = 2, .failures = &test_failures, .pool = 1, .stall_ms = 600, .dead_ms = "600"};
    int two = 2, one = 1;
    FILE *log = start(&all, &o, 1);
    if (log == NULL) {
        return;
    }
    processes_do(&all, 3, peer_join, &two, sizeof two, NULL);
    process_signal(&all, 1, SIGSTOP);
    process_do(&all, 0, peer_update_until, &one, sizeof one);
    process_signal(&all, 1, SIGCONT);
    EXPECT_EQ(process_do(&all, 1, peer_update, NULL, 0).result, pcclMasterConnectionFailed);
    processes_stop(&all);
    read_log(log);
    expect_lines(1, WHO ": excluded from the run: .+"); /* who tells it first, the master or the other, is open */
}

TEST(a_peers_log_says_that_the_master_is_gone) /* an update that fails after ten seconds, and nothing before */
{
    struct processes all;
    struct processes_options o = {.count = 2, .failures = &test_failures, .pool = 1, .loss_ms = 300};
    int two = 2;
    FILE *log = start(&all, &o, 0);
    if (log == NULL) {
        return;
    }
    processes_do(&all, 3, peer_join, &two, sizeof two, NULL);
    EXPECT_EQ(program_end(&all.master, SIGKILL), 128 + SIGKILL);
    all.master.status = 0; /* it was not asked to end well */
    EXPECT_EQ(process_do(&all, 0, peer_update, NULL, 0).result, pcclMasterConnectionFailed);
    processes_stop(&all);
    read_log(log);
    expect_lines(1, WHO ": the master is out of reach: .*: operations go on, it is dialled again");
    expect_lines(1, WHO ": out of the run: the master was gone for too long");
}
