/* engine.c - start, stop, fork, the service thread and the pollers.
 * SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/condition.h"
#include "core/log.h"
#include "net/fds.h"
#include "net/sock.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/threads/cores.h"
#include "engine/threads/environment.h"
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/control_link.h"
#include "engine/links/dial.h"
#include "engine/links/greet.h"
#include "engine/threads/measure.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_lanes.h"

enum { ENGINE_PORT = 48150, ENGINE_PORTS = 1000, ENGINE_ACCEPTS = 32 };

struct engine engine_global;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void engine_reset(struct engine *e)
{
    pthread_mutex_init(&e->life_lock, NULL);
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->arm_lock, NULL);
    pthread_mutex_init(&e->any_lock, NULL);
    cond_init(&e->any_cond);
    cond_init(&e->job_done);
    list_init(&e->comms);
    list_init(&e->jobs);
    list_init(&e->greetings);
    list_init(&e->dials);
    stripe_paths_init(&e->paths);
    e->started = false;
    e->users = 0;
    e->greeting_count = 0;
    e->accept_at = 0;
    atomic_store(&e->lanes, 0);
    atomic_store(&e->stopping, false);
    atomic_store(&e->armed, CLOCK_NEVER);
    memset(e->lane, 0, sizeof e->lane);
    memset(e->poller, 0, sizeof e->poller);
}

/* The child of a fork has none of the threads (fds.c closes its descriptors); what the parent's threads were doing to the
 * rest is unknown, so it is left alone. */
static void engine_forked(void)
{
    struct engine *e = &engine_global;
    atomic_fetch_add(&e->generation, 1);
    atomic_store(&e->marked, false);
    engine_reset(e);
}

static void engine_first(void)
{
    engine_reset(&engine_global);
    int rc = pthread_atfork(NULL, NULL, engine_forked);
    (void)rc; /* no memory for the handler: a child would believe in threads that it has not */
}

void engine_prepare(void)
{
    pthread_once(&engine_once, engine_first);
}

void engine_mark(struct engine *e)
{
    engine_prepare();
    atomic_store(&e->marked, true);
}

bool engine_marked(struct engine *e)
{
    return atomic_load(&e->marked);
}

/* ---- The service thread ------------------------------------------------------------------------------------------------- */

static void engine_drain_timer(struct source *source, uint32_t events)
{
    uint64_t count;
    (void)events;
    ssize_t rc = read(source->fd, &count, sizeof count);
    (void)rc;
}

static void engine_accept(struct source *source, uint32_t events)
{
    struct engine *e = LIST_ENTRY(source, struct engine, listener);
    (void)events;
    for (int i = 0; i < ENGINE_ACCEPTS; i++) {
        if (!greet_accept(e, false)) {
            break;
        }
    }
}

static void engine_accept_host(struct source *source, uint32_t events)
{
    struct engine *e = LIST_ENTRY(source, struct engine, host_listener);
    (void)events;
    for (int i = 0; i < ENGINE_ACCEPTS; i++) {
        if (!greet_accept(e, true)) {
            break;
        }
    }
}

static void engine_jobs(struct engine *e)
{
    for (;;) {
        pthread_mutex_lock(&e->arm_lock);
        struct list *l = list_pop(&e->jobs);
        pthread_mutex_unlock(&e->arm_lock);
        if (l == NULL) {
            return;
        }
        struct engine_job *job = LIST_ENTRY(l, struct engine_job, all);
        job->run(job->argument);
        pthread_mutex_lock(&e->arm_lock);
        job->done = true;
        pthread_cond_broadcast(&e->job_done);
        pthread_mutex_unlock(&e->arm_lock);
    }
}

/* Only this thread takes communicators off the list; so no lock is held while one is served, and its log lines told. */
static struct list *engine_next(struct engine *e, struct list *l)
{
    pthread_mutex_lock(&e->lock);
    struct list *next = l->next;
    pthread_mutex_unlock(&e->lock);
    return next;
}

