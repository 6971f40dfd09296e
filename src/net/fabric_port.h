/* fabric_port.h - what the files of a port share.
 *
 * fabric_open.c opens it, fabric_port.c moves its messages, transport_fabric.c makes a stream of bytes of them.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_FABRIC_PORT_H
#define PCCL_NET_FABRIC_PORT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "core/bounds.h"
#include "core/list.h"
#include "net/fabric.h"

enum {
    FABRIC_BUFFER_BYTES = BOUNDS_FRAME_BYTES + 4096, /* a message at most: a frame, its head, credits before it */
    FABRIC_WINDOW = 8,              /* messages of a connection that may wait at its receiver */
    FABRIC_WORDS = 4,               /* ... and HELLO, an answer, grants for each half of a window, which are read as they come */
    FABRIC_SENDS = 2,               /* buffers that a connection finds for its own messages, whatever others do */
    FABRIC_SLAB = 16,               /* buffers made at once */
    FABRIC_BUCKETS = 64,
};

/* Memory of one message, in one direction at a time. */
struct fabric_buffer {
    struct fi_context2 context; /* the provider's while the message is under way; first, so that it leads to the buffer */
    struct list all;            /* in port.spare, in fabric.early or fabric.arrived, or in none */
    struct fabric *owner;       /* sends: whose; null: receives */
    void *desc;                 /* of registered memory */
    uint32_t at, used;          /* bytes from `at` on have not been taken */
    uint32_t number;            /* received: among the messages of its connection; */
    uint8_t kind, grant;        /* ... and what else its head says */
    unsigned char *bytes;
};

struct fabric_slab {
    struct list all;
    struct fid_mr *mr; /* null: the provider needs none */
    unsigned char *memory;
    struct fabric_buffer buffer[FABRIC_SLAB];
};

/* A process that connections go to; several may, for a while. */
struct fabric_peer {
    struct list all;
    fi_addr_t at;
    uint32_t refs;
    struct fabric_end end;
};

struct fabric_port {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    uint64_t provider;
    uint8_t name_bytes;
    unsigned char name[FABRIC_ADDRESS_BYTES];
    bool waits;            /* the queue has a descriptor */
    struct loop *loop;     /* borrowed; null: nobody polls */
    struct source queue, tick; /* queue.fd is the provider's; tick: a timer, where no descriptor tells */
    struct polled polled;
    bool ticking;
    struct list slabs, spare, peers;
    struct list by_key[FABRIC_BUCKETS];
    struct list owing;     /* connections with a word to say, or that wait for the provider */
    struct list closing;   /* ... that were closed while messages of theirs were under way */
    uint32_t connections;
    uint64_t made;         /* buffers, all told */
    int64_t patience_ns;   /* with a way from an end that lives, to be shown good; fabric_open.c says how long */
    uint32_t greeting;     /* connections whose way is not known to be good yet */
    uint32_t posted, held; /* buffers that receive; that are early or arrived */
    bool failed;           /* the provider says so: connections of this port end */
};

/* A connection. */
struct fabric {
    struct fabric_port *port;
    struct fabric_end ours, theirs;
    struct list by_key, owing, closing;
    bool open;             /* the port knows it */
    struct fabric_peer *peer;
    void (*told)(void *user);
    void *user;
    bool lives;            /* the other end has opened it: messages will find it */
    int64_t lives_at;      /* since when */
    bool greeted;          /* ours went out */
    bool heard;            /* theirs has come; */
    bool answered;         /* ... and was answered */
    bool good;             /* ours was: the way is, there and back */
    bool closed, broken, ended;
    bool blocked;          /* the provider had no room */
    struct list early;     /* buffers before which others are still under way, by number */
    struct list arrived;   /* buffers with bytes to be read */
    uint32_t sends;        /* messages under way */
    uint32_t credit;       /* messages that the other end has room for */
    uint32_t granted;      /* ... that it may send; */
    uint32_t freed;        /* ... room that it has not been told of */
    uint32_t sent, received; /* messages: their numbers; the provider may deliver a short one before a long one */
};

/* fabric_port.c; by the thread that polls. */
bool fabric_enter(struct fabric *f);
void fabric_leave(struct fabric *f); /* frees it, now or when its last message has left */
struct fabric_buffer *fabric_take_buffer(struct fabric_port *port); /* null: no memory */
void fabric_give_buffer(struct fabric_port *port, struct fabric_buffer *b); /* that has been read, or was never sent */
/* All of one that had arrived: its room is told of with the next message, or by fabric_say. */
void fabric_was_read(struct fabric *f, struct fabric_buffer *b);
/* Sends the head and what lies behind it in the buffer.  AGAIN: the provider has no room; CLOSED. */
pccl_status fabric_send(struct fabric *f, enum fabric_kind kind, struct fabric_buffer *b);
/* Is told when there may be room. */
void fabric_wait(struct fabric *f);
/* Says what it owes, if that goes. */
void fabric_say(struct fabric *f);
/* Looks at what the provider has; true: something. */
bool fabric_progress(struct fabric_port *port);
bool fabric_look(struct polled *p);
bool fabric_rest(struct polled *p);
void fabric_queue_ready(struct source *source, uint32_t events);
void fabric_tick_ready(struct source *source, uint32_t events);

#endif
