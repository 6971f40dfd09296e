/* stripe_policy.c - over how many sockets a stripe sends.
 *
 * Invariant: the number changes only after samples in which the sockets held the sender back; a trial ends with twice or half the
 * sockets of before, or with those of before.
 * SPDX-License-Identifier: MIT */
#include "net/stripe_policy.h"

#include <string.h>

enum {
    POLICY_FIRST = 16,   /* sockets of all lanes on a long path whose congestion control answers each loss */
    POLICY_FIRST_BBR = 4, /* of each stripe, ... */
    POLICY_ALONE = 2,    /* ... where a process has no more of them: three times four overrun the queue of a line that they share */
    POLICY_GAIN = 5,     /* percent that a trial has to gain, and that a trial of fewer may lose */
    POLICY_SETTLED = 10, /* percent between two samples below which a rate no longer grows */
    POLICY_CLEAR = 50,   /* percent: so much that a trial ends at once, and the next one begins */
    POLICY_FALLEN = 40,  /* percent below the rate of a trial that gained nothing: the path is another one by now */
    POLICY_WARM = 1,     /* samples of a trial that do not count: new sockets begin slowly */
    POLICY_COUNT = 4,    /* samples that do, at least: with loss a rate swings */
    POLICY_LOOKS = 9,    /* samples after which a trial is judged although the rate still grows, or sockets are missing */
    POLICY_PATIENCE = 33, /* samples of a trial of fewer: without loss a window grows, if slowly */
    POLICY_SPARED = 4,   /* so few packets per socket that one is lost: most of the sockets go on growing */
    POLICY_PACKET = 1448, /* bytes */
    POLICY_ROUNDS = 4,   /* round trips of a sample */
};
#define POLICY_SPAN_LEAST_NS INT64_C(250000000)
#define POLICY_SPAN_MOST_NS INT64_C(2000000000)
#define POLICY_WAIT_NS INT64_C(10000000000)
#define POLICY_WAIT_MOST_NS INT64_C(320000000000)
#define POLICY_FEWER_NS INT64_C(60000000000)
#define POLICY_FEWER_MOST_NS INT64_C(960000000000)
#define POLICY_NS 1e9

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool stripe_policy_answers_loss(const char *congestion)
{
    return congestion[0] != '\0' && strncmp(congestion, "bbr", 3) != 0;
}

uint32_t stripe_policy_first(const struct stripe_first *f)
{
    uint32_t lanes = f->lanes > 0 ? f->lanes : 1;
    if (f->rtt_us < STRIPE_FAR_US) {
        return 1;
    }
    if (f->answers_loss) {
        return (POLICY_FIRST + lanes - 1) / lanes;
    }
    return f->stripes <= POLICY_ALONE ? POLICY_FIRST_BBR : 1;
}

bool stripe_policy_held(const struct stripe_hold *h)
{
    /* A call that ends soon fits into the sockets, so that they take all of it at once, and waits for their windows all the same.  The kernel
     * lets the window of a socket that sends little shrink to what it sends: hence the question whether there was more. */
    bool used_up = h->answers_loss && h->windows > 0 && 2 * (double)h->acked >= h->windows && 2 * h->idle < h->used;
    return used_up || 2 * h->full_ns >= h->span_ns;
}

void stripe_policy_init(struct stripe_policy *p, uint32_t most)
{
    *p = (struct stripe_policy){.most = most, .count = 1, .wait_ns = POLICY_WAIT_NS, .fewer_wait_ns = POLICY_FEWER_NS};
}

void stripe_policy_begin(struct stripe_policy *p, uint32_t most, const struct stripe_first *f, int64_t now)
{
    uint32_t first = stripe_policy_first(f);
    stripe_policy_init(p, most);
    p->count = first < most ? first : most;
    p->not_before = !f->answers_loss && p->count > 1 ? now + POLICY_WAIT_NS : 0;
}

void stripe_policy_resume(struct stripe_policy *p, uint32_t most, const struct stripe_settled *found, int64_t now)
{
    stripe_policy_init(p, most);
    if (found->count > 0) {
        p->tried = true;
        p->count = found->count < most ? found->count : most;
        p->not_before = sooner(found->not_before, now + POLICY_WAIT_NS); /* the path may be another one by now */
        p->fewer_at = sooner(found->fewer_at, now + POLICY_FEWER_NS);
    }
}

