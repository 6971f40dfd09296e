/* test_messages.c - send, receive and groups, value by value, in worlds of 1 to 9.
 *
 * A message's content is a function of (sender, receiver, tag, number, element), so that one that meets the wrong receive is seen.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum { TAGS = 3, MOST_WORLD = 9, PER_TAG = 2, ANY_TAG = 1000 };

static const size_t sizes[] = {0, 1, 100, 4096, 4097, 70000, 1500000};
enum { SIZES = 7 };

static uint32_t value(uint32_t from, uint32_t to, uint64_t tag, uint32_t number, size_t i)
{
    return (uint32_t)((from * 31u + to * 977u + tag * 7919u + number * 104729u + i) * 2654435761u);
}

static uint32_t *message(uint32_t from, uint32_t to, uint64_t tag, uint32_t number, size_t count)
{
    uint32_t *m = malloc(count * sizeof *m + 1);
    for (size_t i = 0; i < count; i++) {
        m[i] = value(from, to, tag, number, i);
    }
    return m;
}

static void check(const uint32_t *got, uint32_t from, uint32_t to, uint64_t tag, uint32_t number, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += got[i] != value(from, to, tag, number, i);
    }
    EXPECT_EQ(wrong, 0);
    if (wrong > 0) {
        fprintf(stderr, "# from %u to %u, tag %llu, number %u, %zu elements: %zu wrong\n", from, to, (unsigned long long)tag, number, count, wrong);
    }
}

static uint32_t rank_of(pcclComm_t *comm)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(comm, &self), pcclSuccess);
    return self.rank;
}

/* Of a message: small ones and a few large ones, alike at both ends. */
static size_t count_of(uint32_t from, uint32_t to, uint64_t tag, uint32_t number, uint32_t world)
{
    size_t count = sizes[(from + 3 * to + 5 * tag + 2 * number) % SIZES];
    return world > 4 && count > 70000 ? 70000 : count;
}

struct flight {
    pcclAsyncOp_t op;
    uint32_t *buffer, source;
    uint32_t peer, number;
    uint64_t tag;
    size_t count;
};

static void await(struct flight *f, uint32_t self, bool receives)
{
    pcclReduceInfo_t info;
    pcclResult_t rc = pcclAwaitAsync(&f->op, &info);
    EXPECT_EQ(rc, pcclSuccess);
    if (rc != pcclSuccess) {
        fprintf(stderr, "# %s\n", pcclGetLastError());
    } else if (receives) {
        EXPECT_EQ(f->source, f->peer);
        EXPECT_EQ(info.rx_bytes, f->count * sizeof(uint32_t));
        check(f->buffer, f->peer, self, f->tag, f->number, f->count);
    } else {
        EXPECT_EQ(info.tx_bytes, f->count * sizeof(uint32_t));
    }
    free(f->buffer);
}

/* Everybody to everybody: sent tag after tag, received in the opposite order of tags, so that none waits for another. */
static void all_pairs(struct cluster_peer *p, void *context)
{
    static struct flight out[MOST_WORLD][MOST_WORLD * TAGS * PER_TAG], in[MOST_WORLD][MOST_WORLD * TAGS * PER_TAG];
    uint32_t world = *(const uint32_t *)context, self = rank_of(p->comm);
    size_t sent = 0, received = 0;
    for (uint64_t tag = 0; tag < TAGS; tag++) {
        for (uint32_t number = 0; number < PER_TAG; number++) {
            for (uint32_t peer = 0; peer < world; peer++) {
                if (peer == self) {
                    continue;
                }
                struct flight *f = &out[self][sent++];
                *f = (struct flight){.peer = peer, .number = number, .tag = tag, .count = count_of(self, peer, tag, number, world)};
                f->buffer = message(self, peer, tag, number, f->count);
                EXPECT_EQ(pcclSend(f->buffer, f->count, pcclUint32, peer, tag, p->comm, &f->op), pcclSuccess);
            }
        }
    }
    for (uint64_t tag = TAGS; tag-- > 0;) {
        for (uint32_t number = 0; number < PER_TAG; number++) {
            for (uint32_t peer = world; peer-- > 0;) {
                if (peer == self) {
                    continue;
                }
                struct flight *f = &in[self][received++];
                *f = (struct flight){.peer = peer, .number = number, .tag = tag, .count = count_of(peer, self, tag, number, world)};
                f->buffer = malloc(f->count * sizeof *f->buffer + 1);
                EXPECT_EQ(pcclReceive(f->buffer, f->count, pcclUint32, peer, tag, &f->source, p->comm, &f->op), pcclSuccess);
            }
        }
    }
    for (size_t i = 0; i < received; i++) {
        await(&in[self][i], self, true);
    }
    for (size_t i = sent; i-- > 0;) {
        await(&out[self][i], self, false);
    }
}

