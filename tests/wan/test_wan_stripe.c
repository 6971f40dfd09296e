/* test_wan_stripe.c - a path that needs many sockets gets them, and links that are made again begin with them; near hosts are not sent to by BBR.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>

#include "tests/testing.h"

#include "tests/wan/wan_scene.h"

enum { MEGABYTE = 1 << 18 /* floats */, PEERS = 2, BEGUN = 16, FOUND = 64, SUMS = 40, FIRST_WINDOW = 3 << 20 /* bytes */ };

static struct scene s; /* large */

/* value[2]: sockets of the data connection with the other; value[3]: what the other may have under way, bytes. */
static void count_sockets(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTcpConnection_t to;
    pcclConnectionStats_t links[2]; /* the other is the control link */
    size_t count = 0, found = 0;
    (void)argument;
    peer_result(reply, pcclGetTcpConnections(self->comm, &to, 1, &count));
    reply->value[2] = count == 1 ? to.sockets : 0;
    PEER_EXPECT(self, pcclGetConnectionStats(self->comm, links, 2, &found) == pcclSuccess);
    reply->value[3] = found == 2 ? (int64_t)(links[0].window_bytes + links[1].window_bytes) : 0;
}

/* argument: int64_t.  Until there are as many; nothing is sent meanwhile, of which a policy could learn. */
static void wait_for_sockets(struct peer *self, const void *argument, struct reply *reply)
{
    int64_t want = *(const int64_t *)argument, until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    do {
        count_sockets(self, NULL, reply);
        sched_yield();
    } while (reply->value[2] < want && spawn_now_ms() < until);
}

static int64_t sockets(void)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(&s.all, s.set, count_sockets, NULL, 0, reply);
    return reply[0].value[2];
}

static void sum(size_t count)
{
    static uint64_t tag;
    struct reduce_job job = {.count = count, .tag = ++tag};
    scene_reduce(&s, &job);
}

static void leave_and_return(const char *unused)
{
    const int alone = 1, both = PEERS;
    const int64_t begun = BEGUN, want = FOUND / 2; /* the last trial may not be over */
    struct reply reply[PROCESSES_MOST];
    (void)unused;
    setenv("PCCL_TCP_CONGESTION", "cubic", 1);
    bool good = scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 25ms\nloss = 2%\n[host a]\n[host b]\n[host c]\n", NULL,
                            &(struct processes_options){.count = PEERS, .pool = 1});
    unsetenv("PCCL_TCP_CONGESTION");
    if (!good) {
        return;
    }
    EXPECT(sockets() <= 1); /* nothing has been sent */
    sum(MEGABYTE / 8);
    processes_do(&s.all, s.set, wait_for_sockets, &begun, sizeof begun, reply);
    EXPECT(reply[0].value[2] >= begun && reply[1].value[2] >= begun);
    EXPECT(reply[0].value[3] >= FIRST_WINDOW && reply[1].value[3] >= FIRST_WINDOW); /* without having seen a round trip full of frames */
    for (int i = 0; i < SUMS && sockets() < FOUND && test_failures == 0; i++) {
        sum(2 * MEGABYTE);
    }
    EXPECT(sockets() >= FOUND);
    process_do(&s.all, 1, peer_destroy, NULL, 0);
    process_do(&s.all, 0, peer_update_until, &alone, sizeof alone);
    process_send(&s.all, 1, peer_join, &both, sizeof both);
    process_send(&s.all, 0, peer_update_until, &both, sizeof both);
    processes_take(&s.all, s.set, reply);
    EXPECT(sockets() <= 1); /* nothing has been sent */
    sum(MEGABYTE / 8); /* too little to find anything out */
    processes_do(&s.all, s.set, wait_for_sockets, &want, sizeof want, reply);
    EXPECT(reply[0].value[2] >= want && reply[1].value[2] >= want);
    scene_expect_members(&s);
    scene_end(&s);
}

TEST(path_with_losses_begins_with_many_sockets_and_after_a_return_with_those_it_needed) /* it would find them out again, by trials of seconds */
{
    SCENE_NEEDED();
    scene_play(&s, leave_and_return, NULL);
}

static bool kernel_has_bbr(void)
{
    char text[256] = "";
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
    bool has = f != NULL && fgets(text, sizeof text, f) != NULL && strstr(text, "bbr") != NULL;
    if (f != NULL) {
        fclose(f);
    }
    return has;
}

