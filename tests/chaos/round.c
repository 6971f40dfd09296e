/* round.c - see round.h.
 *
 * One thread, one loop: the proxy's sockets, the peers' logs, the faults of the plan.  Trouble, then everything is healed;
 * then all that live must make progress together within a time that follows from the options; then all end in order.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "round.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cage.h"
#include "injector.h"
#include "sockets.h"
#include "verdict.h"

enum { STEPS_WANTED = 2, BASE_PATIENCE_MS = 15000, END_PATIENCE_MS = 20000, SLOW_FACTOR = 5, TICK_MS = 100, SHOWN_FINDINGS = 40,
       DESCRIPTORS = 2 * PROXY_CONNECTIONS + PROXY_LISTENERS + 2 * (PLAN_PROCESSES + 1) };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t round_now_ms(void)
{
    return now_ns() / 1000000;
}

void round_finding(struct round *r, const char *format, ...)
{
    va_list list;
    if (r->result->findings++ >= SHOWN_FINDINGS) {
        return;
    }
    va_start(list, format);
    printf("  FINDING ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
}

int round_living(const struct round *r)
{
    int count = 0;
    for (int i = 0; i < r->processes; i++) {
        count += r->actor[i].status == ACTOR_RUNS;
    }
    return count;
}

/* ---- What is heard -------------------------------------------------------------------------------------------------- */

/* The key of a member of process i. */
static int key_of(int i, int member)
{
    return i + PLAN_PROCESSES * member;
}

/* True if everybody that lives is in the world that a peer of this group has told of. */
static bool everybody(const struct round *r, uint32_t group, int world, int global)
{
    int in_group = 0, all = 0;
    for (int i = 0; i < r->processes; i++) {
        for (int m = 0; m < r->plan.members && r->actor[i].status == ACTOR_RUNS; m++) {
            in_group += plan_group(&r->plan, (unsigned)key_of(i, m)) == group;
            all++;
        }
    }
    return world == in_group && global == all;
}

static void hear_progress(struct round *r, const char *line)
{
    uint32_t group;
    uint64_t lineage;
    int64_t at;
    int key, world, global;
    if (sscanf(line, "P %" SCNd64 " %d %" SCNu32 " %" SCNx64 " %*u %*u %d %d", &at, &key, &group, &lineage, &world, &global) !=
            6 || key < 0 || key >= PLAN_PEERS) {
        return;
    }
    struct round_peer *p = &r->peer[key];
    p->lineage = lineage;
    p->progress_ms = at;
    r->result->steps++;
    if (r->healed_ms != 0 && at > r->healed_ms && everybody(r, group, world, global)) {
        p->steps++;
    }
}

static void hear(void *user, struct actor *from, const char *line)
{
    struct round *r = user;
    struct record record;
    if (from == &r->master) {
        return;
    }
    if (line[0] == '!') {
        round_finding(r, "process %d: %s", (int)(from - r->actor), line + 2);
    } else if (line[0] == 'P') {
        hear_progress(r, line);
    } else if (line[0] == 'A') {
        r->result->trees += strstr(line, "forest") != NULL;
    } else if (strchr("BER", line[0]) != NULL && record_read(line, &record)) {
        r->moved_ms = record.kind != 'B' && record.code == 0 ? round_now_ms() : r->moved_ms;
        if (!records_add(&r->records, &record)) {
            round_finding(r, "no memory for records");
        }
    }
}

/* ---- The loop ------------------------------------------------------------------------------------------------------- */

static int whose(void *user, const struct sockaddr_in *from)
{
    struct round *r = user;
    uint32_t ip = ntohl(from->sin_addr.s_addr);
    for (int i = 0; i < r->processes; i++) {
        bool runs = r->actor[i].status == ACTOR_RUNS;
        if (runs && (r->caged ? (ip & ~255u) == (cage_address((unsigned)i) & ~255u)
                              : sockets_belong(r->actor[i].pid, ntohs(from->sin_port)))) {
            return i;
        }
    }
    return -1;
}

static void wait_a_little(struct round *r, int64_t until_ms)
{
    static struct pollfd fds[DESCRIPTORS];
    int actors = 0;
    int64_t now = now_ns();
    actors += actor_descriptors(&r->master, fds);
    for (int i = 0; i < r->processes; i++) {
        actors += actor_descriptors(&r->actor[i], fds + actors);
    }
    int proxied = proxy_descriptors(r->proxy, fds + actors, DESCRIPTORS - actors), processes = r->processes;
    int64_t due = proxy_due(r->proxy, now), until = until_ms * 1000000;
    due = due < until ? due : until;
    struct timespec timeout = {(due - now) / 1000000000, (due - now) % 1000000000};
    if (due <= now) {
        timeout = (struct timespec){0, 0};
    }
    (void)ppoll(fds, (nfds_t)(actors + proxied), &timeout, NULL);
    int64_t then = now_ns(), late = (then - due) / 1000000;
    r->worst_lag_ms = late > r->worst_lag_ms ? late : r->worst_lag_ms;
    proxy_pass(r->proxy, fds + actors, proxied, then);
    actor_pass(&r->master, fds, hear, r);
    for (int i = 0; i < processes; i++) {
        actor_pass(&r->actor[i], fds + 2 * (i + 1), hear, r);
    }
}

