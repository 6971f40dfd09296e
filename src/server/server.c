/* server.c - the master's thread: its life, its memory, a turn of its loop.
 *
 * One idea: a turn takes what has come, gives the master its time, works on a ring search for a moment, and flushes the
 * bytes once.
 * Invariant: only the server's thread touches the master, the clients and the loop's sources.
 * SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "collectives/plan.h"
#include "core/log.h"
#include "core/stall.h"
#include "server/server_state.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"

enum {
    SERVER_GROUPS = 64,
    SERVER_WORLDS = 16384,
    SERVER_USED_NAMES = 65536,
    SERVER_CONNECTIONS = 32768, /* of the members of all worlds together */
    SERVER_IDLE_TAGS = 16384, /* about a megabyte at the peer */
    SERVER_OPERATIONS = 2 * BOUNDS_DECISIONS, /* finished ones that nobody waits for too */
};

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

static void config_fill(struct master_config *c, const struct server_options *o)
{
    int64_t dead = o->dead_ns > 0 ? o->dead_ns : 10 * CLOCK_S;
    *c = (struct master_config){
        .epoch = 1,
        .max_worlds = SERVER_WORLDS,
        .max_used_names = SERVER_USED_NAMES,
        .max_members = o->max_members > 0 ? o->max_members : BOUNDS_MEMBERS,
        .max_groups = o->max_groups > 0 ? o->max_groups : SERVER_GROUPS,
        .max_edges = BOUNDS_EDGES,
        .idle_tags = SERVER_IDLE_TAGS,
        .max_operations = SERVER_OPERATIONS,
        .heartbeat_ns = stall_heartbeat_ns(dead, CLOCK_S),
        .dead_ns = dead,
        .reconnect_ns = at_most(2 * CLOCK_S, dead / 5),
        .redial_ns = at_most(CLOCK_S, dead / 5),
        .register_ns = 5 * CLOCK_S,
        .admit_ns = 5 * CLOCK_S,
        .collect_ns = at_most(200 * CLOCK_MS, dead / 10),
        .probe_ns = 200 * CLOCK_MS,
        .measure_ns = 15 * CLOCK_S,
        .replan_ns = 30 * CLOCK_S,
        .plan = {.lanes = BOUNDS_LANES,
                 .frame_bytes = BOUNDS_FRAME_BYTES,
                 .eager_bytes = BOUNDS_EAGER_BYTES},
        .tour_moves = 20000,
    };
    c->max_registered = SERVER_CONNECTIONS;
    c->max_connections = SERVER_CONNECTIONS + 2 * SERVER_FRESH; /* resumed members have two for a moment */
}

static bool server_allocate(struct server *s)
{
    uint32_t connections = s->config.max_connections;
    size_t arena_bytes = master_arena_bytes(&s->config);
    if (arena_bytes == 0) {
        return false;
    }
    s->arena = server_memory(arena_bytes); /* what a ring search needs of it stays untouched until there is one */
    s->clients = calloc(connections, sizeof(struct client *));
    s->free_slots = malloc(connections * sizeof *s->free_slots);
    if (s->arena == NULL || s->clients == NULL || s->free_slots == NULL ||
        !solve_init(&s->solve, s->config.max_members)) {
        return false;
    }
    s->master = master_init(&s->config, s->arena);
    return server_fit(s);
}

/* forked: the threads that wait with these two are the parent's, nobody will come. */
static void server_release(struct server *s, bool forked)
{
    if (!forked) {
        pthread_cond_destroy(&s->ended);
        pthread_mutex_destroy(&s->lock);
    }
    for (void *memory; s->master != NULL && (memory = master_release(s->master)) != NULL;) {
        free(memory);
    }
    solve_fini(&s->solve);
    for (uint32_t i = 0; i < s->journal_count; i++) {
        free(s->journals[i].bytes);
    }
    free(s->journals);
    free(s->durable);
    free(s->free_slots);
    free(s->clients);
    free(s->out_memory);
    free(s->arena);
    free(s);
}

