/* test_windows.c - windows through the public interface: what was put, read, counted and signalled, value by value.
 *
 * Memory of the program is reached by messages, memory of the library's own is mapped: each test runs with both.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum { MOST_WORLD = 5, PART = 300000, PUTS = 200 };

static const size_t sizes[] = {0, 1, 100, 4096, 4097, 70000, PART};
enum { SIZES = 7 };

static uint8_t value(uint32_t from, uint32_t to, uint32_t round, size_t i)
{
    return (uint8_t)((from * 31u + to * 977u + round * 7919u + i) * 2654435761u >> 24);
}

static uint32_t rank_of(pcclComm_t *comm)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(comm, &self), pcclSuccess);
    return self.rank;
}

struct mine {
    pcclWindow_t *window;
    unsigned char *at; /* this member's own memory */
    void *given;       /* the program's; null: the library's */
    uint32_t rank, world;
};

static struct mine make(struct cluster_peer *p, bool mapped, size_t bytes, unsigned rights)
{
    struct mine m = {.given = mapped ? NULL : calloc(1, bytes + 1), .rank = rank_of(p->comm)};
    pcclWindowParams_t params = {.size = sizeof params, .memory = m.given, .bytes = bytes, .rights = rights};
    pcclWindowInfo_t info = {0};
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &m.window), pcclSuccess);
    EXPECT_EQ(pcclGetWindowInfo(m.window, m.rank, &info), pcclSuccess);
    EXPECT_EQ(info.rank, m.rank);
    EXPECT(info.bytes == bytes && info.rights == rights && !info.lost);
    EXPECT(bytes == 0 || info.address != NULL);
    m.at = info.address;
    m.world = info.world;
    return m;
}

static void end(struct mine *m)
{
    EXPECT_EQ(pcclDestroyWindow(m->window), pcclSuccess);
    free(m->given);
}

