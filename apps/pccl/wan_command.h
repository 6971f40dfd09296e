/* wan_command.h - "pccl wan": a wide area on one machine.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_COMMAND_H
#define PCCL_WAN_COMMAND_H

int wan_command(int count, char **words);

#endif
