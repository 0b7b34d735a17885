#include "runtime/input_ranges.h"

#include <algorithm>
#include <climits>

#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "ir/truth_values.h"

namespace sinter {

namespace {

/// A computed i32: casts to it end at the ends of the type.
std::string computed_text(int32_t value) {
  return fmt::format("{}{}", value,
                     value == INT32_MAX   ? " or more"
                     : value == INT32_MIN ? " or less"
                                          : "");
}

/// Values of %`name` that are numbers of `rows` rows.
Status check_range(llvm::ArrayRef<int32_t> values, int64_t rows, std::string_view name,
                   bool is_input, std::string where, std::string hint) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] >= rows)
      return fail(
          fmt::format("%{}[{}] is {}, outside the 0 .. {} that it points into", printable(name), i,
                      is_input ? std::to_string(values[i]) : computed_text(values[i]), rows - 1),
          std::move(where), std::move(hint));
  return {};
}

Status check_truth_values(const HostTensor& input, std::string_view name, const EntryPlan& entry) {
  if (input.dtype != DType::i1) return {};
  if (const auto bad = find_no_truth(input.bytes))
    return fail(fmt::format("%{}[{}] is {}, a truth value (i1) is 0 or 1", printable(name), *bad,
                            static_cast<unsigned>(input.bytes[*bad])),
                "entry " + printable(entry.name), "write 1 for true");
  return {};
}

}  // namespace

Status check_input_ranges(const Program& program, const EntryPlan& entry,
                          llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const HostTensor*> inputs) {
  std::vector<int64_t> rows(inputs.size(), INT64_MAX);
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    if (!facts.kernel) continue;
    const Graph& group = facts.kernel->group;
    for (const Op& op : group.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (!operand_role(op.kind, i).is_address()) continue;
        const auto at = llvm::find(group.inputs, root_of(group, op.operands[i]));
        if (at == group.inputs.end()) continue;
        const Buffer& buffer =
            entry.buffers[facts.reads[static_cast<size_t>(at - group.inputs.begin())]];
        if (buffer.place != Buffer::Place::input) continue;
        const Dim extent = *named_rows(group, op, i);
        const int64_t count =
            extent.is_constant() ? extent.constant() : symbol_values[extent.symbol().index];
        rows[buffer.index] = std::min(rows[buffer.index], count);
      }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = entry.buffers[entry.inputs[i]].value;
    SINTER_TRY(check_truth_values(*inputs[i], name, entry));
    if (rows[i] == INT64_MAX) continue;
    SINTER_TRY(check_range(inputs[i]->elements<int32_t>(), rows[i], name, true,
                           "entry " + printable(entry.name), "check the inputs"));
  }
  return {};
}

Status check_computed_rows(const EntryPlan& entry, size_t index,
                           llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<int32_t> values) {
  const RowCheck& check = entry.row_checks[index];
  const std::optional<int64_t> rows = check.rows.evaluate(symbol_values);
  if (!rows) return fail("a number of rows exceeds 63 bits", "entry " + printable(entry.name));
  const Buffer& buffer = entry.buffers[check.buffer];
  const bool is_input = buffer.place == Buffer::Place::input;
  return check_range(
      values, *rows, buffer.value, is_input,
      fmt::format("entry {}, %{}", printable(entry.name), printable(check.op)),
      is_input ? "check the inputs" : "the module computes it: check the module and the inputs");
}

}  // namespace sinter
