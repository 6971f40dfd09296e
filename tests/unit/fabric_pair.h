/* fabric_pair.h - two ports of libfabric in one process, and links between them.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TEST_FABRIC_PAIR_H
#define PCCL_TEST_FABRIC_PAIR_H

#include "core/random.h"
#include "net/fabric.h"

enum { PORTS = 2, LINKS = 3 };

struct end {
    struct transport t;
    bool open, told;
    struct fabric_end name;
    uint64_t sent, got; /* bytes */
};

struct pair {
    struct loop loop[PORTS];
    struct fabric_port *port[PORTS];
    struct end end[LINKS][PORTS];
    int *failures; /* borrowed: of the test */
};

/* False: there is no libfabric here. */
bool pair_open(struct pair *p, int *failures);
void pair_close(struct pair *p);
/* Connects link `k`; who opens its side first, and when the other does, is up to the test. */
void pair_link(struct pair *p, int k);
bool pair_open_end(struct end *e);
/* Both loops once. */
void pair_turn(struct pair *p);
/* What the sockets of a link say, at the ends that are open. */
void pair_hear(struct pair *p, int k);
/* At most so many bytes from port `i` over link `k`; what is there of the other's, checked by value. */
pccl_status pair_say(struct pair *p, int k, int i, struct rng *rng, size_t most);
pccl_status pair_listen(struct pair *p, int k, int i, struct rng *rng);

#endif
