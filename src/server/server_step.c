/* server_step.c - one event for the master, and everything that follows from it.
 *
 * One idea: server_run gives the master one event, carries out the actions, and then gives it what those have caused (a
 * client that does not read, a record that has become durable), until nothing is left.
 * Invariant: actions are carried out by the server's thread, in the order of the step, and never start another step.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "server/server_state.h"

void *server_memory(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static bool journal_grow(struct journal *j, size_t size)
{
    size_t capacity = 2 * j->capacity + size;
    unsigned char *grown = realloc(j->bytes, capacity);
    if (grown != NULL) {
        j->bytes = grown;
        j->capacity = capacity;
    }
    return grown != NULL;
}

/* That of a place, for the worlds that have it one after the other; null: no memory. */
static struct journal *journal_of(struct server *s, uint32_t place)
{
    if (place >= s->journal_count) {
        uint32_t count = 2 * place + 8;
        struct journal *grown = realloc(s->journals, count * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        for (uint32_t i = s->journal_count; i < count; i++) {
            journal_init(&grown[i], NULL, 0);
        }
        s->journals = grown;
        s->journal_count = count;
    }
    return &s->journals[place];
}

/* A world that has ended leaves nothing but its name, if that is used. */
static void journal_rest(struct journal *j)
{
    if (j->used == 0) {
        free(j->bytes);
        journal_init(j, NULL, 0);
    }
}

/* Each record to the journal of its world; false: it cannot be kept. */
static bool journal_all(struct server *s, const unsigned char *batch, size_t size)
{
    uint32_t place = 0;
    bool good = journal_whole(batch, size);
    for (size_t from = 0, piece; good && (piece = journal_piece(batch, size, from, &place)) > 0; from += piece) {
        struct journal *j = journal_of(s, place);
        good = j != NULL && (journal_keep(j, batch + from, piece) ||
                             (journal_grow(j, piece) && journal_keep(j, batch + from, piece)));
        if (good) {
            journal_rest(j);
        }
    }
    return good;
}

/* M4: the master is told only of what is on record; a record that cannot be kept ends the run rather than its safety. */
static void act_persist(struct server *s, const struct action *a)
{
    if (!journal_all(s, s->out.bytes + a->frame, a->frame_bytes)) {
        log_line(LOG_ERROR, "the journal cannot keep a record of %u bytes: the run ends", a->frame_bytes);
        atomic_store(&s->stop, true);
        return;
    }
    if (s->durable_count == s->durable_capacity) {
        uint32_t capacity = 2 * s->durable_capacity + 64;
        uint64_t *grown = realloc(s->durable, capacity * sizeof *grown);
        if (grown == NULL) {
            log_line(LOG_ERROR, "no memory to know what is on record: the run ends");
            atomic_store(&s->stop, true);
            return;
        }
        s->durable = grown;
        s->durable_capacity = capacity;
    }
    s->durable[s->durable_count++] = a->value;
}

static void act_send(struct server *s, const struct action *a)
{
    for (uint32_t i = 0; i < a->dests; i++) {
        uint64_t slot = s->out.dest_ids[a->dest + i];
        if (slot < s->config.max_connections && s->clients[slot] != NULL) {
            client_send(s->clients[slot], s->out.bytes + a->frame, a->frame_bytes);
        }
    }
}

static void act_trace(const struct server *s, const struct action *a)
{
    char text[400];
    if (log_enabled(master_trace_level(a))) {
        master_trace_text(s->master, a, text, sizeof text);
        log_line(master_trace_level(a), "%s", text);
    }
}

static void server_act(struct server *s)
{
    for (uint32_t i = 0; i < s->out.count; i++) {
        const struct action *a = &s->out.actions[i];
        switch ((enum master_action)a->kind) {
        case MASTER_SEND:
            act_send(s, a);
            break;
        case MASTER_CLOSE:
            if (a->slot < s->config.max_connections && s->clients[a->slot] != NULL) {
                client_leave(s->clients[a->slot]);
            }
            break;
        case MASTER_PERSIST:
            act_persist(s, a);
            break;
        case MASTER_SOLVE:
            solve_add(s, a->value);
            break;
        case MASTER_TRACE:
            act_trace(s, a);
            break;
        }
    }
}

/* The box is empty between steps, so nothing has to move. */
bool server_fit(struct server *s)
{
    struct outbox_bounds need = master_out_need(s->master);
    if (outbox_holds(&s->out, &need)) {
        return true;
    }
    void *out = server_memory(outbox_memory(&need));
    if (out == NULL) {
        return false;
    }
    free(s->out_memory);
    s->out_memory = out;
    outbox_use(&s->out, out, &need);
    return true;
}

/* What there is no memory for, the master meets as no room: whoever it is for is told. */
static void server_grow(struct server *s, const struct master_event *e)
{
    struct master_want want;
    while (master_growth(s->master, e, &want)) {
        void *memory = server_memory(want.bytes);
        if (memory == NULL) {
            const char *name = master_world_name(s->master, want.world);
            log_line(LOG_WARN, "no memory for a table of %zu bytes%s%s%s", want.bytes, name[0] != 0 ? " of world '" : "", name,
                     name[0] != 0 ? "'" : "");
            break;
        }
        free(master_grow(s->master, &want, memory));
    }
    if (!server_fit(s)) { /* a step that says more than fits would be lost: the run ends rather than its safety */
        log_line(LOG_ERROR, "no memory for what the master may have to say: the run ends");
        atomic_store(&s->stop, true);
    }
}

static void server_step(struct server *s, const struct master_event *e)
{
    outbox_reset(&s->out);
    server_grow(s, e);
    master_step(s->master, clock_now_ns(), e, &s->out);
    server_act(s);
    for (void *memory; (memory = master_reclaim(s->master)) != NULL;) {
        free(memory);
    }
    if (master_poisoned(s->master) && !atomic_exchange(&s->stop, true)) {
        const char *where, *what = master_failure(s->master, &where);
        log_line(LOG_ERROR, "the master failed %s at %s: the run ends; this is a bug, please report it", what, where);
    }
}

void server_run(struct server *s, const struct master_event *e)
{
    if (e != NULL) {
        server_step(s, e);
    }
    while (!list_empty(&s->lost) || s->durable_count > 0) {
        struct master_event next = {.kind = MASTER_PERSISTED};
        if (s->durable_count > 0) {
            next.number = s->durable[0];
            s->durable_count--;
            memmove(s->durable, s->durable + 1, s->durable_count * sizeof *s->durable);
        } else {
            struct client *c = LIST_ENTRY(s->lost.next, struct client, link);
            next = (struct master_event){.kind = MASTER_CLOSED, .connection = c->slot};
            client_drop(c);
        }
        server_step(s, &next);
    }
}
