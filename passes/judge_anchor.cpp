// The judge's checks of kernels around a matvec: members in front of it make its operand's
// rows, again in every block; members behind it are computed where its sums are, from those that
// one block can have (ir/matvec_rows.h):
//
//   %n  = rms_norm %x, %w                      in front: rows [N]
//   %gu = matvec %n, %m                        the anchor: [N, 2 * F]
//   %s  = silu (slice %gu 0..F)                behind: [N, F], from gu[n, j] and gu[n, F + j]
//   %a  = mul %s, (slice %gu F..2F)
#include <llvm/ADT/DenseMap.h>

#include <functional>

#include "device/schedule.h"
#include "ir/builder.h"
#include "ir/matvec_rows.h"
#include "ir/op_roles.h"
#include "passes/judge_checks.h"

namespace sinter {
namespace {

Verdict part_of_row(const Question& q, ValueId reader, ValueId root) {
  return refuse(Reason::anchor_part,
                fmt::format("{} of {}", q.problem.name(reader), q.problem.name(root)));
}

/// The results that the kernel would have behind its product, each computed through all that stands
/// between it and the sums: a graph whose first value is the sums, and the members that its outputs
/// are.
struct Results {
  Graph graph;
  ValueId sums;
  llvm::SmallVector<ValueId, 8> leaving;
};

Results results_of(const Question& q) {
  const Graph& graph = q.problem.graph();
  const ValueId anchor = *q.merged.anchor;
  Results results;
  Builder builder(results.graph, q.problem.symbols());
  llvm::DenseMap<uint32_t, ValueId> copies;
  results.sums = builder.leaf(OpKind::input, graph[anchor].type, "");
  copies[anchor.index] = results.sums;
  const std::function<ValueId(ValueId)> copy = [&](ValueId id) {
    if (const auto known = copies.find(id.index); known != copies.end()) return known->second;
    Op op = graph[id];
    ValueId made;
    if (computes(op) ? llvm::is_contained(q.epilogue, id) : op_class(op) != OpClass::leaf) {
      for (ValueId& operand : op.operands) operand = copy(operand);
      made = results.graph.add(std::move(op));
    } else {
      made = builder.leaf(OpKind::input, op.type, "");
    }
    return copies[id.index] = made;
  };
  for (ValueId member : q.epilogue)
    if (writes_state(graph[member]) || q.problem.read_outside(member, q.members)) {
      results.leaving.push_back(member);
      results.graph.outputs.push_back(copy(member));
    }
  return results;
}

/// The kernel's text is made from its results (MatvecBehind): the same question as there.
std::optional<Verdict> results_fit(const Question& q) {
  const Results results = results_of(q);
  const auto deal = matvec_rows(results.graph, results.sums, q.problem.symbols());
  const auto* stranger = std::get_if<MatvecStranger>(&deal);
  if (!stranger) return std::nullopt;
  const auto at =
      llvm::find(results.graph.outputs, stranger->reader) - results.graph.outputs.begin();
  return part_of_row(q, results.leaving[at], *q.merged.anchor);
}

/// Refuses a member that neither takes the sums nor helps those that do: it would only wait for the
/// product.
std::optional<Verdict> needs_no_sums(const Question& q) {
  const ValueId anchor = *q.merged.anchor;
  llvm::SmallVector<ValueId, 8> takers = {anchor}, useful;
  for (ValueId member : q.epilogue)
    if (llvm::any_of(q.problem.facts(member).reads,
                     [&](const Read& read) { return llvm::is_contained(takers, read.root); }))
      takers.push_back(member);
  for (ValueId taker : takers) llvm::append_range(useful, q.problem.up_to(taker, q.epilogue));
  for (ValueId member : q.epilogue)
    if (!llvm::is_contained(useful, member))
      return refuse(Reason::anchor_part, fmt::format("{} does not need {}", q.problem.name(member),
                                                     q.problem.name(anchor)));
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> checks::anchored_space(Question& q) {
  if (auto refusal = stays_alone(q)) return refusal;
  const GroupShape &a = q.first_shape(), &b = q.second_shape();
  if (a.anchor && b.anchor)
    return refuse(Reason::anchor_second,
                  fmt::format("{} and {}", q.problem.name(*a.anchor), q.problem.name(*b.anchor)));
  GroupShape& m = q.merged;
  m.anchor = a.anchor ? a.anchor : b.anchor;
  const Dim rows = q.problem.facts(*m.anchor).dims[0];
  m.prefix = {rows};
  m.row_prefix = m.rows = 1;
  m.reduced = std::max(a.reduced, b.reduced);
  for (ValueId member : q.members) {
    const OpFacts& facts = q.problem.facts(member);
    const DimsRef walked = facts.walked();
    const bool fits =
        !walked.empty() && walked[0] == rows && (!facts.reduces || facts.kept_axes == 1u);
    if (!fits)
      return refuse(Reason::space_prefix,
                    fmt::format("{} against {}", q.problem.show({rows}), q.problem.show(walked)));
  }
  q.prologue = q.problem.up_to(*m.anchor, q.members);
  llvm::copy_if(q.members, std::back_inserter(q.epilogue),
                [&](ValueId member) { return !llvm::is_contained(q.prologue, member); });
  return std::nullopt;
}

std::optional<Verdict> checks::prologue(Question& q) {
  const Graph& graph = q.problem.graph();
  for (ValueId reader : q.prologue) {
    if (writes_state(graph[reader]))
      return refuse(Reason::state_version,
                    fmt::format("every block would write {}", q.problem.name(reader)));
    for (const Read& read : q.problem.facts(reader).reads)
      if (llvm::is_contained(q.prologue, read.root))
        if (auto refusal = read_fits(q.problem, q.merged, reader, read)) return refusal;
  }
  if (auto refusal = recomputed_once(q.problem, q.merged, q.prologue)) return refusal;
  if (q.prologue.size() == 1) return std::nullopt;
  const TensorType& x = graph[graph[*q.merged.anchor].operands[0]].type;
  const llvm::ArrayRef<Symbol> symbols = q.problem.symbols();
  const int64_t most = storage_bytes(x, symbols).upper_bound(symbols),
                limit = matvec_operand_limit(q.problem.device());
  if (most <= limit) return std::nullopt;
  return refuse(Reason::profit_configuration,
                fmt::format("rows of {} bytes in {} bytes of shared memory", most, limit));
}

std::optional<Verdict> checks::epilogue(Question& q) {
  const Graph& graph = q.problem.graph();
  const ValueId anchor = *q.merged.anchor;
  for (ValueId reader : q.epilogue)
    for (const Read& read : q.problem.facts(reader).reads)
      if (llvm::is_contained(q.prologue, read.root) && read.root != anchor)
        return part_of_row(q, reader, read.root);
  const auto deal = matvec_rows(graph, anchor, q.epilogue,
                                [&](ValueId id) -> const OpFacts& { return q.problem.facts(id); });
  if (const auto* stranger = std::get_if<MatvecStranger>(&deal))
    return part_of_row(q, stranger->reader, stranger->root);
  if (auto refusal = results_fit(q)) return refusal;
  if (auto refusal = needs_no_sums(q)) return refusal;
  const MatvecProduct product = matvec_product(graph, graph[anchor], q.problem.symbols());
  const int64_t units = std::get<MatvecRows>(deal).units;
  q.merged.classes = product.rows / units;
  if (product.rows == 0 || !schedule_matvec(product, units, q.problem.device()))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", product.rows, q.problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
