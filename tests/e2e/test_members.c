/* test_members.c - coming and going while calls run: newcomers, destroyed communicators, ports.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api.h"
#include "tests/e2e/cluster.h"

/* ---- A newcomer while the others reduce ----------------------------------------------------------------------------- */

struct coming {
    pthread_barrier_t begun;
    int sizes[3]; /* of the reduces before, at and after the update that admits, as seen by peer 0 */
};

static void reduce_ones(struct cluster_peer *p, uint64_t tag, uint32_t want)
{
    float ones[5000], sum[5000];
    for (int i = 0; i < 5000; i++) {
        ones[i] = 1;
    }
    pcclReduceDescriptor_t d = cluster_floats(5000, tag);
    pcclReduceInfo_t info = {0};
    EXPECT_EQ(pcclAllReduce(ones, sum, &d, p->comm, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, want);
    EXPECT(sum[0] == (float)want && sum[4999] == (float)want);
}

/* Peer 2 connects while 0 and 1 go on reducing; only their update lets it in, and the sizes change with that answer only. */
static void come_while_reducing(struct cluster_peer *p, void *context)
{
    struct coming *x = context;
    if (p->index == 2) {
        pthread_barrier_wait(&x->begun);
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
        EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 3);
        reduce_ones(p, 100, 3);
        return;
    }
    reduce_ones(p, 1, 2);
    if (p->index == 0) {
        pthread_barrier_wait(&x->begun);
    }
    uint64_t stop = 0, seen = 0;
    for (uint64_t tag = 2; stop == 0; tag++) {
        reduce_ones(p, tag, 2);
        EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
        bool pending = false;
        EXPECT_EQ(pcclArePeersPending(p->comm, &pending), pcclSuccess);
        uint64_t mine = pending;
        pcclReduceDescriptor_t d = cluster_floats(1, 1000);
        d.src_descriptor.datatype = pcclUint64;
        d.op = pcclMin;
        EXPECT_EQ(pcclAllReduce(&mine, &stop, &d, p->comm, NULL), pcclSuccess);
        seen++;
    }
    EXPECT(seen > 0);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 3);
    reduce_ones(p, 100, 3);
}

static void join_two(struct cluster_peer *p, void *context)
{
    (void)context;
    if (p->index < 2) {
        EXPECT_EQ(cluster_join(p->comm, 2), pcclSuccess);
    }
}

TEST(a_newcomer_waits_beside_running_reduces_and_is_admitted_by_the_update)
{
    struct cluster c;
    struct coming x;
    pthread_barrier_init(&x.begun, NULL, 2);
    cluster_master(&c);
    for (int i = 0; i < 3; i++) {
        cluster_create(&c, i, 0, 2, 0);
    }
    cluster_run(&c, join_two, NULL);
    cluster_run(&c, come_while_reducing, &x);
    cluster_stop(&c);
    pthread_barrier_destroy(&x.begun);
}

/* ---- Destroy beside pending calls --------------------------------------------------------------------------------------- */

enum { CALLS = 4 };

struct pending {
    pcclComm_t *comm;
    int kind;
    pcclResult_t result;
    atomic_bool last_call; /* the call that waits comes next, and is the last one */
    pthread_t thread;
};


/* Until the calls of all these threads are inside the library: nobody may start one while the communicator is destroyed. */
static void until_inside(struct pending *x, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        while (!atomic_load(&x[k].last_call)) {
            sched_yield();
        }
    }
    while (atomic_load(&x->comm->comm->calls.inside) < count) {
        sched_yield();
    }
}

