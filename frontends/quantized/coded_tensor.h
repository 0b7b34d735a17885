// A quantized weight of a model's files in one form for all layouts. The tensor NAME [out, in] that
// a model asks for is given as
//
//   NAME.codes   i32 [out, words]   words of 32 bits, dense along in, the first code lowest
//   NAME.scales  [out, groups]      f32, f16 or bf16
//   NAME.zeros   i32 [out, groups]  if there are zero points
//   NAME.order   i32 [in]           if inputs are sorted by group: code i of a row belongs to input
//                                   order[i]
//   NAME.minima  as the scales      if there are minima (of GGUF files alone, as the next)
//   NAME.parts   i32 [out, groups]  if scales have parts; scales and minima are then factors [out,
//                                   ceil(in / 256)] (ir/code_format.h)
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "frontends/quantized/scheme.h"
#include "ir/code_format.h"
#include "ir/types.h"

namespace sinter {

/// The ends of these names, in this order.
inline constexpr std::string_view kCodedParts[] = {".codes", ".scales", ".zeros",
                                                   ".order", ".minima", ".parts"};

/// Groups of codes that operands of the IR have at most; larger ones are several with one scale.
inline constexpr int64_t kLargestCodeGroup = 128;

/// Bound of both extents of a weight.
inline constexpr int64_t kLargestExtent = int64_t{1} << 28;

struct CodedTensor {
  int64_t out = 0, in = 0;
  WeightScheme scheme;
  DType scale = DType::f16;  // of the scales as they are given; layouts pairs and modelopt: f32,
                             // and bf16 of exponents
  float factor = 1;          // of all scales of layouts pairs and modelopt
  /// The format of blocks of a GGUF file, which no scheme describes.
  std::optional<CodeFormat> blocks = {};
  /// Name of the tensor with the order of the inputs; empty: they stand as they are. Weights with
  /// the same order share a tensor.
  std::string order = {};
  /// Experts whose matrices follow one another in the tensor [matrices, rows, in] of the files:
  /// `out` counts the rows of all. 0: the tensor is one matrix.
  int64_t matrices = 0;

  /// There are tensors of zero points.
  bool has_zeros() const { return !scheme.symmetric; }
  /// Codes with zero points are unsigned, unless the files have them as signed bytes.
  bool unsigned_codes() const { return has_zeros() && scheme.layout != WeightLayout::plain; }
  /// The files have scales of 8 bits.
  bool small_scales() const {
    return scheme.layout == WeightLayout::pairs || scheme.layout == WeightLayout::modelopt;
  }
  bool has_minima() const { return blocks && blocks->minima; }
  bool has_parts() const { return blocks && blocks->part_bits != 0; }
  int64_t words() const { return (in * (blocks ? blocks->bits() : scheme.bits) + 31) / 32; }
  /// Codes that share a scale; 0: a row.
  int64_t group() const;
  int64_t groups() const;
  /// Attribute `codes` of ops: "uint4 g128 f16 zeros" (ir/code_format.h).
  std::string format() const;

  /// Takes [out, in] or [matrices, rows, in]. False: one of them is too large, or 0.
  bool set_extents(llvm::ArrayRef<int64_t> extents);
  /// The extents of a tensor of the files with `columns` for each row.
  std::vector<int64_t> row_dims(int64_t columns) const {
    if (matrices == 0) return {out, columns};
    return {matrices, out / matrices, columns};
  }

  TensorType codes_type() const { return {DType::i32, {out, words()}}; }
  TensorType scales_type() const {
    return {scale, {out, has_parts() ? code_scales(*blocks, in) : groups()}};
  }
  TensorType parts_type() const { return {DType::i32, {out, groups()}}; }
  TensorType zeros_type() const { return {DType::i32, {out, groups()}}; }
  TensorType order_type() const { return {DType::i32, {in}}; }
};

/// By the name of the weight's tensor: "model.layers.0.mlp.up_proj.weight".
using CodedTensors = std::map<std::string, CodedTensor, std::less<>>;

}  // namespace sinter
