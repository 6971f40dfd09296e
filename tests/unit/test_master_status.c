/* test_master_status.c - what the master tells of its worlds to anybody who asks.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master_peers.h"
#include "tests/testing.h"

/* The answer ends the connection. */
static const struct peer *ask(struct cluster *c, uint32_t from)
{
    unsigned char bytes[8];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_status(&w, &(struct msg_status){.from = from});
    const struct peer *p = cluster_ask(c, FRAME_STATUS, bytes, (uint32_t)w.used);
    EXPECT_STR(p->log, "STATUS_PAGE ");
    EXPECT(!p->open);
    return p;
}

/* The only world there is. */
static const struct world_status *only(struct cluster *c)
{
    const struct peer *p = ask(c, 0);
    EXPECT(p->page.worlds == 1 && p->page.next == 0);
    return &p->worlds[0];
}

static void expect_waits(struct cluster *c, uint8_t phase, const char *waits)
{
    const struct world_status *s = only(c);
    EXPECT_EQ(s->phase, phase);
    EXPECT_STR(s->waits, waits);
}

static struct peer *create(struct cluster *c, uint32_t size, uint32_t rank)
{
    return peer_create(c, "w", &(struct claim){.size = size, .rank = rank, .loss = LOSS_SHRINK, .once = 1});
}

TEST(a_world_tells_its_size_members_and_what_it_waits_for_from_its_beginning_to_its_end)
{
    struct cluster *c = cluster_new();
    EXPECT_EQ(ask(c, 0)->page.worlds, 0); /* nobody has ever come */
    struct peer *p = c->peers;
    create(c, 3, 2);
    p[0].no_link = true;
    expect_waits(c, STATUS_FORMING, "ranks 0, 1");
    create(c, 3, 0);
    create(c, 3, 1);
    expect_waits(c, STATUS_FORMING, "links of peer 1.1 at 10.0.0.2:48150");
    c->hold_persist = true;
    p[0].no_link = false;
    peer_linked(&p[0]);
    cluster_pass(c, 1100);
    expect_waits(c, STATUS_FORMING, "the journal");
    EXPECT(only(c)->members == 0 && only(c)->pending == 3);
    c->hold_persist = false;
    cluster_persisted(c);
    const struct world_status *s = only(c);
    EXPECT_STR(s->name, "w");
    EXPECT(s->run == p[0].run && s->view == p[0].view && s->size == 3 && s->loss == LOSS_SHRINK && s->once == 1);
    EXPECT(s->members == 3 && s->pending == 0 && s->groups == 1 && s->freezing == 0);
    expect_waits(c, STATUS_FORMED, "nothing");
    peer_vote(c, &p[1], VOTE_UPDATE);
    expect_waits(c, STATUS_FORMED, "an update: peer 1.1 at 10.0.0.2:48150 has not called it");
    p[0].no_frozen = p[1].no_frozen = true;
    peer_crash(c, &p[2]);
    EXPECT_EQ(only(c)->freezing, 1);
    expect_waits(c, STATUS_FORMED, "the report on its view of peer 1.1 at 10.0.0.2:48150 and 1 more");
    peer_revoke(c, &p[1]);
    expect_waits(c, STATUS_OVER, "the report on its view of peer 1.1 at 10.0.0.2:48150");
    peer_frozen(&p[0]);
    cluster_pass(c, 1100);
    expect_waits(c, STATUS_OVER, "the end of peer 1.1 at 10.0.0.2:48150");
    cluster_free(c);
}

TEST(who_waits_at_the_door_and_what_is_only_remembered_is_told_too)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 1, 0);
    peer_join(c, 0);
    EXPECT(only(c)->members == 1 && only(c)->pending == 1 && only(c)->size == 0);
    expect_waits(c, STATUS_OPEN, "an update: peer 1.1 at 10.0.0.1:48150 has not called it");
    cluster_free(c);
    c = cluster_new();
    peer_cut(c, create(c, 2, 1));
    expect_waits(c, STATUS_GIVEN_UP, "its last callers; rank 1 (peer 1.1 at 10.0.0.1:48150): connection closed before it was accepted");
    cluster_free(c);
}

TEST(many_worlds_come_in_pages)
{
    struct cluster *c = cluster_new();
    uint32_t seen[64] = {0}, worlds = 0, from = 0, pages = 0;
    char name[16];
    for (uint32_t i = 0; i < c->config.max_worlds - 1; i++) {
        c->count = 0;
        snprintf(name, sizeof name, "%u", i);
        EXPECT(peer_create(c, name, &(struct claim){.size = 1, .attempt = 100 + i})->open);
    }
    do {
        const struct peer *p = ask(c, from);
        EXPECT(p->page.worlds <= STATUS_PAGE_WORLDS && (p->page.next == 0 || p->page.next > from));
        for (uint32_t i = 0; i < p->page.worlds; i++) {
            unsigned number = 0;
            EXPECT_EQ(sscanf(p->worlds[i].name, "%u", &number), 1);
            seen[number % 64]++;
        }
        worlds += p->page.worlds;
        from = p->page.next;
        pages++;
    } while (from != 0);
    EXPECT(worlds == c->config.max_worlds - 1 && pages == 2);
    for (uint32_t i = 0; i < worlds; i++) {
        EXPECT_EQ(seen[i], 1);
    }
    EXPECT_EQ(ask(c, 1000000)->page.worlds, 0);
    cluster_free(c);
}

TEST(a_member_that_asks_breaks_the_protocol)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    cluster_frame(c, c->peers[1].conn, FRAME_STATUS, "\0\0\0\0", 4, 77);
    EXPECT_EQ(c->peers[1].fence.cause, CAUSE_KICK_PROTOCOL);
    cluster_free(c);
}