static void both(int count, void (*run)(struct cluster_peer *, void *))
{
    for (int mapped = 0; mapped < 2; mapped++) {
        struct cluster c;
        bool shared = mapped != 0;
        cluster_start(&c, count, NULL, 2);
        cluster_run(&c, run, &shared);
        cluster_stop(&c);
    }
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

/* Everybody puts a part of its own into each window, tells its owner, and reads all of them back. */
static void exchange(struct cluster_peer *p, void *context)
{
    struct mine m = make(p, *(const bool *)context, (size_t)MOST_WORLD * PART, pcclWindowAll);
    unsigned char *out = malloc(PART), *in = malloc(PART);
    for (uint32_t round = 0; round < 2 * SIZES; round++) {
        size_t bytes = sizes[round % SIZES], wrong = 0;
        for (uint32_t to = 0; to < m.world; to++) {
            for (size_t i = 0; i < bytes; i++) {
                out[i] = value(m.rank, to, round, i);
            }
            EXPECT_EQ(pcclPut(out, bytes, to, (size_t)m.rank * PART, m.window, NULL), pcclSuccess);
            EXPECT_EQ(pcclSignal(to, m.window, NULL), pcclSuccess);
        }
        for (uint32_t from = 0; from < m.world; from++) {
            EXPECT_EQ(pcclWaitSignal(from, m.window, -1, NULL), pcclSuccess);
            for (size_t i = 0; i < bytes; i++) {
                wrong += m.at[(size_t)from * PART + i] != value(from, m.rank, round, i);
            }
        }
        for (uint32_t of = 0; of < m.world; of++) {
            EXPECT_EQ(pcclGet(in, bytes, of, (size_t)m.rank * PART, m.window, NULL), pcclSuccess);
            for (size_t i = 0; i < bytes; i++) {
                wrong += in[i] != value(m.rank, of, round, i);
            }
        }
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    }
    end(&m);
    free(out);
    free(in);
}

TEST(what_is_put_arrives_and_is_read_back)
{
    for (int world = 2; world <= MOST_WORLD; world++) {
        both(world, exchange);
    }
}

/* More at a time than may travel, with a signal behind them, which comes after all of them. */
static void many(struct cluster_peer *p, void *context)
{
    struct mine m = make(p, *(const bool *)context, PUTS * sizeof(uint64_t), pcclWindowAll);
    uint64_t number[PUTS];
    pcclAsyncOp_t op[PUTS + 1];
    for (uint64_t round = 1; round <= 5; round++) {
        if (m.rank == 0) {
            for (size_t i = 0; i < PUTS; i++) {
                number[i] = round * 1000 + i;
                EXPECT_EQ(pcclPut(&number[i], sizeof number[i], 1, i * sizeof number[i], m.window, &op[i]), pcclSuccess);
            }
            EXPECT_EQ(pcclSignal(1, m.window, &op[PUTS]), pcclSuccess);
            for (size_t i = 0; i <= PUTS; i++) {
                EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclSuccess);
            }
            EXPECT_EQ(pcclWaitSignal(1, m.window, -1, NULL), pcclSuccess);
        } else {
            size_t wrong = 0;
            EXPECT_EQ(pcclWaitSignal(0, m.window, -1, NULL), pcclSuccess);
            for (size_t i = 0; i < PUTS; i++) {
                memcpy(&number[0], m.at + i * sizeof number[0], sizeof number[0]);
                wrong += number[0] != round * 1000 + i;
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(pcclSignal(0, m.window, NULL), pcclSuccess);
        }
    }
    end(&m);
}

TEST(a_signal_comes_after_all_that_was_put_before_it)
{
    both(2, many);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

enum { ADDS = 150 };
static _Atomic uint8_t taken[MOST_WORLD * ADDS];

/* Each number is drawn by one member once; a lock made of swaps guards a sum that nobody else would get right. */
static void count(struct cluster_peer *p, void *context)
{
    struct mine m = make(p, *(const bool *)context, 64, pcclWindowAll);
    pcclAsyncOp_t op[ADDS];
    uint64_t drawn[ADDS], one = 1, sum = 0;
    int32_t half = 0;
    uint32_t free_ = 0, held = 1 + m.rank, was;
    for (size_t i = 0; i < ADDS; i++) {
        EXPECT_EQ(pcclFetchAdd(&drawn[i], &one, pcclUint64, 0, 8, m.window, &op[i]), pcclSuccess);
    }
    for (size_t i = 0; i < ADDS; i++) {
        EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclSuccess);
        EXPECT(drawn[i] < (uint64_t)m.world * ADDS);
        EXPECT_EQ(atomic_fetch_add(&taken[drawn[i] % (MOST_WORLD * ADDS)], 1), 0);
    }
    for (int i = 0; i < 20; i++) {
        do {
            EXPECT_EQ(pcclCompareSwap(&was, &free_, &held, pcclUint32, 0, 16, m.window, NULL), pcclSuccess);
        } while (was != 0);
        EXPECT_EQ(pcclGet(&sum, sizeof sum, 0, 24, m.window, NULL), pcclSuccess);
        sum += m.rank + 1;
        EXPECT_EQ(pcclPut(&sum, sizeof sum, 0, 24, m.window, NULL), pcclSuccess);
        EXPECT_EQ(pcclCompareSwap(&was, &held, &free_, pcclUint32, 0, 16, m.window, NULL), pcclSuccess);
        EXPECT_EQ(was, held);
    }
    int32_t less = -3;
    EXPECT_EQ(pcclFetchAdd(&half, &less, pcclInt32, 0, 36, m.window, NULL), pcclSuccess);
    EXPECT(half <= 0 && half % 3 == 0 && half > -3 * (int32_t)m.world);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (m.rank == 0) {
        uint64_t expected = 20u * m.world * (m.world + 1) / 2;
        memcpy(&sum, m.at + 8, sizeof sum);
        EXPECT_EQ(sum, (uint64_t)m.world * ADDS);
        memcpy(&sum, m.at + 24, sizeof sum);
        EXPECT_EQ(sum, expected);
        memcpy(&half, m.at + 36, sizeof half);
        EXPECT_EQ(half, -3 * (int32_t)m.world);
        memcpy(&half, m.at + 32, sizeof half);
        EXPECT_EQ(half, 0); /* its neighbour is not touched */
        for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
            atomic_store(&taken[i], 0);
        }
    }
    end(&m);
}

