/* test_overlaps.c - input and output at every distance from each other: the one way that pccl.h allows, and buffers that only touch,
 * give the right values; every other is refused on all members, and the calls before and behind it meet their own.  Calls that run at
 * the same time have their results apart from each other's buffers, too.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/e2e/cluster.h"
#include "tests/e2e/trial.h"

enum { WORLD = 3, ARENA = 400 };

static void last_words(const char *words)
{
    bool there = strstr(pcclGetLastError(), words) != NULL;
    EXPECT(there);
    if (!there) {
        fprintf(stderr, "# expected '%s' in: %s\n", words, pcclGetLastError());
    }
}

/* Bytes from the input to the output in place; false: there is no such form. */
static bool in_place_at(const struct trial *t, uint32_t self, int *distance)
{
    int own = (int)trial_own_place(t, self);
    *distance = t->kind == SCATTER ? own : t->kind == ALL_GATHER || t->kind == GATHER ? -own : 0;
    return t->kind != REDUCE_SCATTER && t->kind != ALL_TO_ALL;
}

/* Rank `who` has its output so many bytes behind its input; elements are bytes. */
static void call_at(struct cluster_peer *p, const struct trial *t, uint32_t self, uint32_t who, int distance)
{
    unsigned char arena[ARENA];
    int in_place = 0, ins = (int)trial_reach(t, true, WORLD, who), outs = (int)trial_reach(t, false, WORLD, who);
    bool apart = ins == 0 || outs == 0 || distance >= ins || -distance >= outs;
    bool good = apart || (in_place_at(t, who, &in_place) && distance == in_place);
    struct trial_buffers own = trial_make(t, WORLD, self), b = own;
    struct trial before = {.kind = ALL_GATHER, .type = pcclUint8, .count = 3, .number = t->number + 1}, behind = before;
    struct trial_buffers around[2] = {trial_make(&before, WORLD, self), trial_make(&behind, WORLD, self)};
    pcclAsyncOp_t op;
    if (self == who) { /* where they lie over each other the input counts */
        b.in = arena + ARENA / 2;
        b.out = b.in + distance;
        memset(arena, 0, sizeof arena);
        memcpy(b.out, own.out, b.out_count);
        memcpy(b.in, own.in, (size_t)ins);
    }
    EXPECT_EQ(trial_call(&before, p->comm, WORLD, self, &around[0], &op), pcclSuccess);
    pcclResult_t rc = trial_call(t, p->comm, WORLD, self, &b, NULL);
    EXPECT_EQ(rc, good ? pcclSuccess : pcclInvalidArgument);
    if (rc == pcclInvalidArgument) {
        last_words(self == who ? "recvbuf overlaps sendbuf" : "could not make this call as it was given");
        EXPECT(memcmp(b.in, own.in, self == who ? (size_t)ins : own.in_count) == 0);
    } else {
        EXPECT(memcmp(b.out, own.want, trial_reach(t, false, WORLD, self)) == 0);
    }
    if (rc != (good ? pcclSuccess : pcclInvalidArgument)) {
        fprintf(stderr, "# kind %d, uneven %d, rank %u, distance %d\n", (int)t->kind, t->uneven, who, distance);
    }
    EXPECT_EQ(trial_call(&behind, p->comm, WORLD, self, &around[1], NULL), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
    EXPECT(trial_is_right(&before, WORLD, self, &around[0]) && trial_is_right(&behind, WORLD, self, &around[1]));
    trial_buffers_free(&around[0]);
    trial_buffers_free(&around[1]);
    trial_buffers_free(&own);
}

static void all_distances(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (unsigned i = 0; i < BARRIER * 2 * WORLD; i++) {
        uint32_t who = i % WORLD;
        struct trial t = {.kind = (enum trial_kind)(i / WORLD / 2), .type = pcclUint8, .count = 2, .uneven = i / WORLD % 2, .root = who,
                          .number = i};
        if (t.uneven && !trial_has_lists(t.kind)) {
            continue;
        }
        int ins = (int)trial_reach(&t, true, WORLD, who), outs = (int)trial_reach(&t, false, WORLD, who);
        for (int distance = -outs; distance <= ins; distance++) {
            call_at(p, &t, self.rank, who, distance);
        }
    }
}

TEST(buffers_may_lie_over_each_other_in_the_ways_of_the_header_and_in_no_other) /* half of a result computed from the result */
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, all_distances, NULL);
    cluster_stop(&c);
}

/* ---- Calls that run at the same time -------------------------------------------------------------------------------------------- */

enum { PIECE = 30000 };

