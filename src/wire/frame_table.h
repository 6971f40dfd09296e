/* frame_table.h - every message: its name, its number, where it travels, and its most payload bytes.
 *
 * Here a new message begins: the enumeration, the names and the limits follow from its row, and check_docs.py wants it described in
 * PROTOCOL.md, in the list of where it travels.  Limits are constants of frame.c.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_FRAME_TABLE_H
#define PCCL_WIRE_FRAME_TABLE_H

/* clang-format off */
#define FRAME_TABLE(X) \
    X(REGISTER, 1, TO_MASTER, FRAME_SMALL)                                                           \
    X(SUSPECT, 2, TO_MASTER, FRAME_SMALL)                                                            \
    X(FROZEN, 3, TO_MASTER, FRAME_LIST)                                                              \
    X(VOTE, 4, TO_MASTER, FRAME_SMALL)                                                               \
    X(LINKED, 5, TO_MASTER, FRAME_IDS)                                                               \
    X(LEAVE, 6, TO_MASTER, FRAME_LIST)                                                               \
    X(STAGED, 7, TO_MASTER, FRAME_SMALL)                                                             \
    X(MEASURED, 8, TO_MASTER, FRAME_SMALL)                                                           \
    X(CLAIM, 10, TO_MASTER, FRAME_SMALL)                                                             \
    X(DECLINE, 11, TO_MASTER, FRAME_SMALL)                                                           \
    X(STATUS, 12, TO_MASTER, FRAME_SMALL)                                                            \
    X(EXPECT, 13, TO_MASTER, FRAME_IDS)                                                              \
    X(TOPOLOGY, 14, TO_MASTER, FRAME_SMALL)                                                          \
    X(TOOK, 15, TO_MASTER, FRAME_SMALL)                                                              \
    X(HEARTBEAT, 9, BOTH_WAYS, FRAME_SMALL)                                                          \
    X(WELCOME, 16, TO_PEER, FRAME_SMALL)                                                             \
    X(FREEZE, 17, TO_PEER, FRAME_IDS)                                                                \
    X(VIEW, 18, TO_PEER, FRAME_LIST)                                                                 \
    X(ANSWER, 19, TO_PEER, FRAME_SMALL)                                                              \
    X(ADMIT, 20, TO_PEER, FRAME_LIST)                                                                \
    X(FENCE, 21, TO_PEER, FRAME_SMALL)                                                               \
    X(ELECTED, 22, TO_PEER, FRAME_IDS)                                                               \
    X(PROBE, 23, TO_PEER, FRAME_SMALL)                                                               \
    X(GIVEN_UP, 24, TO_PEER, FRAME_SMALL)                                                            \
    X(VIEW_PART, 25, TO_PEER, FRAME_LIST)                                                            \
    X(STATUS_PAGE, 26, TO_PEER, STATUS_PAGE_BYTES)                                                   \
    X(TOPOLOGY_PAGE, 27, TO_PEER, TOPOLOGY_PAGE_BYTES)                                               \
    X(HELLO, 32, ANY_LINK, FRAME_SMALL)                                                              \
    X(HELLO_ACK, 33, ANY_LINK, FRAME_SMALL)                                                          \
    X(READY, 34, CONTROL_LINK, FRAME_SMALL)                                                          \
    X(EAGER, 35, CONTROL_LINK, 2 * BOUNDS_EAGER_BYTES + 256) /* input quantised to 16 bits with its metadata stays below twice its size and a bit */ \
    X(WANT, 36, CONTROL_LINK, FRAME_SMALL)                                                           \
    X(HOLD, 37, CONTROL_LINK, FRAME_SMALL)                                                           \
    X(REFUSE, 38, CONTROL_LINK, FRAME_SMALL)                                                         \
    X(FINISHED, 39, CONTROL_LINK, FRAME_NAMES)                                                       \
    X(PING, 40, CONTROL_LINK, 0)                                                                     \
    X(SWITCH, 41, CONTROL_LINK, 0) /* the last one of its direction on the socket: what follows goes through shared memory */ \
    X(PATH, 42, CONTROL_LINK, FRAME_SMALL)                                                           \
    X(PART, 43, CONTROL_LINK, FRAME_SMALL + P2P_PART_BYTES)                                          \
    X(GOT, 44, CONTROL_LINK, FRAME_SMALL)                                                            \
    X(DATA, 48, DATA_LINK, 2 * BOUNDS_FRAME_BYTES + P2P_DATA_PREFIX)                                 \
    X(CREDIT, 49, DATA_LINK, FRAME_SMALL)                                                            \
    X(MANIFEST_WANT, 56, SYNC_LINK, FRAME_SMALL)                                                     \
    X(MANIFEST, 57, SYNC_LINK, 16u << 20)                                                            \
    X(LEAF_WANT, 58, SYNC_LINK, FRAME_SMALL)                                                         \
    X(LEAF, 59, SYNC_LINK, (1u << 20) + 64)                                                          \
    X(ENTRIES_WANT, 60, SYNC_LINK, FRAME_SMALL)                                                      \
    X(ENTRIES, 61, SYNC_LINK, FRAME_SMALL)                                                           \
    X(PROBE_DATA, 64, PROBE_LINK, 256u << 10)
/* clang-format on */

#endif
