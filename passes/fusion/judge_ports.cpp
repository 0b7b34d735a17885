// The judge's check of ports: does every read between two groups land where the reading thread can
// see it?
#include <llvm/ADT/DenseMap.h>

#include "ir/op_roles.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

/// The place that a read reaches in the rows of a kernel.
enum class ReadPlace : uint8_t { own_element, own_row, elsewhere };

ReadPlace place_of(const FusionProblem& problem, const GroupShape& shape, const Read& read) {
  const DimsRef dims = problem.graph()[read.root].type.dims;
  if (read.loaded || read.space.size() < shape.rows || dims.size() < shape.rows)
    return ReadPlace::elsewhere;
  for (uint32_t i = 0; i < shape.rows; ++i) {
    const bool repeated = dims[i].is(1) && read.coords[i] == IndexExpr();
    if (!read.coords[i].is_variable(i) && !repeated) return ReadPlace::elsewhere;
  }
  const DimsRef inner = dims.drop_front(shape.rows);
  // One value a row: every thread has it.
  if (llvm::all_of(inner, [](Dim dim) { return dim.is(1); })) return ReadPlace::own_element;
  const DimsRef space = DimsRef(read.space).drop_front(shape.rows);
  uint32_t equal = 0;  // axes of which the thread reads its own place
  while (equal < inner.size() && read.coords[shape.rows + equal].is_variable(shape.rows + equal))
    ++equal;
  if (inner == space && equal == inner.size()) return ReadPlace::own_element;
  IndexMap own;
  for (uint32_t i = shape.rows; i < read.space.size(); ++i) own.push_back(IndexExpr::variable(i));
  const IndexMap there(read.coords.begin() + shape.rows, read.coords.end());
  const bool same =
      volume(inner) == volume(space) && linearize(inner, there) == linearize(space, own);
  return same ? ReadPlace::own_element : ReadPlace::own_row;
}

/// The reads of a kernel with rows of this shape.
std::optional<Verdict> ports(const Question& q, const GroupShape& shape) {
  // Reads across the border; then, where a group's rows are cut anew, those inside it.
  for (const bool across : {true, false})
    for (uint32_t to : {q.first, q.second})
      for (ValueId reader : q.groups.members(to))
        for (const Read& read : q.problem.facts(reader).reads) {
          if (!computes(q.problem.graph()[read.root])) continue;
          const uint32_t from = q.groups.find(read.root);
          const bool asked = across ? from != to && (from == q.first || from == q.second)
                                    : from == to && q.groups.shape(to).rows != shape.rows;
          if (!asked) continue;
          if (auto refusal = read_fits(q.problem, shape, reader, read)) return refusal;
        }
  return recomputed_once(q.problem, shape, q.members);
}

}  // namespace

std::optional<Verdict> read_fits(const FusionProblem& problem, const GroupShape& shape,
                                 ValueId reader, const Read& read) {
  const Op& root = problem.graph()[read.root];
  if (auto refusal = reads_side_result(problem, reader, read.root)) return refusal;
  if (writes_state(root))
    return refuse(Reason::state_version,
                  fmt::format("{} reads what {} writes", problem.name(reader), root.name));
  if (read.loaded) return refuse(problem, Reason::port_gathered, reader, read.root);
  // In a row with a reduction, whose operands its threads have just read, a value is worth
  // computing again at the element that is wanted; recomputed_once sees to it that this does not
  // multiply.
  const ReadPlace place = place_of(problem, shape, read);
  if (place == ReadPlace::own_element || (place == ReadPlace::own_row && shape.row_prefix))
    return std::nullopt;
  return refuse(problem, Reason::port_other_element, reader, read.root);
}

std::optional<Verdict> recomputed_once(const FusionProblem& problem, const GroupShape& shape,
                                       Members members) {
  // By member: how many reads of another element lie after a value.
  llvm::DenseMap<uint32_t, uint32_t> depth;
  for (ValueId reader : members) {
    depth[reader.index] = 0;
    for (const Read& read : problem.facts(reader).reads) {
      const auto at = depth.find(read.root.index);
      if (at == depth.end() || read.root == reader) continue;
      const uint32_t moves =
          at->second + (place_of(problem, shape, read) == ReadPlace::own_row ? 1 : 0);
      if (moves > 1) return refuse(problem, Reason::port_other_element, reader, read.root);
      depth[reader.index] = std::max(depth[reader.index], moves);
    }
  }
  return std::nullopt;
}

std::optional<Verdict> checks::port(Question& q) {
  std::optional<Verdict> refusal = ports(q, q.merged);
  if (!refusal || q.merged.row_prefix) return refusal;
  // A value of one element a row fits where the rows are cut shorter.
  while (q.merged.rows < q.merged.prefix.size()) {
    ++q.merged.rows;
    if (!ports(q, q.merged)) return std::nullopt;
  }
  return refusal;
}

}  // namespace sinter
