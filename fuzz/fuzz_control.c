/* fuzz_control.c - any bytes as a message between peer and master: first byte the frame type, then the payload.
 *
 * Each message is decoded and, item by item, encoded again.  What was accepted as a whole must come out byte by byte as it
 * went in; only texts may change, once: control characters and what lies beyond their length are gone afterwards.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/control.h"

PLAIN(register)
PLAIN(welcome)
PLAIN(heartbeat)
PLAIN(status)
PLAIN(topology)
PLAIN(decline)
PLAIN(claim)
PLAIN(given_up)
PLAIN(suspect)
PLAIN(vote)
PLAIN(answer)
PLAIN(fence)
PLAIN(staged)
PLAIN(probe)
PLAIN(measured)
PLAIN(took)

/* A list: decode and encode `count` items, as long as they are good. */
#define ITEMS(name, type)                                                                                              \
    static void echo_##name##s(struct reader *r, struct writer *w, uint32_t count)                                     \
    {                                                                                                                  \
        type m = {0};                                                                                                  \
        for (uint32_t i = 0; i < count && get_##name(r, &m); i++) {                                                    \
            swallow(&m, sizeof m);                                                                                     \
            put_##name(w, &m);                                                                                         \
        }                                                                                                              \
    }

/* The same where a mismatch has its two sides behind it. */
#define ITEMS_CLASH(name, type, clashes)                                                                               \
    static void echo_##name##s(struct reader *r, struct writer *w, uint32_t count)                                     \
    {                                                                                                                  \
        type m = {0};                                                                                                  \
        for (uint32_t i = 0; i < count && get_##name(r, &m); i++) {                                                    \
            struct op_clash clash;                                                                                     \
            swallow(&m, sizeof m);                                                                                     \
            put_##name(w, &m);                                                                                         \
            if (m.cause == CAUSE_MISMATCH && (clashes) && get_op_clash(r, &clash)) {                                   \
                put_op_clash(w, &clash);                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
ITEMS_CLASH(op_report, struct op_report, m.state == OP_REFUSED)
ITEMS_CLASH(op_decision, struct op_decision, true)
ITEMS(member_info, struct member_info)
ITEMS(missing_edge, struct missing_edge)
ITEMS(topology_member, struct topology_member)
ITEMS(topology_edge, struct topology_edge)

static void echo_ids(struct reader *r, struct writer *w, uint32_t count)
{
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        put_u64(w, get_u64(r));
    }
}

static void echo_numbers(struct reader *r, struct writer *w, uint32_t count)
{
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        put_u32(w, get_u32(r));
    }
}

static void echo_trees(struct reader *r, struct writer *w, uint32_t count, uint32_t members)
{
    static uint16_t parent[BOUNDS_TREE_MEMBERS]; /* get_view lets no larger group have trees */
    uint32_t share;
    for (uint32_t i = 0; i < count && get_view_tree(r, &share, parent, members); i++) {
        put_view_tree(w, share, parent, members);
    }
}

static bool echo_freeze(struct reader *r, struct writer *w)
{
    struct msg_freeze m = {0};
    if (!get_freeze(r, &m)) {
        return false;
    }
    put_freeze(w, &m);
    echo_ids(r, w, m.survivors);
    return reader_done(r);
}

static bool echo_frozen(struct reader *r, struct writer *w)
{
    struct msg_frozen m = {0};
    if (!get_frozen(r, &m)) {
        return false;
    }
    put_frozen(w, &m);
    echo_op_reports(r, w, m.reports);
    return reader_done(r);
}

static bool echo_leave(struct reader *r, struct writer *w)
{
    struct msg_leave m = {0};
    if (!get_leave(r, &m)) {
        return false;
    }
    put_leave(w, &m);
    echo_op_reports(r, w, m.reports);
    return reader_done(r);
}

static bool echo_view(struct reader *r, struct writer *w)
{
    struct msg_view m = {0};
    if (!get_view(r, &m)) {
        return false;
    }
    swallow(&m, sizeof m);
    put_view(w, &m);
    echo_ids(r, w, m.removed);
    echo_member_infos(r, w, m.added);
    echo_numbers(r, w, m.members);
    echo_numbers(r, w, m.weights);
    echo_trees(r, w, m.trees, m.members);
    echo_missing_edges(r, w, m.edges);
    echo_op_decisions(r, w, m.decisions);
    return reader_done(r);
}

static bool echo_admit(struct reader *r, struct writer *w)
{
    struct msg_admit m = {0};
    if (!get_admit(r, &m)) {
        return false;
    }
    put_admit(w, &m);
    echo_member_infos(r, w, m.members);
    return reader_done(r);
}

static bool echo_linked(struct reader *r, struct writer *w)
{
    struct msg_linked m = {0};
    if (!get_linked(r, &m)) {
        return false;
    }
    put_linked(w, &m);
    echo_ids(r, w, m.failed);
    return reader_done(r);
}

static bool echo_elected(struct reader *r, struct writer *w)
{
    struct msg_elected m = {0};
    if (!get_elected(r, &m)) {
        return false;
    }
    put_elected(w, &m);
    echo_ids(r, w, m.holders);
    echo_ids(r, w, m.receivers);
    return reader_done(r);
}

static bool echo_view_part(struct reader *r, struct writer *w)
{
    struct msg_view_part m = {0};
    if (!get_view_part(r, &m)) {
        return false;
    }
    put_view_part(w, &m);
    put_bytes(w, get_bytes(r, m.size), m.size);
    return reader_done(r);
}

static bool echo_status_page(struct reader *r, struct writer *w)
{
    struct msg_status_page m = {0};
    struct world_status s;
    if (!get_status_page(r, &m)) {
        return false;
    }
    put_status_page(w, &m);
    for (uint32_t i = 0; i < m.worlds; i++) {
        if (!get_world_status(r, &s)) {
            return false;
        }
        put_world_status(w, &s);
    }
    return reader_done(r);
}

static bool echo_topology_page(struct reader *r, struct writer *w)
{
    struct msg_topology_page m = {0};
    if (!get_topology_page(r, &m)) {
        return false;
    }
    put_topology_page(w, &m);
    echo_topology_members(r, w, m.listed);
    echo_topology_edges(r, w, m.edges);
    return reader_done(r);
}

static bool echo_expect(struct reader *r, struct writer *w)
{
    struct msg_expect m;
    memset(&m, 0, sizeof m);
    if (!get_expect(r, &m)) {
        return false;
    }
    put_expect(w, &m);
    echo_ids(r, w, m.callers);
    return reader_done(r);
}

typedef bool (*echo)(struct reader *r, struct writer *w);

static const echo echoes[] = {
    [FRAME_REGISTER] = echo_register, [FRAME_WELCOME] = echo_welcome,   [FRAME_HEARTBEAT] = echo_heartbeat,
    [FRAME_DECLINE] = echo_decline,   [FRAME_STATUS] = echo_status,     [FRAME_STATUS_PAGE] = echo_status_page,
    [FRAME_LEAVE] = echo_leave,       [FRAME_CLAIM] = echo_claim,       [FRAME_GIVEN_UP] = echo_given_up,
    [FRAME_SUSPECT] = echo_suspect,   [FRAME_FREEZE] = echo_freeze,     [FRAME_FROZEN] = echo_frozen,
    [FRAME_VIEW] = echo_view,         [FRAME_VOTE] = echo_vote,         [FRAME_ANSWER] = echo_answer,
    [FRAME_ADMIT] = echo_admit,       [FRAME_LINKED] = echo_linked,     [FRAME_FENCE] = echo_fence,
    [FRAME_ELECTED] = echo_elected,   [FRAME_STAGED] = echo_staged,     [FRAME_PROBE] = echo_probe,
    [FRAME_MEASURED] = echo_measured, [FRAME_VIEW_PART] = echo_view_part, [FRAME_TOOK] = echo_took,
    [FRAME_EXPECT] = echo_expect,     [FRAME_TOPOLOGY] = echo_topology, [FRAME_TOPOLOGY_PAGE] = echo_topology_page,
};

static bool has_text(uint8_t type)
{
    return type == FRAME_SUSPECT || type == FRAME_VIEW || type == FRAME_ANSWER || type == FRAME_FENCE ||
           type == FRAME_STAGED || type == FRAME_GIVEN_UP || type == FRAME_STATUS_PAGE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char once[1 << 20], twice[1 << 20];
    if (size == 0 || data[0] >= sizeof echoes / sizeof echoes[0] || echoes[data[0]] == NULL ||
        size - 1 > frame_limit(data[0])) {
        return 0;
    }
    struct reader r;
    struct writer first, second;
    reader_init(&r, data + 1, size - 1);
    writer_init(&first, once, sizeof once);
    if (!echoes[data[0]](&r, &first)) {
        return 0;
    }
    if (first.bad) {
        abort();
    }
    if (!has_text(data[0]) && (first.used != size - 1 || memcmp(once, data + 1, first.used) != 0)) {
        abort();
    }
    reader_init(&r, once, first.used);
    writer_init(&second, twice, sizeof twice);
    if (!echoes[data[0]](&r, &second) || second.used != first.used || memcmp(once, twice, first.used) != 0) {
        abort();
    }
    return 0;
}
