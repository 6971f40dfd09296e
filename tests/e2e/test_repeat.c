/* test_repeat.c - groups that are repeated: every kind by value, members that leave in the middle, and what stops a group for all alike.
 *
 * Inputs are a function of rank and element, or of the peer's index where ranks move.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/e2e/cluster.h"

enum { COUNT = 3000, MOST = 5, MANY = 2500 };

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SCATTER, ALL_TO_ALL, REDUCE, GATHER, BARRIER, TO_ITSELF, MESSAGE, KINDS };

struct work {
    uint32_t rank, world;
    uint32_t in[KINDS + MOST][MOST * COUNT], out[KINDS + MOST][MOST * COUNT]; /* messages: one for each sender, from MESSAGE on */
    uint32_t source, last_attempt;
};

static uint32_t given(uint32_t from, size_t index, size_t i)
{
    return (uint32_t)((from * 40503u + index * 977u + i) * 2654435761u) >> 8;
}

/* One of each kind, and a message of each to the next. */
static pcclResult_t launch_all(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct work *w = user;
    uint32_t *in = w->in[index], *out = w->out[index], root = w->world - 1;
    w->last_attempt = attempt;
    switch (index) {
    case ALL_REDUCE:
        return pcclAllReduceOrdered(in, in, COUNT, pcclUint32, pcclSum, comm, op);
    case REDUCE_SCATTER:
        return pcclReduceScatter(in, out, COUNT, pcclUint32, pcclMax, comm, op);
    case ALL_GATHER:
        return pcclAllGather(in, out, COUNT, pcclUint32, comm, op);
    case BROADCAST:
        return pcclBroadcast(in, out, COUNT, pcclUint32, root, comm, op);
    case SCATTER:
        return pcclScatter(in, out, COUNT, pcclUint32, root, comm, op);
    case ALL_TO_ALL:
        return pcclAllToAll(in, out, COUNT, pcclUint32, comm, op);
    case REDUCE:
        return pcclReduce(in, out, COUNT, pcclUint32, pcclSum, root, comm, op);
    case GATHER:
        return pcclGather(in, out, COUNT, pcclUint32, root, comm, op);
    case BARRIER:
        return pcclBarrier(comm, NULL); /* one that blocks has ended when it returns */
    case TO_ITSELF:
        (void)pcclGroupStart();
        (void)pcclSend(in, COUNT, pcclUint32, w->rank, 3, comm, NULL);
        (void)pcclReceive(out, COUNT, pcclUint32, w->rank, 3, NULL, comm, NULL);
        return pcclGroupEnd();
    default:
        break;
    }
    uint32_t from = (uint32_t)(index - MESSAGE), to = (from + 1) % w->world;
    return w->rank == from ? pcclSend(in, COUNT, pcclUint32, to, 9, comm, op)
           : w->rank == to ? pcclReceive(out, COUNT, pcclUint32, from, 9, &w->source, comm, op)
                           : pcclSuccess;
}

static uint32_t wanted(const struct work *w, size_t index, size_t i)
{
    uint32_t sum = 0, most = 0, part = (uint32_t)(i / COUNT);
    size_t own = w->rank * COUNT + i, in_part = w->rank * COUNT + i % COUNT;
    for (uint32_t r = 0; r < w->world; r++) {
        uint32_t at_own = given(r, index, own);
        sum += given(r, index, i);
        most = at_own > most ? at_own : most;
    }
    switch (index) {
    case ALL_REDUCE:
    case REDUCE:
        return sum;
    case REDUCE_SCATTER:
        return most;
    case ALL_GATHER:
    case GATHER:
        return given(part, index, i % COUNT);
    case BROADCAST:
        return given(w->world - 1, index, i);
    case SCATTER:
        return given(w->world - 1, index, own);
    case ALL_TO_ALL:
        return given(part, index, in_part);
    case TO_ITSELF:
        return given(w->rank, index, i);
    default:
        return given((uint32_t)(index - MESSAGE), index, i);
    }
}

static void check(const struct work *w, size_t index)
{
    bool root = w->rank == w->world - 1;
    bool mine = index == BARRIER ? false : index == REDUCE || index == GATHER ? root : index < MESSAGE || (index - MESSAGE + 1) % w->world == w->rank;
    bool parts = index == ALL_GATHER || index == GATHER || index == ALL_TO_ALL;
    const uint32_t *out = index == ALL_REDUCE ? w->in[index] : w->out[index];
    size_t wrong = 0;
    for (size_t i = 0; i < (parts ? w->world : 1) * COUNT && mine; i++) {
        wrong += out[i] != wanted(w, index, i);
    }
    EXPECT_EQ(wrong, 0);
    if (wrong != 0) {
        fprintf(stderr, "# operation %zu at %u of %u\n", index, w->rank, w->world);
    }
}

