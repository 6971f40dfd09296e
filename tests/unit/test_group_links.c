/* test_group_links.c - pages of a master's answer put together, and what is no answer refused.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "net/ask.h"
#include "net/fds.h"
#include "net/group_links.h"
#include "net/sock.h"
#include "tests/testing.h"

static const struct group_asked asked = {.world = "w", .group = 3};

struct page {
    struct msg_topology_page m;
    struct topology_member member[4];
    struct topology_edge edge[4];
};

/* A whole answer of three members. */
static struct page whole(void)
{
    return (struct page){.m = {.view = 5, .members = 3, .listed = 3, .edges = 3},
                         .member = {{.id = 10, .ring = 1}, {.id = 20, .ring = 0}, {.id = 30, .ring = 2}},
                         .edge = {{0, 2, 300, 1, 2, 3, 0}, {1, 0, 500, 4, 5, 6, 1}, {2, 1, 400, 7, 8, 9, 0}}};
}

static pccl_status add(struct group_links *l, const struct page *p, uint32_t from, uint32_t *next, struct err *err)
{
    unsigned char bytes[1024];
    struct writer w;
    struct reader r;
    writer_init(&w, bytes, sizeof bytes);
    put_topology_page(&w, &p->m);
    for (uint32_t i = 0; i < p->m.listed; i++) {
        put_topology_member(&w, &p->member[i]);
    }
    for (uint32_t i = 0; i < p->m.edges; i++) {
        put_topology_edge(&w, &p->edge[i]);
    }
    reader_init(&r, bytes, w.used);
    return group_links_add(l, &r, &asked, from, next, err);
}

TEST(pages_become_one_matrix_whose_slowest_ring_edge_is_known)
{
    struct group_links l = {0};
    struct err err;
    uint32_t next = 9;
    struct page p = whole(), first = p, second = p;
    first.m.listed = 2;
    first.m.edges = 0;
    first.m.next = 2;
    EXPECT_EQ(add(&l, &first, 0, &next, &err), PCCL_OK);
    EXPECT_EQ(next, 2);
    second.m.listed = 1;
    second.member[0] = p.member[2];
    EXPECT_EQ(add(&l, &second, 2, &next, &err), PCCL_OK);
    EXPECT(next == 0 && l.view == 5 && l.members == 3 && l.edge_count == 3);
    EXPECT(l.list[2].id == 30 && l.list[0].ring == 1);
    const struct topology_edge *e = group_links_find(&l, 2, 1);
    EXPECT(e != NULL && e->rate_bps == 400 && e->rtt_us == 7 && e->loss_ppm == 8 && e->age_s == 9);
    EXPECT(group_links_find(&l, 1, 2) == NULL && group_links_find(&l, 0, 1) == NULL);
    EXPECT_EQ(group_links_slowest(&l), 0); /* the ring is 1, 0, 2: its edges are all three */
    uint32_t ring[] = {0, 1, 2};
    for (uint32_t i = 0; i < 3; i++) {
        l.list[i].ring = ring[i];
    }
    EXPECT_EQ(group_links_slowest(&l), UINT32_MAX); /* 0 to 1 is not measured */
    group_links_fini(&l);
}

TEST(ranks_are_counted_by_key_as_programs_know_them) /* ids are drawn in the order of arrival: rates of another edge */
{
    struct group_links l = {0};
    struct err err;
    uint32_t next = 9;
    struct page p = whole();
    p.member[0].key = 2; /* the first to come has the last rank */
    p.member[1].key = 0;
    p.member[2].key = 1;
    EXPECT_EQ(add(&l, &p, 0, &next, &err), PCCL_OK);
    const uint64_t ids[3] = {20, 30, 10};
    const uint32_t ring[3] = {0, 2, 1}; /* by id it was 20, 10, 30 */
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT(l.list[i].id == ids[i] && l.list[i].ring == ring[i]);
    }
    const struct topology_edge *e = group_links_find(&l, 2, 1); /* 10 to 30 */
    EXPECT(e != NULL && e->rate_bps == 300);
    e = group_links_find(&l, 0, 2); /* 20 to 10 */
    EXPECT(e != NULL && e->rate_bps == 500);
    e = group_links_find(&l, 1, 0); /* 30 to 20 */
    EXPECT(e != NULL && e->rate_bps == 400);
    EXPECT(group_links_find(&l, 1, 2) == NULL);
    group_links_fini(&l);
}

TEST(answers_that_do_not_fit_are_refused) /* a foreign program's numbers become ranks and indices */
{
    for (int wrong = 0; wrong <= 9; wrong++) {
        struct group_links l = {0};
        struct err err;
        uint32_t next, from = 0;
        struct page p = whole();
        switch (wrong) {
        case 1: p.member[2].ring = 1; break;             /* twice on the ring */
        case 2: p.member[1].id = 10; break;              /* twice a member */
        case 3: p.member[2].ring = 3; break;             /* no such rank */
        case 4: p.edge[2].to = 3; break;
        case 5: p.edge[1] = p.edge[0]; break;            /* told twice */
        case 6: p.m.listed = 2; break;                   /* and that was all */
        case 7: p.m.next = 4; from = 4; break;           /* no way on */
        case 8: p.m.listed = 0; p.m.members = 4; break;
        case 9: p.m.listed = 2; p.m.members = 2; break;
        default: break;
        }
        EXPECT_EQ(add(&l, &p, from, &next, &err), wrong == 0 ? PCCL_OK : PCCL_ERR_PROTOCOL);
        group_links_fini(&l);
    }
}

TEST(a_view_that_changes_between_pages_begins_anew)
{
    struct group_links l = {0};
    struct err err;
    uint32_t next = 1;
    struct page p = whole(), other = p;
    p.m.next = 3 + 8;
    EXPECT_EQ(add(&l, &p, 0, &next, &err), PCCL_OK);
    other.m = (struct msg_topology_page){.state = TOPOLOGY_CHANGED};
    EXPECT_EQ(add(&l, &other, 11, &next, &err), PCCL_ERR_AGAIN);
    EXPECT(l.members == 0 && l.list == NULL && l.edges == NULL);
    other.m.state = TOPOLOGY_NO_GROUP;
    EXPECT_EQ(add(&l, &other, 0, &next, &err), PCCL_ERR_INVALID);
    EXPECT(strstr(err.text, "group 3 has no members in that world") != NULL);
    other.m.state = TOPOLOGY_NO_WORLD;
    EXPECT_EQ(add(&l, &other, 0, &next, &err), PCCL_ERR_INVALID);
    EXPECT(strstr(err.text, "the master has no world 'w'") != NULL);
    group_links_fini(&l);
}

TEST(a_master_that_says_nothing_is_waited_for_until_the_deadline) /* its system takes the connection, and nobody serves it */
{
    struct net_address at = {.family = 4, .ip = {127, 0, 0, 1}};
    struct group_links l;
    struct err err;
    int fd;
    EXPECT_EQ(sock_listen(&at, &fd, &err), PCCL_OK);
    EXPECT_EQ(sock_local(fd, &at), PCCL_OK);
    EXPECT_EQ(group_links_ask(&l, &at, clock_now_ns() + 30 * CLOCK_MS, &asked, &err), PCCL_ERR_TIMEOUT);
    EXPECT(strstr(err.text, "no answer from 127.0.0.1:") != NULL);
    EXPECT(l.list == NULL && l.members == 0);
    fds_close(fd);
}
