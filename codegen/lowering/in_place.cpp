#include "codegen/lowering/in_place.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

constexpr uint32_t kNoOutput = UINT32_MAX, kSeveralOutputs = UINT32_MAX - 1;

/// By value of the group: the only output that depends on it, or one of the numbers above.
std::vector<uint32_t> sole_outputs(const Graph& group) {
  std::vector<uint32_t> outputs(group.size(), kNoOutput);
  const auto add = [&](ValueId value, uint32_t output) {
    uint32_t& own = outputs[value.index];
    if (output != kNoOutput) own = own == kNoOutput || own == output ? output : kSeveralOutputs;
  };
  for (uint32_t k = 0; k < group.outputs.size(); ++k) add(group.outputs[k], k);
  for (uint32_t i = static_cast<uint32_t>(group.size()); i-- > 0;)
    for (ValueId operand : group.ops()[i].operands) add(operand, outputs[i]);
  return outputs;
}

/// The input whose memory an output has where it replaces a state that the group reads.
std::optional<uint32_t> overwritten_state(const Graph& group, uint32_t output) {
  const Op& op = group[group.outputs[output]];
  if (!replaces_state(op)) return std::nullopt;
  const ValueId state = operand_with(op, OperandRole::state);
  size_t uses = 0;
  for (const Op& other : group.ops()) uses += llvm::count(other.operands, state);
  if (uses < 2) return std::nullopt;
  return input_of(group, state);
}

}  // namespace

std::vector<InPlace> outputs_in_place(const Graph& group, const KernelStep& step, uint32_t index,
                                      llvm::ArrayRef<Buffer> buffers,
                                      llvm::ArrayRef<Symbol> symbols,
                                      llvm::ArrayRef<WantedInput> wanted) {
  std::vector<InPlace> pairs;
  for (uint32_t output = 0; output < step.outputs.size(); ++output)
    if (const auto input = placed_input(group, output))
      pairs.push_back({output, static_cast<uint32_t>(*input)});
  const bool has_places = !pairs.empty();
  for (uint32_t output = 0; output < step.outputs.size(); ++output)
    if (const auto input = overwritten_state(group, output)) pairs.push_back({output, *input});
  if (has_places || anchor_of(group)) return pairs;
  const auto dies = [&](const Buffer& buffer) {
    return buffer.place == Buffer::Place::arena && buffer.last_step == index;
  };
  // No other output may depend on what is overwritten. This is asked first: may_overwrite takes
  // time by the whole group.
  const std::vector<uint32_t> sole = sole_outputs(group);
  std::vector<bool> is_taken(step.inputs.size(), false);
  for (uint32_t output = 0; output < step.outputs.size(); ++output) {
    if (buffers[step.outputs[output]].place != Buffer::Place::arena) continue;
    const auto* want = llvm::find_if(
        wanted, [&](const WantedInput& one) { return one.output == step.outputs[output]; });
    if (want != wanted.end()) {
      const auto input = llvm::find(step.inputs, want->input);
      if (input == step.inputs.end() || buffers[*input].last_step != index) continue;
      const auto number = static_cast<uint32_t>(input - step.inputs.begin());
      if (is_taken[number] || !may_overwrite(group, output, number, symbols)) continue;
      is_taken[number] = true;
      pairs.push_back({output, number});
      continue;
    }
    std::optional<uint32_t> best;
    for (uint32_t input = 0; input < step.inputs.size(); ++input) {
      const Buffer& buffer = buffers[step.inputs[input]];
      if (is_taken[input] || !dies(buffer) || sole[group.inputs[input].index] != output ||
          (best && buffers[step.inputs[*best]].first_step <= buffer.first_step) ||
          !may_overwrite(group, output, input, symbols))
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