static uint32_t given(uint32_t rank, size_t i)
{
    return rank * 1000 + (uint32_t)(i % 97);
}

static void fill(uint32_t *at, uint32_t rank)
{
    for (size_t i = 0; i < PIECE; i++) {
        at[i] = given(rank, i);
    }
}

static bool is_sum(const uint32_t *at)
{
    for (size_t i = 0; i < PIECE; i++) {
        if (at[i] != given(0, i) + given(1, i) + given(2, i)) {
            return false;
        }
    }
    return true;
}

struct memory {
    uint32_t first_in[PIECE], first_out[PIECE], in[PIECE], out[PIECE];
};

enum overlap { APART, READ_TWICE, OVER_INPUT, OVER_OUTPUT, FROM_OUTPUT, OVERLAPS };

static uint32_t *second_in(struct memory *m, enum overlap o)
{
    return o == READ_TWICE ? m->first_in : o == FROM_OUTPUT ? m->first_out + PIECE - 1 : m->in;
}

static uint32_t *second_out(struct memory *m, enum overlap o)
{
    return o == OVER_INPUT ? m->first_in + PIECE - 1 : o == OVER_OUTPUT ? m->first_out : m->out;
}

static struct memory *memory_of(uint32_t self)
{
    struct memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        abort();
    }
    fill(m->first_in, self);
    fill(m->in, self);
    return m;
}

/* Rank 1 alone has the buffers of the second call over those of the first. */
static void two_sums(struct cluster_peer *p, uint32_t self, enum overlap o)
{
    struct memory *m = memory_of(self);
    enum overlap mine = self == 1 ? o : APART;
    bool good = o == APART || o == READ_TWICE;
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclAllReduceOrdered(m->first_in, m->first_out, PIECE, pcclUint32, pcclSum, p->comm, NULL), pcclSuccess);
    pcclResult_t rc = pcclAllReduceOrdered(second_in(m, mine), second_out(m, mine), PIECE, pcclUint32, pcclSum, p->comm, NULL);
    EXPECT(rc == pcclSuccess || self == 1);
    EXPECT_EQ(pcclGroupEnd(), good ? pcclSuccess : pcclInvalidArgument);
    if (!good) {
        last_words(self == 1 ? "overlaps a buffer of an earlier call of this group" : "could not make this call as it was given");
    }
    EXPECT(is_sum(m->first_out) && (!good || is_sum(m->out)));
    free(m);
}

/* Each sends to the next; rank 1 alone receives over what it sends. */
static void two_messages(struct cluster_peer *p, uint32_t self, bool overlaps)
{
    struct memory *m = memory_of(self);
    uint32_t *into = overlaps && self == 1 ? m->in + PIECE / 2 : m->out, half = PIECE / 2;
    bool fails = overlaps && self <= 1; /* rank 0 sends to rank 1 */
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSend(m->in, PIECE, pcclUint32, (self + 1) % WORLD, 7, p->comm, NULL), pcclSuccess);
    (void)pcclReceive(into, PIECE, pcclUint32, (self + WORLD - 1) % WORLD, 7, NULL, p->comm, NULL);
    EXPECT_EQ(pcclGroupEnd(), fails ? pcclInvalidArgument : pcclSuccess);
    EXPECT(m->in[half] == given(self, half) && (fails || m->out[half] == given((self + WORLD - 1) % WORLD, half)));
    free(m);
}

static void groups(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (int o = APART; o < OVERLAPS; o++) {
        two_sums(p, self.rank, (enum overlap)o);
    }
    two_messages(p, self.rank, false);
    two_messages(p, self.rank, true);
    two_messages(p, self.rank, false);
}

TEST(calls_of_a_group_have_results_apart_from_each_others_buffers) /* sums that differ between members */
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, groups, NULL);
    cluster_stop(&c);
}

static pcclResult_t launch_second_over_first(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct memory *m = user;
    (void)attempt;
    return index == 0 ? pcclAllReduceOrdered(m->first_in, m->first_out, PIECE, pcclUint32, pcclSum, comm, op)
                      : pcclAllReduceOrdered(m->in, m->first_out, PIECE, pcclUint32, pcclSum, comm, op);
}

static void repeated(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    struct memory *m = memory_of(self.rank);
    for (int i = 0; i < 2; i++) { /* the second time the first call's buffers are forgotten */
        EXPECT_EQ(pcclRepeatGroup(p->comm, 2, launch_second_over_first, m, NULL, NULL), pcclInvalidArgument);
        last_words("recvbuf overlaps a buffer of an earlier call of this group");
        EXPECT_EQ(pcclRepeatGroup(p->comm, 1, launch_second_over_first, m, NULL, NULL), pcclSuccess);
        EXPECT(is_sum(m->first_out));
    }
    free(m);
}

