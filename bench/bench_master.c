/* bench_master.c - the master at scale: joins, votes and view changes of many peers, in one world or in many.
 *
 * One idea: all worlds live at one master and do the same one after the other: all join, hear of the master for a few
 * heartbeats, update, query, synchronise, lose a member, admit one.  A message is a frame of a peer that the master takes.
 * Invariant: at the end of each phase every peer has the answer, or the view, that it is owed, else the program fails.
 *
 *     bench_master [worlds members [sized]]      without arguments: the cases of docs/PERFORMANCE.md
 * SPDX-License-Identifier: MIT */
#include "bench/master_crowd.h"

#define RATE_GOAL 100000.0       /* messages a second */
#define VIEW_GOAL_MS 1000.0      /* a view change, of 1,000 peers */
#define PEER_GOAL_BYTES 4096.0

/* ---- phases -------------------------------------------------------------------------------------------------------- */

static void begin(struct crowd *b)
{
    b->taken = b->sent = 0;
    b->busy_ns = 0;
}

static void report(const struct crowd *b, const char *name)
{
    double s = (double)b->busy_ns / 1e9, rate = (double)b->taken / s;
    printf("%-34s %9" PRIu64 " %9" PRIu64 " %9.1f ms %8.2f us %12.0f /s%s\n", name, b->taken, b->sent, s * 1e3,
           s * 1e6 / (double)b->taken, rate, rate < RATE_GOAL ? "  BELOW" : "");
}

static void expect_rest(const struct crowd *b, bool one_view)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct peer *p = &b->peers[i];
        if (p->open && (p->view == 0 || p->kind != VOTE_NONE)) {
            crowd_fail("a peer has no view, or no answer");
        }
        if (p->open && one_view && p->view != b->peers[p->world * b->members + 1].view) {
            crowd_fail("two peers of one world are in different views");
        }
    }
}

static void join_all(struct crowd *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        for (uint32_t i = 0; i < b->members; i++) {
            crowd_open_peer(b, w * b->members + i, w, i);
        }
    }
    if (!b->sized) { /* the first of each was admitted at once, the others wait for its update */
        crowd_all_vote(b, VOTE_UPDATE);
    }
    expect_rest(b, true);
}

static void say_heartbeat(struct crowd *b, const struct peer *p)
{
    struct msg_heartbeat hb = {.sent_ns = (uint64_t)b->now, .echo_ns = (uint64_t)b->now};
    put_heartbeat(say(), &hb);
    said(b, p->conn, FRAME_HEARTBEAT, p->run, p->view);
}

/* Each peer's heartbeat, and the master's to each of them. */
static void heartbeats(struct crowd *b)
{
    b->now += b->config.heartbeat_ns;
    crowd_ticks(b);
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->peers[i].open) {
            say_heartbeat(b, &b->peers[i]);
        }
    }
    crowd_deliver(b);
}

/* The first of each world dies, and all that were linked with it say so: everybody. */
static void lose_one_each(struct crowd *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        struct peer *dead = &b->peers[w * b->members];
        dead->open = false;
        crowd_run(b, &(struct master_event){.kind = MASTER_CLOSED, .connection = dead->conn});
        for (uint32_t i = 1; i < b->members; i++) {
            say_lost(b, dead + i, dead->id, CAUSE_PEER_LOST);
        }
        crowd_deliver(b);
    }
    expect_rest(b, true);
}

/* One more comes into each world, in an update of all. */
static void admit_one_each(struct crowd *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        crowd_open_peer(b, w * b->members, w, 0);
    }
    crowd_all_vote(b, VOTE_UPDATE);
    expect_rest(b, true);
}

static void bench_case(uint32_t worlds, uint32_t members, bool sized)
{
    struct crowd *b = crowd_new(worlds, members, sized);
    uint32_t peers = worlds * members;
    printf("\n%u world%s of %u%s: %u peers\n%-34s %9s %9s %12s %11s %15s\n", worlds, worlds == 1 ? "" : "s", members,
           sized ? ", created by all their ranks" : "", peers, "", "taken", "sent", "busy", "each", "");
    begin(b);
    join_all(b);
    report(b, "join");
    size_t idle = b->table_bytes;
    begin(b);
    for (int i = 0; i < 5; i++) {
        heartbeats(b);
    }
    report(b, "5 heartbeats");
    begin(b);
    crowd_all_vote(b, VOTE_UPDATE);
    expect_rest(b, true);
    report(b, "update that changes nothing");
    begin(b);
    crowd_all_vote(b, VOTE_QUERY);
    expect_rest(b, true);
    report(b, "query");
    begin(b);
    crowd_all_vote(b, VOTE_SYNC);
    expect_rest(b, true);
    report(b, "sync of a state that is alike");
    begin(b);
    lose_one_each(b);
    report(b, worlds == 1 ? "view change by a death" : "view changes by a death in each");
    double change_ms = (double)b->busy_ns / 1e6 / worlds;
    if (!sized) {
        begin(b);
        admit_one_each(b);
        report(b, worlds == 1 ? "one more is admitted" : "one more is admitted to each");
    }
    printf("view change: %.2f ms%s (goal %.0f for 1,000 peers)\n", change_ms,
           change_ms * 1000 / members > VIEW_GOAL_MS && change_ms > VIEW_GOAL_MS ? " ABOVE" : "", VIEW_GOAL_MS);
    printf("memory: %.0f bytes a peer%s (goal %.0f), %.0f a world; largest step says %.1f MB\n", (double)idle / peers,
           (double)idle / peers > PEER_GOAL_BYTES ? " ABOVE" : "", PEER_GOAL_BYTES, (double)idle / worlds,
           (double)b->out_most / 1e6);
    fflush(stdout);
    crowd_free(b);
}

int main(int argc, char **argv)
{
    if (argc >= 3) {
        bench_case((uint32_t)strtoul(argv[1], NULL, 10), (uint32_t)strtoul(argv[2], NULL, 10), argc > 3);
        return 0;
    }
    bench_case(1, 1000, false);
    bench_case(1, 10000, false);
    bench_case(1000, 10, false);
    bench_case(1000, 10, true);
    return 0;
}
