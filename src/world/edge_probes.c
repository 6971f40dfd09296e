/* edge_probes.c - measuring the edges that nobody knows yet, each as soon as both of its ends are free (topology/probe_order.h).
 *
 * A vote begins no more probes once it has measured for `measure_ns`: many far members would wait for minutes.  Edges that are left are measured
 * beside what the members do then: a peer's link is measured for a twentieth of the time at most, and once a group waits for no pair, those of
 * all its members together are.  A vote goes on with what is left.
 * Invariant: a member that measures, or rests after it, has a place in the order; each does so until its own deadline.
 * SPDX-License-Identifier: MIT */
#include "core/bitset.h"
#include "core/clock.h"
#include "topology/probe_meter.h"
#include "world/measuring.h"
#include "world/edges.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"
#include "world/vote.h"

enum {
    BESIDE_REST = 19,   /* times as long as a probe took, its ends are left alone */
    BESIDE_MEMBERS = 40, /* for each so many members one more probe begins at each look */
};

#define BESIDE_AFTER (10 * CLOCK_S) /* a vote: what comes then is not disturbed at once */
#define BESIDE_EVERY CLOCK_S        /* not all at the same time */

int64_t edge_probes_answered_by(const struct world *w, int64_t probe_ns)
{
    return w->common->now + PROBE_METER_LIMIT * probe_ns + w->common->config.register_ns;
}

static struct member *member_at(const struct world *w, uint32_t place)
{
    return &w->members[w->optimise.slots[place]];
}

/* Whether a member still has this place: it may have gone, and another one may have its slot. */
static bool is_here(const struct world *w, uint32_t place)
{
    const struct member *mb = member_at(w, place);
    return mb->phase == MEMBER_ACCEPTED && mb->probe_place == place + 1;
}

static bool same_group(const struct world *w, uint32_t one, uint32_t other)
{
    return member_at(w, one)->group == member_at(w, other)->group;
}

static bool is_sure(const struct world *w, uint32_t from, uint32_t to)
{
    return bandwidth_sure(&w->bandwidth, member_at(w, from)->rates_key, member_at(w, to)->rates_key);
}

/* When an edge is measured that is not sure. */
enum turn { TURN_NEAR, TURN_FIRST, TURN_BACK, TURN_BESIDE };

static uint64_t rate_between(const struct world *w, uint32_t from, uint32_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(&w->bandwidth, member_at(w, from)->rates_key, member_at(w, to)->rates_key);
    return edge_guess_counts(e) ? e->rate_bps : 0;
}

/* Whether an edge from the site of one to that of the other is measured. */
static bool is_way_known(const struct world *w, uint32_t from, uint32_t to)
{
    const struct member *one = member_at(w, from), *other = member_at(w, to);
    return edge_guess_way(w, view_current(member_group(w, one)), one, other) != NULL;
}

static bool is_known(const struct world *w, uint32_t from, uint32_t to)
{
    return is_way_known(w, from, to) || is_way_known(w, to, from);
}

/* Of two numbers each pair is measured in one direction first, so that each begins with about half of its pairs. */
static bool goes_first(uint32_t from, uint32_t to)
{
    return ((from + to) % 2 == 1) == (from < to);
}

/* Sites in the view of a member that are named after members with lower places. */
static uint32_t site_number(const struct world *w, uint32_t place)
{
    const struct view_record *v = view_current(member_group(w, member_at(w, place)));
    uint32_t number = 0;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        number += mb != NULL && mb->probe_place != 0 && mb->probe_place <= place && mb == &w->members[mb->site];
    }
    return number;
}

/* The most that a member sends to others of its site and the most that it receives, together; what is not known is as the other one. */
static uint64_t rate_within_site(const struct world *w, uint32_t peer)
{
    const struct probe_order *o = &w->optimise.order;
    uint64_t out = 0, in = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        if (i != peer && o->place[i].site == o->place[peer].site) {
            uint64_t there = rate_between(w, peer, i), back = rate_between(w, i, peer);
            out = there > out ? there : out;
            in = back > in ? back : in;
        }
    }
    return (out > 0 ? out : in) + (in > 0 ? in : out);
}

/* A slow host would make all edges of its site look slow. */
static void find_fastest(struct world *w)
{
    struct probe_order *o = &w->optimise.order;
    for (uint32_t i = 0; i < o->n; i++) {
        struct probe_place *site = &o->place[o->place[i].site];
        if (i != site->site_fastest && edge_guess_more(rate_within_site(w, i), rate_within_site(w, site->site_fastest))) {
            site->site_fastest = (uint16_t)i;
        }
    }
}

