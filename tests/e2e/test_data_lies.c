/* test_data_lies.c - frames on a data connection that no honest member sends, in the middle of an operation: the operation fails at all
 * alike, inputs are as they were, the connection ends, and the next call is right.  Whatever carries the bytes: memory, TCP, a fabric.
 *
 * The liar is honest but for its transport, which changes a field of one frame on its way out.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "api/api.h"
#include "engine/lanes/lane.h"
#include "engine/links/link.h"
#include "tests/e2e/cluster.h"
#include "wire/frame.h"
#include "wire/p2p.h"

enum { WORLD = 3, COUNT = 1 << 20, TRIES = 20, SPACE = FRAME_HEADER_BYTES, NUMBER = SPACE + 13, PHASE = NUMBER + 4, ROOM = NUMBER };

struct lie {
    const char *what;
    uint8_t type;
    unsigned at, bytes;  /* the field, from the beginning of the header */
    uint64_t value;
    bool added;          /* to what is there, instead of it */
    bool harmless;       /* it may pass for the truth */
};

static const struct lie lies[] = {
    {"noise", FRAME_DATA, 0, 8, 0x5A5A5A5A5A5A5A5A, false, false},
    {"a word of another connection", FRAME_DATA, 5, 1, FRAME_READY, false, false},
    {"longer than any frame", FRAME_DATA, 8, 4, UINT32_MAX, false, false},
    {"shorter than what stands before the payload", FRAME_DATA, 8, 4, 3, false, false},
    {"a byte more than the frame has", FRAME_DATA, 8, 4, 1, true, false},
    {"a byte less", FRAME_DATA, 8, 4, UINT32_MAX, true, false},
    {"no payload at all", FRAME_DATA, 8, 4, P2P_DATA_PREFIX, false, false},
    {"of a space that there is not", FRAME_DATA, SPACE, 1, 250, false, false},
    {"a frame beyond the last", FRAME_DATA, NUMBER, 4, UINT32_MAX, false, false},
    {"the frame after the next", FRAME_DATA, NUMBER, 4, 1, true, false},
    {"of a phase that there is not", FRAME_DATA, PHASE, 1, 2, false, false},
    {"a grant of another length", FRAME_CREDIT, 8, 4, 1, true, false},
    {"a grant of a space that there is not", FRAME_CREDIT, SPACE, 1, 250, false, false},
    {"room without end", FRAME_CREDIT, ROOM, 4, UINT32_MAX, false, true},
};

/* The one liar of this process at a time. */
static struct {
    const struct lie *lie;
    const struct transport_ops *honest;
    struct transport_ops ops;
    unsigned char head[STREAM_CREDITS + STREAM_HEAD]; /* of the lane's holder */
    atomic_bool told;
} liar;

/* Where in a piece of whole frames' heads the first one of the lie's type begins; `size`: there is none. */
static size_t find_frame(const unsigned char *at, size_t size)
{
    struct frame_header h;
    size_t i = 0;
    while (i + FRAME_HEADER_BYTES + P2P_DATA_PREFIX <= size && frame_get(at + i, &h)) {
        if (h.type == liar.lie->type) {
            return i;
        }
        i += FRAME_HEADER_BYTES + (h.type == FRAME_CREDIT ? h.length : size);
    }
    return size;
}

static pccl_status lying_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    size_t size = parts[0].iov_len, begin = atomic_load(&liar.told) || size > sizeof liar.head ? size : find_frame(parts[0].iov_base, size);
    const struct lie *lie = liar.lie;
    if (begin == size) {
        return liar.honest->send(t, parts, count, moved);
    }
    uint64_t was = 0;
    unsigned char *field = liar.head + begin + lie->at;
    memcpy(liar.head, parts[0].iov_base, size);
    memcpy(&was, field, lie->bytes);
    was = lie->added ? was + lie->value : lie->value;
    memcpy(field, &was, lie->bytes);
    parts[0].iov_base = liar.head;
    pccl_status st = liar.honest->send(t, parts, count, moved);
    atomic_store(&liar.told, st == PCCL_OK && *moved >= begin + lie->at + lie->bytes);
    return st;
}

/* The next frame of its kind that this member sends over its first link is the lie. */
static void begin_to_lie(struct cluster_peer *p, const struct lie *lie)
{
    struct comm *comm = p->comm->comm;
    struct stream *s = NULL;
    liar.lie = lie;
    atomic_store(&liar.told, false);
    pthread_mutex_lock(&comm->lock);
    LIST_FOR_EACH(i, after, &comm->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        s = s == NULL ? l->bundle.streams[0] : s;
    }
    pthread_mutex_unlock(&comm->lock);
    EXPECT(s != NULL && s->lane != NULL);
    pthread_mutex_lock(&s->lane->lock); /* nobody polls it for long: nothing is under way */
    liar.honest = s->transport.ops;
    liar.ops = *liar.honest;
    liar.ops.send = lying_send;
    s->transport.ops = &liar.ops;
    pthread_mutex_unlock(&s->lane->lock);
}

static float given(int index, size_t i)
{
    return (float)((i * 7 + (size_t)index * 31) % 100);
}

static int failures[WORLD];

/* In place; until it succeeds. */
static void reduce(struct cluster_peer *p, void *context)
{
    float *x = malloc(COUNT * sizeof *x);
    pcclResult_t rc = pcclRankConnectionLost;
    pcclErrorInfo_t why = {0};
    size_t wrong = 0;
    (void)context;
    failures[p->index] = -1;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = given(p->index, i);
    }
    while (rc == pcclRankConnectionLost && failures[p->index] < TRIES && wrong == 0) {
        failures[p->index]++;
        rc = pcclAllReduceOrdered(x, x, COUNT, pcclFloat, pcclSum, p->comm, NULL);
        for (size_t i = 0; rc != pcclSuccess && i < COUNT; i++) {
            wrong += x[i] != given(p->index, i);
        }
        EXPECT(rc == pcclSuccess || pcclGetLastErrorInfo(&why) == pcclSuccess);
        EXPECT(rc == pcclSuccess || (why.error_class == pcclClassRetry && why.cause == pcclCauseLinkLost)); /* not only after a stall */
    }
    EXPECT_EQ(rc, pcclSuccess);
    for (size_t i = 0; rc == pcclSuccess && i < COUNT; i++) {
        wrong += x[i] != given(0, i) + given(1, i) + given(2, i);
    }
    EXPECT_EQ(wrong, 0);
    free(x);
}

TEST(a_lie_on_a_data_connection_costs_that_connection_and_one_attempt_of_all)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct cluster c;
        cluster_start(&c, WORLD, NULL, 1);
        cluster_run(&c, reduce, NULL);
        EXPECT_EQ(failures[0], 0);
        begin_to_lie(&c.peer[i % WORLD], &lies[i]);
        cluster_run(&c, reduce, NULL);
        bool seen = failures[0] > 0 && failures[0] == failures[1] && failures[0] == failures[2];
        EXPECT(atomic_load(&liar.told));
        EXPECT(seen || (lies[i].harmless && failures[0] + failures[1] + failures[2] == 0));
        EXPECT(failures[0] <= 3);
        if (!seen) {
            printf("# %s: %d, %d and %d failures\n", lies[i].what, failures[0], failures[1], failures[2]);
        }
        cluster_run(&c, reduce, NULL);
        EXPECT_EQ(failures[0], 0);
        for (int k = 0; k < WORLD; k++) {
            EXPECT_EQ(cluster_size(c.peer[k].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), WORLD);
        }
        cluster_stop(&c);
    }
}
