/* test_world_churn.c - one process in hundreds of worlds, of one master and of three: created, used, one of them broken by a kill, left,
 * created again under the same names.  WORLD_CYCLES says how many worlds in all; 10,000 take a minute.  Under a sanitizer, which is ten times
 * slower, there are a tenth as many at a time.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/fault/peer_calls.h"

enum { WORLDS_MOST = 200, MEMBERS = 3, MASTERS = 3, CYCLES = 1000, WARM = 3 /* rounds after which a process has what it keeps */ };

struct worlds {
    pcclComm_t *comm[WORLDS_MOST];
    pcclComm_t *broken;    /* the one that the fourth process is in, too: killed in each round, another one in the next */
};

/* In which a process is at a time. */
static int worlds(void)
{
    return (int)test_scaled(WORLDS_MOST);
}

/* World k is at port k % MASTERS, whose masters are all the same one or not; 0 is that of the processes. */
struct masters {
    int count;
    struct program more[MASTERS - 1];
    uint16_t port[MASTERS];
};

static bool masters_start(struct masters *m, const struct processes *all, int count)
{
    bool started = true;
    m->count = count;
    for (int i = 0; i < MASTERS; i++) {
        m->port[i] = all->address.port;
    }
    for (int i = 1; i < count; i++) {
        m->port[i] = master_start(&m->more[i - 1], "--listen=127.0.0.1:0", "--log-level=none", NULL);
        started = started && m->port[i] != 0;
    }
    EXPECT(started);
    return started;
}

static void masters_stop(struct masters *m)
{
    for (int i = 1; i < m->count; i++) {
        program_end(&m->more[i - 1], SIGTERM);
        EXPECT_EQ(m->more[i - 1].status, 0);
    }
}

static pcclComm_t *create(struct peer *self, uint16_t port, const char *name, uint32_t size)
{
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params, .master_address = self->master, .world = name, .world_size = size, .rank = (uint32_t)self->index};
    params.master_address.port = port;
    return peer_world(self, &params);
}

/* Among the first `members` processes. */
static void reduce_among(struct peer *self, pcclComm_t *comm, uint64_t tag, int members)
{
    float x[8], y[8] = {0}, sum = (float)(members * (members + 1) / 2);
    const pcclReduceDescriptor_t d = peer_floats(8, tag);
    for (int i = 0; i < 8; i++) {
        x[i] = (float)(self->index + 1) * (float)(i + (int)(tag % 7));
    }
    PEER_EXPECT(self, pcclAllReduce(x, y, &d, comm, NULL) == pcclSuccess);
    for (int i = 0; i < 8; i++) {
        PEER_EXPECT(self, y[i] == sum * (float)(i + (int)(tag % 7)));
    }
}

static void reduce(struct peer *self, pcclComm_t *comm, uint64_t tag)
{
    reduce_among(self, comm, tag, MEMBERS);
}

static struct worlds *worlds_of(struct peer *self)
{
    struct rlimit most;
    if (self->own == NULL) {
        PEER_EXPECT(self, getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_max >= 2048);
        most.rlim_cur = most.rlim_max < 8192 ? most.rlim_max : 8192;
        PEER_EXPECT(self, setrlimit(RLIMIT_NOFILE, &most) == 0); /* the library never does */
        self->own = calloc(1, sizeof(struct worlds));
    }
    return self->own;
}

/* One more round of all worlds at the masters at these ports; the ones before are left when their successors, of the same names, are there. */
static void round_of_all(struct peer *self, const void *argument, struct reply *reply)
{
    struct worlds *w = worlds_of(self);
    const uint16_t *port = argument;
    for (int k = 0; k < worlds(); k++) {
        char name[16];
        snprintf(name, sizeof name, "world %d", k);
        pcclComm_t *before = w->comm[k];
        w->comm[k] = create(self, port[k % MASTERS], name, MEMBERS);
        reduce(self, w->comm[k], (uint64_t)k);
        PEER_EXPECT(self, before == NULL || pcclDestroyCommunicator(before) == pcclSuccess);
    }
    for (int k = worlds(); k-- > 0;) {
        reduce(self, w->comm[k], (uint64_t)k + 1);
    }
    peer_result(reply, pcclSuccess);
}

