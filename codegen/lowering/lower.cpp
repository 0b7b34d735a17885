#include "codegen/lowering/lower.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <map>

#include "codegen/emission/kernel_body.h"
#include "codegen/emission/step_context.h"
#include "codegen/lowering/arena.h"
#include "codegen/lowering/emit.h"
#include "codegen/lowering/extract.h"
#include "codegen/lowering/in_place.h"
#include "codegen/lowering/inner_roundings.h"
#include "codegen/lowering/launch_order.h"
#include "ir/fault.h"
#include "ir/row_numbers.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "kernels/registry.h"
#include "plan/kernel_text.h"

namespace sinter {
namespace {

/// Kernels of all entries; equal groups share one. Of variants, they do where the text does not
/// depend on the range.
class KernelTable {
 public:
  KernelTable(Program& program, const DeviceDescription& device, const TunedForms& forms)
      : program_(program), device_(device), forms_(forms) {}

  Result<uint32_t> add(const Graph& group, llvm::ArrayRef<KernelPart> parts, const Overlap& overlap,
                       llvm::ArrayRef<InPlace> in_place, std::optional<SymbolRange> range) {
    if (range && !llvm::is_contained(symbols_of(group), range->symbol)) range.reset();
    // The text of a kernel that overlaps does not depend on the pairs.
    if (overlap.waits) in_place = {};
    const Request request{group, parts, overlap, in_place};
    std::vector<Known>& known = known_[key_of(request)];
    for (const Known& kernel : known)
      if (kernel.range == range) return kernel.index;
    SINTER_LET(kernel, emit(request, range));
    if (!known.empty() && known.back().range && range)
      if (const auto shared = widened(request, known.back(), kernel)) {
        known.push_back({range, *shared});
        return *shared;
      }
    known.push_back({range, index_of(std::move(kernel))});
    return known.back().index;
  }

 private:
  struct Request {
    const Graph& group;
    llvm::ArrayRef<KernelPart> parts;
    const Overlap& overlap;
    llvm::ArrayRef<InPlace> in_place;
  };
  struct Known {
    std::optional<SymbolRange> range;  // of the entry that asked for the kernel
    uint32_t index;
  };

  std::string key_of(const Request& request) const {
    const Overlap& overlap = request.overlap;
    std::string key =
        fmt::format("{} {} [{}] [{}]\n", overlap.waits, overlap.triggers_after_wait,
                    fmt::join(overlap.early_inputs, " "), fmt::join(overlap.early_caches, " "));
    for (const InPlace& pair : request.in_place)
      key += fmt::format("in place: {} {}\n", pair.output, pair.input);
    for (const KernelPart& part : request.parts)
      key += fmt::format("{}: {}\n", part.prefix_rank, fmt::join(part.outputs, " "));
    return key + print_graph(request.group, program_.symbols);
  }

  Result<Kernel> emit(const Request& request, const std::optional<SymbolRange>& range) const {
    SINTER_LET(kernel, emit_kernel(request.group, request.parts, narrowed(program_.symbols, range),
                                   device_, request.overlap, forms_, request.in_place));
    kernel.range = range;
    return kernel;
  }

  /// The index of a kernel with this kernel's text, for its range and the range before: the kernel
  /// of the range before is made anew. nullopt: its text would change.
  std::optional<uint32_t> widened(const Request& request, const Known& before,
                                  const Kernel& kernel) {
    Kernel& shared = program_.kernels[before.index];
    if (code_of(shared) != code_of(kernel)) return std::nullopt;
    if (!shared.range) return before.index;
    if (shared.range->symbol != kernel.range->symbol) return std::nullopt;
    const Symbol& symbol = program_.symbols[kernel.range->symbol.index];
    const SymbolRange both{kernel.range->symbol, std::min(shared.range->low, kernel.range->low),
                           std::max(shared.range->high, kernel.range->high)};
    const bool is_whole = both.low == symbol.low && both.high == symbol.high;
    auto wide = emit(request, is_whole ? std::nullopt : std::optional(both));
    if (!wide || code_of(*wide) != code_of(kernel)) return std::nullopt;
    llvm::SmallVector<uint32_t, 1>& namesakes = by_name_[wide->name];
    for (uint32_t i : namesakes)
      if (is_same(program_.kernels[i], *wide)) return i;
    namesakes.push_back(before.index);
    shared = std::move(*wide);
    return before.index;
  }

