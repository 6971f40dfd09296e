/* stripe_policy.h - over how many sockets a stripe sends.
 *
 * One socket is enough where its congestion control fills the path.  Where loss or a buffer holds it back, twice as many are
 * tried; they stay if the rate grows by 5 %.  A path may get better: now and then half as many are tried; they stay if the other
 * half gained less than that.  Pure: what was measured comes in, the number comes out.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_STRIPE_POLICY_H
#define PCCL_NET_STRIPE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum { STRIPE_FAR_US = 5000 }; /* round trip of a long path: on a nearer one a queue is soon empty again, and a window soon full */

struct stripe_sample {
    int64_t now;
    int64_t span_ns;   /* since the sample before */
    uint64_t acked;    /* bytes, within that, by all sockets */
    uint64_t lost;     /* bytes that were sent again */
    uint32_t present;  /* sockets that can be used */
    bool limited;      /* the sockets held the sender back for most of it */
    bool buffered;     /* send buffers held the sockets back for most of it */
    bool full;         /* the path carries no more: a socket is bound to what it does (stripe_pace.h) */
};

/* What tells whether the sockets held the sender back. */
struct stripe_hold {
    int64_t span_ns, full_ns; /* of that, no socket took more */
    uint64_t acked;    /* bytes within the span */
    double windows;    /* bytes that the congestion windows of the sockets in use let them send within it */
    uint32_t used, idle; /* sockets in use; of these, so many had nothing left to send at the end of the span */
    bool answers_loss; /* their congestion control does, so that a window is a rate (BBR's is twice that) */
};

struct stripe_policy {
    uint32_t most;
    uint32_t count;     /* sockets to send on */
    uint32_t before;    /* a trial is on: there were so many before it, fewer or more than count; 0: none */
    uint32_t looks;     /* limited samples since the last change of either */
    uint32_t missing;   /* of these, so many while sockets were missing */
    bool tried;         /* a trial has ended: before, the number is only what it began with */
    bool short_of;      /* the number is that of the sockets there were: nothing was found out about the path */
    uint64_t rate;      /* bytes per second, of the last limited sample; 0: none since the last change */
    uint64_t best;      /* the best mean of two samples with this number */
    uint64_t mean;      /* with this number, of late; in a trial of fewer: before the samples that acked counts */
    uint64_t base;      /* the rate before the trial, or before the last one that gained nothing */
    uint64_t acked, lost; /* of a trial: bytes, ... */
    int64_t span_ns;    /* ... within this time, of the samples that count; */
    uint32_t counted;   /* of fewer: so many samples */
    int64_t not_before; /* the next trial of more */
    int64_t wait_ns;    /* after the next one that gains nothing */
    int64_t fewer_at;   /* the next trial of fewer; 0: not known yet */
    int64_t fewer_wait_ns; /* after the next one that loses */
};

/* What a policy has found, for the next stripe on the same path. */
struct stripe_settled {
    uint32_t count;     /* sockets, before a trial that is on; 0: nothing has been found */
    int64_t not_before, fewer_at;
};

/* Whether a congestion control of that name, "" if it is not known, answers each loss, as CUBIC does. */
bool stripe_policy_answers_loss(const char *congestion);
struct stripe_first {
    bool answers_loss;
    uint32_t rtt_us;
    uint32_t lanes;   /* stripes on this path; 0 counts as 1 */
    uint32_t stripes; /* on all long paths of this process */
};
/* How many sockets a stripe begins with on a path of which nothing else is known.  Where each loss is answered, one would take minutes to
 * fill a long path.  BBR fills it with one, but its search begins with ten packets a socket, and a lost packet halts it for a round trip. */
uint32_t stripe_policy_first(const struct stripe_first *f);

/* For most of the span no socket took more; or their windows were used up, and there was more to send. */
bool stripe_policy_held(const struct stripe_hold *h);

void stripe_policy_init(struct stripe_policy *p, uint32_t most);
/* On a path of which nothing else is known.  Over BBR the first calls see no trial of more. */
void stripe_policy_begin(struct stripe_policy *p, uint32_t most, const struct stripe_first *f, int64_t now);
/* Begins with what another one has found. */
void stripe_policy_resume(struct stripe_policy *p, uint32_t most, const struct stripe_settled *found, int64_t now);
struct stripe_settled stripe_policy_settled(const struct stripe_policy *p);
/* Returns the number of sockets to send on from now on. */
uint32_t stripe_policy_step(struct stripe_policy *p, const struct stripe_sample *sample);
/* How many to keep: those that a trial of fewer leaves idle are used again if it loses. */
uint32_t stripe_policy_keep(const struct stripe_policy *p);
/* How long the next sample is to last, on a path of this round trip. */
int64_t stripe_policy_span(int64_t rtt_ns);

#endif
