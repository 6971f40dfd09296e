/* window_service.h - the shell of windows: those of a communicator, with the thread that serves them.
 *
 * What is decided about them (window_set.h) is guarded by the lock here, which is taken before comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_SERVICE_H
#define PCCL_WINDOW_WINDOW_SERVICE_H

#include "window/window.h"

struct windows {
    struct comm *comm;
    pthread_mutex_t lock;    /* of what follows, and of its windows */
    pthread_cond_t changed;  /* something has ended that window_free, window_close or windows_end may wait for */
    pthread_t thread;
    struct queue *queue;     /* where messages end, and cancels are told */
    struct window_set set;
    uint32_t count;
    uint64_t made;           /* windows so far */
    uint32_t users;          /* the communicator, and its windows */
    bool ended;              /* the communicator has gone: it and the thread are there no more */
    bool stop;
};

/* window_message.c */
/* A step, with what comes before it and what it wants done.  With the lock. */
void windows_step(struct windows *ws, const struct window_event *e);
/* Before it: who is a member, of what view. */
void windows_see(struct windows *ws);
/* Says of each member whether it has been silent for the stall time; returns when that is to be asked again. */
int64_t windows_silence(struct windows *ws, struct window *w);
bool windows_lend(struct windows *ws, struct window *w); /* window_lend, of the lanes */

/* window_service.c */
struct windows *windows_get(struct comm *c); /* made by the first who asks; null: no memory */
bool windows_add(struct windows *ws, struct window *w, uint64_t *serial_out); /* false: there are too many */
void windows_remove(struct window *w);
void window_release(struct window *w); /* frees it; it is in no set */
void windows_drop(struct windows *ws); /* a user less; the last one frees it */

/* window_memory.c */
pccl_status window_memory_make(struct window *w, size_t bytes); /* base, shared, shared_fd, token */
void window_memory_map(struct window_peer *p, const struct window_member *m); /* of another one; or not */
void window_memory_free(struct window *w);

#endif
