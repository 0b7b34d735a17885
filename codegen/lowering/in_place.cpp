#include "codegen/lowering/in_place.h"

#include <llvm/ADT/STLExtras.h>

#include "kernels/registry.h"

namespace sinter {
namespace {

/// The family of a kernel of rows or elements; null: the group has an anchor.
const KernelFamily* family_without_anchor(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  return anchor_of(group) ? nullptr : &family_of_rows(group, symbols);
}

}  // namespace

std::vector<InPlace> outputs_in_place(const Graph& group, const KernelStep& step, uint32_t index,
                                      llvm::ArrayRef<Buffer> buffers,
                                      llvm::ArrayRef<Symbol> symbols) {
  const KernelFamily* family = family_without_anchor(group, symbols);
  std::vector<InPlace> pairs;
  if (!family || !family->overwrites) return pairs;
  const auto dies = [&](const Buffer& buffer) {
    return buffer.place == Buffer::Place::arena && buffer.last_step == index;
  };
  std::vector<bool> is_taken(step.inputs.size(), false);
  for (uint32_t output = 0; output < step.outputs.size(); ++output) {
    if (buffers[step.outputs[output]].place != Buffer::Place::arena) continue;
    std::optional<uint32_t> best;
    for (uint32_t input = 0; input < step.inputs.size(); ++input) {
      const Buffer& buffer = buffers[step.inputs[input]];
      if (is_taken[input] || !dies(buffer) ||
          (best && buffers[step.inputs[*best]].first_step <= buffer.first_step) ||
          !family->overwrites(group, output, input, symbols))
        continue;
      best = input;
    }
    if (!best) continue;
    is_taken[*best] = true;
    pairs.push_back({output, *best});
  }
  return pairs;
}

}  // namespace sinter