/* It waits or is under way, and can be measured. */
static bool is_planned(const struct world *w, uint32_t from, uint32_t to)
{
    const struct probe_order *o = &w->optimise.order;
    const struct member *one = member_at(w, from), *other = member_at(w, to);
    bool planned = o->place[from].to == to || probe_order_waits(o, (uint16_t)from, (uint16_t)to);
    return planned && !edges_missing(view_current(member_group(w, one)), one->id, other->id);
}

/* Whether an edge between the sites of both is known or will be, in either direction: as a rule that between the fastest ones. */
static bool is_cared_for(const struct world *w, uint32_t from, uint32_t to)
{
    const struct probe_place *place = w->optimise.order.place;
    uint32_t one = place[place[from].site].site_fastest, other = place[place[to].site].site_fastest;
    return rate_between(w, one, other) > 0 || rate_between(w, other, one) > 0 || is_planned(w, one, other) || is_planned(w, other, one) ||
           is_known(w, from, to);
}

/* Of sites that may share links one edge between two is enough at first.  Of others it is asked last whether that is known, which takes a while. */
static bool is_turn_between_sites(const struct world *w, uint32_t from, uint32_t to, enum turn turn)
{
    const struct probe_place *place = w->optimise.order.place;
    uint32_t one = place[from].site, other = place[to].site;
    if (place[one].site_fastest == from && place[other].site_fastest == to) {
        bool known = is_known(w, from, to);
        return turn == (!known && goes_first(site_number(w, one), site_number(w, other)) ? TURN_FIRST
                        : known && is_way_known(w, from, to)                               ? TURN_BESIDE : TURN_BACK);
    }
    if (turn != TURN_BACK && turn != TURN_BESIDE) {
        return false;
    }
    return turn == (is_cared_for(w, from, to) ? TURN_BESIDE : TURN_BACK); /* BACK: those two cannot reach each other */
}

/* A pair that nobody knows is measured in one direction first.  So is an edge that is doubted: until then its rate bounds what all edges are
 * seen to carry at once. */
static bool is_turn(const struct world *w, uint32_t from, uint32_t to, enum turn turn)
{
    const struct probe_order *o = &w->optimise.order;
    const struct bandwidth_entry *e = bandwidth_find(&w->bandwidth, member_at(w, from)->rates_key, member_at(w, to)->rates_key);
    enum turn first = o->place[from].site == o->place[to].site ? TURN_NEAR : TURN_FIRST;
    if (e != NULL && e->doubted) {
        return turn == first;
    }
    if (probe_order_shares(o, (uint16_t)from, (uint16_t)to)) {
        return is_turn_between_sites(w, from, to, turn);
    }
    return turn == (goes_first(from, to) && !is_sure(w, to, from) ? first : TURN_BACK);
}

static void add_edges(struct world *w, enum turn turn)
{
    struct optimise *o = &w->optimise;
    for (uint32_t i = 0; i < o->order.n; i++) {
        for (uint32_t k = 0; k < o->order.n; k++) {
            bool pair = i != k && same_group(w, i, k);
            if (pair && !is_sure(w, i, k) && is_turn(w, i, k, turn)) {
                probe_order_add(&o->order, (uint16_t)i, (uint16_t)k);
            }
        }
    }
}

static uint32_t place_members(struct world *w)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->member_room; k++) {
        w->members[k].probe_place = 0;
        w->members[k].probe_rests = false;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        for (uint32_t k = 0; k < w->member_room; k++) {
            if (member_accepted_in(w, &w->members[k], &w->groups[i])) {
                w->optimise.slots[n++] = k;
                w->members[k].probe_place = n;
            }
        }
    }
    return n;
}

/* What is measured beside other work goes on in the vote. */
static void go_on(struct world *w)
{
    for (uint32_t i = 0; i < w->optimise.order.n; i++) {
        struct member *mb = member_at(w, i);
        const struct member *to = mb->probing != 0 ? member_find(w, mb->probing) : NULL;
        bool here = to != NULL && to->probe_place != 0 && probe_order_begin(&w->optimise.order, (uint16_t)i, (uint16_t)(to->probe_place - 1));
        mb->probing = here ? mb->probing : 0;
    }
}

static void place_sites(struct world *w)
{
    for (uint32_t i = 0; i < w->optimise.order.n; i++) {
        uint32_t first = w->members[member_at(w, i)->site].probe_place;
        if (first > 0) {
            probe_order_at_site(&w->optimise.order, (uint16_t)i, (uint16_t)(first - 1));
        }
    }
}

static bool any_site(const struct probe_order *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->place[i].site_peers > 1) {
            return true;
        }
    }
    return false;
}

void edge_probes_plan(struct world *w)
{
    struct optimise *o = &w->optimise;
    probe_order_init(&o->order, place_members(w), o->probe_words, o->probe_places);
    place_sites(w);
    if (any_site(&o->order)) {
        add_edges(w, TURN_NEAR);
    }
    go_on(w);
}

