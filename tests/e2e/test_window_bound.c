/* test_window_bound.c - a bound on the windows that bites is told of, and one that does not is not.
 *
 * The peers are as near as one process; their connections say that they are far away, so that their windows grow as those of long links.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine/threads/lane_hold.h"
#include "tests/testing.h"

#include "api/api.h"
#include "engine/links/link.h"
#include "tests/e2e/cluster.h"
#include "tests/spawn.h"

enum { COUNT = 3, LINKS = COUNT - 1, ELEMENTS = 9 << 20, SUMS = 100, WIDE = 64 /* frames */ };
#define RTT_NS INT64_C(500000000)

static struct transport_ops far_ops[COUNT][LINKS];
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static int warnings, infos;
static char first[512];

static void keep(pcclLogLevel_t level, const char *message, void *user)
{
    (void)user;
    if (strstr(message, "staging memory") != NULL) {
        pthread_mutex_lock(&lines_lock);
        warnings += level == pcclLogWarn;
        infos += level == pcclLogInfo;
        if (first[0] == 0) {
            snprintf(first, sizeof first, "%s", message);
        }
        pthread_mutex_unlock(&lines_lock);
    }
}

static int64_t far_rtt(const struct transport *t)
{
    (void)t;
    return RTT_NS;
}

/* The data connections of a peer; false: not all are there. */
static bool move_links(struct comm *comm, struct transport_ops ops[LINKS])
{
    int moved = 0;
    LIST_FOR_EACH(at, next, &comm->links.all) {
        struct link *l = LIST_ENTRY(at, struct link, all);
        struct stream *s = l->bundle.up ? l->bundle.streams[0] : NULL;
        if (s != NULL && s->transport.ops->rtt_ns != far_rtt) {
            ops[moved] = *s->transport.ops;
            ops[moved].rtt_ns = far_rtt;
            s->transport.ops = &ops[moved];
        }
        moved += s != NULL;
    }
    return moved == LINKS;
}

static void move_away(struct cluster *c)
{
    for (int i = 0; i < COUNT; i++) {
        struct comm *comm = c->peer[i].comm->comm;
        struct lane *lane = comm->engine->lane[0];
        bool done = false;
        for (int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS; !done && spawn_now_ms() < until; sched_yield()) {
            if (lane_try(lane)) {
                pthread_mutex_lock(&comm->lock);
                done = move_links(comm, far_ops[i]);
                pthread_mutex_unlock(&comm->lock);
                lane_let(lane);
            }
        }
        EXPECT(done);
    }
}

static void reduce(struct cluster_peer *p, void *context)
{
    const uint64_t *tag = context;
    pcclReduceDescriptor_t how = cluster_floats(ELEMENTS, *tag);
    float *in = malloc(ELEMENTS * sizeof *in), *out = malloc(ELEMENTS * sizeof *out);
    size_t wrong = 0;
    EXPECT(in != NULL && out != NULL);
    for (size_t i = 0; i < ELEMENTS; i++) {
        in[i] = (float)(i % 1021 + (size_t)p->index + *tag);
    }
    EXPECT_EQ(pcclAllReduce(in, out, &how, p->comm, NULL), pcclSuccess);
    for (size_t i = 0; i < ELEMENTS; i++) {
        wrong += out[i] != (float)(COUNT * (i % 1021 + *tag) + COUNT * (COUNT - 1) / 2);
    }
    EXPECT_EQ(wrong, 0);
    free(in);
    free(out);
}

/* Of the data connections of a peer. */
static void stats_of(const struct cluster *c, int i, pcclConnectionStats_t data[LINKS])
{
    pcclConnectionStats_t all[2 * LINKS];
    size_t count = 0, found = 0;
    EXPECT_EQ(pcclGetConnectionStats(c->peer[i].comm, all, 2 * LINKS, &count), pcclSuccess);
    EXPECT_EQ(count, 2 * LINKS);
    for (size_t k = 0; k < count; k++) {
        if (all[k].lane == 0) {
            data[found++ % LINKS] = all[k];
        } else {
            EXPECT_EQ(all[k].window_bytes + all[k].granted_bytes + all[k].bounded_operations, 0);
        }
    }
    EXPECT_EQ(found, LINKS);
}

