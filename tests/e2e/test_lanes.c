/* test_lanes.c - operations on real sockets: values, pools, orders of launches, handles, threads, memory.
 *
 * Every value is compared with one computed here from what each peer put in.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <unistd.h>

#include "tests/e2e/cluster.h"

enum { ORDER_OPS = 64, FRESH_TAGS = 20000 };

/* What peer `index` puts at position i: small integers, so that every sum is exact. */
static float input_at(int index, size_t i)
{
    return (float)((i * 7 + (size_t)index * 13) % 101);
}

static float *input_new(int index, size_t count)
{
    float *x = malloc((count + 1) * sizeof *x);
    for (size_t i = 0; i < count; i++) {
        x[i] = input_at(index, i);
    }
    return x;
}

static size_t sum_errors(const float *y, size_t count, int world)
{
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        float want = 0;
        for (int p = 0; p < world; p++) {
            want += input_at(p, i);
        }
        bad += y[i] != want;
    }
    return bad;
}

static void all_sizes(struct cluster_peer *p, void *context)
{
    static const size_t counts[] = {0, 1, 2, 3, 100, 4095, 4096, 4097, 20000, 100001, 1048576, 1500007};
    int world = p->cluster->count;
    (void)context;
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        size_t n = counts[k];
        float *x = input_new(p->index, n), *y = calloc(n + 1, sizeof *y);
        pcclReduceDescriptor_t d = cluster_floats(n, 3);
        pcclReduceInfo_t info = {0};
        EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, &info), pcclSuccess);
        EXPECT_EQ(sum_errors(y, n, world), 0);
        EXPECT_EQ(info.local_world_size, world);
        if (n == 1048576 && (world == 2 || world == 4)) { /* the plan's promise: 2 (W - 1) / W of the buffer each way */
            EXPECT_EQ(info.tx_bytes, 2 * (uint64_t)(world - 1) * n * sizeof *x / (uint64_t)world);
            EXPECT_EQ(info.rx_bytes, info.tx_bytes);
        }
        EXPECT_EQ(pcclAllReduce(x, x, &d, p->comm, NULL), pcclSuccess); /* in place */
        EXPECT_EQ(memcmp(x, y, n * sizeof *x), 0);
        free(x);
        free(y);
    }
}

TEST(sums_are_exact_for_all_sizes_worlds_and_pools)
{
    static const int worlds[] = {2, 3, 4, 2};
    static const uint32_t pools[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        struct cluster c;
        cluster_start(&c, worlds[i], NULL, pools[i]);
        cluster_run(&c, all_sizes, NULL);
        cluster_stop(&c);
    }
}

static size_t order_count(int op)
{
    return (size_t)(op % 4 == 0 ? 1 : op % 4 == 1 ? 3000 : op % 4 == 2 ? 60000 : 200000);
}

/* Without room granted beforehand the two ends would fill each other's sockets and wait for ever. */
static void opposite_orders(struct cluster_peer *p, void *context)
{
    float *x[ORDER_OPS], *y[ORDER_OPS];
    pcclAsyncReduceOp_t handle[ORDER_OPS];
    (void)context;
    for (int k = 0; k < ORDER_OPS; k++) {
        x[k] = input_new(p->index, order_count(k));
        y[k] = calloc(order_count(k), sizeof(float));
    }
    for (int k = 0; k < ORDER_OPS; k++) {
        int op = p->index == 0 ? k : ORDER_OPS - 1 - k;
        pcclReduceDescriptor_t d = cluster_floats(order_count(op), 100 + (uint64_t)op);
        EXPECT_EQ(pcclAllReduceAsync(x[op], y[op], &d, p->comm, &handle[op]), pcclSuccess);
    }
    for (int k = 0; k < ORDER_OPS; k++) {
        EXPECT_EQ(pcclAwaitAsyncReduce(&handle[k], NULL), pcclSuccess);
        EXPECT_EQ(sum_errors(y[k], order_count(k), p->cluster->count), 0);
        free(x[k]);
        free(y[k]);
    }
}

