/* train_charlm.c - trains a character-level language model with several processes that may be killed, may freeze and may join.
 *
 * Every process runs the same loop; it is the part to copy:
 *
 *     connect
 *     each step:  update the topology        newcomers come in, the departed go
 *                 synchronise shared state   parameters, optimiser state and step number agree, newcomers receive them
 *                 all-reduce the gradient    again, with those who are left, when somebody died
 *                 optimiser step             the same bits on all peers
 *     any call:   no longer a member?        connect again, go on as a newcomer (rejoin)
 *
 * Invariant: whatever decides about the next call (world size, step) is equal on all peers at that point.
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"
#include "show.h"

enum { REPORTS = 25, VALIDATION_QUICK = 1500, REJOIN_TRIES = 6 };

struct options {
    const char *master, *text, *name;
    uint64_t steps;
    int batch, wait_for;
    double rate, began;
};

struct trainer {
    struct options options;
    struct text text;
    double bigram;
    pcclComm_t *comm;
    int world, rank, rejoin_tries;
    bool done;
    /* shared state */
    uint64_t step, synced; /* synced: revision of the last successful synchronisation */
    bool newcomer;         /* none yet since this peer was admitted */
    float params[MODEL_COUNT], adam_m[MODEL_COUNT], adam_v[MODEL_COUNT];
    pcclTensorInfo_t tensors[4];
    pcclSharedState_t state;
    /* gradient and, as its last element, the loss: sums over this peer's batch, then means over all peers */
    float local[MODEL_COUNT + 1], mean[MODEL_COUNT + 1];
    uint64_t random;
};

static void must(pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        show_line("%s: %s: %s", what, pcclGetResultString(result), pcclGetLastError());
        exit(1);
    }
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- membership ---------------------------------------------------------------------------------------------------- */

/* Reads the sizes that the last call has agreed on, and tells when they have changed. */
static pcclResult_t read_world(struct trainer *t)
{
    pcclPeerInfo_t self;
    int before = t->world;
    pcclResult_t result = pcclGetAttribute(t->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &t->world);
    if (result == pcclSuccess) {
        result = pcclGetSelf(t->comm, &self);
    }
    if (result != pcclSuccess) {
        return result;
    }
    t->rank = (int)self.rank;
    if (t->world != before && before != 0) {
        show_line("now %d peers, before %d", t->world, before);
    }
    return pcclSuccess;
}

static void join_run(struct trainer *t)
{
    pcclCommCreateParams_t params = {.peer_group = 0, .p2p_connection_pool_size = 1};
    must(pcclInit(), "initialise");
    must(pcclParseAddress(t->options.master, CCOIP_PROTOCOL_PORT_MASTER, &params.master_address), "read --master");
    must(pcclCreateCommunicator(&params, &t->comm), "create the communicator");
    must(pcclConnect(t->comm), "connect");
    must(read_world(t), "read the world size");
    t->newcomer = true;
    show_line("joined: rank %d of %d", t->rank, t->world);
}

/* After pcclMasterConnectionFailed: this peer was excluded (it was silent for too long, say) or its master is gone.
 *
 * Nothing is in flight here: a blocking call lets go of its buffers before it returns.  A program with asynchronous
 * operations awaits each of them first; they end at once with the same error.  The half-made step is thrown away. */
static void rejoin(struct trainer *t)
{
    pcclErrorInfo_t why;
    pcclResult_t result = pcclMasterConnectionFailed;
    must(pcclGetLastErrorInfo(&why), "read the last error");
    show_line("no longer a member: %s", why.text);
    if (why.cause == pcclCauseKicked) {
        t->synced = 0; /* what it says of its state does not fit this run: take the others' */
    }
    while (result == pcclMasterConnectionFailed && t->rejoin_tries++ < REJOIN_TRIES) {
        wait_ms(100);
        result = pcclConnect(t->comm); /* until the others' next update admits this peer */
    }
    must(result, "connect again");
    t->world = 0;
    t->newcomer = true;
    show_line("connected again");
}

static pcclResult_t update_topology(struct trainer *t)
{
    pcclResult_t result;
    while ((result = pcclUpdateTopology(t->comm)) == pcclUpdateTopologyFailed) {
        wait_ms(10);
    }
    return result == pcclSuccess ? read_world(t) : result;
}

