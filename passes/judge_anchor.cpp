// The judge's question about kernels around a matvec: members in front of it make its operand's
// rows, again in every block; members behind it are computed where its sums are, from those that
// one block can have (ir/matvec_rows.h):
//
//   %n  = rms_norm %x, %w                      in front: rows [N]
//   %gu = matvec %n, %m                        the anchor: [N, 2 * F]
//   %s  = silu (slice %gu 0..F)                behind: [N, F], from gu[n, j] and gu[n, F + j]
//   %a  = mul %s, (slice %gu F..2F)
#include <llvm/ADT/DenseMap.h>

#include <functional>

#include "ir/builder.h"
#include "ir/matvec_rows.h"
#include "ir/op_roles.h"
#include "passes/fusion_state.h"

namespace sinter {

std::optional<Verdict> FusionState::around_anchor(Question& q) const {
  const GroupShape &a = shapes_[q.ga], &b = shapes_[q.gb];
  for (uint32_t group : {q.ga, q.gb}) {
    if (shapes_[group].lone) return refuse(Reason::space_reduction, name(dag_.members(group)[0]));
    if (shapes_[group].closed) return refuse(Reason::port_closed, name(dag_.members(group)[0]));
  }
  if (a.anchor && b.anchor)
    return refuse(Reason::anchor_second,
                  fmt::format("{} and {}", name(*a.anchor), name(*b.anchor)));
  GroupShape& m = q.merged;
  m.anchor = a.anchor ? a.anchor : b.anchor;
  const Dim rows = facts_[m.anchor->index].dims[0];
  m.prefix = {rows};
  m.row_prefix = m.rows = 1;
  m.reduced = std::max(a.reduced, b.reduced);
  for (ValueId member : q.members) {
    const OpFacts& facts = facts_[member.index];
    const DimsRef walked =
        facts.reduces && !facts.reads.empty() ? facts.reads[0].space : facts.dims;
    const bool fits =
        !walked.empty() && walked[0] == rows && (!facts.reduces || facts.kept_axes == 1u);
    if (!fits)
      return refuse(Reason::space_prefix, fmt::format("{} against {}", show({rows}), show(walked)));
  }
  const Question front{q.a, q.b, q.ga, q.gb, q.merged, up_to(*m.anchor, q.members)};
  if (auto verdict = in_front(front)) return verdict;
  llvm::SmallVector<ValueId, 8> others;
  llvm::copy_if(q.members, std::back_inserter(others),
                [&](ValueId member) { return !llvm::is_contained(front.members, member); });
  return behind(q, others);
}

llvm::SmallVector<ValueId, 8> FusionState::up_to(ValueId last,
                                                 llvm::ArrayRef<ValueId> members) const {
  llvm::SmallVector<ValueId, 8> found, needed = {last};
  for (ValueId member : llvm::reverse(members)) {
    if (!llvm::is_contained(needed, member)) continue;
    found.insert(found.begin(), member);
    for (const Read& read : facts_[member.index].reads) needed.push_back(read.root);
  }
  return found;
}

double FusionState::anchored_seconds(llvm::ArrayRef<ValueId> members,
                                     const GroupShape& shape) const {
  const ValueId anchor = *shape.anchor;
  // Every block reads from the cache what the members in front of the anchor need. Taken at one
  // token: that is what these kernels are for.
  const llvm::SmallVector<ValueId, 8> front = up_to(anchor, members);
  double again = 0;
  for (ValueId member : front)
    for (const Read& read : facts_[member.index].reads)
      if (member != anchor && !llvm::is_contained(front, read.root) && !read.loaded)
        again +=
            bytes(read.root) /
            (graph_[read.root].type.dims.empty() || graph_[read.root].type.dims[0].is_constant()
                 ? 1
                 : static_cast<double>(
                       SymExpr(graph_[read.root].type.dims[0]).upper_bound(symbols_)));
  // Fewer classes of rows than multiprocessors: the others have no part of the matrix to read.
  const double share = std::min(
      1.0, static_cast<double>(shape.classes) / static_cast<double>(device_.multiprocessors));
  return device_.launch_s + traffic(members) / (device_.memory_bytes_per_s * share) +
         again * static_cast<double>(device_.multiprocessors) / device_.cache_bytes_per_s;
}

std::optional<Verdict> FusionState::in_front(const Question& q) const {
  for (ValueId reader : q.members) {
    if (writes_state(graph_[reader]))
      return refuse(Reason::state_version, fmt::format("every block would write {}", name(reader)));
    for (const Read& read : facts_[reader.index].reads)
      if (llvm::is_contained(q.members, read.root))
        if (auto verdict = read_fits(q, reader, read)) return verdict;
  }
  if (auto verdict = recomputed_once(q)) return verdict;
  if (q.members.size() == 1) return std::nullopt;
  const ValueId x = graph_[*q.merged.anchor].operands[0];
  const SymExpr bytes =
      volume(graph_[x].type.dims) * SymExpr(static_cast<int64_t>(size_bytes(graph_[x].type.dtype)));
  const int64_t most = bytes.upper_bound(symbols_), limit = matvec_operand_limit(device_);
  if (most <= limit) return std::nullopt;
  return refuse(Reason::profit_configuration,
                fmt::format("rows of {} bytes in {} bytes of shared memory", most, limit));
}

/// The kernel's text is made from its results, each through all that stands between (MatvecBehind):
/// the same question as there, of those that this kernel would have.
std::optional<Verdict> FusionState::results_behind(const Question& q,
                                                   llvm::ArrayRef<ValueId> members) const {
  const ValueId anchor = *q.merged.anchor;
  Graph results;
  Builder builder(results, symbols_);
  llvm::DenseMap<uint32_t, ValueId> copies;
  copies[anchor.index] = builder.leaf(OpKind::input, graph_[anchor].type, "");
  const std::function<ValueId(ValueId)> copy = [&](ValueId id) {
    if (const auto known = copies.find(id.index); known != copies.end()) return known->second;
    Op op = graph_[id];
    ValueId made;
    if (computes(op) ? llvm::is_contained(members, id) : op_class(op) != OpClass::leaf) {
      for (ValueId& operand : op.operands) operand = copy(operand);
      made = results.add(std::move(op));
    } else {
      made = builder.leaf(OpKind::input, op.type, "");
    }
    return copies[id.index] = made;
  };
  llvm::SmallVector<ValueId, 8> leaving;
  for (ValueId member : members)
    if (is_output_[member.index] || writes_state(graph_[member]) ||
        llvm::any_of(users_[member.index],
                     [&](ValueId user) { return !llvm::is_contained(q.members, user); })) {
      leaving.push_back(member);
      results.outputs.push_back(copy(member));
    }
  const auto deal = matvec_rows(results, copies[anchor.index], symbols_);
  const auto* stranger = std::get_if<MatvecStranger>(&deal);
  if (!stranger) return std::nullopt;
  const auto at = llvm::find(results.outputs, stranger->reader) - results.outputs.begin();
  return refuse(Reason::anchor_part, fmt::format("{} of {}", name(leaving[at]), name(anchor)));
}

std::optional<Verdict> FusionState::behind(Question& q, llvm::ArrayRef<ValueId> members) const {
  const ValueId anchor = *q.merged.anchor;
  for (ValueId reader : members)
    for (const Read& read : facts_[reader.index].reads)
      if (llvm::is_contained(q.members, read.root) && read.root != anchor &&
          !llvm::is_contained(members, read.root))
        return refuse(Reason::anchor_part, fmt::format("{} of {}", name(reader), name(read.root)));
  const auto deal = matvec_rows(graph_, anchor, members,
                                [&](ValueId id) -> const OpFacts& { return facts_[id.index]; });
  if (const auto* stranger = std::get_if<MatvecStranger>(&deal))
    return refuse(Reason::anchor_part,
                  fmt::format("{} of {}", name(stranger->reader), name(stranger->root)));
  if (auto refusal = results_behind(q, members)) return refusal;
  // What neither takes the sums nor helps those that do would only wait for the product.
  llvm::SmallVector<ValueId, 8> takers = {anchor}, useful;
  for (ValueId member : members)
    if (llvm::any_of(facts_[member.index].reads,
                     [&](const Read& read) { return llvm::is_contained(takers, read.root); }))
      takers.push_back(member);
  for (ValueId taker : takers) llvm::append_range(useful, up_to(taker, members));
  for (ValueId member : members)
    if (!llvm::is_contained(useful, member))
      return refuse(Reason::anchor_part,
                    fmt::format("{} does not need {}", name(member), name(anchor)));
  const MatvecProduct product = matvec_product(graph_, graph_[anchor], symbols_);
  const int64_t units = std::get<MatvecRows>(deal).units;
  q.merged.classes = product.rows / units;
  if (product.rows == 0 || !schedule_matvec(product, units, device_))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", product.rows, name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
