#include "kernels/fusion_problem.h"

#include <algorithm>

#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

/// Tells the reads of an anchor's operands in the loops of its ports.
void walk_as_the_family(const Graph& graph, ValueId anchor, const Ports& ports, OpFacts& facts) {
  for (size_t k = 0; k < ports.operands.size(); ++k) {
    const Dims& walked = ports.operands[k].walked;
    if (walked.empty()) continue;
    const ValueId operand = graph[anchor].operands[k];
    Read& read = facts.reads[k];
    const IndexMap own = delinearize(graph[operand].type.dims,
                                     linearize(walked, identity_map(walked.size())), walked);
    read.coords = resolve_access(graph, operand, own, walked).coords;
    read.space = walked;
    read.loaded = false;
  }
}

}  // namespace

FusionProblem::FusionProblem(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                             const DeviceDescription& device, Numerics numerics, Families families)
    : graph_(graph),
      symbols_(symbols.begin(), symbols.end()),
      device_(device),
      numerics_(numerics),
      families_(families),
      facts_(graph.size()),
      users_(graph.size()),
      is_output_(graph.size(), false) {
  for (ValueId id : graph.outputs) is_output_[root_of(graph, id).index] = true;
  for (const RowNumbers& numbers : numbers_to_check(graph, symbols))
    is_output_[numbers.values.index] = true;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!computes(graph.ops()[i])) continue;
    facts_[i] = op_facts(graph, {i}, symbols);
    if (family({i})) walk_as_the_family(graph, {i}, ports({i}), facts_[i]);
    for (const Read& read : facts_[i].reads)
      if (auto& users = users_[read.root.index]; users.empty() || users.back() != ValueId{i})
        users.push_back({i});
  }
}

const KernelFamily* FusionProblem::family(ValueId id) const {
  return anchored_by(graph_[id].kind, families_);
}

Ports FusionProblem::ports(ValueId id) const {
  const KernelFamily* own = family(id);
  return own && own->ports ? own->ports(graph_, graph_[id]) : Ports{};
}

bool FusionProblem::read_outside(ValueId id, Members members) const {
  return is_output(id) || llvm::any_of(users(id), [&](ValueId user) {
           return !std::binary_search(members.begin(), members.end(), user);
         });
}

llvm::SmallVector<ValueId, 8> FusionProblem::up_to(ValueId last, Members members) const {
  llvm::SmallVector<ValueId, 8> found, needed = {last};
  for (ValueId member : llvm::reverse(members)) {
    if (!llvm::is_contained(needed, member)) continue;
    found.insert(found.begin(), member);
    for (const Read& read : facts(member).reads) needed.push_back(read.root);
  }
  return found;
}

double FusionProblem::extent(Dim dim) const {
  return static_cast<double>(dim.is_constant() ? dim.constant()
                                               : symbols_[dim.symbol().index].high);
}

double FusionProblem::bytes(ValueId id) const {
  const TensorType& type = written_type(graph_, graph_[id]);
  double product = average_bytes(type.dtype);
  for (Dim dim : type.dims) product *= extent(dim);
  return product;
}

std::string FusionProblem::show(DimsRef dims) const {
  return to_string(TensorType{DType::f32, Dims(dims)}, symbols_).substr(3);
}

}  // namespace sinter
