/* bench_value.h - the values of flags of "pccl bench", and how a wrong one is refused.
 *
 * Each reader sets `out`, or leaves it alone, says on standard error what the flag takes, and returns false.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_VALUE_H
#define PCCL_BENCH_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* One sentence on standard error; false, always. */
__attribute__((format(printf, 1, 2))) bool bench_refuse(const char *format, ...);
bool bench_value_int(const char *flag, const char *text, long least, long most, int *out);
bool bench_value_unsigned(const char *flag, const char *text, long least, long most, unsigned *out);
bool bench_value_bool(const char *flag, const char *text, bool *out);
/* K, M and G are powers of 1024. */
bool bench_value_bytes(const char *flag, const char *text, uint64_t *out);

#endif