/* Blocking, around a ring; the even ones begin with a send, so nobody waits in a circle. */
static void ring(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context, self = rank_of(p->comm), next = (self + 1) % world, prev = (self + world - 1) % world;
    for (uint32_t number = 0; world > 1 && number < SIZES; number++) {
        size_t count = sizes[number];
        uint32_t *out = message(self, next, 9, number, count), *in = malloc(count * sizeof *in + 1), source = 99;
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == (self % 2 == 0)) {
                pcclResult_t rc = pcclSend(out, count, pcclUint32, next, 9, p->comm, NULL);
                EXPECT_EQ(rc, pcclSuccess);
                if (rc != pcclSuccess) {
                    fprintf(stderr, "# %s\n", pcclGetLastError());
                }
            } else {
                EXPECT_EQ(pcclReceive(in, count, pcclUint32, prev, 9, &source, p->comm, NULL), pcclSuccess);
                EXPECT_EQ(source, prev);
                check(in, prev, self, 9, number, count);
            }
        }
        free(out);
        free(in);
    }
}

/* All to rank 0, twice, which takes them as they come: of each source in the order in which it has sent them. */
static void any_source(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context, self = rank_of(p->comm);
    for (uint32_t round = 0; round < 2 && self != 0; round++) {
        for (uint32_t number = 0; number < SIZES; number++) {
            uint32_t *out = message(self, 0, ANY_TAG + number, round, sizes[number]);
            EXPECT_EQ(pcclSend(out, sizes[number], pcclUint32, 0, ANY_TAG + number, p->comm, NULL), pcclSuccess);
            free(out);
        }
    }
    uint32_t seen[SIZES][MOST_WORLD] = {{0}};
    for (uint32_t k = 0; k < 2 * SIZES * (world - 1) && self == 0; k++) {
        uint32_t number = k / (world - 1) % SIZES, source = 0;
        uint32_t *in = malloc(sizes[number] * sizeof *in + 1);
        pcclResult_t rc = pcclReceive(in, sizes[number], pcclUint32, PCCL_ANY_RANK, ANY_TAG + number, &source, p->comm, NULL);
        EXPECT_EQ(rc, pcclSuccess);
        EXPECT(source > 0 && source < world);
        if (rc == pcclSuccess) {
            check(in, source, 0, ANY_TAG + number, seen[number][source]++, sizes[number]);
        } else {
            fprintf(stderr, "# %s\n", pcclGetLastError());
        }
        free(in);
    }
    for (uint32_t source = 1; source < world && self == 0; source++) {
        EXPECT_EQ(seen[0][source], 2);
        EXPECT_EQ(seen[SIZES - 1][source], 2);
    }
}

/* Both directions at once, the own one too, and collectives among them: in the order of each member's own mind. */
static void groups(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context, self = rank_of(p->comm);
    for (uint32_t number = 0; number < SIZES; number++) {
        size_t count = world > 4 && sizes[number] > 70000 ? 70000 : sizes[number];
        uint32_t *out[MOST_WORLD], *in[MOST_WORLD], sources[MOST_WORLD];
        uint32_t one = self + 1, sum = 0;
        EXPECT_EQ(pcclGroupStart(), pcclSuccess);
        for (uint32_t k = 0; k < world; k++) {
            uint32_t peer = (k + self * (number + 1)) % world; /* an order of its own */
            out[peer] = message(self, peer, 5, number, count);
            in[peer] = malloc(count * sizeof *in[peer] + 1);
            if (number % 2 == 0) {
                EXPECT_EQ(pcclReceive(in[peer], count, pcclUint32, peer, 5, &sources[peer], p->comm, NULL), pcclSuccess);
            }
            EXPECT_EQ(pcclSend(out[peer], count, pcclUint32, peer, 5, p->comm, NULL), pcclSuccess);
            if (number % 2 != 0) {
                EXPECT_EQ(pcclReceive(in[peer], count, pcclUint32, peer, 5, &sources[peer], p->comm, NULL), pcclSuccess);
            }
            if (k == self) {
                EXPECT_EQ(pcclGroupStart(), pcclSuccess);
                EXPECT_EQ(pcclAllReduceOrdered(&one, &sum, 1, pcclUint32, pcclSum, p->comm, NULL), pcclSuccess);
                EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
            }
        }
        EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
        EXPECT_EQ(sum, world * (world + 1) / 2);
        for (uint32_t peer = 0; peer < world; peer++) {
            EXPECT_EQ(sources[peer], peer);
            check(in[peer], peer, self, 5, number, count);
            free(out[peer]);
            free(in[peer]);
        }
    }
}

