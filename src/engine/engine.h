/* engine.h - what all communicators of a process share: a port, the lanes, and the threads that serve them.
 *
 * Marked by pcclInit, started at the first connect, stopped when the last communicator is gone.  The service thread owns the
 * listening socket, the masters' connections, dials, handshakes, sync and probe connections and all timers.
 *
 * Locks, in the order in which they may be taken: a lane's, engine.lock, a communicator's, a connection's or an inbox's.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_ENGINE_H
#define PCCL_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/fabric.h"
#include "core/list.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/stripe_paths.h"
#include "engine/lanes/lane.h"
#include "engine/threads/outboxes.h"

#define ENGINE_STAGING_BYTES (INT64_C(256) << 20)
#define ENGINE_STAGING_MOST (INT64_C(1) << 40)

enum { ENGINE_POLLERS = 8, ENGINE_GREETINGS = 256, ENGINE_SPIN_MOST_US = 1000000 };

struct comm;

struct poller {
    struct engine *engine; /* borrowed */
    uint32_t index;
    struct loop loop;
    struct source timer;   /* poller 0: ends the grace of lane 0; fd owned */
    pthread_t thread;
    bool running;
};

struct engine {
    pthread_mutex_t life_lock; /* held over start and stop, taken before any other */
    pthread_mutex_t lock;   /* of `comms` */
    atomic_bool marked;     /* pcclInit was called in this process */
    bool started;
    uint32_t users;         /* communicators that have connected */
    struct list comms;      /* struct comm.in_engine */
    atomic_uint generation; /* forks seen: communicators of another one are dead */

    uint16_t port;
    uint32_t cores, shared_cores; /* as cores.h has them */
    enum fabric_choice net; /* PCCL_NET: whether lanes have endpoints of libfabric; of a communicator that says nothing */
    bool share;             /* PCCL_SHM_DISABLE, the same way: whether memory is shared within this host */
    bool sharing;           /* somebody who wanted that has started the engine */
    int64_t spin_ns;        /* how long a call that waits looks before it sleeps; -1: learnt by each thread */
    atomic_int send_buffer, receive_buffer; /* of connections for bulk data that begin from now on: bytes, or SOCK_BUFFER_AUTO */
    struct sock_bulk bulk;  /* of the same: the kernel's limits, and the congestion control */
    _Atomic int64_t staging; /* bytes of the lanes' rooms beyond their first blocks */
    int64_t staging_most;    /* PCCL_STAGING_BYTES */
    atomic_bool staging_told, buffer_told; /* what is said once */
    uint32_t stripe;        /* PCCL_STRIPE: sockets of each data connection over TCP; 0: as many as gain, within a host one */
    struct stripe_budget stripes;
    struct stripe_paths paths; /* kept over stop and start */
    struct costs costs; /* measured at the first start */
    struct lane *lane[BOUNDS_LANES]; /* owned */
    atomic_uint lanes;
    struct poller poller[ENGINE_POLLERS];
    atomic_bool stopping;

    struct loop service;
    pthread_t service_thread;
    struct source listener, timer; /* fds owned */
    struct source host_listener;   /* fd owned: for processes of this host; -1: none */
    uint64_t host_name[2];  /* its secret name; zeros: none */
    pthread_mutex_t arm_lock;
    _Atomic int64_t armed;  /* when the timer fires */
    struct list jobs;       /* struct engine_job, under arm_lock */
    pthread_cond_t job_done;
    /* The service thread's: */
    struct list greetings, dials;
    uint32_t greeting_count;
    int64_t accept_at;      /* not before; 0: at once */
    int64_t foreign_at;     /* a caller of another version is told of in the log, not before */
    int64_t want_at;        /* the same of one that cannot be accepted for want of descriptors */

    struct outboxes outboxes;

    pthread_mutex_t any_lock; /* waits for any of several operations */
    pthread_cond_t any_cond;
    uint64_t any_count;
    atomic_uint any_waiters;
};

/* Runs on the service thread while the poster waits. */
struct engine_job {
    struct list all;
    void (*run)(void *argument);
    void *argument;
    bool done;
};

extern struct engine engine_global;
extern const struct lane_calls engine_lane_calls; /* what lanes report, and who hears it */

/* The locks of engine_global exist, and forks are seen: before anything else is done with it. */
void engine_prepare(void);
void engine_mark(struct engine *e);
bool engine_marked(struct engine *e);
static inline struct sock_bulk engine_bulk(struct engine *e)
{
    struct sock_bulk bulk = e->bulk;
    bulk.buffers = (struct sock_buffers){.send = atomic_load(&e->send_buffer), .receive = atomic_load(&e->receive_buffer)};
    return bulk;
}
/* Starts it if need be and makes sure that it has `lanes` lanes; one user more. */
pccl_status engine_join(struct engine *e, struct comm *comm, uint32_t lanes, struct err *err) PCCL_MUST_CHECK;
/* One user less; the last one stops the engine. */
void engine_leave(struct engine *e);
/* A thread of the library: it takes no signals of the program.  0, or why not, as pthread_create. */
int engine_thread(pthread_t *thread, void *(*run)(void *), void *argument);
/* The service thread looks at everything again at `when` at the latest. */
void engine_arm(struct engine *e, int64_t when);
/* Runs a function on the service thread and waits for its end. */
void engine_run(struct engine *e, void (*run)(void *), void *argument);
/* An operation has ended: wakes those who wait for any. */
void engine_any_ended(struct engine *e);

#endif
