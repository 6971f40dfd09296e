/* wan_control.h - commands that change a network while it runs.
 *
 *   path A B KEY VALUE...     changes the path between two hosts or sites, in both directions
 *   path A to B KEY VALUE...  in this direction
 *   cut A [B | to B]          drops everything between them; without B: between A and all others
 *   heal [A [B | to B]]       ends cuts; without A: all
 *
 * Pure: what a line says is first read, then applied.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_CONTROL_H
#define PCCL_WAN_CONTROL_H

#include "pccl/wan_flow.h"

enum wan_verb { WAN_CHANGE, WAN_CUT, WAN_HEAL };

struct wan_order {
    enum wan_verb verb;
    bool from[WAN_HOSTS_MOST], to[WAN_HOSTS_MOST];
    bool one_way;
    struct wan_values values; /* of WAN_CHANGE */
};

/* False: one sentence in `error`. */
bool wan_control_read(const struct wan_network *n, const char *line, struct wan_order *out, char error[WAN_ERROR]);
bool wan_control_apply(const struct wan_network *n, const struct wan_order *order, struct wan_flow *f, char error[WAN_ERROR]);

#endif
