/* p2p.h - messages between peers.
 *
 * As in control.h: one struct per message, payload after a frame header whose `view` names the view.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_P2P_H
#define PCCL_WIRE_P2P_H

#include "wire/control.h"
#include "wire/fabric_head.h"

enum link_kind { LINK_CONTROL = 1, LINK_DATA = 2, LINK_SYNC = 3, LINK_PROBE = 4, LINK_SHARE = 5, LINK_STRIPE = 6 };

/* HELLO: first frame on a connection, from the dialler.  The run is in the frame header. */
/* Why data does not go through shared memory: as the end that says it sees it. */
enum share_why {
    SHARE_CAN,             /* it may, as far as this end knows */
    SHARE_OTHER_HOST,
    SHARE_OFF,             /* for this end, by its environment or its communicator */
    SHARE_NO_SOCKET,       /* this end could not listen for it */
    SHARE_THEIRS_OFF,      /* the same of the other end, as it has said */
    SHARE_THEIRS_NO_SOCKET,
    SHARE_UNREACHED,       /* nobody listens at the other end's Unix socket here: another network name space */
    SHARE_OTHER_USER,
    SHARE_REFUSED,         /* by the other end, or it did not answer */
    SHARE_NO_MEMORY,
    SHARE_BROKE            /* it was in use */
};

/* Why data does not go through libfabric, the same way. */
enum net_why {
    NET_CAN,
    NET_NONE,     /* this end has none */
    NET_OFF,      /* for this end, by its environment or its communicator */
    NET_BROKE,    /* it was in use */
    NET_OTHER     /* the two ends have different providers */
};

struct msg_hello {
    uint8_t kind;       /* enum link_kind */
    uint16_t lane;      /* LINK_DATA, LINK_STRIPE */
    uint16_t lanes;     /* the same: how many make up this bundle */
    uint32_t group;
    uint64_t from, to;  /* peer ids */
    uint64_t view;      /* the newest view or admission proposal that made the dialler dial */
    uint64_t number;    /* of this connection, or bundle of data connections: greater than any before it for this pair */
    uint8_t share;      /* enum share_why: CONTROL of this end only, DATA of both */
    uint8_t net;        /* enum net_why: DATA */
    uint64_t token;     /* LINK_DATA: the connection is a stripe that LINK_STRIPE may join with it; 0: a plain stream of bytes */
    uint32_t socket;    /* LINK_STRIPE: number of this socket of the stripe, from 1 */
    struct fabric_end fabric; /* LINK_DATA: offered */
};
enum hello_verdict { HELLO_OK = 1, HELLO_STALE = 2, HELLO_NOT_YET = 3 };
struct msg_hello_ack {
    uint8_t verdict;
    uint64_t view; /* STALE: the newest view the other side knows */
    uint64_t host_name[2]; /* LINK_CONTROL within one host: the secret name of the acceptor's Unix socket; zeros: none */
    uint8_t share;         /* enum share_why: why there is none */
    uint8_t net;           /* enum net_why: DATA */
    struct fabric_end fabric; /* LINK_DATA, with one in HELLO: taken */
};

/* Names are of operations of the view in the frame header.
 *
 * READY: I have launched it.  window: data frames of phase 0 you may send me on each lane, on bundle `bundle`. */
struct msg_ready {
    struct op_name name;
    struct op_params params;
    uint32_t window;
    uint64_t bundle;
    uint64_t launch; /* number among the launches of the sender, from 1: its data comes in this order */
    uint64_t expects; /* LAYOUT_PAIRS: elements that this receiver expects of the sender, else 0 and not in the message */
};
/* EAGER: READY and the whole input in one; the payload (wire representation) follows to the end of the frame. */
struct msg_eager {
    struct op_name name;
    struct op_params params;
    uint32_t bytes; /* of payload */
};
/* WANT: your EAGER payload was dropped here; send it again. */
struct msg_want {
    struct op_name name;
};
struct msg_hold {
    struct op_name name;
    uint64_t origin; /* whose HOLD this is: relays keep it */
    uint8_t round;   /* of the dissemination; 0 in a full mesh */
    uint64_t params, digest;
};
struct msg_refuse {
    struct op_name name;
    uint64_t origin;
    uint8_t cause;
    uint64_t culprit; /* who the cause is about, 0 nobody */
    uint32_t settled; /* updates, optimisations and syncs answered in this view before it was first refused */
    struct op_clash clash; /* read with MISMATCH only */
};
/* FINISHED: items op_name, each finished at `origin`. */
struct msg_finished {
    uint64_t origin;
    uint32_t names;
};

/* Between two that have no link, by their relay.  PATH, of the relay to one of the two: what you say to `with` is passed on from here on, and
 * may have been lost before; or my link with it was lost. */
struct msg_path {
    uint64_t with;
    uint8_t up;
};
/* PART: bytes of a message, or of what goes from one to the other in an operation of all, from `offset` on; they follow to the end of the
 * frame. */
enum { P2P_PART_BYTES = 32768 }; /* most of them, at least one */
struct msg_part {
    struct op_name name;
    uint64_t offset;
    uint32_t bytes;
};
/* GOT: the first `offset` bytes are in place, say two parts more if there are more. */
struct msg_got {
    struct op_name name;
    uint64_t offset;
    uint8_t anew; /* whatever was said behind them may be lost: begin there */
};

