/* cost.c - the formulas.
 *
 * Its one idea: a resource (uplink, downlink, path) with rate C and load L, in buffers, needs L S / C; the fullest one
 * decides.  All links are full duplex.
 * Invariant: chunks are never longer than what is sent in one piece.
 * SPDX-License-Identifier: MIT */
#include "topology/cost.h"

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double path_bps(const struct cost_net *net, size_t from, size_t to)
{
    return net->path_bps == NULL ? __builtin_inf() : net->path_bps[from * net->n + to];
}

static double link_bps(const struct cost_net *net, size_t i)
{
    return least(net->up_bps[i], net->down_bps[i]);
}

/* Slowest edge of a ring. */
static double ring_bps(const struct cost_net *net, const uint16_t *order)
{
    double b = __builtin_inf();
    for (size_t i = 0; i < net->n; i++) {
        size_t from = order[i], to = order[i + 1 == net->n ? 0 : i + 1];
        b = least(b, least(path_bps(net, from, to), least(net->up_bps[from], net->down_bps[to])));
    }
    return b;
}

double cost_ring_slices_s(const struct cost_net *net, const uint16_t *order, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    double n = (double)net->n, slice_s = job.bytes * 8 / (n * ring_bps(net, order));
    return 2 * (n - 1) * (slice_s + net->delay_mean_s);
}

double cost_ring_s(const struct cost_net *net, const uint16_t *order, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    double n = (double)net->n, hops = 2 * (n - 1), b = ring_bps(net, order);
    if (!(b > 0)) {
        return __builtin_inf();
    }
    double slice_s = job.bytes * 8 / (n * b), chunk_s = least(job.chunk_bytes * 8 / b, slice_s);
    return most(hops * slice_s + net->delay_mean_s + chunk_s, hops * (net->delay_mean_s + chunk_s) + slice_s);
}

/* The greatest load / rate, and the rate of the resource that has it. */
struct fullest {
    double s_per_bit, bps;
};

static void fullest_add(struct fullest *f, double load, double bps)
{
    if (load > 0 && load / bps > f->s_per_bit) {
        f->s_per_bit = load / bps;
        f->bps = bps;
    }
}

double cost_direct_s(const struct cost_net *net, const double *share, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    struct fullest f = {0, __builtin_inf()};
    double largest = 0;
    for (size_t i = 0; i < net->n; i++) {
        largest = most(largest, share[i]);
        fullest_add(&f, 1 + ((double)net->n - 2) * share[i], link_bps(net, i));
        for (size_t j = 0; j < i; j++) {
            fullest_add(&f, share[i] + share[j], least(path_bps(net, i, j), path_bps(net, j, i)));
        }
    }
    if (!(f.bps > 0)) {
        return __builtin_inf();
    }
    double chunk_bytes = least(job.chunk_bytes, largest * job.bytes);
    return f.s_per_bit * job.bytes * 8 + 2 * net->delay_max_s + chunk_bytes * 8 / f.bps;
}

double cost_tiny_s(const struct cost_net *net, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    struct fullest f = {0, __builtin_inf()};
    for (size_t i = 0; i < net->n; i++) {
        fullest_add(&f, (double)net->n - 1, link_bps(net, i));
        for (size_t j = 0; j < net->n && net->path_bps != NULL; j++) {
            if (i != j) {
                fullest_add(&f, 1, path_bps(net, i, j));
            }
        }
    }
    return f.bps > 0 ? f.s_per_bit * job.bytes * 8 + net->delay_max_s : __builtin_inf();
}

bool cost_choose(const struct cost_net *net, const uint16_t *order, const double *share, unsigned allowed,
                 struct cost_job job, struct cost_choice *out)
{
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        out->predicted_s[a] = __builtin_inf();
    }
    if ((allowed & 1u << COST_TINY) != 0) {
        out->predicted_s[COST_TINY] = cost_tiny_s(net, job);
    }
    if ((allowed & 1u << COST_DIRECT) != 0 && share != NULL) {
        out->predicted_s[COST_DIRECT] = cost_direct_s(net, share, job);
    }
    if ((allowed & 1u << COST_RING) != 0 && order != NULL) {
        out->predicted_s[COST_RING] = cost_ring_s(net, order, job);
    }
    out->algo = COST_TINY;
    for (unsigned a = 1; a < COST_ALGO_COUNT; a++) {
        if (out->predicted_s[a] < out->predicted_s[out->algo]) {
            out->algo = (enum cost_algo)a;
        }
    }
    return out->predicted_s[out->algo] < __builtin_inf();
}

const char *cost_algo_name(enum cost_algo algo)
{
    switch (algo) {
    case COST_TINY:
        return "tiny";
    case COST_DIRECT:
        return "direct";
    case COST_RING:
        return "ring";
    case COST_ALGO_COUNT:
        break;
    }
    return "?";
}
