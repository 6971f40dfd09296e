/* sim_cluster.c - virtual time: the heap of events, the trace, and who gets each event.
 *
 * One idea: everything that happens is an event with a time and a number, so a run is a function of its seed.  Events of a
 * stopped process wait in a list of their own and come back in their order when it goes on.
 * Invariant: time never goes back; two events of one time come in the order in which they were posted.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "reset_fault.h"
#include "sim_window.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *cluster_grow(void *memory, uint32_t *capacity, uint32_t need, size_t item)
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

static void heap_push(struct cluster *cl, struct event e)
{
    cl->heap = cluster_grow(cl->heap, &cl->heap_capacity, cl->heap_count + 1, sizeof *cl->heap);
    uint32_t i = cl->heap_count++;
    while (i > 0 && event_before(&e, &cl->heap[(i - 1) / 2])) {
        cl->heap[i] = cl->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    cl->heap[i] = e;
}

static struct event heap_pop(struct cluster *cl)
{
    struct event top = cl->heap[0], last = cl->heap[--cl->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= cl->heap_count) {
            break;
        }
        if (child + 1 < cl->heap_count && event_before(&cl->heap[child + 1], &cl->heap[child])) {
            child++;
        }
        if (!event_before(&cl->heap[child], &last)) {
            break;
        }
        cl->heap[i] = cl->heap[child];
        i = child;
    }
    cl->heap[i] = last;
    return top;
}

void cluster_post(struct cluster *cl, int64_t delay, enum event_kind kind, uint16_t node, uint32_t a, uint64_t b, uint64_t c)
{
    int64_t at = delay < 0 ? cl->now : cl->now + delay;
    heap_push(cl, (struct event){.at = at, .order = cl->order++, .kind = (uint16_t)kind, .node = node, .a = a, .b = b, .c = c});
}

bool cluster_chance(struct cluster *cl, uint32_t percent)
{
    return percent != 0 && rng_below(&cl->rng, 100) < percent;
}

int64_t cluster_delay(struct cluster *cl)
{
    return cl->opt.latency_ns + (cl->opt.jitter_ns != 0 ? (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.jitter_ns) : 0);
}

/* What the master says to one may come long after what another, which heard it first, has said since (B15). */
int64_t cluster_distance(const struct cluster *cl, uint16_t from, uint16_t to)
{
    uint64_t a = from < to ? from : to, b = from < to ? to : from, h = mix64(mix64(cl->opt.seed, 96), a * CLUSTER_NODES * 2 + b);
    return cl->opt.places && h % 2 == 0 ? cl->opt.latency_ns * (int64_t)(1 + h / 2 % PLACES_APART) : 0;
}

static void cluster_line(struct cluster *cl, const char *line)
{
    if (cl->tail != NULL) {
        snprintf(cl->tail[cl->tail_count++ % CLUSTER_TAIL], CLUSTER_LINE, "%s", line);
    }
}

void cluster_trace(struct cluster *cl, uint16_t node, const char *text, uint64_t a, uint64_t b)
{
    cl->trace_hash = mix64(mix64(mix64(cl->trace_hash, (uint64_t)cl->now), node), mix64(a, b));
    if (!cl->trace && cl->tail == NULL) {
        return;
    }
    char line[CLUSTER_LINE], who[16];
    if (node == CLUSTER_MASTER) {
        snprintf(who, sizeof who, "master");
    } else if (node == CLUSTER_NOBODY) {
        snprintf(who, sizeof who, "cluster");
    } else {
        snprintf(who, sizeof who, "peer %u", node);
    }
    snprintf(line, sizeof line, "[%11.3f] %-8s %s %llx %llx", (double)cl->now / 1e6, who, text, (unsigned long long)a,
             (unsigned long long)b);
    cluster_line(cl, line);
    if (cl->trace) {
        puts(line);
    }
}

void cluster_fail(struct cluster *cl, const char *fmt, ...)
{
    if (cl->failed) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(cl->violation, sizeof cl->violation, fmt, args);
    va_end(args);
    cl->failed = true;
}

uint16_t cluster_node_of(const struct cluster *cl, uint64_t id)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        if (cl->nodes[i].id == id) {
            return (uint16_t)i;
        }
    }
    return CLUSTER_NOBODY;
}

