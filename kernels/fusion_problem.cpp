#include "kernels/fusion_problem.h"

#include <algorithm>

#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"
#include "ir/type_sizes.h"
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
  for (const Symbol& symbol : symbols) sizes_.push_back(symbol.high);
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
  traffic_.emplace(graph_, facts_, sizes_);
}

FusionProblem FusionProblem::at(llvm::ArrayRef<int64_t> sizes) const {
  FusionProblem problem = *this;
  problem.sizes_.assign(sizes.begin(), sizes.end());
  problem.traffic_.emplace(problem.graph_, problem.facts_, problem.sizes_);
  return problem;
}

const KernelFamily* FusionProblem::family(ValueId id) const {
  return anchored_by(graph_[id], families_);
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

double FusionProblem::extent(Dim dim) const { return TypeSizes(sizes_).extent(dim); }

double FusionProblem::count(const SymExpr& expression) const {
  const std::optional<int64_t> value = expression.evaluate(sizes_);
  return static_cast<double>(value.value_or(INT64_MAX));
}

double FusionProblem::bytes(ValueId id) const { return traffic_->written(id); }

Bytes FusionProblem::traffic(Members members) const {
  Bytes bytes{traffic_->read(members), 0};
  for (ValueId member : members)
    if (writes_state(graph_[member]) || read_outside(member, members))
      bytes.written += traffic_->written(member);
  return bytes;
}

std::string FusionProblem::show(DimsRef dims) const {
  return to_string(TensorType{DType::f32, Dims(dims)}, symbols_).substr(3);
}

}  // namespace sinter
