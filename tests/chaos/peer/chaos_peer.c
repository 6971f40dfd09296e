/* chaos_peer.c - a peer of a round as a program of its own, written against pccl.h alone.
 *
 * usage: chaos_peer SEED NUMBER MASTER, with the log on descriptor 3 and the runner's words on standard input: w (what do you
 * wait for?), l (leave), q (end after this step), d (destroy at once).  One or more members, each a communicator with a thread;
 * the main thread hears the words and, beside whatever the members are doing, makes the calls that any thread may make at any
 * time.  At the end as many descriptors are open as at the beginning.
 * Exit status: 0 after q or d; 4 after a finding that it cannot go on from.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holding.h"
#include "chaos_member.h"
#include "say.h"
#include "tests/chaos/dice.h"
#include "tests/spawn.h"

enum { LOOK_MS = 40, WAITS = 64, MEMBERS = 64, REJOIN_PAUSE_MS = 60, LOG_DESCRIPTOR = 4 };

/* ---- The main thread ---------------------------------------------------------------------------------------------- */

static void tell_waits(struct member *m)
{
    pcclWaitInfo_t waits[WAITS];
    size_t count = 0;
    pcclResult_t result = pcclGetWaits(m->comm, waits, WAITS, &count);
    say_note("waits: %s, %zu", pcclGetResultString(result), count);
    for (size_t i = 0; result == pcclSuccess && i < count && i < WAITS; i++) {
        say_note("waits: %s of tag %" PRIu64 " for peer %" PRIx64 " since %" PRId64 " ms", waits[i].phase, waits[i].tag,
                 waits[i].peer, waits[i].age_ns / 1000000);
    }
}

/* Calls that must neither fail badly nor disturb, whatever the members are doing. */
static void look(struct member *m)
{
    pcclWaitInfo_t waits[WAITS];
    pcclPeerInfo_t members[MEMBERS], self;
    pcclConnectionStats_t stats[MEMBERS];
    size_t count;
    int value;
    pcclResult_t results[] = {
        pcclGetWaits(m->comm, waits, WAITS, &count),
        pcclGetMembers(m->comm, members, MEMBERS, &count),
        pcclGetSelf(m->comm, &self),
        pcclGetConnectionStats(m->comm, stats, MEMBERS, &count),
        pcclGetAttribute(m->comm, PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, &value),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] != pcclSuccess && results[i] != pcclMasterConnectionFailed && results[i] != pcclInvalidUsage) {
            say_finding("look %zu returned %s: %s", i, pcclGetResultString(results[i]), pcclGetLastError());
        }
    }
}

static void hear(struct host *h, char word)
{
    for (int i = 0; i < h->members; i++) {
        struct member *m = &h->member[i];
        say_as(m->key);
        if (word == 'w') {
            tell_waits(m);
        } else if (word == 'l') {
            say_note("leaves: %s", pcclGetResultString(pcclLeave(m->comm)));
        } else if (word == 'q' || word == 'd') {
            atomic_store(&m->quit, true);
        }
        if (word == 'd') {
            atomic_store(&m->destroyed, true);
            say_note("destroys: %s", pcclGetResultString(pcclDestroyCommunicator(m->comm)));
        }
    }
    h->destroyed = h->destroyed || word == 'd';
}

/* Until all members have ended, or their communicators are gone. */
static void listen_to_runner(struct host *h)
{
    while (atomic_load(&h->ended) < h->members && !h->destroyed) {
        struct pollfd fd = {.fd = 0, .events = POLLIN};
        char word;
        if (poll(&fd, 1, LOOK_MS) == 0) {
            for (int i = 0; i < h->members; i++) {
                say_as(h->member[i].key);
                look(&h->member[i]);
            }
            continue;
        }
        if (read(0, &word, 1) != 1) {
            _exit(9); /* the runner has gone */
        }
        hear(h, word);
    }
}

