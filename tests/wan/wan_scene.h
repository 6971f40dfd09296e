/* wan_scene.h - peer processes and a master on the hosts of an emulated network, which a test changes while they call the library.
 *
 * One idea: a program on each host holds its namespace open, and the processes of tests/fault/processes.h enter it.  The master has the
 * last host for itself, so that a fault between two peers is a fault of their path alone.
 * Invariant: scene_end ends all that scene_start has started.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_WAN_SCENE_H
#define PCCL_TESTS_WAN_SCENE_H

#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"
#include "tests/wan/wan_lab.h"

enum { SCENE_HOSTS = 6, SCENE_TEXT = 3 * PATH_MAX, SCENE_TRIES = 4 };

/* Ends the running test where there can be no emulator, or this process may not enter its hosts. */
#define SCENE_NEEDED()                                                                                                 \
    do {                                                                                                               \
        LAB_NEEDED();                                                                                                  \
        if (geteuid() != 0) {                                                                                          \
            TEST_SKIP("to enter the hosts of an emulator needs root");                                                 \
        }                                                                                                              \
    } while (0)

struct scene {
    struct lab lab;
    struct processes all;
    char name[32], space[SCENE_HOSTS][64], listen[32];
    unsigned set; /* of peers that should be members */
    int status;   /* of the emulator, once it has ended */
    char script[SCENE_TEXT];
};

/* The namespace that the line of a host names, as a path: that of some process in it. */
static inline bool scene_find(struct scene *s, int host)
{
    char line[16], up[16], link[64], text[64], path[300];
    snprintf(line, sizeof line, "[%c] net:", 'a' + host);
    snprintf(up, sizeof up, "[%c] up\n", 'a' + host);
    const char *at = program_says(&s->lab.emulator, up) ? strstr(s->lab.emulator.out_text, line) : NULL;
    at = at != NULL ? at + 4 : "";
    snprintf(link, sizeof link, "%.*s", (int)strcspn(at, "\n"), at);
    DIR *d = opendir("/proc");
    for (struct dirent *e; d != NULL && s->space[host][0] == 0 && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%s/ns/net", e->d_name);
        ssize_t n = readlink(path, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        if (n > 0 && strcmp(text, link) == 0) {
            snprintf(s->space[host], sizeof s->space[host], "%.63s", path);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return s->space[host][0] != 0;
}

/* One command of "pccl wan set", while the network runs. */
static inline bool scene_set(struct scene *s, const char *command)
{
    struct program p;
    char path[PATH_MAX], pccl[] = "pccl", wan[] = "wan", set[] = "set", words[256];
    char *args[] = {pccl, wan, set, s->name, words, NULL};
    snprintf(words, sizeof words, "%s", command);
    spawn_path("bin/pccl", path);
    bool done = program_start(&p, path, args) && program_wait(&p) == 0;
    if (!done) {
        fprintf(stderr, "pccl wan set %s: %s\n", command, p.err_text);
    }
    return done;
}

/* So many peers on hosts a, b, c ..., the master on the one behind them; all have joined.  `traffic`: what else host a sends to b, as words
 * of wan_stream_main; null: nothing. */
static inline bool scene_start(struct scene *s, const char *network, const char *traffic, const struct processes_options *options)
{
    char flag[] = "--name", dashes[] = "--", shell[] = "/bin/sh", c[] = "-c";
    struct processes_options o = *options;
    o.failures = &test_failures;
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "faults%d", (int)getpid());
    snprintf(s->listen, sizeof s->listen, "10.77.0.%d:0", o.count + 1);
    spawn_path("tests/wan/wan_stream_main", s->lab.stream);
    snprintf(s->script, sizeof s->script, "readlink /proc/self/ns/net; echo up; case {host}%s in a+) %s %s & ;; b+) %s take & ;; esac; exec sleep 600",
             traffic != NULL ? "+" : "", s->lab.stream, traffic != NULL ? traffic : "", s->lab.stream);
    char *words[] = {flag, s->name, dashes, shell, c, s->script, NULL};
    bool good = lab_start(&s->lab, network, words);
    for (int i = 0; good && i <= o.count; i++) {
        good = scene_find(s, i);
        o.space[i] = s->space[i];
    }
    if (!good) {
        test_failures++;
        fprintf(stderr, "the network does not start: %s\n", s->lab.emulator.err_text);
    }
    o.master_space = s->space[o.count];
    o.space[o.count] = NULL;
    o.listen = s->listen;
    s->set = processes_set(o.count);
    good = good && peers_start(&s->all, &o);
    if (!good) {
        kill(s->lab.emulator.pid, SIGTERM);
        (void)lab_end(&s->lab);
    }
    return good;
}

static inline void scene_end(struct scene *s)
{
    processes_stop(&s->all);
    kill(s->lab.emulator.pid, SIGTERM);
    s->status = lab_end(&s->lab);
}

/* Plays a scene, and plays it again if it failed and the emulator says that the machine was too busy. */
static inline void scene_play(struct scene *s, void (*play)(const char *), const char *with)
{
    for (int i = 1; i <= SCENE_TRIES; i++) {
        int before = test_failures;
        s->status = 0;
        play(with);
        if (test_failures == before || s->status != LAB_VOID || i == SCENE_TRIES) {
            return;
        }
        fprintf(stderr, "void, and played again: the machine was too busy\n");
        test_failures = before;
    }
}

/* The outcome of a call is one for all of the set: code, cause and size of the world; values are checked where they are. */
static inline pcclResult_t scene_outcome(const struct scene *s, const struct reply *reply)
{
    const struct reply *first = &reply[__builtin_ctz(s->set)];
    for (int i = 0; i < s->all.count; i++) {
        if ((s->set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, first->result);
            EXPECT_EQ(reply[i].cause, first->cause);
            EXPECT_EQ(reply[i].value[0], first->value[0]);
        }
    }
    EXPECT(first->result == pcclSuccess || first->result == pcclRankConnectionLost);
    if (getenv("PCCL_TEST_MASTER_LOG") != NULL || test_failures != 0) {
        fprintf(stderr, "result %d, cause %d, after %.3f s: %s\n", first->result, first->cause, (double)first->value[1] / 1e9, first->text);
    }
    return (pcclResult_t)first->result;
}

/* A call of all in the set, again until it succeeds. */
static inline void scene_reduce(struct scene *s, const struct reduce_job *what)
{
    struct reply reply[PROCESSES_MOST] = {{.result = -1}};
    struct reduce_job job = *what;
    job.signal = 0;
    job.note = false;
    job.members = s->set;
    for (int tries = 0; reply[__builtin_ctz(s->set)].result != pcclSuccess && test_failures == 0; tries++) {
        processes_do(&s->all, s->set, peer_reduce, &job, sizeof job, reply);
        (void)scene_outcome(s, reply);
        EXPECT(tries < SCENE_TRIES);
    }
}

/* Nobody else has lost its place, and each of the set knows it. */
static inline void scene_expect_members(struct scene *s)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(&s->all, s->set, peer_look, NULL, 0, reply);
    for (int i = 0; i < s->all.count; i++) {
        if ((s->set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].value[4], __builtin_popcount(s->set));
        }
    }
}

/* argument: size_t, floats.  text: the algorithm that a sum of them takes. */
static inline void scene_ask_plan(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPlan_t plan = {"", 0};
    reply->result = (int)pcclGetPlan(self->comm, pcclCollectiveAllReduce, *(const size_t *)argument, pcclFloat, pcclSum, &plan);
    snprintf(reply->text, sizeof reply->text, "%s", plan.algorithm);
}

#endif
