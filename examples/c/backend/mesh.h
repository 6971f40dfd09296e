/* mesh.h - the example back-end's links: each pair of ranks, all on one host, has a TCP connection, and a thread that moves messages.
 *
 * Messages are named by sender, channel and kind; those of one name arrive in order.
 * SPDX-License-Identifier: MIT */
#ifndef MESH_H
#define MESH_H

#include <pccl_backend.h>
#include <pthread.h>

enum message_kind { OF_COLLECTIVES = 0, OF_PAIRS = 1 };

struct message {
    struct message *next;
    uint64_t channel, bytes;
    uint32_t kind;
    unsigned char data[];
};

struct peer {
    int fd; /* -1: this rank itself, or gone */
    bool gone;
    struct message *out, **out_end; /* not sent yet, each with its header in front, in `sent` bytes of the first */
    size_t sent;
    struct message *in, **in_end;   /* arrived, not taken */
    struct message *half;           /* being received */
    unsigned char header[24];
    size_t got;                     /* bytes of the header, then of the message */
};

struct work;

struct mesh {
    uint32_t rank, ranks;
    struct peer *peers;
    pthread_t thread;
    pthread_mutex_t lock;     /* of all that follows, the peers, and works */
    pthread_cond_t changed;   /* a work has ended, or something was sent */
    int wake[2];
    bool stopping, aborted;
    unsigned users;           /* communicators: the first, and those split off it */
    struct work *works, **works_end; /* not ended, in order of issue */
};

/* Connects all ranks; null: `mesh_error` says why. */
struct mesh *mesh_open(const pcclBackendParams_t *params);
/* Of the last user: sends what is left, then closes. */
void mesh_close(struct mesh *mesh);

/* With the lock held: room for a message; null: no memory. */
struct message *message_new(uint64_t channel, uint32_t kind, uint64_t bytes);
/* With the lock held: sends it, or delivers it to this rank itself. */
void mesh_send(struct mesh *mesh, uint32_t to, struct message *message);
/* With the lock held: takes the next of that name; null: it has not come. */
struct message *mesh_take(struct mesh *mesh, uint32_t from, uint64_t channel, uint32_t kind);
/* Has the thread look at what is to be sent. */
void mesh_wake(struct mesh *mesh);

/* With the lock held: closes all connections, which the other ranks see at once. */
void mesh_abort(struct mesh *mesh);

/* In mesh_operations.c; called by the thread with the lock held: ends the works that have what they need, or never will. */
void works_advance(struct mesh *mesh);

/* Why the calling thread's last call failed. */
extern _Thread_local char mesh_error[160];

#endif
