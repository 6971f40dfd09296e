/* test_links.c - links that break between living peers, addresses, leaving and coming back, strangers at the port.
 *
 * Links are cut from inside: the test reaches through the handle and shuts a socket down, as a reset from the network would.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fds.h"
#include "net/sock.h"
#include "engine/links/link.h"
#include "api/api.h"
#include "tests/e2e/cluster.h"
#include "tests/spawn.h"

enum { COUNT = 300000, TRIES = 50 };

static void reduce_until_success(struct cluster_peer *p, int most_failures)
{
    float *x = malloc(COUNT * sizeof *x), *y = calloc(COUNT, sizeof *y);
    pcclReduceDescriptor_t d = cluster_floats(COUNT, 4);
    int failures = 0;
    pcclResult_t rc;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 50);
    }
    while ((rc = pcclAllReduce(x, y, &d, p->comm, NULL)) == pcclRankConnectionLost && failures < TRIES) {
        failures++;
    }
    EXPECT_EQ(rc, pcclSuccess);
    if (rc != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    EXPECT(failures <= most_failures);
    for (size_t i = 0; i < COUNT; i++) {
        if (y[i] != (float)p->cluster->count * x[i]) {
            EXPECT_EQ(y[i], (float)p->cluster->count * x[i]);
            break;
        }
    }
    free(x);
    free(y);
}

static void reduce_unharmed(struct cluster_peer *p, void *context)
{
    reduce_until_success(p, *(const int *)context);
}

/* Shuts one connection of the first peer's first link down. */
static void cut(struct cluster *c, bool control)
{
    struct comm *comm = c->peer[0].comm->comm;
    bool found = false;
    pthread_mutex_lock(&comm->lock);
    LIST_FOR_EACH(i, after, &comm->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (!found && control && l->control.conn != NULL) {
            shutdown(l->control.conn->transport.fd, SHUT_RDWR);
            found = true;
        } else if (!found && !control && l->bundle.streams[0] != NULL) {
            shutdown(l->bundle.streams[0]->transport.fd, SHUT_RDWR);
            found = true;
        }
    }
    pthread_mutex_unlock(&comm->lock);
    EXPECT(found);
}

TEST(a_control_link_cut_between_living_peers_is_dialled_again)
{
    struct cluster c;
    int failures = 0;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, reduce_unharmed, &failures);
    for (int round = 0; round < 2; round++) {
        cut(&c, true);
        failures = TRIES; /* the loss is reported, so what runs meanwhile may be given up */
        cluster_run(&c, reduce_unharmed, &failures);
        EXPECT_EQ(cluster_size(c.peer[0].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 3); /* nobody is excluded for it */
    }
    cluster_stop(&c);
}

static void vote_update(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
}

TEST(a_data_connection_cut_between_operations_is_dialled_again)
{
    struct cluster c;
    int failures = 0;
    cluster_start(&c, 2, NULL, 2);
    cluster_run(&c, reduce_unharmed, &failures);
    for (int round = 0; round < 2; round++) { /* a third break within a minute marks the edge as bad */
        cut(&c, false);
        failures = TRIES; /* an operation of this view has named it: reported, as docs/internals/PROTOCOL.md says */
        cluster_run(&c, reduce_unharmed, &failures);
        cluster_run(&c, vote_update, NULL);
    }
    EXPECT_EQ(cluster_size(c.peer[0].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
    cluster_stop(&c);
}

static void rejoin_all(struct cluster_peer *p, void *context)
{
    EXPECT_EQ(cluster_join(p->comm, *(const int *)context), pcclSuccess);
}

static void leave(struct cluster_peer *p, void *context)
{
    (void)context;
    int size = 0;
    EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
    EXPECT_EQ(pcclGetAttribute(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size), pcclMasterConnectionFailed);
}

/* Connected sockets of this process, the library's all; and those of them on which unacknowledged bytes have no limit of time. */
static int sockets_without_timeout(int *connected)
{
    int without = 0;
    *connected = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage to;
        socklen_t size = sizeof to;
        unsigned timeout = 0;
        if (getpeername(fd, (struct sockaddr *)&to, &size) != 0 || to.ss_family == AF_UNIX) {
            continue;
        }
        size = sizeof timeout;
        EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size), 0);
        ++*connected;
        without += timeout == 0;
    }
    return without;
}

