// The judge's question about kernels around a matvec: members in front of it make its operand's
// rows, again in every block; members behind it are computed where its sums are, one element from
// each of `units` of them:
//
//   %n  = rms_norm %x, %w                      in front: rows [N]
//   %gu = matvec %n, %m                        the anchor: [N, 2 * F]
//   %s  = silu (slice %gu 0..F)                behind: [N, F], units gu[n, j] and gu[n, F + j]
//   %a  = mul %s, (slice %gu F..2F)
#include "passes/fusion_state.h"

namespace sinter {
namespace {

/// Elements of a row behind the rows' axis.
SymExpr width_of(DimsRef dims) { return volume(dims.drop_front(1)); }

}  // namespace

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

double FusionState::anchored_seconds(llvm::ArrayRef<ValueId> members, ValueId anchor) const {
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
  // Fewer results than multiprocessors: the others have no part of the matrix to read.
  double results = static_cast<double>(width_of(facts_[anchor.index].dims).upper_bound(symbols_));
  for (ValueId member : members)
    if (!llvm::is_contained(front, member))
      results = static_cast<double>(width_of(facts_[member.index].dims).upper_bound(symbols_));
  const double share = std::min(1.0, results / static_cast<double>(device_.multiprocessors));
  return device_.launch_s + traffic(members) / (device_.memory_bytes_per_s * share) +
         again * static_cast<double>(device_.multiprocessors) / device_.cache_bytes_per_s;
}

std::optional<Verdict> FusionState::in_front(const Question& q) const {
  for (ValueId reader : q.members) {
    if (graph_[reader].kind == OpKind::kv_append)
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

std::optional<Verdict> FusionState::behind(const Question& q,
                                           llvm::ArrayRef<ValueId> members) const {
  const ValueId anchor = *q.merged.anchor;
  const SymExpr all = width_of(facts_[anchor.index].dims);
  const SymExpr width = members.empty() ? all : width_of(facts_[members[0].index].dims);
  for (ValueId reader : members) {
    const OpFacts& facts = facts_[reader.index];
    if (facts.reduces || width_of(facts.dims) != width)
      return refuse(Reason::anchor_part, name(reader));
    for (const Read& read : facts.reads) {
      if (!llvm::is_contained(q.members, read.root)) continue;
      // A row of one sum is no reader's own element unless the reader has one as well.
      const bool own = !read.loaded && place_of(q, read) == Place::own_element &&
                       (read.root != anchor || width == all);
      if (own && (read.root == anchor || llvm::is_contained(members, read.root))) continue;
      if (graph_[read.root].kind == OpKind::kv_append || read.loaded || read.root != anchor ||
          place_of(q, read) == Place::elsewhere)
        return refuse(Reason::anchor_part, fmt::format("{} of {}", name(reader), name(read.root)));
      // Element j takes row j + k * width of the matrix.
      IndexMap there(read.coords.begin() + 1, read.coords.end()), here;
      for (uint32_t i = 1; i < read.space.size(); ++i) here.push_back(IndexExpr::variable(i));
      IndexExpr apart = linearize(DimsRef(graph_[anchor].type.dims).drop_front(1), there);
      apart += linearize(DimsRef(read.space).drop_front(1), here) * SymExpr(-1);
      const bool unit = apart.terms().empty() && apart.constant().divide_exactly(width) &&
                        all.divide_exactly(width);
      if (!unit)
        return refuse(Reason::anchor_part, fmt::format("{} of {}", name(reader), name(anchor)));
    }
  }
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
  const bool leaves =
      is_output_[anchor.index] || llvm::any_of(users_[anchor.index], [&](ValueId user) {
        return !llvm::is_contained(members, user);
      });
  if (leaves && width != all && !members.empty())
    return refuse(Reason::anchor_part, fmt::format("{} has other readers", name(anchor)));
  const TensorType &x = graph_[graph_[anchor].operands[0]].type,
                   &w = graph_[graph_[anchor].operands[1]].type;
  const int64_t rows = w.dims[0].constant(), results = width.upper_bound(symbols_);
  if (results == 0 || !schedule_matvec(rows, rows / results, w.dims[1].constant(),
                                       static_cast<int64_t>(size_bytes(w.dtype)),
                                       graph_[anchor].attrs.get<int64_t>(AttrName::splits),
                                       SymExpr(x.dims[0]).upper_bound(symbols_), device_))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", rows, name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
