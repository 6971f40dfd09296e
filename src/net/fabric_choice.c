/* fabric_choice.c - what PCCL_NET, or a communicator, asks for, in NCCL's words.
 * SPDX-License-Identifier: MIT */
#include <strings.h>

#include "net/fabric.h"

pccl_status fabric_read_choice(const char *what, const char *text, enum fabric_choice *choice_out, struct err *err)
{
    *choice_out = FABRIC_AUTO;
    if (text == NULL || *text == '\0') {
        return PCCL_OK;
    }
    if (strcasecmp(text, "Socket") != 0 && strcasecmp(text, "OFI") != 0) {
        return err_set(err, PCCL_ERR_INVALID, "%s '%.20s': expected Socket or OFI", what, text);
    }
    *choice_out = strcasecmp(text, "OFI") == 0 ? FABRIC_ALWAYS : FABRIC_NEVER;
    return PCCL_OK;
}
