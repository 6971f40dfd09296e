/* wan_network.h - an emulated network: its hosts, its sites, and what the path of each ordered pair of hosts does.
 *
 * A section of the description gives values; for a host they complete those of [defaults], for a path those of the less exact sections.
 * Invariant of a resolved network: every pair of hosts has a path, every address is there once, and every rate with a limit has a queue.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_NETWORK_H
#define PCCL_WAN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAN_HOSTS_MOST = 256,
    WAN_SITES_MOST = 64,
    WAN_PATHS_MOST = 16384,
    WAN_NAME = 16, /* IFNAMSIZ: a device has its host's name */
    WAN_ERROR = 320,
    WAN_NO_SITE = -1
};

enum wan_key {
    WAN_RATE, WAN_QUEUE, WAN_DELAY, WAN_JITTER, WAN_LOSS, WAN_BURST, WAN_MTU, WAN_UPLINK, WAN_DOWNLINK, WAN_UPLINK_QUEUE,
    WAN_DOWNLINK_QUEUE, WAN_TCP_WMEM, WAN_TCP_RMEM, WAN_CONGESTION, WAN_ADDRESS, WAN_SITE, WAN_SEED, WAN_KEYS
};

/* What one section says. */
struct wan_values {
    unsigned given; /* bits of enum wan_key */
    int line;       /* of the section; 0: it is not there */
    uint64_t rate_bps, queue_bytes;
    int64_t delay_ns, jitter_ns;
    double loss, burst;
    uint64_t mtu;
    uint64_t uplink_bps, downlink_bps, uplink_queue_bytes, downlink_queue_bytes;
    uint64_t tcp_wmem_bytes, tcp_rmem_bytes; /* 0: as the system has them */
    char congestion[WAN_NAME];               /* "": as the system has it */
    uint32_t address;
    char site[WAN_NAME];
    uint64_t seed;
    int key_line[WAN_KEYS];
};

struct wan_site {
    char name[WAN_NAME];
    struct wan_values values;
};

struct wan_host {
    char name[WAN_NAME];
    int site; /* index; WAN_NO_SITE */
    struct wan_values values;
};

/* As it stands in the description: each end is a host or a site. */
struct wan_path {
    char from[WAN_NAME], to[WAN_NAME];
    struct wan_values values;
};

struct wan_network {
    struct wan_values defaults;
    unsigned host_count, site_count, path_count;
    struct wan_host hosts[WAN_HOSTS_MOST];
    struct wan_site sites[WAN_SITES_MOST];
    struct wan_path *paths;  /* owned; room for WAN_PATHS_MOST */
    struct wan_values *pair; /* owned; of a resolved network, by from * host_count + to: the keys of a path */
};

struct wan_network *wan_network_new(void); /* null: no memory */
void wan_network_free(struct wan_network *n);

/* The index of a name; -1: there is none. */
int wan_network_host(const struct wan_network *n, const char *name);
int wan_network_site(const struct wan_network *n, const char *name);

/* Completes the network once all sections are in; false: `error` says what is wrong, and `line` where. */
bool wan_network_resolve(struct wan_network *n, int *line, char error[WAN_ERROR]);
/* What a queue in front of that rate holds unless the description says so: 50 ms of the rate, at least 100 packets. */
uint64_t wan_network_queue(uint64_t rate_bps);
/* The highest loss that bursts of that mean length can make up. */
double wan_network_most_loss(double burst);

#endif
