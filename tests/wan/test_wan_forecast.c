/* test_wan_forecast.c - an edge that has changed since it was measured: the peer that sends on it names it, with both rates.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <unistd.h>

#include "pccl_topology.h"
#include "tests/wan/wan_scene.h"

enum { MEGABYTE = 1 << 18 /* floats */, PEERS = 3, LOG_BYTES = 1 << 16 };

static const char hub[] = "[defaults]\nrate = 100mbit\ndelay = 20ms\nqueue = 1MB\n[host a]\n[host b]\n[host c]\n[host d]\n"
                          "[path a c]\nrate = 20mbit\n"; /* b is the inner node of the best tree */
static struct scene s; /* large */

/* argument: a descriptor, where this process logs from here on. */
static void log_into(struct peer *self, const void *argument, struct reply *reply)
{
    (void)reply;
    PEER_EXPECT(self, dup2(*(const int *)argument, STDERR_FILENO) == STDERR_FILENO);
}

static void reduce_often(uint64_t first_tag, uint32_t megabytes)
{
    for (uint64_t i = 0; i < 4; i++) {
        struct reduce_job job = {.count = megabytes * MEGABYTE, .tag = first_tag + i, .members = s.set};
        scene_reduce(&s, &job);
    }
}

/* The numbers behind the words that name an edge in the log so far; false: it names none. */
static bool find_edge(FILE *log, char text[LOG_BYTES], double rates[2])
{
    rewind(log);
    text[fread(text, 1, LOG_BYTES - 1, log)] = 0;
    const char *at = strstr(text, " was expected: peer 1.");
    return at != NULL && sscanf(at, " was expected: peer 1.%*u is sent %lf Mb/s, and %lf Mb/s was measured", &rates[0], &rates[1]) == 2;
}

/* The members' largest rate of an edge that operations have shown. */
static void told_observed(struct peer *self, const void *argument, struct reply *reply)
{
    pcclEdge_t edges[PEERS * PEERS];
    pcclTopology_t t = {.size = sizeof t, .capacity = PEERS, .edges = edges};
    uint64_t most = 0;
    (void)argument;
    PEER_EXPECT(self, pcclGetTopology(self->comm, &t, 5000) == pcclSuccess);
    for (size_t i = 0; i < PEERS * PEERS; i++) {
        most = edges[i].source == pcclEdgeObserved && edges[i].rate > most ? edges[i].rate : most;
    }
    reply->value[0] = (int64_t)most;
}

static void speed_edges_up(const char *algorithm)
{
    static const char *const edges[] = {"path a to b rate 1gbit",   "path b to a rate 1gbit",   "path b to c rate 1gbit",
                                        "path c to b rate 1gbit",   "path a to c rate 200mbit", "path c to a rate 200mbit"};
    setenv("PCCL_ALGO", algorithm, 1);
    bool good = scene_start(&s, hub, NULL, &(struct processes_options){.count = PEERS, .pool = 1});
    unsetenv("PCCL_ALGO");
    if (good) {
        processes_do(&s.all, s.set, peer_optimise, NULL, 0, NULL);
        for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
            EXPECT(scene_set(&s, edges[i]));
        }
        reduce_often(300, 16); /* trees split what they carry as before */
        int64_t bps = process_do(&s.all, 0, told_observed, NULL, 0).value[0];
        EXPECT(bps > 110000000 && bps < 1000000000);
        scene_end(&s);
    }
}

TEST(operations_that_move_more_than_was_measured_raise_the_rate) /* a probe that met other traffic would count for ever */
{
    SCENE_NEEDED();
    scene_play(&s, speed_edges_up, "allreduce:forest");
}

static void slow_an_edge(const char *algorithm)
{
    static char text[LOG_BYTES];
    double rates[2] = {0, 0};
    FILE *log = tmpfile(); /* before the processes are made: they have the descriptor, too */
    EXPECT(log != NULL);
    setenv("PCCL_LOG_LEVEL", "info", 1);
    setenv("PCCL_ALGO", algorithm, 1);
    bool good = log != NULL && scene_start(&s, hub, NULL, &(struct processes_options){.count = PEERS, .pool = 1});
    unsetenv("PCCL_LOG_LEVEL");
    unsetenv("PCCL_ALGO");
    if (good) {
        int fd = fileno(log);
        processes_do(&s.all, 1, log_into, &fd, sizeof fd, NULL);
        processes_do(&s.all, s.set, peer_optimise, NULL, 0, NULL);
        reduce_often(100, 4);
        EXPECT(!find_edge(log, text, rates));
        EXPECT(scene_set(&s, "path a to b rate 10mbit"));
        reduce_often(200, 4);
        EXPECT(find_edge(log, text, rates));
        EXPECT(rates[0] > 2 && rates[0] < 15 && rates[1] > 70 && rates[1] < 110); /* a busy machine sends less than 10 */
        if (test_failures > 0) {
            fprintf(stderr, "%.1f Mb/s, expected 2 to 15; %.1f Mb/s measured, expected 70 to 110\n%s", rates[0], rates[1], text);
        }
        scene_end(&s);
    }
    if (log != NULL) {
        fclose(log);
    }
}

TEST(edge_that_became_slower_than_it_was_measured_is_named_by_its_sender) /* sums would take longer than predicted, and nobody knew why */
{
    SCENE_NEEDED();
    scene_play(&s, slow_an_edge, "allreduce:forest");
}
