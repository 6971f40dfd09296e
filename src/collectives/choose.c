/* choose.c - the formulas, and the least of them.
 *
 * Its one idea: an operation takes as long as the way of its busiest member, what that one does and the one-way delays one after the
 * other.  A byte takes as long as the member needs for it or as its link does, whichever is more.  Or, where more members than cores share a host, as long as these cores need for what all of them do.  Who sends a
 * message and receives one pays `message`, for a byte `byte` (half of them each end); READY goes to all partners before data may come, HOLD to
 * all members at the end.  Counted at each file of an algorithm.
 * Source: Hockney, "The communication challenge for MPP", 1994; Thakur, Rabenseifner and Gropp, 2005.
 * Invariant: nothing here overflows: above 64 MiB time but for delays grows as the bytes do, and costs are cut at 2^17, those of links at 2^23.
 * SPDX-License-Identifier: MIT */
#include "collectives/choose.h"

#include "core/check.h"

enum {
    CHOOSE_MOST_PS = 1 << 17,
    CHOOSE_LINK_MOST_PS = 1 << 23, /* a byte at 1 Mb/s */
    CHOOSE_MOST_SCRATCH = 16 << 20, /* for what a member sums up or hands on for others: as much as a lane stages */
    CHOOSE_SWITCH = 3, /* where members share a core, a message wakes another one: what that costs, in messages (docs/internals/MEASUREMENTS.md) */
};
#define CHOOSE_MOST_BYTES (UINT64_C(1) << 26)

/* Ends of messages: sent, and received. */
struct work {
    uint64_t partners; /* READY goes to them, and comes */
    uint64_t messages; /* of data */
    uint64_t moved;    /* bytes */
    uint64_t folded;   /* bytes */
};

