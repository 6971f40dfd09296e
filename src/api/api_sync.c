/* api_sync.c - shared state: checks, hashing in the caller's thread, the vote.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "kernels/hash.h"
#include "engine/threads/leaves.h"
#include "engine/comm_calls.h"

enum { STATE_LEAF_BYTES = 1 << 20 };

/* So many entries, with leaves for API_MOST_BYTES in all, can be numbered in 31 bits. */
#define STATE_MOST_ENTRIES ((size_t)1 << 30)

static pcclResult_t state_bad(const char *fmt, ...) PCCL_PRINTF(1, 2);

static pcclResult_t state_bad(const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return api_fail(pcclInvalidArgument, pcclCauseUsage, "sync", "%s", text);
}

/* Checks entry i alone. */
static pcclResult_t state_check_entry(const pcclTensorInfo_t *t, size_t i)
{
    if (t->name == NULL) {
        return state_bad("shared_state->infos[%zu].name is null: give each entry a name of its own", i);
    }
    if ((unsigned)t->datatype >= DTYPE_COUNT) {
        return state_bad("shared_state->infos[%zu].datatype of '%.100s' is %d: expected " API_DATATYPES, i, t->name,
                         (int)t->datatype);
    }
    if (t->device_type != pcclDeviceCpu) {
        return state_bad("shared_state->infos[%zu].device_type of '%.100s' is %d: expected 0 (pcclDeviceCpu), "
                         "this build moves host memory only", i, t->name, (int)t->device_type);
    }
    enum dtype type = (enum dtype)t->datatype;
    size_t most = API_MOST_BYTES / dtype_size(type);
    if (t->count > most) {
        return state_bad("shared_state->infos[%zu].count of '%.100s' is %zu: at most %zu elements of %s fit any memory", i,
                         t->name, t->count, most, dtype_name(type));
    }
    if (t->data == NULL && t->count > 0) {
        return state_bad("shared_state->infos[%zu].data of '%.100s' is null while its count is %zu: "
                         "give its memory, or count 0", i, t->name, t->count);
    }
    return pcclSuccess;
}

struct state_name {
    const char *text; /* borrowed */
    size_t index;
};

