/* frame.h - the header in front of every message on every connection.
 *
 * 32 bytes: magic u32, version u8, type u8, lane u16, length u32 (payload bytes after the header), zero u32, run u64, view u64.
 * `run` is 0 until the sender knows it; `view` is epoch << 32 | number of the view that the message is about, 0 if
 * none.  Length is checked against the limit of the type before anything is believed.
 * Other versions of the protocol: magic and version stay where they are, and no first message is shorter than this header.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_FRAME_H
#define PCCL_WIRE_FRAME_H

#include "wire/codec.h"

enum { FRAME_HEADER_BYTES = 32, FRAME_VERSION = 13 };
#define FRAME_MAGIC 0x314C4350u /* "PCL1" */

/* Who may send which: control types travel between peer and master, p2p types between peers. */
enum frame_type {
    /* peer to master */
    FRAME_REGISTER = 1,
    FRAME_SUSPECT = 2,
    FRAME_FROZEN = 3,
    FRAME_VOTE = 4,
    FRAME_LINKED = 5,
    FRAME_LEAVE = 6,
    FRAME_STAGED = 7,
    FRAME_MEASURED = 8,
    FRAME_CLAIM = 10,
    FRAME_DECLINE = 11,
    FRAME_STATUS = 12,
    FRAME_EXPECT = 13,
    FRAME_TOPOLOGY = 14,
    FRAME_TOOK = 15,
    /* both ways */
    FRAME_HEARTBEAT = 9,
    /* master to peer */
    FRAME_WELCOME = 16,
    FRAME_FREEZE = 17,
    FRAME_VIEW = 18,
    FRAME_ANSWER = 19,
    FRAME_ADMIT = 20,
    FRAME_FENCE = 21,
    FRAME_ELECTED = 22,
    FRAME_PROBE = 23,
    FRAME_GIVEN_UP = 24,
    FRAME_VIEW_PART = 25,
    FRAME_STATUS_PAGE = 26,
    FRAME_TOPOLOGY_PAGE = 27,
    /* between peers: any connection */
    FRAME_HELLO = 32,
    FRAME_HELLO_ACK = 33,
    /* between peers: control link */
    FRAME_READY = 34,
    FRAME_EAGER = 35,
    FRAME_WANT = 36,
    FRAME_HOLD = 37,
    FRAME_REFUSE = 38,
    FRAME_FINISHED = 39,
    FRAME_PING = 40,
    FRAME_SWITCH = 41, /* the last one of its direction on the socket: what follows goes through shared memory */
    FRAME_PATH = 42,
    FRAME_PART = 43,
    FRAME_GOT = 44,
    /* between peers: data connection */
    FRAME_DATA = 48,
    FRAME_CREDIT = 49,
    /* between peers: sync connection */
    FRAME_MANIFEST_WANT = 56,
    FRAME_MANIFEST = 57,
    FRAME_LEAF_WANT = 58,
    FRAME_LEAF = 59,
    FRAME_ENTRIES_WANT = 60,
    FRAME_ENTRIES = 61,
    /* between peers: probe connection */
    FRAME_PROBE_DATA = 64,
};

struct frame_header {
    uint8_t type; /* enum frame_type; unknown values are refused by frame_get */
    uint16_t lane;
    uint32_t length;
    uint64_t run, view;
};

/* Writes exactly FRAME_HEADER_BYTES. */
void frame_put(void *out, const struct frame_header *header);
/* False: wrong magic, version, type, or longer than frame_limit(type). */
bool frame_get(const void *in, struct frame_header *header);
/* The version of a header that frame_get refuses for its version alone; 0: it is of this one, or no message of PCCL at all. */
uint8_t frame_other_version(const void *in);
/* Most payload bytes of a type; 0 if the type is unknown. */
uint32_t frame_limit(uint8_t type);
/* Whether a longer payload of this type travels in VIEW_PART frames. */
bool frame_in_parts(uint8_t type);
const char *frame_name(uint8_t type); /* "VIEW"; "?" if unknown */

#endif