/* What the library says goes into a file of the round, if the runner has opened one. */
static void log_line(pcclLogLevel_t level, const char *message, void *user)
{
    char line[SAY_LINE];
    (void)user;
    int n = snprintf(line, sizeof line, "%" PRId64 " %d %s", say_now_ms(), (int)level, message);
    size_t size = n < 0 ? 0 : (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[size] = '\n';
    if (write(LOG_DESCRIPTOR, line, size + 1) < 0) {
        (void)pcclSetLogCallback(NULL, pcclLogNone, NULL);
    }
}

/* ---- A member ----------------------------------------------------------------------------------------------- */

static void set_options(struct member *m)
{
    const struct plan *p = &m->plan;
    const struct {
        pcclOption_t option;
        int value;
    } set[] = {{PCCL_OPTION_STALL_TIMEOUT_MS, p->stall_ms},   {PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, p->loss_ms},
               {PCCL_OPTION_CONNECT_TIMEOUT_MS, p->connect_ms}, {PCCL_OPTION_OPERATION_DEADLINE_MS, p->deadline_ms},
               {PCCL_OPTION_VOTE_DEADLINE_MS, p->vote_ms}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        pcclResult_t result =
            set[i].value == 0 ? pcclSuccess : pcclSetOption(m->comm, set[i].option, (uint64_t)set[i].value);
        if (result != pcclSuccess) {
            member_give_up(m, "pcclSetOption", result);
        }
    }
}

/* Connects until it is a member, or shall end. */
static bool join(struct member *m)
{
    while (!atomic_load(&m->quit)) {
        pcclErrorInfo_t why;
        say_call("connect");
        pcclResult_t result = pcclConnect(m->comm);
        say_return("connect", result);
        if (result == pcclSuccess) {
            m->newcomer = true;
            return true;
        }
        (void)pcclGetLastErrorInfo(&why);
        if (result != pcclMasterConnectionFailed || why.error_class == pcclClassFix) {
            member_give_up(m, "pcclConnect", result);
        }
        member_pause(REJOIN_PAUSE_MS);
    }
    return false;
}

static void live(struct member *m)
{
    while (join(m)) {
        pcclResult_t result = pcclSuccess;
        for (bool admitted = true; result == pcclSuccess && !atomic_load(&m->quit); admitted = false) {
            result = member_turn(m, admitted);
        }
        pcclErrorInfo_t why;
        if (result != pcclSuccess && pcclGetLastErrorInfo(&why) == pcclSuccess && why.cause == pcclCauseKicked) {
            holding_forget(m->holding);
        }
    }
}

static void *member_main(void *of)
{
    struct member *m = of;
    say_as(m->key);
    live(m);
    pcclResult_t result = pcclDestroyCommunicator(m->comm); /* others wait for it as long as it is there */
    if (result != pcclSuccess && (result != pcclInvalidUsage || !atomic_load(&m->destroyed))) {
        say_finding("pcclDestroyCommunicator returned %s: %s", pcclGetResultString(result), pcclGetLastError());
    }
    say_note("ends");
    atomic_fetch_add(&m->host->ended, 1);
    return NULL;
}

static void begin(struct host *h, int number, const char *master)
{
    for (int i = 0; i < h->members; i++) {
        struct member *m = &h->member[i];
        pcclCommCreateParams_t params = {.p2p_connection_pool_size = h->plan.pool};
        m->host = h;
        m->plan = h->plan;
        m->key = (unsigned)(number + PLAN_PROCESSES * i);
        m->group = params.peer_group = plan_group(&h->plan, m->key);
        m->holding = holding_new(&m->plan, m->key, dice_hash(m->plan.seed, 1000 + m->key));
        say_as(m->key);
        if (m->holding == NULL ||
            pcclParseAddress(master, CCOIP_PROTOCOL_PORT_MASTER, &params.master_address) != pcclSuccess ||
            pcclCreateCommunicator(&params, &m->comm) != pcclSuccess) {
            member_give_up(m, "the set-up", pcclInternalError);
        }
        set_options(m);
    }
    for (int i = 0; i < h->members; i++) {
        if (pthread_create(&h->member[i].thread, NULL, member_main, &h->member[i]) != 0) {
            member_give_up(&h->member[i], "a thread", pcclInternalError);
        }
    }
}

static void end(struct host *h)
{
    for (int i = 0; i < h->members; i++) {
        pthread_join(h->member[i].thread, NULL);
        holding_free(h->member[i].holding);
    }
}

int main(int argc, char **argv)
{
    static struct host h;
    long began = spawn_entries("/proc/self/fd");
    if (argc != 4 || pcclInit() != pcclSuccess) {
        return 2;
    }
    plan_draw(&h.plan, strtoull(argv[1], NULL, 10));
    h.members = h.plan.members;
    if (fcntl(LOG_DESCRIPTOR, F_GETFD) >= 0) {
        (void)pcclSetLogCallback(log_line, pcclLogDebug, NULL);
    }
    begin(&h, atoi(argv[2]), argv[3]);
    listen_to_runner(&h);
    end(&h);
    if (spawn_entries("/proc/self/fd") != began) {
        say_finding("%ld descriptors are open, %ld were at the beginning", spawn_entries("/proc/self/fd"), began);
    }
    if (h.destroyed) {
        _exit(0); /* the threads of members were ended wherever they were, with what they had allocated */
    }
    return 0;
}