void edge_probes_plan_far(struct world *w)
{
    find_fastest(w);
    add_edges(w, TURN_FIRST);
}

void edge_probes_plan_back(struct world *w)
{
    find_fastest(w);
    add_edges(w, TURN_BACK);
}

/* The next deadline of all. */
static void set_deadline(struct world *w)
{
    struct optimise *o = &w->optimise;
    o->deadline = o->waiting > 0 ? o->answers_by : o->phase == OPTIMISE_IDLE && o->order.waiting > 0 ? o->look_at : NEVER;
    for (uint32_t i = 0; i < o->order.n; i++) {
        const struct member *mb = member_at(w, i);
        if ((mb->probing != 0 || mb->probe_rests) && is_here(w, i) && mb->probe_by < o->deadline) {
            o->deadline = mb->probe_by;
        }
    }
}

static void send_probe(struct world *w, struct member *from, struct member *to)
{
    int64_t probe_ns = w->common->config.probe_ns;
    struct msg_probe p = {.round = w->optimise.next_round++, .to = to->id, .duration_ms = (uint32_t)(probe_ns / 1000000)};
    from->probing = to->id;
    from->probe_said = false;
    from->probe_round = p.round;
    from->probe_at = w->common->now;
    from->probe_by = edge_probes_answered_by(w, 2 * probe_ns); /* while its rate grows it goes on */
    to->heard_from = 0;
    put_probe(outbox_frame(w->common->out, FRAME_PROBE, w->run, 0), &p);
    outbox_send(w->common->out, MASTER_SEND, from->conn);
}

/* The members that can measure now; edges of those that have gone are forgotten. */
static const uint64_t *look_who_is_present(struct world *w)
{
    struct optimise *o = &w->optimise;
    bitset_clear(o->probe_present, o->order.n);
    for (uint32_t i = 0; i < o->order.n; i++) {
        if (!is_here(w, i)) {
            probe_order_drop(&o->order, (uint16_t)i);
        } else if (member_at(w, i)->conn != SLOT_NONE) {
            bitset_add(o->probe_present, i);
        }
    }
    return o->probe_present;
}

static bool is_unknown(const struct world *w, uint32_t from, uint32_t to)
{
    return same_group(w, from, to) && bandwidth_either(&w->bandwidth, member_at(w, from)->rates_key, member_at(w, to)->rates_key) == NULL;
}

/* Whether an edge waits or is under way of a pair of which nothing is known: without all pairs the members of a group have no trees. */
static bool group_waits(const struct world *w, uint32_t place)
{
    const struct probe_order *o = &w->optimise.order;
    for (uint32_t i = 0; i < o->n; i++) {
        if (!same_group(w, i, place)) {
            continue;
        }
        if (member_at(w, i)->probing != 0 && o->place[i].to != PROBE_ORDER_NONE && is_unknown(w, i, o->place[i].to)) {
            return true;
        }
        for (uint32_t k = probe_order_waiting(o, (uint16_t)i, 0); k < o->n; k = probe_order_waiting(o, (uint16_t)i, k + 1)) {
            if (is_unknown(w, i, k)) {
                return true;
            }
        }
    }
    return false;
}

/* One probe slows all down that work with its ends.  So a group that waits for no pair has one at a time, and rests as a whole.  A large group
 * does not: all of its edges would take days. */
static void leave_group(struct world *w, uint32_t place)
{
    const struct optimise *o = &w->optimise;
    if (view_current(member_group(w, member_at(w, place)))->members > MEASURE_MEMBERS || group_waits(w, place)) {
        return;
    }
    for (uint32_t i = 0; i < o->order.n; i++) {
        if (same_group(w, i, place)) {
            bitset_remove(o->probe_present, i);
        }
    }
}

static void leave_busy_groups(struct world *w)
{
    const struct optimise *o = &w->optimise;
    for (uint32_t i = 0; i < o->order.n; i++) {
        const struct member *mb = member_at(w, i);
        if ((mb->probing != 0 || mb->probe_rests) && is_here(w, i) && bitset_has(o->probe_present, i)) {
            leave_group(w, i);
        }
    }
}

/* At most so many, of those that may begin, in a vote or beside other work.  Edges that do not exist are not measured. */
static void start(struct world *w, uint32_t most, bool beside)
{
    struct optimise *o = &w->optimise;
    const uint64_t *present = o->order.waiting > 0 ? look_who_is_present(w) : NULL;
    struct probe_edge e;
    if (beside && present != NULL) {
        leave_busy_groups(w);
    }
    while (most > 0 && o->order.waiting > 0 && probe_order_next(&o->order, present, &e)) {
        struct member *from = member_at(w, e.from), *to = member_at(w, e.to);
        if (edges_missing(view_current(member_group(w, from)), from->id, to->id)) {
            probe_order_end(&o->order, e.from);
            continue;
        }
        send_probe(w, from, to);
        most--;
        if (beside) {
            leave_group(w, e.from);
        }
    }
}

