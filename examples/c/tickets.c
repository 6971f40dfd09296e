/* tickets.c - work that is drawn from a counter: each member takes the next ticket that nobody has, and puts its result where the first
 * member collects them, which computes meanwhile like all others.
 *
 * Start ccoip_master, then as many of these as MEMBERS says: tickets MEMBERS [ADDRESS].  Kill one of them: the others go on.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { TICKETS = 1000 };

struct board { /* the window of rank 0 */
    uint64_t next;
    uint64_t result[TICKETS];
};

static uint64_t work(uint64_t ticket)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= ticket; i++) {
        sum += i * i;
    }
    return sum;
}

/* A member that is lost leaves its last ticket undone: who sees it may do it again. */
static pcclResult_t draw(pcclWindow_t *board, uint32_t self, uint32_t world)
{
    uint64_t one = 1, ticket = 0, mine = 0;
    pcclResult_t result = pcclFetchAdd(&ticket, &one, pcclUint64, 0, offsetof(struct board, next), board, NULL);
    while (result == pcclSuccess && ticket < TICKETS) {
        uint64_t value = work(ticket);
        result = pcclPut(&value, sizeof value, 0, offsetof(struct board, result) + ticket * sizeof value, board, NULL);
        mine++;
        result = result != pcclSuccess ? result : pcclFetchAdd(&ticket, &one, pcclUint64, 0, offsetof(struct board, next), board, NULL);
    }
    printf("rank %u of %u: %llu tickets\n", self, world, (unsigned long long)mine);
    return result != pcclSuccess ? result : pcclSignal(0, board, NULL);
}

static pcclResult_t run(pcclComm_t *comm)
{
    pcclWindow_t *window = NULL;
    pcclWindowInfo_t info;
    pcclPeerInfo_t self;
    pcclResult_t result = pcclGetSelf(comm, &self);
    pcclWindowParams_t params = PCCL_INITIALIZER(pcclWindowParams_t);
    params.bytes = self.rank == 0 ? sizeof(struct board) : 0;
    params.rights = pcclWindowAll;
    result = result != pcclSuccess ? result : pcclCreateWindow(&params, comm, &window);
    result = result != pcclSuccess ? result : pcclGetWindowInfo(window, self.rank, &info);
    result = result != pcclSuccess ? result : draw(window, info.rank, info.world);
    if (result == pcclSuccess && info.rank == 0) {
        const struct board *board = info.address;
        unsigned missing = 0;
        for (uint32_t r = 0; r < info.world; r++) {
            (void)pcclWaitSignal(r, window, -1, NULL); /* or it is lost */
        }
        for (uint64_t t = 0; t < TICKETS; t++) {
            missing += board->result[t] != work(t);
        }
        printf("%u of %d results missing\n", missing, TICKETS);
    }
    if (window != NULL) {
        (void)pcclDestroyWindow(window);
    }
    return result;
}

int main(int argc, char **argv)
{
    int members = argc > 1 ? atoi(argv[1]) : 1, world = 0;
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclResult_t result = pcclInit();
    if (result == pcclSuccess) {
        result = pcclParseAddress(argc > 2 ? argv[2] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address);
    }
    result = result != pcclSuccess ? result : pcclCreateCommunicator(&params, &comm);
    result = result != pcclSuccess ? result : pcclConnect(comm);
    while (result == pcclSuccess && world < members) {
        result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
        result = result == pcclSuccess && world < members ? pcclUpdateTopology(comm) : result;
    }
    result = result != pcclSuccess ? result : run(comm);
    if (result != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    if (comm != NULL) {
        (void)pcclDestroyCommunicator(comm);
    }
    return result != pcclSuccess;
}