/* DATA: one frame of an operation; payload follows to the end of the frame.  A connection has two ends: of a pair, DATA comes from the
 * sender and CREDIT from the receiver, so neither says who they are (from and to are read as 0). */
struct msg_data {
    struct op_name name;
    uint32_t frame;
    uint8_t phase;
};
enum { P2P_DATA_PREFIX = 18 }; /* encoded size of msg_data */
/* CREDIT: the room there is for contributions of the one that reads this, and what the one that wrote it has ready without room; and
 * when the operation last moved there. */
struct msg_credit {
    struct op_name name;
    uint32_t frames;    /* more */
    uint32_t ready;     /* in all, with those sent; 0: nothing is said of it */
    uint32_t moved_ms;  /* so long ago, and 1 more; 0: nothing is said of it */
    uint16_t moved_far; /* it moved so many members further on, of whom each waits for the next; 0: where this was written */
};
enum { P2P_CREDIT_BYTES = 27 };

/* Sync connections; `number` and `round` name the vote and its election (msg_elected). */
struct msg_manifest_want {
    uint32_t number, round;
};
/* MANIFEST: per entry its leaf hashes; see session/state/sync.h for the bytes. */
struct msg_manifest {
    uint32_t number, round;
    uint32_t bytes; /* of what follows to the end of the frame */
};
struct msg_leaf_want {
    uint32_t number, round, entry;
    uint64_t leaf;
};
struct msg_leaf {
    uint32_t number, round, entry;
    uint64_t leaf;
    uint32_t bytes; /* payload to the end of the frame; 0: I do not have it */
};

/* ENTRIES_WANT: what entries have you, from this one on?  For whom has other ones than were elected. */
struct msg_entries_want {
    uint32_t number, round, first;
};
/* ENTRIES: items entry_key, from `first` on; of `total` in all, 0: I have none to tell. */
struct msg_entries {
    uint32_t number, round, first, total;
    uint32_t entries;
};
enum { P2P_ENTRIES = 32, P2P_NAME = 48 }; /* most in one message; bytes of a name, with the zero */
struct entry_key {
    uint64_t name_hash;
    uint64_t count;
    uint8_t dtype, inequality;
    char name[P2P_NAME]; /* cut off: for people */
};

void put_hello(struct writer *w, const struct msg_hello *m);
bool get_hello(struct reader *r, struct msg_hello *m);
void put_hello_ack(struct writer *w, const struct msg_hello_ack *m);
bool get_hello_ack(struct reader *r, struct msg_hello_ack *m);
void put_ready(struct writer *w, const struct msg_ready *m);
bool get_ready(struct reader *r, struct msg_ready *m);
void put_eager(struct writer *w, const struct msg_eager *m); /* payload is put by the caller */
bool get_eager(struct reader *r, struct msg_eager *m, const void **payload);
void put_want(struct writer *w, const struct msg_want *m);
bool get_want(struct reader *r, struct msg_want *m);
void put_hold(struct writer *w, const struct msg_hold *m);
bool get_hold(struct reader *r, struct msg_hold *m);
void put_refuse(struct writer *w, const struct msg_refuse *m);
bool get_refuse(struct reader *r, struct msg_refuse *m);
void put_finished(struct writer *w, const struct msg_finished *m);
bool get_finished(struct reader *r, struct msg_finished *m);
void put_path(struct writer *w, const struct msg_path *m);
bool get_path(struct reader *r, struct msg_path *m);
void put_part(struct writer *w, const struct msg_part *m); /* payload is put by the caller */
bool get_part(struct reader *r, struct msg_part *m, const void **payload);
void put_got(struct writer *w, const struct msg_got *m);
bool get_got(struct reader *r, struct msg_got *m);
void put_data(struct writer *w, const struct msg_data *m);
bool get_data(struct reader *r, struct msg_data *m);
void put_credit(struct writer *w, const struct msg_credit *m);
bool get_credit(struct reader *r, struct msg_credit *m);
void put_manifest_want(struct writer *w, const struct msg_manifest_want *m);
bool get_manifest_want(struct reader *r, struct msg_manifest_want *m);
void put_manifest(struct writer *w, const struct msg_manifest *m);
bool get_manifest(struct reader *r, struct msg_manifest *m, const void **payload);
void put_leaf_want(struct writer *w, const struct msg_leaf_want *m);
bool get_leaf_want(struct reader *r, struct msg_leaf_want *m);
void put_leaf(struct writer *w, const struct msg_leaf *m);
bool get_leaf(struct reader *r, struct msg_leaf *m, const void **payload);
void put_entries_want(struct writer *w, const struct msg_entries_want *m);
bool get_entries_want(struct reader *r, struct msg_entries_want *m);
void put_entries(struct writer *w, const struct msg_entries *m);
bool get_entries(struct reader *r, struct msg_entries *m);
void put_entry_key(struct writer *w, const struct entry_key *m);
bool get_entry_key(struct reader *r, struct entry_key *m);

/* 64-bit hash of the parameters of an operation together with those of the view's plans. */
uint64_t p2p_params_hash(const struct op_params *params, const struct plan_view *plan);

#endif