bool edge_probes_start(struct world *w)
{
    if (w->common->now < w->optimise.until) {
        start(w, UINT32_MAX, false);
    }
    set_deadline(w);
    return w->optimise.order.busy > 0;
}

static void end_probe(struct world *w, struct member *mb)
{
    mb->probing = 0;
    if (w->optimise.phase == OPTIMISE_IDLE) {
        mb->probe_rests = true;
        int64_t took = w->common->now - mb->probe_at, most = PROBE_METER_LIMIT * w->common->config.probe_ns;
        mb->probe_by = w->common->now + BESIDE_REST * (took < most ? took : most); /* a lost one was waited for longer than it loaded links */
    } else {
        probe_order_end(&w->optimise.order, (uint16_t)(mb->probe_place - 1));
    }
}

/* Once both ends have said what they saw. */
static void keep(struct world *w, struct member *from, struct member *to)
{
    const struct msg_measured *ms = &from->probe_answer;
    if (bandwidth_probed(&w->bandwidth, from->rates_key, to->rates_key, ms->bits_per_second, to->heard_bps, (uint64_t)w->common->now)) {
        (void)bandwidth_set_way(&w->bandwidth, from->rates_key, to->rates_key, ms->rtt_us, ms->loss_ppm);
        from->rated = to->rated = true; /* else the table is full, and the edge stays unknown */
    }
}

static void settle_probe(struct world *w, struct member *from, struct member *to)
{
    bool failed = from->probe_answer.bits_per_second == 0, heard = to != NULL && to->heard_from == from->id;
    if (from->probe_said && to != NULL && (failed || (heard && to->heard_bps > 0))) { /* nothing heard of a probe that worked says nothing */
        keep(w, from, to);
    }
    if (from->probe_said && (to == NULL || failed || heard)) {
        end_probe(w, from);
    }
    set_deadline(w);
}

void edge_probes_measured(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    if (mb->probing == 0 || mb->probing != ms->to || mb->probe_round != ms->round || mb->probe_said) {
        return; /* of an earlier vote, or given up */
    }
    mb->probe_said = true;
    mb->probe_answer = *ms;
    mb->probe_by = w->common->now + w->common->config.register_ns; /* for the other end's word; without it nothing is known */
    settle_probe(w, mb, member_find(w, ms->to));
}

void edge_probes_heard(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    struct member *from = member_find(w, ms->to);
    if (from != NULL && from->probing == mb->id && from->probe_round == (ms->round & ~MEASURED_HEARD)) {
        mb->heard_from = from->id;
        mb->heard_bps = ms->bits_per_second;
        settle_probe(w, from, mb);
    }
}

void edge_probes_expire(struct world *w)
{
    struct optimise *o = &w->optimise;
    for (uint32_t i = 0; i < o->order.n; i++) {
        struct member *mb = member_at(w, i);
        if (!is_here(w, i)) {
            probe_order_end(&o->order, (uint16_t)i);
        } else if (mb->probing != 0 && mb->probe_by <= w->common->now) {
            end_probe(w, mb);
        } else if (mb->probe_rests && mb->probe_by <= w->common->now) {
            mb->probe_rests = false;
            probe_order_end(&o->order, (uint16_t)i);
        }
    }
    set_deadline(w);
}

bool edge_probes_beside(struct world *w)
{
    if (any_site(&w->optimise.order)) {
        add_edges(w, TURN_BACK); /* between sites whose fastest members could not measure */
        add_edges(w, TURN_BESIDE);
    }
    w->optimise.look_at = w->common->now + BESIDE_AFTER;
    set_deadline(w);
    return w->optimise.order.waiting > 0;
}

void edge_probes_beside_look(struct world *w)
{
    struct optimise *o = &w->optimise;
    edge_probes_expire(w);
    if (o->look_at <= w->common->now) {
        start(w, vote_quiet(w, NULL) ? 1 + o->order.n / BESIDE_MEMBERS : 0, true);
        o->look_at = w->common->now + BESIDE_EVERY;
    }
    set_deadline(w);
}

void edge_probes_forget(struct world *w)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].probing = 0;
        w->members[i].probe_rests = false;
        w->members[i].probe_place = 0;
    }
    probe_order_init(&w->optimise.order, 0, w->optimise.probe_words, w->optimise.probe_places);
}