static int state_name_order(const void *a, const void *b)
{
    const struct state_name *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Two entries of one name would be told apart by their order alone: sorts, so that many entries cost little. */
static pcclResult_t state_check_names(const pcclSharedState_t *s)
{
    if (s->count < 2) {
        return pcclSuccess;
    }
    struct state_name *names = calloc(s->count, sizeof *names);
    if (names == NULL) {
        return api_fail(pcclInternalError, pcclCauseNoMemory, "sync",
                        "no memory to compare the names of shared_state->count %zu entries: free some", s->count);
    }
    for (size_t i = 0; i < s->count; i++) {
        names[i] = (struct state_name){s->infos[i].name, i};
    }
    qsort(names, s->count, sizeof *names, state_name_order);
    pcclResult_t rc = pcclSuccess;
    for (size_t i = 1; i < s->count && rc == pcclSuccess; i++) {
        if (strcmp(names[i - 1].text, names[i].text) == 0) {
            rc = state_bad("shared_state->infos[%zu].name and shared_state->infos[%zu].name are both '%.100s': "
                           "the name is the key, give each entry one of its own", names[i - 1].index, names[i].index,
                           names[i].text);
        }
    }
    free(names);
    return rc;
}

static pcclResult_t state_check(const pcclSharedState_t *s, pcclSharedStateSyncStrategy_t strategy)
{
    if (s == NULL) {
        return state_bad("shared_state is null: pass a pcclSharedState_t");
    }
    if ((unsigned)strategy > PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY) {
        return state_bad("strategy is %d: expected 0 (PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR) to 2 "
                         "(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY)", (int)strategy);
    }
    if (s->count > STATE_MOST_ENTRIES) {
        return state_bad("shared_state->count is %zu: at most %zu entries", s->count, STATE_MOST_ENTRIES);
    }
    if (s->revision == UINT64_MAX) {
        return state_bad("shared_state->revision is 2^64 - 1, after which there is none: count it up from 0 or 1");
    }
    if (s->count > 0 && s->infos == NULL) {
        return state_bad("shared_state->infos is null while shared_state->count is %zu: give the entries, or count 0", s->count);
    }
    size_t bytes = 0;
    for (size_t i = 0; i < s->count; i++) {
        const pcclTensorInfo_t *t = &s->infos[i];
        pcclResult_t rc = state_check_entry(t, i);
        if (rc != pcclSuccess) {
            return rc;
        }
        bytes += t->count * dtype_size((enum dtype)t->datatype);
        if (bytes > API_MOST_BYTES) {
            return state_bad("shared_state->infos[%zu].count of '%.100s' is %zu: the entries up to it have %zu bytes, "
                             "at most %zu fit any memory", i, t->name, t->count, bytes, API_MOST_BYTES);
        }
    }
    return state_check_names(s);
}

static void state_free(struct sync_state *s)
{
    free(s->entries);
    free(s->leaf_hash);
    free(s->want_hash);
    free(s->stage_at);
    free(s->leaf_state);
}

/* Lays the entries out; false: no memory. */
static bool state_make(struct sync_state *s, const pcclSharedState_t *in, pcclSharedStateSyncStrategy_t strategy)
{
    uint64_t leaves = 0;
    *s = (struct sync_state){
        .entry_count = (uint32_t)in->count, .leaf_bytes = STATE_LEAF_BYTES, .revision = in->revision,
        .strategy = (uint8_t)strategy,
    };
    s->entries = calloc(in->count + 1, sizeof *s->entries);
    if (s->entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < in->count; i++) {
        const pcclTensorInfo_t *t = &in->infos[i];
        struct sync_entry *e = &s->entries[i];
        e->name = t->name;
        e->name_hash = hash_simple64(t->name, strlen(t->name));
        e->dtype = (enum dtype)t->datatype;
        e->count = t->count;
        e->inequality = t->allow_content_inequality;
        e->data = t->data;
        e->bytes = t->count * dtype_size(e->dtype);
        e->first_leaf = (uint32_t)leaves;
        uint64_t own = sync_leaves(e->bytes, STATE_LEAF_BYTES);
        e->leaves = (uint32_t)own;
        leaves += own; /* state_check limits the sum */
    }
    s->leaf_count = (uint32_t)leaves;
    s->leaf_hash = calloc(leaves + 1, sizeof *s->leaf_hash);
    s->want_hash = calloc(leaves + 1, sizeof *s->want_hash);
    s->stage_at = calloc(leaves + 1, sizeof *s->stage_at);
    s->leaf_state = calloc(leaves + 1, sizeof *s->leaf_state);
    return s->leaf_hash != NULL && s->want_hash != NULL && s->stage_at != NULL && s->leaf_state != NULL;
}

static pcclResult_t state_sync(struct comm *c, pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
                               pcclSharedStateSyncInfo_t *info)
{
    struct sync_state state;
    struct session_outcome o;
    if (!state_make(&state, shared_state, strategy)) {
        state_free(&state);
        return api_fail(pcclInternalError, pcclCauseNoMemory, "sync",
                        "no memory for the hashes of shared_state->count %zu entries: free some", shared_state->count);
    }
    leaves_hash(&state, c->engine->cores);
    sync_finish_hashes(&state);
    struct msg_vote vote = {
        .kind = VOTE_SYNC, .strategy = state.strategy, .revision = state.revision, .key_digest = state.key_digest,
        .content_digest = state.content_digest, .has_inequality = state.has_inequality,
    };
    comm_vote(c, &vote, &state, &o);
    pcclResult_t rc = api_outcome(&o, "sync", 0);
    if (rc == pcclSuccess) {
        shared_state->revision = o.value;
        if (info != NULL) {
            info->tx_bytes = state.tx_bytes;
            info->rx_bytes = state.rx_bytes;
        }
    }
    state_free(&state);
    return rc;
}

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                        pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *sync_info_out)
{
    struct comm *c;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "sync", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = state_check(shared_state, strategy);
    if (rc == pcclSuccess) {
        rc = api_member(c, "sync", &member);
    }
    if (rc == pcclSuccess && member.open_slots > 0) {
        rc = api_fail(pcclPendingAsyncOps, pcclCauseUsage, "sync",
                      "operations not awaited: %" PRIu32 ": await them first", member.open_slots);
    }
    if (rc == pcclSuccess) {
        rc = state_sync(c, shared_state, strategy, sync_info_out);
    }
    api_leave(c);
    return rc;
}
