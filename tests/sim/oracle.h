/* oracle.h - what is checked while a simulated cluster runs, and after which step.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_ORACLE_H
#define PCCL_TESTS_SIM_ORACLE_H

#include "sim_cluster.h"

/* oracle_links.c: pairs without a link, and whether who is excluded may be */
void oracle_links(struct cluster *cl, struct node *n, const struct frame_header *h, const void *payload);

/* oracle.c */
void oracle_init(struct cluster *cl);
void oracle_fini(struct cluster *cl);
void oracle_views(struct cluster *cl);          /* after a step of the master */
void oracle_node(struct cluster *cl, struct node *n);
void oracle_frozen(struct node *n, const unsigned char *frame, uint32_t bytes); /* a frame leaves for the master */
void oracle_decisions(struct cluster *cl, const struct node *at, const struct frame_header *h, const void *payload);
void oracle_end(struct cluster *cl);

/* oracle_calm.c */
void oracle_kept(struct cluster *cl, uint64_t id); /* a view is without that member of the one before */

/* oracle_inside.c */
void oracle_world(struct cluster *cl, const struct node *n, const struct sizes *s); /* the program reads them */
void oracle_known_views(struct cluster *cl);             /* after a step of the master */
void oracle_deadline(struct cluster *cl, struct node *n); /* between two steps of the process */

void oracle_key(struct cluster *cl, uint64_t id, uint32_t key);              /* as its program reads it */
void oracle_by_keys(const struct cluster *cl, struct view_record *v);       /* its members as ranks count them */
uint16_t oracle_node_of(const struct cluster *cl, uint64_t id); /* whose it is, or was */

#endif