TEST(calls_of_a_repeated_group_have_results_apart_from_each_others_buffers) /* the same, by pcclRepeatGroup */
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, repeated, NULL);
    cluster_stop(&c);
}

static pcclReduceOpDescriptor_t described(uint32_t *in, uint32_t *out, uint64_t tag)
{
    return (pcclReduceOpDescriptor_t){.sendbuf = in, .recvbuf = out,
                                      .descriptor = {.count = PIECE, .op = pcclSum, .tag = tag, .src_descriptor = {.datatype = pcclUint32}}};
}

static void bulk(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (int o = OVERLAPS - 1; o >= APART; o--) {
        struct memory *m = memory_of(self.rank);
        bool good = o == APART || o == READ_TWICE;
        pcclReduceOpDescriptor_t list[] = {described(second_in(m, (enum overlap)o), second_out(m, (enum overlap)o), 1),
                                           described(m->first_in, m->first_out, 2)};
        EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 2, p->comm, NULL, 2), good ? pcclSuccess : pcclInvalidArgument);
        if (good) {
            EXPECT(is_sum(m->first_out) && is_sum(m->out));
        } else {
            last_words("a result of descriptors[0] or descriptors[1] overlaps a buffer of the other");
            EXPECT(m->first_out[0] == 0 && m->out[0] == 0 && m->in[1] == given(self.rank, 1));
        }
        free(m);
    }
    struct memory *m = memory_of(self.rank);
    pcclReduceOpDescriptor_t one = described(m->in, m->in + 1, 1);
    pcclAsyncReduceOp_t op;
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(&one, 1, p->comm, NULL, 1), pcclInvalidArgument);
    last_words("descriptors[0].recvbuf overlaps sendbuf: pass the same buffer");
    EXPECT_EQ(pcclAllReduce(m->in + 1, m->in, &one.descriptor, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclAllReduceAsync(m->in, m->in + PIECE - 1, &one.descriptor, p->comm, &op), pcclInvalidArgument);
    last_words("recvbuff overlaps sendbuff: pass the same buffer");
    EXPECT_EQ(pcclAllReduce(m->in, m->in, &one.descriptor, p->comm, NULL), pcclSuccess);
    EXPECT(is_sum(m->in));
    free(m);
}

TEST(all_reduces_by_tag_have_results_apart_from_buffers) /* a list with one buffer twice, or a buffer half over the other */
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, bulk, NULL);
    cluster_stop(&c);
}

/* Rank 2 has two parts in one place; with `apart` none has. */
static void call_with_places(struct cluster_peer *p, uint32_t self, enum trial_kind kind, bool apart)
{
    unsigned char in[6] = {(unsigned char)self, 1, 2, 3, 4, 5}, out[8] = {0};
    size_t counts[WORLD] = {2, 2, 2}, places[WORLD] = {4, 2, self == 2 && !apart ? 3 : 0}, sent[WORLD] = {0, 0, 4};
    pcclResult_t rc = kind == ALL_GATHER ? pcclAllGatherV(in, out, counts, places, pcclUint8, p->comm, NULL)
                      : kind == GATHER   ? pcclGatherV(in, 2, out, counts, places, pcclUint8, 2, p->comm, NULL)
                                         : pcclAllToAllV(in, counts, sent, out, counts, places, pcclUint8, p->comm, NULL);
    EXPECT_EQ(rc, apart ? pcclSuccess : pcclInvalidArgument);
    if (!apart) {
        last_words(self == 2 ? "places[2] is 3: the part overlaps that of a lower rank" : "could not make this call as it was given");
    } else if (kind != GATHER || self == 2) {
        EXPECT(out[4] == (kind == ALL_TO_ALL && self == 2 ? 4 : 0) && out[2] == (kind == ALL_TO_ALL && self == 2 ? 4 : 1));
    }
}

static void all_places(struct cluster_peer *p, void *context)
{
    static const enum trial_kind kinds[] = {ALL_GATHER, GATHER, ALL_TO_ALL};
    pcclPeerInfo_t self = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (size_t i = 0; i < 6; i++) {
        call_with_places(p, self.rank, kinds[i / 2], i % 2 != 0);
    }
}

TEST(parts_of_an_output_are_apart) /* bytes of either rank in one place */
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, all_places, NULL);
    cluster_stop(&c);
}
