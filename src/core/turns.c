/* turns.c - see turns.h.
 * SPDX-License-Identifier: MIT */
#include "core/turns.h"

/* Of two that have neither siblings nor parents; the one that comes first, with the other as its first child. */
static struct turn *joined(struct turn *a, struct turn *b)
{
    if (a == NULL || b == NULL) {
        return a == NULL ? b : a;
    }
    if (b->number < a->number) {
        struct turn *c = a;
        a = b;
        b = c;
    }
    b->before = a;
    b->next = a->child;
    if (b->next != NULL) {
        b->next->before = b;
    }
    a->child = b;
    return a;
}

/* Children that have lost their parent, in pairs from the first on, then all pairs from the last on: that is what keeps it cheap. */
static struct turn *adopted(struct turn *child)
{
    struct turn *pairs = NULL, *all = NULL;
    while (child != NULL) {
        struct turn *a = child, *b = a->next;
        child = b != NULL ? b->next : NULL;
        a->next = a->before = NULL;
        if (b != NULL) {
            b->next = b->before = NULL;
        }
        a = joined(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct turn *next = pairs->next;
        pairs->next = NULL;
        all = joined(all, pairs);
        pairs = next;
    }
    return all;
}

void turns_add(struct turns *all, struct turn *t, uint64_t number)
{
    *t = (struct turn){.in = all, .number = number};
    all->first = joined(all->first, t);
}

void turn_leave(struct turn *t)
{
    struct turns *all = t->in;
    if (all == NULL) {
        return;
    }
    struct turn *orphans = adopted(t->child);
    if (t->before == NULL) {
        all->first = orphans;
    } else {
        *(t->before->child == t ? &t->before->child : &t->before->next) = t->next;
        if (t->next != NULL) {
            t->next->before = t->before;
        }
        all->first = joined(all->first, orphans);
    }
    *t = (struct turn){0};
}

struct turn *turns_pop(struct turns *all)
{
    struct turn *t = all->first;
    if (t != NULL) {
        turn_leave(t);
    }
    return t;
}
