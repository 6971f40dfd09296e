/* fds.h - the descriptors that belong to the library, so that a forked child can let go of them.
 *
 * A child that kept a parent's sockets would hide the parent's death from its peers.  The table is a bit per number, atomic,
 * because the child's handler, installed with the first descriptor, may take no lock.  Invariant: a bit is set only while this library owns the number.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_FDS_H
#define PCCL_NET_FDS_H

#include <stdint.h>

enum { FDS_MOST = 1 << 16 };

/* Puts a fresh descriptor on record; a number too large for the table is closed, and -1 returned with errno EMFILE. */
int fds_own(int fd);

/* Takes it off the record and closes it; -1 does nothing. */
void fds_close(int fd);

#endif