struct load {
    uint64_t delays; /* after READY */
    struct work own; /* of the busiest member */
    struct work all; /* of all together */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ceil(log2 world). */
static uint64_t rounds_of(uint32_t world)
{
    uint64_t n = 0;
    while ((UINT64_C(1) << n) < world) {
        n++;
    }
    return n;
}

static uint64_t most_of(const struct choose_call *c)
{
    return c->frame_bytes < PLAN_MIN_FRAME_BYTES ? PLAN_MIN_FRAME_BYTES : c->frame_bytes;
}

static uint64_t cut(uint64_t bytes, uint64_t most)
{
    return bytes == 0 ? 1 : (bytes + most - 1) / most;
}

/* Frames of one part. */
static uint64_t frames_of(const struct choose_call *c, uint64_t bytes)
{
    uint64_t want = bytes / PLAN_FRAMES_PER_SEGMENT;
    return cut(bytes, least(most_of(c), want < PLAN_MIN_FRAME_BYTES ? PLAN_MIN_FRAME_BYTES : want));
}

/* Of what is cut into frames as large as they may be (plan_largest). */
static uint64_t large_frames_of(const struct choose_call *c, uint64_t bytes)
{
    return cut(bytes, most_of(c));
}

static struct work times(struct work w, uint64_t n)
{
    return (struct work){w.partners * n, w.messages * n, w.moved * n, w.folded * n};
}

/* All members do the same. */
static struct load alike(const struct choose_call *c, uint64_t delays, struct work own)
{
    return (struct load){delays, own, times(own, c->world)};
}

static struct load halving_load(const struct choose_call *c)
{
    uint64_t n = c->bytes, power = plan_power(c->world), beyond = c->world - power, rounds = rounds_of((uint32_t)power);
    uint64_t share = n / power, frames = frames_of(c, share), halves = power - 1;
    struct work inner = {rounds, 4 * halves * frames, 4 * halves * share, halves * share}; /* each segment has frames of its own */
    struct work outer = {1, 2 * power * frames, 2 * n, 0}, own = inner, all = times(inner, power);
    if (beyond > 0) {
        own = (struct work){inner.partners + 1, inner.messages + outer.messages, inner.moved + outer.moved, inner.folded + n};
        all = (struct work){all.partners + 2 * beyond, all.messages + 2 * beyond * outer.messages, all.moved + 2 * beyond * outer.moved,
                            all.folded + beyond * n};
    }
    return (struct load){2 * rounds + (beyond > 0 ? 2 : 0), own, all};
}

/* READY goes to all, whoever exchanges data with whom. */
static struct load told(const struct choose_call *c, struct load l)
{
    if (c->told) {
        l.own.partners = c->world - 1;
        l.all.partners = (uint64_t)c->world * (c->world - 1);
    }
    return l;
}

static struct load all_reduce_load(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, part = n / w, log = rounds_of(c->world), frames = frames_of(c, n);
    struct work shares = {w - 1, 4 * (w - 1) * frames_of(c, part), 4 * (w - 1) * part, (w - 1) * part};
    switch ((int)algorithm) {
    case PLAN_TINY: /* all of it is folded everywhere, and gone through once more for NaNs */
        return alike(c, 1, (struct work){w - 1, 2 * (w - 1) * frames, 2 * (w - 1) * n, w * n});
    case PLAN_RING:
        shares.partners = 2;
        return alike(c, 2 * (w - 1), shares);
    case PLAN_TREE: /* on the longest way each message is sent and received before the next one goes */
        return told(c, (struct load){2 * log, {log, 4 * log * frames, 4 * log * n, log * n},
                                     {2 * (w - 1), 4 * (w - 1) * frames, 4 * (w - 1) * n, (w - 1) * n}});
    case PLAN_HALVING:
        return told(c, halving_load(c));
    default:
        return alike(c, 2, shares);
    }
}

static struct load all_gather_load(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, log = rounds_of(c->world), frames = 2 * (w - 1) * frames_of(c, n);
    bool ring = algorithm == PLAN_RING, bruck = algorithm == PLAN_BRUCK;
    uint64_t most = w - 1 < 2 * log ? w - 1 : 2 * log; /* one may be ahead and behind */
    return alike(c, ring ? w - 1 : bruck ? log : 1, (struct work){ring ? 2 : bruck ? most : w - 1, frames, 2 * (w - 1) * n, 0});
}

static struct load broadcast_load(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, log = rounds_of(c->world), others = w - 1, part = n / (others > 0 ? others : 1), frames = frames_of(c, n);
    struct work once = {2 * others, 2 * others * frames, 2 * others * n, 0}; /* everybody gets all of it from one other */
    switch ((int)algorithm) {
    case PLAN_TREE:
        return (struct load){log, {log, 2 * log * frames, 2 * log * n, 0}, once};
    case PLAN_CHAIN: { /* frame by frame: the last one begins w - 2 frames later */
        uint64_t steps = frames + (w > 1 ? w - 2 : 0);
        return (struct load){others, {2, 2 * steps, 2 * steps * (n / frames), 0}, once};
    }
    case PLAN_TINY:
        return (struct load){1, {others, others, others * n, 0}, {0, 2 * others, 2 * others * n, 0}};
    default: { /* each has a part, and hands it to all but the root */
        uint64_t each = frames_of(c, part);
        return (struct load){2, {others, 2 * others * each, 2 * others * part, 0},
                             {w * others, 2 * others * others * each, 2 * others * others * part, 0}};
    }
    }
}

static struct load reduce_load(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, log = rounds_of(c->world), others = w - 1, frames = frames_of(c, n), steps = frames + w - 2;
    struct work all = {2 * others, 2 * others * frames, 2 * others * n, others * n}; /* everybody gives all of it to one other */
    switch ((int)algorithm) {
    case PLAN_TREE: /* on the longest way each sum is there before the next one comes */
        return told(c, (struct load){log, {log, 2 * log * frames, 2 * log * n, log * n}, all});
    case PLAN_CHAIN: /* frame by frame: the root begins w - 2 frames later */
        return told(c, (struct load){others, {2, 2 * steps, 2 * steps * (n / frames), steps * (n / frames)}, all});
    default:
        return (struct load){1, {others, others * frames, others * n, others * n}, {w * others, 2 * others * frames, 2 * others * n, others * n}};
    }
}

/* Bytes that a member sends by Bruck's rounds, and gets: in each round the parts of those whose distance has its bit. */
static uint64_t bruck_bytes(const struct choose_call *c)
{
    uint64_t parts = 0;
    for (uint32_t bit = 1; bit < c->world; bit *= 2) {
        parts += plan_round_blocks(c->world, bit);
    }
    return parts * c->bytes;
}

/* All that is sent is packed before, and in the end the output; to copy a byte costs about what adding it does. */
static struct load all_to_all_load(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, log = rounds_of(c->world), most = w - 1 < 2 * log ? w - 1 : 2 * log;
    if (algorithm != PLAN_BRUCK) {
        return alike(c, 1, (struct work){w - 1, 2 * (w - 1) * large_frames_of(c, n), 2 * (w - 1) * n, 0});
    }
    uint64_t bytes = bruck_bytes(c), frames = log * large_frames_of(c, log > 0 ? bytes / log : 0);
    return alike(c, log, (struct work){most, 2 * frames, 2 * bytes, bytes + w * n});
}

static struct load load_of(const struct choose_call *c, enum plan_algorithm algorithm)
{
    uint64_t w = c->world, n = c->bytes, others = w - 1, frames = frames_of(c, n);
    switch ((int)c->kind) {
    case PLAN_ALL_REDUCE:
        return all_reduce_load(c, algorithm);
    case PLAN_ALL_GATHER:
        return all_gather_load(c, algorithm);
    case PLAN_BROADCAST:
        return broadcast_load(c, algorithm);
    case PLAN_REDUCE:
        return reduce_load(c, algorithm);
    case PLAN_REDUCE_SCATTER:
        return alike(c, 1, (struct work){others, 2 * others * frames, 2 * others * n, others * n});
    case PLAN_ALL_TO_ALL:
        return all_to_all_load(c, algorithm);
    default: /* scatter, gather: between the root and each */
        return (struct load){1, {others, others * frames, others * n, 0}, {w * others, 2 * others * frames, 2 * others * n, 0}};
    }
}

/* The time of so many bytes. */
static uint64_t bytes_ns(uint64_t bytes, uint64_t ps)
{
    return bytes / 1000 * ps + bytes % 1000 * ps / 1000;
}

static uint64_t work_ns(const struct choose_call *c, const struct work *w, uint64_t control, uint64_t each, uint64_t byte_ps)
{
    return (w->messages + control) * each * least(c->costs.message_ns, CHOOSE_MOST_PS) / 2 + bytes_ns(w->moved, byte_ps) / 2 +
           bytes_ns(w->folded, least(c->costs.fold_ps, CHOOSE_MOST_PS));
}

static bool goes_round(const struct choose_call *c, enum plan_algorithm algorithm)
{
    return (algorithm == PLAN_RING || algorithm == PLAN_CHAIN) && c->ring.link_ps > 0;
}

/* A byte on the links that the algorithm uses. */
static uint64_t link_ps(const struct choose_call *c, enum plan_algorithm algorithm)
{
    return algorithm == PLAN_FOREST ? 0 : least(goes_round(c, algorithm) ? c->ring.link_ps : c->link_ps, CHOOSE_LINK_MOST_PS);
}

/* All delays between READY and HOLD.  Round a ring that is known each part goes on as it comes: while parts are under way for longer than a
 * delay, only the last one's counts. */
static uint64_t delays_ns(const struct choose_call *c, enum plan_algorithm algorithm, const struct load *l, uint64_t byte_ps)
{
    if (algorithm != PLAN_RING || c->ring.link_ps == 0) {
        return l->delays * least(c->costs.delay_ns, COSTS_MOST);
    }
    uint64_t hop = (uint64_t)c->ring.delay_us * 1000 / c->world, bytes = bytes_ns(l->own.moved, byte_ps) / 2;
    uint64_t part = bytes / (l->delays > 0 ? l->delays : 1), idle = l->delays * hop + part;
    return idle > bytes + hop ? idle - bytes : hop;
}

static struct choose_answer predict(const struct choose_call *c, enum plan_algorithm algorithm)
{
    struct load l = load_of(c, algorithm);
    bool launch = c->small && algorithm == PLAN_TINY; /* the data are the announcement, and HOLD is all that comes after */
    uint64_t holds = 2 * least(c->world - 1, 32), said = launch ? 0 : 2;
    uint64_t byte = least(c->costs.byte_ps, CHOOSE_MOST_PS), link = link_ps(c, algorithm), slower = link > byte ? link : byte;
    uint64_t hold = least(c->costs.delay_ns, COSTS_MOST), ready = launch ? 0 : hold, delay = ready + delays_ns(c, algorithm, &l, slower) + hold;
    uint64_t way = work_ns(c, &l.own, said * l.own.partners + holds, 1, slower) + delay;
    uint64_t cores = work_ns(c, &l.all, said * l.all.partners + holds * c->world, c->crowd > CHOOSE_CROWD ? CHOOSE_SWITCH : 1, byte) / c->world *
                     c->crowd / CHOOSE_CROWD;
    bool measured = c->measured || goes_round(c, algorithm);
    struct choose_answer a = way > cores ? (struct choose_answer){algorithm, way, delay, hold, measured, link > byte} :
                                           (struct choose_answer){algorithm, cores, 0, 0, measured, false};
    return algorithm == PLAN_FOREST ? choose_forest(&c->forest, c->bytes, a, hold) : a;
}

/* The algorithms that have a plan for this call, as bits. */
static unsigned possible(const struct choose_call *c)
{
    unsigned set = 0;
    bool pairs = plan_kind_pairs((uint8_t)c->kind), apart = pairs || c->kind == PLAN_SEND; /* only two do with each other */
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        enum plan_algorithm algorithm = (enum plan_algorithm)a;
        bool sums = plan_kind_sums((uint8_t)c->kind), partial = sums && plan_sends_sums(algorithm), forest = algorithm == PLAN_FOREST;
        bool offered = plan_offers(c->kind, algorithm) && (!partial || c->plain) &&
                       (algorithm != PLAN_RING || c->world >= PLAN_RING_LEAST) && (!forest || (c->forest.usable && !c->small)) &&
                       (algorithm != PLAN_DIRECT || c->kind != PLAN_BROADCAST || c->world > 1) &&
                       (!c->uneven || apart || forest || algorithm == PLAN_DIRECT) &&
                       (!pairs || c->handed_on == (algorithm == PLAN_DIRECT)) &&
                       (!plan_packs(c->kind, algorithm) || (!c->pairs && !c->uneven && 2 * bruck_bytes(c) <= CHOOSE_MOST_SCRATCH)) &&
                       (!partial || c->kind != PLAN_REDUCE || c->bytes <= CHOOSE_MOST_SCRATCH);
        offered = offered || (algorithm == PLAN_TINY && c->small);
        set |= (unsigned)offered << a;
    }
    return set;
}

