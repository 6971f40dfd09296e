/* bench_command.h - "pccl bench".
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_COMMAND_H
#define PCCL_BENCH_COMMAND_H

/* Runs it with the words behind "bench"; the exit status. */
int bench_command(int count, char **words);

#endif
