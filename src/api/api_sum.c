/* api_sum.c - what all calls that sum check: data type, operator and quantisation.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "api/api.h"

/* "field is value: remedy". */
static bool out_of_range(char why[API_WHY], const char *field, unsigned value, const char *range)
{
    snprintf(why, API_WHY, "%s is %d: expected %s", field, (int)value, range);
    return false;
}

bool api_sum(struct comm *c, unsigned datatype, unsigned op, const pcclQuantizationOptions_t *quantization,
             const struct api_sum_fields *fields, struct api_sum *out, char why[API_WHY])
{
    static const pcclQuantizationOptions_t none = {.algorithm = pcclQuantNone};
    const pcclQuantizationOptions_t *q = quantization != NULL ? quantization : &none;
    bool plain = q->algorithm == pcclQuantNone;
    struct numeric n;
    if ((unsigned)datatype >= DTYPE_COUNT) {
        return out_of_range(why, fields->datatype, datatype, API_DATATYPES);
    }
    if ((unsigned)q->algorithm >= QUANT_COUNT) {
        return out_of_range(why, fields->algorithm, (unsigned)q->algorithm, "0 (pcclQuantNone) to 2 (pcclQuantZeroPointScale)");
    }
    if (!plain && (unsigned)q->quantized_datatype >= DTYPE_COUNT) {
        return out_of_range(why, fields->quantized_datatype, (unsigned)q->quantized_datatype, API_DATATYPES);
    }
    *out = (struct api_sum){.type = (enum dtype)datatype, .quant = (enum quant)q->algorithm,
                            .quant_type = plain ? DTYPE_U8 : (enum dtype)q->quantized_datatype};
    if (!api_redop(c, op, out->type, &out->redop, why)) {
        return false;
    }
    if (!numeric_init(&n, out->type, out->redop.op, out->quant, out->quant_type, kernels_get())) {
        bool minmax = out->quant == QUANT_MINMAX;
        snprintf(why, API_WHY, "%s is %d (%s): it takes %s f32 or f64 to %s %s, not %s to %s", fields->algorithm, (int)out->quant,
                 minmax ? "pcclQuantMinMax" : "pcclQuantZeroPointScale", fields->datatype, fields->quantized_last,
                 minmax ? "u8, u16, u32 or u64" : "u8 to u64 or i8 to i64", dtype_name(out->type), dtype_name(out->quant_type));
        return false;
    }
    return true;
}

void api_sum_params(const struct api_sum *sum, struct op_call *call)
{
    call->params.dtype = (uint8_t)sum->type;
    call->params.op = (uint8_t)sum->redop.op;
    call->params.quant = (uint8_t)sum->quant;
    call->params.quant_dtype = (uint8_t)sum->quant_type;
    call->factor = sum->redop.factor;
}
