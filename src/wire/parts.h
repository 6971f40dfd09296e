/* parts.h - pieces that several messages share, inside src/wire only.
 *
 * A value that no version of the protocol knows makes the reader bad where it is read, so that the
 * getters of messages stay lists of fields and are checked once at the end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_PARTS_H
#define PCCL_WIRE_PARTS_H

#include "wire/control.h"

/* Most items of a list in one message. */
enum {
    PARTS_MEMBERS = 16384,
    PARTS_NAMES = 4096,
};

/* Fewest bytes of a list item. */
enum {
    PARTS_ID_BYTES = 8,
    PARTS_RANK_BYTES = 4,
    PARTS_TREE_BYTES = 4, /* and a parent for each member */
    PARTS_PARENT_BYTES = 2,
    PARTS_MEMBER_BYTES = 15,
    PARTS_MEMBER_MOST = PARTS_MEMBER_BYTES + BOUNDS_ADDRESSES * 19,
    PARTS_EDGE_BYTES = 24,
    PARTS_NAME_BYTES = 13,
    PARTS_NAME_MOST = PARTS_NAME_BYTES + 16,
    PARTS_PARAMS_BYTES = 14,
    PARTS_PARAMS_MOST = PARTS_PARAMS_BYTES + 16,
    PARTS_DECISION_BYTES = PARTS_NAME_BYTES + 10,
    PARTS_DECISION_MOST = PARTS_NAME_MOST + 10,
    PARTS_REPORT_BYTES = PARTS_NAME_BYTES + 26 + PARTS_PARAMS_BYTES,
    PARTS_REPORT_MOST = PARTS_NAME_MOST + 26 + PARTS_PARAMS_MOST,
    PARTS_CLASH_MOST = 17 + 2 * PARTS_PARAMS_MOST, /* with a decision or a report that is a mismatch; one byte if it is not known */
    PARTS_ENTRY_BYTES = 20,
};

/* A u8, u16, u32 of at least `least` and at most `most`; bad and 0 otherwise. */
uint8_t parts_get_u8(struct reader *r, uint8_t least, uint8_t most);
uint16_t parts_get_u16(struct reader *r, uint16_t least, uint16_t most);
uint32_t parts_get_u32(struct reader *r, uint32_t least, uint32_t most);

/* A u8 that is one of enum cause. */
uint8_t parts_get_cause(struct reader *r);

void parts_put_params(struct writer *w, const struct op_params *p);
void parts_get_params(struct reader *r, struct op_params *p);
/* Bad unless the first id is the lower one, or none is known. */
void parts_put_clash(struct writer *w, const struct op_clash *c);
void parts_get_clash(struct reader *r, struct op_clash *c);

/* The name of an operation on a connection whose ends are the two of a pair: without them. */
void parts_put_link_name(struct writer *w, const struct op_name *m);
bool parts_get_link_name(struct reader *r, struct op_name *m);

/* The name of what is waited for: of a pair `from` may be 0, a receive from any source. */
void parts_get_wait_name(struct reader *r, struct op_name *m);

/* Family u8, port u16, then 4 or 16 bytes; an unset address (family 0) has none and is refused
 * unless `unset` is true. */
void parts_put_address(struct writer *w, const struct net_address *a);
void parts_get_address(struct reader *r, struct net_address *a, bool unset);

/* A count u8 and as many addresses, at most BOUNDS_ADDRESSES; those behind the count are zeroed. */
void parts_put_addresses(struct writer *w, const struct net_address *list, uint8_t count);
uint8_t parts_get_addresses(struct reader *r, struct net_address list[BOUNDS_ADDRESSES]);

void parts_put_costs(struct writer *w, const struct costs *c);
uint32_t parts_get_stall(struct reader *r);
void parts_get_costs(struct reader *r, struct costs *c);

void parts_put_sizes(struct writer *w, const struct sizes *s);
void parts_get_sizes(struct reader *r, struct sizes *s);

#endif
