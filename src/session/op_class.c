/* op_class.c - the table of classes: by tag, in the order of issue, messages, messages of windows, relayed parts.
 * SPDX-License-Identifier: MIT */
#include "session/calls/departure.h"
#include "session/group/announce.h"
#include "session/group/eager.h"
#include "session/group/group_call.h"
#include "session/group/hold.h"
#include "session/group/refusal.h"
#include "session/pair/pair.h"
#include "session/relay/path.h"
#include "session/tables/pair_name.h"

enum { PAIR_TAGS = 2 }; /* what its pair is numbered in, and the line of its receiver */

#define COLLECTIVE                                                                                                          \
    .tags_called = 1, .check = group_check, .launch = group_launch, .request = refusal_request, .speaker = group_speaker,   \
    .ready = hold_ready, .eager = eager_heard, .hold = hold_heard, .refuse = refusal_heard, .finished = hold_finished,      \
    .complete = hold_complete, .arrived = hold_arrived, .wanted = group_wanted, .in_place = path_in_place,                  \
    .given = path_given, .stop = path_stop, .replay = hold_replay, .concerns = group_concerns,                              \
    .neighbour = announce_neighbour, .hears = announce_hears, .tells = group_tells, .apart = group_apart,                   \
    .announce = announce_to, .feed = announce_feed

#define MESSAGE                                                                                                             \
    .two = true, .tags_called = PAIR_TAGS, .tags_later = PAIR_TAGS, .launch = pair_launch, .request = pair_request,         \
    .speaker = pair_speaker, .ready = pair_ready, .eager = pair_eager, .hold = pair_hold, .refuse = pair_refusal,           \
    .finished = pair_finished, .complete = pair_complete, .arrived = pair_arrived, .wanted = pair_wanted,                   \
    .stop = pair_stop, .replay = pair_replay, .concerns = pair_concerns,    \
    .neighbour = pair_concerns, .hears = pair_concerns, .tells = pair_tells, .apart = pair_concerns,                        \
    .announce = announce_to, .feed = announce_feed

const struct op_class op_classes[OP_SPACES] = {
    [SPACE_TAG] = {COLLECTIVE},
    [SPACE_ORDERED] = {COLLECTIVE, .no_memory = group_no_number},
    [SPACE_PAIR] = {MESSAGE, .check = pair_check},
    [SPACE_WINDOW] = {MESSAGE, .check = pair_check_window, .no_memory = wish_no_message, .beside_votes = true},
    [SPACE_PART] = {.two = true, .speaker = path_speaker, .announce = path_announce, .feed = path_take},
};