  /// The text but for the kernel's name and the symbols' ranges in its comment.
  std::string code_of(const Kernel& kernel) const {
    const std::string comment = group_comment(kernel, narrowed(program_.symbols, kernel.range));
    std::string code = kernel.source.substr(comment.size());
    const size_t at = code.find(kernel.name);
    return code.erase(at, kernel.name.size());
  }

  uint32_t index_of(Kernel kernel) {
    const auto index = static_cast<uint32_t>(program_.kernels.size());
    // Different groups may still decompose into the same kernel.
    llvm::SmallVector<uint32_t, 1>& namesakes = by_name_[kernel.name];
    for (uint32_t i : namesakes)
      if (is_same(program_.kernels[i], kernel)) return i;
    namesakes.push_back(index);
    program_.kernels.push_back(std::move(kernel));
    return index;
  }

  bool is_same(const Kernel& a, const Kernel& b) const {
    if (a.name != b.name || a.source != b.source ||
        print_graph(a.group, program_.symbols) != print_graph(b.group, program_.symbols))
      return false;
    SINTER_CHECK(a.overlap == b.overlap, "kernel {} reads early what another of its text does not",
                 a.name);
    return true;
  }

  Program& program_;
  const DeviceDescription& device_;
  const TunedForms& forms_;
  llvm::StringMap<std::vector<Known>> known_;  // by what is asked for
  llvm::StringMap<llvm::SmallVector<uint32_t, 1>> by_name_;
};

/// The group's parts, or itself as the only one.
llvm::SmallVector<KernelPart, 2> parts_of(const Group& group, llvm::ArrayRef<ValueId> outputs) {
  llvm::DenseMap<uint32_t, uint32_t> number_of_output;
  for (uint32_t k = 0; k < outputs.size(); ++k) number_of_output[outputs[k].index] = k;
  llvm::SmallVector<KernelPart, 2> parts;
  for (const Group& part :
       group.parts.empty() ? llvm::ArrayRef(group) : llvm::ArrayRef(group.parts)) {
    parts.push_back({part.prefix_rank, {}});
    for (ValueId member : part.members)
      if (const auto output = number_of_output.find(member.index); output != number_of_output.end())
        parts.back().outputs.push_back(output->second);
    llvm::sort(parts.back().outputs);
  }
  return parts;
}

class EntryLowering {
 public:
  EntryLowering(const Module& module, const Entry& entry, const Grouping& grouping,
                Numerics numerics, KernelTable& kernels, bool device_inputs,
                llvm::ArrayRef<std::pair<std::string, std::string>> overwritten)
      : symbols_(narrowed(module.symbols, entry.range)),
        device_inputs_(device_inputs),
        overwritten_(overwritten),
        graph_(entry.graph),
        grouping_(grouping),
        numerics_(numerics),
        kernels_(kernels),
        buffer_of_(entry.graph.size(), -1) {
    plan_.name = entry.name;
    plan_.range = entry.range;
    plan_.output_names = entry.output_names;
    for (uint32_t i = 0; i < module.weights.size(); ++i) leaf_index_[module.weights[i].name] = i;
    for (uint32_t i = 0; i < module.states.size(); ++i) leaf_index_[module.states[i].name] = i;
  }

  Result<EntryPlan> run() {
    for (ValueId id : graph_.inputs) plan_.inputs.push_back(buffer(id));
    const std::vector<uint32_t> groups = step_order();
    const std::vector<ExtractedGroup> steps = extract(groups);
    const std::vector<Overlap> order = launch_order(graph_, steps, symbols_);
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group& group = grouping_.groups[groups[i]];
      if (LowerStep* lower = own_step(group)) {
        SINTER_TRY(add_own_step(*lower, group));
      } else {
        add_kernel(group, steps[i]);
      }
    }
    const bool unnamed = plan_.output_names.empty();
    for (ValueId id : graph_.outputs) {
      plan_.outputs.push_back(buffer(id));
      if (unnamed) plan_.output_names.push_back(graph_[id].name);
      Buffer& output = plan_.buffers[plan_.outputs.back()];
      output.last_step = static_cast<uint32_t>(plan_.steps.size());
    }
    find_wanted_inputs();
    if (device_inputs_)
      for (const RowNumbers& numbers : row_numbers(graph_))
        if (are_given_addresses(graph_, numbers)) add_row_check(numbers);
    for (const RowNumbers& numbers : numbers_to_check(graph_, symbols_)) add_row_check(numbers);
    for (size_t i = 0; i < groups.size(); ++i)
      if (!own_step(grouping_.groups[groups[i]]))
        SINTER_TRY(
            make_kernel(static_cast<uint32_t>(i), grouping_.groups[groups[i]], steps[i], order[i]));
    plan_arena(plan_.buffers, symbols_, in_place_);
    return std::move(plan_);
  }

