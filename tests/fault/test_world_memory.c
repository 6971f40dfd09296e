/* test_world_memory.c - what worlds cost the processes in them: those that rest, and those that move large buffers at the same time.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/shm_ring.h"
#include "tests/fault/peer_calls.h"

enum { IDLE_WORLDS = 16, IDLE_OPERATIONS = 1000, IDLE_TAGS = 8, IDLE_MEMBERS = 4, IDLE_MOST_KIB = 64 };

struct worlds {
    pcclComm_t *comm[IDLE_WORLDS + 1];
};

static struct worlds *worlds_of(struct peer *self)
{
    self->own = self->own != NULL ? self->own : calloc(1, sizeof(struct worlds));
    return self->own;
}

static pcclComm_t *create(struct peer *self, int number, uint32_t size)
{
    char name[24];
    snprintf(name, sizeof name, "world %d", number);
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params, .world = name, .world_size = size, .rank = (uint32_t)self->index};
    return peer_world(self, &params);
}

/* ---- Worlds that rest ------------------------------------------------------------------------------------------------ */

struct range {
    int first, end;
};

/* Creates these worlds, if they are not there, and uses each. */
static void use_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    const struct range *r = argument;
    struct worlds *w = worlds_of(self);
    for (int k = r->first; k < r->end; k++) {
        w->comm[k] = w->comm[k] != NULL ? w->comm[k] : create(self, k, IDLE_MEMBERS);
        for (unsigned i = 0; i < test_scaled(IDLE_OPERATIONS); i++) {
            float in[16] = {(float)(self->index + 1)}, out[16] = {0};
            const pcclReduceDescriptor_t d = peer_floats(16, i % IDLE_TAGS);
            PEER_EXPECT(self, pcclAllReduce(in, out, &d, w->comm[k], NULL) == pcclSuccess && out[0] == 10);
        }
    }
    peer_result(reply, pcclSuccess);
}