static unsigned hiding_late(enum plan_kind kind)
{
    unsigned set = 0;
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        set |= (unsigned)plan_hides_late(kind, (enum plan_algorithm)a) << a;
    }
    return set;
}

/* Those of `set` that are in `wanted`, or all if none is. */
static unsigned narrow(unsigned set, unsigned wanted)
{
    return (set & wanted) != 0 ? set & wanted : set;
}

/* Unless another is clearly faster, what asks least of the others is taken: direct and pairwise wait for nobody's turn, and what
 * travels with its launch for nobody's room. */
static bool keeps(uint64_t ns, uint64_t least_ns)
{
    return ns - ns / 10 <= least_ns;
}

/* Twice as many bytes, so often. */
static struct choose_answer doubled(struct choose_answer a, unsigned times)
{
    uint64_t rest = a.ns - a.delay_ns;
    a.ns = rest > (UINT64_MAX - a.delay_ns) >> times ? UINT64_MAX : (rest << times) + a.delay_ns;
    return a;
}

struct choose_answer choose_algorithm(const struct choose_call *call)
{
    struct choose_call c = *call;
    struct choose_answer all[PLAN_ALGORITHMS], best = {.algorithm = PLAN_ALGORITHMS};
    unsigned halved = 0;
    for (; c.bytes > CHOOSE_MOST_BYTES; c.bytes /= 2) {
        halved++;
    }
    unsigned set = narrow(possible(&c), c.allowed);
    set = c.told ? set : narrow(set, ~hiding_late(c.kind));
    PCCL_ASSERT(set != 0);
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        if ((set >> a & 1) != 0) {
            all[a] = doubled(predict(&c, (enum plan_algorithm)a), halved);
            best = best.algorithm == PLAN_ALGORITHMS || all[a].ns < best.ns ? all[a] : best;
        }
    }
    static const enum plan_algorithm usual[] = {PLAN_TINY, PLAN_DIRECT, PLAN_PAIRWISE};
    for (size_t i = c.small ? 0 : 1; i < sizeof usual / sizeof usual[0]; i++) {
        if ((set >> usual[i] & 1) != 0 && keeps(all[usual[i]].ns, best.ns)) {
            return all[usual[i]];
        }
    }
    return best;
}