static void engine_timers(struct engine *e, int64_t now)
{
    struct comm_after after;
    pthread_mutex_lock(&e->arm_lock);
    atomic_store(&e->armed, CLOCK_NEVER); /* whoever arms from here on is heard at the end */
    pthread_mutex_unlock(&e->arm_lock);
    int64_t next = greet_tick(e, now);
    for (struct list *l = engine_next(e, &e->comms); l != &e->comms; l = engine_next(e, l)) {
        struct comm *c = LIST_ENTRY(l, struct comm, in_engine);
        comm_lock(c, &after);
        int64_t at = c->seam->tick(c, now, &after);
        comm_unlock(c, &after);
        next = at < next ? at : next;
    }
    int64_t at = dial_tick(e, now);
    next = at < next ? at : next;
    engine_arm(e, next);
}

static void *engine_service(void *argument)
{
    struct engine *e = argument;
    while (!atomic_load(&e->stopping)) {
        loop_poll(&e->service, -1);
        engine_jobs(e);
        int64_t now = clock_now_ns();
        if (now >= atomic_load(&e->armed)) {
            engine_timers(e, now);
        }
    }
    greet_drop_all(e);
    return NULL;
}

const struct lane_calls engine_lane_calls = {
    .done = op_lanes_done,
    .idle = op_lanes_idle,
    .stalled = op_lanes_stalled,
    .cancel = comm_cancel,
    .good = bundle_stream_good,
    .broken = bundle_stream_down,
    .gone = bundle_stream_gone,
    .drop = control_detach_all,
    .rest = control_rest_all,
};

/* ---- Pollers -------------------------------------------------------------------------------------------------------------- */

static void engine_grace_over(struct source *source, uint32_t events)
{
    struct poller *p = LIST_ENTRY(source, struct poller, timer);
    engine_drain_timer(source, events);
    if (atomic_load(&p->engine->lanes) > 0) {
        lane_grace_over(p->engine->lane[0]);
    }
}

static void *engine_poller(void *argument)
{
    struct poller *p = argument;
    while (!atomic_load(&p->engine->stopping)) {
        loop_poll(&p->loop, -1); /* a lane with work left wakes itself */
    }
    return NULL;
}

