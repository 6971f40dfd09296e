/* window.h - memory of one member that the others read, write and count in: made by all members of a communicator together.
 *
 * A window is a service over messages of SPACE_WINDOW: whoever wants something of another one's window asks with a request, which a
 * thread of the other one's communicator receives and answers, without its program.  docs/internals/decisions/0013-windows-are-a-service.md says why.
 *
 * What members are told of each other's windows when they make them is the caller's to exchange (struct window_member).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_H
#define PCCL_WINDOW_WINDOW_H

#include "engine/comm.h"
#include "window/window_set.h"

/* The first half: memory (`base` null: of the window's own, shared with the host if that can be), and what is to be told of it.  Null: no memory for
 * the window itself; else m->status says whether it can be. */
struct window *window_new(struct comm *c, void *base, size_t bytes, uint32_t rights, uint32_t world, struct window_member *m);
/* The second: what all have told, by rank.  From now on it is served. */
void window_join(struct window *w, const struct window_member *members, uint32_t rank);
/* Nobody asks anything of it any more, and no call is inside: ends what is still open, frees it; memory of its own, too. */
void window_free(struct window *w);
/* The communicator has left and goes: all that its windows have open ends.  Its windows stay until they are freed. */
void windows_end(struct comm *c);
/* After a fork, in place of it. */
void windows_abandon(struct comm *c);

/* Begins it; null: no memory.  It is an operation like any other of the communicator (comm_await), by the handle of that number. */
struct comm_op *window_begin(struct window *w, const struct window_call *call, uint64_t *number_out);

/* What is known of the window of one member. */
struct window_info {
    uint64_t id;
    size_t bytes;
    uint32_t rights;
    void *address;           /* where this process reaches it by itself; null: it does not */
    bool lost;
};
uint32_t window_world(const struct window *w);
uint32_t window_rank(const struct window *w);
uint64_t window_number(const struct window *w); /* where its tags begin */
bool window_served(const struct window *w); /* its communicator has not gone */
void window_tell(struct window *w, uint32_t rank, struct window_info *out);
/* Waits until none of its own operations is in flight, tells all members so, and waits until each has done the same, or is lost. */
void window_close(struct window *w);

#endif