static void *pending_main(void *argument)
{
    struct pending *x = argument;
    float one = 1, sum = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 70 + (uint64_t)x->kind);
    float *many = calloc(1 << 20, sizeof *many);
    pcclReduceDescriptor_t large = cluster_floats(1 << 20, 80);
    pcclAsyncReduceOp_t handle;
    atomic_store(&x->last_call, x->kind != 2);
    switch (x->kind) {
    case 0:
        x->result = pcclAllReduce(&one, &sum, &d, x->comm, NULL);
        break;
    case 1:
        x->result = pcclAllReduce(many, many, &large, x->comm, NULL);
        break;
    case 2:
        x->result = pcclAllReduceAsync(&one, &sum, &d, x->comm, &handle);
        atomic_store(&x->last_call, true);
        if (x->result == pcclSuccess) {
            x->result = pcclAwaitAsyncReduce(&handle, NULL);
        }
        break;
    default: {
        bool pending = false;
        x->result = pcclArePeersPending(x->comm, &pending);
        break;
    }
    }
    free(many);
    return NULL;
}

TEST(destroy_ends_the_pending_calls_of_other_threads)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 2);
    struct pending x[CALLS];
    for (int k = 0; k < CALLS; k++) {
        x[k] = (struct pending){.comm = c.peer[0].comm, .kind = k};
        EXPECT_EQ(pthread_create(&x[k].thread, NULL, pending_main, &x[k]), 0);
    }
    for (size_t count = 0; count < CALLS;) { /* all wait for peer 1, which calls nothing */
        pcclWaitInfo_t waits[8];
        EXPECT_EQ(pcclGetWaits(c.peer[0].comm, waits, 8, &count), pcclSuccess);
    }
    until_inside(x, CALLS);
    EXPECT_EQ(pcclDestroyCommunicator(c.peer[0].comm), pcclSuccess);
    c.peer[0].comm = NULL;
    for (int k = 0; k < CALLS; k++) {
        pthread_join(x[k].thread, NULL);
        EXPECT_EQ(x[k].result, pcclMasterConnectionFailed);
    }
    EXPECT_EQ(pcclUpdateTopology(c.peer[1].comm), pcclSuccess);
    EXPECT_EQ(cluster_size(c.peer[1].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
    cluster_stop(&c);
}

static void join_both(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(cluster_join(p->comm, 2), pcclSuccess);
}

/* The await comes when the session that ran the operation is gone, and its communicator has tried to connect again. */
TEST(an_input_is_restored_by_an_await_after_connecting_again) /* the caller goes on with half a sum */
{
    struct cluster c;
    float x[100], y = 1;
    pcclAsyncReduceOp_t handle;
    pcclReduceDescriptor_t d = cluster_floats(100, 7), other = cluster_floats(1, 8);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 300);
    cluster_create(&c, 1, 0, 1, 300);
    cluster_run(&c, join_both, NULL);
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i;
    }
    EXPECT_EQ(pcclAllReduceAsync(x, x, &d, c.peer[0].comm, &handle), pcclSuccess);
    memset(x, 0, sizeof x); /* as the library does while it runs */
    EXPECT_EQ(pcclInterruptMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(c.master), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(c.peer[1].comm), pcclSuccess);
    c.peer[1].comm = NULL;
    EXPECT_EQ(pcclAllReduce(&y, &y, &other, c.peer[0].comm, NULL), pcclMasterConnectionFailed);
    EXPECT_EQ(pcclSetOption(c.peer[0].comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 200), pcclSuccess);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclMasterConnectionFailed);
    for (int i = 0; i < 100; i++) {
        EXPECT(x[i] == (float)i);
    }
    EXPECT(y == 1);
    cluster_stop(&c);
}

static void *connect_main(void *argument)
{
    struct pending *x = argument;
    x->result = pcclConnect(x->comm);
    return NULL;
}

/* Polls until a wait names a peer: the master tells with its heartbeats. */
static pcclWaitInfo_t named_wait(const pcclComm_t *comm)
{
    pcclWaitInfo_t waits[8];
    size_t count = 0;
    do {
        EXPECT_EQ(pcclGetWaits(comm, waits, 8, &count), pcclSuccess);
    } while (count == 0 || waits[0].peer == 0);
    return waits[0];
}