static void worlds(uint32_t from, uint32_t to, uint32_t pool)
{
    for (uint32_t world = from; world <= to; world += test_step()) {
        struct cluster c;
        cluster_start(&c, (int)world, NULL, pool);
        cluster_run(&c, all_pairs, &world);
        cluster_run(&c, ring, &world);
        cluster_run(&c, any_source, &world);
        cluster_run(&c, groups, &world);
        cluster_stop(&c);
    }
}

TEST(every_message_meets_its_receive_in_worlds_of_1_to_4)
{
    worlds(1, 4, 3);
}

TEST(every_message_meets_its_receive_in_worlds_of_5_to_9)
{
    worlds(5, MOST_WORLD, 1);
}

/* ---- Order --------------------------------------------------------------------------------------------------------------------- */

/* Receives of one tag are matched in the order of their calls, the one from any source first, whatever the others name. */
static void behind_any(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p->comm), source = 99, in[3] = {0};
    bool done = true;
    (void)context;
    if (self == 0) {
        pcclAsyncOp_t op[3];
        EXPECT_EQ(pcclReceive(&in[0], 1, pcclUint32, PCCL_ANY_RANK, 1, &source, p->comm, &op[0]), pcclSuccess);
        EXPECT_EQ(pcclReceive(&in[1], 1, pcclUint32, 1, 1, NULL, p->comm, &op[1]), pcclSuccess);
        EXPECT_EQ(pcclReceive(&in[2], 1, pcclUint32, 1, 2, NULL, p->comm, &op[2]), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op[2], NULL), pcclSuccess); /* another tag waits for nobody */
        EXPECT_EQ(pcclTestAsync(&op[0], &done), pcclSuccess);
        EXPECT(!done);
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op[1], NULL), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op[0], NULL), pcclSuccess);
        EXPECT(source == 1 && in[0] == 10 && in[1] == 11 && in[2] == 12);
    } else {
        uint32_t out[3] = {10, 11, 12};
        EXPECT_EQ(pcclSend(&out[2], 1, pcclUint32, 0, 2, p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclSend(&out[0], 1, pcclUint32, 0, 1, p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclSend(&out[1], 1, pcclUint32, 0, 1, p->comm, NULL), pcclSuccess);
    }
}

TEST(receives_of_one_tag_are_matched_in_the_order_of_their_calls)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, behind_any, NULL);
    cluster_stop(&c);
}

/* ---- Mistakes, and calls that are given up ---------------------------------------------------------------------------------------- */

static void said(const char *words)
{
    bool there = strstr(pcclGetLastError(), words) != NULL;
    EXPECT(there);
    if (!there) {
        fprintf(stderr, "# expected '%s' in: %s\n", words, pcclGetLastError());
    }
}

/* What follows a mistake still meets what it should. */
static void exchange(struct cluster_peer *p, uint32_t self, uint32_t number)
{
    uint32_t out = value(0, 1, 3, number, 0), in = 0;
    if (self == 0) {
        EXPECT_EQ(pcclSend(&out, 1, pcclUint32, 1, 3, p->comm, NULL), pcclSuccess);
    } else {
        EXPECT_EQ(pcclReceive(&in, 1, pcclUint32, 0, 3, NULL, p->comm, NULL), pcclSuccess);
        EXPECT_EQ(in, out);
    }
}