static void cut_one(struct cluster *cl, uint16_t from, uint16_t to, bool cut)
{
    bool lasts = !cut && from < CLUSTER_NODES && to < CLUSTER_NODES && cl->apart[from][to];
    if (cl->cut[from][to] == cut || lasts) {
        return;
    }
    cl->cut[from][to] = cut;
    if (from < cl->node_count && to < cl->node_count) {
        cl->nodes[from].cut_at = cl->nodes[to].cut_at = cl->now;
    }
    cl->cuts += cut ? 1 : -1u;
    if (!cut) {
        channel_healed(cl, from, to);
    }
}

/* Between two processes, in all their worlds. */
void cluster_cut(struct cluster *cl, uint16_t from, uint16_t to, bool cut)
{
    if (!cl->opt.together) {
        cut_one(cl, from, to, cut);
        return;
    }
    for (uint16_t i = 0; i <= CLUSTER_NODES; i++) {
        for (uint16_t k = 0; process_same(cl, from, i) && k <= CLUSTER_NODES; k++) {
            if (process_same(cl, to, k) && !process_same(cl, i, k)) {
                cut_one(cl, i, k, cut);
            }
        }
    }
}

void cluster_freeze(struct cluster *cl, uint16_t node, bool frozen)
{
    cl->still_at = cl->now;
    if (node == CLUSTER_MASTER) {
        cl->master.frozen = frozen;
    }
    for (uint32_t i = 0; i < cl->node_count; i++) {
        cl->nodes[i].frozen = process_same(cl, node, i) ? frozen : cl->nodes[i].frozen;
    }
    if (frozen) {
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cl->parked_count; i++) {
        struct event e = cl->parked[i];
        if (process_same(cl, e.node, node)) {
            e.at = cl->now;
            e.order = cl->order++;
            heap_push(cl, e);
        } else {
            cl->parked[kept++] = e;
        }
    }
    cl->parked_count = kept;
}

static bool cluster_stopped(const struct cluster *cl, uint16_t node)
{
    return node == CLUSTER_MASTER ? cl->master.frozen : node < CLUSTER_NODES && cl->nodes[node].frozen;
}

static void cluster_dispatch(struct cluster *cl, const struct event *e)
{
    switch ((enum event_kind)e->kind) {
    case EVENT_DELIVER:
    case EVENT_CLOSED:
    case EVENT_STUCK:
    case EVENT_WRITABLE:
        channel_event(cl, e);
        break;
    case EVENT_FAULT:
        faults_fire(cl, e->a);
        break;
    case EVENT_FAULT_END:
        faults_end(cl, e->a);
        break;
    case EVENT_HEAL:
        faults_heal(cl);
        break;
    case EVENT_TICK:
    case EVENT_PERSISTED:
    case EVENT_SOLVED:
        if (e->node == CLUSTER_MASTER) {
            master_shell_event(cl, e);
            break;
        }
        node_event(cl, &cl->nodes[e->node], e);
        break;
    case EVENT_DIALLED:
    case EVENT_DIAL_FAILED:
    case EVENT_MASTER_DIAL:
    case EVENT_LINKS:
    case EVENT_STEP:
    case EVENT_LANES_STOP:
    case EVENT_PROGRESS:
    case EVENT_PROGRAM:
    case EVENT_WINDOW:
    case EVENT_MEASURED:
    case EVENT_KNOCK:
        node_event(cl, &cl->nodes[e->node], e);
        break;
    }
}

bool cluster_step(struct cluster *cl)
{
    if (cl->failed || cl->heap_count == 0) {
        return false;
    }
    struct event e = heap_pop(cl);
    if (cluster_stopped(cl, e.node)) {
        cl->parked = cluster_grow(cl->parked, &cl->parked_capacity, cl->parked_count + 1, sizeof *cl->parked);
        cl->parked[cl->parked_count++] = e;
        return true;
    }
    if (e.at == cl->now) {
        if (++cl->idle_steps > 200000) {
            cluster_fail(cl, "time stands still: event kind %u of node %u repeats", e.kind, e.node);
        }
    } else {
        cl->idle_steps = 0;
    }
    cl->now = e.at;
    cl->stats.events++;
    cluster_dispatch(cl, &e);
    if (e.node < CLUSTER_NODES) {
        oracle_node(cl, &cl->nodes[e.node]);
        oracle_deadline(cl, &cl->nodes[e.node]);
    }
    return !cl->failed;
}

static bool cluster_over(const struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        if (cl->nodes[i].alive && !program_ended(&cl->nodes[i])) {
            return false;
        }
    }
    return true;
}

