/* cage.c - see cage.h.
 *
 * The commands of iproute2; an unplugged wire is a neighbour entry with an address that nobody has.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cage.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shell.h"

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static bool become_root(void)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    bool ok = write_file("/proc/self/uid_map", map) && write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    return write_file("/proc/self/gid_map", map) && ok;
}

/* In a child of its own, whether all of it works here. */
static bool works(void)
{
    pid_t child = fork();
    if (child == 0) {
        bool ok = (geteuid() == 0 ? unshare(CLONE_NEWNET) == 0 : become_root()) && shell_run("ip link set lo up") &&
                  shell_run("ip link add va type veth peer name vb");
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

const char *cage_enter(void)
{
    if (!shell_run("command -v ip") || !shell_run("command -v ss")) {
        return "iproute2 is not installed";
    }
    if (!works() || !(geteuid() == 0 ? unshare(CLONE_NEWNET) == 0 : become_root())) {
        return "this kernel or container does not permit network namespaces";
    }
    (void)write_file("/proc/sys/net/ipv4/ip_forward", "0"); /* where the host forwards, a new namespace may */
    if (!shell_run("ip link set lo up && ip addr add 10.99.0.1/32 dev lo")) {
        return "the proxy's address cannot be set";
    }
    return NULL;
}

bool cage_leave_parent(void)
{
    return unshare(CLONE_NEWNET) == 0;
}

bool cage_wire(pid_t child, unsigned key)
{
    return shell_run("ip link add v%u type veth peer name eth0 netns %d && ip addr add 10.88.%u.1/24 dev v%u && "
               "ip link set v%u up", key, (int)child, key, key, key);
}

bool cage_settle(unsigned key)
{
    return shell_run("ip link set lo up && ip addr add 10.88.%u.2/24 dev eth0 && ip link set eth0 up && "
               "ip route add 10.99.0.1/32 via 10.88.%u.1", key, key);
}

/* A command inside the child's network. */
__attribute__((format(printf, 2, 3))) static bool run_inside(pid_t child, const char *format, ...)
{
    char command[256], path[64];
    va_list list;
    int status = 0;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)child);
    pid_t helper = fork();
    if (helper == 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        _exit(fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && shell_run("%s", command) ? 0 : 1);
    }
    return helper > 0 && waitpid(helper, &status, 0) == helper && status == 0;
}

bool cage_unplug(pid_t child, unsigned key, bool outgoing, bool on)
{
    static const char nobody[] = "lladdr 02:de:ad:00:00:01 nud permanent";
    if (outgoing) {
        return on ? run_inside(child, "ip neigh replace 10.88.%u.1 %s dev eth0", key, nobody)
                  : run_inside(child, "ip neigh del 10.88.%u.1 dev eth0", key);
    }
    return on ? shell_run("ip neigh replace 10.88.%u.2 %s dev v%u", key, nobody, key)
              : shell_run("ip neigh del 10.88.%u.2 dev v%u", key, key);
}

bool cage_kill_sockets(pid_t child, uint16_t port)
{
    return port == 0 ? run_inside(child, "ss -K dst 10.99.0.1") : run_inside(child, "ss -K dst 10.99.0.1 dport = %u", port);
}
