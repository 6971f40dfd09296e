/* link_why.c - why the data of a pair goes the way it does, in words.
 *
 * Its one idea: each end says of itself what it has, and the one that dials what it met, so that both can tell why.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "engine/links/link.h"
#include "engine/tables/link_why.h"

uint8_t link_share_own(const struct comm *c)
{
    return !c->carriers.share ? SHARE_OFF : c->engine->host_listener.fd < 0 ? SHARE_NO_SOCKET : SHARE_CAN;
}

uint8_t link_share_told(uint8_t theirs)
{
    switch ((enum share_why)theirs) {
    case SHARE_OFF:
        return SHARE_THEIRS_OFF;
    case SHARE_NO_SOCKET:
        return SHARE_THEIRS_NO_SOCKET;
    case SHARE_THEIRS_OFF:
        return SHARE_OFF;
    case SHARE_THEIRS_NO_SOCKET:
        return SHARE_NO_SOCKET;
    case SHARE_CAN:
    case SHARE_OTHER_HOST:
    case SHARE_UNREACHED:
    case SHARE_OTHER_USER:
    case SHARE_REFUSED:
    case SHARE_NO_MEMORY:
    case SHARE_BROKE:
        break;
    }
    return theirs;
}

uint8_t link_share_met(const struct comm *c, uint8_t theirs)
{
    uint8_t own = link_share_own(c);
    return theirs == SHARE_CAN || theirs == SHARE_OTHER_HOST || own == SHARE_CAN ? link_share_told(theirs) : own;
}

static const char *share_text(uint8_t why)
{
    static const char *const texts[] = {
        [SHARE_CAN] = "",
        [SHARE_OTHER_HOST] = "another host",
        [SHARE_OFF] = "shared memory is off here (PCCL_SHM_DISABLE, shm_disable)",
        [SHARE_NO_SOCKET] = "no Unix socket here",
        [SHARE_THEIRS_OFF] = "shared memory is off there (PCCL_SHM_DISABLE, shm_disable)",
        [SHARE_THEIRS_NO_SOCKET] = "no Unix socket there",
        [SHARE_UNREACHED] = "the Unix socket of the other is out of reach: another network name space",
        [SHARE_OTHER_USER] = "another user",
        [SHARE_REFUSED] = "shared memory was refused at the greeting",
        [SHARE_NO_MEMORY] = "no memory to share",
        [SHARE_BROKE] = "a connection through shared memory broke",
    };
    return texts[why];
}

static const char *net_text(uint8_t here, uint8_t there)
{
    if (here == NET_BROKE || there == NET_BROKE) {
        return "a connection through the fabric broke";
    }
    if (here == NET_NONE && there == NET_NONE) {
        return "no fabric";
    }
    switch ((enum net_why)(here != NET_CAN ? here : there)) {
    case NET_CAN:
        return "";
    case NET_NONE:
        return here == NET_NONE ? "no fabric here" : "no fabric there";
    case NET_OFF:
        return here == NET_OFF ? "the fabric is off here (PCCL_NET, net)" : "the fabric is off there (PCCL_NET, net)";
    case NET_OTHER:
        return "the provider of libfabric there is another one";
    case NET_BROKE:
        break;
    }
    return "";
}

void link_why_data(const struct link *l, enum transport_kind kind, char text[LINK_WHY_BYTES])
{
    const char *share = share_text(l->bundle.share), *net = net_text(l->bundle.net_here, l->bundle.net_there);
    switch (kind) {
    case TRANSPORT_SHM:
        snprintf(text, LINK_WHY_BYTES, "one user on one host");
        return;
    case TRANSPORT_FABRIC:
        net = "both ends have this provider";
        break;
    case TRANSPORT_TCP:
        break;
    }
    snprintf(text, LINK_WHY_BYTES, "%s%s%s", share, share[0] != '\0' && net[0] != '\0' ? "; " : "", net);
}

void link_why_control(const struct link *l, bool shares, char text[LINK_WHY_BYTES])
{
    uint8_t why = l->control.share != SHARE_CAN ? l->control.share : l->control.met != SHARE_CAN ? l->control.met : l->bundle.share;
    snprintf(text, LINK_WHY_BYTES, "%s", shares ? "one user on one host" : why != SHARE_CAN ? share_text(why) : "little used so far");
}
