// Calls of kernels around a tiled_attention: which keys their tokens see.
#pragma once

#include <cmath>
#include <random>

#include "codegen/kernel_trials.h"
#include "ir/attention_operands.h"
#include "ir/row_numbers.h"
#include "ir/scalar_math.h"

namespace sinter {

inline constexpr DType kAttentionTypes[] = {DType::f16, DType::bf16};

/// How the tokens of a call see keys.
enum class Pattern : uint8_t { causal, all, one, packed, holes, none };
inline constexpr Pattern kPatterns[] = {Pattern::causal, Pattern::all,   Pattern::one,
                                        Pattern::packed, Pattern::holes, Pattern::none};

struct Ranges {
  std::vector<int32_t> first, last;
};

inline Ranges ranges_of(Pattern pattern, int64_t tokens, int64_t rows, std::mt19937& random) {
  Ranges ranges;
  int64_t begin = 0, end = 0;  // of the sequence of packed texts
  for (int64_t n = 0; n < tokens; ++n) {
    const auto row = [&] { return static_cast<int64_t>(random() % static_cast<uint64_t>(rows)); };
    int64_t first = 0, last = rows - 1;
    switch (pattern) {
      case Pattern::causal:  // behind a filled cache
        last = std::clamp<int64_t>(rows - tokens + n, 0, rows - 1);
        break;
      case Pattern::all:
        break;
      case Pattern::one:
        first = last = row();
        break;
      case Pattern::packed:  // texts of one token and more, with gaps between their slots
        if (n >= end) {
          begin = std::min(n + static_cast<int64_t>(random() % 3), rows - 1);
          end = n + 1 + static_cast<int64_t>(random() % 60);
        }
        first = begin;
        last = std::clamp(n, begin, rows - 1);
        break;
      case Pattern::holes:
        first = row();
        last = row();
        break;
      case Pattern::none:
        first = rows - 1;
        last = n % 5 == 0 ? rows - 1 : rows - 2;
        break;
    }
    ranges.first.push_back(static_cast<int32_t>(first));
    ranges.last.push_back(static_cast<int32_t>(last));
  }
  return ranges;
}

/// The attention of a group, or an op with its operands.
inline const Op& attention_of(const Graph& group) {
  return *llvm::find_if(group.ops(), [](const Op& op) {
    return order_of(op) == Order::tiled_attention || op.kind == OpKind::attention_log_sum ||
           is_attention_gradient(op);
  });
}

/// The input that a value is a view of; null: it is computed.
inline HostTensor* input_of(const Graph& group, ValueId id, std::vector<HostTensor>& inputs) {
  const auto input = llvm::find(group.inputs, root_of(group, id));
  return input == group.inputs.end() ? nullptr : &inputs[input - group.inputs.begin()];
}

/// Hides the key of an element of a mask: by a number, or a truth value.
inline void hide(HostTensor& mask, int64_t i, double value) {
  if (mask.dtype == DType::i1) mask.data<uint8_t>()[i] = 0;
  if (mask.dtype == DType::f32) mask.data<float>()[i] = static_cast<float>(value);
  if (mask.dtype == DType::f16) mask.data<uint16_t>()[i] = math::double_to_f16(value);
  if (mask.dtype == DType::bf16) mask.data<uint16_t>()[i] = math::double_to_bf16(value);
}

/// Hides keys here and there; the first 150 of some rows of the mask, by the lowest number of its
/// type; and all of others. A hidden key that no token sees is NaN.
inline void vary_mask(const Graph& group, const Op& op, std::vector<HostTensor>& inputs,
                      std::mt19937& random) {
  if (!has_mask(op)) return;
  const ValueId operand = op.operands[mask_operand(op)];
  HostTensor& mask = *input_of(group, operand, inputs);
  const int64_t keys = mask.dims.back();
  for (int64_t i = 0; i < mask.volume(); ++i) {
    const int64_t row = i / keys, key = i % keys;
    if (row % 5 == 4 || random() % 4 == 0) hide(mask, i, -INFINITY);
    if (row % 5 == 3 && key < 150) hide(mask, i, mask.dtype == DType::f16 ? -65504 : -0x1.fep127);
  }
  const Dims& dims = group[operand].type.dims;
  const bool of_keys =
      llvm::all_of(DimsRef(dims).take_back(3).drop_back(), [](Dim dim) { return dim.is(1); });
  HostTensor& rows = *input_of(group, op.operands[1], inputs);
  if (mask.dtype != DType::i1 || !of_keys || rows.dtype == DType::f32) return;
  const int64_t width = rows.dims.back();
  for (int64_t i = 0; i < rows.volume(); ++i)
    if (mask.data<uint8_t>()[i / width % mask.volume()] == 0)
      rows.data<uint16_t>()[i] = math::float_to_bf16(NAN);
}

/// Sets the summary of a mask, if there is one: some tiles are hidden, all of them in every third
/// call. It need not match the mask: evaluator and kernel leave out the same tiles, so that a
/// kernel which reads one of them, or leaves out another, has other results.
inline void vary_tiles(const Graph& group, const Op& op, std::vector<HostTensor>& inputs,
                       size_t turn, std::mt19937& random) {
  if (is_attention_gradient(op) || operands_before_seed(op) <= kMaskTilesOperand) return;
  HostTensor& tiles = *input_of(group, op.operands[kMaskTilesOperand], inputs);
  for (int64_t i = 0; i < tiles.volume(); ++i)
    tiles.data<uint8_t>()[i] = turn % 3 != 2 && random() % 2 == 0;
}

/// Sets the ranges of keys that the tokens of an attention see, another pattern in each call.
struct VaryRanges {
  std::mt19937 random{7};
  size_t turn = 0;

  void operator()(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                  std::vector<HostTensor>& inputs) {
    const Graph& group = kernel.group;
    const Op& op = attention_of(group);
    HostTensor* first = input_of(group, op.operands[3], inputs);
    HostTensor* last = input_of(group, op.operands[4], inputs);
    const Dim dim = attention_key_rows(group, op);
    const int64_t rows = dim.is_constant() ? dim.constant() : symbol_values[dim.symbol().index];
    vary_mask(group, op, inputs, random);
    vary_tiles(group, op, inputs, turn, random);
    if (rows == 0 || !first || !last) return;
    const Ranges ranges =
        ranges_of(kPatterns[turn++ % std::size(kPatterns)], first->volume(), rows, random);
    std::copy(ranges.last.begin(), ranges.last.end(), last->data<int32_t>());
    if (first != last) std::copy(ranges.first.begin(), ranges.first.end(), first->data<int32_t>());
    if (clamps_rows(op)) set_rows_that_are_not_there(*first, *last, static_cast<int32_t>(rows));
  }

 private:
  static void set_rows_that_are_not_there(HostTensor& first, HostTensor& last, int32_t rows) {
    for (int64_t n = 0; n < first.volume(); n += 3) {
      first.data<int32_t>()[n] = n % 2 == 0 ? INT32_MIN : -7;
      last.data<int32_t>()[n] = n % 2 == 0 ? rows + 9 : INT32_MAX;
    }
  }
};

}  // namespace sinter
