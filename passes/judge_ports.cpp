// The judge's question about ports: does every read between two groups land where the reading
// thread can see it?
#include <llvm/ADT/DenseMap.h>

#include "ir/op_roles.h"
#include "passes/fusion_state.h"

namespace sinter {

std::optional<Verdict> FusionState::read_fits(const Question& q, ValueId reader,
                                              const Read& read) const {
  const Op& root = graph_[read.root];
  if (writes_state(root))
    return refuse(Reason::state_version,
                  fmt::format("{} reads what {} writes", name(reader), root.name));
  if (read.loaded)
    return refuse(Reason::port_gathered, fmt::format("{} of {}", name(reader), root.name));
  // In a row with a reduction, whose operands its threads have just read, a value is worth
  // computing again at the element that is wanted; `ports` sees to it that this does not multiply.
  const Place place = place_of(q, read);
  if (place == Place::own_element || (place == Place::own_row && q.merged.row_prefix))
    return std::nullopt;
  return refuse(Reason::port_other_element, fmt::format("{} of {}", name(reader), root.name));
}

FusionState::Place FusionState::place_of(const Question& q, const Read& read) const {
  const DimsRef dims = graph_[read.root].type.dims;
  if (read.loaded || read.space.size() < q.merged.rows || dims.size() < q.merged.rows)
    return Place::elsewhere;
  for (uint32_t i = 0; i < q.merged.rows; ++i) {
    const bool repeated = dims[i].is(1) && read.coords[i] == IndexExpr();
    if (!(read.coords[i] == IndexExpr::variable(i)) && !repeated) return Place::elsewhere;
  }
  const DimsRef inner = dims.drop_front(q.merged.rows);
  if (volume(inner).is(1)) return Place::own_element;  // one value a row: every thread has it
  IndexMap own;
  for (uint32_t i = q.merged.rows; i < read.space.size(); ++i)
    own.push_back(IndexExpr::variable(i));
  const IndexMap there(read.coords.begin() + q.merged.rows, read.coords.end());
  const DimsRef space = DimsRef(read.space).drop_front(q.merged.rows);
  const bool same =
      volume(inner) == volume(space) && linearize(inner, there) == linearize(space, own);
  return same ? Place::own_element : Place::own_row;
}

std::optional<Verdict> FusionState::recomputed_once(const Question& q) const {
  // By member: how many reads of another element lie behind a value.
  llvm::DenseMap<uint32_t, uint32_t> depth;
  for (ValueId reader : q.members) {
    depth[reader.index] = 0;
    for (const Read& read : facts_[reader.index].reads) {
      const auto at = depth.find(read.root.index);
      if (at == depth.end() || read.root == reader) continue;
      const uint32_t behind = at->second + (place_of(q, read) == Place::own_row ? 1 : 0);
      if (behind > 1)
        return refuse(Reason::port_other_element,
                      fmt::format("{} of {}", name(reader), name(read.root)));
      depth[reader.index] = std::max(depth[reader.index], behind);
    }
  }
  return std::nullopt;
}

std::optional<Verdict> FusionState::ports(const Question& q) const {
  // Reads across the border; then, where a group's rows are cut anew, those inside it.
  for (const bool across : {true, false})
    for (uint32_t to : {q.ga, q.gb})
      for (ValueId reader : dag_.members(to))
        for (const Read& read : facts_[reader.index].reads) {
          if (!computes(graph_[read.root])) continue;
          const uint32_t from = dag_.find(read.root);
          const bool asked = across ? from != to && (from == q.ga || from == q.gb)
                                    : from == to && shapes_[to].rows != q.merged.rows;
          if (!asked) continue;
          if (auto verdict = read_fits(q, reader, read)) return verdict;
        }
  return recomputed_once(q);
}

std::optional<Verdict> FusionState::cut_rows(Question& q) const {
  std::optional<Verdict> refusal = ports(q);
  if (!refusal || q.merged.row_prefix) return refusal;
  // A value of one element a row fits where the rows are cut shorter.
  for (uint32_t rows = q.merged.rows + 1; rows <= q.merged.prefix.size(); ++rows) {
    q.merged.rows = rows;
    if (!ports(q)) return std::nullopt;
  }
  return refusal;
}

}  // namespace sinter
