/* machine_costs.h - what moving and adding costs a peer, as it has measured at its start; whole numbers, so that all members of a view
 * calculate alike.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_MACHINE_COSTS_H
#define PCCL_CORE_MACHINE_COSTS_H

#include <stdint.h>

enum { COSTS_MOST = 1 << 30 }; /* of each; what is beyond is cut */

/* All zero: not measured. */
struct costs {
    uint32_t delay_ns;   /* one way, beyond what sending and receiving take: to be noticed takes about a message; and as far as the
                          * master is */
    uint32_t message_ns; /* to send a message and to receive one, however short */
    uint32_t byte_ps;    /* to send a byte and to receive one */
    uint32_t fold_ps;    /* to add a byte to a sum */
};

#endif
