/* test_state.c - shared state: who wins, what moves, what is compared, in all types and on any alignment.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/e2e/cluster.h"

enum { TYPES = 15, LEAF = 1 << 20 };

static const size_t type_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1};

static unsigned char content(int kind, size_t i)
{
    return (unsigned char)((i * 131 + i / 251 + (size_t)kind * 59) & 255);
}

static void fill(unsigned char *at, size_t bytes, int kind)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = content(kind, i);
    }
}

static bool holds(const unsigned char *at, size_t bytes, int kind)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++) {
        wrong += at[i] != content(kind, i);
    }
    return wrong == 0;
}

/* ---- Types and alignments (R4, R25) ----------------------------------------------------------------------------------- */

/* An entry of each type, each at an odd address, sizes around the leaf's and none; peer 2 has other content. */
static void all_types(struct cluster_peer *p, void *context)
{
    (void)context;
    pcclTensorInfo_t info[TYPES + 1];
    unsigned char *memory[TYPES];
    char name[TYPES][16];
    for (int t = 0; t < TYPES; t++) {
        size_t count = t % 3 == 0 ? LEAF / type_bytes[t] : t % 3 == 1 ? LEAF / type_bytes[t] * 2 + 3 : 7;
        memory[t] = malloc(count * type_bytes[t] + 64);
        memset(memory[t], 0xEE, count * type_bytes[t] + 64);
        fill(memory[t] + 1 + t, count * type_bytes[t], p->index == 2 ? 100 + t : t);
        snprintf(name[t], sizeof name[t], "entry %d", t);
        info[t] = (pcclTensorInfo_t){
            .name = name[t], .data = memory[t] + 1 + t, .count = count, .datatype = (pcclDataType_t)t};
    }
    info[TYPES] = (pcclTensorInfo_t){.name = "empty", .data = NULL, .count = 0, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = TYPES + 1, .infos = info};
    pcclSharedStateSyncInfo_t moved = {0};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &moved),
              pcclSuccess);
    uint64_t all = 0;
    for (int t = 0; t < TYPES; t++) {
        size_t bytes = info[t].count * type_bytes[t];
        all += bytes;
        EXPECT(holds(memory[t] + 1 + t, bytes, t));
        EXPECT(memory[t][t] == 0xEE && memory[t][1 + (size_t)t + bytes] == 0xEE);
    }
    EXPECT_EQ(moved.rx_bytes >= all, p->index == 2);
    state.revision++;
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &moved),
              pcclSuccess);
    EXPECT(moved.rx_bytes == 0 && moved.tx_bytes == 0); /* nothing differs any more */
    for (int t = 0; t < TYPES; t++) {
        free(memory[t]);
    }
}

TEST(every_type_on_any_alignment_is_compared_and_sent_in_full)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, all_types, NULL);
    cluster_stop(&c);
}

/* Only leaves that differ move: one byte in 8 MB costs a leaf. */
static void one_byte(struct cluster_peer *p, void *context)
{
    (void)context;
    size_t bytes = 8 * LEAF;
    unsigned char *at = malloc(bytes);
    fill(at, bytes, 1);
    if (p->index == 1) {
        at[5 * LEAF + 77] ^= 4;
    }
    pcclTensorInfo_t info = {.name = "w", .data = at, .count = bytes, .datatype = pcclUint8};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &info};
    pcclSharedStateSyncInfo_t moved = {0};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &moved),
              pcclSuccess);
    EXPECT(holds(at, bytes, 1));
    EXPECT(moved.rx_bytes <= (p->index == 1 ? 2 * LEAF : 0) && (p->index != 1 || moved.rx_bytes >= LEAF));
    free(at);
}

TEST(only_what_differs_moves)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, one_byte, NULL);
    cluster_stop(&c);
}

/* ---- Who wins (R19) ------------------------------------------------------------------------------------------------------- */

struct election {
    int kind[4];
    int strategy[4];
    uint64_t revision[4];
    int winner; /* kind that all must hold; -1: any, the same for all */
};

static int won[4];

static void elect(struct cluster_peer *p, void *context)
{
    const struct election *e = context;
    unsigned char at[3000];
    fill(at, sizeof at, e->kind[p->index]);
    pcclTensorInfo_t info = {.name = "w", .data = at, .count = sizeof at, .datatype = pcclUint8};
    pcclSharedState_t state = {.revision = e->revision[p->index], .count = 1, .infos = &info};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, (pcclSharedStateSyncStrategy_t)e->strategy[p->index], NULL),
              pcclSuccess);
    won[p->index] = -1;
    for (int kind = 0; kind < 10; kind++) {
        won[p->index] = holds(at, sizeof at, kind) ? kind : won[p->index];
    }
}

