/* bench_rank.c - what a rank of a benchmark does.
 *
 * One idea: buffers, world and clock are the same for the library and for plain links, and both are measured in turns, size by
 * size.  How many operations fit into the time is agreed between the ranks, by one of the operations measured.
 * A failure that nobody asked for ends the rank with a last word.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_rank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/mutant.h"
#include "pccl/bench_explain.h"
#include "pccl/bench_limit.h"

enum { MOST_TIMES = 10000, LEAST_TIMES = 3, FIRST_BYTES = 1 << 20, AFTER_TIMES = 5, HUGE_PAGE = 2 << 20, PAGE = 4096 };

struct rank {
    const struct bench_fleet *fleet;     /* borrowed */
    const struct bench_options *options; /* borrowed */
    int pipe;
    size_t buffer_bytes, stride; /* of one operation; from one to the next of those that start together */
    struct bench_args args; /* of the operation at hand; its buffers are owned */
    double times[MOST_TIMES];
};

/* Ends the rank. */
__attribute__((noreturn, format(printf, 2, 3))) static void give_up(const struct rank *r, const char *format, ...)
{
    struct bench_record last = {.word = BENCH_FAILED};
    va_list list;
    va_start(list, format);
    vsnprintf(last.text, sizeof last.text, format, list);
    va_end(list);
    bench_say(r->pipe, &last);
    _exit(1);
}

static void must(const struct rank *r, pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        give_up(r, "%s: %s: %s", what, pcclGetResultString(result), pcclGetLastError());
    }
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* Touched before anything is measured. */
static unsigned char *new_buffer(const struct rank *r)
{
    void *buffer = NULL;
    size_t bytes = r->stride * ((size_t)r->options->together - 1) + r->buffer_bytes;
    if (posix_memalign(&buffer, HUGE_PAGE, bytes) != 0) {
        give_up(r, "no memory for a buffer of %zu bytes: lower -e%s", bytes, r->options->together > 1 ? " or -m" : "");
    }
    memset(buffer, 0, bytes);
    return buffer;
}

static size_t largest_job(const struct bench_options *o)
{
    struct bench_job job;
    size_t most = FIRST_BYTES;
    for (size_t i = 0; bench_job_at(o, i, &job); i++) {
        most = job.size > most ? job.size : most;
    }
    return most;
}

/* What carries the data of this rank: "tcp", "shm", "fabric", or "several". */
static const char *transport_of(const struct rank *r)
{
    static const char *const names[] = {
        [pcclTransportTcp] = "tcp", [pcclTransportSharedMemory] = "shm", [pcclTransportFabric] = "fabric",
    };
    pcclTransport_t links[4 * BENCH_RANKS_MOST];
    size_t count = 0;
    const char *all = "none";
    must(r, pcclGetTransports(r->args.comm, links, sizeof links / sizeof links[0], &count), "transports");
    count = count < sizeof links / sizeof links[0] ? count : sizeof links / sizeof links[0];
    for (size_t i = 0; i < count; i++) {
        if (links[i].lane != UINT32_MAX) {
            const char *one = names[links[i].kind];
            all = strcmp(all, "none") == 0 || strcmp(all, one) == 0 ? one : "several";
        }
    }
    return all;
}

/* A world of all ranks, one after the other as they are numbered; after a loss it goes on. */
static void join(struct rank *r, const struct bench_fleet *fleet, unsigned rank, int pipe)
{
    const struct bench_options *o = fleet->options;
    r->fleet = fleet;
    r->options = o;
    r->pipe = pipe;
    r->buffer_bytes = o->explain ? FIRST_BYTES : largest_job(o);
    r->stride = (r->buffer_bytes + PAGE - 1) / PAGE * PAGE;
    r->args = (struct bench_args){.rank = rank, .world = o->world, .root = o->root};
    r->args.send = new_buffer(r);
    r->args.recv = new_buffer(r);
    if (o->transport == BENCH_TCP || o->transport == BENCH_FABRIC) {
        setenv("PCCL_SHM_DISABLE", "1", 1);
        setenv("PCCL_NET", o->transport == BENCH_TCP ? "Socket" : "OFI", 1);
    } else if (o->transport == BENCH_SHM) {
        unsetenv("PCCL_SHM_DISABLE");
    }
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params,
        .master_address = fleet->master_at,
        .p2p_connection_pool_size = o->lanes,
        .world = "bench",
        .world_size = o->world,
        .rank = rank,
        .loss_rule = PCCL_LOSS_SHRINK,
    };
    must(r, pcclInit(), "initialise");
    must(r, pcclCreateCommunicatorEx(&params, &r->args.comm), "create communicator");
    must(r, pcclConnect(r->args.comm), "connect");
    size_t first = FIRST_BYTES / sizeof(float); /* data connections are made by data */
    must(r, pcclAllReduceOrdered(r->args.send, r->args.recv, first, pcclFloat, pcclSum, r->args.comm, NULL), "first all-reduce");
}

