/* wan_space.c - see wan_space.h.
 *
 * One idea: a thread may have a network namespace of its own, so each host is made by a short-lived thread, with ioctl calls and no program.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_space.h"
#include "pccl/wan_refuse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUEUE_LENGTH = 10000 };

/* ---- permission -------------------------------------------------------------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return ok;
}

static bool may_unshare(void)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(unshare(CLONE_NEWNET | CLONE_NEWPID) == 0 ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool become_root(void)
{
    char uid[64], gid[64];
    snprintf(uid, sizeof uid, "0 %u 1", (unsigned)geteuid());
    snprintf(gid, sizeof gid, "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", uid) &&
           write_file("/proc/self/gid_map", gid) && may_unshare();
}

bool wan_space_permitted(char error[WAN_ERROR])
{
    if (!may_unshare() && !become_root()) {
        return wan_refuse(error, "network namespaces are refused to this user (%s): run as root, or allow user namespaces with "
                             "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=1000", strerror(errno));
    }
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return wan_refuse(error, "/dev/net/tun cannot be opened: %s: %s", strerror(errno),
                      errno == ENOENT || errno == ENODEV ? "load the module with modprobe tun; a container needs --device /dev/net/tun"
                                                         : "run as root, or allow it with chmod 0666 /dev/net/tun");
    }
    close(fd);
    return true;
}

/* ---- a thread in another namespace ------------------------------------------------------------------------------- */

struct visit {
    int net; /* -1: a new one */
    bool (*act)(struct visit *v);
    const struct wan_network *network;
    unsigned index;
    struct wan_space *space;
    const char *name;
    int type, result;
    uint64_t count;
    char *error;
    bool ok;
};

static void *visit_thread(void *argument)
{
    struct visit *v = argument;
    bool inside = v->net >= 0 ? setns(v->net, CLONE_NEWNET) == 0 : unshare(CLONE_NEWNET) == 0;
    v->ok = inside && v->act(v);
    if (!inside && v->error != NULL) {
        (void)wan_refuse(v->error, "network namespace: %s", strerror(errno));
    }
    return NULL;
}

static bool visit(struct visit *v)
{
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, visit_thread, v);
    if (rc != 0) {
        return v->error != NULL ? wan_refuse(v->error, "thread: %s", strerror(rc)) : false;
    }
    pthread_join(thread, NULL);
    return v->ok;
}

/* ---- a host ------------------------------------------------------------------------------------------------------ */

/* The bits that all addresses have in common, from 8 to 24, so that all hosts are in one subnet where that can be. */
static unsigned prefix_of(const struct wan_network *n)
{
    unsigned bits = 24;
    for (unsigned i = 1; i < n->host_count; i++) {
        uint32_t differ = n->hosts[i].values.address ^ n->hosts[0].values.address;
        while (bits > 8 && differ >> (32 - bits) != 0) {
            bits--;
        }
    }
    return bits;
}

static struct sockaddr inet_of(uint32_t address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    struct sockaddr out;
    memcpy(&out, &in, sizeof out);
    return out;
}

static bool make_device(struct wan_space *s, const char *name, char *error)
{
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    s->device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (s->device < 0 || ioctl(s->device, TUNSETIFF, &r) != 0 || ioctl(s->device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) {
        return wan_refuse(error, "host '%s': TUN device: %s", name, strerror(errno));
    }
    return true;
}

/* By netlink: the ioctl is for root outside of user namespaces. */
static bool set_queue(const char *name)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        struct nlattr attribute;
        uint32_t length;
    } ask = {
        .head = {.nlmsg_len = sizeof ask, .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_index = (int)if_nametoindex(name)},
        .attribute = {.nla_len = sizeof ask.attribute + sizeof ask.length, .nla_type = IFLA_TXQLEN},
        .length = QUEUE_LENGTH,
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr result;
        char rest[512];
    } answer = {.result.error = -EIO};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool ok = fd >= 0 && send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask && recv(fd, &answer, sizeof answer, 0) > 0;
    if (fd >= 0) {
        close(fd);
    }
    errno = ok ? -answer.result.error : errno;
    return ok && answer.result.error == 0;
}

