/* test_stripe_sockets.c - data connections over several sockets: right sums, and bytes on each of the sockets.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/testing.h"

#include "api/api.h"
#include "engine/links/link.h"
#include "net/tcp_info.h"
#include "tests/e2e/cluster.h"
#include "tests/spawn.h"
#include "tests/wire_client.h"

enum { COUNT = 3, POOL = 2, SOCKETS = 4, DATA = COUNT * (COUNT - 1) * POOL * SOCKETS, ELEMENTS = 1 << 20, MOVED = 16 << 10 };

static void reduce(struct cluster_peer *p, void *context)
{
    const uint64_t *tag = context;
    pcclReduceDescriptor_t how = cluster_floats(ELEMENTS, *tag);
    float *in = malloc(ELEMENTS * sizeof *in), *out = calloc(ELEMENTS, sizeof *out);
    size_t wrong = 0;
    EXPECT(in != NULL && out != NULL);
    for (size_t i = 0; i < ELEMENTS; i++) {
        in[i] = (float)(i % 1021 + (size_t)p->index);
    }
    EXPECT_EQ(pcclAllReduce(in, out, &how, p->comm, NULL), pcclSuccess);
    for (size_t i = 0; i < ELEMENTS; i++) {
        wrong += out[i] != (float)(COUNT * (i % 1021) + COUNT * (COUNT - 1) / 2);
    }
    EXPECT_EQ(wrong, 0);
    free(in);
    free(out);
}

/* Ends of TCP connections of this process that have sent bulk data in so many sums.  A control link sends a few hundred bytes in each. */
static int busy_sockets(uint64_t sums)
{
    int count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct tcp_numbers n;
        struct sockaddr_storage to;
        socklen_t size = sizeof to;
        bool connected = getpeername(fd, (struct sockaddr *)&to, &size) == 0 && to.ss_family != AF_UNIX;
        count += connected && tcp_info_read(fd, &n) && n.acked > sums * MOVED;
    }
    return count;
}

/* What the library tells of its connections: all to all, so many sockets each. */
static void expect_told(const struct cluster *c, uint32_t sockets)
{
    for (int i = 0; i < COUNT; i++) {
        pcclTcpConnection_t t[64];
        size_t count = 0;
        EXPECT_EQ(pcclGetTcpConnections(c->peer[i].comm, t, 64, &count), pcclSuccess);
        EXPECT_EQ(count, (COUNT - 1) * POOL);
        for (size_t k = 0; k < count && k < 64; k++) {
            EXPECT_EQ(t[k].sockets, sockets);
            EXPECT(t[k].peer != 0 && t[k].lane < POOL && t[k].rate > 0 && t[k].rtt_us > 0 && t[k].least_rtt_us > 0);
            EXPECT(t[k].congestion[0] != '\0');
        }
        EXPECT_EQ(pcclGetTcpConnections(c->peer[i].comm, NULL, 0, &count), pcclSuccess);
        EXPECT_EQ(count, (COUNT - 1) * POOL);
        EXPECT_EQ(pcclGetTcpConnections(c->peer[i].comm, NULL, 1, &count), pcclInvalidArgument);
        EXPECT(strstr(pcclGetLastError(), "connections_out is null") != NULL);
    }
}

/* Sums until so many sockets have carried some: they join while operations run. */
static int sum_until(struct cluster *c, int want)
{
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    int used = 0;
    for (uint64_t tag = 0; test_failures == 0 && used != want && spawn_now_ms() < until; tag++) {
        cluster_run(c, reduce, &tag);
        used = busy_sockets(tag + 1);
    }
    return used;
}

static int sockets_used(const char *stripe, int want)
{
    struct cluster c;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_STRIPE", stripe, 1);
    cluster_start(&c, COUNT, NULL, POOL);
    int used = sum_until(&c, want);
    expect_told(&c, (uint32_t)want * SOCKETS / DATA);
    cluster_stop(&c);
    unsetenv("PCCL_STRIPE");
    unsetenv("PCCL_SHM_DISABLE");
    return used;
}

