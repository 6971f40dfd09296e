/* network.c - see network.h.
 *
 * One idea: the commands of iproute2, run through the shell with names that this process alone uses.  A one-way cut is a
 * neighbour entry with an address that nobody has: packets leave and arrive nowhere, without an error for anybody.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/fault/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shell.h"

static bool start_host(struct network *net, int i)
{
    const char *name = net->name[i], *bridge = net->bridge;
    return shell_run("ip netns add %s", name) &&
           shell_run("ip -n %s link add eth0 type veth peer name h%d netns %s", name, i, bridge) &&
           shell_run("ip -n %s addr add 10.77.0.%d/24 dev eth0", name, i + 1) && shell_run("ip -n %s link set lo up", name) &&
           shell_run("ip -n %s link set eth0 up", name) && shell_run("ip -n %s link set h%d master br0 up", bridge, i);
}

const char *network_start(struct network *net, int hosts)
{
    memset(net, 0, sizeof *net);
    snprintf(net->bridge, sizeof net->bridge, "pccl%dbr", (int)getpid());
    if (geteuid() != 0) {
        return "network namespaces need root";
    }
    if (!shell_run("command -v ip") || !shell_run("command -v tc") || !shell_run("command -v ss")) {
        return "network namespaces need iproute2";
    }
    bool ok = shell_run("ip netns add %s", net->bridge) && shell_run("ip -n %s link set lo up", net->bridge) &&
              shell_run("ip -n %s link add br0 type bridge", net->bridge) &&
              shell_run("ip -n %s addr add 10.77.0.100/24 dev br0", net->bridge) &&
              shell_run("ip -n %s link set br0 up", net->bridge);
    for (; ok && net->hosts < hosts; net->hosts++) {
        snprintf(net->name[net->hosts], NETWORK_NAME, "pccl%dh%d", (int)getpid(), net->hosts);
        ok = start_host(net, net->hosts);
    }
    if (!ok) {
        network_stop(net);
        return "this kernel or container does not permit network namespaces";
    }
    return NULL;
}

void network_stop(struct network *net)
{
    for (int i = 0; i < NETWORK_HOSTS && net->name[i][0] != 0; i++) {
        shell_run("ip netns del %s", net->name[i]);
    }
    shell_run("ip netns del %s", net->bridge);
}

bool network_drop(const struct network *net, int from, int to, bool on)
{
    const char *name = net->name[from];
    return on ? shell_run("ip -n %s neigh replace 10.77.0.%d lladdr 02:de:ad:00:00:01 nud permanent dev eth0", name, to + 1)
              : shell_run("ip -n %s neigh del 10.77.0.%d dev eth0", name, to + 1);
}

bool network_isolate(const struct network *net, int host, bool on)
{
    return shell_run("ip -n %s link set h%d %s", net->bridge, host, on ? "nomaster" : "master br0");
}

bool network_kill_connections(const struct network *net, int host, int to)
{
    return shell_run("ip netns exec %s ss -K dst 10.77.0.%d", net->name[host], to + 1);
}

bool network_reset(const struct network *net, int host)
{
    return shell_run("ip netns exec %s ss -t -K state established", net->name[host]);
}

/* Prints the two ends of each connection that has moved more than so many bytes; the line of a connection is "- - LOCAL PEER ...". */
#define BUSY                                                                                                           \
    "ip netns exec %s ss -tinHO state established dst 10.77.0.%d | awk '{ n = 0; for (i = 5; i <= NF; i++)"            \
    " if ($i ~ /^bytes_(sent|received):/) { split($i, a, \":\"); n += a[2] } if (n > %ld) print $3, $4 }'"

bool network_busy(const struct network *net, int host, int to, int count, long bytes)
{
    return shell_run("test $(" BUSY " | wc -l) -eq %d", net->name[host], to + 1, bytes, count);
}

bool network_reset_busy(const struct network *net, int host, int to, long bytes)
{
    return shell_run("set -- $(" BUSY " | tail -n 1); test $# -eq 2 && ip netns exec %s ss -t -K src $1 dst $2", net->name[host], to + 1, bytes,
                     net->name[host]);
}

bool network_shape(const struct network *net, int host)
{
    const char *name = net->name[host];
    return shell_run("tc -n %s qdisc add dev eth0 root handle 1: htb default 1", name) &&
           shell_run("tc -n %s class add dev eth0 parent 1: classid 1:1 htb rate 2gbit burst 256kb quantum 60000", name);
}

bool network_limit(const struct network *net, int from, int to, const char *rate)
{
    const char *name = net->name[from];
    return shell_run("tc -n %s class replace dev eth0 parent 1: classid 1:%d htb rate %s burst 32kb quantum 60000", name, to + 10,
               rate) &&
           shell_run("tc -n %s filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.77.0.%d/32 flowid 1:%d",
               name, to + 1, to + 10);
}
