#include "passes/merge_linears.h"

#include <llvm/ADT/StringMap.h>

#include "ir/builder.h"

namespace sinter {
namespace {

/// "l0.q", "l0.k", "l0.v" -> "l0.qkv"; "l0.mlp.gate", "l0.mlp.up" -> "l0.mlp.gate_up".
std::string joined_name(llvm::ArrayRef<std::string> names) {
  const size_t dot = names[0].rfind('.');
  const std::string stem = dot == std::string::npos ? "" : names[0].substr(0, dot + 1);
  bool letters = true;
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    parts.push_back(name.starts_with(stem) ? name.substr(stem.size()) : name);
    letters &= parts.back().size() == 1;
  }
  return stem + fmt::format("{}", fmt::join(parts, letters ? "" : "_"));
}

/// How often each weight is read, over all entries' ops.
llvm::StringMap<int> count_readers(const Module& module) {
  llvm::StringMap<int> readers;
  for (const Entry& entry : module.entries) {
    const auto users = entry.graph.users();
    for (uint32_t i = 0; i < entry.graph.size(); ++i)
      if (entry.graph.ops()[i].kind == OpKind::weight)
        readers[entry.graph.ops()[i].name] =
            std::max(readers[entry.graph.ops()[i].name], static_cast<int>(users[i].size()));
  }
  return readers;
}

/// Appends the ops of a weight function and returns its result.
ValueId inline_weight(Graph& into, const Weight& weight) {
  std::vector<ValueId> copies(weight.init.size());
  for (uint32_t i = 0; i < weight.init.size(); ++i) {
    Op op = weight.init.ops()[i];
    for (ValueId& operand : op.operands) operand = copies[operand.index];
    op.name = fmt::format("t{}", into.size());
    copies[i] = into.add(std::move(op));
  }
  return copies[weight.init.outputs[0].index];
}

class Merger {
 public:
  explicit Merger(Module& module) : module_(module), readers_(count_readers(module)) {}

  bool run(Graph& graph) {
    bool changed = false;
    const auto users = graph.users();
    for (uint32_t i = 0; i < graph.size(); ++i) {
      llvm::SmallVector<ValueId, 4> linears;
      for (ValueId user : users[i])
        if (mergeable(graph, {i}, user) && (linears.empty() || same_form(graph, linears[0], user)))
          linears.push_back(user);
      if (linears.size() < 2) continue;
      plan(graph, linears);
      changed = true;
    }
    if (changed) rewrite(graph);
    return changed;
  }

 private:
  bool mergeable(const Graph& graph, ValueId x, ValueId user) const {
    const Op& op = graph[user];
    if (op.kind != OpKind::linear || op.operands[0] != x) return false;
    return llvm::all_of(llvm::drop_begin(op.operands), [&](ValueId id) {
      return graph[id].kind == OpKind::weight && readers_.lookup(graph[id].name) == 1;
    });
  }

  static bool same_form(const Graph& graph, ValueId a, ValueId b) {
    return graph[a].operands.size() == graph[b].operands.size();
  }

  /// The weight that concatenates operand `slot` of the linears, made on first use.
  std::string merged_weight(const Graph& graph, llvm::ArrayRef<ValueId> linears, size_t slot,
                            const std::string& name) {
    if (module_.find_weight(name)) return name;
    Weight merged{name, {}, {}};
    llvm::SmallVector<ValueId, 4> parts;
    for (ValueId id : linears)
      parts.push_back(inline_weight(merged.init, *module_.find_weight(graph[graph[id].operands[slot]].name)));
    Builder builder(merged.init, module_.symbols);
    merged.init.outputs.push_back(
        builder.op(OpKind::concat, parts, Attributes().set(AttrName::axis, int64_t{0}), name));
    merged.type = merged.init[merged.init.outputs[0]].type;
    module_.weights.push_back(std::move(merged));
    return name;
  }

  void plan(const Graph& graph, llvm::ArrayRef<ValueId> linears) {
    std::vector<std::string> names;
    for (ValueId id : linears) names.push_back(graph[id].name);
    const std::string name = joined_name(names);
    Merge merge{llvm::SmallVector<ValueId, 4>(linears), name, merged_weight(graph, linears, 1, name + ".weight"), ""};
    if (graph[linears[0]].operands.size() == 3) merge.bias = merged_weight(graph, linears, 2, name + ".bias");
    merges_.push_back(std::move(merge));
  }

  void rewrite(Graph& graph) {
    Graph result;
    Builder builder(result, module_.symbols);
    std::vector<ValueId> copies(graph.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const Merge* merge = nullptr;
      for (const Merge& m : merges_)
        if (m.linears[0] == ValueId{i}) merge = &m;
      if (merge) emit(graph, *merge, builder, copies);
      if (copies[i].valid()) continue;  // a slice of a merged linear
      Op op = graph.ops()[i];
      for (ValueId& operand : op.operands) operand = copies[operand.index];
      copies[i] = result.add(std::move(op));
    }
    for (ValueId id : graph.inputs) result.inputs.push_back(copies[id.index]);
    for (ValueId id : graph.outputs) result.outputs.push_back(copies[id.index]);
    make_names_unique(result);
    graph = std::move(result);
    merges_.clear();
  }

  struct Merge {
    llvm::SmallVector<ValueId, 4> linears;
    std::string name, weight, bias;
  };

  void emit(const Graph& graph, const Merge& merge, Builder& builder, std::vector<ValueId>& copies) {
    llvm::SmallVector<ValueId, 3> operands{copies[graph[merge.linears[0]].operands[0].index]};
    for (const std::string& name : {merge.weight, merge.bias})
      if (!name.empty())
        operands.push_back(builder.leaf(OpKind::weight, module_.find_weight(name)->type, name));
    const ValueId joined = builder.op(OpKind::linear, operands, {}, merge.name);
    const int64_t axis = static_cast<int64_t>(builder.type(joined).rank()) - 1;
    int64_t begin = 0;
    for (ValueId id : merge.linears) {
      const Dim size = graph[id].type.dims.back();
      copies[id.index] = builder.slice(joined, axis, begin, size, graph[id].name);
      begin += size.constant();
    }
  }

  Module& module_;
  llvm::StringMap<int> readers_;
  std::vector<Merge> merges_;
};

}  // namespace

bool merge_linears(Module& module) {
  bool changed = false;
  Merger merger(module);
  for (Entry& entry : module.entries) {
    changed |= merger.run(entry.graph);
    remove_dead_ops(entry.graph);
  }
  return changed;
}

}  // namespace sinter
