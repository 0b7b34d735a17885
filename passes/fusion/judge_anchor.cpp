// The judge's checks of kernels around an anchor. Members of the prologue make an operand where the
// anchor's family opens a port for it; members of the epilogue take the result:
//
//   %n  = rms_norm %x, %w                      prologue: the rows of the operand, [N]
//   %gu = linear %n, %m {order = gemv}                        the anchor: [N, 2 * F]
//   %a  = silu %gu                             epilogue
#include "ir/op_roles.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

/// Refuses an operand that has no port.
Verdict from_memory(const Question& q, ValueId value) {
  return refuse(Reason::port_closed,
                fmt::format("{} takes {} from memory", q.problem.name(*q.merged.anchor),
                            q.problem.name(value)));
}

/// The ops that the kernel computes in one go: its anchor and the companions.
llvm::SmallVector<ValueId, 2> anchors_of(const GroupShape& shape) {
  llvm::SmallVector<ValueId, 2> anchors = {*shape.anchor};
  llvm::append_range(anchors, shape.companions);
  return anchors;
}

/// The anchor and companions of both groups; nothing where they cannot share a kernel.
std::optional<llvm::SmallVector<ValueId, 2>> joined_anchors(const Question& q) {
  llvm::SmallVector<ValueId, 2> all;
  for (const GroupShape* shape : {&q.first_shape(), &q.second_shape()})
    if (shape->anchor) llvm::append_range(all, anchors_of(*shape));
  const Graph& graph = q.problem.graph();
  // The anchor is the one whose companions all the others are.
  for (ValueId& anchor : all)
    if (llvm::all_of(all, [&, family = q.problem.family(anchor)](ValueId id) {
          return id == anchor || (q.problem.family(id) == family &&
                                  is_companion(*family, graph[anchor], graph[id]));
        })) {
      std::swap(anchor, all.front());
      llvm::sort(all.begin() + 1, all.end());
      return all;
    }
  return std::nullopt;
}

/// The kernel's shape with the rows of an operand or a result over `space`.
GroupShape with_rows(const Question& q, Dims space, const Ports::Place& place,
                     bool has_whole_rows) {
  GroupShape shape = q.merged;
  shape.prefix = std::move(space);
  shape.prefix.resize(place.row_axes, Dim(1));
  shape.rows = place.row_axes;
  shape.row_prefix = has_whole_rows ? std::optional(place.row_axes) : std::nullopt;
  return shape;
}

/// An open operand of the anchor, the members that compute it, and the rows that they walk.
struct Entrance {
  size_t operand;
  Port port;
  GroupShape shape;  // the kernel's, with the rows of this operand
  llvm::SmallVector<ValueId, 8> members;
};

llvm::SmallVector<Entrance, 2> entrances(const Question& q) {
  const ValueId anchor = *q.merged.anchor;
  const Ports ports = q.problem.ports(anchor);
  llvm::SmallVector<Entrance, 2> found;
  for (size_t k = 0; k < ports.operands.size(); ++k) {
    const Ports::Place& place = ports.operands[k];
    if (!is_open(place.port)) continue;
    const Read& read = q.problem.facts(anchor).reads[k];
    found.push_back({k, place.port, with_rows(q, read.space, place, place.port != Port::element),
                     q.problem.up_to(read.root, q.members)});
  }
  return found;
}

/// The kernel's shape with the rows of its result.
GroupShape shape_of_result(const Question& q) {
  const Ports::Place result = q.problem.ports(*q.merged.anchor).result;
  return with_rows(q, q.problem.facts(*q.merged.anchor).dims, result, result.port == Port::row);
}

/// Refuses a member that does not walk the rows of `shape`.
std::optional<Verdict> walks_rows(const Question& q, ValueId member, const GroupShape& shape,
                                  bool may_reduce) {
  const OpFacts& facts = q.problem.facts(member);
  const DimsRef walked = facts.walked(), rows = shape.prefix;
  const bool fits = walked.size() >= rows.size() && walked.take_front(rows.size()) == rows &&
                    (!facts.reduces || (may_reduce && facts.kept_axes == rows.size()));
  if (fits) return std::nullopt;
  return refuse(Reason::space_prefix,
                fmt::format("{} against {}", q.problem.show(rows), q.problem.show(walked)));
}

}  // namespace

std::optional<Verdict> checks::anchored_space(Question& q) {
  if (auto refusal = stays_alone(q)) return refusal;
  const GroupShape &a = q.first_shape(), &b = q.second_shape();
  const auto anchors = joined_anchors(q);
  for (const GroupShape* shape : {&a, &b})
    if (!anchors && shape->anchor && !q.problem.ports(*shape->anchor).any_open())
      return refuse(Reason::port_closed, q.problem.name(*shape->anchor));
  if (!anchors)
    return refuse(Reason::anchor_second,
                  fmt::format("{} and {}", q.problem.name(*a.anchor), q.problem.name(*b.anchor)));
  GroupShape& m = q.merged;
  m = a.anchor == anchors->front() ? a : b;
  m.companions.assign(anchors->begin() + 1, anchors->end());
  m.reduced = std::max(a.reduced, b.reduced);
  for (ValueId anchor : *anchors)
    llvm::append_range(q.prologue, q.problem.up_to(anchor, q.members));
  llvm::sort(q.prologue);
  q.prologue.erase(std::unique(q.prologue.begin(), q.prologue.end()), q.prologue.end());
  for (ValueId member : q.members)
    if (!llvm::is_contained(q.prologue, member))
      (is_side_result(q, member) ? q.side_results : q.epilogue).push_back(member);
  const llvm::SmallVector<Entrance, 2> open = entrances(q);
  const GroupShape result = shape_of_result(q);
  for (ValueId member : q.members) {
    if (llvm::is_contained(*anchors, member) || llvm::is_contained(q.side_results, member))
      continue;
    const auto entrance = llvm::find_if(
        open, [&](const Entrance& one) { return llvm::is_contained(one.members, member); });
    const bool enters = entrance != open.end();
    // It makes an operand that has no port.
    if (!enters && llvm::is_contained(q.prologue, member)) return from_memory(q, member);
    if (auto refusal = walks_rows(q, member, enters ? entrance->shape : result,
                                  !enters || entrance->port != Port::element))
      return refusal;
  }
  return std::nullopt;
}

