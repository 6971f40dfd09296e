/* bench_links.h - plain links between all ranks: a TCP connection, or a ring in shared memory for each direction.
 *
 * What the hardware and the kernel allow is measured over these, with nothing of the library in between.  They are made
 * before the ranks are forked, which inherit them.  Invariant: a reader sees the bytes of a link in their order.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_LINKS_H
#define PCCL_BENCH_LINKS_H

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_LINKS_MOST = 16 }; /* ranks: each pair costs two descriptors */

struct bench_links;
struct bench_wan;

/* Between the hosts of `wan`, null: within this one.  Null: the reason is on standard error. */
struct bench_links *bench_links_open(unsigned world, bool shared_memory, const struct bench_wan *wan);
void bench_links_close(struct bench_links *l);
/* "tcp", "shm". */
const char *bench_links_name(const struct bench_links *l);

/* In a rank: what it calls before each measurement, when nothing is under way between two barriers; false: no memory. */
bool bench_links_begin(struct bench_links *l, unsigned rank);

/* Moves as much as can be moved now; the bytes moved, -1 when the link is broken. */
long bench_links_send(struct bench_links *l, unsigned to, const void *data, size_t bytes);
/* Into `data`, which may be where the bytes belong. */
long bench_links_receive(struct bench_links *l, unsigned from, void *data, size_t bytes);
/* Lends the next bytes, at most `bytes`, a multiple of `element`; 0 if there are not so many.  Given back by _return. */
long bench_links_lend(struct bench_links *l, unsigned from, size_t element, size_t bytes, const unsigned char **data);
void bench_links_return(struct bench_links *l, unsigned from, size_t bytes);

#endif