static void meet_alone(const char *unused)
{
    const int64_t four = 4;
    struct reply reply[PROCESSES_MOST];
    (void)unused;
    if (scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 25ms\n[host a]\n[host b]\n[host c]\n", NULL,
                    &(struct processes_options){.count = PEERS, .pool = 1})) {
        processes_do(&s.all, s.set, wait_for_sockets, &four, sizeof four, reply);
        EXPECT(reply[0].value[2] == four && reply[1].value[2] == four);
        sum(MEGABYTE);
        EXPECT_EQ(sockets(), four); /* no trial of more in the first call */
        scene_end(&s);
    }
}

TEST(long_path_to_a_single_peer_has_four_bbr_sockets_before_the_first_call) /* one begins a first call, and each lost packet stops all of it */
{
    SCENE_NEEDED();
    if (!kernel_has_bbr()) {
        TEST_SKIP("this kernel has no BBR");
    }
    scene_play(&s, meet_alone, NULL);
}

enum { THREE = 3, FOUR = 4, NEAR_US = 2000, ROUNDS = 6 };

/* value[2]: sockets of all data connections, once there is one with each of the others. */
static void count_all_sockets(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTcpConnection_t to[FOUR];
    size_t count = 0;
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    (void)argument;
    do {
        peer_result(reply, pcclGetTcpConnections(self->comm, to, FOUR, &count));
        sched_yield();
    } while (count < FOUR - 1 && spawn_now_ms() < until);
    reply->value[2] = 0;
    for (size_t i = 0; i < count; i++) {
        reply->value[2] += to[i].sockets;
    }
}

static void meet_many(const char *unused)
{
    struct reply reply[PROCESSES_MOST];
    (void)unused;
    if (scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 25ms\n[host a]\n[host b]\n[host c]\n[host d]\n[host e]\n", NULL,
                    &(struct processes_options){.count = FOUR, .pool = 1})) {
        processes_do(&s.all, s.set, count_all_sockets, NULL, 0, reply);
        for (int i = 0; i < ROUNDS; i++) {
            sum(1); /* at least a round trip: what was wanted at once has come */
        }
        processes_do(&s.all, s.set, count_all_sockets, NULL, 0, reply);
        EXPECT_EQ(reply[FOUR - 1].value[2], FOUR - 1); /* the last to come knows of all from the start */
        scene_end(&s);
    }
}

TEST(long_paths_to_three_peers_begin_with_one_bbr_socket_each) /* four to each would overrun the queue of the line that they share */
{
    SCENE_NEEDED();
    if (!kernel_has_bbr()) {
        TEST_SKIP("this kernel has no BBR");
    }
    scene_play(&s, meet_many, NULL);
}

/* value[2]: connections with near hosts, of one socket without BBR; value[3]: with far ones, that have BBR. */
static void look_at_connections(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTcpConnection_t to[THREE];
    size_t count = 0;
    (void)argument;
    peer_result(reply, pcclGetTcpConnections(self->comm, to, THREE, &count));
    reply->value[2] = reply->value[3] = 0;
    for (size_t i = 0; i < count; i++) {
        bool near = to[i].least_rtt_us < NEAR_US, bbr = strcmp(to[i].congestion, "bbr") == 0;
        PEER_EXPECT(self, near || bbr);
        reply->value[2] += near && !bbr && to[i].sockets == 1;
        reply->value[3] += !near;
    }
}

/* A connection that was made while the machine was busy counts as far, so this may take more than one try. */
static bool near_ones_are_known;

static void meet_near_and_far(const char *unused)
{
    struct reply reply[PROCESSES_MOST];
    (void)unused;
    if (scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 20ms\n[host a]\n[host b]\n[host c]\n[host d]\n[path a b]\ndelay = 50us\n", NULL,
                    &(struct processes_options){.count = THREE, .pool = 1})) {
        sum(2 * MEGABYTE);
        processes_do(&s.all, s.set, look_at_connections, NULL, 0, reply);
        near_ones_are_known = reply[0].value[2] == 1 && reply[1].value[2] == 1;
        EXPECT_EQ(reply[2].value[2], 0);
        EXPECT(reply[0].value[3] == 1 && reply[1].value[3] == 1 && reply[2].value[3] == 2);
        scene_end(&s);
    }
}

TEST(hosts_of_a_site_exchange_data_without_bbr) /* it lost a tenth of what it sent over slow lines of one site */
{
    SCENE_NEEDED();
    if (!kernel_has_bbr()) {
        TEST_SKIP("this kernel has no BBR");
    }
    for (int i = 0; i < SCENE_TRIES && !near_ones_are_known; i++) {
        scene_play(&s, meet_near_and_far, NULL);
    }
    EXPECT(near_ones_are_known);
}
