/* peer_place.c - the addresses that fake peers give.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"

void peer_put_addresses(const struct peer_place *at, struct msg_register *to)
{
    uint16_t port = at->port != 0 ? at->port : 48150;
    to->addresses = 0;
    to->address[to->addresses++] = (struct net_address){.family = 4, .port = port};
    if (at->host != 0) {
        to->address[0] = (struct net_address){.family = 4, .ip = {10, 0, 1, at->host}, .port = port};
    }
    if (at->lan != 0) {
        to->address[to->addresses++] = (struct net_address){.family = 4, .ip = {192, 168, 0, at->lan}, .port = port};
    }
}