pccl_status server_new(const struct net_address *listen, const struct server_options *options, struct server **out,
                       struct err *err)
{
    uint64_t random[2];
    struct server_options none = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return err_errno(err, "draw a run id");
    }
    struct server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_set(err, PCCL_ERR_NOMEM, "master: no memory");
    }
    s->listen = *listen;
    s->loop.epoll = s->loop.wake = s->listener.fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->ended, NULL);
    struct list *lists[] = {&s->fresh, &s->registered, &s->lost, &s->leaving, &s->dirty};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list_init(lists[i]);
    }
    options = options != NULL ? options : &none;
    config_fill(&s->config, options);
    s->idle_ns = options->idle_ns;
    s->idle_at = CLOCK_NEVER;
    s->config.run = random[0] | 1; /* 0 means "not known" on the wire */
    s->config.seed = random[1];
    if (!server_allocate(s)) {
        server_release(s, false);
        return err_set(err, PCCL_ERR_NOMEM, "master: no memory, or a limit is out of range");
    }
    *out = s;
    return PCCL_OK;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------- */

static void server_begin_end(struct server *s)
{
    s->ending = true;
    s->end_at = clock_now_ns() + SERVER_LINGER_NS;
    loop_remove(&s->loop, &s->listener);
    fds_close(s->listener.fd);
    s->listener.fd = -1;
    s->accept_at = 0;
    while (!list_empty(&s->fresh)) { /* strangers get no last words */
        client_lose(LIST_ENTRY(s->fresh.next, struct client, link));
    }
    /* Nobody is fenced: a run outlives its master, and a restarted one takes it up again. */
}

/* Ends when nobody has been there for as long as it was allowed. */
static void server_end_if_idle(struct server *s)
{
    if (s->idle_ns == 0 || !list_empty(&s->registered)) {
        s->idle_at = CLOCK_NEVER;
        return;
    }
    int64_t now = clock_now_ns();
    s->idle_at = s->idle_at == CLOCK_NEVER ? now + s->idle_ns : s->idle_at;
    if (now >= s->idle_at && !s->ending) {
        log_line(LOG_INFO, "no peer for %lld s: the master ends", (long long)(s->idle_ns / CLOCK_S));
        server_begin_end(s);
    }
}

static int64_t server_timeout(const struct server *s)
{
    if (s->solve.wanted_count > 0) {
        return 0;
    }
    int64_t due = at_most(master_deadline(s->master), client_deadline(s));
    due = at_most(due, s->ending ? s->end_at : s->idle_at);
    int64_t left = due == CLOCK_NEVER ? -1 : due - clock_now_ns();
    return due != CLOCK_NEVER && left < 0 ? 0 : left;
}

static void server_turn(struct server *s)
{
    struct master_event solved;
    int count = loop_poll(&s->loop, server_timeout(s));
    (void)count;
    if (atomic_load(&s->stop) && !s->ending) {
        server_begin_end(s);
    }
    if (master_deadline(s->master) <= clock_now_ns()) {
        server_run(s, &(struct master_event){.kind = MASTER_TICK});
    }
    if (solve_work(s, &solved)) {
        server_run(s, &solved);
    }
    client_flush_dirty(s);
    client_sweep(s, clock_now_ns());
    server_end_if_idle(s);
}

