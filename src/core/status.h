/* status.h - results inside the library, and the text that goes with an error.
 *
 * A function that can fail returns enum pccl_status (must be checked) and fills `err` if given.  Public result codes are
 * made of causes in api.c and nowhere else.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_STATUS_H
#define PCCL_CORE_STATUS_H

#include <stddef.h>

#define PCCL_MUST_CHECK __attribute__((warn_unused_result))
#define PCCL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum pccl_status {
    PCCL_OK = 0,
    PCCL_ERR_AGAIN,    /* not now: would block, no room */
    PCCL_ERR_CLOSED,   /* the other end closed or reset */
    PCCL_ERR_TIMEOUT,  /* a deadline passed */
    PCCL_ERR_NOMEM,
    PCCL_ERR_INVALID,  /* an argument is wrong */
    PCCL_ERR_PROTOCOL, /* bytes from outside are wrong */
    PCCL_ERR_SYSTEM,   /* a system call failed; the text names it */
};
typedef enum pccl_status pccl_status;

struct err {
    char text[256];
};

/* Writes a text (lower case, no full stop, culprit and remedy); returns `st`.  `err` may be null. */
pccl_status err_set(struct err *err, pccl_status st, const char *fmt, ...) PCCL_PRINTF(3, 4);

/* Writes "what: strerror(errno)"; returns PCCL_ERR_SYSTEM. */
pccl_status err_errno(struct err *err, const char *what);

#endif
