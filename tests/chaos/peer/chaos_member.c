/* chaos_member.c - see chaos_member.h.
 *
 * The loop of a training program, with the variants that a plan may choose: update, optimise, synchronise, reduce.  What to do
 * after each code is what pccl.h says: retry, connect again, update until somebody joins.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "chaos_member.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "reduce_acts.h"
#include "holding.h"
#include "say.h"
#include "tests/chaos/dice.h"

enum { ALONE_PAUSE_MS = 10, RETRIES = 1000 };

void member_pause(int ms)
{
    (void)poll(NULL, 0, ms);
}

void member_give_up(struct member *m, const char *what, pcclResult_t result)
{
    const char *why = pcclGetLastError(); /* of this thread's last call, which is the one meant */
    if (result == pcclInvalidUsage && atomic_load(&m->destroyed)) {
        say_note("ends in %s", what);
        pthread_exit(NULL);
    }
    say_finding("%s returned %s: %s", what, pcclGetResultString(result), why);
    _exit(4);
}

pcclResult_t member_read_sizes(struct member *m)
{
    pcclResult_t result = pcclGetAttribute(m->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &m->world);
    if (result == pcclSuccess) {
        result = pcclGetAttribute(m->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &m->global);
    }
    if (result != pcclSuccess && result != pcclMasterConnectionFailed) {
        member_give_up(m, "pcclGetAttribute", result);
    }
    if (result == pcclSuccess && (m->world < 1 || m->global < m->world)) {
        say_finding("sizes: %d of %d", m->world, m->global);
    }
    return result;
}

/* A vote, called again where the code says that this can succeed. */
static pcclResult_t vote(struct member *m, const char *name, pcclResult_t (*ask)(struct member *m), pcclResult_t failed)
{
    pcclResult_t result = failed;
    for (int i = 0; i < RETRIES && result == failed; i++) {
        say_call(name);
        result = ask(m);
        say_return(name, result);
    }
    if (result == pcclSuccess) {
        result = member_read_sizes(m);
    }
    if (result != pcclSuccess && result != pcclMasterConnectionFailed) {
        member_give_up(m, name, result);
    }
    return result;
}

static pcclResult_t ask_update(struct member *m)
{
    return pcclUpdateTopology(m->comm);
}

static pcclResult_t ask_optimise(struct member *m)
{
    pcclPlan_t plan = {"", 0};
    pcclResult_t result = pcclOptimizeTopology(m->comm);
    size_t count = m->plan.most_bytes / sizeof(float);
    if (result == pcclSuccess && pcclGetPlan(m->comm, pcclCollectiveAllReduce, count, pcclFloat, pcclSum, &plan) == pcclSuccess) {
        say_algorithm(plan.algorithm);
    }
    return result;
}

/* Whether this turn begins with an update: the same on all members. */
static pcclResult_t wants_update(struct member *m, bool *wanted_out)
{
    bool pending = false;
    *wanted_out = true;
    if (m->world < 2 || m->plan.update == UPDATE_ALWAYS || m->again) {
        return pcclSuccess;
    }
    if (m->plan.update == UPDATE_THIRD) {
        *wanted_out = holding_step(m->holding) % 3 == 0;
        return pcclSuccess;
    }
    say_call("query");
    pcclResult_t result = pcclArePeersPending(m->comm, &pending);
    say_return("query", result);
    if (result != pcclSuccess && result != pcclMasterConnectionFailed) {
        member_give_up(m, "pcclArePeersPending", result);
    }
    *wanted_out = pending;
    return result;
}

static pcclResult_t update(struct member *m, bool admitted)
{
    bool wanted = false;
    pcclResult_t result = member_read_sizes(m);
    if (result == pcclSuccess && admitted) { /* the others' update was its admission; it may begin with one all the same */
        wanted = (int)(dice_hash(m->plan.seed, m->key) % 100) < m->plan.newcomers_update;
    } else if (result == pcclSuccess) {
        result = wants_update(m, &wanted);
    }
    if (result == pcclSuccess && wanted) {
        result = vote(m, "update", ask_update, pcclUpdateTopologyFailed);
    }
    m->again = false;
    return result;
}

static bool optimises(const struct member *m)
{
    int every = m->plan.optimise_every;
    if (every == 0 || m->global < 2) {
        return false;
    }
    return m->plan.groups > 1 || (m->world > 1 && !m->newcomer && holding_step(m->holding) % (uint64_t)every == 0);
}

static pcclResult_t synchronise(struct member *m)
{
    pcclPeerInfo_t self;
    pcclResult_t result = pcclGetSelf(m->comm, &self);
    if (result == pcclSuccess) {
        result = holding_synchronise(m->holding, m, (int)self.rank);
    }
    if (result != pcclSuccess && result != pcclMasterConnectionFailed && result != pcclNoSharedStateAvailable) {
        member_give_up(m, "pcclSynchronizeSharedState", result);
    }
    return result;
}

static pcclResult_t step(struct member *m)
{
    pcclResult_t result = acts_run(m);
    if (result == pcclSuccess) {
        holding_advance(m->holding);
    } else if (result == pcclRankConnectionLost || result == pcclTooFewPeers) {
        m->again = true;
        return member_read_sizes(m);
    }
    return result;
}

pcclResult_t member_turn(struct member *m, bool admitted)
{
    pcclResult_t result = update(m, admitted);
    if (result == pcclSuccess && m->plan.groups > 1 && optimises(m)) {
        result = vote(m, "optimise", ask_optimise, pcclTopologyOptimizationFailed);
    }
    if (result != pcclSuccess) {
        return result;
    }
    if (m->world < 2) {
        say_progress(m->group, 0, 0, 0, m->world, m->global);
        member_pause(ALONE_PAUSE_MS);
        return pcclSuccess;
    }
    result = synchronise(m);
    if (result != pcclSuccess || m->world < 2) {
        return result == pcclNoSharedStateAvailable ? pcclSuccess : result;
    }
    if (m->plan.groups == 1 && optimises(m)) {
        result = vote(m, "optimise", ask_optimise, pcclTopologyOptimizationFailed);
    }
    uint64_t began = holding_step(m->holding);
    result = result == pcclSuccess ? step(m) : result;
    if (result == pcclSuccess && holding_step(m->holding) != began) {
        say_progress(m->group, holding_lineage(m->holding), holding_revision(m->holding), holding_step(m->holding),
                     m->world, m->global);
    }
    return result;
}
