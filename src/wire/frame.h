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
#include "wire/frame_table.h"

enum { FRAME_HEADER_BYTES = 32, FRAME_VERSION = 13 };
#define FRAME_MAGIC 0x314C4350u /* "PCL1" */

enum frame_type {
#define FRAME_NUMBER(name, number, way, limit) FRAME_##name = (number),
    FRAME_TABLE(FRAME_NUMBER)
#undef FRAME_NUMBER
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
