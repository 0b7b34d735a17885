#include "passes/fusion_problem.h"

#include <algorithm>

#include "ir/grouping.h"
#include "ir/op_roles.h"

namespace sinter {

FusionProblem::FusionProblem(const Graph& graph, llvm::ArrayRef<Symbol> symbols,
                             const DeviceDescription& device, const FusionOptions& options)
    : graph_(graph),
      symbols_(symbols.begin(), symbols.end()),
      device_(device),
      options_(options),
      facts_(graph.size()),
      users_(graph.size()),
      is_output_(graph.size(), false) {
  for (ValueId id : graph.outputs) is_output_[root_of(graph, id).index] = true;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!computes(graph.ops()[i])) continue;
    facts_[i] = op_facts(graph, {i}, symbols);
    for (const Read& read : facts_[i].reads)
      if (auto& users = users_[read.root.index]; users.empty() || users.back() != ValueId{i})
        users.push_back({i});
  }
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
