/* probe_meter.h - what a link carries, from what is delivered of a stream that begins.
 *
 * A stream begins slowly: at 100 ms it takes a second to fill 1 Gb/s.  Its rate counts once it has stopped growing for three periods of a round
 * trip each; it is measured from there on.
 * Invariant: it ends, at the latest after twice PROBE_METER_LIMIT times the time that is to be measured; after half of that if its rate does
 * not grow any more.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_PROBE_METER_H
#define PCCL_TOPOLOGY_PROBE_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_METER_LIMIT = 15 };

/* The most that is delivered in any period: the rate of a stream that is slow at times.  Periods are long enough that a queue which empties
 * at once, or acknowledgements that come together, are a small part. */
#define PROBE_PEAK_NS INT64_C(100000000) /* a period, at least */
struct probe_peak {
    int64_t at;     /* a period began; 0: none has */
    uint64_t bytes; /* by then */
    uint64_t best_bps;
};

/* So many bytes have been delivered by now.  `period_ns` counts if it is longer than PROBE_PEAK_NS. */
void probe_peak_look(struct probe_peak *p, int64_t now_ns, uint64_t bytes, int64_t period_ns);
/* The stream has ended: bits per second, also of a stream shorter than a period; 0: nothing is known. */
uint64_t probe_peak_end(struct probe_peak *p, int64_t now_ns, uint64_t bytes);

struct probe_meter {
    int64_t measure_ns;          /* at least, once the rate has settled */
    int64_t begun, period_at, settled_at; /* settled_at 0: it still grows */
    uint64_t period_bytes, settled_bytes, delivered; /* when these began; by now */
    uint64_t best_bps;           /* of any period */
    struct probe_peak peak;      /* bounds the kernel's estimate, which counts single acknowledgements; the rate of a stream that never settles */
    uint64_t estimate_bps;       /* the kernel's, when it was looked at last; 0: it has none */
    uint32_t flat;               /* periods without growth */
    int64_t grew_at;             /* a period ended that was the best one by a tenth; 0: none has */
    int64_t period_ns;           /* that took so long */
    int64_t least_rtt_ns;        /* of all looks: before queues had filled.  0: not known */
    bool shared;
};

void probe_meter_init(struct probe_meter *m, int64_t now_ns, int64_t measure_ns);
/* So many bytes have been delivered by now, over a link with that round trip (0: unknown).  `estimate_bps`: what the congestion control takes
 * for the rate of the bottleneck, 0 if it has no idea.  True: it is known enough. */
bool probe_meter_look(struct probe_meter *m, int64_t now_ns, uint64_t delivered, int64_t rtt_ns, uint64_t estimate_bps);
/* Its rate counts where others share the link: it has settled, or has had the time for it.  A stream that loses much among others never does. */
bool probe_meter_warm(const struct probe_meter *m, int64_t now_ns);
/* It has taken as long as it may: twice as long if its rate still grew, as it does for 5 s at 200 ms where packets are lost. */
bool probe_meter_late(const struct probe_meter *m, int64_t now_ns);
/* Others share the link, and all are warm: what is delivered from here on counts, and no estimate. */
void probe_meter_share(struct probe_meter *m, int64_t now_ns);
/* Bits per second; 0: nothing was delivered. */
uint64_t probe_meter_bps(const struct probe_meter *m, int64_t now_ns);

#endif
