/* wan_network.c - see wan_network.h.
 *
 * One idea: a path takes each of its values from the most exact section that gives it: host to host, host to site, site to host, site to
 * site, [defaults].  At each of these the section of the other direction serves if this direction has none.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mix.h"

enum { FIRST_ADDRESS = 0x0A4D0001 /* 10.77.0.1 */, QUEUE_MS = 50, QUEUE_PACKETS = 100, PACKET_BYTES = 1518, USUAL_MTU = 1500 };

struct wan_network *wan_network_new(void)
{
    struct wan_network *n = calloc(1, sizeof *n);
    if (n != NULL) {
        n->paths = calloc(WAN_PATHS_MOST, sizeof *n->paths);
    }
    if (n != NULL && n->paths == NULL) {
        free(n);
        n = NULL;
    }
    return n;
}

void wan_network_free(struct wan_network *n)
{
    if (n != NULL) {
        free(n->paths);
        free(n->pair);
        free(n);
    }
}

int wan_network_host(const struct wan_network *n, const char *name)
{
    for (unsigned i = 0; i < n->host_count; i++) {
        if (strcmp(n->hosts[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int wan_network_site(const struct wan_network *n, const char *name)
{
    for (unsigned i = 0; i < n->site_count; i++) {
        if (strcmp(n->sites[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

uint64_t wan_network_queue(uint64_t rate_bps)
{
    uint64_t bytes = rate_bps / 8 / 1000 * QUEUE_MS, least = QUEUE_PACKETS * PACKET_BYTES;
    return bytes > least ? bytes : least;
}

double wan_network_most_loss(double burst)
{
    return burst > 1 ? burst / (burst + 1) : 1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool has(const struct wan_values *v, enum wan_key key)
{
    return (v->given & 1u << key) != 0;
}

/* Takes over from `from` the keys of a path that are not given yet. */
static void complete_path(struct wan_values *to, const struct wan_values *from)
{
    unsigned missing = from->given & ~to->given;
    to->rate_bps = (missing & 1u << WAN_RATE) != 0 ? from->rate_bps : to->rate_bps;
    to->queue_bytes = (missing & 1u << WAN_QUEUE) != 0 ? from->queue_bytes : to->queue_bytes;
    to->delay_ns = (missing & 1u << WAN_DELAY) != 0 ? from->delay_ns : to->delay_ns;
    to->jitter_ns = (missing & 1u << WAN_JITTER) != 0 ? from->jitter_ns : to->jitter_ns;
    to->loss = (missing & 1u << WAN_LOSS) != 0 ? from->loss : to->loss;
    to->burst = (missing & 1u << WAN_BURST) != 0 ? from->burst : to->burst;
    to->mtu = (missing & 1u << WAN_MTU) != 0 ? from->mtu : to->mtu;
    to->line = to->line == 0 || missing != 0 ? from->line : to->line;
    to->given |= missing;
}

static void complete_host(struct wan_values *to, const struct wan_values *from)
{
    unsigned missing = from->given & ~to->given;
    to->mtu = (missing & 1u << WAN_MTU) != 0 ? from->mtu : to->mtu;
    to->uplink_bps = (missing & 1u << WAN_UPLINK) != 0 ? from->uplink_bps : to->uplink_bps;
    to->downlink_bps = (missing & 1u << WAN_DOWNLINK) != 0 ? from->downlink_bps : to->downlink_bps;
    to->uplink_queue_bytes = (missing & 1u << WAN_UPLINK_QUEUE) != 0 ? from->uplink_queue_bytes : to->uplink_queue_bytes;
    to->downlink_queue_bytes = (missing & 1u << WAN_DOWNLINK_QUEUE) != 0 ? from->downlink_queue_bytes : to->downlink_queue_bytes;
    to->tcp_wmem_bytes = (missing & 1u << WAN_TCP_WMEM) != 0 ? from->tcp_wmem_bytes : to->tcp_wmem_bytes;
    to->tcp_rmem_bytes = (missing & 1u << WAN_TCP_RMEM) != 0 ? from->tcp_rmem_bytes : to->tcp_rmem_bytes;
    if ((missing & 1u << WAN_CONGESTION) != 0) {
        memcpy(to->congestion, from->congestion, sizeof to->congestion);
    }
    to->given |= missing;
}

/* Queues that nobody has given. */
static void complete_links(struct wan_values *v)
{
    v->uplink_queue_bytes = has(v, WAN_UPLINK_QUEUE) ? v->uplink_queue_bytes : wan_network_queue(v->uplink_bps);
    v->downlink_queue_bytes = has(v, WAN_DOWNLINK_QUEUE) ? v->downlink_queue_bytes : wan_network_queue(v->downlink_bps);
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static bool refuse(int *line, int where, char error[WAN_ERROR], const char *format, ...)
{
    va_list list;
    *line = where;
    va_start(list, format);
    vsnprintf(error, WAN_ERROR, format, list);
    va_end(list);
    return false;
}

static bool address_is_used(const struct wan_network *n, uint32_t address, unsigned but, unsigned *by)
{
    for (unsigned i = 0; i < n->host_count; i++) {
        if (i != but && has(&n->hosts[i].values, WAN_ADDRESS) && n->hosts[i].values.address == address) {
            *by = i;
            return true;
        }
    }
    return false;
}

static bool resolve_host(struct wan_network *n, unsigned index, uint32_t *next, int *line, char error[WAN_ERROR])
{
    struct wan_host *h = &n->hosts[index];
    unsigned other = 0;
    h->site = WAN_NO_SITE;
    if (has(&h->values, WAN_SITE)) {
        h->site = wan_network_site(n, h->values.site);
        if (h->site < 0) {
            return refuse(line, h->values.key_line[WAN_SITE], error, "there is no site '%s': add [site %s], or correct the name",
                          h->values.site, h->values.site);
        }
    }
    if (has(&h->values, WAN_ADDRESS) && address_is_used(n, h->values.address, index, &other)) {
        const struct wan_host *o = &n->hosts[other];
        bool later = h->values.key_line[WAN_ADDRESS] > o->values.key_line[WAN_ADDRESS];
        return refuse(line, (later ? h : o)->values.key_line[WAN_ADDRESS], error,
                      "the hosts '%s' and '%s' have one address: give each its own, or leave the key out", (later ? o : h)->name,
                      (later ? h : o)->name);
    }
    if (!has(&h->values, WAN_ADDRESS)) {
        while (address_is_used(n, *next, index, &other)) {
            ++*next;
        }
        h->values.address = (*next)++;
    }
    complete_host(&h->values, &n->defaults);
    h->values.mtu = has(&h->values, WAN_MTU) ? h->values.mtu : USUAL_MTU;
    complete_links(&h->values);
    return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

static bool is_known(const struct wan_network *n, const char *name)
{
    return wan_network_host(n, name) >= 0 || wan_network_site(n, name) >= 0;
}

static bool check_path(const struct wan_network *n, const struct wan_path *p, int *line, char error[WAN_ERROR])
{
    const char *unknown = !is_known(n, p->from) ? p->from : !is_known(n, p->to) ? p->to : NULL;
    if (unknown != NULL) {
        return refuse(line, p->values.line, error, "there is no host or site '%s': add [host %s], or correct the name", unknown, unknown);
    }
    if (strcmp(p->from, p->to) == 0 && wan_network_host(n, p->from) >= 0) {
        return refuse(line, p->values.line, error, "a host has no path to itself: name two hosts, or remove the section");
    }
    return true;
}

/* For each ordered pair of names the section that gives it, found by its hash. */
struct table {
    unsigned mask;
    int *at; /* owned; index of a path, -1: free */
};

static unsigned hash_of(const char *from, const char *to)
{
    return (unsigned)mix_text(mix_text(1, from), to);
}

/* The place of that pair, or where it would go. */
static unsigned place_of(const struct wan_network *n, const struct table *t, const char *from, const char *to)
{
    unsigned i = hash_of(from, to) & t->mask;
    while (t->at[i] >= 0 && (strcmp(n->paths[t->at[i]].from, from) != 0 || strcmp(n->paths[t->at[i]].to, to) != 0)) {
        i = (i + 1) & t->mask;
    }
    return i;
}

/* What is said of this direction, else of the other one. */
static void complete_from(const struct wan_network *n, const struct table *t, const char *from, const char *to, struct wan_values *out)
{
    int index = from == NULL || to == NULL ? -1 : t->at[place_of(n, t, from, to)];
    if (index < 0 && from != NULL && to != NULL) {
        index = t->at[place_of(n, t, to, from)];
    }
    if (index >= 0) {
        complete_path(out, &n->paths[index].values);
    }
}

static bool resolve_pair(struct wan_network *n, const struct table *t, unsigned from, unsigned to, int *line, char error[WAN_ERROR])
{
    const struct wan_host *a = &n->hosts[from], *b = &n->hosts[to];
    const char *site_a = a->site >= 0 ? n->sites[a->site].name : NULL, *site_b = b->site >= 0 ? n->sites[b->site].name : NULL;
    struct wan_values *v = &n->pair[from * n->host_count + to], rest = n->defaults;
    complete_from(n, t, a->name, b->name, v);
    complete_from(n, t, a->name, site_b, v);
    complete_from(n, t, site_a, b->name, v);
    complete_from(n, t, site_a, site_b, v);
    rest.given &= ~(1u << WAN_MTU); /* that is the hosts' */
    complete_path(v, &rest);
    v->queue_bytes = has(v, WAN_QUEUE) ? v->queue_bytes : wan_network_queue(v->rate_bps);
    v->burst = has(v, WAN_BURST) ? v->burst : 1;
    v->mtu = has(v, WAN_MTU) ? v->mtu : UINT64_MAX;
    if (v->loss > wan_network_most_loss(v->burst) && v->burst > 1) {
        return refuse(line, v->line, error, "loss %g%% of '%s' to '%s' cannot come in bursts of %g: lower loss to %g%%, or raise burst",
                      v->loss * 100, a->name, b->name, v->burst, wan_network_most_loss(v->burst) * 100);
    }
    return true;
}

static bool resolve_paths(struct wan_network *n, const struct table *t, int *line, char error[WAN_ERROR])
{
    for (unsigned i = 0; i < n->path_count; i++) {
        const struct wan_path *p = &n->paths[i];
        unsigned place = place_of(n, t, p->from, p->to);
        if (!check_path(n, p, line, error)) {
            return false;
        }
        if (t->at[place] >= 0) {
            return refuse(line, p->values.line, error, "[path %s %s] is there twice, first in line %d: remove one", p->from, p->to,
                          n->paths[t->at[place]].values.line);
        }
        t->at[place] = (int)i;
    }
    for (unsigned from = 0; from < n->host_count; from++) {
        for (unsigned to = 0; to < n->host_count; to++) {
            if (from != to && !resolve_pair(n, t, from, to, line, error)) {
                return false;
            }
        }
    }
    return true;
}

bool wan_network_resolve(struct wan_network *n, int *line, char error[WAN_ERROR])
{
    struct table t = {.mask = 2 * WAN_PATHS_MOST - 1};
    uint32_t next = FIRST_ADDRESS;
    if (n->host_count == 0) {
        return refuse(line, 1, error, "there is no host: add a section such as [host a]");
    }
    for (unsigned i = 0; i < n->host_count; i++) {
        if (!resolve_host(n, i, &next, line, error)) {
            return false;
        }
    }
    for (unsigned i = 0; i < n->site_count; i++) {
        complete_links(&n->sites[i].values);
    }
    n->pair = calloc((size_t)n->host_count * n->host_count, sizeof *n->pair);
    t.at = malloc((t.mask + 1) * sizeof *t.at);
    bool ok = n->pair != NULL && t.at != NULL;
    if (ok) {
        memset(t.at, 0xFF, (t.mask + 1) * sizeof *t.at);
        ok = resolve_paths(n, &t, line, error);
    } else {
        (void)refuse(line, 1, error, "no memory for the paths of %u hosts: use fewer", n->host_count);
    }
    free(t.at);
    return ok;
}
