// Linears that read the same value become one with concatenated weights, at most as many as a
// concat has operands; their results are slices.
//
//   %q = linear %x, %wq                  %qkv = linear %x, %wqkv
//   %k = linear %x, %wk            =>    %q   = slice %qkv {axis = 1, begin = 0, size = 64}
//   %v = linear %x, %wv                  %k   = slice ..., %v = slice ...
//
// Requires weights that no op but the merged linears uses; leaves one weight function that
// concatenates the others', shared by all entries.
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>

#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr size_t kMaxJoinedName = 1024;  // bytes; names of values have at most 4096

/// "l0.q", "l0.k", "l0.v" -> "l0.qkv"; "l0.mlp.gate", "l0.mlp.up" -> "l0.mlp.gate_up". Where that
/// is too long, of "a", "b", "c": "a_and_2_more".
std::string joined_name(llvm::ArrayRef<std::string> names) {
  const size_t dot = names[0].rfind('.');
  const std::string stem = dot == std::string::npos ? "" : names[0].substr(0, dot + 1);
  bool letters = true;
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    parts.push_back(name.starts_with(stem) ? name.substr(stem.size()) : name);
    letters &= parts.back().size() == 1;
  }
  const std::string joined = stem + fmt::format("{}", fmt::join(parts, letters ? "" : "_"));
  return joined.size() <= kMaxJoinedName
             ? joined
             : fmt::format("{}_and_{}_more", names[0], names.size() - 1);
}

/// The value that stands in memory for a parameter of a linear: itself, or the packed matrix that
/// it is dequantized from.
ValueId stored_parameter(const Graph& graph, ValueId parameter) {
  const Op& op = graph[parameter];
  return op.kind == OpKind::dequantize ? op.operands[0] : parameter;
}

/// Both are stored in the same way, so that their rows can be rows of one matrix.
bool have_one_format(const Op& a, const Op& b) {
  const bool packed = a.kind == OpKind::dequantize;
  return packed == (b.kind == OpKind::dequantize) &&
         (packed ? a.attrs == b.attrs : a.type.dtype == b.type.dtype);
}

/// Weights that some entry reads in another way than as a parameter of one linear.
llvm::StringSet<> weights_read_otherwise(const Module& module) {
  llvm::StringSet<> others;
  for (const Entry& entry : module.entries) {
    const auto readers = readers_of(entry.graph);
    const auto only_user = [&](ValueId id) {
      const auto& all = readers[id.index];
      return all.size() == 1 && all[0] != id ? all[0] : ValueId();
    };
    for (uint32_t i = 0; i < entry.graph.size(); ++i) {
      const Op& op = entry.graph.ops()[i];
      if (op.kind != OpKind::weight) continue;
      ValueId parameter{i}, user = only_user(parameter);
      if (user.valid() && entry.graph[user].kind == OpKind::dequantize)
        parameter = user, user = only_user(parameter);
      if (!user.valid() || !is_without_order(entry.graph[user], OpKind::linear) ||
          entry.graph[user].operands[0] == parameter)
        others.insert(op.name);
    }
  }
  return others;
}

/// Appends the ops of a weight function and returns its result.
ValueId inline_weight(Graph& into, const Weight& weight) {
  GraphRewriter rewriter(weight.init, into);
  rewriter.rewrite_ops([&](ValueId, Op op) {
    op.name = fmt::format("t{}", into.size());
    return rewriter.add(std::move(op));
  });
  return rewriter[weight.init.outputs[0]];
}

/// Linears of one graph that become one, and the names of their parameters' parts.
struct Merge {
  llvm::SmallVector<ValueId, 4> linears;
  std::string key;  // the parts of all parameters: equal in every entry, or there is no merge
};

class Merger {
 public:
  explicit Merger(Module& module) : module_(module), others_(weights_read_otherwise(module)) {
    for (uint32_t i = 0; i < module.weights.size(); ++i) weight_index_[module.weights[i].name] = i;
    for (const State& state : module.states) state_names_.insert(state.name);
    for (const Entry& entry : module.entries) {
      merges_.push_back(find(entry.graph));
      for (const Merge& merge : merges_.back())
        for (const std::string& part : parts(entry.graph, merge)) {
          const auto [at, is_new] = company_.try_emplace(part, merge.key);
          if (at->second != merge.key) at->second.clear();
        }
      note_single_linears(entry.graph, merges_.back());
    }
  }

  bool run() {
    bool changed = false;
    for (size_t i = 0; i < module_.entries.size(); ++i) {
      Graph& graph = module_.entries[i].graph;
      std::erase_if(merges_[i], [&](const Merge& merge) {
        return llvm::any_of(parts(graph, merge), [&](const std::string& part) {
          return company_.lookup(part) != merge.key;
        });
      });
      changed |= !merges_[i].empty() &&
                 rewrite_graph(graph, module_.symbols, [&](const Graph& from, auto&... made) {
                   rewrite(from, merges_[i], made...);
                   return true;
                 });
    }
    return changed;
  }

