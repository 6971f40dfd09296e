/* distant_state.c - a shared state that goes to a newcomer between hosts of an emulated network, for bench/wan/distant.py.
 *
 * A rank per host, the master in rank 0's process.  The last rank has nothing before each call, all others have the same state.
 * Usage: distant_state BYTES CALLS BUDGET_S IDLE_S; a line of JSON for each call.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wan/distant_world.h"

struct state {
    struct distant_world w;
    float *data;
    size_t count;
    uint64_t revision; /* of the last call */
};

static bool is_newcomer(const struct state *s)
{
    return s->w.d.rank == s->w.d.world - 1;
}

static void begin(void *context)
{
    struct state *s = context;
    for (size_t i = 0; i < s->count; i++) {
        s->data[i] = is_newcomer(s) ? -1 : distant_given(0, i);
    }
}

static void call(void *context)
{
    struct state *s = context;
    pcclTensorInfo_t tensor = {.name = "state", .data = s->data, .count = s->count, .datatype = pcclFloat, .device_type = pcclDeviceCpu};
    pcclSharedState_t shared = {.revision = is_newcomer(s) ? 0 : s->revision + 1, .count = 1, .infos = &tensor};
    distant_must(pcclSynchronizeSharedState(s->w.comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL), "synchronise");
    s->revision = shared.revision;
}

static long wrong(void *context)
{
    const struct state *s = context;
    long bad = 0;
    for (size_t i = 0; i < s->count; i++) {
        bad += s->data[i] != distant_given(0, i);
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct state s = {.revision = 0};
    distant_world_begin(&s.w, argc, argv, 0);
    s.count = s.w.d.bytes / sizeof(float);
    s.data = distant_memory(s.count * sizeof(float));
    distant_world_join(&s.w);
    distant_measure(&s.w.d, &(struct distant_calls){.begin = begin, .call = call, .wrong = wrong, .context = &s});
    distant_world_end(&s.w);
    free(s.data);
    return 0;
}
