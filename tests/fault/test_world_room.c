/* test_world_room.c - worlds share the lanes of a process: what one takes of their rooms leaves the others what they need.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdlib.h>

#include "tests/fault/peer_calls.h"

enum { MEMBERS = 2, WAITING = 64 /* operations */, MEGABYTE = 1 << 18 /* floats */, LARGE = 16 * MEGABYTE };

struct two {
    pcclComm_t *first, *second;
    float *in, *out;
    pcclAsyncReduceOp_t waits[WAITING];
};

static pcclComm_t *create(struct peer *self, const char *name)
{
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params, .world = name, .world_size = MEMBERS, .rank = (uint32_t)self->index};
    return peer_world(self, &params);
}

static void create_both(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own = calloc(1, sizeof *w);
    (void)argument;
    w->first = create(self, "first");
    w->second = create(self, "second");
    w->in = malloc(MEGABYTE * sizeof *w->in);
    w->out = calloc((size_t)WAITING * MEGABYTE, sizeof *w->out);
    for (size_t i = 0; i < MEGABYTE; i++) {
        w->in[i] = (float)((self->index + 1) * (int)(i % 1000));
    }
    peer_result(reply, pcclSuccess);
}

/* All of the first world, a megabyte each, in the order of their tags or from the last on. */
static void launch_first(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    bool backwards = *(const bool *)argument;
    for (uint32_t i = 0; i < WAITING; i++) {
        uint32_t k = backwards ? WAITING - 1 - i : i;
        const pcclReduceDescriptor_t d = peer_floats(MEGABYTE, k);
        PEER_EXPECT(self, pcclAllReduceAsync(w->in, w->out + (size_t)k * MEGABYTE, &d, w->first, &w->waits[k]) == pcclSuccess);
    }
    peer_result(reply, pcclSuccess);
}

static void await_first(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    size_t wrong = 0;
    (void)argument;
    for (uint32_t k = 0; k < WAITING; k++) {
        PEER_EXPECT(self, pcclAwaitAsyncReduce(&w->waits[k], NULL) == pcclSuccess);
        for (size_t i = 0; i < MEGABYTE; i++) {
            wrong += w->out[(size_t)k * MEGABYTE + i] != (float)(3 * (int)(i % 1000));
        }
    }
    PEER_EXPECT(self, wrong == 0);
    peer_result(reply, pcclSuccess);
}

static void reduce_second(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    float *in = peer_buffer(self, 0, LARGE * sizeof *in), *out = peer_buffer(self, 1, LARGE * sizeof *out);
    const pcclReduceDescriptor_t d = peer_floats(LARGE, 1);
    size_t wrong = 0;
    (void)argument;
    for (size_t i = 0; i < LARGE; i++) {
        in[i] = (float)((self->index + 1) * (int)(i % 999));
    }
    peer_result(reply, pcclAllReduce(in, out, &d, w->second, NULL));
    for (size_t i = 0; i < LARGE; i++) {
        wrong += out[i] != (float)(3 * (int)(i % 999));
    }
    PEER_EXPECT(self, wrong == 0);
}

TEST(a_world_goes_on_while_another_has_launched_all_it_may_and_its_peers_have_not) /* their room is what it waits for */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    bool backwards = true, forwards = false;
    if (!processes_start(&all, &(struct processes_options){.count = MEMBERS, .failures = &test_failures})) {
        return;
    }
    processes_do(&all, 3, create_both, NULL, 0, NULL);
    process_do(&all, 0, launch_first, &forwards, sizeof forwards);
    processes_do(&all, 3, reduce_second, NULL, 0, reply);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    process_do(&all, 1, launch_first, &backwards, sizeof backwards);
    processes_do(&all, 3, await_first, NULL, 0, reply);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    processes_stop(&all);
}
