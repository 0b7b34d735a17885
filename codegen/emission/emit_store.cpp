// Where and how results are written.
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "ir/fault.h"
#include "ir/row_numbers.h"

namespace sinter {

/// The place in memory of the element of an output at `coords` of the stored value.
ValueEmitter::Place ValueEmitter::place(const Task& task, const IndexMap& coords) {
  const Op& op = form_.graph[task.value];
  if (places_part(op)) {
    IndexMap place = coords;
    place[static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis))] +=
        IndexExpr(SymExpr(op.attrs.get<int64_t>(AttrName::begin)));
    return {linearize(op.type.dims, place), {}};
  }
  if (!writes_rows(op)) return {linearize(op.type.dims, coords), {}};
  // The row of the state is loaded; the rest of the coordinates are the value's.
  const Level level = space_.level(coords[0]);
  const Dim rows = op.type.dims[0];
  CheckedRow slot{{}, value(operand_with(op, OperandRole::slot), {coords[0]}).text};
  if (is_checked(op)) slot = checked_row(slot.row, rows, level);
  IndexMap place = coords;
  place[0] = loaded_row(slot.row, rows, level);
  return {linearize(op.type.dims, place), slot.inside};
}

/// Adds the current element of each operand of run_sums to its column of the thread's chunk.
void ValueEmitter::add_to_runs(const Task& task, const std::string& guard) {
  const Op& op = form_.graph[task.value];
  const std::string condition = guard.empty() ? "" : fmt::format("if ({}) ", guard);
  if (fault(Fault::missing_output_write)) return;
  for (size_t k = 0; k < op.operands.size(); ++k)
    statement(fmt::format("{}{}[j].take(e, {});", condition, run_sums_name(task.output, k),
                          element(op.operands[k])));
}

std::string ValueEmitter::store(const Task& task, const std::string& guard, bool in_pairs) {
  if (op_class(form_.graph[task.value]) == OpClass::run_sums) {
    add_to_runs(task, guard);
    return {};
  }
  const ValueId stored = form_.stored(task.value);
  const TensorType& type = form_.graph[stored].type;
  const IndexMap coords = space_.identity(type.dims);
  const auto is_chunk = [&](const IndexExpr& at) {
    return current_ == &element_ && !single_ && space_.contiguous(at, chunk_alignment(type.dtype));
  };
  in_pairs &= rounds(form_.graph[stored]) && is_chunk(linearize(type.dims, coords)) &&
              !fault(Fault::dropped_rounding);
  const ValueCode element = before_rounding(stored, coords, in_pairs);
  const auto [at, inside] = place(task, coords);
  const std::string name = form_.output_name(task.output);
  const std::string both =
      guard.empty() || inside.empty() ? guard + inside : guard + " && " + inside;
  const std::string condition = both.empty() ? "" : fmt::format("if ({}) ", both);
  if (fault(Fault::missing_output_write)) return {};
  if (is_chunk(at)) {
    std::string chunk = element.array;
    in_pairs &= chunk.empty();
    if (chunk.empty()) {
      chunk = fmt::format("o{}", task.output);
      chunk_.line("{} {}[8];", register_type(type.dtype), chunk);
      element_.line("{}[e] = {};", chunk, element.text);
    }
    if (in_pairs) {
      const std::string rounded = fresh();
      chunk_.line("Packed<{}> {};", memory_type(type.dtype), rounded);
      statement_of_pair(fmt::format("pack_pair({}, {}, p);", rounded, chunk));
      chunk = rounded;
    }
    after_ += fmt::format("{}store_chunk({} + {}, {}{});\n", condition, name, space_.code(at, true),
                          chunk, tail_ ? ", valid" : "");
    return in_pairs ? chunk : "";
  }
  current_->line("{}store({} + {}, {});", condition, name, space_.code(at), element.text);
  return {};
}

}  // namespace sinter
