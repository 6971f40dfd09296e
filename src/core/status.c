/* status.c - writes the text of an error.
 *
 * One idea: the text is written once, where the culprit is known, and travels unchanged.  Invariant: err->text always
 * ends with a zero; a text that is too long is cut, never refused.
 * SPDX-License-Identifier: MIT */
#include "core/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

pccl_status err_set(struct err *err, pccl_status st, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return st;
}

pccl_status err_errno(struct err *err, const char *what)
{
    int code = errno; /* before anything below may change it */
    char reason[96];
    if (strerror_r(code, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "error %d", code);
    }
    bool short_of = code == EMFILE || code == ENFILE;
    return err_set(err, PCCL_ERR_SYSTEM, "%s: %s%s", what, reason, short_of ? ": raise the limit of open files (ulimit -n)" : "");
}