int engine_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static pccl_status engine_poller_start(struct engine *e, uint32_t index, struct err *err)
{
    struct poller *p = &e->poller[index];
    if (p->running) {
        return PCCL_OK;
    }
    p->engine = e;
    p->index = index;
    pccl_status st = loop_open(&p->loop, err);
    if (st != PCCL_OK) {
        return st;
    }
    p->timer.fd = fds_own(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    p->timer.ready = engine_grace_over;
    st = p->timer.fd < 0 ? err_errno(err, "open timer") : loop_add(&p->loop, &p->timer, EPOLLIN, err);
    if (st == PCCL_OK && engine_thread(&p->thread, engine_poller, p) != 0) {
        st = err_set(err, PCCL_ERR_SYSTEM, "start thread: no resources");
    }
    if (st != PCCL_OK) {
        fds_close(p->timer.fd);
        loop_close(&p->loop);
        return st;
    }
    p->running = true;
    return PCCL_OK;
}

/* An endpoint for a lane, if that is wanted: by the environment for any communicator to come, or by this one. */
static pccl_status engine_fabric(const struct engine *e, enum fabric_choice wished, struct lane *lane, struct err *err)
{
    pccl_status st = fabric_port_open(wished == FABRIC_ALWAYS ? wished : e->net, &lane->fabric, err);
    if (st != PCCL_OK && wished != FABRIC_ALWAYS) {
        return PCCL_OK;
    }
    return st == PCCL_OK && lane->fabric != NULL ? fabric_port_watch(lane->fabric, &lane->loop, err) : st;
}

static pccl_status engine_lanes(struct engine *e, uint32_t lanes, enum fabric_choice wished, struct err *err)
{
    uint32_t most = e->cores < ENGINE_POLLERS ? e->cores : ENGINE_POLLERS;
    for (uint32_t i = atomic_load(&e->lanes); i < lanes; i++) {
        pccl_status st = engine_poller_start(e, i % most, err);
        if (st != PCCL_OK) {
            return st;
        }
        struct lane *lane = lane_new(e, i, &engine_lane_calls, err);
        if (lane == NULL) {
            return PCCL_ERR_NOMEM;
        }
        lane->poller = &e->poller[i % most].loop;
        st = engine_fabric(e, wished, lane, err);
        if (st != PCCL_OK) {
            lane_free(lane);
            return st;
        }
        st = loop_add(lane->poller, &lane->outer, EPOLLIN, err);
        if (st != PCCL_OK) {
            lane_free(lane);
            return st;
        }
        e->lane[i] = lane;
        atomic_store(&e->lanes, i + 1);
    }
    return PCCL_OK;
}

/* ---- Start and stop ------------------------------------------------------------------------------------------------------- */

static pccl_status engine_listen(struct engine *e, struct err *err)
{
    const char *text = getenv("PCCL_PORT");
    struct net_address local;
    pccl_status st = PCCL_ERR_INVALID;
    int fd = -1;
    if (text != NULL && *text != 0) {
        char *end;
        unsigned long port = strtoul(text, &end, 10);
        if (*end != 0 || port > 65535) {
            return err_set(err, PCCL_ERR_INVALID, "PCCL_PORT '%.20s' is no port, expected 0 to 65535", text);
        }
        st = sock_listen_any((uint16_t)port, &fd, err);
    } else {
        for (uint16_t port = ENGINE_PORT; port < ENGINE_PORT + ENGINE_PORTS && st != PCCL_OK; port++) {
            st = sock_listen_any(port, &fd, err);
        }
    }
    if (st == PCCL_OK && (st = sock_local(fd, &local)) != PCCL_OK) {
        fds_close(fd);
    }
    if (st != PCCL_OK) {
        return st;
    }
    e->port = local.port;
    e->listener.fd = fd;
    e->listener.ready = engine_accept;
    return PCCL_OK;
}

/* Where processes of this host dial for shared memory.  Without it they use TCP. */
static void engine_listen_host(struct engine *e)
{
    struct err why = {.text = ""};
    e->host_listener.fd = -1;
    e->host_name[0] = e->host_name[1] = 0;
    if (!e->sharing) {
        return;
    }
    uint64_t name[2];
    int fd = -1;
    pccl_status st = getrandom(name, sizeof name, 0) == (ssize_t)sizeof name ? sock_listen_host(name, &fd, &why)
                                                                             : err_errno(&why, "draw a name");
    if (st == PCCL_OK) {
        e->host_listener.fd = fd;
        e->host_listener.ready = engine_accept_host;
        st = loop_add(&e->service, &e->host_listener, EPOLLIN, &why);
    }
    if (st != PCCL_OK) {
        log_line(LOG_INFO, "no shared memory with processes of this host: %s", why.text);
        fds_close(fd);
        e->host_listener.fd = -1;
        return;
    }
    e->host_name[0] = name[0];
    e->host_name[1] = name[1];
}

static void engine_stop(struct engine *e)
{
    atomic_store(&e->stopping, true);
    loop_wake(&e->service);
    pthread_join(e->service_thread, NULL);
    for (uint32_t i = 0; i < ENGINE_POLLERS; i++) {
        struct poller *p = &e->poller[i];
        if (p->running) {
            loop_wake(&p->loop);
            pthread_join(p->thread, NULL);
            p->running = false;
            fds_close(p->timer.fd);
            loop_close(&p->loop);
        }
    }
    for (uint32_t i = 0; i < BOUNDS_LANES && e->lane[i] != NULL; i++) {
        lane_free(e->lane[i]);
        e->lane[i] = NULL;
    }
    atomic_store(&e->lanes, 0);
    outboxes_clear(&e->outboxes);
    fds_close(e->listener.fd);
    fds_close(e->host_listener.fd);
    fds_close(e->timer.fd);
    loop_close(&e->service);
    e->started = false;
    atomic_store(&e->stopping, false);
    atomic_store(&e->armed, CLOCK_NEVER);
}

static pccl_status engine_start(struct engine *e, const struct comm_params *first, struct err *err)
{
    e->cores = cores_own();
    e->shared_cores = cores_shared();
    if (e->costs.message_ns == 0) {
        e->costs = measure_costs();
    }
    pccl_status st = loop_open(&e->service, err);
    if (st != PCCL_OK) {
        return st;
    }
    e->timer.fd = fds_own(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    e->timer.ready = engine_drain_timer;
    if (e->timer.fd < 0) {
        st = err_errno(err, "open timer");
        goto fail;
    }
    st = engine_listen(e, err);
    if (st != PCCL_OK) {
        goto fail_timer;
    }
    e->host_listener.fd = -1;
    st = loop_add(&e->service, &e->timer, EPOLLIN, err);
    if (st == PCCL_OK) {
        st = loop_add(&e->service, &e->listener, EPOLLIN, err);
    }
    if (st == PCCL_OK) {
        st = environment_read(e, err);
    }
    if (st == PCCL_OK) {
        e->sharing = e->share || first->share == COMM_WISH_YES;
        engine_listen_host(e);
    }
    if (st == PCCL_OK && engine_thread(&e->service_thread, engine_service, e) != 0) {
        st = err_set(err, PCCL_ERR_SYSTEM, "start thread: no resources");
    }
    if (st == PCCL_OK) {
        e->started = true;
        return PCCL_OK;
    }
    fds_close(e->listener.fd);
    fds_close(e->host_listener.fd);
fail_timer:
    fds_close(e->timer.fd);
fail:
    loop_close(&e->service);
    return st;
}

/* A connection serves all communicators: the last that says something counts, for those that begin from then on. */
static void engine_take_buffers(struct engine *e, const struct sock_buffers *wished)
{
    if (wished->send != 0) {
        atomic_store(&e->send_buffer, wished->send);
    }
    if (wished->receive != 0) {
        atomic_store(&e->receive_buffer, wished->receive);
    }
}

/* What may carry its data: its own choice before the environment's, as far as the engine has been started with that. */
static pccl_status engine_carriers(const struct engine *e, struct comm *comm, uint32_t lanes, struct err *err)
{
    const struct comm_params *p = &comm->params;
    comm->carriers.share = p->share == COMM_WISH_NONE ? e->share : p->share == COMM_WISH_YES;
    comm->carriers.net = p->fabric == COMM_WISH_NONE ? e->net : p->fabric == COMM_WISH_YES ? FABRIC_ALWAYS : FABRIC_NEVER;
    if (comm->carriers.share && !e->sharing) {
        return err_set(err, PCCL_ERR_INVALID, "shm_disable -1: this process shares no memory, as PCCL_SHM_DISABLE said when its first communicator "
                       "connected: say it for that one, too, or do without the variable");
    }
    for (uint32_t i = 0; comm->carriers.net == FABRIC_ALWAYS && i < lanes && i < atomic_load(&e->lanes); i++) {
        if (e->lane[i]->fabric == NULL) {
            return err_set(err, PCCL_ERR_INVALID, "%s OFI: this process runs without libfabric, as it was said when its first communicator connected: "
                           "say it for that one, too, or set PCCL_NET=OFI", p->fabric == COMM_WISH_YES ? "net" : "PCCL_NET");
        }
    }
    return PCCL_OK;
}

pccl_status engine_join(struct engine *e, struct comm *comm, uint32_t lanes, struct err *err)
{
    pthread_mutex_lock(&e->life_lock);
    pccl_status st = e->started ? PCCL_OK : engine_start(e, &comm->params, err);
    if (st == PCCL_OK) {
        st = engine_carriers(e, comm, lanes, err);
        st = st == PCCL_OK ? engine_lanes(e, lanes, comm->carriers.net, err) : st;
        if (st == PCCL_OK) {
            e->users++;
            engine_take_buffers(e, &comm->params.buffers);
            pthread_mutex_lock(&e->lock);
            list_append(&e->comms, &comm->in_engine);
            pthread_mutex_unlock(&e->lock);
        } else if (e->users == 0) {
            engine_stop(e);
        }
    }
    pthread_mutex_unlock(&e->life_lock);
    return st;
}

/* Whoever leaves has given back all that was granted: what is missing would be missing for as long as the process lives. */
static void engine_check(const struct engine *e)
{
    for (uint32_t i = 0; i < atomic_load(&e->lanes); i++) {
        PCCL_ASSERT(room_whole(&e->lane[i]->room));
    }
}

void engine_leave(struct engine *e)
{
    pthread_mutex_lock(&e->life_lock);
    if (--e->users == 0) {
        engine_check(e);
        engine_stop(e);
    }
    pthread_mutex_unlock(&e->life_lock);
}