TEST(sixty_four_operations_launched_in_opposite_orders_complete)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 2);
    cluster_run(&c, opposite_orders, NULL);
    cluster_stop(&c);
}

static void even_lanes(struct cluster_peer *p, void *context)
{
    enum { COUNT = 4 << 20, MOST = 64 };
    float *x = input_new(p->index, COUNT), *y = calloc(COUNT, sizeof *y);
    pcclReduceDescriptor_t d = cluster_floats(COUNT, 1);
    (void)context;
    EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclSuccess);
    pcclConnectionStats_t stats[MOST];
    size_t count = 0;
    EXPECT_EQ(pcclGetConnectionStats(p->comm, stats, MOST, &count), pcclSuccess);
    uint64_t lane[4] = {0}, all = 0;
    for (size_t i = 0; i < count; i++) {
        if (stats[i].lane < 4) {
            lane[stats[i].lane] += stats[i].tx_bytes;
            all += stats[i].tx_bytes;
        }
    }
    EXPECT(all > COUNT * sizeof *x);
    for (int i = 0; i < 4; i++) {
        EXPECT(lane[i] * 100 >= all * 20 && lane[i] * 100 <= all * 30);
    }
    free(x);
    free(y);
}

TEST(one_operation_moves_a_quarter_over_each_of_four_connections)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 4);
    cluster_run(&c, even_lanes, NULL);
    cluster_stop(&c);
}

struct other {
    struct cluster_peer *peer;
    pcclAsyncReduceOp_t handle;
    pcclResult_t result;
};

static void *await_elsewhere(void *argument)
{
    struct other *o = argument;
    o->result = pcclAwaitAsyncReduce(&o->handle, NULL);
    return NULL;
}

static void handles(struct cluster_peer *p, void *context)
{
    float x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
    pcclAsyncReduceOp_t h[3];
    size_t index = 9;
    bool done = true;
    pthread_barrier_t *looked = context;
    /* peer 1 launches only the second: it is the one that ends */
    for (int i = 0; i < 3; i++) {
        pcclReduceDescriptor_t d = cluster_floats(1, (uint64_t)i);
        if (p->index == 0 || i == 1) {
            EXPECT_EQ(pcclAllReduceAsync(&x[i], &y[i], &d, p->comm, &h[i]), pcclSuccess);
            EXPECT_EQ(pcclAllReduceAsync(&x[i], &y[i], &d, p->comm, &h[i]), pcclInvalidArgument); /* tag in flight */
        }
    }
    if (p->index == 0) {
        EXPECT_EQ(pcclWaitAnyAsyncReduce(h, 3, -1, &index), pcclSuccess);
        EXPECT_EQ(index, 1);
        EXPECT_EQ(pcclTestAsyncReduce(&h[0], &done), pcclSuccess);
        EXPECT(!done);
        EXPECT_EQ(pcclWaitAnyAsyncReduce(h, 1, 20, &index), pcclSuccess);
        EXPECT_EQ(index, 1); /* timed out: count */
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclPendingAsyncOps);
    }
    pthread_barrier_wait(looked);
    EXPECT_EQ(pcclAwaitAsyncReduce(&h[1], NULL), pcclSuccess);
    EXPECT(y[1] == 4.0f);
    EXPECT_EQ(pcclAwaitAsyncReduce(&h[1], NULL), pcclInvalidUsage); /* spent */
    EXPECT_EQ(pcclTestAsyncReduce(&h[1], &done), pcclInvalidUsage);
    for (int i = 0; i < 3; i += 2) {
        pcclReduceDescriptor_t d = cluster_floats(1, (uint64_t)i);
        if (p->index == 1) {
            EXPECT_EQ(pcclAllReduceAsync(&x[i], &y[i], &d, p->comm, &h[i]), pcclSuccess);
        }
        struct other o = {.peer = p, .handle = h[i]};
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, NULL, await_elsewhere, &o), 0);
        pthread_join(thread, NULL);
        EXPECT_EQ(o.result, pcclSuccess);
        EXPECT(y[i] == 2 * x[i]);
    }
}