static void *server_main(void *user)
{
    struct server *s = user;
    server_end_if_idle(s); /* nobody may ever come */
    while (!s->ending || (!list_empty(&s->leaving) && clock_now_ns() < s->end_at)) {
        server_turn(s);
    }
    struct list *lists[] = {&s->fresh, &s->registered, &s->lost, &s->leaving};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        LIST_FOR_EACH (l, after, lists[i]) {
            struct client *c = LIST_ENTRY(l, struct client, link);
            if (c->phase != CLIENT_DONE) {
                client_drop(c);
            }
        }
    }
    client_sweep(s, clock_now_ns());
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->phase, SERVER_ENDED);
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static pccl_status server_open(struct server *s, struct err *err)
{
    pccl_status st = loop_open(&s->loop, err);
    if (st != PCCL_OK) {
        return st;
    }
    s->listener.ready = client_accept_ready;
    st = addr_is_any(&s->listen) ? sock_listen_any(s->listen.port, &s->listener.fd, err)
                                 : sock_listen(&s->listen, &s->listener.fd, err);
    if (st != PCCL_OK && addr_is_any(&s->listen) && s->listen.family == 4) { /* IPv6 may be there and switched off */
        st = sock_listen(&s->listen, &s->listener.fd, err);
    }
    struct net_address bound;
    if (st == PCCL_OK) {
        st = sock_local(s->listener.fd, &bound) == PCCL_OK ? PCCL_OK : err_errno(err, "read the master's own address");
    }
    if (st == PCCL_OK) {
        st = loop_add(&s->loop, &s->listener, EPOLLIN, err);
    }
    if (st != PCCL_OK) {
        fds_close(s->listener.fd);
        s->listener.fd = -1;
        loop_close(&s->loop);
        return st;
    }
    s->listen.port = bound.port;
    return PCCL_OK;
}

pccl_status server_start(struct server *s, struct err *err)
{
    if (atomic_load(&s->phase) != SERVER_NEW) {
        return err_set(err, PCCL_ERR_INVALID, "the master has been started before");
    }
    uint16_t port = s->listen.port;
    pccl_status st = server_open(s, err);
    if (st != PCCL_OK) {
        return st;
    }
    sigset_t all, before; /* signals are for the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->owner = getpid();
    atomic_store(&s->phase, SERVER_RUNNING);
    int rc = pthread_create(&s->thread, NULL, server_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        atomic_store(&s->phase, SERVER_NEW);
        s->listen.port = port;
        fds_close(s->listener.fd);
        s->listener.fd = -1;
        loop_close(&s->loop);
        return err_set(err, PCCL_ERR_SYSTEM, "start the master's thread: %s", strerror(rc));
    }
    return PCCL_OK;
}

bool server_forked(const struct server *s)
{
    return atomic_load(&s->phase) != SERVER_NEW && s->owner != getpid();
}

bool server_running(const struct server *s)
{
    return atomic_load(&s->phase) == SERVER_RUNNING && !server_forked(s);
}

static bool server_here(const struct server *s)
{
    return atomic_load(&s->phase) != SERVER_NEW && !server_forked(s);
}

pccl_status server_stop(struct server *s)
{
    if (!server_here(s)) {
        return PCCL_ERR_INVALID;
    }
    int saved = errno; /* in a signal handler it is somebody else's */
    atomic_store(&s->stop, true);
    loop_wake(&s->loop);
    errno = saved;
    return PCCL_OK;
}

pccl_status server_wait(struct server *s)
{
    if (!server_here(s)) {
        return PCCL_ERR_INVALID;
    }
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->phase) != SERVER_ENDED) {
        pthread_cond_wait(&s->ended, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return PCCL_OK;
}

pccl_status server_free(struct server *s)
{
    if (s == NULL) {
        return PCCL_OK;
    }
    if (server_running(s)) {
        return PCCL_ERR_INVALID;
    }
    bool forked = server_forked(s); /* it has no such thread, and its descriptors are closed */
    if (atomic_load(&s->phase) == SERVER_ENDED && !forked) {
        pthread_join(s->thread, NULL); /* it has nothing left to do but return */
        loop_close(&s->loop);
    }
    server_release(s, forked);
    return PCCL_OK;
}

pccl_status server_address(const struct server *s, struct net_address *out)
{
    if (!server_running(s)) {
        return PCCL_ERR_INVALID;
    }
    *out = s->listen;
    return PCCL_OK;
}