/* One pass: what has happened, what is due. */
static void pass(struct round *r)
{
    int64_t now = round_now_ms(), tick = now + TICK_MS, due = injector_pass(r, now);
    wait_a_little(r, due < tick ? due : tick);
    actor_reap(&r->master, hear, r);
    for (int i = 0; i < r->processes; i++) {
        actor_reap(&r->actor[i], hear, r);
    }
}

/* ---- Beginning ------------------------------------------------------------------------------------------------------ */

/* The path of a program that was built beside this one. */
static void path_of(const char *name, char out[PATH_MAX])
{
    char self[PATH_MAX - 64] = ".";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    *strrchr(self, '/') = 0;
    snprintf(out, PATH_MAX, "%s/%s", self, name);
}

bool round_start_master(struct round *r)
{
    char path[PATH_MAX], dead[16], name[16];
    const char *args[] = {path, "--listen", "127.0.0.1:0", "--dead-ms", dead, "--log-level", "debug", NULL};
    path_of("../../bin/ccoip_master", path);
    snprintf(dead, sizeof dead, "%d", r->plan.stall_ms);
    snprintf(name, sizeof name, "master-%d", r->masters++);
    actor_end(&r->master);
    struct actor_start how = {
        .name = name, .directory = r->directory, .args = args, .caged_key = -1, .talks = true};
    bool ok = actor_start(&r->master, &how);
    const char *port = NULL;
    for (int64_t until = round_now_ms() + BASE_PATIENCE_MS; ok && port == NULL && round_now_ms() < until;) {
        wait_a_little(r, round_now_ms() + TICK_MS);
        const char *line = strstr(r->master.noise_text, "listening at 127.0.0.1:");
        port = line != NULL && strchr(line, '\n') != NULL ? strchr(line, ':') : NULL;
    }
    if (port == NULL) {
        round_finding(r, "the master does not start");
        return false;
    }
    proxy_aim(r->proxy, PROXY_MASTER, INADDR_LOOPBACK, (uint16_t)atoi(port + 1));
    return true;
}

static bool open_doors(struct round *r, int number)
{
    struct round_process *p = &r->process[number];
    uint32_t proxy = r->caged ? CAGE_PROXY : INADDR_LOOPBACK;
    p->port = !r->caged ? sockets_free_port() : r->plan.same_port ? 48150 : (uint16_t)(48150 + number);
    p->offered = proxy_listen(r->proxy, number, proxy, 0);
    p->master = number == 0 ? proxy_listen(r->proxy, PROXY_MASTER, proxy, 0) : r->process[0].master;
    proxy_aim(r->proxy, number, r->caged ? cage_address((unsigned)number) : INADDR_LOOPBACK, p->port);
    return p->port != 0 && p->offered != 0 && p->master != 0;
}

bool round_join(struct round *r)
{
    static const char *const cpus[] = {"PCCL_CPU=scalar", "PCCL_CPU=avx2", "PCCL_CPU=avx512", ""};
    char path[PATH_MAX], seed[24], number[8], master[32], port[24], advertise[40], name[16];
    int i = r->processes;
    struct round_process *p = &r->process[i];
    if (i == PLAN_PROCESSES) {
        return false;
    }
    if (!open_doors(r, i)) {
        round_finding(r, "no port for process %d", i);
        return false;
    }
    const char *ip = r->caged ? "10.99.0.1" : "127.0.0.1";
    path_of("chaos_peer", path);
    snprintf(seed, sizeof seed, "%" PRIu64, r->plan.seed);
    snprintf(number, sizeof number, "%d", i);
    snprintf(master, sizeof master, "%s:%u", ip, p->master);
    snprintf(port, sizeof port, "PCCL_PORT=%u", p->port);
    snprintf(advertise, sizeof advertise, "PCCL_ADVERTISE=%s:%u", ip, p->offered);
    snprintf(name, sizeof name, "process-%d", i);
    const char *args[] = {path, seed, number, master, NULL};
    char verify[] = "PCCL_VERIFY=1", quiet[] = "PCCL_LOG_LEVEL=none", cpu[32];
    snprintf(cpu, sizeof cpu, "%s", cpus[(r->plan.seed + (uint64_t)i) % 4]);
    char trees[] = "PCCL_ALGO=allreduce:forest";
    char *environment[7] = {port, advertise, verify, quiet};
    int words = 4;
    if (cpu[0] != 0) {
        environment[words++] = cpu;
    }
    if (r->plan.along_trees) {
        environment[words++] = trees;
    }
    struct actor_start how = {.name = name,
                              .directory = r->directory,
                              .args = args,
                              .environment = environment,
                              .caged_key = r->caged ? i : -1};
    r->processes++;
    r->result->processes++;
    if (!actor_start(&r->actor[i], &how)) {
        round_finding(r, "process %d cannot be started", i);
        return false;
    }
    return true;
}