 private:
  std::vector<Merge> find(const Graph& graph) const {
    std::vector<Merge> merges;
    const auto users = graph.users();
    const auto most = static_cast<size_t>(op_info(OpKind::concat).max_operands);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      llvm::SmallVector<ValueId, 4> linears;
      for (ValueId user : users[i])
        if (mergeable(graph, {i}, user) &&
            (linears.empty() || has_parameters_like(graph, user, linears[0])))
          linears.push_back(user);
      for (llvm::ArrayRef<ValueId> rest = linears; rest.size() >= 2;) {
        Merge merge;
        merge.linears = llvm::SmallVector<ValueId, 4>(rest.take_front(most));
        merge.key = fmt::format("{}", fmt::join(parts(graph, merge), "\n"));
        rest = rest.drop_front(merge.linears.size());
        merges.push_back(std::move(merge));
      }
    }
    return merges;
  }

  bool mergeable(const Graph& graph, ValueId x, ValueId user) const {
    const Op& op = graph[user];
    if (!is_without_order(op, OpKind::linear) || op.operands[0] != x) return false;
    return llvm::all_of(llvm::drop_begin(op.operands), [&](ValueId id) {
      const Op& parameter = graph[stored_parameter(graph, id)];
      return parameter.kind == OpKind::weight && !others_.contains(parameter.name);
    });
  }
  static bool has_parameters_like(const Graph& graph, ValueId a, ValueId b) {
    return llvm::equal(llvm::drop_begin(graph[a].operands), llvm::drop_begin(graph[b].operands),
                       [&](ValueId x, ValueId y) { return have_one_format(graph[x], graph[y]); });
  }

  /// A weight that one entry reads in a merge and another in a linear of its own stays apart.
  void note_single_linears(const Graph& graph, llvm::ArrayRef<Merge> merges) {
    std::vector<bool> merged(graph.size(), false);
    for (const Merge& merge : merges)
      for (ValueId id : merge.linears) merged[id.index] = true;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      if (!is_without_order(graph.ops()[i], OpKind::linear) || merged[i]) continue;
      for (ValueId operand : graph.ops()[i].operands)
        if (const Op& stored = graph[stored_parameter(graph, operand)];
            stored.kind == OpKind::weight)
          company_[stored.name].clear();
    }
  }

  static std::vector<std::string> parts(const Graph& graph, const Merge& merge) {
    std::vector<std::string> names;
    for (ValueId id : merge.linears)
      for (ValueId parameter : llvm::drop_begin(graph[id].operands))
        names.push_back(graph[stored_parameter(graph, parameter)].name);
    return names;
  }

  /// The rows of operand `slot` of the linears, one below the other, in a weight that the first
  /// entry made.
  ValueId merged_weight(Builder& b, const Graph& graph, const Merge& merge, size_t slot,
                        std::string name) {
    std::string& known = merged_names_[fmt::format("{}\n{}", slot, merge.key)];
    if (known.empty()) {
      while (taken(name)) name += "_";
      Weight merged{name, {}, {}};
      llvm::SmallVector<ValueId, 4> copies;
      for (ValueId id : merge.linears)
        copies.push_back(inline_weight(
            merged.init, weight(graph[stored_parameter(graph, graph[id].operands[slot])].name)));
      Builder builder(merged.init, module_.symbols);
      merged.init.outputs.push_back(
          builder.op(OpKind::concat, copies, Attributes().set(AttrName::axis, int64_t{0}), name));
      merged.type = merged.init[merged.init.outputs[0]].type;
      weight_index_[name] = static_cast<uint32_t>(module_.weights.size());
      module_.weights.push_back(std::move(merged));
      known = name;
    }
    const ValueId leaf = b.leaf(OpKind::weight, weight(known).type, known);
    const Op& first = graph[graph[merge.linears[0]].operands[slot]];
    return first.kind == OpKind::dequantize
               ? b.op(OpKind::dequantize, {leaf}, first.attrs, known + ".dequantized")
               : leaf;
  }

  const Weight& weight(const std::string& name) const {
    return module_.weights[weight_index_.lookup(name)];
  }
  bool taken(const std::string& name) const {
    return weight_index_.contains(name) || state_names_.contains(name);
  }

  void rewrite(const Graph& graph, llvm::ArrayRef<Merge> merges, Builder& builder,
               GraphRewriter& rewriter) {
    std::vector<const Merge*> begins(graph.size(), nullptr);  // at the first of its linears
    for (const Merge& merge : merges) begins[merge.linears[0].index] = &merge;
    rewriter.rewrite([&](ValueId id, Op op) {
      if (begins[id.index]) emit(graph, *begins[id.index], builder, rewriter);
      const ValueId slice = rewriter[id];  // of a merged linear
      return slice.valid() ? slice : rewriter.add(std::move(op));
    });
  }

  void emit(const Graph& graph, const Merge& merge, Builder& builder, GraphRewriter& rewriter) {
    std::vector<std::string> names;
    for (ValueId id : merge.linears) names.push_back(graph[id].name);
    const std::string name = joined_name(names);
    const Op& first = graph[merge.linears[0]];
    llvm::SmallVector<ValueId, 3> operands{rewriter[first.operands[0]]};
    constexpr std::string_view kParameters[] = {"", ".weight", ".bias"};
    for (size_t slot = 1; slot < first.operands.size(); ++slot)
      operands.push_back(
          merged_weight(builder, graph, merge, slot, name + std::string(kParameters[slot])));
    const ValueId joined = builder.op(OpKind::linear, operands, {}, name);
    const int64_t axis = static_cast<int64_t>(builder.type(joined).rank()) - 1;
    int64_t begin = 0;
    for (ValueId id : merge.linears) {
      const Dim size = graph[id].type.dims.back();
      rewriter[id] = builder.slice(joined, axis, begin, size, graph[id].name);
      begin += size.constant();
    }
  }

  Module& module_;
  llvm::StringSet<> others_, state_names_;
  llvm::StringMap<uint32_t> weight_index_;
  llvm::StringMap<std::string> company_;  // by weight: the key of its merges; empty: they differ
  llvm::StringMap<std::string> merged_names_;
  std::vector<std::vector<Merge>> merges_;  // by entry
};

}  // namespace

bool merge_linears(Module& module) { return Merger(module).run(); }

}  // namespace sinter
