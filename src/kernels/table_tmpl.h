/* table_tmpl.h - the table of one instruction set, from the static kernels above it in the including file.
 *
 * The including file defines KERNELS_NAME and KERNELS_TABLE.
 * SPDX-License-Identifier: MIT */
#define TABLE_ROW(t)                                                                                                   \
    {                                                                                                                  \
        reduce_sum_##t, reduce_sum_##t, reduce_prod_##t, reduce_max_##t, reduce_min_##t, [REDOP_PREMUL] = reduce_sum_##t \
    }

#define TABLE_INTEGERS(t)                                                                                              \
    {                                                                                                                  \
        reduce_sum_##t, reduce_sum_##t, reduce_prod_##t, reduce_max_##t, reduce_min_##t, reduce_and_##t,               \
            reduce_or_##t, reduce_xor_##t                                                                              \
    }

const struct kernels KERNELS_TABLE = {
    .name = KERNELS_NAME,
    .reduce = {[DTYPE_U8] = TABLE_INTEGERS(u8),
               [DTYPE_I8] = TABLE_INTEGERS(i8),
               [DTYPE_I16] = TABLE_INTEGERS(i16),
               [DTYPE_U16] = TABLE_INTEGERS(u16),
               [DTYPE_U32] = TABLE_INTEGERS(u32),
               [DTYPE_I32] = TABLE_INTEGERS(i32),
               [DTYPE_U64] = TABLE_INTEGERS(u64),
               [DTYPE_I64] = TABLE_INTEGERS(i64),
               [DTYPE_F16] = TABLE_ROW(f16),
               [DTYPE_BF16] = TABLE_ROW(bf16),
               [DTYPE_F32] = TABLE_ROW(f32),
               [DTYPE_F64] = TABLE_ROW(f64),
               [DTYPE_BOOL] = {[REDOP_SUM] = reduce_or_bool,
                               [REDOP_MAX] = reduce_or_bool,
                               [REDOP_MIN] = reduce_and_bool,
                               [REDOP_AND] = reduce_and_bool,
                               [REDOP_OR] = reduce_or_bool}},
    .divide = {[DTYPE_U8] = divide_u8,
               [DTYPE_I8] = divide_i8,
               [DTYPE_I16] = divide_i16,
               [DTYPE_U16] = divide_u16,
               [DTYPE_U32] = divide_u32,
               [DTYPE_I32] = divide_i32,
               [DTYPE_U64] = divide_u64,
               [DTYPE_I64] = divide_i64,
               [DTYPE_F32] = divide_f32,
               [DTYPE_F64] = divide_f64},
    .canonical = {[DTYPE_F16] = canonical_f16,
                  [DTYPE_BF16] = canonical_bf16,
                  [DTYPE_F32] = canonical_f32,
                  [DTYPE_F64] = canonical_f64},
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
    .narrow_f16 = narrow_f16,
    .narrow_bf16 = narrow_bf16,
    .quant = &quant_table,
    .hash = &hash_table,
};
