// Walks an entry's steps in order: arguments fit, nothing is read before it is written, and a state
// is read in the version that its buffer names.
#include <llvm/ADT/STLExtras.h>

#include "ir/variants.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class StepWalk {
 public:
  StepWalk(const Program& program, const EntryPlan& entry)
      : program_(program),
        entry_(entry),
        ranges_(entry.buffers.size()),
        versions_(program.states.size(), 0),
        version_written_(program.states.size(), -1) {}

  Result<std::vector<LiveRange>> run() {
    for (step_ = 0; step_ < entry_.steps.size(); ++step_) {
      const Step& step = entry_.steps[step_];
      SINTER_TRY(visit(
          step, [&](const KernelStep& run) { return kernel_step(run); },
          [&](const GemmStep& gemm) { return gemm_step(gemm); },
          [&](const CopyStep& copy) { return copy_step(copy); },
          [&](const CollectiveStep& run) { return collective_step(run); }));
      SINTER_TRY(reads_and_writes(step_facts(program_, step)));
    }
    for (uint32_t output : entry_.outputs) SINTER_TRY(read(output));
    for (const RowCheck& check : entry_.row_checks) SINTER_TRY(read(check.buffer));
    for (uint32_t id = 0; id < entry_.buffers.size(); ++id) {
      const Buffer& buffer = entry_.buffers[id];
      if (buffer.place == Buffer::Place::state && buffer.version > versions_[buffer.index])
        return bad(fmt::format("%{} is version {} of its state, the steps write versions up to {}",
                               printable(buffer.value), buffer.version, versions_[buffer.index]));
    }
    return std::move(ranges_);
  }

 private:
  // One function for each kind: its buffers exist, and fit what it does.
  Status kernel_step(const KernelStep& step) const {
    if (step.kernel >= program_.kernels.size())
      return bad(fmt::format("kernel {} of {}", step.kernel, program_.kernels.size()));
    const Kernel& kernel = program_.kernels[step.kernel];
    if (kernel.range && !has_values_of(*kernel.range))
      return bad(fmt::format("kernel {} is made for {} alone", kernel.name,
                             to_string(*kernel.range, program_.symbols)));
    SINTER_TRY(arguments(step.inputs, kernel.group, kernel.group.inputs, "input"));
    return arguments(step.outputs, kernel.group, kernel.group.outputs, "output");
  }

  /// All values that the entry's symbol can have are in the range.
  bool has_values_of(const SymbolRange& range) const {
    const Symbol& symbol = program_.symbols[range.symbol.index];  // narrowed to the entry's range
    return range.contains(symbol.low) && range.contains(symbol.high);
  }

  Status gemm_step(const GemmStep& gemm) const {
    for (const auto& [role, buffer] : {std::pair("bias", gemm.bias), {"residual", gemm.residual}})
      if (buffer >= static_cast<int64_t>(entry_.buffers.size()))
        return bad(fmt::format("{} is buffer {} of {}", role, buffer, entry_.buffers.size()));
    if (needs_fast_numerics(gemm) && program_.numerics != Numerics::fast)
      return bad(
          fmt::format("a product with a residual or an activation in a plan with {} numerics",
                      to_string(program_.numerics)));
    if (program_.invariant && !gemm.ascending)
      return bad("a product in an order of the library's in an invariant plan");
    for (uint32_t buffer : {gemm.a.buffer, gemm.b.buffer, gemm.c.buffer})
      SINTER_TRY(exists(buffer));
    return check_gemm(program_, entry_, gemm, place(entry_, step_));
  }

  Status copy_step(const CopyStep& copy) const {
    for (uint32_t buffer : {copy.from, copy.to}) SINTER_TRY(exists(buffer));
    const TensorType& from = entry_.buffers[copy.from].type;
    const TensorType& to = entry_.buffers[copy.to].type;
    if (from == to) return {};
    return bad(fmt::format("copies {}, {}, to {}, {}: not one type", name(copy.from),
                           to_string(from, program_.symbols), name(copy.to),
                           to_string(to, program_.symbols)));
  }

  /// Other ranks read the exchange buffer while this one runs other steps: no other step has it.
  Status collective_step(const CollectiveStep& run) {
    for (uint32_t buffer : {run.from, run.exchange, run.to}) SINTER_TRY(exists(buffer));
    const Buffer& exchange = entry_.buffers[run.exchange];
    if (exchange.place != Buffer::Place::exchange)
      return bad(
          fmt::format("exchanges values in {}, which other ranks read at any time: its place "
                      "must be exchange",
                      name(run.exchange)));
    if (llvm::is_contained(exchanged_, run.exchange))
      return bad(
          fmt::format("exchanges values in {}, as another collective does", name(run.exchange)));
    exchanged_.push_back(run.exchange);
    const TensorType& type = entry_.buffers[run.from].type;
    for (uint32_t buffer : {run.exchange, run.to})
      if (const TensorType& other = entry_.buffers[buffer].type; other != type)
        return bad(fmt::format("adds {}, {}, by way of {}, {}: not one type", name(run.from),
                               to_string(type, program_.symbols), name(buffer),
                               to_string(other, program_.symbols)));
    if (!is_float(type.dtype) && type.dtype != DType::i32)
      return bad(fmt::format("adds {}, {}: no float type and not i32", name(run.from),
                             to_string(type, program_.symbols)));
    return run.group.empty() ? Status(bad("a collective of a group without a name")) : Status();
  }

  Status reads_and_writes(const StepFacts& step) {
    for (uint32_t id : step.reads) SINTER_TRY(read(id));
    for (uint32_t i = 0; i < step.writes.size(); ++i)
      SINTER_TRY(step.kernel && llvm::is_contained(step.kernel->appends, i)
                     ? append(step, i)
                     : write(step.writes[i], step.reads));
    return {};
  }

  Status arguments(llvm::ArrayRef<uint32_t> buffers, const Graph& group,
                   llvm::ArrayRef<ValueId> parameters, std::string_view role) const {
    if (buffers.size() != parameters.size())
      return bad(
          fmt::format("{} {}s for a kernel with {}", buffers.size(), role, parameters.size()));
    for (size_t i = 0; i < buffers.size(); ++i) {
      SINTER_TRY(exists(buffers[i]));
      const Buffer& buffer = entry_.buffers[buffers[i]];
      const Op& parameter = group[parameters[i]];
      if (buffer.type != parameter.type)
        return bad(fmt::format("{} {}, {}, is {}, the kernel's %{} {}", role, i, name(buffers[i]),
                               to_string(buffer.type, program_.symbols), parameter.name,
                               to_string(parameter.type, program_.symbols)));
    }
    return {};
  }

  Status read(uint32_t id) {
    const Buffer& buffer = entry_.buffers[id];
    if (buffer.place == Buffer::Place::state && buffer.version != versions_[buffer.index]) {
      const bool too_late = buffer.version < versions_[buffer.index];
      return bad(fmt::format(
          "{} is read in version {} of state {}, which {} version {}", name(id), buffer.version,
          printable(program_.states[buffer.index].name),
          too_late ? fmt::format("step {} has made", version_written_[buffer.index]) : "is still",
          versions_[buffer.index]));
    }
    if (buffer.place == Buffer::Place::exchange)
      return bad(fmt::format("{} is read, which other ranks share", name(id)));
    LiveRange& range = ranges_[id];
    if (buffer.place == Buffer::Place::arena && range.written < 0)
      return bad(fmt::format("{} is read before any step writes it", name(id)));
    range.last = static_cast<int64_t>(step_);
    return {};
  }

  Status write(uint32_t id, llvm::ArrayRef<uint32_t> inputs) {
    if (entry_.buffers[id].place != Buffer::Place::arena)
      return bad(fmt::format("writes {}, which is no buffer of the arena", name(id)));
    if (llvm::is_contained(inputs, id))
      return bad(fmt::format("writes {}, which it reads", name(id)));
    LiveRange& range = ranges_[id];
    if (range.written >= 0)
      return bad(fmt::format("writes {}, which step {} has written", name(id), range.written));
    range.written = range.last = static_cast<int64_t>(step_);
    return {};
  }

  // The output buffer is the input's state, one version on.
  Status append(const StepFacts& step, uint32_t output) {
    const Graph& group = step.kernel->group;
    const ValueId before = group[group.outputs[output]].operands[0];
    const size_t input =
        static_cast<size_t>(llvm::find(group.inputs, before) - group.inputs.begin());
    const uint32_t from = step.reads[input], to = step.writes[output];
    const Buffer& source = entry_.buffers[from];
    const Buffer& result = entry_.buffers[to];
    if (source.place != Buffer::Place::state || result.place != Buffer::Place::state ||
        source.index != result.index)
      return bad(fmt::format("appends to {} but writes {}: not one state", name(from), name(to)));
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const Buffer& other = entry_.buffers[step.reads[i]];
      if (i != input && other.place == Buffer::Place::state && other.index == source.index)
        return bad(fmt::format("reads state {} as {} and appends to it as {}",
                               printable(program_.states[source.index].name), name(step.reads[i]),
                               name(from)));
    }
    if (result.version != versions_[result.index] + 1)
      return bad(fmt::format("writes {}, version {}, after version {}", name(to), result.version,
                             versions_[result.index]));
    versions_[result.index] = result.version;
    version_written_[result.index] = static_cast<int64_t>(step_);
    return {};
  }

  Status exists(uint32_t id) const {
    if (id < entry_.buffers.size()) return {};
    return bad(fmt::format("buffer {} of {}", id, entry_.buffers.size()));
  }
  std::string name(uint32_t id) const {
    return fmt::format("%{}", printable(entry_.buffers[id].value));
  }
  tl::unexpected<Error> bad(std::string what) const {
    return violation(std::move(what), place(entry_, step_));
  }

  const Program& program_;
  const EntryPlan& entry_;
  size_t step_ = 0;
  std::vector<LiveRange> ranges_;
  std::vector<uint32_t> versions_;  // of each state, now
  std::vector<int64_t> version_written_;
  std::vector<uint32_t> exchanged_;  // exchange buffers of earlier steps
};

}  // namespace

Result<std::vector<LiveRange>> check_steps(const Program& program, const EntryPlan& entry) {
  return StepWalk(program, entry).run();
}

}  // namespace sinter::checker
