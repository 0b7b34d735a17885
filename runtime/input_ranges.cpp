#include "runtime/input_ranges.h"

#include <algorithm>
#include <climits>

#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "ir/truth_values.h"

namespace sinter {

namespace {

/// A computed i32, element `i` of its value: casts to it end at the ends of the type.
Result<std::string> computed_text(int32_t value, size_t i, WideNumber wide) {
  if (value != INT32_MAX && value != INT32_MIN) return std::to_string(value);
  if (wide) {
    SINTER_LET(number, wide(i));
    if (number) return std::to_string(*number);
  }
  return fmt::format("{} or {}", value, value == INT32_MAX ? "more" : "less");
}

/// Element `i` of %`name`, `number`, is no number of `rows` rows, or no end of a run of them.
tl::unexpected<Error> outside(std::string_view name, size_t i, std::string_view number,
                              int64_t rows, bool ends, std::string where, std::string hint) {
  if (ends)
    return fail(fmt::format("%{}[{}] is {}; ends of runs of {} rows ascend from 0 to {}",
                            printable(name), i, number, rows, rows),
                std::move(where), std::move(hint));
  return fail(fmt::format("%{}[{}] is {}, outside the 0 .. {} that it points into", printable(name),
                          i, number, rows - 1),
              std::move(where), std::move(hint));
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
  std::vector<int64_t> rows(inputs.size(), INT64_MAX), ends = rows;
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    if (!facts.kernel) continue;
    const Graph& group = facts.kernel->group;
    for (const Op& op : group.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const std::optional<SymExpr> named = named_rows(group, op, i);
        if (!named || !operand_role(op, i).is_address()) continue;
        const std::optional<uint32_t> input = input_of(group, op.operands[i]);
        if (!input) continue;
        const Buffer& buffer = entry.buffers[facts.reads[*input]];
        if (buffer.place != Buffer::Place::input) continue;
        const int64_t count = named->evaluate(symbol_values).value_or(INT64_MAX);
        const bool is_end = operand_role(op, i).kind == OperandRole::group;
        int64_t& least = (is_end ? ends : rows)[buffer.index];
        least = std::min(least, count);
      }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = entry.buffers[entry.inputs[i]].value;
    SINTER_TRY(check_truth_values(*inputs[i], name, entry));
    for (const bool are_ends : {false, true}) {
      const int64_t count = (are_ends ? ends : rows)[i];
      if (count == INT64_MAX) continue;
      const auto values = inputs[i]->elements<int32_t>();
      if (const auto bad = find_outside(values, count, are_ends))
        return outside(name, *bad, std::to_string(values[*bad]), count, are_ends,
                       "entry " + printable(entry.name), "check the inputs");
    }
  }
  return {};
}

std::optional<size_t> wide_input(const Program& program, const EntryPlan& entry, size_t index) {
  for (const Step& step : entry.steps) {
    const StepFacts facts = step_facts(program, step);
    const auto at = llvm::find(facts.writes, entry.row_checks[index].buffer);
    if (!facts.kernel || at == facts.writes.end()) continue;
    const Graph& group = facts.kernel->group;
    const Op& op = group[group.outputs[static_cast<size_t>(at - facts.writes.begin())]];
    if (op.kind != OpKind::cast) return std::nullopt;
    const auto read = llvm::find(group.inputs, op.operands[0]);
    if (read == group.inputs.end()) return std::nullopt;
    const Buffer& buffer =
        entry.buffers[facts.reads[static_cast<size_t>(read - group.inputs.begin())]];
    const bool is_wide = buffer.type.dtype == DType::i64;
    if (!is_wide || buffer.place != Buffer::Place::input) return std::nullopt;
    return buffer.index;
  }
  return std::nullopt;
}

Status check_computed_rows(const EntryPlan& entry, size_t index,
                           llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<int32_t> values,
                           WideNumber wide) {
  const RowCheck& check = entry.row_checks[index];
  const std::optional<int64_t> rows = check.rows.evaluate(symbol_values);
  if (!rows) return fail("a number of rows exceeds 63 bits", "entry " + printable(entry.name));
  const Buffer& buffer = entry.buffers[check.buffer];
  const auto bad = find_outside(values, *rows, check.ends);
  if (!bad) return {};
  const std::string where =
      fmt::format("entry {}, %{}", printable(entry.name), printable(check.op));
  if (buffer.place == Buffer::Place::input)
    return outside(buffer.value, *bad, std::to_string(values[*bad]), *rows, check.ends, where,
                   "check the inputs");
  SINTER_LET(number, computed_text(values[*bad], *bad, wide));
  return outside(buffer.value, *bad, number, *rows, check.ends, where,
                 "the module computes it: check the module and the inputs");
}

}  // namespace sinter
