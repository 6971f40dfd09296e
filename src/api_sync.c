/* api_sync.c - shared state: checks, hashing in the caller's thread, the vote.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "kernels/hash.h"
#include "peer/leaves.h"

enum { STATE_LEAF_BYTES = 1 << 20 };

static pcclResult_t state_check(const pcclSharedState_t *s, pcclSharedStateSyncStrategy_t strategy)
{
    const char *phase = "sync", *bad = NULL;
    if (s == NULL || (s->count > 0 && s->infos == NULL)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s is null",
                        s == NULL ? "shared_state" : "shared_state->infos");
    }
    if ((unsigned)strategy > PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "unknown strategy %d", (int)strategy);
    }
    if (s->count > UINT32_MAX) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%zu entries are too many", s->count);
    }
    for (size_t i = 0; i < s->count; i++) {
        const pcclTensorInfo_t *t = &s->infos[i];
        if (t->name == NULL) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "entry %zu has no name", i);
        }
        if ((unsigned)t->datatype >= DTYPE_COUNT) {
            bad = "unknown data type";
        } else if (t->device_type != pcclDeviceCpu) {
            bad = "this build moves host memory only";
        } else if (t->count > API_MOST_BYTES / dtype_size((enum dtype)t->datatype)) {
            bad = "count is larger than any memory";
        } else if (t->data == NULL && t->count > 0) {
            bad = "data is null";
        }
        if (bad != NULL) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "entry '%.100s': %s", t->name, bad);
        }
    }
    return pcclSuccess;
}

static void state_free(struct sync_state *s)
{
    free(s->entries);
    free(s->leaf_hash);
    free(s->want_hash);
    free(s->stage_at);
    free(s->leaf_state);
}

/* Lays the entries out; false: no memory, or more leaves than can be numbered. */
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
        e->name_hash = hash_simple64(t->name, strlen(t->name));
        e->dtype = (enum dtype)t->datatype;
        e->count = t->count;
        e->inequality = t->allow_content_inequality;
        e->data = t->data;
        e->bytes = t->count * dtype_size(e->dtype);
        e->first_leaf = (uint32_t)leaves;
        uint64_t own = sync_leaves(e->bytes, STATE_LEAF_BYTES);
        e->leaves = (uint32_t)own;
        leaves += own;
        if (leaves > UINT32_MAX / 2) {
            return false;
        }
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
        return api_fail(pcclInternalError, pcclCauseNoMemory, "sync", "no memory for the hashes");
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

pcclResult_t(pcclSynchronizeSharedState)(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
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
        rc = api_fail(pcclPendingAsyncOps, pcclCauseUsage, "sync", "an operation has not been awaited: await it first");
    }
    if (rc == pcclSuccess) {
        rc = state_sync(c, shared_state, strategy, sync_info_out);
    }
    api_leave(c);
    return rc;
}
