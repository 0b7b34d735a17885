// Calls of kernels around a tiled_attention: which keys their tokens see.
#pragma once

#include <random>

#include "codegen/kernel_trials.h"

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

inline const Op& attention_of(const Graph& group) {
  return *llvm::find_if(group.ops(),
                        [](const Op& op) { return op.kind == OpKind::tiled_attention; });
}

inline HostTensor& input_of(const Graph& group, ValueId id, std::vector<HostTensor>& inputs) {
  return inputs[static_cast<size_t>(llvm::find(group.inputs, root_of(group, id)) -
                                    group.inputs.begin())];
}

/// Sets the ranges of keys that the tokens of a tiled_attention see, another pattern in each call.
struct VaryRanges {
  std::mt19937 random{7};
  size_t turn = 0;

  void operator()(const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
    const Graph& group = kernel.group;
    const Op& op = attention_of(group);
    HostTensor& first = input_of(group, op.operands[3], inputs);
    HostTensor& last = input_of(group, op.operands[4], inputs);
    const int64_t rows = input_of(group, op.operands[1], inputs).dims[0];
    if (rows == 0) return;
    const Ranges ranges =
        ranges_of(kPatterns[turn++ % std::size(kPatterns)], first.volume(), rows, random);
    std::copy(ranges.last.begin(), ranges.last.end(), last.data<int32_t>());
    if (&first != &last) std::copy(ranges.first.begin(), ranges.first.end(), first.data<int32_t>());
    if (op.attrs.has(AttrName::checked)) {
      for (int64_t n = 0; n < first.volume(); n += 3) {
        first.data<int32_t>()[n] = n % 2 == 0 ? INT32_MIN : -7;
        last.data<int32_t>()[n] = n % 2 == 0 ? static_cast<int32_t>(rows) + 9 : INT32_MAX;
      }
    }
  }
};

}  // namespace sinter