TEST(numbers_are_counted_once_each)
{
    for (int world = 2; world <= MOST_WORLD; world++) {
        both(world, count);
    }
}

/* ---- Signals ------------------------------------------------------------------------------------------------------ */

static void signals(struct cluster_peer *p, void *context)
{
    enum { SIGNALS = 100 };
    struct mine m = make(p, *(const bool *)context, 8, pcclWindowAll);
    uint32_t other = 1 - m.rank;
    pcclErrorInfo_t why;
    for (int i = 0; i < SIGNALS; i++) {
        EXPECT_EQ(pcclSignal(other, m.window, NULL), pcclSuccess);
    }
    for (int i = 0; i < SIGNALS; i++) {
        EXPECT_EQ(pcclWaitSignal(other, m.window, -1, NULL), pcclSuccess);
    }
    EXPECT_EQ(pcclWaitSignal(other, m.window, 0, NULL), pcclRankConnectionLost);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT_EQ(why.cause, pcclCauseDeadline);
    EXPECT_EQ(pcclWaitSignal(other, m.window, 20, NULL), pcclRankConnectionLost);
    pcclAsyncOp_t wait;
    EXPECT_EQ(pcclWaitSignal(other, m.window, -1, &wait), pcclSuccess);
    EXPECT_EQ(pcclCancelAsync(&wait), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&wait, NULL), pcclRankConnectionLost);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT_EQ(why.cause, pcclCauseCancelled);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclWaitSignal(m.rank, m.window, -1, &wait), pcclSuccess); /* its own */
    EXPECT_EQ(pcclSignal(m.rank, m.window, NULL), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&wait, NULL), pcclSuccess);
    end(&m);
}

TEST(n_signals_are_enough_for_n_waits)
{
    both(2, signals);
}

/* ---- Given up ------------------------------------------------------------------------------------------------------- */

/* What is cancelled, or has no time, is done or not; what comes behind it is done all the same. */
static void given_up(struct cluster_peer *p, void *context)
{
    enum { CALLS = 120, ROUNDS = 6 };
    struct mine m = make(p, *(const bool *)context, 8 + PART, pcclWindowAll);
    unsigned char *out = malloc(PART);
    pcclAsyncOp_t add[CALLS], put[CALLS];
    uint64_t one = 1, was, least = 0, counted = 0;
    uint32_t other = 1 - m.rank;
    memset(out, 7, PART);
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, round % 3 == 1), pcclSuccess);
        EXPECT_EQ(pcclSetCallDeadline(round % 3 == 2 ? 1 : -1), pcclSuccess);
        for (int i = 0; i < CALLS; i++) {
            EXPECT_EQ(pcclFetchAdd(i % 3 == 0 ? NULL : &was, &one, pcclUint64, other, 0, m.window, &add[i]), pcclSuccess);
            EXPECT_EQ(pcclPut(out, PART, other, 8, m.window, &put[i]), pcclSuccess);
            if (i % 2 != 0) {
                EXPECT_EQ(pcclCancelAsync(&add[i - i % 4 / 2]), pcclSuccess);
                EXPECT_EQ(pcclCancelAsync(&put[i]), pcclSuccess);
            }
        }
        for (int i = 0; i < CALLS; i++) {
            pcclResult_t rc = pcclAwaitAsync(&add[i], NULL);
            EXPECT(rc == pcclSuccess || rc == pcclRankConnectionLost);
            least += rc == pcclSuccess;
            rc = pcclAwaitAsync(&put[i], NULL);
            EXPECT(rc == pcclSuccess || rc == pcclRankConnectionLost);
        }
        EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, 0), pcclSuccess);
        EXPECT_EQ(pcclSetCallDeadline(-1), pcclSuccess);
        EXPECT_EQ(pcclSignal(other, m.window, NULL), pcclSuccess);
        EXPECT_EQ(pcclWaitSignal(other, m.window, -1, NULL), pcclSuccess);
        EXPECT_EQ(pcclGet(&counted, sizeof counted, other, 0, m.window, NULL), pcclSuccess);
        EXPECT(counted >= least && counted <= (uint64_t)(round + 1) * CALLS);
    }
    end(&m);
    free(out);
}

