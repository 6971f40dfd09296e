/* test_containers.c - processes that see one loopback address at both ends of a connection, and yet share nothing else: containers whose
 * ports are passed on to each other's 127.0.0.1.  They look like processes of one host, whose Unix socket is not there.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "tests/fault/peer_calls.h"
#include "tests/shell.h"

enum { COUNT = 3, NEAR = 2 /* processes in the first container, with the master */, FORWARDS = 4, MOST_PAIRS = 128, PORT = 47001 };

static char spaces[2][32];

/* ---- Passes connections to a loopback port of one container on to the same port of the other -------------------------------------- */

struct forward {
    uint16_t port;
    int from, to; /* containers */
    int listener;
};

static struct {
    struct forward forward[FORWARDS];
    int space[2];          /* descriptors of the namespaces */
    int stop[2];           /* a pipe: its end ends the thread */
    int pair[MOST_PAIRS][2], pairs;
    pthread_t thread;
} relay;

/* A socket belongs to the namespace in which it was made. */
static int socket_in(int space, uint16_t port, bool listens)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr *where = (const struct sockaddr *)(const void *)&at;
    if (setns(relay.space[space], CLONE_NEWNET) != 0) {
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (listens ? bind(fd, where, sizeof at) != 0 || listen(fd, 64) != 0 : connect(fd, where, sizeof at) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void relay_accept(const struct forward *f)
{
    int in = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    int out = in >= 0 && relay.pairs < MOST_PAIRS ? socket_in(f->to, f->port, false) : -1;
    if (out < 0) { /* nobody listens there: as if nobody listened here */
        close(in);
        return;
    }
    relay.pair[relay.pairs][0] = in;
    relay.pair[relay.pairs++][1] = out;
}

/* False: both ends close. */
static bool relay_pass(int from, int to)
{
    char bytes[65536];
    ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t at = 0, sent; at < n; at += sent) {
        sent = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void *relay_main(void *argument)
{
    struct pollfd fds[1 + FORWARDS + 2 * MOST_PAIRS];
    (void)argument;
    for (;;) {
        int n = 0;
        fds[n++] = (struct pollfd){.fd = relay.stop[0], .events = POLLIN};
        for (int i = 0; i < FORWARDS; i++) {
            fds[n++] = (struct pollfd){.fd = relay.forward[i].listener, .events = POLLIN};
        }
        int pairs = relay.pairs;
        for (int i = 0; i < 2 * pairs; i++) {
            fds[n++] = (struct pollfd){.fd = relay.pair[i / 2][i % 2], .events = POLLIN};
        }
        if (poll(fds, (nfds_t)n, -1) < 0 || fds[0].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < 2 * pairs; i++) {
            int *pair = relay.pair[i / 2];
            if (fds[1 + FORWARDS + i].revents != 0 && pair[0] >= 0 && !relay_pass(pair[i % 2], pair[1 - i % 2])) {
                close(pair[0]);
                close(pair[1]);
                pair[0] = pair[1] = -1;
            }
        }
        for (int i = 0; i < FORWARDS; i++) {
            if (fds[1 + i].revents != 0) {
                relay_accept(&relay.forward[i]);
            }
        }
    }
}

/* In a thread: its namespace is its own.  The master and the first processes are passed on to the second container, the last process to
 * the first one. */
static void relay_start(uint16_t master)
{
    char path[PATH_MAX];
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(pipe2(relay.stop, O_CLOEXEC), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/run/netns/%s", spaces[i]);
        relay.space[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    for (int i = 0; i < FORWARDS; i++) {
        struct forward *f = &relay.forward[i];
        *f = (struct forward){.port = i < COUNT ? (uint16_t)(PORT + i) : master, .from = i != NEAR, .to = i == NEAR};
        f->listener = socket_in(f->from, f->port, true);
        EXPECT(f->listener >= 0);
    }
    EXPECT_EQ(setns(own, CLONE_NEWNET), 0);
    close(own);
    EXPECT_EQ(pthread_create(&relay.thread, NULL, relay_main, NULL), 0);
}

static void relay_stop(void)
{
    close(relay.stop[1]);
    pthread_join(relay.thread, NULL);
    for (int i = 0; i < FORWARDS; i++) {
        close(relay.forward[i].listener);
    }
    for (int i = 0; i < relay.pairs; i++) {
        close(relay.pair[i][0]);
        close(relay.pair[i][1]);
    }
    close(relay.space[0]);
    close(relay.space[1]);
    close(relay.stop[0]);
    memset(&relay, 0, sizeof relay);
}

/* ---- The test --------------------------------------------------------------------------------------------------------------------- */

/* value[0]: data connections through memory; value[1]: by TCP. */
static void count_kinds(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTransport_t t[64];
    size_t count = 0;
    (void)argument;
    peer_result(reply, pcclGetTransports(self->comm, t, 64, &count));
    for (size_t k = 0; k < count && k < 64; k++) {
        bool data = t[k].lane != UINT32_MAX;
        reply->value[0] += data && t[k].kind == pcclTransportSharedMemory;
        reply->value[1] += data && t[k].kind == pcclTransportTcp;
    }
}

static bool spaces_start(void)
{
    bool ok = geteuid() == 0;
    for (int i = 0; i < 2 && ok; i++) {
        snprintf(spaces[i], sizeof spaces[i], "pccl%dc%d", (int)getpid(), i);
        ok = shell_run("ip netns add %s", spaces[i]) && shell_run("ip -n %s link set lo up", spaces[i]);
    }
    return ok;
}

static void spaces_stop(void)
{
    for (int i = 0; i < 2 && spaces[i][0] != '\0'; i++) {
        shell_run("ip netns del %s", spaces[i]);
    }
}

static void expect_sums(struct processes *all)
{
    struct reply reply[PROCESSES_MOST];
    for (uint64_t tag = 1; tag <= 20; tag++) { /* small ones too: control links that are used would move to memory */
        struct reduce_job job = {.count = tag % 4 == 0 ? 300000 : 3, .tag = tag, .members = processes_set(COUNT), .in_place = tag % 2 == 0};
        processes_do(all, processes_set(COUNT), peer_reduce, &job, sizeof job, reply);
        for (int i = 0; i < COUNT; i++) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
        }
    }
    processes_do(all, processes_set(COUNT), count_kinds, NULL, 0, reply);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EQ(reply[i].value[0], i < NEAR ? NEAR - 1 : 0);
        EXPECT_EQ(reply[i].value[1], i < NEAR ? COUNT - NEAR : NEAR);
    }
}

TEST(containers_that_share_a_loopback_address_only_speak_by_tcp) /* each waits for a Unix socket that the other does not have */
{
    struct processes all;
    struct processes_options o = {.count = COUNT, .failures = &test_failures, .pool = 1, .master_space = spaces[0],
                                  .space = {spaces[0], spaces[0], spaces[1]}, .port = {"47001", "47002", "47003"}};
    unsetenv("PCCL_SHM_DISABLE"); /* whatever this program is started with */
    if (!spaces_start()) {
        spaces_stop();
        TEST_SKIP("network namespaces cannot be used here");
    }
    if (processes_start(&all, &o)) {
        int count = COUNT;
        relay_start(all.address.port);
        processes_do(&all, processes_set(COUNT), peer_join, &count, sizeof count, NULL);
        expect_sums(&all);
        processes_stop(&all);
        relay_stop();
    }
    spaces_stop();
}
