/* wan_emulator.c - see wan_emulator.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_emulator.h"

#include <stdlib.h>

static const size_t packets_bytes = (size_t)1 << 30; /* of all that are on their way */

bool wan_emulator_open(struct wan_emulator *e, struct wan_network *n, char error[WAN_ERROR])
{
    *e = (struct wan_emulator){.network = n};
    e->spaces = calloc(n->host_count, sizeof *e->spaces);
    e->unread = calloc(n->host_count, sizeof *e->unread);
    e->flow = wan_flow_new(n, packets_bytes);
    bool ok = e->spaces != NULL && e->unread != NULL && e->flow != NULL;
    if (!ok) {
        snprintf(error, WAN_ERROR, "no memory for %u hosts: use fewer", n->host_count);
    }
    for (unsigned i = 0; e->spaces != NULL && i < n->host_count; i++) {
        e->spaces[i] = (struct wan_space){.net = -1, .device = -1};
        ok = ok && wan_space_open(n, i, &e->spaces[i], error);
    }
    if (!ok) {
        wan_emulator_close(e);
    }
    return ok;
}

bool wan_emulator_start(struct wan_emulator *e, char error[WAN_ERROR])
{
    e->pump = wan_pump_start(e->flow, e->spaces, e->network->host_count, error);
    return e->pump != NULL;
}

void wan_emulator_stop(struct wan_emulator *e)
{
    if (e->pump != NULL) {
        wan_pump_lock(e->pump);
        e->is_first = wan_pump_is_first(e->pump);
        wan_pump_unlock(e->pump);
        wan_pump_stop(e->pump);
        e->pump = NULL;
        for (unsigned i = 0; i < e->network->host_count; i++) {
            e->unread[i] = wan_space_unread(&e->spaces[i], e->network->hosts[i].name);
        }
    }
}

void wan_emulator_close(struct wan_emulator *e)
{
    wan_emulator_stop(e);
    for (unsigned i = 0; e->spaces != NULL && i < e->network->host_count; i++) {
        wan_space_close(&e->spaces[i]);
    }
    wan_flow_free(e->flow);
    free(e->spaces);
    free(e->unread);
    *e = (struct wan_emulator){.network = NULL};
}
