/* test_window_cut.c - a network that is cut while a member destroys its window: the call returns while the cut lasts.
 *
 * The master's loss time is longer than a test waits, so that nothing but the silence of the others can end the call.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum { BYTES = 32 << 20, HALF = BYTES / 2, STALL_MS = 1000, LOSS_MS = 600000, MOST = 3 };

/* A peer process keeps it between calls. */
struct cut_window {
    pcclWindow_t *window;
    unsigned char *memory, *own; /* of the window; what it puts and gets */
    pcclAsyncOp_t put, get, add;
    uint64_t was;
};

static unsigned char *pages(void)
{
    unsigned char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* argument: none.  value[0]: its rank. */
static void open_window(struct peer *self, const void *argument, struct reply *reply)
{
    struct cut_window *w = calloc(1, sizeof *w);
    pcclPeerInfo_t me = {0};
    (void)argument;
    w->memory = pages();
    w->own = pages();
    pcclWindowParams_t params = {.size = sizeof params, .memory = w->memory, .bytes = BYTES, .rights = pcclWindowAll};
    EXPECT_EQ(pcclGetSelf(self->comm, &me), pcclSuccess);
    reply->value[0] = me.rank;
    reply->result = (int)pcclCreateWindow(&params, self->comm, &w->window);
    self->own = w;
}

/* argument: uint32_t, the rank that it puts to, gets from and counts at.  A note: bytes have begun to move. */
static void begin(struct peer *self, const void *argument, struct reply *reply)
{
    struct cut_window *w = self->own;
    uint32_t rank = *(const uint32_t *)argument;
    uint64_t one = 1;
    struct watch watch = {0};
    watch_start(&watch, self, peer_moved, 1 << 20, 0);
    EXPECT_EQ(pcclPut(w->own, HALF, rank, HALF, w->window, &w->put), pcclSuccess);
    EXPECT_EQ(pcclGet(w->own + HALF, HALF, rank, 0, w->window, &w->get), pcclSuccess);
    EXPECT_EQ(pcclFetchAdd(&w->was, &one, pcclUint64, rank, 0, w->window, &w->add), pcclSuccess);
    while (!watch.fired) {
        sched_yield();
    }
    EXPECT(watch_end(&watch));
    reply->result = pcclSuccess;
}

/* Memory that is touched after the call has returned ends the process. */
static void close_window(struct peer *self, const void *argument, struct reply *reply)
{
    struct cut_window *w = self->own;
    (void)argument;
    reply->result = (int)pcclDestroyWindow(w->window);
    EXPECT_EQ(munmap(w->memory, BYTES), 0);
}

/* The operations of begin, whose member has been out of reach. */
static void end(struct peer *self, const void *argument, struct reply *reply)
{
    struct cut_window *w = self->own;
    pcclAsyncOp_t *const all[] = {&w->put, &w->get, &w->add};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        reply->value[i] = (int64_t)peer_result(reply, pcclAwaitAsync(all[i], NULL));
    }
    EXPECT_EQ(munmap(w->own, BYTES), 0);
    free(w);
    self->own = NULL;
    reply->result = pcclSuccess;
}

static void close_own(struct peer *self, const void *argument, struct reply *reply)
{
    struct cut_window *w = self->own;
    close_window(self, argument, reply);
    EXPECT_EQ(munmap(w->own, BYTES), 0);
    free(w);
    self->own = NULL;
}

struct cut_scene {
    struct network net;
    struct processes all;
    int by_rank[MOST];
};

static bool scene_open(struct cut_scene *s, int count)
{
    struct reply reply[PROCESSES_MOST];
    const char *why = network_start(&s->net, count);
    test_skipped = why != NULL ? why : test_skipped;
    if (why != NULL) {
        return false;
    }
    struct processes_options o = {.count = count, .failures = &test_failures, .pool = 2, .stall_ms = STALL_MS,
                                  .dead_ms = "1000", .loss_ms = LOSS_MS};
    if (!peers_start_on(&s->all, &s->net, &o)) {
        network_stop(&s->net);
        return false;
    }
    processes_do(&s->all, processes_set(count), open_window, NULL, 0, reply);
    for (int i = 0; i < count; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        s->by_rank[reply[i].value[0]] = i;
    }
    return true;
}

static void scene_close(struct cut_scene *s)
{
    processes_stop(&s->all);
    network_stop(&s->net);
}

/* The others destroy theirs, too. */
TEST(a_member_that_is_cut_off_destroys_its_window)
{
    struct cut_scene s;
    if (!scene_open(&s, 3)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    EXPECT(network_isolate(&s.net, 0, true));
    processes_do(&s.all, 7, close_own, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    EXPECT(network_isolate(&s.net, 0, false));
    scene_close(&s);
}

/* Both ends wait for the other's bytes. */
TEST(operations_across_a_cut_end_with_the_window)
{
    struct cut_scene s;
    if (!scene_open(&s, 2)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    EXPECT(network_shape(&s.net, 0) && network_shape(&s.net, 1));
    EXPECT(network_limit(&s.net, 0, 1, "50mbit") && network_limit(&s.net, 1, 0, "50mbit"));
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t other = 1 - rank;
        process_send(&s.all, s.by_rank[rank], begin, &other, sizeof other);
    }
    processes_take(&s.all, 3, reply);
    EXPECT(network_drop(&s.net, 0, 1, true) && network_drop(&s.net, 1, 0, true));
    EXPECT(network_isolate(&s.net, 0, true));
    reply[0] = process_do(&s.all, 0, close_window, NULL, 0);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    reply[0] = process_do(&s.all, 0, end, NULL, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[0].value[i], pcclRankConnectionLost);
    }
    EXPECT(strstr(reply[0].text, "rank ") != NULL);
    EXPECT_EQ(process_do(&s.all, 1, close_window, NULL, 0).result, pcclSuccess);
    (void)process_do(&s.all, 1, end, NULL, 0);
    EXPECT(network_isolate(&s.net, 0, false));
    scene_close(&s);
}
