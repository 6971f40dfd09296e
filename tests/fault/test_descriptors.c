/* test_descriptors.c - processes that have no file descriptor left: every call of theirs ends and says so, and none of the others waits.
 *
 * One idea: the process opens /dev/null until the system refuses, and closes as many as it shall have.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/peer_calls.h"

enum { LIMIT = 512, LARGE = 1 << 18 /* floats */ };

static int filler[LIMIT], fillers;

/* argument: int, the descriptors that it may still open; -1: as many as it likes. */
static void leave_descriptors(struct peer *self, const void *argument, struct reply *reply)
{
    int left = *(const int *)argument;
    struct rlimit limit;
    (void)self;
    while (fillers > 0) {
        close(filler[--fillers]);
    }
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = left < 0 ? limit.rlim_max : LIMIT;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (left >= 0 && fillers < LIMIT && (filler[fillers] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        fillers++;
    }
    while (left > 0) {
        close(filler[--fillers]);
        left--;
    }
    reply->result = pcclSuccess;
}

/* Large enough for data connections. */
static struct reduce_job large(uint64_t tag)
{
    return (struct reduce_job){.count = LARGE, .tag = tag, .members = 3};
}

/* The control link takes the only descriptor there is; small operations go by it. */
TEST(without_descriptors_for_data_a_call_is_an_error_at_all_and_the_next_goes_on_when_there_are) /* all would wait for ever */
{
    struct processes all;
    struct processes_options o = {.count = 2, .failures = &test_failures, .pool = 1, .stall_ms = 1000, .dead_ms = "1000"};
    struct reply reply[PROCESSES_MOST];
    int one = 1, two = 2, any = -1;
    if (!processes_start(&all, &o)) {
        return;
    }
    EXPECT_EQ(process_do(&all, 0, peer_join, &one, sizeof one).result, pcclSuccess);
    process_do(&all, 0, leave_descriptors, &one, sizeof one);
    process_send(&all, 1, peer_join, &two, sizeof two);
    EXPECT_EQ(process_do(&all, 0, peer_update_until, &two, sizeof two).result, pcclSuccess);
    EXPECT_EQ(process_take(&all, 1).result, pcclSuccess);
    struct reduce_job job = {.count = 10, .tag = 1, .members = 3};
    processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[1].result, pcclSuccess);
    job = large(2);
    processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCauseLinkLost);
        EXPECT(strstr(reply[i].text, "the link cannot be made") != NULL);
    }
    process_do(&all, 0, leave_descriptors, &any, sizeof any);
    do { /* an attempt that had begun before may fail once more */
        processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
        EXPECT_EQ(reply[0].result, reply[1].result);
    } while (reply[0].result == pcclRankConnectionLost && reply[1].result == pcclRankConnectionLost);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    processes_stop(&all);
}

/* With the engine running: only the connection to the master lacks a descriptor. */
static void join_another_world(struct peer *self, const void *argument, struct reply *reply)
{
    pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = self->master, .world = "another"};
    pcclComm_t *comm = NULL;
    (void)argument;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 300), pcclSuccess);
    peer_result(reply, pcclConnect(comm));
    int any = -1;
    struct reply ignored;
    leave_descriptors(self, &any, &ignored);
    EXPECT_EQ(pcclConnect(comm), pcclSuccess); /* as the text advises */
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(a_connect_without_descriptors_says_so_and_asks_for_no_firewall)
{
    struct processes all;
    struct processes_options o = {.count = 1, .failures = &test_failures, .pool = 1};
    int one = 1, none = 0;
    if (!processes_start(&all, &o)) {
        return;
    }
    EXPECT_EQ(process_do(&all, 0, peer_join, &one, sizeof one).result, pcclSuccess);
    process_do(&all, 0, leave_descriptors, &none, sizeof none);
    struct reply reply = process_do(&all, 0, join_another_world, NULL, 0);
    EXPECT_EQ(reply.result, pcclMasterConnectionFailed);
    EXPECT_EQ(reply.cause, pcclCauseMasterUnreachable);
    EXPECT(strstr(reply.text, "Too many open files") != NULL && strstr(reply.text, "ulimit -n") != NULL);
    EXPECT(strstr(reply.text, "firewall") == NULL);
    processes_stop(&all);
}

/* In a child that has never connected: one attempt with so many descriptors; its text, empty after a success, goes into the pipe. */
static int connect_with(struct peer *self, int left, int out)
{
    struct reply reply = {0};
    pcclCommCreateParams_t params = {.master_address = self->master};
    pcclComm_t *comm = NULL;
    bool made = pcclInit() == pcclSuccess && pcclCreateCommunicator(&params, &comm) == pcclSuccess &&
                pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 300) == pcclSuccess;
    leave_descriptors(self, &left, &reply);
    bool good = made && pcclConnect(comm) == pcclSuccess;
    const char *text = good ? "" : pcclGetLastError();
    return made && write(out, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 1;
}

/* value[0]: the fewest descriptors with which it connects; value[1]: attempts whose text does not name the limit. */
static void connect_with_each(struct peer *self, const void *argument, struct reply *reply)
{
    char text[600];
    ssize_t length = 1;
    (void)argument;
    for (int left = 0; left < 64 && length > 0; left++) {
        int ends[2], status = -1;
        EXPECT_EQ(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            _exit(connect_with(self, left, ends[1]));
        }
        close(ends[1]);
        length = read(ends[0], text, sizeof text - 1);
        close(ends[0]);
        EXPECT(waitpid(child, &status, 0) == child && status == 0 && length >= 0);
        text[length > 0 ? length : 0] = 0;
        reply->value[0] = left;
        if (length > 0 && strstr(text, "ulimit -n") == NULL) {
            reply->value[1]++;
            fprintf(stderr, "# with %d descriptors: %s\n", left, text);
        }
    }
    reply->result = pcclSuccess;
}

TEST(a_connect_that_lacks_descriptors_names_the_limit_wherever_it_fails) /* it said "no memory or no descriptors" */
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a sanitizer lets no forked child start threads");
    }
    struct processes all;
    struct processes_options o = {.count = 1, .failures = &test_failures, .pool = 1};
    if (!processes_start(&all, &o)) {
        return;
    }
    struct reply reply = process_do(&all, 0, connect_with_each, NULL, 0);
    EXPECT(reply.value[0] > 8 && reply.value[0] < 63);
    EXPECT_EQ(reply.value[1], 0);
    processes_stop(&all);
}
