/* list.h - doubly linked list whose links live in the elements.
 *
 * The head is a link as well, so that nothing is a special case.  Invariant: x->next->prev == x for every link in a
 * list; a link in no list points at itself.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_LIST_H
#define PCCL_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev; /* borrowed */
};

static inline void list_init(struct list *link)
{
    link->next = link;
    link->prev = link;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

/* Puts `link`, which is in no list, before `place`; before the head is the end of the list. */
static inline void list_insert(struct list *place, struct list *link)
{
    link->prev = place->prev;
    link->next = place;
    place->prev->next = link;
    place->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
    list_insert(head, link);
}

static inline void list_prepend(struct list *head, struct list *link)
{
    list_insert(head->next, link);
}

/* Takes `link` out; does nothing if it is in no list. */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* First link, taken out; null if there is none. */
static inline struct list *list_pop(struct list *head)
{
    if (list_empty(head)) {
        return NULL;
    }
    struct list *link = head->next;
    list_remove(link);
    return link;
}

/* The element of type `type` whose member `member` is at `link`. */
#define LIST_ENTRY(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

/* `link` may be removed in the body: `after` is read first. */
#define LIST_FOR_EACH(link, after, head)                                                                               \
    for (struct list *link = (head)->next, *after = link->next; link != (head); link = after, after = link->next)

#endif
