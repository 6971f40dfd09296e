/* test_reset.c - all connections of one living process reset at once: it keeps its place in every world; one that ends does not.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */, HOSTS = 3, ALL = 7 };

/* Three hosts with a process each; the master is on the bridge.  False: skipped, or failed. */
struct scene {
    struct network net;
    struct processes all;
    int64_t id[HOSTS];
};

static void look(struct scene *s, int64_t id[HOSTS])
{
    struct reply reply[PROCESSES_MOST];
    processes_do(&s->all, ALL, peer_look, NULL, 0, reply);
    for (int i = 0; i < HOSTS; i++) {
        EXPECT_EQ(reply[i].value[4], HOSTS);
        id[i] = reply[i].value[6];
    }
}

static bool scene_open(struct scene *s)
{
    const char *why = network_start(&s->net, HOSTS);
    if (why != NULL) {
        test_skipped = why;
        return false;
    }
    if (!peers_start_on(&s->all, &s->net, &(struct processes_options){.count = HOSTS, .failures = &test_failures, .pool = 2, .loss_ms = 20000})) {
        network_stop(&s->net);
        return false;
    }
    struct reduce_job job = {.count = MEGABYTE, .tag = 100, .members = ALL}; /* data connections, too */
    processes_do(&s->all, ALL, peer_reduce, &job, sizeof job, NULL);
    look(s, s->id);
    return true;
}

static void scene_close(struct scene *s)
{
    processes_stop(&s->all);
    network_stop(&s->net);
}

/* A peer that has lost its place gets another id. */
static void expect_places(struct scene *s)
{
    int64_t id[HOSTS];
    look(s, id);
    for (int i = 0; i < HOSTS; i++) {
        EXPECT_EQ(id[i], s->id[i]);
    }
}

/* By the order of ids: the newer end of a pair dials, so the first is dialled by all, and the last dials all. */
static int host_of(const struct scene *s, int place)
{
    int host = 0;
    for (int i = 0; i < HOSTS; i++) {
        int before = 0;
        for (int k = 0; k < HOSTS; k++) {
            before += s->id[k] < s->id[i];
        }
        host = before == place ? i : host;
    }
    return host;
}

/* One outcome for all (G1): success, or an error after which the retry is a success. */
static void expect_same(const struct reply *reply)
{
    for (int i = 0; i < HOSTS; i++) {
        EXPECT_EQ(reply[i].result, reply[0].result);
    }
    EXPECT(reply[0].result == pcclSuccess || reply[0].result == pcclRankConnectionLost);
}

static void reduce_until_success(struct scene *s, struct reduce_job *job)
{
    struct reply reply[PROCESSES_MOST] = {{.result = -1}};
    for (int tries = 0; reply[0].result != pcclSuccess && test_failures == 0; tries++) {
        processes_do(&s->all, ALL, peer_reduce, job, sizeof *job, reply);
        expect_same(reply);
        EXPECT(tries < 3);
    }
}

/* The connections of these hosts are reset when the job's victim is inside the operation; all keep their places. */
static void reset_in_reduce(struct scene *s, unsigned hosts, struct reduce_job *job)
{
    struct reply reply[PROCESSES_MOST];
    processes_send(&s->all, ALL, peer_reduce, job, sizeof *job);
    EXPECT_EQ(process_note(&s->all, job->victim), 1);
    for (int host = 0; host < HOSTS; host++) {
        if (hosts >> host & 1) {
            EXPECT(network_reset(&s->net, host));
        }
    }
    processes_take(&s->all, ALL, reply);
    expect_same(reply);
    job->note = false;
    reduce_until_success(s, job);
    expect_places(s);
}

TEST(process_whose_connections_are_reset_between_operations_keeps_its_place) /* `ss -K` cost it its place in milliseconds */
{
    struct scene s;
    if (!scene_open(&s)) {
        return;
    }
    for (int place = 0; place < HOSTS; place++) {
        int host = host_of(&s, place);
        EXPECT(network_reset(&s.net, host));
        struct reduce_job job = {.count = MEGABYTE, .tag = (uint64_t)host, .members = ALL, .in_place = true};
        reduce_until_success(&s, &job);
        expect_places(&s);
    }
    scene_close(&s);
}

TEST(process_whose_connections_are_reset_in_an_operation_keeps_its_place)
{
    struct scene s;
    if (!scene_open(&s)) {
        return;
    }
    for (int host = 0; host < HOSTS; host++) {
        struct reduce_job job = {.count = 24 * MEGABYTE, .tag = (uint64_t)host, .members = ALL, .victim = host, .note = true, .after = 4 << 20,
                                 .in_place = true};
        reset_in_reduce(&s, 1u << host, &job);
    }
    scene_close(&s);
}