TEST(sums_are_right_over_four_sockets_per_connection_and_each_carries_some)
{
    EXPECT_EQ(sockets_used("4", DATA), DATA);
}

TEST(within_a_host_a_connection_is_one_socket) /* more of them would cost the row of loopback */
{
    EXPECT_EQ(sockets_used("", DATA / SOCKETS), DATA / SOCKETS);
    EXPECT_EQ(sockets_used("1", DATA / SOCKETS), DATA / SOCKETS);
}

/* Whether the peer at this port closes a connection that says this, instead of taking it. */
static bool refused(uint16_t port, uint64_t run, const struct msg_hello *m)
{
    unsigned char frame[FRAME_HEADER_BYTES + 256], back;
    struct writer w;
    int fd = client_dial(port, false);
    EXPECT(fd >= 0);
    writer_init(&w, frame + FRAME_HEADER_BYTES, sizeof frame - FRAME_HEADER_BYTES);
    put_hello(&w, m);
    frame_put(frame, &(struct frame_header){.type = FRAME_HELLO, .length = (uint32_t)w.used, .run = run});
    EXPECT(client_send(fd, frame, FRAME_HEADER_BYTES + w.used));
    bool answered = client_readable(fd, SPAWN_PATIENCE_MS);
    bool ended = answered && recv(fd, &back, 1, 0) <= 0;
    close(fd);
    return ended;
}

TEST(socket_with_a_forged_or_used_token_does_not_join) /* a stranger could slip bytes into a sum */
{
    struct cluster c;
    uint64_t tag = UINT64_MAX / 2;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_STRIPE", "4", 1);
    cluster_start(&c, COUNT, NULL, POOL);
    EXPECT_EQ(sum_until(&c, DATA), DATA);
    for (int i = 0; i < COUNT; i++) {
        struct comm *to = c.peer[i].comm->comm;
        struct msg_hello m[COUNT];
        int links = 0;
        pthread_mutex_lock(&to->lock);
        LIST_FOR_EACH(at, next, &to->links.all) {
            const struct link *l = LIST_ENTRY(at, struct link, all);
            m[links++] = (struct msg_hello){.kind = LINK_STRIPE, .lane = 0, .lanes = POOL, .group = to->params.group, .from = l->peer,
                                            .to = to->master.id, .view = to->master.newest, .number = l->bundle.number, .socket = 1,
                                            .token = transport_stripe_token(&l->bundle.streams[0]->transport)};
        }
        uint64_t run = to->master.run;
        pthread_mutex_unlock(&to->lock);
        EXPECT_EQ(links, COUNT - 1);
        for (int k = 0; k < links; k++) {
            EXPECT(m[k].token != 0);
            EXPECT(refused(to->engine->port, run, &m[k])); /* number 1 has joined, or this end dials */
            m[k].socket = 1000;
            m[k].number++;
            EXPECT(refused(to->engine->port, run, &m[k])); /* of another bundle */
            m[k].number--;
            m[k].token ^= 1;
            EXPECT(refused(to->engine->port, run, &m[k]));
            m[k].token = 0;
            EXPECT(refused(to->engine->port, run, &m[k]));
        }
    }
    cluster_run(&c, reduce, &tag);
    cluster_stop(&c);
    unsetenv("PCCL_STRIPE");
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(number_of_sockets_that_is_none_is_told_with_what_may_be_said)
{
    static const char *const wrong[] = {"0", "65", "-1", "four", "4x", " 4", "99999999999999999999"};
    struct cluster c;
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];
        setenv("PCCL_STRIPE", wrong[i], 1);
        EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
        snprintf(text, sizeof text, "PCCL_STRIPE '%.20s': expected 1 to 64 sockets", wrong[i]);
        EXPECT(strstr(pcclGetLastError(), text) != NULL);
    }
    unsetenv("PCCL_STRIPE");
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclSuccess);
    cluster_stop(&c);
}
