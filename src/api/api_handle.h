/* api_handle.h - what a program holds of a communicator, a master, a completion queue or a window.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_API_API_HANDLE_H
#define PCCL_API_API_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum handle_kind { HANDLE_COMM, HANDLE_MASTER, HANDLE_QUEUE, HANDLE_WINDOW, HANDLE_KINDS };

/* The first member of what the program holds. */
struct api_handle {
    atomic_bool open;        /* leads to an object */
    atomic_uint pins;        /* calls that look at it just now */
    unsigned generation;     /* forks seen when it was opened */
    struct api_handle *next; /* among the spare ones */
};

/* A closed one, new or spare, of `size` bytes; null: no memory. */
struct api_handle *handle_take(enum handle_kind kind, size_t size);
void handle_give(enum handle_kind kind, struct api_handle *h);

void handle_open(struct api_handle *h);
/* False: closed.  Signal-safe, as handle_unpin is. */
bool handle_pin(struct api_handle *h);
void handle_unpin(struct api_handle *h);
/* The caller owns the object from now on, once nobody looks at it any more; false: closed before. */
bool handle_close(struct api_handle *h);
bool handle_pinned(const struct api_handle *h);
/* It was opened before this process was forked. */
bool handle_inherited(const struct api_handle *h);

#endif