TEST(a_vote_and_an_admission_name_a_peer_that_has_not_called) /* "waits for the master" sends its user to the wrong machine */
{
    struct cluster c;
    pcclPeerInfo_t idle;
    cluster_start(&c, 2, NULL, 1);
    cluster_create(&c, 2, 0, 1, 0);
    struct pending vote = {.comm = c.peer[0].comm, .kind = CALLS}, newcomer = {.comm = c.peer[2].comm};
    EXPECT_EQ(pcclGetSelf(c.peer[1].comm, &idle), pcclSuccess);
    EXPECT_EQ(pthread_create(&vote.thread, NULL, pending_main, &vote), 0);
    pcclWaitInfo_t w = named_wait(vote.comm);
    EXPECT_EQ(w.peer, idle.id);
    EXPECT_STR(w.phase, "query");
    bool pending = false;
    EXPECT_EQ(pcclArePeersPending(c.peer[1].comm, &pending), pcclSuccess);
    pthread_join(vote.thread, NULL);
    EXPECT_EQ(vote.result, pcclSuccess);
    EXPECT_EQ(pthread_create(&newcomer.thread, NULL, connect_main, &newcomer), 0);
    w = named_wait(newcomer.comm);
    EXPECT(w.peer <= idle.id); /* both have not updated */
    EXPECT_STR(w.phase, "connect");
    int64_t age = w.age_ns;
    while (w.age_ns < age + 20000000) { /* counts from the call on */
        w = named_wait(newcomer.comm);
        EXPECT(w.age_ns >= age);
    }
    EXPECT_EQ(pcclLeave(newcomer.comm), pcclInvalidUsage); /* not a member yet */
    EXPECT_STR(pcclGetLastError(), "leave: pcclConnect has not returned");
    EXPECT_EQ(pcclConnect(newcomer.comm), pcclInvalidUsage);
    EXPECT_STR(pcclGetLastError(), "connect: not allowed now: pcclConnect is under way in another thread: fix the order of the calls");
    EXPECT_EQ(pcclDestroyCommunicator(newcomer.comm), pcclSuccess);
    c.peer[2].comm = NULL;
    pthread_join(newcomer.thread, NULL);
    EXPECT_EQ(newcomer.result, pcclMasterConnectionFailed);
    cluster_stop(&c);
}

/* ---- Connecting again beside calls that end ------------------------------------------------------------------------------ */

enum { RETURNS = 60 };

struct returning {
    pcclComm_t *comm;
    atomic_bool over;
};

/* The others admit whoever is there, and go on until peer 0 has come and gone often enough. */
static void admit_until_over(struct cluster_peer *p, struct returning *x)
{
    while (!atomic_load(&x->over)) {
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    }
}

/* A query is answered when the other one waits in its next update: so that is its last one. */
static void finish(struct cluster_peer *p, struct returning *x)
{
    bool pending = false;
    EXPECT_EQ(pcclArePeersPending(p->comm, &pending), pcclSuccess);
    atomic_store(&x->over, true);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
}

/* Peer 0 leaves while its other thread waits in a call, and connects at once: the call must end with the old membership's
 * error, a handle of before must still have its outcome, and the new membership must know nothing of either. */
static void leave_and_return(struct cluster_peer *p, void *context)
{
    struct returning *x = context;
    if (p->index != 0) {
        admit_until_over(p, x);
        return;
    }
    float *many = calloc(1 << 18, sizeof *many);
    for (int i = 0; i < RETURNS; i++) {
        struct pending other = {.comm = p->comm, .kind = i % (CALLS - 1)}; /* a query is answered: peer 1 votes */
        pcclReduceDescriptor_t large = cluster_floats(1 << 18, 90);
        pcclAsyncReduceOp_t handle;
        EXPECT_EQ(pcclAllReduceAsync(many, many, &large, p->comm, &handle), pcclSuccess);
        EXPECT_EQ(pthread_create(&other.thread, NULL, pending_main, &other), 0);
        for (size_t count = 0; count < 2;) {
            pcclWaitInfo_t waits[8];
            EXPECT_EQ(pcclGetWaits(p->comm, waits, 8, &count), pcclSuccess);
        }
        EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclMasterConnectionFailed);
        pthread_join(other.thread, NULL);
        EXPECT_EQ(other.result, pcclMasterConnectionFailed);
        EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
    }
    free(many);
    finish(p, x);
}