/* ---- shared state -------------------------------------------------------------------------------------------------- */

static void describe_state(struct trainer *t)
{
    t->tensors[0] = (pcclTensorInfo_t){.name = "step", .data = &t->step, .count = 1, .datatype = pcclUint64};
    t->tensors[1] =
        (pcclTensorInfo_t){.name = "params", .data = t->params, .count = MODEL_COUNT, .datatype = pcclFloat};
    t->tensors[2] =
        (pcclTensorInfo_t){.name = "adam_m", .data = t->adam_m, .count = MODEL_COUNT, .datatype = pcclFloat};
    t->tensors[3] =
        (pcclTensorInfo_t){.name = "adam_v", .data = t->adam_v, .count = MODEL_COUNT, .datatype = pcclFloat};
    t->state = (pcclSharedState_t){.revision = 0, .count = 4, .infos = t->tensors};
}

/* The revision says whose content is newer: the highest wins, then the most frequent content.  It rises by one with each
 * successful synchronisation, so it is raised for the call only and kept if that succeeds.  A newcomer does not raise it: it
 * says 0, or, after a rejoin, what it had; those who went on without it say more, so it takes their state. */
static pcclResult_t synchronise(struct trainer *t)
{
    pcclSharedStateSyncInfo_t info = {0};
    t->state.revision = t->newcomer ? t->synced : t->synced + 1;
    pcclResult_t result =
        pcclSynchronizeSharedState(t->comm, &t->state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info);
    if (result != pcclSuccess) {
        return result;
    }
    t->synced = t->state.revision; /* the elected one */
    t->newcomer = false;
    t->rejoin_tries = 0;
    if (info.rx_bytes > 0) {
        show_line("received %.0f KB of state from the others: goes on at step %llu", (double)info.rx_bytes / 1e3,
                  (unsigned long long)t->step);
    }
    return pcclSuccess;
}

/* ---- one step ------------------------------------------------------------------------------------------------------ */

static void compute_gradient(struct trainer *t)
{
    memset(t->local, 0, sizeof t->local);
    for (int i = 0; i < t->options.batch; i++) {
        t->random = t->random * 6364136223846793005u + 1442695040888963407u;
        size_t at = t->text.train[(t->random >> 20) % t->text.train_count];
        t->local[MODEL_COUNT] +=
            model_example(t->params, t->text.symbols + at - TEXT_CONTEXT, t->text.symbols[at], t->local);
    }
    for (size_t i = 0; i <= MODEL_COUNT; i++) {
        t->local[i] /= (float)t->options.batch;
    }
}

/* Success: `mean` holds the mean over all peers.  TooFewPeers: everybody else has gone. */
static pcclResult_t average_gradient(struct trainer *t)
{
    pcclReduceDescriptor_t what = {
        .count = MODEL_COUNT + 1, .op = pcclAvg, .tag = 0, .src_descriptor = {.datatype = pcclFloat}};
    for (;;) {
        pcclResult_t result = pcclAllReduce(t->local, t->mean, &what, t->comm, NULL);
        if (result != pcclRankConnectionLost && result != pcclTooFewPeers) {
            return result;
        }
        show_line("all-reduce of step %llu failed: %s", (unsigned long long)t->step, pcclGetLastError());
        result = read_world(t);
        if (result != pcclSuccess || t->world < 2) {
            return result != pcclSuccess ? result : pcclTooFewPeers;
        }
    }
}

static void take_step(struct trainer *t)
{
    float done = (float)t->step / (float)t->options.steps;
    t->step++;
    model_adam(t->params, t->adam_m, t->adam_v, t->mean, t->step, (float)t->options.rate * (1 - 0.95f * done));
    show_remember(t->step, (double)t->mean[MODEL_COUNT]);
    uint64_t every = t->options.steps / REPORTS > 0 ? t->options.steps / REPORTS : 1;
    if (t->rank == 0 && t->step % every == 0) {
        double held = model_loss(t->params, &t->text, t->text.held, t->text.held_count, VALIDATION_QUICK);
        show_line("step %5llu  train loss %.3f  validation loss %.3f (bigram %.3f)  %d peers", (unsigned long long)t->step,
                  (double)t->mean[MODEL_COUNT], held, t->bigram, t->world);
    }
}

