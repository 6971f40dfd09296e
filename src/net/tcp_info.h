/* tcp_info.h - what the kernel knows of a TCP connection.
 *
 * The C library's structure ends after 104 of 280 bytes, and its header and the kernel's exclude each other: hence a file of its own.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_TCP_INFO_H
#define PCCL_NET_TCP_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_numbers {
    uint64_t rate;        /* bytes per second that were delivered last */
    bool app_limited;     /* ... while there was not always something to send */
    uint64_t acked, retransmitted; /* bytes, since the connection was made */
    uint64_t delivered;   /* the same, with those that came out of order; whole packets */
    uint64_t unsent;      /* bytes that wait in it */
    uint64_t busy_us;     /* with bytes under way, of which: */
    uint64_t window_us, buffer_us; /* held back by the receiver's window, by the send buffer */
    uint32_t rtt_us, least_rtt_us; /* smoothed; the least.  0: not known */
    uint64_t window;      /* the congestion window, bytes */
};

/* False, and zeros: no TCP socket, or a system that does not tell. */
bool tcp_info_read(int fd, struct tcp_numbers *out);

/* The least round trip, or the smoothed one where that is not known, in microseconds; 0: neither is. */
uint32_t tcp_info_trip_us(int fd);

#endif
