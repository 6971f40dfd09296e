/* jobs.c - see jobs.h.
 * SPDX-License-Identifier: MIT */
#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holding.h"
#include "say.h"

static size_t draw_count(struct dice *d, size_t element, size_t least, size_t most_bytes)
{
    uint64_t form = dice_below(d, 100);
    size_t most = most_bytes / element, range = form < 50 ? 2000 : form < 80 ? (256u << 10) / element : most;
    if (range > most) {
        range = most;
    }
    return range <= least ? least : least + dice_below(d, range - least + 1);
}

bool job_draw(struct job *j, struct member *m, struct dice *d, size_t most_bytes, uint64_t tag)
{
    static const pcclDataType_t wide[] = {pcclUint64, pcclInt64, pcclDouble}, coarse[] = {pcclUint8, pcclUint16},
                                zero_point[] = {pcclInt8, pcclInt16, pcclUint8, pcclUint16};
    memset(j, 0, sizeof *j);
    j->tag = tag;
    j->number = (int)m->acts_begun++;
    j->attempt = -1;
    j->in_place = dice_percent(d, 50);
    j->c.type = (pcclDataType_t)dice_below(d, 12);
    j->c.op = (pcclRedOp_t)dice_below(d, j->c.type < pcclFloat16 ? 8 : 5); /* those of bits are for integers */
    bool real = j->c.type == pcclFloat || j->c.type == pcclDouble;
    j->c.rough = real && dice_percent(d, 50);
    if (real && dice_percent(d, 30) && most_bytes >= 4096) {
        j->c.quantised = dice_percent(d, 50) ? pcclQuantMinMax : pcclQuantZeroPointScale;
        j->c.quantised_to = j->c.quantised == pcclQuantMinMax ? coarse[dice_below(d, 2)] : zero_point[dice_below(d, 4)];
    }
    if (dice_percent(d, 15)) { /* few elements, or none: sums of wide types can still tell who took part */
        j->c = (struct contribution){.type = wide[dice_below(d, 3)], .op = pcclSum};
        j->c.count = dice_below(d, 30);
    } else {
        j->c.count = 64; /* contribution_telling depends on it */
        j->c.count = draw_count(d, contribution_element_bytes(j->c.type), contribution_telling(&j->c) + 8, most_bytes);
    }
    j->send = malloc(contribution_bytes(&j->c) + 8);
    j->recv = j->in_place ? j->send : malloc(contribution_bytes(&j->c) + 8);
    return j->send != NULL && j->recv != NULL;
}

void job_free(struct job *j)
{
    if (!j->in_place) {
        free(j->recv);
    }
    free(j->send);
    j->send = j->recv = NULL;
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = 0;
    for (; *text != 0; text++) {
        h = dice_hash(h, (unsigned char)*text);
    }
    return h;
}

void job_prepare(struct job *j, const struct member *m, char form)
{
    j->attempt++;
    snprintf(j->key, sizeof j->key, "%s.o%03d.%c%d", holding_get_name(m->holding), j->number, form, j->attempt);
    j->c.call = hash_text(j->key);
    contribution_fill(&j->c, m->key, j->send);
    if (!j->in_place) {
        memset(j->recv, 0xA5, contribution_bytes(&j->c));
    }
}

pcclReduceDescriptor_t job_descriptor(const struct job *j)
{
    return (pcclReduceDescriptor_t){.count = j->c.count,
                                    .op = j->c.op,
                                    .tag = j->tag,
                                    .src_descriptor = {.datatype = j->c.type},
                                    .quantization_options = {.quantized_datatype = j->c.quantised_to,
                                                             .algorithm = j->c.quantised}};
}

void job_judge_either(struct job *j, const struct member *m)
{
    char text[CONTRIBUTION_TEXT];
    uint64_t who;
    if (contribution_unchanged(&j->c, m->key, j->send)) {
        return;
    }
    bool right = false;
    for (uint32_t world = 1; j->in_place && world <= PLAN_PEERS && !right; world++) {
        right = contribution_check(&j->c, j->recv, world, &who, text);
    }
    if (!right) {
        say_finding("%s: the buffer is neither input nor result", j->key);
    }
}

pcclResult_t job_judge(struct job *j, const struct member *m, pcclResult_t result, const pcclReduceInfo_t *info)
{
    struct say_outcome o = {.result = result};
    char text[CONTRIBUTION_TEXT];
    j->result = result;
    j->done = result == pcclSuccess;
    if (j->done) {
        o.world = info->local_world_size;
        o.tx_bytes = info->tx_bytes;
        o.rx_bytes = info->rx_bytes;
        o.digest = contribution_digest(j->recv, contribution_bytes(&j->c));
        bool right = contribution_check(&j->c, j->recv, o.world, &o.who, text);
        say_end(j->key, &o);
        if (!right) {
            say_finding("%s: %s", j->key, text);
        }
        if (right && o.who != 0 && (o.who >> m->key & 1) == 0) {
            say_finding("%s: success without this peer's own contribution", j->key);
        }
    } else {
        say_end(j->key, &o);
    }
    if (result == pcclInvalidUsage && atomic_load(&m->destroyed)) {
        job_judge_either(j, m); /* it was destroyed before the await, and the operation may have succeeded */
    } else if ((!j->done || !j->in_place) && !contribution_unchanged(&j->c, m->key, j->send)) {
        say_finding("%s: the input has changed after %s", j->key, pcclGetResultString(result));
    }
    return result;
}