static void start(struct cluster *c, const char *staging)
{
    warnings = infos = 0;
    first[0] = 0;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_ALGO", "allreduce:direct", 1);
    setenv("PCCL_STAGING_BYTES", staging, 1);
    cluster_start(c, COUNT, NULL, 1);
    EXPECT_EQ(pcclSetLogCallback(keep, pcclLogInfo, NULL), pcclSuccess);
    for (uint64_t tag = 0; tag < 2; tag++) { /* connections are there, and windows as those of near peers */
        cluster_run(c, reduce, &tag);
    }
    for (int i = 0; i < COUNT; i++) {
        pcclConnectionStats_t data[LINKS];
        stats_of(c, i, data);
        for (int k = 0; k < LINKS; k++) {
            EXPECT_EQ(data[k].window_bytes, FLOW_BASE * BOUNDS_FRAME_BYTES);
            EXPECT_EQ(data[k].granted_bytes, data[k].window_bytes);
            EXPECT_EQ(data[k].bounded_operations, 0);
        }
    }
    move_away(c);
}

static void stop(struct cluster *c)
{
    cluster_stop(c);
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
    unsetenv("PCCL_STAGING_BYTES");
    unsetenv("PCCL_ALGO");
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(bound_that_cuts_windows_short_is_in_the_statistics_and_once_in_the_log) /* an operator would look for the fault in the link */
{
    struct cluster c;
    uint64_t before[COUNT][LINKS] = {{0}}, most = 0;
    int bounded = 0;
    start(&c, "0");
    for (uint64_t tag = 10; tag < 10 + SUMS && (bounded < 2 || most < 2) && test_failures == 0; tag++) {
        cluster_run(&c, reduce, &tag);
        bounded = 0;
        for (int i = 0; i < COUNT; i++) {
            pcclConnectionStats_t data[LINKS];
            stats_of(&c, i, data);
            for (int k = 0; k < LINKS; k++) {
                const pcclConnectionStats_t *s = &data[k];
                EXPECT(s->bounded_operations - before[i][k] <= 1); /* one for each sum at most */
                EXPECT(s->window_bytes % BOUNDS_FRAME_BYTES == 0 && s->granted_bytes % BOUNDS_FRAME_BYTES == 0);
                EXPECT(s->bounded_operations == 0 ? s->granted_bytes == s->window_bytes : 4 * s->granted_bytes < 3 * s->window_bytes);
                before[i][k] = s->bounded_operations;
                bounded += s->bounded_operations > 0;
                most = s->bounded_operations > most ? s->bounded_operations : most;
            }
        }
    }
    EXPECT(bounded >= 2 && most >= 2);
    EXPECT_EQ(warnings, 1);
    EXPECT_EQ(infos, bounded - 1);
    EXPECT(strstr(first, "500 ms away and back, may have ") != NULL);
    EXPECT(strstr(first, " MiB under way: the staging memory of this process is at its limit of 0 bytes; raise PCCL_STAGING_BYTES") != NULL);
    stop(&c);
}

TEST(windows_that_have_room_are_not_said_to_be_cut_short)
{
    struct cluster c;
    uint64_t window = 0;
    start(&c, "1073741824");
    for (uint64_t tag = 10; tag < 10 + SUMS && window < WIDE * BOUNDS_FRAME_BYTES && test_failures == 0; tag++) {
        cluster_run(&c, reduce, &tag);
        for (int i = 0; i < COUNT; i++) {
            pcclConnectionStats_t data[LINKS];
            stats_of(&c, i, data);
            for (int k = 0; k < LINKS; k++) {
                window = data[k].window_bytes > window ? data[k].window_bytes : window;
                EXPECT_EQ(data[k].granted_bytes, data[k].window_bytes);
                EXPECT_EQ(data[k].bounded_operations, 0);
            }
        }
    }
    EXPECT(window >= WIDE * BOUNDS_FRAME_BYTES);
    EXPECT_EQ(warnings + infos, 0);
    stop(&c);
}
