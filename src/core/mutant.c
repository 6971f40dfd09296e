/* mutant.c - which mistake is switched on, and the names of all.
 *
 * One idea: names and numbers come from one list.  Invariant: other builds compile this file to nothing.
 * SPDX-License-Identifier: MIT */
#include "core/mutant.h"

#ifdef PCCL_MUTANTS

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int mutant_active;

#define MUTANT_NAME_(name) #name,
static const char *const mutant_names[MUTANT_COUNT] = {"NONE", MUTANT_LIST(MUTANT_NAME_)};

const char *mutant_name(int number)
{
    return number >= 0 && number < MUTANT_COUNT ? mutant_names[number] : NULL;
}

int mutant_find(const char *name)
{
    for (int i = 0; i < MUTANT_COUNT; i++) {
        if (strcmp(mutant_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Every program of such a build, the library in a process of a test included: PCCL_MUTANT=NAME in its environment. */
__attribute__((constructor)) static void mutant_choose(void)
{
    const char *name = getenv("PCCL_MUTANT");
    int found = name == NULL ? MUTANT_NONE : mutant_find(name);
    mutant_active = found < 0 ? MUTANT_NONE : found;
}

#endif
