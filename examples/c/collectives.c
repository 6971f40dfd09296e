/* collectives.c - one small example of each collective; "collectives NAME [MASTER]" runs it, in two or more copies.
 *
 * Start ccoip_master, then for instance two times: collectives all-gather.  Each copy says what it got.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

struct me {
    pcclComm_t *comm;
    uint32_t rank, world;
};

static void say(const struct me *m, const char *what, const float *values, uint32_t count)
{
    printf("rank %u of %u: %s:", m->rank, m->world, what);
    for (uint32_t i = 0; i < count; i++) {
        printf(" %g", (double)values[i]);
    }
    printf("\n");
}

/* The same update of the model everywhere: everybody has a gradient, everybody needs the mean. */
static pcclResult_t all_reduce(const struct me *m)
{
    float gradient[2] = {(float)m->rank, 1}, mean[2];
    pcclResult_t result = pcclAllReduceOrdered(gradient, mean, 2, pcclFloat, pcclAvg, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "mean", mean, 2);
    }
    return result;
}

/* Sharded optimisers: each keeps one part of the sums, works on it, and all gather the parts afterwards. */
static pcclResult_t reduce_scatter(const struct me *m)
{
    float gradient[MOST], part;
    for (uint32_t r = 0; r < m->world; r++) {
        gradient[r] = (float)(m->rank + 10 * r);
    }
    pcclResult_t result = pcclReduceScatter(gradient, &part, 1, pcclFloat, pcclSum, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "own part of the sum", &part, 1);
    }
    return result;
}

/* Everybody's piece at everybody's: in place, the own one lies where it belongs already. */
static pcclResult_t all_gather(const struct me *m)
{
    float all[MOST];
    all[m->rank] = (float)(m->rank * m->rank);
    pcclResult_t result = pcclAllGather(&all[m->rank], all, 1, pcclFloat, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "all", all, m->world);
    }
    return result;
}

/* What one has read, all need: a configuration, a checkpoint. */
static pcclResult_t broadcast(const struct me *m)
{
    float weights[3] = {0};
    if (m->rank == 0) {
        weights[0] = 3, weights[1] = 1, weights[2] = 4;
    }
    pcclResult_t result = pcclBroadcast(weights, weights, 3, pcclFloat, 0, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "weights", weights, 3);
    }
    return result;
}

/* One has read the batch, each works on a part of it. */
static pcclResult_t scatter(const struct me *m)
{
    float batch[MOST], part;
    for (uint32_t r = 0; r < m->world; r++) {
        batch[r] = (float)(100 + r);
    }
    pcclResult_t result = pcclScatter(m->rank == 0 ? batch : NULL, &part, 1, pcclFloat, 0, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "own part", &part, 1);
    }
    return result;
}

/* Tokens to their experts: each has something of its own for each. */
static pcclResult_t all_to_all(const struct me *m)
{
    float to[MOST], from[MOST];
    for (uint32_t r = 0; r < m->world; r++) {
        to[r] = (float)(10 * m->rank + r);
    }
    pcclResult_t result = pcclAllToAll(to, from, 1, pcclFloat, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "from all", from, m->world);
    }
    return result;
}

/* Halos of a domain cut into pieces: something to the next, something from the one before, at once. */
static pcclResult_t exchange(const struct me *m)
{
    float border = (float)m->rank, halo = 0;
    (void)pcclGroupStart(); /* what fails inside of it, its end tells */
    (void)pcclSend(&border, 1, pcclFloat, (m->rank + 1) % m->world, 0, m->comm, NULL);
    (void)pcclReceive(&halo, 1, pcclFloat, (m->rank + m->world - 1) % m->world, 0, NULL, m->comm, NULL);
    pcclResult_t result = pcclGroupEnd();
    if (result == pcclSuccess) {
        say(m, "from the one before", &halo, 1);
    }
    return result;
}

/* A number for the log of one. */
static pcclResult_t reduce(const struct me *m)
{
    float loss = (float)(m->rank + 1), worst = 0;
    pcclResult_t result = pcclReduce(&loss, &worst, 1, pcclFloat, pcclMax, 0, m->comm, NULL);
    if (result == pcclSuccess && m->rank == 0) {
        say(m, "worst", &worst, 1);
    }
    return result;
}

/* A piece of each, at one. */
static pcclResult_t gather(const struct me *m)
{
    float piece = (float)(m->rank * m->rank), all[MOST];
    pcclResult_t result = pcclGather(&piece, all, 1, pcclFloat, 0, m->comm, NULL);
    if (result == pcclSuccess && m->rank == 0) {
        say(m, "all", all, m->world);
    }
    return result;
}

/* ---- Parts of different sizes: rank r has, or gets, r + 1 elements ----------------------------------------------------- */

static uint32_t lengths(const struct me *m, size_t counts[MOST])
{
    uint32_t sum = 0;
    for (uint32_t r = 0; r < m->world; r++) {
        counts[r] = r + 1;
        sum += r + 1;
    }
    return sum;
}

/* Lists of different lengths, at one. */
static pcclResult_t gather_v(const struct me *m)
{
    float list[MOST], all[MOST * MOST];
    size_t counts[MOST];
    uint32_t sum = lengths(m, counts);
    for (uint32_t i = 0; i <= m->rank; i++) {
        list[i] = (float)m->rank;
    }
    pcclResult_t result = pcclGatherV(list, m->rank + 1, all, counts, NULL, pcclFloat, 0, m->comm, NULL);
    if (result == pcclSuccess && m->rank == 0) {
        say(m, "lists", all, sum);
    }
    return result;
}

