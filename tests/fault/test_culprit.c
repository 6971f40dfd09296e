/* test_culprit.c - an error names the killed process as programs know it: by its rank before the loss, and its address.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/fault/peer_calls.h"

enum { PEERS = 4 };

static void tell_rank(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t own = {0};
    (void)argument;
    peer_result(reply, pcclGetSelf(self->comm, &own));
    reply->value[0] = own.rank;
}

/* A barrier that fails; its error must describe the lost one as the list of members before the call did. */
static void expect_culprit(struct peer *self, const void *argument, struct reply *reply)
{
    const int *lost_rank = argument;
    pcclPeerInfo_t members[PEERS], *lost;
    pcclErrorInfo_t error;
    size_t count = 0;
    char address[64], named[128];
    PEER_EXPECT(self, pcclGetMembers(self->comm, members, PEERS, &count) == pcclSuccess && *lost_rank < (int)count);
    lost = &members[*lost_rank];
    const uint8_t *ip = lost->address.inet.ipv4.data;
    snprintf(address, sizeof address, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], lost->address.port);
    snprintf(named, sizeof named, "rank %d (peer %" PRIu64 ".%" PRIu64 " at %s)", *lost_rank, lost->id >> 32, lost->id & UINT32_MAX, address);
    peer_note(self, 1);
    peer_result(reply, pcclBarrier(self->comm, NULL));
    PEER_EXPECT(self, reply->result == pcclRankConnectionLost && pcclGetLastErrorInfo(&error) == pcclSuccess);
    PEER_EXPECT(self, error.peer == lost->id && error.rank == *lost_rank && strcmp(error.address, address) == 0);
    PEER_EXPECT(self, strstr(error.text, named) != NULL);
    if (strstr(error.text, named) == NULL) {
        fprintf(stderr, "no '%s' in: %s\n", named, error.text);
    }
}

/* Kills the member with that rank while all others wait for it; returns who is left. */
static unsigned kill_rank(struct processes *all, unsigned members, int rank)
{
    struct reply reply[PROCESSES_MOST];
    int victim = -1;
    processes_do(all, members, tell_rank, NULL, 0, reply);
    for (int i = 0; i < PEERS; i++) {
        victim = (members >> i & 1) != 0 && reply[i].value[0] == rank ? i : victim;
    }
    EXPECT(victim >= 0);
    if (victim < 0) {
        return members;
    }
    unsigned left = members & ~(1u << victim);
    processes_send(all, left, expect_culprit, &rank, sizeof rank);
    for (int i = 0; i < PEERS; i++) {
        EXPECT((left >> i & 1) == 0 || process_note(all, i) == 1);
    }
    process_signal(all, victim, SIGKILL);
    processes_take(all, left, reply);
    return left;
}

TEST(a_killed_rank_is_named_with_the_rank_before_its_loss_and_its_address)
{
    struct processes all;
    int world = PEERS;
    if (!processes_start(&all, &(struct processes_options){.count = PEERS, .failures = &test_failures})) {
        return;
    }
    processes_do(&all, (1u << PEERS) - 1, peer_join, &world, sizeof world, NULL);
    unsigned left = kill_rank(&all, (1u << PEERS) - 1, 1); /* ranks close up: now another has rank 1 */
    (void)kill_rank(&all, left, 1);
    processes_stop(&all);
}