/* Beside updates, some of what is under way is given up; the rest of it is done, in its order, and each gets what is its own. */
static void given_up_in_votes(struct cluster_peer *p, void *context)
{
    enum { ROUNDS = 15, CALLS = 20, WORLD = 3 };
    struct mine m = make(p, *(const bool *)context, 16, pcclWindowAll);
    pcclAsyncOp_t add[WORLD][CALLS], get[WORLD][CALLS];
    uint64_t one = 1, was[WORLD][CALLS], got[WORLD][CALLS], next[WORLD] = {0}, mark = 1000 + m.rank;
    memcpy(m.at + 8, &mark, sizeof mark);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t to = 0; to < WORLD; to++) {
            for (int i = 0; to != m.rank && i < CALLS; i++) {
                EXPECT_EQ(pcclFetchAdd(&was[to][i], &one, pcclUint64, to, 0, m.window, &add[to][i]), pcclSuccess);
                EXPECT_EQ(pcclGet(&got[to][i], sizeof mark, to, 8, m.window, &get[to][i]), pcclSuccess);
                if (i % 3 == 1) {
                    EXPECT_EQ(pcclCancelAsync(&add[to][i]), pcclSuccess);
                    EXPECT_EQ(pcclCancelAsync(&get[to][i - 1]), pcclSuccess);
                }
            }
        }
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
        for (uint32_t to = 0; to < WORLD; to++) {
            for (int i = 0; to != m.rank && i < CALLS; i++) {
                pcclResult_t a = pcclAwaitAsync(&add[to][i], NULL), g = pcclAwaitAsync(&get[to][i], NULL);
                EXPECT(a == pcclSuccess || (i % 3 == 1 && a == pcclRankConnectionLost));
                EXPECT(g == pcclSuccess || (i % 3 == 0 && g == pcclRankConnectionLost));
                EXPECT(a != pcclSuccess || was[to][i] >= next[to]);
                EXPECT(g != pcclSuccess || got[to][i] == 1000 + to);
                next[to] = a == pcclSuccess ? was[to][i] + 1 : next[to];
            }
        }
    }
    end(&m);
}

TEST(what_is_given_up_beside_votes_takes_nobody_elses_place)
{
    both(3, given_up_in_votes);
}

TEST(what_is_given_up_keeps_nothing_up)
{
    both(2, given_up);
}

/* ---- Beside the rest ---------------------------------------------------------------------------------------------- */

/* Rank 1 waits in a vote until rank 0 has done with its window. */
static void in_a_vote(struct cluster_peer *p, void *context)
{
    struct mine m = make(p, *(const bool *)context, PART, pcclWindowAll);
    unsigned char *out = malloc(PART), *in = malloc(PART);
    if (m.rank == 0) {
        for (uint32_t round = 0; round < 5; round++) {
            for (size_t i = 0; i < PART; i++) {
                out[i] = value(0, 1, round, i);
            }
            EXPECT_EQ(pcclPut(out, PART, 1, 0, m.window, NULL), pcclSuccess);
            EXPECT_EQ(pcclGet(in, PART, 1, 0, m.window, NULL), pcclSuccess);
            EXPECT_EQ(memcmp(out, in, PART), 0);
        }
    }
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 5);
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(y, 2);
    end(&m);
    free(out);
    free(in);
}

TEST(a_window_is_served_while_its_program_waits_in_a_vote)
{
    both(2, in_a_vote);
}

