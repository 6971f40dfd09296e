/* test_cancel.c - collectives in the order of issue that a member gives up: one outcome at all of them, inputs as they were, and the next
 * call meets its own.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <pthread.h>

#include "tests/e2e/cluster.h"
#include "tests/e2e/trial.h"

enum { WORLD = 3, LATE = WORLD - 1 /* the rank that has not called yet */, SHORT_MS = 10 };

static pthread_barrier_t here; /* of all threads, as a barrier of the library would be one of the calls */

static uint32_t rank_of(struct cluster_peer *p)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    return self.rank;
}

static void expect_lost(pcclResult_t result, pcclCause_t cause, const struct trial *t, uint32_t self, const struct trial_buffers *b)
{
    pcclErrorInfo_t why = {0};
    EXPECT_EQ(result, pcclRankConnectionLost);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT_EQ(why.cause, cause);
    EXPECT_EQ(why.error_class, pcclClassRetry);
    EXPECT(trial_is_intact(t, WORLD, self, b));
}

static void expect_success(struct cluster_peer *p, uint32_t self, struct trial t)
{
    t.number++;
    struct trial_buffers b = trial_make(&t, WORLD, self);
    EXPECT_EQ(trial_call(&t, p->comm, WORLD, self, &b, NULL), pcclSuccess);
    EXPECT(trial_is_right(&t, WORLD, self, &b));
    trial_buffers_free(&b);
}

static struct trial trial_of(enum trial_kind kind, bool large, bool in_place)
{
    return (struct trial){.kind = kind, .type = pcclInt32, .op = pcclSum, .count = large ? 60000 : 7, .in_place = in_place,
                          .root = (uint32_t)kind % 2, .number = 10 * (uint32_t)kind};
}

/* Ranks 0 and 1 call; one of them, or its deadline, gives it up; only then does the last one come to it. */
static void give_up(struct cluster_peer *p, struct trial t, bool deadline)
{
    uint32_t self = rank_of(p);
    struct trial_buffers b = trial_make(&t, WORLD, self);
    pcclCause_t cause = deadline ? pcclCauseDeadline : pcclCauseCancelled;
    bool mine = self == t.number / 10 % 2;
    pcclAsyncOp_t op;
    if (self != LATE) {
        EXPECT_EQ(pcclSetCallDeadline(deadline && mine ? SHORT_MS : -1), pcclSuccess);
        EXPECT_EQ(trial_call(&t, p->comm, WORLD, self, &b, &op), pcclSuccess);
        EXPECT_EQ(pcclSetCallDeadline(-1), pcclSuccess);
        EXPECT(deadline || !mine || pcclCancelAsync(&op) == pcclSuccess);
        expect_lost(pcclAwaitAsync(&op, NULL), cause, &t, self, &b);
        EXPECT_EQ(pcclCancelAsync(&op), pcclInvalidUsage); /* spent */
    }
    pthread_barrier_wait(&here);
    if (self == LATE) {
        expect_lost(trial_call(&t, p->comm, WORLD, self, &b, NULL), cause, &t, self, &b);
    }
    trial_buffers_free(&b);
    expect_success(p, self, t);
}

static void give_each_up(struct cluster_peer *p, void *context)
{
    (void)context;
    for (int i = 0; i < TRIAL_KINDS * 4; i++) {
        struct trial t = trial_of((enum trial_kind)(i / 4), i % 2 == 1, i / 2 % 2 == 1);
        give_up(p, t, false);
        give_up(p, t, true);
    }
}

static void run(void (*each)(struct cluster_peer *p, void *context))
{
    struct cluster c;
    pthread_barrier_init(&here, NULL, WORLD);
    cluster_start(&c, WORLD, NULL, 2);
    cluster_run(&c, each, NULL);
    cluster_stop(&c);
    pthread_barrier_destroy(&here);
}

TEST(a_call_that_one_member_never_makes_can_be_given_up_and_fails_alike_at_all) /* they wait for ever, or the late one for them */
{
    run(give_each_up);
}