TEST(process_whose_connections_are_reset_in_a_vote_keeps_its_place_and_its_vote)
{
    struct scene s;
    if (!scene_open(&s)) {
        return;
    }
    for (int host = 0; host < HOSTS; host++) {
        struct reply reply[PROCESSES_MOST];
        int last = (host + 1) % HOSTS; /* it votes when the reset has happened */
        processes_send(&s.all, ALL & ~(1u << last), peer_update, NULL, 0);
        EXPECT(network_reset(&s.net, host));
        process_send(&s.all, last, peer_update, NULL, 0);
        processes_take(&s.all, ALL, reply);
        for (int i = 0; i < HOSTS; i++) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
        }
        struct reduce_job job = {.count = MEGABYTE, .tag = (uint64_t)host, .members = ALL};
        reduce_until_success(&s, &job);
        expect_places(&s);
    }
    scene_close(&s);
}

TEST(all_processes_whose_connections_are_reset_at_once_keep_their_places)
{
    struct scene s;
    if (!scene_open(&s)) {
        return;
    }
    struct reduce_job job = {.count = 24 * MEGABYTE, .tag = 1, .members = ALL, .victim = 1, .note = true, .after = 4 << 20};
    reset_in_reduce(&s, ALL, &job);
    scene_close(&s);
}

/* ---- Several worlds ------------------------------------------------------------------------------------------------------ */

enum { WORLDS = 3 };

/* Connects to so many worlds of all three, kept in self->own. */
static void join_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    static pcclComm_t *comms[WORLDS];
    (void)argument;
    for (int w = 0; w < WORLDS; w++) {
        char name[16];
        snprintf(name, sizeof name, "world %d", w);
        const pcclCommCreateParamsEx_t params = {.size = sizeof params, .p2p_connection_pool_size = 1, .world = name};
        comms[w] = peer_world(self, &params);
        int size = 0;
        while (pcclGetAttribute(comms[w], PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclSuccess && size != HOSTS) {
            PEER_EXPECT(self, pcclUpdateTopology(comms[w]) == pcclSuccess);
        }
    }
    self->own = comms;
    reply->result = pcclSuccess;
}

/* One sum in each world, until it succeeds.  value[w]: the own id there. */
static void reduce_in_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t **comms = self->own;
    (void)argument;
    for (int w = 0; w < WORLDS; w++) {
        float in[2] = {1, 2}, out[2] = {0, 0};
        pcclReduceDescriptor_t d = peer_floats(2, 7);
        pcclReduceInfo_t info;
        pcclResult_t result = pcclRankConnectionLost;
        for (int tries = 0; result == pcclRankConnectionLost && tries < 4; tries++) {
            result = pcclAllReduce(in, out, &d, comms[w], &info);
        }
        PEER_EXPECT(self, result == pcclSuccess);
        PEER_EXPECT(self, out[0] == HOSTS && out[1] == 2 * HOSTS);
        pcclPeerInfo_t own = {0};
        PEER_EXPECT(self, pcclGetSelf(comms[w], &own) == pcclSuccess);
        reply->value[w] = (int64_t)own.id;
    }
    reply->result = pcclSuccess;
}

static void leave_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t **comms = self->own;
    (void)argument;
    for (int w = 0; w < WORLDS; w++) {
        PEER_EXPECT(self, pcclDestroyCommunicator(comms[w]) == pcclSuccess);
    }
    reply->result = pcclSuccess;
}

TEST(process_keeps_its_place_in_each_of_its_worlds)
{
    struct scene s;
    if (!scene_open(&s)) {
        return;
    }
    struct reply before[PROCESSES_MOST], after[PROCESSES_MOST];
    processes_do(&s.all, ALL, join_worlds, NULL, 0, NULL);
    processes_do(&s.all, ALL, reduce_in_worlds, NULL, 0, before);
    EXPECT(network_reset(&s.net, 1));
    processes_do(&s.all, ALL, reduce_in_worlds, NULL, 0, after);
    for (int i = 0; i < HOSTS; i++) {
        for (int w = 0; w < WORLDS; w++) {
            EXPECT_EQ(after[i].value[w], before[i].value[w]);
        }
    }
    expect_places(&s);
    processes_do(&s.all, ALL, leave_worlds, NULL, 0, NULL);
    scene_close(&s);
}

/* ---- The dead -------------------------------------------------------------------------------------------------------------- */

TEST(process_that_ends_is_known_by_its_refusal_whoever_dials) /* else the survivors would wait for the whole second */
{
    for (int place = 0; place < HOSTS; place++) {
        struct scene s;
        if (!scene_open(&s)) {
            return;
        }
        int victim = host_of(&s, place);
        bool known = false;
        unsigned left = ALL & ~(1u << victim);
        struct reply reply[PROCESSES_MOST];
        struct reduce_job job = {.count = 24 * MEGABYTE, .tag = 1, .members = ALL, .victim = victim, .signal = SIGKILL, .after = 4 << 20};
        processes_send(&s.all, ALL, peer_reduce, &job, sizeof job);
        process_wait_killed(&s.all, victim);
        processes_take(&s.all, left, reply);
        for (int i = 0; i < HOSTS; i++) {
            if ((left >> i & 1) != 0) {
                EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
                EXPECT_EQ(reply[i].cause, pcclCausePeerLost);
                known = known || strstr(reply[i].text, "its connections closed") != NULL; /* a late caller hears the cause alone */
                EXPECT(strstr(reply[i].text, "did not connect again") == NULL); /* what is said after the second */
            }
        }
        EXPECT(known);
        scene_close(&s);
    }
}
