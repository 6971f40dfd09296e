/* process.h - the sessions of one process, and the worlds that something may have gone wrong in.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_PROCESS_H
#define PCCL_TESTS_SIM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct fault;
struct net_address;
struct node;
struct options;

void process_options(struct options *o);
uint16_t process_of(const struct options *o, uint16_t node);       /* the first of its nodes; a node that comes later has one of its own */
bool process_same(const struct cluster *cl, uint32_t a, uint32_t b); /* nodes; what is none, is of no process */
uint16_t process_at(const struct cluster *cl, const struct node *dials, const struct net_address *a); /* its session that is meant */
uint32_t process_others(const struct cluster *cl, const struct node *n); /* nodes that live in other processes */
void process_touch(struct cluster *cl, const struct fault *f, uint16_t relay); /* that fault is about to happen */
void process_confine(struct cluster *cl);                              /* the faults that were drawn */
bool process_calm(const struct cluster *cl, const struct node *n);    /* nothing has gone wrong in the world of this session yet */

#endif
