/* topo_command.h - "pccl topo": how the members of a group are linked, and what is made of it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPO_COMMAND_H
#define PCCL_TOPO_COMMAND_H

int topo_command(int count, char **words);

#endif