/* Address, size of packets, queue, and the default route; also the loopback device. */
static bool configure(const struct wan_network *n, const struct wan_host *h, int fd)
{
    struct ifreq r = {.ifr_mtu = (int)h->values.mtu}, lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct rtentry route = {.rt_flags = RTF_UP, .rt_dst = inet_of(0), .rt_genmask = inet_of(0)};
    char name[WAN_NAME];
    snprintf(name, sizeof name, "%s", h->name);
    memcpy(r.ifr_name, name, sizeof name);
    route.rt_dev = name;
    bool ok = ioctl(fd, SIOCSIFFLAGS, &lo) == 0 && ioctl(fd, SIOCSIFMTU, &r) == 0;
    ok = ok && set_queue(name);
    r.ifr_addr = inet_of(h->values.address);
    ok = ok && ioctl(fd, SIOCSIFADDR, &r) == 0;
    r.ifr_netmask = inet_of(UINT32_MAX << (32 - prefix_of(n)));
    ok = ok && ioctl(fd, SIOCSIFNETMASK, &r) == 0;
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    return ok && ioctl(fd, SIOCSIFFLAGS, &r) == 0 && ioctl(fd, SIOCADDRT, &route) == 0;
}

/* The third of three numbers, which is the limit of auto-tuning; the first two stay. */
static bool set_limit(const char *path, uint64_t bytes)
{
    unsigned long least = 0, usual = 0;
    char text[96];
    FILE *f = fopen(path, "re");
    bool ok = f != NULL && fscanf(f, "%lu %lu", &least, &usual) == 2;
    if (f != NULL) {
        fclose(f);
    }
    usual = usual < bytes ? usual : bytes;
    snprintf(text, sizeof text, "%lu %lu %llu", least < usual ? least : usual, usual, (unsigned long long)bytes);
    return ok && write_file(path, text);
}

static bool set_tcp(const struct wan_host *h, char *error)
{
    const struct wan_values *v = &h->values;
    if (v->tcp_wmem_bytes > 0 && !set_limit("/proc/sys/net/ipv4/tcp_wmem", v->tcp_wmem_bytes)) {
        return wan_refuse(error, "host '%s': tcp_wmem: %s: leave the key out", h->name, strerror(errno));
    }
    if (v->tcp_rmem_bytes > 0 && !set_limit("/proc/sys/net/ipv4/tcp_rmem", v->tcp_rmem_bytes)) {
        return wan_refuse(error, "host '%s': tcp_rmem: %s: leave the key out", h->name, strerror(errno));
    }
    if (v->congestion[0] != 0 && !write_file("/proc/sys/net/ipv4/tcp_congestion_control", v->congestion)) {
        return wan_refuse(error, "host '%s': congestion '%s': %s: give one that net.ipv4.tcp_allowed_congestion_control has", h->name,
                      v->congestion, strerror(errno));
    }
    return true;
}

static bool make_host(struct visit *v)
{
    const struct wan_host *h = &v->network->hosts[v->index];
    struct wan_space *s = v->space;
    char path[96];
    s->net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (s->net < 0) {
        return wan_refuse(v->error, "host '%s': network namespace: %s", h->name, strerror(errno));
    }
    if (!make_device(s, h->name, v->error)) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", h->name);
    (void)write_file(path, "1"); /* where there is no IPv6 there is nothing to switch off */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && configure(v->network, h, fd);
    if (!ok) {
        (void)wan_refuse(v->error, "host '%s': address and routes: %s", h->name, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return ok && set_tcp(h, v->error);
}

bool wan_space_open(const struct wan_network *n, unsigned index, struct wan_space *out, char error[WAN_ERROR])
{
    struct visit v = {.net = -1, .act = make_host, .network = n, .index = index, .space = out, .error = error};
    *out = (struct wan_space){.net = -1, .device = -1};
    if (!visit(&v)) {
        wan_space_close(out);
        return false;
    }
    return true;
}

void wan_space_close(struct wan_space *s)
{
    if (s->device >= 0) {
        close(s->device);
    }
    if (s->net >= 0) {
        close(s->net);
    }
    *s = (struct wan_space){.net = -1, .device = -1};
}

bool wan_space_enter(const struct wan_space *s)
{
    return setns(s->net, CLONE_NEWNET) == 0;
}

static bool make_socket(struct visit *v)
{
    v->result = socket(AF_INET, v->type | SOCK_CLOEXEC, 0);
    return v->result >= 0;
}

int wan_space_socket(const struct wan_space *s, int type)
{
    struct visit v = {.net = s->net, .act = make_socket, .type = type};
    return visit(&v) ? v.result : -1;
}

static bool read_unread(struct visit *v)
{
    char line[512];
    FILE *f = fopen("/proc/thread-self/net/dev", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':'), *name = line + strspn(line, " ");
        unsigned long long drops = 0;
        if (colon == NULL) {
            continue;
        }
        *colon = 0;
        if (strcmp(name, v->name) == 0 && sscanf(colon + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &drops) == 1) {
            v->count = drops;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return f != NULL;
}

uint64_t wan_space_unread(const struct wan_space *s, const char *name)
{
    struct visit v = {.net = s->net, .act = read_unread, .name = name};
    return visit(&v) ? v.count : 0;
}