static void mistakes(struct cluster_peer *p, void *context)
{
    static uint32_t buffer[2][20000];
    uint32_t self = rank_of(p->comm), *b = buffer[self];
    static const size_t counts[][2] = {{4, 5}, {4, 20000}, {20000, 4}, {20000, 19999}};
    (void)context;
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(self == 0 ? pcclSend(b, counts[i][0], pcclUint32, 1, 3, p->comm, NULL)
                            : pcclReceive(b, counts[i][1], pcclUint32, i % 2 == 0 ? 0 : PCCL_ANY_RANK, 3, NULL, p->comm, NULL),
                  pcclInvalidArgument);
        said(self == 0 ? "this peer has send of " : "this peer has receive of ");
        said(self == 0 ? ") has receive of " : ") has send of ");
        exchange(p, self, i);
    }
    EXPECT_EQ(self == 0 ? pcclSend(NULL, 4, pcclUint32, 1, 3, p->comm, NULL) : pcclReceive(b, 4, pcclUint32, 0, 3, NULL, p->comm, NULL),
              pcclInvalidArgument);
    said(self == 0 ? "send: sendbuf is null: pass a buffer" : "a peer could not make this call as it was given");
    exchange(p, self, 4);
    EXPECT_EQ(self == 0 ? pcclSend(b, 4, pcclUint32, 1, 3, p->comm, NULL) : pcclReceive(b, 4, (pcclDataType_t)99, 0, 3, NULL, p->comm, NULL),
              pcclInvalidArgument);
    said(self == 0 ? "a peer could not make this call as it was given" : "receive: datatype is 99: expected 0");
    exchange(p, self, 5);
    EXPECT_EQ(pcclSend(b, 4, pcclUint32, 2, 3, p->comm, NULL), pcclInvalidArgument);
    said("send: peer is 2: expected a rank below 2");
    EXPECT_EQ(pcclSend(b, 4, pcclUint32, PCCL_ANY_RANK, 3, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclReceive(b, 4, pcclUint32, self, 3, NULL, p->comm, NULL), pcclInvalidArgument);
    said("only inside of a group");
    EXPECT_EQ(pcclGroupEnd(), pcclInvalidUsage);
    said("call pcclGroupStart first");
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSend(b, 4, pcclUint32, self, 3, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclReceive(b, 4, pcclUint32, 7, 3, NULL, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclGroupEnd(), pcclInvalidArgument);
    said("receive: peer is 7");
    exchange(p, self, 7);
}

TEST(a_mistake_is_told_at_both_ends_and_the_next_message_meets_its_receive)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 2);
    cluster_run(&c, mistakes, NULL);
    cluster_stop(&c);
}

/* Either end gives up, before the other has come or after; what nobody has matched yet ends alone. */
static void given_up(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p->comm), b[4] = {0};
    static uint32_t large[2][50000];
    pcclErrorInfo_t why;
    (void)context;
    for (uint32_t i = 0; i < 8; i++) {
        bool mine = i % 2 == self, any = (i & 4) != 0;
        size_t count = (i & 2) != 0 ? 50000 : 4;
        uint32_t *buffer = count == 4 ? b : large[self];
        pcclAsyncOp_t op;
        if (mine) { /* the other calls when this has ended */
            EXPECT_EQ(self == 0 ? pcclSend(buffer, count, pcclUint32, 1, 3, p->comm, &op)
                                : pcclReceive(buffer, count, pcclUint32, 0, 3, NULL, p->comm, &op), pcclSuccess);
            EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
            EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclRankConnectionLost);
            EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        } else {
            EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
            EXPECT_EQ(self == 0 ? pcclSend(buffer, count, pcclUint32, 1, 3, p->comm, NULL)
                                : pcclReceive(buffer, count, pcclUint32, any ? PCCL_ANY_RANK : 0, 3, NULL, p->comm, NULL),
                      pcclRankConnectionLost);
        }
        EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
        EXPECT_EQ(why.cause, pcclCauseCancelled);
        exchange(p, self, i);
    }
    pcclAsyncOp_t unmatched;
    EXPECT_EQ(pcclReceive(b, 4, pcclUint32, PCCL_ANY_RANK, 4, NULL, p->comm, &unmatched), pcclSuccess);
    EXPECT_EQ(pcclCancelAsync(&unmatched), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&unmatched, NULL), pcclRankConnectionLost);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    uint32_t peer = 1 - self, out = self + 1, in = 0;
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSend(&out, 1, pcclUint32, peer, 4, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclReceive(&in, 1, pcclUint32, peer, 4, NULL, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
    EXPECT_EQ(in, peer + 1);
}

TEST(what_one_end_gives_up_fails_at_both_and_an_unmatched_receive_alone)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, given_up, NULL);
    cluster_stop(&c);
}
