/* dtype.c - sizes and names of element types and operators.
 *
 * Tables indexed by the enums of dtype.h.  Invariant: a value outside an enum gets size 0 and the name "?".
 * SPDX-License-Identifier: MIT */
#include "core/dtype.h"

static const struct {
    size_t size;
    const char *name;
} dtype_table[DTYPE_COUNT] = {
    [DTYPE_U8] = {1, "u8"},   [DTYPE_I8] = {1, "i8"},     [DTYPE_I16] = {2, "i16"}, [DTYPE_U16] = {2, "u16"},
    [DTYPE_U32] = {4, "u32"}, [DTYPE_I32] = {4, "i32"},   [DTYPE_U64] = {8, "u64"}, [DTYPE_I64] = {8, "i64"},
    [DTYPE_F16] = {2, "f16"}, [DTYPE_BF16] = {2, "bf16"}, [DTYPE_F32] = {4, "f32"}, [DTYPE_F64] = {8, "f64"},
    [DTYPE_BOOL] = {1, "bool"}, [DTYPE_F8E4M3] = {1, "f8e4m3"}, [DTYPE_F8E5M2] = {1, "f8e5m2"},
};

static const char *const redop_table[REDOP_COUNT] = {
    [REDOP_SUM] = "sum", [REDOP_AVG] = "avg", [REDOP_PROD] = "prod", [REDOP_MAX] = "max", [REDOP_MIN] = "min",
    [REDOP_AND] = "and", [REDOP_OR] = "or",   [REDOP_XOR] = "xor",
    [REDOP_PREMUL] = "premul_sum",
};

size_t dtype_size(enum dtype type)
{
    return (unsigned)type < DTYPE_COUNT ? dtype_table[type].size : 0;
}

const char *dtype_name(enum dtype type)
{
    return (unsigned)type < DTYPE_COUNT ? dtype_table[type].name : "?";
}

const char *redop_name(enum redop op)
{
    return (unsigned)op < REDOP_COUNT ? redop_table[op] : "?";
}

const char *redop_refusal(enum redop op, enum dtype type)
{
    bool bits = op == REDOP_AND || op == REDOP_OR || op == REDOP_XOR;
    if (type == DTYPE_F8E4M3 || type == DTYPE_F8E5M2) {
        return "numbers of 8 bits travel as bytes, nothing is computed with them";
    }
    if (type == DTYPE_BOOL) {
        bool logical = op == REDOP_SUM || op == REDOP_MAX || op == REDOP_MIN || op == REDOP_AND || op == REDOP_OR;
        return logical ? NULL : "bool has sum, max and or (any is true), min and and (all are)";
    }
    if (op == REDOP_PREMUL && type < DTYPE_F16) {
        return "inputs are multiplied as floats of 16 to 64 bits only";
    }
    return bits && type >= DTYPE_F16 ? "operators of bits are for integer types" : NULL;
}

bool redop_for(enum redop op, enum dtype type)
{
    return (unsigned)op < REDOP_COUNT && (unsigned)type < DTYPE_COUNT && redop_refusal(op, type) == NULL;
}