 private:
  void find_wanted_inputs() {
    llvm::StringMap<uint32_t> inputs;
    for (uint32_t id : plan_.inputs) inputs[plan_.buffers[id].value] = id;
    llvm::StringMap<uint32_t> outputs;
    for (size_t k = 0; k < plan_.outputs.size(); ++k)
      outputs[plan_.output_names[k]] = plan_.outputs[k];
    for (const auto& [output, input] : overwritten_)
      if (outputs.contains(output) && inputs.contains(input))
        wanted_.push_back({outputs[output], inputs[input]});
  }

  std::vector<uint32_t> step_order() const {
    std::vector<uint32_t> order;
    for (uint32_t g = 0; g < grouping_.groups.size(); ++g) order.push_back(g);
    if (fault(Fault::unordered_siblings) && order.size() > 1)
      std::swap(order.front(), order.back());
    return order;
  }

  /// Once for each value and number of rows; of a view of an input, all of the input.
  void add_row_check(const RowNumbers& numbers) {
    const ValueId root =
        are_given(graph_, numbers) ? root_of(graph_, numbers.values) : numbers.values;
    const RowCheck check{buffer(root), numbers.rows, graph_[numbers.op].name, numbers.ends};
    const auto same = [&](const RowCheck& other) {
      return other.buffer == check.buffer && other.rows == check.rows && other.ends == check.ends;
    };
    if (llvm::any_of(plan_.row_checks, same)) return;
    plan_.buffers[check.buffer].last_step = static_cast<uint32_t>(plan_.steps.size());
    plan_.row_checks.push_back(check);
  }

  /// The function that makes the step of a group without a kernel; null: the group has a kernel.
  LowerStep* own_step(const Group& group) const {
    for (ValueId member : group.members)
      if (const KernelFamily* family = anchored_by(graph_[member]))
        if (LowerStep* const* lower = std::get_if<LowerStep*>(&family->make)) return *lower;
    return nullptr;
  }

  /// The graph that each group's kernel computes.
  std::vector<ExtractedGroup> extract(llvm::ArrayRef<uint32_t> groups) const {
    const std::vector<uint8_t> leaves = values_that_leave(graph_, grouping_, symbols_);
    std::vector<ExtractedGroup> extracted(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group& group = grouping_.groups[groups[i]];
      if (own_step(group)) {
        extracted[i].outputs.assign(group.members.begin(), group.members.end());
        continue;
      }
      extracted[i] = extract_group(graph_, grouping_, groups[i], leaves);
      if (numerics_ == Numerics::fast)
        extracted[i].graph = without_inner_roundings(extracted[i].graph, symbols_);
    }
    return extracted;
  }

  uint32_t buffer(ValueId id) {
    if (buffer_of_[id.index] >= 0) return static_cast<uint32_t>(buffer_of_[id.index]);
    const Op& op = graph_[id];
    Buffer buffer;
    buffer.value = op.name;
    buffer.type = op.type;
    buffer.size_bytes = storage_bytes(op.type);
    buffer.first_step = buffer.last_step = static_cast<uint32_t>(plan_.steps.size());
    if (op.kind == OpKind::input) {
      buffer.place = Buffer::Place::input;
      buffer.index =
          static_cast<uint32_t>(plan_.inputs.size());  // run() begins with them, in order
    } else if (op.kind == OpKind::weight) {
      buffer.place = Buffer::Place::weight;
      buffer.index = leaf_index_.lookup(op.name);
    } else if (op.kind == OpKind::state) {
      buffer.place = Buffer::Place::state;
      buffer.index = leaf_index_.lookup(op.name);
    } else if (writes_state(op)) {
      const Buffer& old = plan_.buffers[this->buffer(operand_with(op, OperandRole::state))];
      buffer.place = Buffer::Place::state;
      buffer.index = old.index;
      buffer.version = old.version + 1;
    }
    buffer_of_[id.index] = static_cast<int64_t>(plan_.buffers.size());
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(plan_.buffers.size() - 1);
  }

