/* cause.c - see cause.h.
 * SPDX-License-Identifier: MIT */
#include "wire/cause.h"

const char *cause_text(uint8_t cause)
{
    switch ((enum cause)cause) {
    case CAUSE_NONE:
        break;
    case CAUSE_DEADLINE:
        return "its deadline passed";
    case CAUSE_CANCEL:
        return "cancelled";
    case CAUSE_NO_MEMORY:
        return "a peer has no memory for it";
    case CAUSE_MISMATCH:
        return "peers disagree in its parameters";
    case CAUSE_INTERNAL:
        return "an internal invariant failed at a peer";
    case CAUSE_ARGUMENT:
        return "a peer could not make the call as it was given";
    case CAUSE_OLD_VIEW:
        return "it was called for members of which one is lost";
    case CAUSE_PEER_LOST:
        return "a peer died";
    case CAUSE_PEER_LEFT:
        return "a peer left";
    case CAUSE_PEER_SILENT:
        return "a peer stopped answering";
    case CAUSE_LINK_LOST:
        return "a link between two living peers broke";
    case CAUSE_NO_PROGRESS:
        return "no bytes moved for the stall time";
    case CAUSE_DIGEST:
        return "peers computed different results";
    case CAUSE_BLOCKED:
        return "peers wait for each other in different calls";
    case CAUSE_REVOKED:
        return "a member revoked the world";
    case CAUSE_KICK_PROTOCOL:
        return "this peer broke the protocol";
    case CAUSE_KICK_KEYS:
        return "its shared state has other entries";
    case CAUSE_KICK_REVISION:
        return "its shared state's revision is too high";
    case CAUSE_KICK_STRATEGY:
        return "its strategy forbids it to receive the elected state";
    case CAUSE_KICK_NO_CANDIDATE:
        return "no peer can provide the shared state";
    case CAUSE_KICK_UNREACHABLE:
        return "other peers could not be linked with it";
    case CAUSE_KICK_STALE:
        return "the others went on without it";
    case CAUSE_KICK_FULL:
        return "the run is full";
    case CAUSE_KICK_VERSION:
        return "it speaks another version of the protocol";
    case CAUSE_KICK_TAKEN:
        return "another peer has that rank or name";
    case CAUSE_KICK_USED:
        return "the name was for one world only, which has been created";
    case CAUSE_KICK_NO_WORLD:
        return "there is no such world to join";
    }
    return NULL;
}