TEST(connecting_again_beside_calls_that_end_mixes_nothing_up)
{
    struct cluster c;
    struct returning x;
    atomic_init(&x.over, false);
    cluster_start(&c, 2, NULL, 2);
    cluster_run(&c, leave_and_return, &x);
    cluster_stop(&c);
}

/* A program's callback takes a lock that the program also holds around calls: an interpreter's, say. */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint lines_heard;

static void hear(pcclLogLevel_t level, const char *message, void *user)
{
    EXPECT(level >= pcclLogTrace && level <= pcclLogError && message[0] != 0 && user == &program_lock);
    pthread_mutex_lock(&program_lock);
    atomic_fetch_add(&lines_heard, 1);
    pthread_mutex_unlock(&program_lock);
}

static void *ask_under_the_lock(void *argument)
{
    struct returning *x = argument;
    while (!atomic_load(&x->over)) {
        pthread_mutex_lock(&program_lock);
        EXPECT(cluster_size(x->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) > 0);
        pthread_mutex_unlock(&program_lock);
    }
    return NULL;
}

static void come_and_go_logged(struct cluster_peer *p, void *context)
{
    struct returning *x = context;
    if (p->index == 0) {
        admit_until_over(p, x);
        return;
    }
    for (int i = 0; i < RETURNS; i++) {
        EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    }
    finish(p, x);
}

TEST(the_log_is_told_without_locks) /* a callback that waits for a thread inside the library would hang both */
{
    struct cluster c;
    pthread_t asker;
    cluster_start(&c, 2, NULL, 1);
    struct returning x = {.comm = c.peer[0].comm};
    EXPECT_EQ(pcclSetLogCallback(hear, (pcclLogLevel_t)6, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclSetLogCallback(hear, pcclLogTrace, &program_lock), pcclSuccess);
    EXPECT_EQ(pthread_create(&asker, NULL, ask_under_the_lock, &x), 0);
    cluster_run(&c, come_and_go_logged, &x);
    pthread_join(asker, NULL);
    EXPECT_EQ(pcclSetLogCallback(NULL, pcclLogNone, NULL), pcclSuccess);
    EXPECT(atomic_load(&lines_heard) > 0);
    cluster_stop(&c);
}

/* ---- Options -------------------------------------------------------------------------------------------------------------- */

static void let_a_vote_pass_its_deadline(struct cluster_peer *p, void *context)
{
    (void)context;
    uint64_t value = 1;
    if (p->index == 1) {
        return; /* votes for nothing */
    }
    EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_STALL_TIMEOUT_MS, 1000), pcclInvalidUsage); /* members may not */
    EXPECT_EQ(pcclGetOption(p->comm, PCCL_OPTION_STALL_TIMEOUT_MS, &value), pcclSuccess);
    EXPECT_EQ(value, 10000);
    EXPECT_EQ(pcclSetOption(p->comm, (pcclOption_t)9, 1), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "option is 9: expected 1 (PCCL_OPTION_OPERATION_DEADLINE_MS) to 5") != NULL);
    EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 0), pcclInvalidArgument);
    EXPECT_EQ(pcclGetOption(p->comm, PCCL_OPTION_VOTE_DEADLINE_MS, &value), pcclSuccess);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_VOTE_DEADLINE_MS, 60), pcclSuccess);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "deadline") != NULL);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclMasterConnectionFailed); /* it has left */
}