std::optional<Verdict> checks::prologue(Question& q) {
  const Graph& graph = q.problem.graph();
  const ValueId anchor = *q.merged.anchor;
  const llvm::SmallVector<ValueId, 2> anchors = anchors_of(q.merged);
  const llvm::SmallVector<Entrance, 2> open = entrances(q);
  for (ValueId reader : q.prologue) {
    if (writes_state(graph[reader]))
      return refuse(Reason::state_version,
                    fmt::format("every block would write {}", q.problem.name(reader)));
    const bool is_anchor = llvm::is_contained(anchors, reader);
    const auto entrance = llvm::find_if(
        open, [&](const Entrance& one) { return llvm::is_contained(one.members, reader); });
    const auto& reads = q.problem.facts(reader).reads;
    for (size_t k = 0; k < reads.size(); ++k) {
      if (!llvm::is_contained(q.prologue, reads[k].root)) continue;
      // A companion has the anchor's operands, in some order.
      size_t operand = k;
      if (is_anchor && reader != anchor)
        operand = llvm::find(graph[anchor].operands, graph[reader].operands[k]) -
                  graph[anchor].operands.begin();
      const auto own =
          is_anchor
              ? llvm::find_if(open, [&](const Entrance& one) { return one.operand == operand; })
              : entrance;
      if (is_anchor && own == open.end()) return from_memory(q, reads[k].root);
      if (auto refusal = read_fits(q.problem, own->shape, reader,
                                   is_anchor ? q.problem.facts(anchor).reads[operand] : reads[k]))
        return refusal;
    }
  }
  for (const Entrance& one : open) {
    llvm::SmallVector<ValueId, 8> members = one.members;
    members.push_back(anchor);
    if (auto refusal = recomputed_once(q.problem, one.shape, members)) return refusal;
  }
  if (q.prologue.size() == anchors.size() || !q.merged.family->admits_prologue) return std::nullopt;
  return q.merged.family->admits_prologue(q.view());
}

namespace {

/// Refuses an epilogue that is not computed element by element, or row by row, from what the port
/// of the anchor's result gives.
std::optional<Verdict> takes_elements(const Question& q, const Ports::Place& result) {
  const ValueId anchor = *q.merged.anchor;
  const GroupShape shape = shape_of_result(q);
  const Dims& elements = q.problem.facts(anchor).dims;
  for (ValueId reader : q.epilogue) {
    const OpFacts& facts = q.problem.facts(reader);
    // The port gives each element once, and no thread a whole row. Rows of a state are not the
    // elements of a tile.
    if ((result.port != Port::row && (facts.reduces || volume(facts.dims) != volume(elements))) ||
        (result.port == Port::tile && writes_state(q.problem.graph()[reader])))
      return refuse(q.problem, Reason::port_other_element, reader, anchor);
    for (const Read& read : q.problem.facts(reader).reads)
      if (llvm::is_contained(q.members, read.root))
        if (auto refusal = read_fits(q.problem, shape, reader, read)) return refusal;
  }
  if (auto refusal = recomputed_once(q.problem, shape, q.epilogue)) return refusal;
  return needs_no_result(q.view());
}

}  // namespace

std::optional<Verdict> checks::epilogue(Question& q) {
  const ValueId anchor = *q.merged.anchor;
  const llvm::SmallVector<ValueId, 2> anchors = anchors_of(q.merged);
  const Ports::Place result = q.problem.ports(anchor).result;
  for (ValueId reader : q.epilogue) {
    if (places_part(q.problem.graph()[reader]))
      return refuse(Reason::port_closed, q.problem.name(anchor));
    for (const Read& read : q.problem.facts(reader).reads) {
      if (read.root == anchor || !llvm::is_contained(q.prologue, read.root)) continue;
      if (llvm::is_contained(anchors, read.root))  // companions' results go to memory
        return refuse(Reason::port_closed, q.problem.name(read.root));
      return refuse(q.problem, Reason::anchor_other_block, reader, read.root);
    }
    if (!is_open(result.port)) return refuse(Reason::port_closed, q.problem.name(anchor));
  }
  const auto admits = q.merged.family->admits_epilogue;
  if (admits && result.port != Port::tile) return admits(q.view(), q.merged);
  auto refusal = takes_elements(q, result);
  if (refusal && admits && !admits(q.view(), q.merged)) return std::nullopt;
  return refusal;
}

}  // namespace sinter