TEST(handles_are_tested_waited_for_and_spent_from_any_thread)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    pthread_barrier_t looked;
    pthread_barrier_init(&looked, NULL, 2);
    cluster_run(&c, handles, &looked);
    pthread_barrier_destroy(&looked);
    cluster_stop(&c);
}

struct user {
    struct cluster_peer *peer;
    uint64_t tag;
};

static void *reduce_many(void *argument)
{
    struct user *u = argument;
    for (int k = 0; k < 200; k++) {
        size_t n = k % 3 == 0 ? 50000 : 10;
        float *x = input_new(u->peer->index, n), *y = calloc(n, sizeof *y);
        pcclReduceDescriptor_t d = cluster_floats(n, u->tag);
        EXPECT_EQ(pcclAllReduce(x, y, &d, u->peer->comm, NULL), pcclSuccess);
        EXPECT_EQ(sum_errors(y, n, u->peer->cluster->count), 0);
        free(x);
        free(y);
    }
    return NULL;
}

static void three_threads(struct cluster_peer *p, void *context)
{
    struct user user[3];
    pthread_t thread[3];
    (void)context;
    for (int i = 0; i < 3; i++) {
        user[i] = (struct user){p, (uint64_t)i};
        EXPECT_EQ(pthread_create(&thread[i], NULL, reduce_many, &user[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
    }
}

TEST(threads_of_one_peer_reduce_side_by_side)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 2);
    cluster_run(&c, three_threads, NULL);
    cluster_stop(&c);
}

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(f);
    }
    return resident;
}

static void fresh_tags(struct cluster_peer *p, void *context)
{
    uint64_t first = *(const uint64_t *)context;
    for (uint64_t k = 0; k < test_scaled(FRESH_TAGS); k++) {
        float x = 1, y = 0;
        pcclReduceDescriptor_t d = cluster_floats(1, first + k);
        EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclSuccess);
    }
}

TEST(memory_stays_flat_over_many_fresh_tags)
{
    struct cluster c;
    uint64_t first = 0;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, fresh_tags, &first);
    long before = resident_pages();
    first = FRESH_TAGS;
    cluster_run(&c, fresh_tags, &first);
    long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
    printf("%u tags more: %ld KiB more\n", test_scaled(FRESH_TAGS), grown / 1024);
    /* The tables of tags double now and then, at 32 bytes a tag; 4.6 KB a tag, as in the original, would be 180 MiB. */
    bool sanitized = getenv("PCCL_SANITIZED") != NULL; /* it keeps freed memory, and shadows of all */
    EXPECT(grown < (sanitized ? 512 : 16) << 20);
    cluster_stop(&c);
}

static void bulk(struct cluster_peer *p, void *context)
{
    enum { OPS = 24 };
    float *x[OPS], *y[OPS];
    pcclReduceOpDescriptor_t list[OPS];
    (void)context;
    for (int window = 1; window <= 9; window += 4) {
        for (int i = 0; i < OPS; i++) {
            size_t n = (size_t)(i * i * 40 + 1);
            x[i] = input_new(p->index, n);
            y[i] = calloc(n, sizeof(float));
            list[i] = (pcclReduceOpDescriptor_t){x[i], y[i], cluster_floats(n, (uint64_t)i)};
        }
        pcclReduceInfo_t info;
        EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, OPS, p->comm, &info, window), pcclSuccess);
        EXPECT_EQ(info.local_world_size, p->cluster->count);
        for (int i = 0; i < OPS; i++) {
            EXPECT_EQ(sum_errors(y[i], list[i].descriptor.count, p->cluster->count), 0);
            free(x[i]);
            free(y[i]);
        }
    }
}

