/* seed_names.h - the names that listings of getting_started.md use and that nothing declares, and no others.
 *
 * Included in front of listing SEED_LISTING by the compiler's command line; the listings themselves are not touched.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SEED_NAMES_H
#define PCCL_TESTS_SEED_NAMES_H

#if SEED_LISTING == 2
/* The program calls cclInit where the interface has pcclInit. */
#define cclInit pcclInit

#elif SEED_LISTING == 7
/* The program reads shared_revision, "the current step", which it never declares: here it is the revision of the state
 * that it synchronises, and 0 where that state is made out of it. */
static bool shared_revision_made = false;
#define shared_revision (shared_revision_made ? sstate.revision : (shared_revision_made = true, 0ul))

#elif SEED_LISTING >= 3 && SEED_LISTING <= 6
/* Fragments stand in the middle of a program: its headers, its check macro and its variables. */
#include <pccl.h>

#include <cassert>
#include <chrono>
#include <iostream>
#include <thread>
#define PCCL_CHECK(status)                                                                                             \
    {                                                                                                                  \
        if ((status) != pcclSuccess) {                                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
    }
extern pcclComm_t *communicator, *comm;
extern uint64_t current_revision, i;

#if SEED_LISTING == 6
/* This one declares `result` twice in one scope, as the buffer and as the status, which no compiler takes.  The first and
 * third time it says `result` it means the buffer, the second and fourth time the status. */
#define SEED_JOIN_(a, b) a##b
#define SEED_JOIN(a, b) SEED_JOIN_(a, b)
#define SEED_RESULT_0 result_buffer
#define SEED_RESULT_1 result_status
#define SEED_RESULT_2 result_buffer
#define SEED_RESULT_3 result_status
#define result SEED_JOIN(SEED_RESULT_, __COUNTER__)
#endif
#endif

#endif