/* The same at everybody: sentences of a batch, none of them filled up to the longest. */
static pcclResult_t all_gather_v(const struct me *m)
{
    float list[MOST], all[MOST * MOST];
    size_t counts[MOST];
    uint32_t sum = lengths(m, counts);
    for (uint32_t i = 0; i <= m->rank; i++) {
        list[i] = (float)m->rank;
    }
    pcclResult_t result = pcclAllGatherV(list, all, counts, NULL, pcclFloat, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "lists", all, sum);
    }
    return result;
}

/* Shards of different sizes: a faster machine works on more of the parameters. */
static pcclResult_t reduce_scatter_v(const struct me *m)
{
    float gradient[MOST * MOST], part[MOST];
    size_t counts[MOST];
    uint32_t sum = lengths(m, counts);
    for (uint32_t i = 0; i < sum; i++) {
        gradient[i] = (float)(m->rank + 10 * i);
    }
    pcclResult_t result = pcclReduceScatterV(gradient, part, counts, NULL, pcclFloat, pcclSum, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "own part of the sum", part, m->rank + 1);
    }
    return result;
}

/* One has read the batch, and gives more of it to those who are faster. */
static pcclResult_t scatter_v(const struct me *m)
{
    float batch[MOST * MOST], part[MOST];
    size_t counts[MOST];
    uint32_t sum = lengths(m, counts), at = 0;
    for (uint32_t r = 0; at < sum; r++) {
        for (uint32_t i = 0; i <= r; i++) {
            batch[at++] = (float)(100 + r);
        }
    }
    pcclResult_t result = pcclScatterV(m->rank == 0 ? batch : NULL, counts, NULL, part, m->rank + 1, pcclFloat, 0, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "own part", part, m->rank + 1);
    }
    return result;
}

/* Tokens to their experts, some of which are asked for more often: rank r gets r + 1 of each. */
static pcclResult_t all_to_all_v(const struct me *m)
{
    float to[MOST * MOST], from[MOST * MOST];
    size_t send_counts[MOST], recv_counts[MOST];
    uint32_t sum = lengths(m, send_counts), at = 0;
    for (uint32_t r = 0; at < sum; r++) {
        recv_counts[r] = m->rank + 1;
        for (uint32_t i = 0; i <= r; i++) {
            to[at++] = (float)(10 * m->rank + r);
        }
    }
    pcclResult_t result = pcclAllToAllV(to, send_counts, NULL, from, recv_counts, NULL, pcclFloat, m->comm, NULL);
    if (result == pcclSuccess) {
        say(m, "from all", from, m->world * (m->rank + 1));
    }
    return result;
}

/* Nobody goes on before all have come; and two operations at once, awaited in any order. */
static pcclResult_t barrier(const struct me *m)
{
    float x = 1, sum;
    pcclAsyncOp_t first, second;
    pcclResult_t result = pcclAllReduceOrdered(&x, &sum, 1, pcclFloat, pcclSum, m->comm, &first);
    if (result != pcclSuccess) {
        return result;
    }
    result = pcclBarrier(m->comm, &second);
    pcclResult_t all_came = result == pcclSuccess ? pcclAwaitAsync(&second, NULL) : result;
    result = pcclAwaitAsync(&first, NULL);
    if (all_came == pcclSuccess && result == pcclSuccess) {
        say(m, "all have come, counted", &sum, 1);
    }
    return all_came != pcclSuccess ? all_came : result;
}

static const struct {
    const char *name;
    pcclResult_t (*run)(const struct me *m);
} examples[] = {{"all-reduce", all_reduce},       {"reduce-scatter", reduce_scatter},     {"all-gather", all_gather},
                {"broadcast", broadcast},         {"scatter", scatter},                   {"all-to-all", all_to_all},
                {"exchange", exchange},           {"reduce", reduce},                     {"gather", gather},
                {"gather-v", gather_v},           {"all-gather-v", all_gather_v},         {"reduce-scatter-v", reduce_scatter_v},
                {"scatter-v", scatter_v},         {"all-to-all-v", all_to_all_v},         {"barrier", barrier}};

static int usage(void)
{
    fprintf(stderr, "usage: collectives ");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        fprintf(stderr, "%s%s", i == 0 ? "" : "|", examples[i].name);
    }
    fprintf(stderr, " [MASTER]\n");
    return 2;
}

/* Again with those who are left after a loss: ranks and sizes are read anew, and buffers laid out by them. */
static pcclResult_t run(pcclResult_t (*example)(const struct me *m), pcclComm_t *comm)
{
    pcclResult_t result = pcclRankConnectionLost;
    while (result == pcclRankConnectionLost) {
        pcclPeerInfo_t self;
        int world = 0;
        result = pcclGetSelf(comm, &self);
        if (result == pcclSuccess) {
            result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
        }
        if (result == pcclSuccess && world <= MOST) {
            result = example(&(struct me){.comm = comm, .rank = self.rank, .world = (uint32_t)world});
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    pcclResult_t (*example)(const struct me *m) = NULL;
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    int world = 0;
    for (size_t i = 0; argc > 1 && i < sizeof examples / sizeof *examples; i++) {
        example = strcmp(argv[1], examples[i].name) == 0 ? examples[i].run : example;
    }
    if (example == NULL) {
        return usage();
    }
    if (pcclInit() != pcclSuccess ||
        pcclParseAddress(argc > 2 ? argv[2] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address) != pcclSuccess ||
        pcclCreateCommunicator(&params, &comm) != pcclSuccess || pcclConnect(comm) != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
        return 1;
    }
    pcclResult_t result = pcclSuccess;
    while (result == pcclSuccess && (result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world)) == pcclSuccess &&
           world < 2) {
        result = pcclUpdateTopology(comm); /* alone: until somebody comes */
    }
    if (result == pcclSuccess) {
        result = run(example, comm);
    }
    if (result != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    return pcclDestroyCommunicator(comm) != pcclSuccess || result != pcclSuccess;
}
