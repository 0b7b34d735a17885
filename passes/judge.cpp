// The judge: one function for every question about groups, its checks in the order of the design.
#include <algorithm>
#include <cmath>

#include "ir/fault.h"
#include "ir/op_roles.h"
#include "ir/reduction_order.h"
#include "passes/fusion_state.h"

namespace sinter {

namespace {

Dims common_prefix(DimsRef a, DimsRef b) {
  Dims prefix;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) prefix.push_back(a[i]);
  return prefix;
}

}  // namespace

std::optional<Verdict> FusionState::constraints(Members x, Members y) const {
  const auto holds = [&](Members members, std::string_view name) {
    return llvm::any_of(members, [&](ValueId id) { return graph_[id].name == name; });
  };
  for (const auto& [a, b] : options_.forbidden)
    if ((holds(x, a) && holds(y, b)) || (holds(x, b) && holds(y, a)))
      return refuse(Reason::forbidden, fmt::format("{} with {}", a, b));
  if (options_.stop_after >= 0 && accepted >= options_.stop_after)
    return refuse(Reason::stopped, fmt::format("after {} fusions", accepted));
  return std::nullopt;
}

std::optional<Verdict> FusionState::space(Question& q) const {
  const GroupShape &a = shapes_[q.ga], &b = shapes_[q.gb];
  GroupShape& m = q.merged;
  for (uint32_t group : {q.ga, q.gb}) {
    if (shapes_[group].lone) return refuse(Reason::space_reduction, name(dag_.members(group)[0]));
    if (shapes_[group].closed) return refuse(Reason::port_closed, name(dag_.members(group)[0]));
  }
  if (a.row_prefix && b.row_prefix && *a.row_prefix != *b.row_prefix)
    return refuse(Reason::space_prefix,
                  fmt::format("{} against {}", show(DimsRef(a.prefix).take_front(*a.row_prefix)),
                              show(DimsRef(b.prefix).take_front(*b.row_prefix))));
  m.prefix = common_prefix(a.prefix, b.prefix);
  m.row_prefix = a.row_prefix ? a.row_prefix : b.row_prefix;
  if (m.row_prefix && m.prefix.size() < *m.row_prefix)
    return refuse(Reason::space_prefix,
                  fmt::format("{} against {}", show(a.prefix), show(b.prefix)));
  m.reduced = std::max(a.reduced, b.reduced);
  if (m.prefix.empty() && !m.row_prefix && !(a.prefix.empty() && b.prefix.empty())) {
    // Without a common axis only equal numbers of elements can be walked together.
    const SymExpr x = volume(facts_[q.a.index].dims), y = volume(facts_[q.b.index].dims);
    if (x != y)
      return refuse(Reason::space_prefix, fmt::format("{} against {}", show(facts_[q.a.index].dims),
                                                      show(facts_[q.b.index].dims)));
  }
  m.rows = row_axes(q.members, m);
  return std::nullopt;
}

std::optional<Verdict> FusionState::states(Members x, Members y) const {
  // An append writes rows in place: nobody in its kernel may read any version of that state.
  for (const auto& [writers, readers] : {std::pair(x, y), std::pair(y, x)})
    for (ValueId writer : writers) {
      if (!writes_state(graph_[writer])) continue;
      const ValueId version = operand_with(graph_[writer], OperandRole::state);
      for (ValueId reader : readers)
        for (const Read& read : facts_[reader.index].reads)
          if (read.root == version || read.root == writer)
            return refuse(Reason::state_version,
                          fmt::format("{} reads what {} writes", name(reader), name(writer)));
    }
  return std::nullopt;
}

double FusionState::bytes(ValueId id) const {
  const TensorType& type = written_type(graph_, graph_[id]);
  double product = static_cast<double>(size_bytes(type.dtype));
  for (Dim dim : type.dims)
    product *=
        static_cast<double>(dim.is_constant() ? dim.constant() : symbols_[dim.symbol().index].high);
  return product;
}

