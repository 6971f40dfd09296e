/* site_gateways.h - one member of each site through which all goes that leaves the site.
 *
 * One idea: streams that share a link get unequal parts of it, and one that was slow for a while stays slow after the others have ended.  So
 * few paths between sites are better than many that are as fast in theory.
 * Only sites whose link is known to have a limit have a gateway: elsewhere more paths may carry more.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_SITE_GATEWAYS_H
#define PCCL_TOPOLOGY_SITE_GATEWAYS_H

#include "topology/network_model.h"

/* The paths of the network without those between two sites that do not end at their gateways, in path_bps[n][n].  The gateway of a site is the
 * member with the fastest link, of equal ones the first.  False, nothing to be used: no site has both a limit and several members. */
bool site_gateways_paths(const struct network *net, double *path_bps);

#endif