struct stripe_settled stripe_policy_settled(const struct stripe_policy *p)
{
    return (struct stripe_settled){
        .count = p->short_of || !p->tried ? 0 : p->before != 0 ? p->before : p->count, .not_before = p->not_before, .fewer_at = p->fewer_at,
    };
}

uint32_t stripe_policy_keep(const struct stripe_policy *p)
{
    return p->before > p->count ? p->before : p->count;
}

int64_t stripe_policy_span(int64_t rtt_ns)
{
    int64_t most = POLICY_SPAN_MOST_NS / POLICY_ROUNDS, span = POLICY_ROUNDS * (rtt_ns < most ? rtt_ns : most);
    return span > POLICY_SPAN_LEAST_NS ? span : POLICY_SPAN_LEAST_NS;
}

static uint64_t rate_of(uint64_t bytes, int64_t span_ns)
{
    return (uint64_t)((double)bytes * POLICY_NS / (double)span_ns);
}

/* Whether `rate` exceeds `base` by so many percent. */
static bool exceeds(uint64_t rate, uint64_t base, int percent)
{
    return (double)rate * 100 >= (double)base * (100 + percent);
}

/* What was measured with another number does not count. */
static void measure_anew(struct stripe_policy *p, uint32_t count)
{
    p->count = count;
    p->looks = p->missing = p->counted = 0;
    p->rate = p->best = p->mean = p->acked = p->lost = 0;
    p->span_ns = 0;
}

/* A trial. */
static void begin(struct stripe_policy *p, uint64_t base, uint32_t count)
{
    p->base = base;
    p->before = p->count;
    measure_anew(p, count);
}

static uint32_t twice(const struct stripe_policy *p)
{
    return p->count * 2 < p->most ? p->count * 2 : p->most;
}

/* A trial is over, and the number is this one. */
static void end(struct stripe_policy *p, uint32_t count)
{
    p->before = 0;
    measure_anew(p, count);
}

/* Nothing hinders most of so many sockets to grow. */
static bool unhindered(const struct stripe_sample *sample, uint64_t lost, uint32_t count)
{
    return !sample->buffered && lost * POLICY_SPARED < (uint64_t)count * POLICY_PACKET;
}

/* ---- A trial of more ---------------------------------------------------------------------------------------------------- */

/* It has gained nothing. */
static void give_up(struct stripe_policy *p, int64_t now)
{
    p->tried = true;
    end(p, p->before);
    p->not_before = now + p->wait_ns;
    p->wait_ns = sooner(p->wait_ns * 2, POLICY_WAIT_MOST_NS);
}

static void judge(struct stripe_policy *p, uint64_t rate, int64_t now)
{
    if (!exceeds(rate, p->base, POLICY_GAIN)) {
        give_up(p, now);
        return;
    }
    p->tried = true;
    p->wait_ns = POLICY_WAIT_NS;
    p->fewer_at = 0;
    p->short_of = false;
    if (exceeds(rate, p->base, POLICY_CLEAR) && p->count < p->most) {
        begin(p, rate, twice(p));
    } else {
        end(p, p->count);
        p->base = 0; /* nothing is known of a larger number */
    }
}

static void look(struct stripe_policy *p, const struct stripe_sample *sample, uint64_t rate, uint64_t last)
{
    if (sample->present < p->count && p->looks < POLICY_LOOKS) {
        p->missing = p->looks; /* they are on their way */
        return;
    }
    uint32_t counted = p->looks - p->missing;
    if (counted <= POLICY_WARM && p->looks < POLICY_LOOKS) {
        return;
    }
    p->acked += sample->acked;
    p->span_ns += sample->span_ns;
    uint64_t mean = rate_of(p->acked, p->span_ns), newest = last / 2 + rate / 2;
    bool enough = counted >= POLICY_WARM + POLICY_COUNT, grows = exceeds(rate, last, POLICY_SETTLED);
    if (exceeds(mean, p->base, POLICY_CLEAR) || (enough && !grows)) {
        judge(p, mean, sample->now);
    } else if (p->looks >= POLICY_LOOKS) {
        judge(p, grows && newest > mean ? newest : mean, sample->now);
    }
}

