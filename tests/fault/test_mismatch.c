/* test_mismatch.c - one program calls an operation with other parameters: the others read both calls, wherever it is by then.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { PEERS = 3, ODD = 2, LATE = 1, TAG = 5 };

struct call {
    size_t count[PEERS]; /* of floats, of each peer */
};

/* value[0]: own id; value[1]: the peer that the error names. */
static void reduce_own_count(struct peer *self, const void *argument, struct reply *reply)
{
    const struct call *call = argument;
    size_t count = call->count[self->index];
    float *data = peer_buffer(self, 0, count * sizeof *data);
    pcclReduceDescriptor_t d = peer_floats(count, TAG);
    pcclErrorInfo_t info = {0};
    pcclPeerInfo_t own = {0};
    EXPECT_EQ(pcclGetSelf(self->comm, &own), pcclSuccess);
    memset(data, 0, count * sizeof *data);
    peer_result(reply, pcclAllReduce(data, data, &d, self->comm, NULL));
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    reply->value[0] = (int64_t)own.id;
    reply->value[1] = (int64_t)info.peer;
}

/* "this peer has all-reduce of 4 f32, sum; rank 2 (peer 1.3 at ...) has all-reduce of 5 f32, sum: make identical calls on all peers", and that peer in the info. */
static void expect_told(const struct reply *r, size_t own, int64_t other, size_t others)
{
    char start[80], end[80], id[40];
    snprintf(start, sizeof start, "this peer has all-reduce of %zu f32, sum; rank ", own);
    snprintf(id, sizeof id, " (peer %llu.%llu at ", (unsigned long long)other >> 32, (unsigned long long)other & 0xFFFFFFFF);
    snprintf(end, sizeof end, " has all-reduce of %zu f32, sum", others);
    EXPECT_EQ(r->result, pcclInvalidArgument);
    EXPECT_EQ(r->cause, pcclCauseMismatch);
    EXPECT_EQ(r->value[1], other);
    EXPECT(strstr(r->text, start) != NULL && strstr(r->text, id) != NULL && strstr(r->text, end) != NULL);
    if (strstr(r->text, start) == NULL || strstr(r->text, id) == NULL || strstr(r->text, end) == NULL) {
        fprintf(stderr, "no '%s', '%s', '%s' in: %s\n", start, id, end, r->text);
    }
}

/* Peer ODD calls with another count than peer 0, and is gone before peer LATE calls: as peer 0, or as ODD did. */
static void told_after(bool dies, const struct call *call)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = PEERS, .failures = &test_failures, .pool = 1};
    int three = PEERS, two = 2;
    if (!processes_start(&all, &o)) {
        EXPECT(!"start");
        return;
    }
    processes_do(&all, 7, peer_join, &three, sizeof three, NULL);
    processes_do(&all, 1u << 0 | 1u << ODD, reduce_own_count, call, sizeof *call, reply);
    expect_told(&reply[0], call->count[0], reply[ODD].value[0], call->count[ODD]);
    expect_told(&reply[ODD], call->count[ODD], reply[0].value[0], call->count[0]);
    int64_t first = reply[0].value[0], odd = reply[ODD].value[0];
    if (dies) {
        process_signal(&all, ODD, SIGKILL);
    } else {
        process_do(&all, ODD, peer_destroy, NULL, 0);
    }
    processes_send(&all, 1, peer_update_until, &two, sizeof two); /* it waits for LATE; its vote outlives the view of ODD */
    reply[LATE] = process_do(&all, LATE, reduce_own_count, call, sizeof *call);
    bool like_first = call->count[LATE] == call->count[0];
    expect_told(&reply[LATE], call->count[LATE], like_first ? odd : first, call->count[like_first ? ODD : 0]);
    processes_send(&all, 1u << LATE, peer_update_until, &two, sizeof two);
    processes_take(&all, 3, NULL);
    processes_stop(&all);
}

static const struct call like_first = {.count = {4, 4, 5}}, like_odd = {.count = {4, 5, 5}};
static const struct call large = {.count = {40000, 40000, 50000}}; /* not sent along with the launch */

TEST(who_comes_after_the_death_of_a_peer_reads_both_calls) /* "peer 1.3 died", or the name of somebody innocent */
{
    told_after(true, &like_first);
    told_after(true, &like_odd);
    told_after(true, &large);
}

TEST(who_comes_after_a_peer_has_left_reads_both_calls)
{
    told_after(false, &like_first);
    told_after(false, &large);
}
