/* partners.c - the partners of a plan: those that it has steps with, numbered, so that executors count by these and not by members.
 *
 * Its one idea: a list of their ranks, ascending, made once with the plan, which is kept for calls that repeat; a number is found there
 * by binary search, and nothing has an entry for each member.  Invariant: each rank that a step names, other than this one's, is in the
 * list once, and no other is; so partners come in the order of ranks.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include <string.h>

/* The number of the first that is not before this rank. */
static uint32_t place_of(const struct plan *plan, uint32_t rank)
{
    uint32_t low = 0, high = plan->partner_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->partners[middle] < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t plan_number(const struct plan *plan, uint32_t rank)
{
    uint32_t at = place_of(plan, rank);
    return at < plan->partner_count && plan->partners[at] == rank ? at : PLAN_NOBODY;
}

static bool names_other(const struct plan *plan, const struct plan_step *step)
{
    switch ((enum step_kind)step->kind) {
    case STEP_FOLD:
        return step->rank != plan->params.rank;
    case STEP_GIVE:
    case STEP_SEND:
    case STEP_RECV:
        return true;
    case STEP_FINISH:
    case STEP_COPY:
    case STEP_PACK:
        break;
    }
    return false;
}

void plan_number_partners(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint32_t rank = plan->steps[i].rank, at = place_of(plan, rank);
        if (names_other(plan, &plan->steps[i]) && (at == plan->partner_count || plan->partners[at] != rank)) {
            memmove(plan->partners + at + 1, plan->partners + at, (plan->partner_count - at) * sizeof *plan->partners);
            plan->partners[at] = rank;
            plan->partner_count++;
        }
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct plan_step *step = &plan->steps[i];
        step->partner = names_other(plan, step) ? plan_number(plan, step->rank) : PLAN_NOBODY;
    }
}
