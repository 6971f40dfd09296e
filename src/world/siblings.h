/* siblings.h - worlds that members of another world create together: all begin, or none does (W10).
 *
 * A split is one formation over several worlds.  Each of them is formed as any world of a given size, and then waits for the
 * others; what fails in one fails in all.  The master makes and forgets a formation, and has the record made for all of it.
 * Invariant: the first failure stands, and there is none any more once the record is on its way.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_SIBLINGS_H
#define PCCL_WORLD_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

struct common;
struct world;

struct siblings {
    uint64_t formation[2];  /* names it, at its parent */
    uint64_t parent;        /* run of the world whose members call */
    uint32_t room;          /* entries of the arrays */
    uint32_t callers, came; /* expected; of whom so many have claimed */
    uint32_t seats;         /* of all its worlds */
    uint32_t worlds, ready; /* that are of it still; of which so many are linked and wait for the others */
    uint32_t placed;        /* entries of place[] */
    uint8_t cause;          /* why it is given up */
    uint64_t culprit;
    char text[BOUNDS_TEXT];
    uint64_t persist;       /* number of its record; 0: nothing is decided */
    bool durable;
    bool touched;           /* in the list of those that the master looks at behind this event */
    struct siblings *touched_next;
    struct siblings *next;  /* of the same parent */
    uint64_t *ids;          /* of the callers in the parent, ascending */
    uint64_t *came_set;     /* which of them have claimed */
    uint32_t *place;        /* of its worlds, in the master's table */
};

size_t siblings_bytes(uint32_t callers);
/* In memory of so many bytes; the master's list of ids follows. */
struct siblings *siblings_init(void *memory, const struct msg_expect *first, struct reader *ids);
/* Whether another call expects the same callers; `ids` is read to its end. */
bool siblings_agree(const struct siblings *s, const struct msg_expect *m, struct reader *ids);
/* This caller has claimed; false: it is none. */
bool siblings_come(struct siblings *s, uint64_t member);
bool siblings_has(const struct siblings *s, uint64_t member); /* ... before */
void siblings_check(const struct siblings *s);
/* Ends it for all, unless that has happened, or its record is on its way. */
void siblings_fail(struct common *c, struct siblings *s, enum cause cause, uint64_t culprit, const char *text);
/* All have come and are linked. */
bool siblings_ready(const struct siblings *s);
/* A caller that has not claimed; 0: none. */
uint64_t siblings_missing(const struct siblings *s);
/* "2 of its 5 callers have not come in time, peer 1.3 the first of them". */
void siblings_missing_text(const struct siblings *s, char *out, size_t size);
/* The master looks at it behind this event. */
void siblings_touch(struct common *c, struct siblings *s);

/* ---- what the master asks of a world ---- */
/* It is one of these from now on. */
void world_join_siblings(struct world *w, struct siblings *s);
struct siblings *world_siblings(const struct world *w);
bool world_called(const struct world *w); /* the others have something for it: it is due at once */
/* Its first view goes on record with those of the others: puts it, behind which `left` records follow. */
void world_decide(struct world *w, struct writer *to, uint64_t number, uint32_t left);
/* The same, and it has none any more: the last of them gives back the memory, else null. */
struct siblings *world_drop_siblings(struct world *w);
/* Of a parent: the formations of its members. */
struct siblings *world_derives(const struct world *w, const uint64_t formation[2]);
void world_adds(struct world *w, struct siblings *s);    /* looks at once whether all callers are still members */
void world_forgets(struct world *w, struct siblings *s);
struct siblings *world_drop_remembered(struct world *w); /* one that has no world any more; null: there is none */
bool world_member(const struct world *w, uint64_t id);   /* accepted */

#endif