/* The left one may be gone already, or not yet: an update lets it go, the next one in. */
static pcclResult_t update_until_two(pcclComm_t *comm)
{
    pcclResult_t result;
    bool pending = false;
    do {
        result = pcclArePeersPending(comm, &pending);
    } while (result == pcclSuccess && !pending);
    return result == pcclSuccess ? pcclUpdateTopology(comm) : result;
}

static void return_after_the_deadline(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(p->index == 0 ? pcclConnect(p->comm) : update_until_two(p->comm), pcclSuccess);
    reduce_ones(p, 5, 2);
}

TEST(a_vote_past_its_deadline_leaves_the_run)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, let_a_vote_pass_its_deadline, NULL);
    cluster_run(&c, return_after_the_deadline, NULL);
    cluster_stop(&c);
}

static void *wait_any_main(void *argument)
{
    struct pending *x = argument;
    float one = 1, sum = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    pcclAsyncReduceOp_t handle;
    size_t index = 9;
    x->result = pcclAllReduceAsync(&one, &sum, &d, x->comm, &handle);
    atomic_store(&x->last_call, true);
    if (x->result == pcclSuccess) {
        x->result = pcclWaitAnyAsyncReduce(&handle, 1, -1, &index);
        EXPECT_EQ(index, 0);
    }
    return NULL;
}

TEST(destroy_ends_a_wait_for_any_of_another_thread)
{
    for (int i = 0; i < 20; i++) {
        struct cluster c;
        cluster_start(&c, 2, NULL, 1);
        struct pending x = {.comm = c.peer[0].comm};
        EXPECT_EQ(pthread_create(&x.thread, NULL, wait_any_main, &x), 0);
        until_inside(&x, 1);
        EXPECT_EQ(pcclDestroyCommunicator(c.peer[0].comm), pcclSuccess);
        c.peer[0].comm = NULL;
        pthread_join(x.thread, NULL);
        EXPECT_EQ(x.result, pcclSuccess);
        cluster_stop(&c);
    }
}

/* ---- Ports -------------------------------------------------------------------------------------------------------------- */

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

static void reduce_some(struct cluster_peer *p, void *context)
{
    (void)context;
    reduce_ones(p, 5, 2);
}

TEST(the_environment_chooses_the_port_and_a_wrong_one_is_named)
{
    char text[16];
    uint16_t port = free_port();
    snprintf(text, sizeof text, "%u", port);
    setenv("PCCL_PORT", text, 1);
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    for (int i = 0; i < 2; i++) { /* two peers of one process share it */
        pcclPeerInfo_t self;
        EXPECT_EQ(pcclGetSelf(c.peer[i].comm, &self), pcclSuccess);
        EXPECT_EQ(self.address.port, port);
    }
    cluster_run(&c, reduce_some, NULL);
    cluster_stop(&c);
    setenv("PCCL_PORT", "many", 1);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "many") != NULL);
    cluster_stop(&c);
    unsetenv("PCCL_PORT");
}

/* ---- Several groups and masters in one process ------------------------------------------------------------------------- */

static void groups_apart(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 5);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE), p->index < 2 ? 2 : 3);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS), 2);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE), 3);
    for (uint64_t tag = 1; tag < 50; tag++) {
        reduce_ones(p, tag, p->index < 2 ? 2 : 3); /* the same tags in both groups */
    }
}

TEST(peers_of_two_groups_and_the_master_live_in_one_process)
{
    static const uint32_t groups[5] = {7, 7, 9, 9, 9};
    struct cluster c;
    cluster_start(&c, 5, groups, 2);
    cluster_run(&c, groups_apart, NULL);
    cluster_stop(&c);
}

TEST(two_runs_in_one_process_do_not_meet)
{
    struct cluster a, b;
    cluster_start(&a, 2, NULL, 1);
    cluster_start(&b, 2, NULL, 1);
    cluster_run(&a, reduce_some, NULL);
    cluster_run(&b, reduce_some, NULL);
    cluster_stop(&a);
    cluster_run(&b, reduce_some, NULL);
    cluster_stop(&b);
}