/* value[0]: KiB that are this process's alone, [1]: its half of what it shares with one other. */
static void held(struct peer *self, const void *argument, struct reply *reply)
{
    char line[512];
    bool ring = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    (void)self;
    (void)argument;
    reply->value[0] = reply->value[1] = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        long kib;
        if (strchr(line, '-') != NULL && line[0] != 'P' && line[0] != 'S') { /* the line that begins a mapping */
            ring = strstr(line, "memfd:pccl") != NULL;
        } else if (sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            reply->value[0] += kib;
        } else if (ring && sscanf(line, "Shared_Dirty: %ld", &kib) == 1) {
            reply->value[1] += kib;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    reply->value[1] /= 2;
    peer_result(reply, pcclSuccess);
}

/* Of one process, for each of the worlds but the first, with which the library was started. */
static int64_t grown(const struct reply *now, const struct reply *first)
{
    return (now->value[0] + now->value[1] - first->value[0] - first->value[1]) / IDLE_WORLDS;
}

static int64_t most_grown(const struct reply *now, const struct reply *first)
{
    int64_t most = 0;
    for (int i = 0; i < IDLE_MEMBERS; i++) {
        most = grown(&now[i], &first[i]) > most ? grown(&now[i], &first[i]) : most;
    }
    return most;
}

/* Of all processes, the most that is shared, which is most of what is given back. */
static int64_t most_shared(const struct reply *now)
{
    int64_t most = 0;
    for (int i = 0; i < IDLE_MEMBERS; i++) {
        most = now[i].value[1] > most ? now[i].value[1] : most;
    }
    return most;
}

/* Worlds give back what they hold when they have not been used for a while: asked until then.  A sanitizer keeps what is freed. */
static void held_at_rest(struct processes *all, struct reply *reply, const struct reply *first)
{
    int64_t by = getenv("PCCL_SANITIZED") != NULL ? 0 : spawn_now_ms() + SPAWN_PATIENCE_MS;
    do {
        processes_do(all, processes_set(IDLE_MEMBERS), held, NULL, 0, reply);
    } while (spawn_now_ms() < by && (first != NULL ? most_grown(reply, first) : most_shared(reply)) > IDLE_MOST_KIB);
}

TEST(a_peer_holds_64_KiB_at_most_for_an_idle_world_of_four) /* 126 KiB and half of its rings */
{
    struct processes all;
    struct reply first[PROCESSES_MOST], now[PROCESSES_MOST];
    if (!processes_start(&all, &(struct processes_options){.count = IDLE_MEMBERS, .failures = &test_failures})) {
        return;
    }
    processes_do(&all, processes_set(IDLE_MEMBERS), use_worlds, &(struct range){0, 1}, sizeof(struct range), NULL);
    held_at_rest(&all, first, NULL);
    processes_do(&all, processes_set(IDLE_MEMBERS), use_worlds, &(struct range){1, IDLE_WORLDS + 1}, sizeof(struct range), NULL);
    held_at_rest(&all, now, first);
    for (int i = 0; i < IDLE_MEMBERS; i++) {
        printf("# process %d holds %ld KiB for each of %d idle worlds of %d\n", i, (long)grown(&now[i], &first[i]), IDLE_WORLDS,
               IDLE_MEMBERS);
    }
    EXPECT(most_grown(now, first) <= IDLE_MOST_KIB || getenv("PCCL_SANITIZED") != NULL);
    processes_do(&all, processes_set(IDLE_MEMBERS), use_worlds, &(struct range){0, 1}, sizeof(struct range), NULL);
    processes_stop(&all);
}

/* ---- Worlds that move large buffers ---------------------------------------------------------------------------------- */

enum {
    BUSY_WORLDS = 8, BUSY_MEMBERS = 3, BUSY_FLOATS = 4 << 20, ALONE_FLOATS = 16 << 20,
    ROOM_BYTES = 16 << 20,                    /* of the one lane */
    LINK_RING_BYTES = 2 * (SHM_RING_BYTES + SHM_RING_CONTROL_BYTES + SHM_RING_PAGE), /* shared with one other: in place of socket buffers */
    SLACK_BYTES = 2 << 20,                    /* plans, tables, the heap */
};

struct busy {
    int worlds;
    size_t count;   /* of each */
    bool at_once;
};

/* Out of place, in each of so many worlds.  value[0]: the most resident meanwhile, beyond what was before, the buffers touched. */
static void reduce_busy(struct peer *self, const void *argument, struct reply *reply)
{
    const struct busy *b = argument;
    struct worlds *w = worlds_of(self);
    pcclAsyncReduceOp_t op[BUSY_WORLDS];
    size_t all = b->count * (size_t)b->worlds, wrong = 0;
    float *in = peer_buffer(self, 0, all * sizeof *in), *out = peer_buffer(self, 1, all * sizeof *out);
    const pcclReduceDescriptor_t d = peer_floats(b->count, 1);
    for (int k = 0; k < b->worlds; k++) {
        w->comm[k] = w->comm[k] != NULL ? w->comm[k] : create(self, k, BUSY_MEMBERS);
    }
    for (size_t i = 0; i < all; i++) {
        in[i] = (float)((self->index + 1) * (int)(i % 1000));
        out[i] = -1;
    }
    int64_t before = peer_resident();
    peer_peak_reset();
    for (int k = 0; k < b->worlds; k++) {
        size_t at = b->count * (size_t)k;
        PEER_EXPECT(self, pcclAllReduceAsync(in + at, out + at, &d, w->comm[k], &op[k]) == pcclSuccess);
        PEER_EXPECT(self, b->at_once || pcclAwaitAsyncReduce(&op[k], NULL) == pcclSuccess);
    }
    for (int k = 0; k < b->worlds && b->at_once; k++) {
        PEER_EXPECT(self, pcclAwaitAsyncReduce(&op[k], NULL) == pcclSuccess);
    }
    reply->value[0] = peer_peak() - before;
    for (size_t i = 0; i < all; i++) {
        wrong += out[i] != (float)(6 * (int)(i % 1000));
    }
    PEER_EXPECT(self, wrong == 0);
    peer_result(reply, pcclSuccess);
}

static void large_reduces(bool shared)
{
    static const struct busy cases[] = {{1, ALONE_FLOATS, false}, {BUSY_WORLDS, BUSY_FLOATS, false}, {BUSY_WORLDS, BUSY_FLOATS, true}};
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    EXPECT_EQ(setenv("PCCL_SHM_DISABLE", shared ? "0" : "1", 1), 0);
    if (!processes_start(&all, &(struct processes_options){.count = BUSY_MEMBERS, .failures = &test_failures})) {
        return;
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t links = shared ? (int64_t)cases[c].worlds * (BUSY_MEMBERS - 1) * LINK_RING_BYTES : 0;
        processes_do(&all, processes_set(BUSY_MEMBERS), reduce_busy, &cases[c], sizeof cases[c], reply);
        for (int i = 0; i < BUSY_MEMBERS; i++) {
            printf("# process %d: %.1f MiB beyond its buffers, with %d worlds%s; rings that are shared: at most %.1f\n", i,
                   (double)reply[i].value[0] / (1 << 20), cases[c].worlds, cases[c].at_once ? " at once" : "", (double)links / (1 << 20));
            EXPECT(reply[i].value[0] <= ROOM_BYTES + links + SLACK_BYTES || getenv("PCCL_SANITIZED") != NULL);
        }
    }
    processes_stop(&all);
}

TEST(large_reduces_take_16_MiB_a_lane_at_most_whatever_the_number_of_worlds) /* each world stages its own */
{
    large_reduces(false);
    large_reduces(true);
}
