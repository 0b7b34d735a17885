// A group made ready for emission: primitives, the rows they share, and what is computed when.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"

namespace sinter {

/// Elements of a row that are walked together: all members with as many elements to a row.
struct Stage {
  SymExpr width;      // elements of a row
  Dims axes;          // outermost first, none of extent 1; their product is `width`
  int64_t lanes = 0;  // V of the stage's reductions, 0 if it has none
};

/// One thing a pass over the row does.
struct Task {
  ValueId value;        // a reduce, or the value of an output
  int64_t output = -1;  // which output, or -1: a reduce
  uint32_t stage = 0;   // index into GroupForm::stages
  uint32_t pass = 0;    // the number of reductions that must be complete, one after the other
};

struct GroupForm {
  Graph graph;  // primitives; inputs and outputs as in the group
  Dims prefix;  // the rows; empty if the group is not cut into rows: then everything is one "row"
  std::vector<Stage> stages;
  std::vector<Task> tasks;  // by pass, then stage, then op
  bool reduces = false;
  std::vector<std::string> output_names;  // in the kernel's text; empty: y0, y1, ...
  std::string table_name = "table";       // of constant tables before the function, with a number

  std::string output_name(size_t output) const {
    return output_names.empty() ? fmt::format("y{}", output) : output_names[output];
  }
  uint32_t passes() const { return tasks.empty() ? 0 : tasks.back().pass + 1; }
  /// The first pass that walks the stage.
  uint32_t first_pass(uint32_t stage) const {
    return llvm::find_if(tasks, [&](const Task& t) { return t.stage == stage; })->pass;
  }
  /// The value whose elements output `value` takes: an append's operand, the first operand of
  /// run_sums, else itself.
  ValueId stored(ValueId value) const {
    const Op& op = graph[value];
    if (op_class(op) == OpClass::run_sums) return op.operands[0];
    return op_class(op) == OpClass::append ? operand_with(op, OperandRole::update) : value;
  }
};

/// Fails on ops that kernels of rows, elements or columns cannot compute.
Status check_row_ops(const Graph& graph);

/// Fails on ops that a row or pointwise kernel cannot compute, and where members share no rows.
/// `by_rows`: groups without reductions are cut into rows as well.
Result<GroupForm> analyze_group(const Graph& group, uint32_t prefix_rank,
                                llvm::ArrayRef<Symbol> symbols, bool by_rows = false);

}  // namespace sinter