/* After an error a rank may be gone: the others have closed up. */
static void look_again(struct rank *r, unsigned lost)
{
    pcclPeerInfo_t self;
    int world = 0;
    must(r, pcclGetAttribute(r->args.comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world), "world size");
    must(r, pcclGetSelf(r->args.comm, &self), "own rank");
    r->args.world = (unsigned)world;
    r->args.rank = self.rank;
    unsigned root = r->options->root;
    r->args.root = root == lost ? 0 : root - (root > lost);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the first `count` times into a record. */
static void sum_up(struct rank *r, int count, struct bench_record *out)
{
    qsort(r->times, (size_t)count, sizeof r->times[0], compare);
    out->iterations = count;
    out->us = r->times[count / 2];
    out->least_us = r->times[0];
    out->most_us = r->times[count - 1];
    out->p90_us = r->times[count * 9 / 10];
}

static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The largest of what the ranks give; also a barrier. */
static uint64_t agree(const struct rank *r, uint64_t value)
{
    uint64_t most = 0;
    must(r, pcclAllReduceOrdered(&value, &most, 1, pcclUint64, pcclMax, r->args.comm, NULL), "agree");
    return most;
}

/* The same operation in buffers of its own: what is under way at once shares none. */
static struct bench_args args_of(const struct rank *r, int which)
{
    struct bench_args a = r->args;
    a.send += (size_t)which * r->stride;
    a.recv += (size_t)which * r->stride;
    return a;
}

/* One, or a group that starts together. */
static pcclResult_t launch(const struct rank *r, const struct bench_job *job)
{
    if (r->options->together == 1) {
        return job->call->launch(job->call, &r->args);
    }
    (void)pcclGroupStart(); /* what fails inside of it, its end tells */
    for (int i = 0; i < r->options->together; i++) {
        const struct bench_args a = args_of(r, i);
        (void)job->call->launch(job->call, &a);
    }
    return pcclGroupEnd();
}

/* One operation, or group, of the library (no plain form) or one of the plain links; its time. */
static double once(const struct rank *r, const struct bench_job *job, struct bench_limit *plain)
{
    double start = bench_now_us();
    if (plain == NULL) {
        must(r, launch(r, job), job->call->name);
    } else if (!bench_limit_run(plain)) {
        give_up(r, "a plain link broke");
    }
    return bench_now_us() - start;
}

/* Plain links from or to a root: nothing holds a sender back, so each one begins together and counts to the last rank's end;
 * with the library all end together anyway. */
static void begin_together(const struct rank *r, const struct bench_job *job, const struct bench_limit *plain)
{
    if (plain != NULL && bench_call_rooted(job->call)) {
        (void)agree(r, 0);
    }
}

/* How many operations fit into the time, agreed between the ranks, when one takes so long. */
static int times_of(const struct rank *r, double us)
{
    const struct bench_options *o = r->options;
    uint64_t fit = o->iterations > 0 ? (uint64_t)o->iterations : agree(r, (uint64_t)(o->budget_ms * 1e3 / (us > 0.1 ? us : 0.1)));
    fit = o->iterations == 0 && fit < LEAST_TIMES ? LEAST_TIMES : fit;
    return fit < MOST_TIMES ? (int)fit : MOST_TIMES;
}

/* Warms up, agrees on a number and measures that many; without a warm-up the first tells how many. */
static void measure(struct rank *r, const struct bench_job *job, struct bench_limit *plain, struct bench_record *out)
{
    const struct bench_options *o = r->options;
    int together = plain == NULL ? o->together : 1, times = 0, done = 0;
    double least = 0, sum = 0;
    for (int i = 0; i < o->warmup; i++) {
        begin_together(r, job, plain);
        double us = once(r, job, plain);
        least = i == 0 || us < least ? us : least;
        sum += us;
    }
    if (o->network != NULL && o->warmup > 0) { /* whoever is late finds what has come meanwhile: a single time may be nearly nothing */
        least = sum / o->warmup;
    }
    (void)agree(r, 0);
    double cpu = processor_s();
    if (o->warmup == 0) {
        begin_together(r, job, plain);
        least = once(r, job, plain);
        r->times[done++] = least / together;
    }
    for (times = times_of(r, least); done < times; done++) {
        begin_together(r, job, plain);
        r->times[done] = once(r, job, plain) / together;
    }
    out->cpu_s = (processor_s() - cpu) / together;
    sum_up(r, times, out);
}

/* Whether it was left before all had come: all ranks read one clock. */
static uint64_t check_barrier(const struct rank *r, const struct bench_job *job)
{
    double come = bench_now_us();
    (void)once(r, job, NULL);
    uint64_t gone = (uint64_t)bench_now_us();
    return gone < agree(r, (uint64_t)come) || (MUTANT(BENCH_WRONG) && r->args.rank == r->args.root);
}

static void fill(const struct rank *r, const struct bench_job *job, const struct bench_pattern *pattern)
{
    for (int i = 0; i < r->options->together; i++) {
        const struct bench_args a = args_of(r, i);
        bench_call_fill(job->call, &a, pattern);
    }
}

static uint64_t check_once(const struct rank *r, const struct bench_job *job, const struct bench_pattern *pattern, struct bench_limit *plain)
{
    int together = plain == NULL ? r->options->together : 1;
    uint64_t wrong = 0;
    if (job->call->barrier) {
        return check_barrier(r, job);
    }
    fill(r, job, pattern);
    (void)agree(r, 0); /* nobody sends into what another one still fills */
    (void)once(r, job, plain);
    if (MUTANT(BENCH_WRONG) && plain == NULL && r->args.rank == r->args.root) {
        const struct bench_args a = args_of(r, together - 1);
        bench_call_output(job->call, &a)[0] ^= 1;
    }
    for (int i = 0; i < together; i++) {
        const struct bench_args a = args_of(r, i);
        wrong += bench_call_wrong(job->call, &a, pattern);
    }
    return wrong;
}

static uint64_t check(const struct rank *r, const struct bench_job *job, const struct bench_pattern *pattern, struct bench_limit *plain)
{
    uint64_t wrong = 0;
    for (int i = 0; i < r->options->check; i++) {
        wrong += check_once(r, job, pattern, plain);
    }
    return wrong;
}

/* By which algorithm the job goes, and how long that should take. */
static void look_at_plan(const struct rank *r, const struct bench_job *job, struct bench_record *to)
{
    pcclPlan_t plan = {.algorithm = ""};
    size_t count;
    if (bench_call_plan_count(job->call, &r->args, &count)) {
        pcclResult_t result = pcclGetPlan(r->args.comm, job->call->plan, count, (pcclDataType_t)job->type, r->args.redop, &plan);
        must(r, result, "plan");
    }
    snprintf(to->text, sizeof to->text, "%s", plan.algorithm);
    to->predicted_us = plan.predicted_us;
}

/* One job in one placement, or with plain links: a record of its own. */
static void tell_job(struct rank *r, const struct bench_job *job, const struct bench_pattern *pattern,
                     struct bench_limit *plain)
{
    struct bench_record record = {.word = plain == NULL ? BENCH_RESULT : BENCH_PLAIN};
    if (plain == NULL) {
        look_at_plan(r, job, &record);
    }
    fill(r, job, pattern);
    measure(r, job, plain, &record);
    record.wrong = check(r, job, pattern, plain);
    bench_say(r->pipe, &record);
}

static void tell_plain(struct rank *r, const struct bench_job *job, const struct bench_pattern *pattern)
{
    struct bench_links *links = r->fleet->links;
    struct bench_limit *plain = bench_limit_new(job->call, &r->args, links);
    if (agree(r, plain == NULL) != 0) { /* everybody or nobody */
        bench_limit_free(plain);
        struct bench_record none = {.word = BENCH_PLAIN};
        bench_say(r->pipe, &none);
        return;
    }
    if (!bench_links_begin(links, r->args.rank)) {
        give_up(r, "no memory for plain links");
    }
    (void)agree(r, 0);
    tell_job(r, job, pattern, plain);
    bench_limit_free(plain);
    (void)agree(r, 0);
}

static void begin_job(struct rank *r, const struct bench_job *job)
{
    r->args.count = job->count;
    r->args.type = job->type;
    r->args.op = job->op;
    r->args.redop = (pcclRedOp_t)job->op; /* the same values: core/dtype.h */
    r->args.in_place = false;
    if (job->op == REDOP_PREMUL) {
        unsigned char factor[8];
        bench_pattern_factor(job->type, r->args.rank, factor);
        must(r, pcclRedOpCreatePreMulSum(&r->args.redop, factor, (pcclDataType_t)job->type, pcclFactorByValue, r->args.comm), "operator");
    }
}

static void end_job(const struct rank *r)
{
    if (r->args.op == REDOP_PREMUL) {
        must(r, pcclRedOpDestroy(r->args.redop, r->args.comm), "operator's end");
    }
}

static void make_pattern(const struct rank *r, const struct bench_job *job, int without, struct bench_pattern *pattern)
{
    if (!bench_pattern_init(pattern, job->type, job->op, r->options->world, without)) {
        give_up(r, "no memory for what is compared");
    }
}

static int leave(struct rank *r)
{
    must(r, pcclDestroyCommunicator(r->args.comm), "leave");
    free(r->args.send);
    free(r->args.recv);
    return 0;
}

/* Out of place, plain links, in place. */
static void measure_job(struct rank *r, const struct bench_job *job)
{
    struct bench_pattern pattern;
    begin_job(r, job);
    make_pattern(r, job, BENCH_NOBODY, &pattern);
    tell_job(r, job, &pattern, NULL);
    tell_plain(r, job, &pattern);
    if (job->call->in_place) {
        r->args.in_place = true;
        tell_job(r, job, &pattern, NULL);
    }
    bench_pattern_fini(&pattern);
    end_job(r);
}

int bench_rank_measure(const struct bench_fleet *fleet, unsigned rank, int pipe)
{
    static struct rank r; /* large, and zero */
    struct bench_job job;
    struct bench_record ready = {.word = BENCH_READY};
    join(&r, fleet, rank, pipe);
    snprintf(ready.text, sizeof ready.text, "%s", transport_of(&r));
    bench_say(pipe, &ready);
    for (int cycle = 0; cycle < fleet->options->cycles; cycle++) {
        for (size_t i = 0; bench_job_at(fleet->options, i, &job); i++) {
            measure_job(&r, &job);
        }
    }
    return leave(&r);
}

/* ---- what is expected ------------------------------------------------------------------------------------------------ */

int bench_rank_explain(const struct bench_fleet *fleet, unsigned rank, int pipe)
{
    static struct rank r;
    struct bench_job job;
    struct bench_record ready = {.word = BENCH_READY};
    join(&r, fleet, rank, pipe);
    snprintf(ready.text, sizeof ready.text, "%s", transport_of(&r));
    bench_say(pipe, &ready);
    for (size_t i = 0; rank == 0 && bench_job_at(fleet->options, i, &job); i++) {
        struct bench_record record = {.word = BENCH_EXPECTED};
        begin_job(&r, &job);
        must(&r, bench_explain_ask(&job, &r.args, &record), "explain");
        end_job(&r);
        bench_say(pipe, &record);
    }
    (void)agree(&r, 0); /* nobody leaves before rank 0 has asked */
    return leave(&r);
}

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

/* Tells what the library says of the loss, and when. */
static void tell_error(const struct rank *r, pcclResult_t result)
{
    struct bench_record record = {.word = BENCH_ERROR, .us = bench_now_us()};
    if (result != pcclRankConnectionLost) {
        must(r, result, "the operation in which a rank was killed");
    }
    snprintf(record.text, sizeof record.text, "%s", pcclGetLastError());
    bench_say(r->pipe, &record);
}

int bench_rank_recover(const struct bench_fleet *fleet, unsigned rank, int pipe)
{
    static struct rank r;
    struct bench_job job;
    struct bench_pattern pattern;
    struct bench_record record = {.word = BENCH_READY};
    unsigned lost = (unsigned)fleet->options->kill_rank;
    pcclResult_t result = pcclSuccess;
    join(&r, fleet, rank, pipe);
    snprintf(record.text, sizeof record.text, "%s", transport_of(&r));
    (void)bench_job_at(fleet->options, fleet->recovery_job, &job);
    begin_job(&r, &job);
    make_pattern(&r, &job, BENCH_NOBODY, &pattern);
    r.args.root = rank; /* whoever is the root after the kill needs an input, too */
    bench_call_fill(job.call, &r.args, &pattern);
    r.args.root = fleet->options->root;
    bench_pattern_fini(&pattern);
    for (int i = 0; i < fleet->options->warmup || i == 0; i++) { /* the last one is the one before */
        record.us = once(&r, &job, NULL);
    }
    bench_say(pipe, &record);
    while (result == pcclSuccess) { /* until the kill; what was complete everywhere by then is followed by the error */
        result = launch(&r, &job);
    }
    tell_error(&r, result);
    do { /* the input is what it was before the error */
        look_again(&r, lost);
        result = launch(&r, &job);
    } while (result == pcclRankConnectionLost);
    record = (struct bench_record){.word = BENCH_RETRIED, .us = bench_now_us()};
    must(&r, result, "the operation without the lost rank");
    make_pattern(&r, &job, (int)lost, &pattern);
    record.wrong = bench_call_wrong(job.call, &r.args, &pattern);
    bench_pattern_fini(&pattern);
    bench_say(pipe, &record);
    for (int i = 0; i < AFTER_TIMES; i++) {
        r.times[i] = once(&r, &job, NULL);
    }
    record = (struct bench_record){.word = BENCH_AFTER};
    sum_up(&r, AFTER_TIMES, &record);
    bench_say(pipe, &record);
    return leave(&r);
}