static void run_all(struct cluster_peer *p, void *context)
{
    struct work *w = calloc(1, sizeof *w);
    pcclPeerInfo_t self = {0};
    pcclReduceInfo_t info = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    w->rank = self.rank;
    w->world = (uint32_t)p->cluster->count;
    size_t count = MESSAGE + (w->world > 1 ? w->world : 0);
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < w->world * COUNT; i++) {
            w->in[k][i] = given(w->rank, k, i);
        }
    }
    pcclResult_t rc = pcclRepeatGroup(p->comm, count, launch_all, w, NULL, &info);
    EXPECT_EQ(rc, pcclSuccess);
    if (rc != pcclSuccess) {
        fprintf(stderr, "# %s\n", pcclGetLastError());
    }
    EXPECT_EQ(w->last_attempt, 0);
    EXPECT_EQ(info.local_world_size, w->world);
    EXPECT(w->world == 1 || (info.tx_bytes > 0 && info.rx_bytes > 0));
    for (size_t k = 0; k < count && rc == pcclSuccess; k++) {
        check(w, k);
    }
    free(w);
}

TEST(a_group_of_every_kind_succeeds_by_value_in_worlds_of_1_to_5)
{
    for (int world = 1; world <= MOST; world++) {
        struct cluster c;
        cluster_start(&c, world, NULL, 1);
        cluster_run(&c, run_all, NULL);
        cluster_stop(&c);
    }
}

/* ---- More than may be in flight -------------------------------------------------------------------------------------------------- */

static pcclResult_t launch_many(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    uint32_t *values = user;
    (void)attempt;
    return pcclAllReduceOrdered(&values[index], &values[index], 1, pcclUint32, pcclSum, comm, op);
}

static void run_many(struct cluster_peer *p, void *context)
{
    uint32_t values[MANY];
    size_t wrong = 0;
    (void)context;
    for (uint32_t i = 0; i < MANY; i++) {
        values[i] = (uint32_t)p->index * 10000 + i;
    }
    EXPECT_EQ(pcclRepeatGroup(p->comm, MANY, launch_many, values, NULL, NULL), pcclSuccess);
    for (uint32_t i = 0; i < MANY; i++) {
        wrong += values[i] != 30000 + 3 * i;
    }
    EXPECT_EQ(wrong, 0);
}

TEST(a_group_of_more_operations_than_may_be_in_flight_waits_for_its_own) /* the 1,025th is not launched: its number is the next one's */
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, run_many, NULL);
    cluster_stop(&c);
}

/* ---- A member that leaves in the middle ------------------------------------------------------------------------------------------- */

enum { LEAVER = 3, LEAVES_AT = 2, SUMS = 4 };

struct leaving {
    pcclRepeatParams_t params;
    pcclResult_t want;
    const char *text;
    bool in_place;
};

struct sums {
    int index;
    uint32_t in[SUMS][COUNT], out[SUMS][COUNT], world[SUMS];
    bool in_place, waits;
    struct timespec begun;
};

static bool passed(const struct timespec *since, int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (t.tv_sec - since->tv_sec) * 1000 + (t.tv_nsec - since->tv_nsec) / 1000000 > ms;
}

static pcclResult_t launch_sums(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct sums *s = user;
    int world = 0;
    if (s->index == LEAVER && index == LEAVES_AT) {
        (void)pcclLeave(((union { const pcclComm_t *in; pcclComm_t *own; }){.in = comm}).own);
    }
    while (s->waits && attempt == 0 && !passed(&s->begun, 2)) { /* the time that its params allow */
        sched_yield();
    }
    (void)pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
    s->world[index] = (uint32_t)world;
    return pcclAllReduceOrdered(s->in[index], s->in_place ? s->in[index] : s->out[index], COUNT, pcclUint32, pcclSum, comm, op);
}

