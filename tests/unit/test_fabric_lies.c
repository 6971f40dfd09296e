/* test_fabric_lies.c - messages through libfabric that no honest end sends: the link of that key ends, at most, and nobody else's.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "fabric_pair.h"
#include "net/fabric_port.h"

/* A message that port 0 sends under the key of link 0's end at port 1. */
struct lie {
    const char *what;
    uint32_t ahead;     /* number, from the one that is next */
    uint8_t kind, grant;
    uint16_t zero;
    uint32_t bytes;     /* behind the head; UINT32_MAX: less than a head */
    int times;
    bool ends;
};

static void lie_once(struct fabric *from, const struct fabric *to, const struct lie *lie, uint32_t next)
{
    struct fabric_port *port = from->port;
    struct fabric_buffer *b = fabric_take_buffer(port);
    struct writer w;
    writer_init(&w, b->bytes, FABRIC_HEAD_BYTES);
    put_u64(&w, to->ours.key);
    put_u32(&w, next + lie->ahead);
    put_u8(&w, lie->kind);
    put_u8(&w, lie->grant);
    put_u16(&w, lie->zero);
    b->owner = from;
    from->sends++;
    size_t bytes = lie->bytes == UINT32_MAX ? 7 : FABRIC_HEAD_BYTES + lie->bytes;
    while (fi_send(port->ep, b->bytes, bytes, b->desc, from->peer->at, &b->context) == -FI_EAGAIN) {
        (void)fabric_progress(port);
    }
}

/* Moves bytes over a link, both ways. */
static void expect_works(struct pair *p, int k, uint64_t bytes, struct rng *rng)
{
    uint64_t want[PORTS] = {p->end[k][0].got + bytes, p->end[k][1].got + bytes};
    while (p->end[k][0].got < want[0] || p->end[k][1].got < want[1]) {
        pair_hear(p, k);
        for (int i = 0; i < PORTS; i++) {
            (void)pair_say(p, k, i, rng, 300000);
            (void)pair_listen(p, k, i, rng);
        }
        pair_turn(p);
    }
}

/* All that port 0 has sent to link 0 is there, and read by nobody. */
static void settle(struct pair *p)
{
    struct fabric *from = p->end[0][0].t.fabric;
    while (from->sends > 0) {
        pair_turn(p);
    }
    for (int i = 0; i < 200; i++) {
        pair_turn(p);
    }
}

/* Of the next message to port 1 over link 0, when none is under way. */
static uint32_t next_number(struct pair *p, struct rng *rng)
{
    do {
        pair_hear(p, 0);
        for (int i = 0; i < PORTS; i++) {
            (void)pair_listen(p, 0, i, rng);
        }
        settle(p);
    } while (p->end[0][1].got < p->end[0][0].sent || p->end[0][0].got < p->end[0][1].sent);
    return p->end[0][1].t.fabric->received;
}

static void expect_lie(const struct lie *lie, struct pair *p)
{
    struct rng rng = {21};
    for (int k = 0; k < 2; k++) {
        pair_link(p, k);
        EXPECT(pair_open_end(&p->end[k][0]) && pair_open_end(&p->end[k][1]));
        expect_works(p, k, 100000, &rng);
    }
    struct fabric *from = p->end[0][0].t.fabric, *to = p->end[0][1].t.fabric;
    uint32_t next = next_number(p, &rng);
    for (int i = 0; i < lie->times; i++) {
        lie_once(from, to, lie, next + (uint32_t)i);
    }
    settle(p);
    EXPECT_EQ(to->broken, lie->ends);
    EXPECT_EQ(to->port->posted + to->port->held, to->port->connections * (FABRIC_WINDOW + FABRIC_WORDS));
    if (to->broken != lie->ends) {
        printf("# %s\n", lie->what);
    }
    expect_works(p, 1, 1 << 20, &rng);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < PORTS; i++) {
            p->end[k][i].t.ops->close(&p->end[k][i].t);
            p->end[k][i] = (struct end){.open = false};
        }
    }
}

TEST(a_lie_ends_the_link_of_its_key_at_most)
{
    static const struct lie lies[] = {
        {"a number that has been", UINT32_MAX, FABRIC_GRANT, 0, 0, 0, 1, true},
        {"a number far ahead", FABRIC_WINDOW + FABRIC_WORDS, FABRIC_GRANT, 0, 0, 0, 1, true},
        {"a second HELLO", 0, FABRIC_HELLO, 0, 0, 0, 1, true},
        {"a grant beyond the window", 0, FABRIC_GRANT, 200, 0, 0, 1, true},
        {"bytes without bytes", 0, FABRIC_BYTES, 0, 0, 0, 1, true},
        {"a grant with bytes", 0, FABRIC_GRANT, 0, 0, 5, 1, true},
        {"more than the window", 0, FABRIC_BYTES, 0, 0, 1000, FABRIC_WINDOW + 1, true},
        {"one that is early, and never the one before", 1, FABRIC_GRANT, 0, 0, 0, 1, false},
        {"a kind that is none", 0, 0, 0, 0, 0, 1, false},
        {"another one", 0, FABRIC_GRANT + 1, 0, 0, 0, 1, false},
        {"half a head", 0, FABRIC_GRANT, 0, 0, UINT32_MAX, 1, false},
        {"what must be zero", 0, FABRIC_GRANT, 0, 3, 0, 1, false},
    };
    struct pair p;
    if (!pair_open(&p, &test_failures)) {
        test_skipped = "no libfabric";
        return;
    }
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        expect_lie(&lies[i], &p);
    }
    pair_close(&p);
}

TEST(one_number_twice_ends_the_link) /* of two early ones, which is right? */
{
    static const struct lie early = {.what = "early", .ahead = 2, .kind = FABRIC_GRANT, .times = 1, .ends = false};
    struct pair p;
    struct rng rng = {22};
    if (!pair_open(&p, &test_failures)) {
        test_skipped = "no libfabric";
        return;
    }
    pair_link(&p, 0);
    EXPECT(pair_open_end(&p.end[0][0]) && pair_open_end(&p.end[0][1]));
    expect_works(&p, 0, 1000, &rng);
    uint32_t next = next_number(&p, &rng);
    lie_once(p.end[0][0].t.fabric, p.end[0][1].t.fabric, &early, next);
    settle(&p);
    EXPECT(!p.end[0][1].t.fabric->broken);
    lie_once(p.end[0][0].t.fabric, p.end[0][1].t.fabric, &early, next);
    settle(&p);
    EXPECT(p.end[0][1].t.fabric->broken);
    pair_close(&p);
}