/* value[0]: descriptors, [1]: threads, [2]: bytes resident, [3]: bytes that are allocated, not counting maps. */
static void measure(struct peer *self, const void *argument, struct reply *reply)
{
    (void)self;
    (void)argument;
    reply->value[0] = spawn_entries("/proc/self/fd");
    reply->value[1] = spawn_entries("/proc/self/task");
    reply->value[2] = peer_resident();
    reply->value[3] = (int64_t)mallinfo2().uordblks; /* 0 under a sanitizer, which finds leaks by itself */
    peer_result(reply, pcclSuccess);
}

/* Of memory; of descriptors, but for connections that are just being closed. */
static bool more_held(const struct reply *last, const struct reply *first)
{
    bool more = false;
    for (int i = 0; i < MEMBERS; i++) {
        more |= last[i].value[3] > first[i].value[3] + (128 << 10) || last[i].value[0] > first[i].value[0] + 8;
    }
    return more;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* argument: of how many members; the name is always the same. */
static void create_broken(struct peer *self, const void *argument, struct reply *reply)
{
    struct worlds *w = worlds_of(self);
    int members = *(const int *)argument;
    w->broken = create(self, self->master.port, "broken", (uint32_t)members);
    reduce_among(self, w->broken, 3, members);
    peer_result(reply, pcclSuccess);
}

static void leave_broken(struct peer *self, const void *argument, struct reply *reply)
{
    struct worlds *w = self->own;
    (void)argument;
    peer_result(reply, pcclDestroyCommunicator(w->broken));
}

/* Its rule is that it ends with its first loss; a call that the loss finds under way ends as one of a world that goes on.
 * value[0]: calls until the world was over. */
static void use_broken(struct peer *self, const void *argument, struct reply *reply)
{
    struct worlds *w = self->own;
    float x = 1, y = 0;
    const pcclReduceDescriptor_t d = peer_floats(1, 1);
    pcclErrorInfo_t why = {0};
    (void)argument;
    while (why.error_class != pcclClassRejoin && reply->value[0] < 2) {
        peer_result(reply, pcclAllReduce(&x, &y, &d, w->broken, NULL));
        PEER_EXPECT(self, pcclGetLastErrorInfo(&why) == pcclSuccess && x == 1);
        reply->value[0]++;
    }
    PEER_EXPECT(self, why.error_class == pcclClassRejoin);
}

/* Reduces in all worlds in turn, a given number of rounds; value[0]: the longest time between two that ended, ns.  Tells early on. */
static void reduce_in_all(struct peer *self, const void *argument, struct reply *reply)
{
    struct worlds *w = self->own;
    int64_t longest = 0, before = now_ns();
    int all = worlds() * *(const int *)argument;
    for (int i = 0; i < all; i++) {
        reduce(self, w->comm[i % worlds()], (uint64_t)(i / worlds()));
        int64_t now = now_ns();
        longest = now - before > longest ? now - before : longest;
        before = now;
        if (i == all / 8) {
            peer_note(self, 1);
        }
    }
    reply->value[0] = longest;
    peer_result(reply, pcclSuccess);
}

/* A fourth process is in one world more, and is killed while the others work in all of theirs; that world's name is used again by those
 * who are left.  Returns the longest gap between two operations in the other worlds, ns. */
static int64_t break_one(struct processes *all, int rounds)
{
    struct reply reply[PROCESSES_MOST];
    int four = MEMBERS + 1, three = MEMBERS;
    int64_t longest = 0;
    all->count = MEMBERS; /* the one before is dead and reaped */
    if (processes_add(all, 0, NULL) != MEMBERS) {
        return 0;
    }
    processes_do(all, processes_set(four), create_broken, &four, sizeof four, reply);
    processes_send(all, processes_set(three), reduce_in_all, &rounds, sizeof rounds);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(process_note(all, i), 1);
    }
    process_signal(all, MEMBERS, SIGKILL);
    processes_take(all, processes_set(three), reply);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        longest = reply[i].value[0] > longest ? reply[i].value[0] : longest;
    }
    processes_do(all, processes_set(three), use_broken, NULL, 0, reply);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].value[0], reply[0].value[0]);
    }
    processes_do(all, processes_set(three), leave_broken, NULL, 0, reply);
    processes_do(all, processes_set(three), create_broken, &three, sizeof three, reply);
    processes_do(all, processes_set(three), leave_broken, NULL, 0, reply);
    return longest;
}

