// Kernels whose text a caller brings.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/contraction.h"
#include "kernels/custom/parts.h"

namespace sinter {

EmitKernel emit_custom;

namespace {

constexpr OpKind kAnchors[] = {OpKind::custom};

/// An operand without axes has no elements to count by: it is closed.
Ports custom_ports(const Graph& graph, const Op& op) {
  const CustomOp& record = custom_op_of(op);
  const size_t rows = custom_row_axes(record, op.type.rank());
  const auto axes_of = [&](const Dims& dims) {
    return static_cast<uint32_t>(std::min(rows, dims.size()));
  };
  Ports ports;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const Dims& dims = graph[op.operands[k]].type.dims;
    Ports::Place place;
    if (is_open_operand(record, k) && !dims.empty())
      place = {.port = Port::element, .row_axes = axes_of(dims), .walked = dims};
    ports.operands.push_back(std::move(place));
  }
  if (record.open_result)
    ports.result = {.port = Port::element, .row_axes = axes_of(op.type.dims), .walked = {}};
  return ports;
}

/// Blocks are as many as rows, whatever is fused.
std::optional<KernelCost> custom_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Op& op = problem.graph()[group.anchor()];
  const CustomOp& record = custom_op_of(op);
  if (record.threads > problem.device().max_threads_per_block ||
      record.shared_bytes > problem.device().max_shared_bytes)
    return std::nullopt;
  const double blocks = problem.count(custom_rows(op));
  return KernelCost{
      .seconds = launch_seconds(problem.device(), blocks, moved(problem, group.members)),
      .blocks = blocks,
      .threads = record.threads};
}

/// A value that other kernels read too is stored by this kernel, which is not launched without
/// rows.
std::optional<Verdict> admits_custom_prologue(const GroupView& group) {
  const FusionProblem& problem = group.problem;
  const ValueId anchor = group.anchor();
  const Op& op = problem.graph()[anchor];
  const SymExpr rows = custom_rows(op);
  if (rows.is_constant() && !rows.is(0)) return std::nullopt;
  for (ValueId member : group.prologue) {
    const SymExpr elements = volume(problem.graph()[member].type.dims);
    if (member == anchor || !problem.read_outside(member, group.members) ||
        (!rows.is(0) && elements.divide_exactly(rows)))
      continue;
    return refuse(Reason::space_prefix, fmt::format("{} is stored, and {} may have no row",
                                                    problem.name(member), problem.name(anchor)));
  }
  return std::nullopt;
}

/// An open operand is computed through its views, a closed one is read as it stands in memory.
bool custom_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  const bool open =
      is_open_operand(custom_op_of(op), operand) && graph[op.operands[operand]].type.rank() > 0;
  return open || is_dense(graph, op.operands[operand]);
}

}  // namespace

extern const KernelFamily custom_family;
constinit const KernelFamily custom_family{
    .name = "custom",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_custom,
    .cost = custom_cost,
    .ports = custom_ports,
    .admits_prologue = admits_custom_prologue,
    .addresses = custom_addresses,
};

}  // namespace sinter
