/* test_bulk.c - many operations with retry at peers that pass different windows, while peers die.
 *
 * The one with the large window launches far ahead of the others, so each loss leaves them errors of calls they have not made yet.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { OPS = 64, COUNT = 50000, VICTIMS = 2, SETS = 4 };

struct bulk_job {
    int window[PROCESSES_MOST];
    int victim[VICTIMS];      /* index; -1: nobody */
    uint64_t after[VICTIMS];  /* bytes it has moved when it dies */
    unsigned members[SETS];   /* at last, and all that may be before */
};

/* Whose sum the result is, 0: nobody's. */
static unsigned result_of(const struct bulk_job *b, const float *y, int k)
{
    for (int set = 0; set < SETS; set++) {
        unsigned members = b->members[set];
        if (y[0] == job_sum(members, 0, (uint64_t)k) && y[1] == job_sum(members, 1, (uint64_t)k)) {
            return members;
        }
    }
    return 0;
}

/* text: the members of each result, a letter for each. */
static void bulk_run(struct peer *self, const void *argument, struct reply *reply)
{
    struct bulk_job b;
    struct watch watch;
    pcclReduceOpDescriptor_t op[OPS];
    memcpy(&b, argument, sizeof b);
    float *in = peer_buffer(self, 0, (size_t)OPS * COUNT * sizeof(float));
    float *out = peer_buffer(self, 1, (size_t)OPS * COUNT * sizeof(float));
    for (int k = 0; k < OPS; k++) {
        float *x = in + (size_t)k * COUNT, *y = k % 2 == 0 ? x : out + (size_t)k * COUNT;
        for (size_t i = 0; i < COUNT; i++) {
            x[i] = job_value(self->index, i, (uint64_t)k);
        }
        op[k] = (pcclReduceOpDescriptor_t){x, y, peer_floats(COUNT, (uint64_t)k)};
    }
    for (int v = 0; v < VICTIMS; v++) {
        if (self->index == b.victim[v]) {
            watch_start(&watch, self, peer_moved, b.after[v], SIGKILL);
        }
    }
    peer_result(reply, pcclAllReduceMultipleWithRetry(op, OPS, self->comm, NULL, b.window[self->index]));
    PEER_EXPECT(self, reply->result == (int)pcclSuccess);
    for (int k = 0; k < OPS; k++) {
        const float *y = op[k].recvbuf;
        unsigned members = result_of(&b, y, k);
        PEER_EXPECT(self, members != 0);
        for (size_t i = 0; members != 0 && i < COUNT; i++) {
            PEER_EXPECT(self, y[i] == job_sum(members, i, (uint64_t)k));
        }
        reply->text[k] = (char)('@' + members);
    }
    PEER_EXPECT(self, pcclUpdateTopology(self->comm) == pcclSuccess); /* nothing is left in flight */
}

/* All survivors have success, with the same results; some of them without those that died. */
static void bulk_with_deaths(int count, const struct bulk_job *b)
{
    struct processes all;
    struct processes_options o = {.count = count, .failures = &test_failures, .pool = 2};
    struct reply reply[PROCESSES_MOST];
    if (!processes_start(&all, &o)) {
        return;
    }
    processes_do(&all, processes_set(count), peer_join, &count, sizeof count, NULL);
    processes_send(&all, processes_set(count), bulk_run, b, sizeof *b);
    for (int v = 0; v < VICTIMS && b->victim[v] >= 0; v++) {
        process_wait_killed(&all, b->victim[v]);
    }
    unsigned left = b->members[0];
    processes_take(&all, left, reply);
    int first = __builtin_ctz(left);
    for (int i = 0; i < count; i++) {
        if ((left >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
            EXPECT_STR(reply[i].text, reply[first].text);
        }
    }
    EXPECT(strchr(reply[first].text, '@' + (int)left) != NULL);
    processes_stop(&all);
}

/* The survivors wait for one another for ever, if what was lost is launched again only when all the rest has ended. */
TEST(windows_of_2_3_and_40_survive_a_kill)
{
    for (uint64_t round = 0; round < 3; round++) {
        struct bulk_job b = {.window = {2, 3, 40, 7}, .victim = {3, -1}, .after = {(2 + 3 * round) << 20}, .members = {7, 15}};
        bulk_with_deaths(4, &b);
    }
}

/* Each loss leaves 39 errors that the others take one call after the other, each of which is launched again at once. */
TEST(a_window_of_1_beside_40_takes_the_errors_it_is_owed)
{
    struct bulk_job b = {.window = {1, 40, 40}, .victim = {2, -1}, .after = {4 << 20}, .members = {3, 7}};
    bulk_with_deaths(3, &b);
}

TEST(a_second_loss_while_the_first_is_made_good_is_survived)
{
    struct bulk_job b = {.window = {1, 2, 40, 5, 40}, .victim = {3, 4}, .after = {4 << 20, 5 << 20}, .members = {7, 15, 23, 31}};
    bulk_with_deaths(5, &b);
}