static void cluster_report_hang(struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        if (cl->nodes[i].alive && !program_ended(&cl->nodes[i])) {
            char text[200];
            program_describe(&cl->nodes[i], text, sizeof text);
            cluster_trace(cl, (uint16_t)i, text, cl->nodes[i].view, 0);
            cluster_fail(cl, "liveness: %.3f s after the faults stopped peer %u still %s", (double)(cl->now - cl->heal_at) / 1e9,
                         (unsigned)i, text);
        }
    }
}

void cluster_run(struct cluster *cl)
{
    uint32_t check = 0;
    int64_t since = 0; /* of the ten seconds that pass now */
    uint64_t before = 0, most = 12000000 + 200000 * (uint64_t)cl->opt.peers; /* in these; many that send in small pieces need 13 million */
    while (cluster_step(cl)) {
        if (++check % 64 == 0 && cl->healed && cluster_over(cl)) {
            break;
        }
        if (cl->now > cl->end_at) {
            if (!cluster_over(cl)) {
                cluster_report_hang(cl);
            }
            break;
        }
        if (cl->now - since >= 10 * CLOCK_S) {
            since = cl->now;
            before = cl->stats.events;
        }
        if (cl->stats.events - before > most) {
            cluster_fail(cl, "%llu events in ten seconds", (unsigned long long)most);
        }
    }
    if (!cl->failed) {
        oracle_end(cl);
        oracle_window_end(cl);
    }
}

/* Bursts and refused calls come in three steps at most, and once again; what a call sends to one member, with what is said of it. */
enum { TURNS = 6, CALL_BYTES = 1024 };

void cluster_init(struct cluster *cl, const struct options *opt, bool trace)
{
    random_trees_begin(opt);
    char(*tail)[CLUSTER_LINE] = cl->tail;
    memset(cl, 0, sizeof *cl); /* nothing is left of the seed before */
    cl->opt = *opt;
    cl->rng.state = opt->seed * 0x9E3779B97F4A7C15u + 12345;
    cl->trace_hash = opt->seed;
    cl->trace = trace;
    cl->tail = tail;
    cl->now = CLOCK_S; /* zero means "never" in many places */
    oracle_init(cl);
    master_shell_init(cl);
    if (!opt->scripted) {
        for (uint32_t i = 0; i < opt->peers; i++) {
            int64_t late = cluster_chance(cl, 70) ? 0 : (int64_t)rng_below(&cl->rng, (uint64_t)opt->fault_ns);
            uint32_t world = i % opt->worlds, label = form_world(opt, world) ? 0 : i / opt->worlds % opt->groups;
            node_new(cl, world * CLUSTER_LABELS + label, late);
        }
        faults_draw(cl);
        faults_draw_own(cl);
        crowd_fault(cl);
        poison_draw(cl);
        growth_draw(cl);
        reset_draw(cl);
        process_confine(cl);
        cluster_post(cl, cl->opt.fault_ns, EVENT_HEAL, CLUSTER_NOBODY, 0, 0, 0);
    }
    cl->heal_at = cl->now + cl->opt.fault_ns;
    int64_t hops = opt->bulk ? 2 * (int64_t)opt->peers + 4 : 2; /* a list may wait for each call: twice around, and all say that they hold it */
    int64_t call_ns = hops * (opt->latency_ns + opt->jitter_ns) + slow_ns(opt->rate, CALL_BYTES);
    int64_t ring_ns = 2 * opt->peers * slow_ns(opt->rate, opt->frame_bytes); /* one frame twice around, one line after the other */
    cl->end_at = cl->heal_at + 100 * CLOCK_S + 30 * opt->dead_ns + opt->steps * ring_ns +
                 TURNS * (opt->burst + opt->refused) * call_ns + /* as if calls came one after the other */
                 form_longest_ns(opt);
}

void cluster_fini(struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        node_fini(&cl->nodes[i]);
    }
    master_shell_fini(cl);
    oracle_fini(cl);
    oracle_window_fini(cl);
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        free(cl->channels[i].pipe[0].bytes);
        free(cl->channels[i].pipe[1].bytes);
    }
    free(cl->channels);
    free(cl->heap);
    free(cl->parked);
    cl->channels = NULL;
    cl->heap = cl->parked = NULL;
    cl->channel_count = cl->channel_capacity = cl->heap_capacity = cl->parked_capacity = 0;
}
