/* records_kept.h - what a master puts on record, read as one that starts again would read it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_RECORDS_KEPT_H
#define PCCL_TESTS_RECORDS_KEPT_H

#include "sim_cluster.h"

struct master_group_view;

void records_clear(struct cluster *cl); /* a master has died with its journal, or the run is over */
void records_put(struct cluster *cl, const void *batch, size_t size, uint64_t number); /* on its way to the journal */
void records_durable(struct cluster *cl, uint64_t number);
/* A view has been published: the records alone give the same one. */
void records_published(struct cluster *cl, const struct master_group_view *g, const uint64_t *ids);

/* A frame leaves: a VIEW must be what its record tells, with the same decisions. */
void records_sent(struct cluster *cl, const void *bytes, size_t size);

#endif
