/* wan_report.c - what an emulated network has done with the packets of each ordered pair of hosts.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "pccl/wan_emulator.h"

enum { VOID_PERCENT = 5 };

static uint64_t all_unread(const struct wan_emulator *e)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < e->network->host_count; i++) {
        sum += e->unread[i];
    }
    return sum;
}

static bool was_used(const struct wan_counts *c)
{
    return c->forwarded + c->lost + c->dropped + c->cut + c->too_big > 0;
}

static double late_percent(const struct wan_counts *c)
{
    return c->writes > 0 ? 100.0 * (double)c->late / (double)c->writes : 0;
}

static struct wan_counts sum_of(const struct wan_emulator *e)
{
    struct wan_counts all = {.writes = 0};
    for (unsigned pair = 0; pair < e->network->host_count * e->network->host_count; pair++) {
        const struct wan_counts *c = wan_flow_counts(e->flow, pair / e->network->host_count, pair % e->network->host_count);
        all.writes += c->writes;
        all.late += c->late;
        all.latest_ns = c->latest_ns > all.latest_ns ? c->latest_ns : all.latest_ns;
    }
    return all;
}

bool wan_report_void(const struct wan_emulator *e)
{
    struct wan_counts all = sum_of(e);
    return all.late * 100 > all.writes * VOID_PERCENT || all_unread(e) > 0;
}

static void print_end(FILE *to, const struct wan_emulator *e)
{
    struct wan_counts all = sum_of(e);
    if (wan_flow_strays(e->flow) > 0) {
        fprintf(to, "%" PRIu64 " packets for no host of this network were not passed on\n", wan_flow_strays(e->flow));
    }
    if (wan_flow_overflow(e->flow) > 0) {
        fprintf(to, "%" PRIu64 " packets were dropped for lack of memory: make queues or delays smaller\n", wan_flow_overflow(e->flow));
    }
    if (all_unread(e) > 0) {
        fprintf(to, "run void: %" PRIu64 " packets were dropped before the emulator read them, the machine is too busy\n", all_unread(e));
    } else if (wan_report_void(e)) {
        fprintf(to, "run void: %.1f %% of writes were more than 1 ms late, %d %% are allowed, the machine is too busy%s\n", late_percent(&all),
                VOID_PERCENT, e->is_first ? "" : "; as root the emulator would run before other programs");
    }
}

void wan_report_table(FILE *to, const struct wan_emulator *e)
{
    const struct wan_network *n = e->network;
    fprintf(to, "%-15s %-15s %10s %13s %8s %8s %8s %9s %9s %6s\n", "from", "to", "packets", "bytes", "lost", "dropped", "cut", "queue B",
            "latest ms", "late %");
    for (unsigned pair = 0; pair < n->host_count * n->host_count; pair++) {
        unsigned from = pair / n->host_count, dest = pair % n->host_count;
        const struct wan_counts *c = wan_flow_counts(e->flow, from, dest);
        if (was_used(c)) {
            fprintf(to, "%-15s %-15s %10" PRIu64 " %13" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %9" PRIu64 " %9.3f %6.2f\n",
                    n->hosts[from].name, n->hosts[dest].name, c->forwarded, c->forwarded_bytes, c->lost, c->dropped, c->cut,
                    c->highest_queue_bytes, (double)c->latest_ns / 1e6, late_percent(c));
        }
        if (c->too_big > 0) {
            fprintf(to, "%s to %s: %" PRIu64 " packets were larger than the path's mtu\n", n->hosts[from].name, n->hosts[dest].name, c->too_big);
        }
    }
    print_end(to, e);
}

void wan_report_json(FILE *to, const struct wan_emulator *e)
{
    const struct wan_network *n = e->network;
    struct wan_counts all = sum_of(e);
    const char *comma = "";
    fprintf(to, "{\"void\": %s, \"realtime\": %s, \"late_percent\": %.3f, \"latest_ms\": %.3f, \"strays\": %" PRIu64
                ", \"overflow\": %" PRIu64 ", \"unread\": %" PRIu64 ",\n \"pairs\": [", wan_report_void(e) ? "true" : "false",
            e->is_first ? "true" : "false", late_percent(&all), (double)all.latest_ns / 1e6, wan_flow_strays(e->flow),
            wan_flow_overflow(e->flow), all_unread(e));
    for (unsigned pair = 0; pair < n->host_count * n->host_count; pair++) {
        unsigned from = pair / n->host_count, dest = pair % n->host_count;
        const struct wan_counts *c = wan_flow_counts(e->flow, from, dest);
        if (!was_used(c)) {
            continue;
        }
        fprintf(to, "%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"lost\": %" PRIu64
                    ", \"dropped\": %" PRIu64 ", \"cut\": %" PRIu64 ", \"too_big\": %" PRIu64 ", \"highest_queue_bytes\": %" PRIu64
                    ", \"writes\": %" PRIu64 ", \"late\": %" PRIu64 ", \"latest_ms\": %.3f}", comma, n->hosts[from].name, n->hosts[dest].name,
                c->forwarded, c->forwarded_bytes, c->lost, c->dropped, c->cut, c->too_big, c->highest_queue_bytes, c->writes, c->late,
                (double)c->latest_ns / 1e6);
        comma = ",";
    }
    fprintf(to, "]}\n");
}
