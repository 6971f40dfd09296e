/* wan_refuse.h - how the emulator says what is wrong: to its caller, or to the person who started it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_REFUSE_H
#define PCCL_WAN_REFUSE_H

#include <stdbool.h>

#include "pccl/wan_network.h"

/* Writes the sentence to `error`; always false. */
__attribute__((format(printf, 2, 3))) bool wan_refuse(char error[WAN_ERROR], const char *format, ...);
/* Prints the sentence on standard error, behind the program's name. */
__attribute__((format(printf, 1, 2))) void wan_complain(const char *format, ...);

#endif
