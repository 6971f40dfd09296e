/* network.h - a small network of namespaces: one per host, a bridge in one more where the master lives.
 *
 * Host i has the address 10.77.0.(i + 1), the bridge 10.77.0.100.  Names carry the process id, so that suites run side by
 * side; network_stop deletes everything, and nothing outside these namespaces is ever touched.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_NETWORK_H
#define PCCL_TESTS_NETWORK_H

#include <stdbool.h>

enum { NETWORK_HOSTS = 8, NETWORK_NAME = 32 };

struct network {
    int hosts;
    char name[NETWORK_HOSTS][NETWORK_NAME];
    char bridge[NETWORK_NAME];
};

/* Null if it is there; else why namespaces cannot be used here.  Nothing is left behind then. */
const char *network_start(struct network *net, int hosts);
void network_stop(struct network *net);

/* Drops in silence what `from` sends to `to`; with `on` false, lets it pass again. */
bool network_drop(const struct network *net, int from, int to, bool on);
/* The same for all that `host` sends and receives, the master's connection included. */
bool network_isolate(const struct network *net, int host, bool on);
/* Kills the connections of `host` to `to` as they are. */
bool network_kill_connections(const struct network *net, int host, int to);
/* Resets all established connections of `host`, those with the master included. */
bool network_reset(const struct network *net, int host);
/* Whether `count` connections of `host` to `to` have moved so many bytes each; resets one of those that have. */
bool network_busy(const struct network *net, int host, int to, int count, long bytes);
bool network_reset_busy(const struct network *net, int host, int to, long bytes);
/* Everything that `from` sends to `to` at most at `rate` ("100mbit"); call network_shape once before. */
bool network_shape(const struct network *net, int host);
bool network_limit(const struct network *net, int from, int to, const char *rate);

#endif
