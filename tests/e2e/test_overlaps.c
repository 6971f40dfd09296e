/* test_overlaps.c - input and output at every distance from each other: the one way that pccl.h allows, and buffers that only touch,
 * give the right values; every other is refused at all members, and the calls before and behind it meet their own.
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
