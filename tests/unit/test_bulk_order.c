/* test_bulk_order.c - lists with retry at peers with different windows: nobody waits for ever, and numbers of calls agree.
 *
 * The peers are `struct bulk`s; outcomes are what the protocol promises: the same at all by operation and attempt, a success only when
 * all have launched, an error also for those that launch later.  The order of events is drawn.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/mutant.h"
#include "core/random.h"
#include "session/bulk.h"

enum { PEERS = 4, OPS = 30, ATTEMPTS = 40 };

struct lists {
    struct rng rng;
    struct bulk peer[PEERS];
    unsigned char state[PEERS][OPS];
    int launched[PEERS][OPS];           /* attempts */
    enum session_result outcome[OPS][ATTEMPTS];
    uint8_t cause[OPS][ATTEMPTS];
    int bad_op;                         /* fails for good when all have launched it; -1: none */
};

static void settle(struct lists *l, int op, int attempt, enum session_result result, uint8_t cause)
{
    if (l->outcome[op][attempt] == RESULT_PENDING) {
        l->outcome[op][attempt] = result;
        l->cause[op][attempt] = cause;
    }
}

static void launch(struct lists *l, int p, int op)
{
    int attempt = l->launched[p][op]++;
    EXPECT(attempt < ATTEMPTS);
    bulk_launched(&l->peer[p], (size_t)op);
    for (int q = 0; q < PEERS; q++) {
        if (l->launched[q][op] <= attempt) {
            return;
        }
    }
    settle(l, op, attempt, op == l->bad_op ? RESULT_MISMATCH : RESULT_OK, 0);
}

/* A view ends: everything that anybody has launched and nobody has the outcome of is lost. */
static void lose(struct lists *l)
{
    for (int op = 0; op < OPS; op++) {
        for (int p = 0; p < PEERS; p++) {
            for (int k = 0; k < l->launched[p][op]; k++) {
                settle(l, op, k, RESULT_LOST, CAUSE_PEER_LOST);
            }
        }
    }
}

/* One of those in flight whose outcome is known; -1: all wait. */
static int ended(struct lists *l, int p)
{
    int start = (int)rng_below(&l->rng, OPS);
    for (int n = 0; n < OPS; n++) {
        int op = (start + n) % OPS;
        if (l->state[p][op] == BULK_FLYING && l->outcome[op][l->launched[p][op] - 1] != RESULT_PENDING) {
            return op;
        }
    }
    return -1;
}

/* False: this peer can do nothing. */
static bool turn(struct lists *l, int p)
{
    struct bulk *b = &l->peer[p];
    int op = ended(l, p);
    if (op >= 0 && rng_below(&l->rng, 2) == 0) {
        struct session_outcome o = {.result = l->outcome[op][l->launched[p][op] - 1],
                                    .cause = l->cause[op][l->launched[p][op] - 1]};
        bulk_ended(b, (size_t)op, &o);
    } else {
        size_t next = bulk_next(b);
        if (next == BULK_NONE) {
            return op >= 0;
        }
        for (uint64_t together = 1 + rng_below(&l->rng, 4); together > 0 && next != BULK_NONE; together--) {
            size_t behind = bulk_behind(b, next);
            launch(l, p, (int)next);
            next = behind;
        }
    }
    for (int i = 0; i < OPS; i++) {
        if (bulk_doomed(b, (size_t)i)) {
            settle(l, i, l->launched[p][i] - 1, RESULT_LOST, CAUSE_CANCEL);
        }
    }
    return true;
}