static void run_leaving(struct cluster_peer *p, void *context)
{
    const struct leaving *l = context;
    struct sums *s = calloc(1, sizeof *s);
    *s = (struct sums){.index = p->index, .in_place = l->in_place, .waits = l->params.timeout_ms != 0};
    clock_gettime(CLOCK_MONOTONIC, &s->begun);
    for (size_t k = 0; k < SUMS; k++) {
        for (size_t i = 0; i < COUNT; i++) {
            s->in[k][i] = given((uint32_t)p->index, k, i);
        }
    }
    pcclReduceInfo_t info = {0};
    pcclResult_t rc = pcclRepeatGroup(p->comm, SUMS, launch_sums, s, &l->params, &info);
    EXPECT_EQ(rc, p->index == LEAVER ? pcclMasterConnectionFailed : l->want);
    if (p->index != LEAVER && l->text != NULL) {
        EXPECT(strstr(pcclGetLastError(), l->text) != NULL);
    }
    size_t wrong = 0;
    for (size_t k = 0; k < SUMS && p->index != LEAVER && rc == pcclSuccess; k++) {
        EXPECT(k < LEAVES_AT && !l->params.all_again ? s->world[k] == 3 || s->world[k] == 4 : s->world[k] == 3);
        for (size_t i = 0; i < COUNT; i++) {
            uint32_t sum = 0;
            for (uint32_t r = 0; r < s->world[k]; r++) {
                sum += given(r, k, i);
            }
            wrong += (s->in_place ? s->in : s->out)[k][i] != sum;
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT(p->index == LEAVER || rc != pcclSuccess || info.local_world_size == 3);
    for (size_t i = 0; i < COUNT && p->index != LEAVER && rc != pcclSuccess; i++) {
        wrong += s->in[SUMS - 1][i] != given((uint32_t)p->index, SUMS - 1, i); /* lost, and as it was */
    }
    EXPECT_EQ(wrong, 0);
    if (p->index != LEAVER) { /* what follows meets its own */
        uint32_t one = 1, all = 0;
        EXPECT_EQ(pcclAllReduceOrdered(&one, &all, 1, pcclUint32, pcclSum, p->comm, NULL), pcclSuccess);
        EXPECT_EQ(all, 3);
    }
    free(s);
}

static void leave(struct leaving l)
{
    struct cluster c;
    l.params.size = sizeof l.params;
    cluster_start(&c, 4, NULL, 1);
    cluster_run(&c, run_leaving, &l);
    cluster_stop(&c);
}

TEST(who_leaves_in_the_middle_costs_an_attempt_and_inputs_in_place_are_summed_up_once)
{
    leave((struct leaving){.in_place = true});
    leave((struct leaving){.params.all_again = true});
}

TEST(too_few_that_are_left_and_a_time_that_is_over_stop_it_for_all_alike) /* one who goes on alone waits for ever */
{
    leave((struct leaving){.in_place = true, .params.fewest_members = 4, .want = pcclTooFewPeers, .text = "3 members are left"});
    leave((struct leaving){.in_place = true, .params.fewest_members = 3});
    leave((struct leaving){.in_place = true, .params.timeout_ms = 1, .want = pcclRankConnectionLost, .text = "timeout_ms of a member has passed"});
}

static pcclResult_t launch_then_leave(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct sums *s = user;
    bool leaves = s->index == LEAVER && index == SUMS - 1;
    s->world[index] = attempt + 1;
    pcclResult_t rc = pcclAllReduceOrdered(s->in[index], s->in[index], COUNT, pcclUint32, pcclSum, comm, leaves ? NULL : op);
    if (leaves) { /* all of it has succeeded everywhere; only the word of this one is missing */
        size_t left = 1;
        EXPECT_EQ(pcclDrain(comm, -1, &left), pcclSuccess);
        EXPECT_EQ(left, 0);
        (void)pcclLeave(((union { const pcclComm_t *in; pcclComm_t *own; }){.in = comm}).own);
    }
    return rc;
}

static void run_done_then_left(struct cluster_peer *p, void *context)
{
    struct sums *s = calloc(1, sizeof *s);
    pcclReduceInfo_t info = {0};
    size_t wrong = 0;
    (void)context;
    s->index = p->index;
    for (size_t k = 0; k < SUMS; k++) {
        for (size_t i = 0; i < COUNT; i++) {
            s->in[k][i] = given((uint32_t)p->index, k, i);
        }
    }
    EXPECT_EQ(pcclRepeatGroup(p->comm, SUMS, launch_then_leave, s, NULL, &info), p->index == LEAVER ? pcclMasterConnectionFailed : pcclSuccess);
    for (size_t k = 0; k < SUMS; k++) {
        EXPECT_EQ(s->world[k], 1);
        for (size_t i = 0; i < COUNT; i++) {
            wrong += s->in[k][i] != given(0, k, i) + given(1, k, i) + given(2, k, i) + given(3, k, i);
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT(p->index == LEAVER || info.local_world_size == 3);
    free(s);
}

TEST(who_leaves_before_all_have_agreed_costs_no_attempt_where_nothing_was_lost) /* only the agreement is asked again */
{
    struct cluster c;
    cluster_start(&c, 4, NULL, 1);
    cluster_run(&c, run_done_then_left, NULL);
    cluster_stop(&c);
}

/* ---- Mistakes --------------------------------------------------------------------------------------------------------------------- */

enum mistake { NOTHING, NO_LAUNCH, NO_RESULT, BAD_ROOT, OTHER_COMMUNICATOR, OTHER_PARAMS, MISTAKES };

struct wrong_way {
    enum mistake mistake;
    pcclComm_t *other;
    int index;
    uint32_t in, out[4];
};

static pcclResult_t launch_wrong(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct wrong_way *w = user;
    (void)attempt;
    bool mistaken = w->index == 1 && index == 1;
    if (mistaken && w->mistake == NO_LAUNCH) {
        return pcclInternalError; /* of the program itself */
    }
    if (mistaken && w->mistake == NO_RESULT) {
        return (pcclResult_t)256;
    }
    if (mistaken && w->mistake == OTHER_COMMUNICATOR) {
        return pcclAllReduceOrdered(&w->in, &w->out[index], 1, pcclUint32, pcclSum, w->other, op);
    }
    if (index == 1) {
        return pcclBroadcast(&w->in, &w->out[index], 1, pcclUint32, mistaken && w->mistake == BAD_ROOT ? 9 : 0, comm, op);
    }
    return pcclAllReduceOrdered(&w->in, &w->out[index], 1, pcclUint32, pcclSum, comm, op);
}

static void run_wrong(struct cluster_peer *p, void *context)
{
    static const pcclResult_t own[] = {pcclSuccess, pcclInternalError, pcclInvalidUsage, pcclInvalidArgument, pcclInvalidUsage, pcclInvalidArgument};
    static const char *const text[] = {"", "operation 1: launch returned 2", "operation 1: launch returned 256", "root is 9", "handle of another communicator", "all_again"};
    struct wrong_way w = {.mistake = *(const enum mistake *)context, .index = p->index, .in = 1};
    pcclCommCreateParamsEx_t alone = {.size = sizeof alone, .master_address = p->cluster->address, .world = "other", .world_size = 1};
    if (w.mistake == OTHER_COMMUNICATOR && p->index == 1) {
        EXPECT_EQ(pcclCreateCommunicatorEx(&alone, &w.other), pcclSuccess);
        EXPECT_EQ(pcclConnect(w.other), pcclSuccess);
    }
    pcclRepeatParams_t params = {.size = sizeof params, .all_again = w.mistake == OTHER_PARAMS && p->index == 1};
    pcclResult_t rc = pcclRepeatGroup(p->comm, 4, launch_wrong, &w, &params, NULL);
    if (p->index == 1) {
        EXPECT_EQ(rc, own[w.mistake]);
        EXPECT(rc == pcclSuccess || strstr(pcclGetLastError(), text[w.mistake]) != NULL);
    }
    EXPECT((rc != pcclSuccess) == (w.mistake != NOTHING));
    uint32_t all = 0;
    EXPECT_EQ(pcclAllReduceOrdered(&w.in, &all, 1, pcclUint32, pcclSum, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(all, 3);
    if (w.other != NULL) {
        EXPECT_EQ(pcclDestroyCommunicator(w.other), pcclSuccess);
    }
}

TEST(a_mistake_at_one_ends_the_group_for_all_and_the_next_call_meets_its_own)
{
    for (enum mistake m = NOTHING; m < MISTAKES; m++) {
        struct cluster c;
        cluster_start(&c, 3, NULL, 1);
        cluster_run(&c, run_wrong, &m);
        cluster_stop(&c);
    }
}

static void said(pcclResult_t rc, pcclResult_t want, const char *text)
{
    EXPECT_EQ(rc, want);
    EXPECT(strstr(pcclGetLastError(), text) != NULL);
}

TEST(wrong_arguments_are_named_and_harm_nothing)
{
    struct cluster c;
    struct wrong_way w = {.in = 1};
    pcclRepeatParams_t params = {.size = 3};
    cluster_start(&c, 1, NULL, 1);
    pcclComm_t *comm = c.peer[0].comm;
    said(pcclRepeatGroup(NULL, 4, launch_wrong, &w, NULL, NULL), pcclInvalidArgument, "communicator");
    said(pcclRepeatGroup(comm, 4, NULL, &w, NULL, NULL), pcclInvalidArgument, "launch is null");
    said(pcclRepeatGroup(comm, 0, launch_wrong, &w, NULL, NULL), pcclInvalidArgument, "count is 0");
    said(pcclRepeatGroup(comm, SIZE_MAX, launch_wrong, &w, NULL, NULL), pcclInvalidArgument, "count is");
    said(pcclRepeatGroup(comm, 4, launch_wrong, &w, &params, NULL), pcclInvalidArgument, "params->size is 3");
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    said(pcclRepeatGroup(comm, 4, launch_wrong, &w, NULL, NULL), pcclInvalidUsage, "pcclGroupEnd");
    EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
    EXPECT_EQ(pcclRepeatGroup(comm, 4, launch_wrong, &w, NULL, NULL), pcclSuccess);
    EXPECT_EQ(pcclLeave(comm), pcclSuccess);
    said(pcclRepeatGroup(comm, 4, launch_wrong, &w, NULL, NULL), pcclMasterConnectionFailed, "");
    cluster_stop(&c);
}
