/* world.c - virtual time: the heap of events, the trace, and who gets each event.
 *
 * One idea: everything that happens is an event with a time and a number, so a run is a function of its seed.  Events of a
 * stopped process wait in a list of their own and come back in their order when it goes on.
 * Invariant: time never goes back; two events of one time come in the order in which they were posted.
 * SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *world_grow(void *memory, uint32_t *capacity, uint32_t need, size_t item)
{
    if (need <= *capacity) {
        return memory;
    }
    uint32_t more = *capacity == 0 ? 16 : *capacity;
    while (more < need) {
        more *= 2;
    }
    memory = realloc(memory, more * item);
    if (memory == NULL) {
        abort();
    }
    *capacity = more;
    return memory;
}

static bool event_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void heap_push(struct world *w, struct event e)
{
    w->heap = world_grow(w->heap, &w->heap_capacity, w->heap_count + 1, sizeof *w->heap);
    uint32_t i = w->heap_count++;
    while (i > 0 && event_before(&e, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
}

static struct event heap_pop(struct world *w)
{
    struct event top = w->heap[0], last = w->heap[--w->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= w->heap_count) {
            break;
        }
        if (child + 1 < w->heap_count && event_before(&w->heap[child + 1], &w->heap[child])) {
            child++;
        }
        if (!event_before(&w->heap[child], &last)) {
            break;
        }
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

void world_post(struct world *w, int64_t delay, enum event_kind kind, uint16_t node, uint32_t a, uint64_t b, uint64_t c)
{
    int64_t at = delay < 0 ? w->now : w->now + delay;
    heap_push(w, (struct event){.at = at, .order = w->order++, .kind = (uint16_t)kind, .node = node, .a = a, .b = b, .c = c});
}

bool world_chance(struct world *w, uint32_t percent)
{
    return percent != 0 && rng_below(&w->rng, 100) < percent;
}

int64_t world_delay(struct world *w)
{
    return w->opt.latency_ns + (w->opt.jitter_ns != 0 ? (int64_t)rng_below(&w->rng, (uint64_t)w->opt.jitter_ns) : 0);
}

static void world_line(struct world *w, const char *line)
{
    if (w->tail != NULL) {
        snprintf(w->tail[w->tail_count++ % WORLD_TAIL], WORLD_LINE, "%s", line);
    }
}

void world_trace(struct world *w, uint16_t node, const char *text, uint64_t a, uint64_t b)
{
    w->trace_hash = mix64(mix64(mix64(w->trace_hash, (uint64_t)w->now), node), mix64(a, b));
    if (!w->trace && w->tail == NULL) {
        return;
    }
    char line[WORLD_LINE], who[16];
    if (node == WORLD_MASTER) {
        snprintf(who, sizeof who, "master");
    } else if (node == WORLD_NOBODY) {
        snprintf(who, sizeof who, "world");
    } else {
        snprintf(who, sizeof who, "peer %u", node);
    }
    snprintf(line, sizeof line, "[%11.3f] %-8s %s %llx %llx", (double)w->now / 1e6, who, text, (unsigned long long)a,
             (unsigned long long)b);
    world_line(w, line);
    if (w->trace) {
        puts(line);
    }
}

void world_fail(struct world *w, const char *fmt, ...)
{
    if (w->failed) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(w->violation, sizeof w->violation, fmt, args);
    va_end(args);
    w->failed = true;
}

uint16_t world_node_of(const struct world *w, uint64_t id)
{
    for (uint32_t i = 0; i < w->node_count; i++) {
        if (w->nodes[i].id == id) {
            return (uint16_t)i;
        }
    }
    return WORLD_NOBODY;
}

void world_cut(struct world *w, uint16_t from, uint16_t to, bool cut)
{
    bool lasts = !cut && from < WORLD_NODES && to < WORLD_NODES && w->apart[from][to];
    if (w->cut[from][to] == cut || lasts) {
        return;
    }
    w->cut[from][to] = cut;
    if (from < w->node_count && to < w->node_count) {
        w->nodes[from].cut_at = w->nodes[to].cut_at = w->now;
    }
    w->cuts += cut ? 1 : -1u;
    if (!cut) {
        channel_healed(w, from, to);
    }
}

void world_freeze(struct world *w, uint16_t node, bool frozen)
{
    w->still_at = w->now;
    if (node == WORLD_MASTER) {
        w->master.frozen = frozen;
    } else {
        w->nodes[node].frozen = frozen;
    }
    if (frozen) {
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->parked_count; i++) {
        struct event e = w->parked[i];
        if (e.node == node) {
            e.at = w->now;
            e.order = w->order++;
            heap_push(w, e);
        } else {
            w->parked[kept++] = e;
        }
    }
    w->parked_count = kept;
}

static bool world_stopped(const struct world *w, uint16_t node)
{
    return node == WORLD_MASTER ? w->master.frozen : node < WORLD_NODES && w->nodes[node].frozen;
}

static void world_dispatch(struct world *w, const struct event *e)
{
    switch ((enum event_kind)e->kind) {
    case EVENT_DELIVER:
    case EVENT_CLOSED:
    case EVENT_STUCK:
    case EVENT_WRITABLE:
        channel_event(w, e);
        break;
    case EVENT_FAULT:
        faults_fire(w, e->a);
        break;
    case EVENT_FAULT_END:
        faults_end(w, e->a);
        break;
    case EVENT_HEAL:
        faults_heal(w);
        break;
    case EVENT_TICK:
    case EVENT_PERSISTED:
    case EVENT_SOLVED:
        if (e->node == WORLD_MASTER) {
            master_shell_event(w, e);
            break;
        }
        node_event(w, &w->nodes[e->node], e);
        break;
    case EVENT_DIALLED:
    case EVENT_DIAL_FAILED:
    case EVENT_MASTER_DIAL:
    case EVENT_LINKS:
    case EVENT_STEP:
    case EVENT_LANES_STOP:
    case EVENT_PROGRESS:
    case EVENT_PROGRAM:
    case EVENT_MEASURED:
        node_event(w, &w->nodes[e->node], e);
        break;
    }
}

bool world_step(struct world *w)
{
    if (w->failed || w->heap_count == 0) {
        return false;
    }
    struct event e = heap_pop(w);
    if (world_stopped(w, e.node)) {
        w->parked = world_grow(w->parked, &w->parked_capacity, w->parked_count + 1, sizeof *w->parked);
        w->parked[w->parked_count++] = e;
        return true;
    }
    if (e.at == w->now) {
        if (++w->idle_steps > 200000) {
            world_fail(w, "time stands still: event kind %u of node %u repeats", e.kind, e.node);
        }
    } else {
        w->idle_steps = 0;
    }
    w->now = e.at;
    w->stats.events++;
    world_dispatch(w, &e);
    if (e.node < WORLD_NODES) {
        oracle_node(w, &w->nodes[e.node]);
        oracle_deadline(w, &w->nodes[e.node]);
    }
    return !w->failed;
}

static bool world_over(const struct world *w)
{
    for (uint32_t i = 0; i < w->node_count; i++) {
        if (w->nodes[i].alive && !program_ended(&w->nodes[i])) {
            return false;
        }
    }
    return true;
}

static void world_report_hang(struct world *w)
{
    for (uint32_t i = 0; i < w->node_count; i++) {
        if (w->nodes[i].alive && !program_ended(&w->nodes[i])) {
            char text[200];
            program_describe(&w->nodes[i], text, sizeof text);
            world_trace(w, (uint16_t)i, text, w->nodes[i].view, 0);
            world_fail(w, "liveness: %.3f s after the faults stopped peer %u still %s", (double)(w->now - w->heal_at) / 1e9,
                       (unsigned)i, text);
        }
    }
}

void world_run(struct world *w)
{
    uint32_t check = 0;
    while (world_step(w)) {
        if (++check % 64 == 0 && w->healed && world_over(w)) {
            break;
        }
        if (w->now > w->end_at) {
            if (!world_over(w)) {
                world_report_hang(w);
            }
            break;
        }
        if (w->stats.events > 12000000) {
            world_fail(w, "twelve million events and no end");
        }
    }
    if (!w->failed) {
        oracle_end(w);
    }
}

void world_init(struct world *w, const struct options *opt, bool trace)
{
    w->opt = *opt;
    w->rng.state = opt->seed * 0x9E3779B97F4A7C15u + 12345;
    w->now = 0;
    w->order = 0;
    w->heap_count = w->parked_count = 0;
    w->channel_count = w->channel_first_free = 0;
    w->node_count = 0;
    memset(w->cut, 0, sizeof w->cut);
    memset(w->apart, 0, sizeof w->apart);
    w->cuts = 0;
    w->fault_count = w->armed = 0;
    w->apart_any = false;
    w->still_at = 0;
    w->healed = false;
    w->trace_hash = opt->seed;
    w->trace = trace;
    w->tail_count = 0;
    w->failed = false;
    w->violation[0] = 0;
    w->idle_steps = w->odd_ops = w->burst_launched = w->lies = 0;
    memset(&w->stats, 0, sizeof w->stats);
    w->now = CLOCK_S; /* zero means "never" in many places */
    oracle_init(w);
    master_shell_init(w);
    if (!opt->scripted) {
        for (uint32_t i = 0; i < opt->peers; i++) {
            int64_t late = world_chance(w, 70) ? 0 : (int64_t)rng_below(&w->rng, (uint64_t)opt->fault_ns);
            node_new(w, i % opt->groups, late);
        }
        faults_draw(w);
        crowd_fault(w);
        poison_draw(w);
        growth_draw(w);
        world_post(w, w->opt.fault_ns, EVENT_HEAL, WORLD_NOBODY, 0, 0, 0);
    }
    w->heal_at = w->now + w->opt.fault_ns;
    w->end_at = w->heal_at + 100 * CLOCK_S + 30 * opt->dead_ns;
}

void world_fini(struct world *w)
{
    for (uint32_t i = 0; i < w->node_count; i++) {
        node_fini(&w->nodes[i]);
    }
    master_shell_fini(w);
    oracle_fini(w);
    for (uint32_t i = 0; i < w->channel_count; i++) {
        free(w->channels[i].pipe[0].bytes);
        free(w->channels[i].pipe[1].bytes);
    }
    free(w->channels);
    free(w->heap);
    free(w->parked);
    w->channels = NULL;
    w->heap = w->parked = NULL;
    w->channel_count = w->channel_capacity = w->heap_capacity = w->parked_capacity = 0;
}