TEST(every_connection_has_a_limit_for_bytes_that_nobody_acknowledges) /* a host that is gone is noticed after a quarter of an hour */
{
    struct cluster c;
    int connected = 0, without = 1;
    const int all = 2 * (2 + 1 + 2); /* both ends: to the master, control links, two data connections */
    setenv("PCCL_SHM_DISABLE", "1", 1);
    cluster_start(&c, 2, NULL, 2);
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while ((connected != all || without != 0) && spawn_now_ms() < until) {
        sched_yield(); /* the last ones may just be on their way */
        without = sockets_without_timeout(&connected);
    }
    EXPECT_EQ(without, 0);
    EXPECT_EQ(connected, all);
    cluster_stop(&c);
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(whoever_left_can_connect_again)
{
    struct cluster c;
    int failures = TRIES, count = 3;
    cluster_start(&c, count, NULL, 2);
    for (int round = 0; round < 3; round++) {
        cluster_run(&c, leave, NULL);
        cluster_run(&c, rejoin_all, &count);
        cluster_run(&c, reduce_unharmed, &failures);
    }
    cluster_stop(&c);
}

TEST(ipv6_serves_master_and_peers)
{
    struct cluster c;
    int failures = 0, count = 2;
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv6, .ipv6 = {{[15] = 1}}}, .port = 0};
    memset(&c, 0, sizeof c);
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateMaster(any, &c.master), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclGetMasterAddress(c.master, &c.address), pcclSuccess);
    EXPECT_EQ(c.address.inet.protocol, inetIPv6);
    for (int i = 0; i < count; i++) {
        cluster_create(&c, i, 0, 1, 0);
    }
    cluster_run(&c, rejoin_all, &count);
    cluster_run(&c, reduce_unharmed, &failures);
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(c.peer[0].comm, &self), pcclSuccess);
    EXPECT_EQ(self.address.inet.protocol, inetIPv6);
    EXPECT_EQ(self.address.inet.ipv6.data[15], 1);
    cluster_stop(&c);
}

/* Waits for the other end to close; false if it has not after 10 s. */
static bool closed(int fd)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 10000) == 1) {
        ssize_t n = recv(fd, &byte, 1, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return true;
        }
    }
    return false;
}

static int stranger(uint16_t port)
{
    struct net_address to = {.family = 4, .ip = {127, 0, 0, 1}, .port = port};
    int fd = -1;
    EXPECT_EQ(sock_dial(&to, &fd, NULL), PCCL_OK);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    EXPECT_EQ(poll(&p, 1, 10000), 1);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

TEST(strangers_at_the_port_lose_their_connection_and_nothing_else)
{
    enum { STRANGERS = 70 };
    struct cluster c;
    int failures = 0, fd[STRANGERS];
    cluster_start(&c, 2, NULL, 1);
    uint16_t port = c.peer[0].comm->comm->engine->port;
    unsigned char junk[8192], frame[FRAME_HEADER_BYTES + 64];
    memset(junk, 0x5A, sizeof junk);
    struct writer w;
    writer_init(&w, frame + FRAME_HEADER_BYTES, 64);
    put_hello(&w, &(struct msg_hello){.kind = LINK_CONTROL, .lanes = 1, .from = 77, .to = 78, .number = 1});
    frame_put(frame, &(struct frame_header){.type = FRAME_HELLO, .length = (uint32_t)w.used, .run = 12345});
    for (int i = 0; i < STRANGERS; i++) { /* more than may wait at once */
        fd[i] = stranger(port);
        ssize_t rc = i % 3 == 0   ? send(fd[i], junk, sizeof junk, MSG_NOSIGNAL)
                     : i % 3 == 1 ? send(fd[i], frame, FRAME_HEADER_BYTES + w.used, MSG_NOSIGNAL)
                                  : send(fd[i], frame, 20, MSG_NOSIGNAL); /* and silence */
        (void)rc;
    }
    cluster_run(&c, reduce_unharmed, &failures);
    for (int i = 0; i < STRANGERS; i++) {
        EXPECT(closed(fd[i]));
        fds_close(fd[i]);
    }
    cluster_run(&c, reduce_unharmed, &failures);
    cluster_stop(&c);
}

static void share_state(struct cluster_peer *p, void *context)
{
    enum { ELEMENTS = 3 * 1024 * 1024 / 4 + 17 };
    float *w = malloc(ELEMENTS * sizeof *w);
    unsigned char odd[1001];
    (void)context;
    for (size_t i = 0; i < ELEMENTS; i++) {
        w[i] = p->index == 2 ? -1.0f : (float)i; /* two agree, the third must receive */
    }
    memset(odd, p->index == 2 ? 9 : 5, sizeof odd);
    pcclTensorInfo_t info[2] = {{"w", w, ELEMENTS, pcclFloat, pcclDeviceCpu, false},
                                {"odd", odd + 1, 1000, pcclUint8, pcclDeviceCpu, false}};
    pcclSharedState_t state = {.revision = 0, .count = 2, .infos = info};
    pcclSharedStateSyncInfo_t moved = {0};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &moved),
              pcclSuccess);
    size_t bad = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        bad += w[i] != (float)i;
    }
    EXPECT_EQ(bad, 0);
    EXPECT(odd[1] == 5 && odd[1000] == 5 && odd[0] == (p->index == 2 ? 9 : 5));
    EXPECT_EQ(moved.rx_bytes, p->index == 2 ? ELEMENTS * sizeof *w + 1000 : 0);
    state.revision++;
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, &moved), pcclSuccess); /* the older form */
    EXPECT_EQ(moved.rx_bytes + moved.tx_bytes, 0);
    free(w);
}

TEST(shared_state_reaches_the_peer_that_differs)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, share_state, NULL);
    cluster_stop(&c);
}

static void optimise(struct cluster_peer *p, void *context)
{
    int failures = 0;
    (void)context;
    EXPECT_EQ(pcclOptimizeTopology(p->comm), pcclSuccess);
    reduce_until_success(p, failures);
}

TEST(optimising_probes_real_edges)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, optimise, NULL);
    cluster_stop(&c);
}