double FusionState::traffic(llvm::ArrayRef<ValueId> members) const {
  const auto inside = [&](ValueId id) {
    return std::binary_search(members.begin(), members.end(), id);
  };
  double total = 0;
  llvm::SmallVector<ValueId, 8> read;
  for (ValueId member : members) {
    for (const Read& r : facts_[member.index].reads) {
      if (inside(r.root) || llvm::is_contained(read, r.root)) continue;
      read.push_back(r.root);
      // A gather, or a part of a larger value, moves at most what the reader computes.
      const bool whole = facts_[member.index].anchor;
      total += whole ? bytes(r.root)
                     : std::min(bytes(r.root),
                                static_cast<double>(size_bytes(graph_[r.root].type.dtype)) /
                                    size_bytes(graph_[member].type.dtype) * bytes(member));
    }
    const bool stored =
        writes_state(graph_[member]) || is_output_[member.index] ||
        llvm::any_of(users_[member.index], [&](ValueId user) { return !inside(user); });
    if (stored) total += bytes(member);
  }
  return total;
}

uint32_t FusionState::row_axes(llvm::ArrayRef<ValueId> members, const GroupShape& shape) const {
  if (shape.row_prefix) return *shape.row_prefix;
  // Elementwise groups may cut their space anywhere in the shared axes: rows as short as they can
  // be while still worth a few vector accesses.
  constexpr double kLeastWidth = 256;  // elements
  auto rows = static_cast<uint32_t>(shape.prefix.size());
  const auto narrow = [&](ValueId id) {
    double width = 1;
    for (Dim dim : DimsRef(facts_[id.index].dims).drop_front(rows))
      width *= static_cast<double>(dim.is_constant() ? dim.constant()
                                                     : symbols_[dim.symbol().index].high);
    return width < kLeastWidth;
  };
  while (rows > 0 && llvm::all_of(members, narrow)) --rows;
  return rows;
}

RowProblem FusionState::row_problem(llvm::ArrayRef<ValueId> members,
                                    const GroupShape& shape) const {
  RowProblem problem;
  problem.rows = volume(DimsRef(shape.prefix).take_front(shape.rows));
  problem.reductions = 0;
  llvm::SmallVector<SymExpr, 2> widths;  // of problem.stages
  for (ValueId member : members) {
    const OpFacts& facts = facts_[member.index];
    // A reduction written in primitives leaves one element; what it walks is its operand.
    const Dims& walked = facts.reduces && !facts.reads.empty() ? facts.reads[0].space : facts.dims;
    const DimsRef inner = DimsRef(walked).drop_front(std::min<size_t>(shape.rows, walked.size()));
    const SymExpr width = volume(inner);
    const auto at = llvm::find(widths, width);
    const size_t stage = at - widths.begin();
    if (at == widths.end()) {
      widths.push_back(width);
      const int64_t elements = width.upper_bound(symbols_);
      problem.stages.push_back(
          {.chunks = ceil_div(elements, kChunk), .symbolic = !width.is_constant()});
    }
    if (!facts.reduces) continue;
    const int64_t lanes = width.is_constant() ? virtual_lanes(width.constant()) : kSymbolicLanes;
    problem.stages[stage].lanes = lanes;
    problem.stages[stage].kept_bytes += 4;
    ++problem.reductions;
  }
  return problem;
}

std::optional<FusionState::Blocks> FusionState::blocks(Members members, const GroupShape& shape,
                                                       int64_t least_threads) const {
  RowProblem problem = row_problem(members, shape);
  problem.least_threads = least_threads;
  const auto config = schedule_rows(problem, symbols_, device_);
  if (!config) return std::nullopt;
  double blocks = static_cast<double>(problem.rows.upper_bound(symbols_)) /
                  static_cast<double>(config->rows_per_block);
  if (problem.reductions == 0) {  // chunks, not rows, are spread over the blocks
    double chunks = 0;
    for (const RowProblem::Stage& stage : problem.stages)
      chunks += static_cast<double>(stage.chunks);
    blocks = static_cast<double>(problem.rows.upper_bound(symbols_)) * chunks /
             static_cast<double>(config->threads);
  }
  return Blocks{blocks, *config};
}

double FusionState::seconds(double blocks, double bytes) const {
  // A device is full at about two blocks per multiprocessor; fewer move fewer bytes per second.
  const double share =
      std::clamp(blocks / (2.0 * static_cast<double>(device_.multiprocessors)), 1e-3, 1.0);
  return device_.launch_s + bytes / (device_.memory_bytes_per_s * share);
}

double FusionState::seconds(Members members, const GroupShape& shape) const {
  if (shape.anchor) return anchored_seconds(members, shape);
  const auto launched = blocks(members, shape);
  return launched ? seconds(launched->count, traffic(members)) : INFINITY;
}

