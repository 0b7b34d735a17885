// pack_codes and dequantize. Constraint:
//   C30  `codes` names a format (ir/code_format.h); `size` is a constant K >= 1; pack_codes: words
//        i32 [M, ceil(K * bits / 32)], scales [M, groups of K], zeros of i32 and minima of the
//        scales' type with the scales' extents, where the format has them; with scales of parts the
//        scales and minima are their factors [M, ceil(K / 256)], and the parts follow, i32 [M,
//        groups of K]; dequantize: i32 [..., words of a packed row]
#include "ir/code_format.h"
#include "ir/infer_codes.h"

namespace sinter {
Result<TensorType> infer_pack_codes(const Inference& op) {
  SINTER_LET(packed, infer_packed_codes(op, 30));
  const CodeFormat& format = packed.format;
  const TensorType& words = op.operands[0];
  if (words.rank() != 2 || !words.dims[0].is_constant() ||
      words != TensorType{DType::i32, {words.dims[0], code_words(format, packed.length)}})
    return op.reject(30, fmt::format("words {}, must be i32[M, {}]", op.show(words),
                                     code_words(format, packed.length)));
  const Dims groups{words.dims[0], code_groups(format, packed.length)};
  const TensorType scales{format.scale, {words.dims[0], code_scales(format, packed.length)}};
  llvm::SmallVector<TensorType, 4> wanted{words, scales};
  if (format.zeros) wanted.push_back({DType::i32, groups});
  if (format.minima) wanted.push_back(scales);
  if (format.part_bits != 0) wanted.push_back({DType::i32, groups});
  if (op.operands.size() != wanted.size())
    return op.reject(30, fmt::format("codes \"{}\" take {} operands, got {}", to_string(format),
                                     wanted.size(), op.operands.size()));
  for (size_t i = 1; i < wanted.size(); ++i)
    if (op.operands[i] != wanted[i])
      return op.reject(30, fmt::format("operand {} is {}, must be {}", i, op.show(op.operands[i]),
                                       op.show(wanted[i])));
  return TensorType{DType::i32, {words.dims[0], row_words(format, packed.length)}};
}

Result<TensorType> infer_dequantize(const Inference& op) {
  SINTER_LET(packed, infer_packed_codes(op, 30));
  const TensorType& rows = op.operands[0];
  const int64_t words = row_words(packed.format, packed.length);
  if (rows.dtype != DType::i32 || rows.rank() < 2 || !rows.dims.back().is(words))
    return op.reject(30, fmt::format("packed rows {}, must be i32[..., {}]", op.show(rows), words));
  TensorType result{DType::f32, rows.dims};
  result.dims.back() = packed.length;
  return result;
}

}  // namespace sinter