  /// The buffer of a root that the step being made reads.
  uint32_t read(ValueId root) {
    if (fault(Fault::stale_state_version) && writes_state(graph_[root]))
      root = operand_with(graph_[root], OperandRole::state);
    const uint32_t index = buffer(root);
    if (!fault(Fault::early_free))
      plan_.buffers[index].last_step = static_cast<uint32_t>(plan_.steps.size());
    return index;
  }

  uint32_t exchange(ValueId id) {
    const Op& op = graph_[id];
    Buffer buffer;
    buffer.value = op.name;
    buffer.type = op.type;
    buffer.size_bytes = storage_bytes(op.type);
    buffer.place = Buffer::Place::exchange;
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(plan_.buffers.size() - 1);
  }

  /// A step without its kernel, which depends on the lives of buffers.
  void add_kernel(const Group& group, const ExtractedGroup& extracted) {
    KernelStep step;
    for (ValueId id : extracted.inputs) step.inputs.push_back(read(id));
    for (ValueId id : extracted.outputs) step.outputs.push_back(buffer(id));
    kernel_steps_[static_cast<uint32_t>(plan_.steps.size())] = step;
    add_step({std::move(step), {}}, group);
  }

  Status make_kernel(uint32_t index, const Group& group, const ExtractedGroup& extracted,
                     const Overlap& overlap) {
    KernelStep& step = kernel_steps_[index];
    const std::vector<InPlace> pairs =
        outputs_in_place(extracted.graph, step, index, plan_.buffers, symbols_, wanted_);
    for (const InPlace& pair : pairs)
      if (plan_.buffers[step.inputs[pair.input]].place == Buffer::Place::arena)
        in_place_.push_back({step.inputs[pair.input], step.outputs[pair.output]});
    SINTER_LET(kernel, kernels_.add(extracted.graph, parts_of(group, extracted.outputs), overlap,
                                    pairs, plan_.range));
    step.kernel = kernel;
    plan_.steps[index].run = step;
    return {};
  }

  Status add_own_step(LowerStep& lower, const Group& group) {
    SINTER_LET(step, lower({.graph = graph_,
                            .members = group.members,
                            .symbols = symbols_,
                            .read = [this](ValueId root) { return read(root); },
                            .write = [this](ValueId value) { return buffer(value); },
                            .exchange = [this](ValueId value) { return exchange(value); }}));
    add_step(std::move(step), group);
    return {};
  }

  void add_step(Step step, const Group& group) {
    for (ValueId id : group.members) step.values.push_back(graph_[id].name);
    plan_.steps.push_back(std::move(step));
  }

  std::vector<Symbol> symbols_;
  bool device_inputs_;
  llvm::ArrayRef<std::pair<std::string, std::string>> overwritten_;
  std::vector<WantedInput> wanted_;
  const Graph& graph_;
  const Grouping& grouping_;
  Numerics numerics_;
  KernelTable& kernels_;
  EntryPlan plan_;
  std::map<uint32_t, KernelStep> kernel_steps_;  // by their number; kernels are set at the end
  std::vector<BufferInPlace> in_place_;
  std::vector<int64_t> buffer_of_;
  llvm::StringMap<uint32_t> leaf_index_;  // of weights and states, which have different names
};

}  // namespace

Result<Program> lower(const Module& module, llvm::ArrayRef<Grouping> groupings,
                      const DeviceDescription& device, Numerics numerics, const TunedForms& forms,
                      bool device_inputs,
                      llvm::ArrayRef<std::pair<std::string, std::string>> overwritten) {
  Program program;
  program.name = module.name;
  program.numerics = numerics;
  program.target = device.name;
  program.symbols = module.symbols;
  program.weights = module.weights;
  program.states = module.states;
  KernelTable kernels(program, device, forms);
  for (size_t i = 0; i < module.entries.size(); ++i) {
    SINTER_LET(plan, EntryLowering(module, module.entries[i], groupings[i], numerics, kernels,
                                   device_inputs, overwritten)
                         .run());
    program.entries.push_back(std::move(plan));
  }
  return program;
}

}  // namespace sinter