/* Two members count for each other while a third joins, who is no member of the window. */
static void with_newcomer(struct cluster_peer *p, void *context)
{
    if (p->index == 2) {
        EXPECT_EQ(cluster_join(p->comm, 3), pcclSuccess);
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        return;
    }
    struct mine m = make(p, *(const bool *)context, 16, pcclWindowAll);
    uint64_t one = 1, was = 0, all = 0;
    pcclAsyncOp_t op;
    do {
        EXPECT_EQ(pcclFetchAdd(&was, &one, pcclUint64, 1 - m.rank, 0, m.window, &op), pcclSuccess);
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess); /* which waits for none of it */
        EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
        EXPECT_EQ(was, all);
        all++;
    } while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < 3);
    EXPECT_EQ(pcclFetchAdd(&was, &one, pcclUint64, 1 - m.rank, 0, m.window, NULL), pcclSuccess);
    EXPECT_EQ(was, all);
    EXPECT_EQ(pcclPut(&was, 8, 2, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    end(&m);
}

TEST(a_newcomer_does_not_disturb_a_window)
{
    for (int mapped = 0; mapped < 2; mapped++) {
        struct cluster c;
        bool shared = mapped != 0;
        cluster_start(&c, 2, NULL, 1);
        cluster_create(&c, 2, 0, 1, 0);
        cluster_run(&c, with_newcomer, &shared);
        cluster_stop(&c);
    }
}

/* ---- Bounds --------------------------------------------------------------------------------------------------------- */

static pcclResult_t one_more(struct cluster_peer *p, pcclWindow_t **window)
{
    pcclWindowParams_t params = {.size = sizeof params, .bytes = 16, .rights = pcclWindowAll};
    return pcclCreateWindow(&params, p->comm, window);
}

/* 64 windows of a communicator, and 768 operations beside them. */
static void bounds(struct cluster_peer *p, void *context)
{
    enum { WINDOWS = 64, OPS = 768 };
    static pcclAsyncOp_t op[2][1024];
    pcclWindow_t *window[WINDOWS + 1] = {NULL};
    uint64_t x = 1, one = 1, was = 0; /* x: what the receives write to while they are under way */
    uint32_t rank = rank_of(p->comm);
    bool lacks = rank == 1; /* one of the two has no room, which is told to both */
    (void)context;
    for (int i = 0; i < OPS && lacks; i++) {
        EXPECT_EQ(pcclReceive(&x, 1, pcclUint64, 0, (uint64_t)i, NULL, p->comm, &op[rank][i]), pcclSuccess);
    }
    EXPECT_EQ(one_more(p, &window[0]), pcclInternalError);
    EXPECT(strstr(pcclGetLastError(), "rank 1 has no room") != NULL);
    EXPECT_EQ(lacks ? pcclAwaitAsync(&op[rank][OPS - 1], NULL) : pcclSend(&x, 1, pcclUint64, 1, OPS - 1, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(one_more(p, &window[0]), pcclSuccess);
    if (lacks) { /* as many as are left */
        EXPECT_EQ(pcclReceive(&x, 1, pcclUint64, 0, OPS - 1, NULL, p->comm, &op[rank][OPS - 1]), pcclSuccess);
        EXPECT_EQ(pcclReceive(&x, 1, pcclUint64, 0, OPS, NULL, p->comm, &op[rank][OPS]), pcclRankConnectionLost);
        EXPECT_EQ(pcclFetchAdd(&was, &one, pcclUint64, 0, 0, window[0], NULL), pcclSuccess);
    }
    for (int i = 0; i < OPS; i++) {
        if (lacks) {
            EXPECT_EQ(pcclAwaitAsync(&op[rank][i], NULL), pcclSuccess);
        } else {
            EXPECT_EQ(pcclSend(&x, 1, pcclUint64, 1, (uint64_t)i, p->comm, NULL), pcclSuccess);
        }
    }
    for (int i = 1; i < WINDOWS; i++) {
        EXPECT_EQ(one_more(p, &window[i]), pcclSuccess);
    }
    EXPECT_EQ(one_more(p, &window[WINDOWS]), pcclInternalError);
    for (int i = 0; i < WINDOWS; i++) {
        EXPECT_EQ(pcclFetchAdd(&was, &one, pcclUint64, 1 - rank, 8, window[i], NULL), pcclSuccess);
        EXPECT_EQ(was, 0);
        EXPECT_EQ(pcclDestroyWindow(window[i]), pcclSuccess);
    }
    EXPECT_EQ(one_more(p, &window[WINDOWS]), pcclSuccess);
    EXPECT_EQ(pcclDestroyWindow(window[WINDOWS]), pcclSuccess);
}

TEST(what_finds_no_room_is_told_to_all)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, bounds, NULL);
    cluster_stop(&c);
}

/* ---- Mistakes ------------------------------------------------------------------------------------------------------- */

static void mistakes(struct cluster_peer *p, void *context)
{
    (void)context;
    uint64_t x = 1, y = 2;
    pcclWindow_t *window = NULL;
    pcclWindowParams_t params = {.size = sizeof params, .bytes = 64, .rights = pcclWindowRead};
    EXPECT_EQ(pcclCreateWindow(NULL, p->comm, &window), pcclInvalidArgument);
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, NULL), pcclInvalidArgument);
    params.rights = 8;
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclInvalidArgument);
    params.rights = pcclWindowAll;
    params.memory = (char *)&x + 1;
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclInvalidArgument);
    params.memory = NULL;
    params.size = 3;
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclInvalidArgument);
    params.size = sizeof params;
    params.bytes = SIZE_MAX;
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclInvalidArgument);
    struct mine m = make(p, false, 64, rank_of(p->comm) == 0 ? pcclWindowRead : pcclWindowWrite);
    uint32_t other = 1 - m.rank;
    EXPECT_EQ(pcclPut(&x, 8, 0, 0, m.window, NULL), pcclInvalidArgument); /* may only be read */
    EXPECT_EQ(pcclGet(&x, 8, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclFetchAdd(&x, &y, pcclUint64, other, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(&x, 8, 2, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(&x, 8, 1, 57, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(&x, 65, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(&x, 8, 1, SIZE_MAX, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(NULL, 8, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(&x, 8, 1, 0, NULL, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclPut(NULL, 0, 1, 64, m.window, NULL), pcclSuccess);
    EXPECT_EQ(pcclFetchAdd(&x, &y, pcclFloat, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclFetchAdd(&x, NULL, pcclUint64, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclCompareSwap(&x, NULL, &y, pcclUint64, 1, 0, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclSignal(2, m.window, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclWaitSignal(0, m.window, -2, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclGetWindowInfo(m.window, 0, NULL), pcclInvalidArgument);
    end(&m);
    EXPECT_EQ(pcclPut(&x, 8, 1, 0, m.window, NULL), pcclInvalidUsage);
    EXPECT_EQ(pcclDestroyWindow(m.window), pcclInvalidUsage);
    EXPECT_EQ(pcclDestroyWindow(NULL), pcclInvalidArgument);
}

TEST(mistakes_are_told_and_harm_nothing)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, mistakes, NULL);
    cluster_stop(&c);
}

/* Its communicator goes first: what is open ends, and the window is destroyed by itself. */
static void outlived(struct cluster_peer *p, void *context)
{
    struct mine m = make(p, *(const bool *)context, 64, pcclWindowAll);
    uint64_t x = 0;
    pcclAsyncOp_t wait;
    EXPECT_EQ(pcclWaitSignal(1 - m.rank, m.window, -1, &wait), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
    p->comm = NULL;
    EXPECT_EQ(pcclPut(&x, 8, 0, 0, m.window, NULL), pcclInvalidUsage);
    end(&m);
}

TEST(a_window_outlives_its_communicator_as_a_handle_only)
{
    both(2, outlived);
}