TEST(many_with_retry_reduces_every_one)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 2);
    cluster_run(&c, bulk, NULL);
    cluster_stop(&c);
}

enum { FUSED_OPS = 300, FUSED_TAGS = 7, FUSED_WORLD = 3 };

/* Small ones, in place every third, with tags that come again within what is launched together, and now and then a large one. */
static void fused(struct cluster_peer *p, void *context)
{
    static float *x[FUSED_WORLD][FUSED_OPS], *y[FUSED_WORLD][FUSED_OPS];
    static const int windows[FUSED_WORLD] = {1000, 16, 5};
    pcclReduceOpDescriptor_t list[FUSED_OPS];
    (void)context;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FUSED_OPS; i++) {
            size_t n = i % 40 == 39 ? 50000 : (size_t)(i % 9 * 113);
            float *in = x[p->index][i] = input_new(p->index, n);
            float *out = y[p->index][i] = i % 3 == 0 ? in : calloc(n + 1, sizeof(float));
            list[i] = (pcclReduceOpDescriptor_t){in, out, cluster_floats(n, (uint64_t)(round == 0 ? i : i * i % FUSED_TAGS))};
        }
        EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, FUSED_OPS, p->comm, NULL, windows[(p->index + round) % FUSED_WORLD]), pcclSuccess);
        for (int i = 0; i < FUSED_OPS; i++) {
            EXPECT_EQ(sum_errors(y[p->index][i], list[i].descriptor.count, p->cluster->count), 0);
            if (i % 3 != 0) {
                free(y[p->index][i]);
            }
            free(x[p->index][i]);
        }
    }
}

TEST(small_ones_that_are_launched_together_are_reduced_one_by_one)
{
    struct cluster c;
    cluster_start(&c, FUSED_WORLD, NULL, 2);
    cluster_run(&c, fused, NULL);
    cluster_stop(&c);
}

enum { TOLD_CALLS = 60, TOLD_OPS = 6, TOLD_COUNT = 150000 };

static uint64_t told_tx[2][TOLD_CALLS], told_rx[2][TOLD_CALLS];

static void told(struct cluster_peer *p, void *context)
{
    (void)context;
    float *x = input_new(p->index, TOLD_COUNT), *y = calloc(TOLD_OPS * TOLD_COUNT, sizeof *y);
    for (unsigned k = 0; k < test_scaled(TOLD_CALLS); k++) {
        pcclReduceOpDescriptor_t op[TOLD_OPS];
        pcclReduceInfo_t info = {0};
        for (uint64_t i = 0; i < TOLD_OPS; i++) {
            op[i] = (pcclReduceOpDescriptor_t){
                .sendbuf = x, .recvbuf = y + i * TOLD_COUNT, .descriptor = cluster_floats(TOLD_COUNT - i, i)};
        }
        EXPECT_EQ(pcclAllReduceMultipleWithRetry(op, TOLD_OPS, p->comm, &info, TOLD_OPS), pcclSuccess);
        told_tx[p->index][k] = info.tx_bytes;
        told_rx[p->index][k] = info.rx_bytes;
    }
    free(x);
    free(y);
}

/* Bytes read when the result is complete miss those that leave after it. */
TEST(what_one_peer_tells_it_has_sent_the_other_tells_it_has_received)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 4);
    cluster_run(&c, told, NULL);
    for (unsigned k = 0; k < test_scaled(TOLD_CALLS); k++) {
        EXPECT_EQ(told_tx[0][k], told_rx[1][k]);
        EXPECT_EQ(told_tx[1][k], told_rx[0][k]);
        EXPECT_EQ(told_tx[0][k] + told_rx[0][k],
                  2 * sizeof(float) * (TOLD_OPS * (uint64_t)TOLD_COUNT - TOLD_OPS * (TOLD_OPS - 1) / 2));
    }
    cluster_stop(&c);
}