static void run(struct lists *l, uint64_t seed, const size_t *windows, int bad_op, int losses)
{
#ifdef PCCL_MUTANTS
    mutant_active = getenv("PCCL_MUTANT") == NULL ? MUTANT_NONE : mutant_find(getenv("PCCL_MUTANT"));
#endif
    memset(l, 0, sizeof *l);
    l->rng.state = seed;
    l->bad_op = bad_op;
    for (int p = 0; p < PEERS; p++) {
        bulk_init(&l->peer[p], l->state[p], OPS, windows[p]);
    }
    for (int idle = 0; idle < 200;) {
        int p = (int)rng_below(&l->rng, PEERS);
        idle = turn(l, p) ? 0 : idle + 1;
        if (losses > 0 && rng_below(&l->rng, 40) == 0) {
            losses--;
            lose(l);
        }
    }
    for (int p = 0; p < PEERS; p++) {
        EXPECT_EQ(l->peer[p].flying, 0); /* nobody waits for ever */
        EXPECT_EQ(l->peer[p].bad, bad_op < 0 ? BULK_NONE : (size_t)bad_op);
        EXPECT_EQ(l->peer[p].low, bad_op < 0 ? OPS : (size_t)bad_op);
    }
}

TEST(lists_end_whatever_the_windows_and_losses)
{
    static const size_t windows[][PEERS] = {{1, 40, 40, 1}, {2, 3, 40, 7}, {1, 1, 1, 1}, {40, 40, 40, 40}, {5, 5, 4, 5}};
    static struct lists l;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        run(&l, seed, windows[seed % 5], -1, (int)(seed % 7));
    }
}

TEST(a_list_stops_at_an_error_on_all_peers_alike)
{
    static const size_t windows[][PEERS] = {{1, 40, 40, 1}, {2, 3, 40, 7}, {40, 1, 40, 40}};
    static struct lists l;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        run(&l, seed, windows[seed % 3], (int)(seed % OPS), (int)(seed % 3));
    }
}

/* Else the next call of a tag at one peer would meet an older call of it at another. */
TEST(with_equal_windows_all_have_made_the_same_calls_after_an_error)
{
    static struct lists l;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        size_t window = 1 + seed % 9;
        run(&l, seed, (const size_t[]){window, window, window, window}, (int)(seed % OPS), (int)(seed % 4));
        for (int p = 1; p < PEERS; p++) {
            EXPECT_EQ(memcmp(l.launched[p], l.launched[0], sizeof l.launched[0]), 0);
        }
    }
}

/* The next one of its tag would get its number, and be added to another one's at the others. */
TEST(nothing_is_launched_behind_a_call_that_was_refused_here_alone)
{
    unsigned char state[4];
    struct bulk b;
    bulk_init(&b, state, 4, 4);
    EXPECT_EQ(bulk_next(&b), 0);
    bulk_launched(&b, 0);
    EXPECT_EQ(bulk_next(&b), 1);
    bulk_ended(&b, 1, &(struct session_outcome){.result = RESULT_NO_MEMORY});
    EXPECT_EQ(bulk_next(&b), BULK_NONE);
    bulk_ended(&b, 0, &(struct session_outcome){.result = RESULT_OK});
    EXPECT_EQ(bulk_next(&b), BULK_NONE);
    EXPECT_EQ(b.flying, 0);
    EXPECT_EQ(b.bad, 1);
    bulk_init(&b, state, 4, 4);
    bulk_ended(&b, 0, &(struct session_outcome){.result = RESULT_MISMATCH}); /* owed: all others have it, too */
    EXPECT_EQ(bulk_next(&b), 1);
}

TEST(call_that_a_vote_stands_against_is_not_made_again) /* who waits in the vote waits for all: no attempt would ever end */
{
    unsigned char state[2];
    struct bulk b;
    bulk_init(&b, state, 2, 1);
    bulk_launched(&b, bulk_next(&b));
    bulk_ended(&b, 0, &(struct session_outcome){.result = RESULT_LOST, .cause = CAUSE_PEER_LOST});
    EXPECT_EQ(bulk_next(&b), 0);
    bulk_launched(&b, 0);
    bulk_ended(&b, 0, &(struct session_outcome){.result = RESULT_LOST, .cause = CAUSE_BLOCKED});
    EXPECT_EQ(bulk_next(&b), BULK_NONE);
    EXPECT_EQ(b.bad, 0);
    EXPECT_EQ(b.error.cause, CAUSE_BLOCKED);
}
