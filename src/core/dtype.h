/* dtype.h - element types and operators as the rest of the library sees them (values as in pccl.h).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_DTYPE_H
#define PCCL_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_U8 = 0, DTYPE_I8, DTYPE_I16, DTYPE_U16, DTYPE_U32, DTYPE_I32, DTYPE_U64, DTYPE_I64,
    DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_F64,
    DTYPE_BOOL, DTYPE_F8E4M3, DTYPE_F8E5M2, /* a byte each; nothing is computed with the last two */
    DTYPE_COUNT
};

enum redop { REDOP_SUM = 0, REDOP_AVG, REDOP_PROD, REDOP_MAX, REDOP_MIN, REDOP_AND, REDOP_OR, REDOP_XOR, REDOP_PREMUL, REDOP_COUNT };

enum quant { QUANT_NONE = 0, QUANT_MINMAX, QUANT_ZPS, QUANT_COUNT };

/* Bytes per element; 0 for an unknown type. */
size_t dtype_size(enum dtype type);
const char *dtype_name(enum dtype type); /* "f32"; "?" if unknown */
const char *redop_name(enum redop op);   /* "sum" */
/* Why nothing is computed of this type by this operator; null: it is. */
const char *redop_refusal(enum redop op, enum dtype type);
bool redop_for(enum redop op, enum dtype type); /* both known, and it is */

#endif
