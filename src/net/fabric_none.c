/* fabric_none.c - in place of the fabric's files, in a build without the headers of libfabric.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "net/fabric.h"

pccl_status fabric_port_open(enum fabric_choice choice, struct fabric_port **port_out, struct err *err)
{
    *port_out = NULL;
    if (choice != FABRIC_ALWAYS) {
        return PCCL_OK;
    }
    return err_set(err, PCCL_ERR_SYSTEM, "PCCL_NET is OFI: this library was built without libfabric's headers; build it where libfabric-dev is "
                   "installed, or use PCCL_NET=Socket");
}

void fabric_port_close(struct fabric_port *p)
{
    (void)p;
}

pccl_status fabric_port_watch(struct fabric_port *p, struct loop *loop, struct err *err)
{
    (void)p;
    (void)loop;
    (void)err;
    return PCCL_OK;
}

void fabric_port_unwatch(struct fabric_port *p)
{
    (void)p;
}

bool fabric_port_offer(const struct fabric_port *p, struct fabric_end *end_out)
{
    (void)p;
    memset(end_out, 0, sizeof *end_out);
    return false;
}

bool fabric_fits(const struct fabric_port *p, const struct fabric_end *theirs)
{
    (void)p;
    (void)theirs;
    return false;
}

bool fabric_suits(const struct fabric_port *p, enum fabric_choice choice)
{
    (void)p;
    (void)choice;
    return false;
}

const char *fabric_port_provider(const struct fabric_port *p)
{
    (void)p;
    return "";
}

pccl_status transport_fabric_take(struct transport *t, struct fabric_port *port, const struct fabric_end *ours,
                                  const struct fabric_end *theirs)
{
    (void)t;
    (void)port;
    (void)ours;
    (void)theirs;
    return PCCL_ERR_NOMEM;
}

bool transport_fabric_failed(const struct transport *t)
{
    (void)t;
    return false;
}
