/* program_match.c - several messages of a step to one receiver, on one tag: its receives are from named sources and from any, in one line.
 *
 * One idea: who sends how often, and which receive is from whom, follows from the seed and the step, as with other messages.  Two thirds
 * of the lines are sure: whatever comes first, each receive gets a message, so that none may be left over where nothing goes wrong.  In
 * the others programs do not fit together, and give up some calls: what is left waits for somebody who votes, and ends by that.
 * Invariant: a receive that was matched with nothing is called again from any source, so that a sure line stays one.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "program.h"

enum { MATCH_TAG = 300 /* that of other messages, in other steps */, MATCH_LIMIT_S = 40 };

bool match_used(const struct cluster *cl)
{
    return pair_used(cl) && !cl->opt.bulk && cl->opt.burst == 0 && cl->opt.refused == 0 && !cl->opt.scripted && mix64(cl->opt.seed, 94) % 3 == 0;
}

static uint64_t dice(const struct cluster *cl, const struct node *n)
{
    return mix64(mix64(mix64(cl->opt.seed, n->group), n->program->step), 9700);
}

/* Of the calls of one side of a sync: a receive from a source is sure to get a message if that source sends as many as it and all before
 * it may take. */
static void draw_receives(struct match *m, struct rng *r, uint32_t first, uint32_t end, uint32_t count, uint32_t need[MATCH_SOURCES])
{
    uint32_t named[MATCH_SOURCES] = {0}, any = 0, all = 0;
    for (uint32_t j = first; j < end; j++) {
        uint32_t s = (uint32_t)rng_below(r, m->sources);
        bool fits = rng_below(r, 2) != 0;
        if (!m->member[j]) {
            continue;
        }
        uint32_t least = named[s] + 1 + any, more = least > need[s] ? least - need[s] : 0;
        fits = fits && (!m->sure || all + more <= count);
        m->named[j] = (uint8_t)(fits ? s : MATCH_ANY);
        any += !fits;
        named[s] += fits;
        need[s] += fits ? more : 0;
        all += fits ? more : 0;
    }
}

static void draw_sends(struct match *m, struct rng *r, uint32_t first, uint32_t end, uint32_t count, const uint32_t need[MATCH_SOURCES])
{
    uint8_t by[MATCH_CALLS];
    uint32_t drawn = 0;
    for (uint32_t s = 0; s < m->sources && m->sure; s++) {
        for (uint32_t i = 0; i < need[s]; i++) {
            by[drawn++] = (uint8_t)s;
        }
    }
    while (drawn < count) {
        by[drawn++] = (uint8_t)rng_below(r, m->sources);
    }
    for (uint32_t j = first; j < end; j++) {
        uint32_t at = (uint32_t)rng_below(r, drawn > 0 ? drawn : 1);
        if (m->member[j]) {
            m->sent_by[j] = by[at];
            m->unsent[j] = !m->sure && rng_below(r, 3) == 0;
            by[at] = by[--drawn];
        }
    }
}

static void draw_side(struct match *m, struct rng *r, uint32_t first, uint32_t end)
{
    uint32_t need[MATCH_SOURCES] = {0}, count = 0;
    for (uint32_t j = first; j < end; j++) {
        count += m->member[j];
    }
    draw_receives(m, r, first, end, count, need);
    draw_sends(m, r, first, end, count, need);
}

void match_begin(const struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct match *m = &p->match;
    struct rng r = {.state = dice(cl, n)};
    *m = (struct match){0};
    if (!match_used(cl) || p->knows < 3 || rng_below(&r, 2) != 0) {
        return;
    }
    uint32_t others = p->knows - 1, to = (uint32_t)rng_below(&r, p->knows), from = (uint32_t)rng_below(&r, others);
    m->sources = 2 + (others > 2 ? (uint32_t)rng_below(&r, MATCH_SOURCES - 1) : 0);
    m->calls = 3 + (uint32_t)rng_below(&r, MATCH_CALLS - 2);
    uint32_t sync_at = program_sync_at(cl, n, m->calls);
    m->sure = (rng_below(&r, 3) != 0) == (sync_at == 0);
    m->to = p->known[to];
    for (uint32_t s = 0; s < m->sources; s++) {
        m->source[s] = p->known[(to + 1 + (from + s) % others) % p->knows];
    }
    for (uint32_t j = 0; j < m->calls; j++) { /* beside calls of all */
        m->member[j] = j < 2 || rng_below(&r, 4) != 0;
    }
    draw_side(m, &r, 0, sync_at);
    draw_side(m, &r, sync_at, m->calls);
    p->ops = m->calls;
}

bool match_sends(const struct node *n, uint32_t j)
{
    return n->program->match.calls == 0 || !n->program->match.unsent[j];
}

void match_ends(const struct node *n, uint32_t j, uint64_t *from, uint64_t *to)
{
    const struct match *m = &n->program->match;
    bool named = n->id == m->to && m->named[j] != MATCH_ANY && (m->again >> j & 1) == 0;
    *from = m->source[named ? m->named[j] : m->sent_by[j]];
    *to = m->to;
}

/* All of a line are alike, so that each message may be for each receive. */
void match_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p)
{
    const struct match *m = &n->program->match;
    uint64_t h = mix64(dice(cl, n), 1), most = cl->opt.op_bytes / sizeof(uint64_t);
    c->many = true;
    c->any = c->to == n->id && (m->named[c->op] == MATCH_ANY || (m->again >> c->op & 1) != 0);
    c->pair_tag = MATCH_TAG;
    *p = (struct op_params){.kind = PLAN_SEND, .dtype = DTYPE_U64, .count = 1 + (h >> 8) % (h % 2 != 0 || most == 0 ? 8 : most)};
}

/* Some are given up at any moment: before their turn, matched, or under way. */
void match_launch_of(struct cluster *cl, struct node *n, struct call *c, struct session_launch *l)
{
    const struct match *m = &n->program->match;
    uint64_t h = mix64(mix64(dice(cl, n), n->index), 10 + c->op);
    c->limit = l->call.deadline = cl->now + MATCH_LIMIT_S * CLOCK_S;
    if (!m->sure && h % 2 == 0) {
        l->call.deadline = cl->now + (int64_t)((h >> 8) % (12 * (uint64_t)cl->opt.latency_ns));
    }
    n->program->want_cancel += !m->sure && h % 16 == 1;
}

/* For so long that a view may end meanwhile: what has been sent has failed, and more is sent, before it is received. */
bool match_pauses(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    if (p->match.calls == 0 || !cluster_chance(cl, 15)) {
        return false;
    }
    p->not_before = cl->now + (int64_t)rng_below(&cl->rng, 40 * (uint64_t)cl->opt.latency_ns);
    cluster_post(cl, p->not_before - cl->now, EVENT_PROGRAM, n->index, 0, 0, 0);
    return true;
}

/* What tells one message from all others. */
uint64_t match_word(const struct node *n, uint32_t sender, uint32_t op)
{
    return mix64(program_key(n, op, 0), 0x5E17 + sender);
}
