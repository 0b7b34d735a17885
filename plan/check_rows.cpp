// Row numbers that kernels use: inputs, which the runtime checks before a call, numbers that are
// known to be in range, and others, for which the kernel is checked and the runtime looks after the
// call. It may look at inputs then, too.
#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/row_numbers.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class RowWalk {
 public:
  RowWalk(const Program& program, const EntryPlan& entry) : program_(program), entry_(entry) {}

  Status run() {
    for (const RowCheck& check : entry_.row_checks) SINTER_TRY(row_check(check));
    for (step_ = 0; step_ < entry_.steps.size(); ++step_)
      SINTER_TRY(visit(
          entry_.steps[step_], [&](const KernelStep& run) { return kernel_step(run); },
          [](const GemmStep&) { return Status(); }, [](const CopyStep&) { return Status(); },
          [](const CollectiveStep&) { return Status(); }));
    return {};
  }

 private:
  /// A state is no place for such numbers: its next version overwrites them.
  Status row_check(const RowCheck& check) const {
    const Buffer& buffer = entry_.buffers[check.buffer];
    const bool stays = buffer.place != Buffer::Place::state;
    const std::string where = "entry " + printable(entry_.name);
    if (!stays || buffer.type.dtype != DType::i32)
      return violation(
          fmt::format("%{}, {}, holds no row numbers until the call ends", printable(buffer.value),
                      to_string(buffer.type, program_.symbols)),
          where);
    return check_expr(check.rows, program_.symbols, "the number of rows", where);
  }

  Status kernel_step(const KernelStep& step) {
    const Graph& group = program_.kernels[step.kernel].group;
    for (const RowNumbers& numbers : row_numbers(group)) {
      const bool checked = is_checked(group[numbers.op]);
      if (!numbers.address && !checked) continue;
      if (are_known(group, numbers.values, numbers.rows, numbers.ends, program_.symbols)) continue;
      const std::optional<uint32_t> buffer = buffer_of(step, group, numbers.values);
      if (buffer && is_given_or_known(*buffer, numbers)) continue;
      if (!checked)
        return bad(group, numbers, "row numbers that nothing has checked, and is not checked");
      if (!buffer || llvm::none_of(entry_.row_checks, [&](const RowCheck& check) {
            return check.buffer == *buffer && check.ends == numbers.ends &&
                   never_less(numbers.rows, check.rows, program_.symbols);
          }))
        return bad(group, numbers, "row numbers that nothing looks at after the call");
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) written_[step.outputs[i]] = {&group, i};
    return {};
  }

  /// An input of the entry, or a value of a kernel before, or a weight, whose text says which rows
  /// it names.
  bool is_given_or_known(uint32_t id, const RowNumbers& numbers) const {
    const Buffer& buffer = entry_.buffers[id];
    if (buffer.place == Buffer::Place::input) return true;
    if (const auto at = written_.find(id); at != written_.end()) {
      const auto& [group, output] = at->second;
      return are_known(*group, group->outputs[output], numbers.rows, numbers.ends,
                       program_.symbols);
    }
    if (buffer.place != Buffer::Place::weight) return false;
    const Graph& init = program_.weights[buffer.index].init;
    return init.outputs.size() == 1 &&
           are_known(init, init.outputs[0], numbers.rows, numbers.ends, program_.symbols);
  }

  /// Where the values stand that a group's value reads through views; nullopt: nowhere.
  std::optional<uint32_t> buffer_of(const KernelStep& step, const Graph& group, ValueId id) const {
    const ValueId root = root_of(group, id);
    const auto input = llvm::find(group.inputs, root), output = llvm::find(group.outputs, root);
    if (input != group.inputs.end())
      return step.inputs[static_cast<size_t>(input - group.inputs.begin())];
    if (output != group.outputs.end())
      return step.outputs[static_cast<size_t>(output - group.outputs.begin())];
    return std::nullopt;
  }

  tl::unexpected<Error> bad(const Graph& group, const RowNumbers& numbers,
                            std::string_view what) const {
    return violation(
        fmt::format("%{} reads %{}, {}", group[numbers.op].name, group[numbers.values].name, what),
        place(entry_, step_));
  }

  const Program& program_;
  const EntryPlan& entry_;
  size_t step_ = 0;
  /// By buffer: the group of the kernel that wrote it, and which of its outputs it is.
  std::map<uint32_t, std::pair<const Graph*, size_t>> written_;
};

}  // namespace

Status check_row_numbers(const Program& program, const EntryPlan& entry) {
  return RowWalk(program, entry).run();
}

}  // namespace sinter::checker