size_t FusionState::pointers(Members members) const {
  size_t count = 0;
  for (ValueId member : members) count += 1 + facts_[member.index].reads.size();
  return count;
}

std::optional<Verdict> FusionState::profit(const Question& q) const {
  llvm::ArrayRef<ValueId> members = q.members;
  const double together = seconds(members, q.merged);
  if (std::isinf(together) || pointers(members) > kMostPointers)
    return refuse(Reason::profit_configuration,
                  fmt::format("{} ops, {} reads and results", members.size(), pointers(members)));
  const double apart =
      seconds(dag_.members(q.ga), shapes_[q.ga]) + seconds(dag_.members(q.gb), shapes_[q.gb]);
  if (together > apart)
    return refuse(Reason::profit_slower,
                  fmt::format("{:.2f} us together, {:.2f} us apart", together * 1e6, apart * 1e6));
  return std::nullopt;
}

FusionState::Question FusionState::question(ValueId a, ValueId b) const {
  Question q{a, b, dag_.find(a), dag_.find(b), {}, {}};
  SINTER_CHECK(q.ga != q.gb, "{} and {} share a kernel already", name(a), name(b));
  if (dag_.position(q.ga) > dag_.position(q.gb)) {
    std::swap(q.a, q.b);
    std::swap(q.ga, q.gb);
  }
  q.members.append(dag_.members(q.ga).begin(), dag_.members(q.ga).end());
  q.members.append(dag_.members(q.gb).begin(), dag_.members(q.gb).end());
  llvm::sort(q.members);
  return q;
}

void FusionState::merge(ValueId a, ValueId b) {
  Question q = question(a, b);
  const bool anchored = shapes_[q.ga].anchor || shapes_[q.gb].anchor;
  const bool fits =
      join_product(q, q.members) || (anchored ? !around_anchor(q) : !space(q) && !cut_rows(q));
  SINTER_CHECK(fits, "{} and {} do not fit", name(a), name(b));
  shapes_[dag_.merge(q.ga, q.gb)] = q.merged;
  ++accepted;
}

void FusionState::add_witness(ValueId a, ValueId b, Verdict& verdict) const {
  if (verdict.reason != Reason::convexity_path) return;
  const Question q = question(a, b);
  verdict.path = dag_.witness(q.a, q.b);
}

Verdict FusionState::judge(ValueId a, ValueId b) const {
  Question q = question(a, b);
  const Members x = dag_.members(q.ga), y = dag_.members(q.gb);
  if (auto verdict = constraints(x, y)) return *verdict;
  const auto convexity = [&]() -> std::optional<Verdict> {
    if (fault(Fault::skipped_convexity) || !dag_.path_outside(q.ga, q.gb)) return std::nullopt;
    return Verdict{Reason::convexity_path, "", {}, 0};
  };
  const bool anchored = shapes_[q.ga].anchor || shapes_[q.gb].anchor;
  // Where no call takes more than its product, the two ops are what could have been one.
  const bool strict = options_.numerics == Numerics::strict;
  const ValueId pair[] = {std::min(q.a, q.b), std::max(q.a, q.b)};
  const bool product = join_product(q, strict ? Members(pair) : Members(q.members));
  std::optional<Verdict> refusal;
  // Around products a path is the reason that holds whatever else they are fused with.
  if (!product) refusal = anchored ? convexity() : space(q);
  if (!product && !refusal) refusal = anchored ? around_anchor(q) : cut_rows(q);
  if (!refusal) refusal = states(x, y);
  if (!refusal && !anchored) refusal = convexity();
  // A call that does more is a launch and a value in memory less.
  if (!refusal && !product) refusal = profit(q);
  if (!refusal && product && strict)
    refusal = refuse(Reason::numerics_strict, fmt::format("in the call of {}", name(pair[0])));
  if (refusal) return *refusal;
  Verdict verdict;
  if (q.merged.anchor && up_to(*q.merged.anchor, q.members).size() > 1)
    verdict.detail =
        fmt::format("what stands in front of {} is computed by each of its blocks, at most {}",
                    name(*q.merged.anchor), device_.multiprocessors);
  verdict.saved_bytes = traffic(x) + traffic(y) - traffic(q.members);
  return verdict;
}

}  // namespace sinter