/* Of several in flight one is given up; the last member has made those before it, and makes it and the rest when it has failed. */
static void give_one_of_many_up(struct cluster_peer *p, void *context)
{
    enum { MANY = 2 * TRIAL_KINDS, GIVEN_UP = TRIAL_KINDS + 1 };
    uint32_t self = rank_of(p);
    struct trial t[MANY];
    struct trial_buffers b[MANY];
    pcclAsyncOp_t op[MANY];
    (void)context;
    for (int i = 0; i < MANY; i++) {
        t[i] = trial_of((enum trial_kind)(i % TRIAL_KINDS), i % 3 == 0, i % 2 == 0);
        t[i].number += i;
        b[i] = trial_make(&t[i], WORLD, self);
    }
    for (int i = 0; i < (self == LATE ? GIVEN_UP : MANY); i++) {
        EXPECT_EQ(trial_call(&t[i], p->comm, WORLD, self, &b[i], &op[i]), pcclSuccess);
    }
    if (self != LATE) {
        EXPECT(self != 0 || pcclCancelAsync(&op[GIVEN_UP]) == pcclSuccess);
        expect_lost(pcclAwaitAsync(&op[GIVEN_UP], NULL), pcclCauseCancelled, &t[GIVEN_UP], self, &b[GIVEN_UP]);
    }
    pthread_barrier_wait(&here);
    for (int i = GIVEN_UP; self == LATE && i < MANY; i++) {
        EXPECT_EQ(trial_call(&t[i], p->comm, WORLD, self, &b[i], &op[i]), pcclSuccess);
    }
    for (int i = 0; i < MANY; i++) {
        if (i != GIVEN_UP) {
            EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclSuccess);
            EXPECT(trial_is_right(&t[i], WORLD, self, &b[i]));
        } else if (self == LATE) {
            expect_lost(pcclAwaitAsync(&op[i], NULL), pcclCauseCancelled, &t[i], self, &b[i]);
        }
        trial_buffers_free(&b[i]);
    }
}

TEST(of_many_in_flight_one_is_given_up_and_the_others_have_their_values) /* numbers that move up: each meets the next one's data */
{
    run(give_one_of_many_up);
}

/* ---- Beside data that is under way ---------------------------------------------------------------------------------------------- */

enum { ROUNDS = 240 };

static pcclResult_t outcome[ROUNDS][WORLD];

/* All have called; a cancel comes before, beside or after the end. */
static void cancel_beside_data(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    (void)context;
    for (uint32_t i = 0; i < test_scaled(ROUNDS); i++) {
        struct trial t = trial_of((enum trial_kind)(i % TRIAL_KINDS), i / 3 % 2 == 0, i / 2 % 2 == 0);
        t.number = i;
        struct trial_buffers b = trial_make(&t, WORLD, self);
        pcclAsyncOp_t op;
        bool done = false;
        EXPECT_EQ(trial_call(&t, p->comm, WORLD, self, &b, &op), pcclSuccess);
        for (uint32_t looks = 0; self == i % WORLD && looks < i % 40; looks++) { /* later and later */
            EXPECT_EQ(pcclTestAsync(&op, &done), pcclSuccess);
        }
        EXPECT(self != i % WORLD || pcclCancelAsync(&op) == pcclSuccess);
        outcome[i][self] = pcclAwaitAsync(&op, NULL);
        if (outcome[i][self] == pcclSuccess) {
            EXPECT(trial_is_right(&t, WORLD, self, &b));
        } else {
            expect_lost(outcome[i][self], pcclCauseCancelled, &t, self, &b);
        }
        trial_buffers_free(&b);
    }
    /* Who gives up what is complete here, and may not be there, ends the view, and with it what has been called since: again, then, at all. */
    struct trial last = trial_of(ALL_GATHER, false, false);
    struct trial_buffers b = trial_make(&last, WORLD, self);
    pcclResult_t result;
    while ((result = trial_call(&last, p->comm, WORLD, self, &b, NULL)) == pcclRankConnectionLost) {
    }
    EXPECT_EQ(result, pcclSuccess);
    EXPECT(trial_is_right(&last, WORLD, self, &b));
    trial_buffers_free(&b);
}

TEST(a_cancel_beside_data_that_is_under_way_is_one_outcome_for_all) /* success here, and there an input that was restored */
{
    int given_up = 0;
    memset(outcome, 0, sizeof outcome);
    run(cancel_beside_data);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_EQ(outcome[i][1], outcome[i][0]);
        EXPECT_EQ(outcome[i][2], outcome[i][0]);
        given_up += outcome[i][0] != pcclSuccess;
    }
    printf("# %d of %d were given up\n", given_up, ROUNDS);
}