/* ---- A trial of fewer --------------------------------------------------------------------------------------------------- */

/* Each of those that are left begins with what it carried before. */
static void begin_fewer(struct stripe_policy *p, uint64_t base)
{
    begin(p, base, p->count / 2);
    p->mean = base / p->before * p->count;
}

/* They carry as much as all did, or nearly. */
static void keep_fewer(struct stripe_policy *p, int64_t now)
{
    p->tried = true;
    p->short_of = false;
    p->wait_ns = POLICY_WAIT_NS;
    p->not_before = now + p->wait_ns; /* of twice as many it is known what they gain */
    p->fewer_wait_ns = POLICY_FEWER_NS;
    if (p->count > 1) {
        begin_fewer(p, p->base); /* the same base, or each step would lose some */
    } else {
        end(p, p->count);
    }
}

static void lose(struct stripe_policy *p, int64_t now)
{
    p->tried = true;
    end(p, p->before);
    p->fewer_at = now + p->fewer_wait_ns;
    p->fewer_wait_ns = sooner(p->fewer_wait_ns * 2, POLICY_FEWER_MOST_NS);
}

/* It goes on while they grow, or nothing hinders them. */
static void look_fewer(struct stripe_policy *p, const struct stripe_sample *sample)
{
    if (p->looks <= POLICY_WARM) {
        return;
    }
    p->acked += sample->acked;
    p->lost += sample->lost;
    p->span_ns += sample->span_ns;
    if (++p->counted < POLICY_COUNT) {
        return;
    }
    uint64_t mean = rate_of(p->acked, p->span_ns);
    if (!exceeds(p->base, mean, POLICY_GAIN)) {
        keep_fewer(p, sample->now);
    } else if (p->looks < POLICY_PATIENCE && mean > 0 &&
               (unhindered(sample, p->lost, p->count) || exceeds(mean, p->mean, POLICY_SETTLED))) {
        p->mean = mean;
        p->acked = p->lost = 0;
        p->span_ns = 0;
        p->counted = 0;
    } else {
        lose(p, sample->now);
    }
}

/* ---- Between trials ----------------------------------------------------------------------------------------------------- */

/* Sockets that another stripe had do not come: the number becomes that of those there are. */
static void miss(struct stripe_policy *p, uint32_t present)
{
    if (++p->missing > POLICY_LOOKS) {
        measure_anew(p, present > 0 ? present : 1);
        p->short_of = true;
    }
}

static void settled(struct stripe_policy *p, const struct stripe_sample *sample, uint64_t rate, uint64_t last)
{
    uint64_t mean = last / 2 + rate / 2;
    p->mean = p->mean == 0 ? rate : p->mean - p->mean / 4 + rate / 4;
    if (p->count > 1 && p->fewer_at == 0) {
        p->fewer_at = sample->now + p->fewer_wait_ns;
    }
    if (last == 0) {
        return;
    }
    bool grown = p->looks > POLICY_LOOKS && !unhindered(sample, sample->lost, p->count); /* those that a trial has left begin with less */
    if (grown && !exceeds(mean, p->base, -POLICY_FALLEN)) {
        p->base = 0;
        p->best = mean;
        p->not_before = sample->now;
    }
    p->best = p->best > mean ? p->best : mean;
    if (exceeds(rate, last, POLICY_SETTLED)) {
        return;
    }
    if (!sample->full && p->count < p->most && sample->now >= p->not_before) {
        begin(p, p->best, twice(p));
    } else if (p->count > 1 && p->looks > POLICY_LOOKS && sample->now >= p->fewer_at) {
        begin_fewer(p, p->mean);
    }
}

uint32_t stripe_policy_step(struct stripe_policy *p, const struct stripe_sample *sample)
{
    if (!sample->limited || sample->span_ns <= 0) {
        return p->count;
    }
    uint64_t rate = rate_of(sample->acked, sample->span_ns), last = p->rate;
    p->looks++;
    p->rate = rate;
    if (p->before > p->count) {
        look_fewer(p, sample);
    } else if (p->before != 0 && sample->full) {
        give_up(p, sample->now);
    } else if (p->before != 0) {
        look(p, sample, rate, last);
    } else if (sample->present < p->count) {
        miss(p, sample->present);
    } else {
        settled(p, sample, rate, last);
    }
    return p->count;
}