/* Once round the loop.  `admitted`: this peer has just been let in, which was its first update. */
static pcclResult_t turn(struct trainer *t, bool admitted)
{
    pcclResult_t result = admitted ? read_world(t) : update_topology(t);
    if (result != pcclSuccess) {
        return result;
    }
    if (t->world < 2 || t->world < t->options.wait_for) {
        t->done = t->world < 2 && t->step >= t->options.steps; /* the others have finished and gone */
        wait_ms(20); /* too few to work: look again whether somebody has come */
        return pcclSuccess;
    }
    t->options.wait_for = 0;
    result = synchronise(t);
    if (result != pcclSuccess || t->step >= t->options.steps) {
        t->done = result == pcclSuccess; /* the step is shared state: all peers end here together */
        return result;
    }
    compute_gradient(t);
    result = average_gradient(t);
    if (result == pcclSuccess) {
        take_step(t);
    }
    return result == pcclTooFewPeers ? pcclSuccess : result;
}

static void train(struct trainer *t)
{
    for (bool admitted = true; !t->done;) {
        pcclResult_t result = turn(t, admitted);
        admitted = result == pcclMasterConnectionFailed;
        if (admitted) {
            rejoin(t);
        } else {
            must(result, "train");
        }
    }
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

static void report(struct trainer *t)
{
    uint64_t hash = model_hash(MODEL_HASH_START, t->params, sizeof t->params);
    hash = model_hash(hash, t->adam_m, sizeof t->adam_m);
    hash = model_hash(hash, t->adam_v, sizeof t->adam_v);
    show_line("finished: step %llu, parameters and optimiser state have hash %016llx", (unsigned long long)t->step,
              (unsigned long long)hash);
    if (t->rank == 0) {
        double held = model_loss(t->params, &t->text, t->text.held, t->text.held_count, t->text.held_count);
        show_curve(t->bigram);
        show_sample(t->params, &t->text, 500);
        show_line("validation loss %.4f, bigram model %.4f nats per character: %s", held, t->bigram,
                  held < t->bigram ? "the network knows more" : "THE NETWORK IS NOT BETTER");
    }
}

static bool read_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){.master = "127.0.0.1", .text = "/usr/share/common-licenses", .name = "peer",
                          .steps = 2000, .batch = 64, .wait_for = 2, .rate = 0.004};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--master") == 0) {
            o->master = value;
        } else if (strcmp(argv[i], "--text") == 0) {
            o->text = value;
        } else if (strcmp(argv[i], "--name") == 0) {
            o->name = value;
        } else if (strcmp(argv[i], "--steps") == 0) {
            o->steps = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--batch") == 0) {
            o->batch = atoi(value);
        } else if (strcmp(argv[i], "--wait-for") == 0) {
            o->wait_for = atoi(value);
        } else if (strcmp(argv[i], "--rate") == 0) {
            o->rate = atof(value);
        } else if (strcmp(argv[i], "--began") == 0) {
            o->began = atof(value);
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && o->steps > 0 && o->batch > 0 && o->rate > 0;
}

int main(int argc, char **argv)
{
    static struct trainer t;
    const char *why;
    if (!read_options(&t.options, argc, argv)) {
        fprintf(stderr, "usage: train_charlm [--master HOST:PORT] [--text FILE|DIRECTORY] [--steps N] [--batch N] [--rate R]\n"
                        "                    [--wait-for PEERS] [--name NAME] [--began UNIX_SECONDS]\n");
        return 2;
    }
    show_begin(t.options.began, t.options.name);
    if (!text_load(&t.text, t.options.text, &why)) {
        fprintf(stderr, "train_charlm: text %s %s\n", t.options.text, why);
        return 2;
    }
    t.bigram = text_bigram_loss(&t.text);
    t.random = model_hash(MODEL_HASH_START, t.options.name, strlen(t.options.name)); /* each peer its own batches */
    model_init(t.params);
    describe_state(&t);
    join_run(&t);
    train(&t);
    report(&t);
    must(pcclDestroyCommunicator(t.comm), "leave");
    text_free(&t.text);
    return 0;
}