static void hold_election(struct cluster *c, struct election *e)
{
    cluster_run(c, elect, e);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(won[i], e->winner >= 0 ? e->winner : won[0]);
    }
}

TEST(the_popular_content_wins_and_ties_resolve_alike_in_every_order)
{
    enum { POPULAR = PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR };
    int tie = -1;
    for (int turn = 0; turn < 4; turn++) {
        struct cluster c;
        cluster_start(&c, 4, NULL, 1);
        struct election majority = {.winner = 1};
        struct election even = {.winner = tie};
        for (int i = 0; i < 4; i++) {
            int k = (i + turn) % 4;
            majority.kind[i] = k == 0 ? 2 : 1;
            majority.revision[i] = 1;
            even.kind[i] = k < 2 ? 3 : 4;
            even.revision[i] = 2;
        }
        hold_election(&c, &majority);
        hold_election(&c, &even);
        EXPECT(won[0] == 3 || won[0] == 4);
        tie = won[0];
        cluster_stop(&c);
    }
}

TEST(a_sender_wins_over_many_receivers_and_receivers_never_send)
{
    enum { SEND = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, RECEIVE = PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY };
    struct cluster c;
    cluster_start(&c, 4, NULL, 1);
    struct election e = {
        .kind = {1, 1, 2, 1}, .strategy = {RECEIVE, RECEIVE, SEND, RECEIVE}, .revision = {1, 1, 1, 1}, .winner = 2};
    hold_election(&c, &e);
    cluster_stop(&c);
}

TEST(the_expected_revision_wins_over_outdated_majorities)
{
    struct cluster c;
    cluster_start(&c, 4, NULL, 1);
    struct election first = {.kind = {1, 1, 1, 1}, .revision = {1, 1, 1, 1}, .winner = 1};
    hold_election(&c, &first);
    struct election second = {.kind = {5, 5, 6, 5}, .revision = {1, 1, 2, 1}, .winner = 6};
    hold_election(&c, &second);
    cluster_stop(&c);
}

/* ---- Entries that are not compared (R3) ---------------------------------------------------------------------------------- */

struct seeded {
    int peers;
};

/* "w" is shared, "own" may differ: members keep theirs, a newcomer gets one whole. */
static void with_own(struct cluster_peer *p, void *context)
{
    const struct seeded *s = context;
    size_t bytes = 3 * LEAF + 5;
    unsigned char *w = malloc(bytes), *own = malloc(bytes);
    bool newcomer = p->index == 2;
    if (p->index >= s->peers) {
        free(w);
        free(own);
        return;
    }
    fill(w, bytes, newcomer ? 9 : 1);
    fill(own, bytes, 20 + p->index);
    pcclTensorInfo_t info[2] = {
        {.name = "w", .data = w, .count = bytes, .datatype = pcclUint8},
        {.name = "own", .data = own, .count = bytes, .datatype = pcclInt8, .allow_content_inequality = true}};
    pcclSharedState_t state = {.revision = newcomer ? 0 : s->peers == 2 ? 1 : 2, .count = 2, .infos = info};
    pcclSharedStateSyncInfo_t moved = {0};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &moved),
              pcclSuccess);
    EXPECT(holds(w, bytes, 1));
    if (newcomer) {
        EXPECT(holds(own, bytes, 20)); /* whole, from the lowest id of the last sync */
        EXPECT_EQ(state.revision, 2);
    } else if (s->peers == 3) {
        EXPECT(holds(own, bytes, 20 + p->index));
        EXPECT_EQ(moved.rx_bytes, 0);
    }
    free(w);
    free(own);
}

static void let_in(struct cluster_peer *p, void *context)
{
    int want = *(const int *)context;
    if (p->index >= want) {
        return;
    }
    if (p->index == want - 1) {
        EXPECT_EQ(cluster_join(p->comm, want), pcclSuccess);
    } else {
        while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < want) {
            EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
        }
    }
}

TEST(entries_that_may_differ_are_kept_by_members_and_seeded_to_newcomers)
{
    struct cluster c;
    struct seeded s = {2};
    int want = 1;
    cluster_master(&c);
    for (int i = 0; i < 3; i++) {
        cluster_create(&c, i, 0, 1, 0);
    }
    /* one after the other, so that ids are in the order of indices */
    cluster_run(&c, let_in, &want);
    want = 2;
    cluster_run(&c, let_in, &want);
    cluster_run(&c, with_own, &s);
    want = s.peers = 3;
    cluster_run(&c, let_in, &want);
    cluster_run(&c, with_own, &s);
    cluster_stop(&c);
}