static void expect_flat(struct processes *all, const struct reply *first, int rounds)
{
    struct reply last[PROCESSES_MOST];
    int64_t by = spawn_now_ms() + SPAWN_PATIENCE_MS;
    do { /* worlds give back what they hold when they have not been used for a while */
        processes_do(all, processes_set(MEMBERS), measure, NULL, 0, last);
    } while (more_held(last, first) && spawn_now_ms() < by);
    for (int i = 0; i < MEMBERS; i++) {
        printf("# process %d: %ld descriptors, %ld threads, %ld bytes resident, %ld allocated after the first rounds of %d worlds; %ld, %ld, %ld, "
               "%ld after %d\n", i, (long)first[i].value[0], (long)first[i].value[1], (long)first[i].value[2], (long)first[i].value[3],
               worlds(), (long)last[i].value[0], (long)last[i].value[1], (long)last[i].value[2], (long)last[i].value[3], rounds);
        EXPECT_EQ(last[i].value[1], first[i].value[1]);
        bool counted = first[i].value[3] > 0;
        EXPECT(!counted || last[i].value[2] <= 2 * first[i].value[2]); /* a heap has holes; what it holds tells more */
    }
    EXPECT(!more_held(last, first));
}

static void churn(int of_masters)
{
    struct processes all;
    struct masters masters;
    const char *asked = getenv("WORLD_CYCLES");
    int rounds = ((asked != NULL ? atoi(asked) : (int)test_scaled(CYCLES)) + worlds() - 1) / worlds();
    int warm = getenv("PCCL_SANITIZED") != NULL ? 1 : WARM;
    struct reply first[PROCESSES_MOST] = {0}, reply[PROCESSES_MOST];
    int64_t longest = 0;
    rounds = rounds > warm ? rounds : warm + 1;
    if (!processes_start(&all, &(struct processes_options){.count = MEMBERS, .failures = &test_failures})) {
        return;
    }
    if (!masters_start(&masters, &all, of_masters)) {
        processes_stop(&all);
        return;
    }
    for (int round = 0; round < rounds; round++) {
        processes_do(&all, processes_set(MEMBERS), round_of_all, masters.port, sizeof masters.port, reply);
        /* Worlds that are used more move their control links to memory, and hold more descriptors then. */
        int64_t gap = break_one(&all, round == 0 ? (int)test_scaled(8) : 1);
        longest = gap > longest ? gap : longest;
        if (round + 1 == warm) {
            processes_do(&all, processes_set(MEMBERS), measure, NULL, 0, first);
        }
    }
    printf("# at most %.1f ms between two operations in %d other worlds during %d kills\n", (double)longest / 1e6, worlds(), rounds);
    expect_flat(&all, first, rounds);
    processes_stop(&all);
    masters_stop(&masters);
}

TEST(worlds_of_one_master_are_created_used_broken_and_created_again_and_nothing_grows)
{
    churn(1);
}

TEST(worlds_of_three_masters_are_created_used_broken_and_created_again_and_nothing_grows)
{
    churn(MASTERS);
}
