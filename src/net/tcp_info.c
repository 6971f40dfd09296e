/* tcp_info.c - what the kernel knows of a TCP connection.
 * SPDX-License-Identifier: MIT */
#include "net/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

bool tcp_info_read(int fd, struct tcp_numbers *out)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(out, 0, sizeof *out);
    memset(&info, 0, sizeof info); /* an older kernel fills less of it */
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        return false;
    }
    *out = (struct tcp_numbers){
        .rate = info.tcpi_delivery_rate, .app_limited = info.tcpi_delivery_rate_app_limited, .acked = info.tcpi_bytes_acked,
        .delivered = (uint64_t)info.tcpi_delivered * info.tcpi_snd_mss,
        .retransmitted = info.tcpi_bytes_retrans, .unsent = info.tcpi_notsent_bytes, .busy_us = info.tcpi_busy_time,
        .window_us = info.tcpi_rwnd_limited, .buffer_us = info.tcpi_sndbuf_limited, .rtt_us = info.tcpi_rtt,
        .least_rtt_us = info.tcpi_min_rtt != UINT32_MAX ? info.tcpi_min_rtt : 0, .window = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss,
    };
    return true;
}

uint32_t tcp_info_trip_us(int fd)
{
    struct tcp_numbers n;
    return !tcp_info_read(fd, &n) ? 0 : n.least_rtt_us > 0 ? n.least_rtt_us : n.rtt_us;
}
