/* tcp_estimate.c - see tcp_estimate.h.
 * SPDX-License-Identifier: MIT */
#include "net/tcp_estimate.h"

#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

uint64_t tcp_estimate_bps(int fd)
{
    union tcp_cc_info info;
    char name[16] = "";
    socklen_t size = sizeof info, length = sizeof name - 1;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0 || strcmp(name, "bbr") != 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_CC_INFO, &info, &size) != 0 || size < sizeof info.bbr) {
        return 0;
    }
    uint64_t bytes = (uint64_t)info.bbr.bbr_bw_hi << 32 | info.bbr.bbr_bw_lo;
    return bytes < UINT64_MAX / 8 ? 8 * bytes : 0;
}