static bool begin(struct round *r, bool networks)
{
    const char *why = networks ? cage_enter() : "not wanted";
    r->caged = why == NULL;
    r->result->caged = r->caged;
    printf("  networks: %s\n", r->caged ? "namespaces" : why);
    r->proxy = proxy_new(&r->plan, whose, r);
    if (r->proxy == NULL || !round_start_master(r)) {
        return false;
    }
    r->began_ms = round_now_ms();
    for (int i = 0; i < r->plan.processes; i++) {
        if (!round_join(r)) {
            return false;
        }
    }
    return true;
}

/* ---- Phases --------------------------------------------------------------------------------------------------------- */

static bool together(const struct round *r)
{
    uint64_t lineage[PLAN_GROUPS] = {0};
    for (int key = 0; key < PLAN_PEERS; key++) {
        const struct round_peer *p = &r->peer[key];
        int i = key % PLAN_PROCESSES;
        if (i >= r->processes || key / PLAN_PROCESSES >= r->plan.members || r->actor[i].status != ACTOR_RUNS) {
            continue;
        }
        uint64_t *of_group = &lineage[plan_group(&r->plan, (unsigned)key)];
        if (p->steps < STEPS_WANTED || (*of_group != 0 && *of_group != p->lineage)) {
            return false;
        }
        *of_group = p->lineage;
    }
    return true;
}

static void ask_all(struct round *r, char word)
{
    for (int i = 0; i < r->processes; i++) {
        actor_word(&r->actor[i], word);
    }
}

/* Nothing has succeeded for so long, or something has, again and again, without an end.  (Slow is not stuck: a loaded machine
 * and a sanitizer make it so.) */
static bool stuck(const struct round *r, int64_t since_ms, int64_t patience_ms)
{
    int64_t now = round_now_ms();
    return now > r->moved_ms + patience_ms || now > since_ms + SLOW_FACTOR * patience_ms;
}

/* Everybody must get on, together, within the time that the options allow. */
static void demand_progress(struct round *r)
{
    const struct plan *p = &r->plan;
    int64_t patience = BASE_PATIENCE_MS + 4 * (p->stall_ms + p->loss_ms) + p->vote_ms;
    r->healed_ms = r->moved_ms = round_now_ms();
    while (!together(r) && !stuck(r, r->healed_ms, patience)) {
        pass(r);
    }
    if (together(r)) {
        return;
    }
    ask_all(r, 'w');
    for (int64_t until = round_now_ms() + 1000; round_now_ms() < until;) {
        pass(r);
    }
    round_finding(r, "no common progress within %" PRId64 " ms after the last fault; the logs say who waits for whom", patience);
    for (int key = 0; key < PLAN_PEERS; key++) {
        if (r->peer[key].progress_ms != 0 && r->actor[key % PLAN_PROCESSES].status == ACTOR_RUNS) {
            printf("    peer %d: %d steps, the last at %+" PRId64 " ms, lineage %" PRIx64 "\n", key, r->peer[key].steps,
                   r->peer[key].progress_ms - r->began_ms, r->peer[key].lineage);
        }
    }
}

static void end(struct round *r)
{
    ask_all(r, 'q');
    r->ended_ms = r->moved_ms = round_now_ms();
    while (round_living(r) > 0 && !stuck(r, r->ended_ms, END_PATIENCE_MS)) {
        pass(r);
    }
    for (int i = 0; i < r->processes; i++) {
        if (r->actor[i].status == ACTOR_RUNS) {
            round_finding(r, "process %d does not end", i);
        }
        actor_end(&r->actor[i]);
    }
    actor_signal(&r->master, SIGTERM);
    int64_t until = round_now_ms() + END_PATIENCE_MS;
    while (r->master.status == ACTOR_RUNS && round_now_ms() < until) {
        pass(r);
    }
    actor_end(&r->master);
}

void round_run(uint64_t seed, const char *directory, bool networks, struct round_result *result)
{
    static struct round round; /* too large for a stack */
    struct round *r = &round;
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    *r = (struct round){.directory = directory, .result = result};
    plan_draw(&r->plan, seed);
    plan_print(&r->plan, stdout);
    for (int i = 0; i < PLAN_PROCESSES; i++) {
        r->actor[i].log = r->actor[i].noise = -1;
    }
    r->master.log = r->master.noise = -1;
    if (begin(r, networks)) {
        while (!injector_done(r)) {
            pass(r);
        }
        demand_progress(r);
    }
    end(r);
    verdict_on_calls(r);
    verdict_on_processes(r);
    verdict_on_places(r);
    printf("  %d processes, %d steps, %d calls compared, %d of them succeeded, longest standstill of the runner %" PRId64 " ms, %d "
           "findings\n", r->processes, result->steps, result->calls, result->successes, r->worst_lag_ms, result->findings);
    proxy_free(r->proxy);
    records_free(&r->records);
}
