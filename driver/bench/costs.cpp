#include "driver/bench/costs.h"

#include <algorithm>
#include <map>

#include "driver/generate/decoder.h"
#include "ir/op_flops.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

/// Adds the bytes that the graph reads of each weight to `reads`, by name.
void add_weight_reads(const Graph& graph, const TypeSizes& sizes, double experts,
                      std::map<std::string, double>& reads) {
  for (const Op& op : graph.ops()) {
    if (op_class(op) == OpClass::view) continue;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Op& root = graph[root_of(graph, op.operands[i])];
      if (root.kind != OpKind::weight) continue;
      const double whole = sizes.bytes(root.type);
      double& read = reads[root.name];
      const TensorType& type = graph[op.operands[i]].type;
      if (op.kind == OpKind::expert_linear && i == 1)
        read = std::max(read, sizes.bytes(type) * experts / sizes.extent(type.dims[0]));
      else
        read = operand_role(op, i) == OperandRole::table
                   ? std::min(whole, read + sizes.bytes(op.type))
                   : whole;
    }
  }
}

/// With the values of symbols given by name, others at their least.
std::vector<int64_t> sizes_with(const Module& module,
                                std::initializer_list<std::pair<std::string_view, int64_t>> given) {
  std::vector<int64_t> sizes = min_symbol_values(module.symbols);
  for (const auto& [name, value] : given)
    if (const int symbol = find_symbol(module.symbols, name); symbol >= 0)
      sizes[static_cast<size_t>(symbol)] = value;
  return sizes;
}

}  // namespace

double decode_bytes(const Module& module, const ModelSpec& spec, int64_t sequences,
                    double visible_rows, double experts) {
  const std::vector<int64_t> values = sizes_with(module, {{"B", sequences}});
  const TypeSizes sizes(values);
  std::map<std::string, double> reads;
  for (std::string_view name : {"decode", "sample"})
    if (const Entry* entry = module.find_entry(name))
      add_weight_reads(entry->graph, sizes, experts, reads);
  double total = 0;
  for (const auto& [name, read] : reads) total += read;
  // All layers' caches are alike: what is seen of them is a mean over layers with and without a
  // window.
  double seen = 0;
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    seen += spec.has_window(layer) ? std::min(visible_rows, static_cast<double>(*spec.window))
                                   : visible_rows;
  visible_rows = seen / static_cast<double>(spec.layers);
  for (const State& state : module.states)
    total += sizes.bytes(state.type) / sizes.extent(state.type.dims[0]) * visible_rows *
             static_cast<double>(sequences);
  return total;
}

double prefill_operations(const Module& module, const ModelSpec& spec, int64_t sequences,
                          int64_t length) {
  const std::vector<int64_t> sizes =
      sizes_with(module, {{"N", sequences * length}, {"M", sequences}});
  double total = 0;
  if (const Entry* entry = module.find_entry("prefill"))
    for (const Op& op : entry->graph.ops())
      // A product of two matrices is a part of attention, which is counted below.
      if (has_role(op, OperandRole::row) && has_matrix(op))
        total += flops(entry->graph, op, {module.symbols, sizes});
  // Query i of a sequence sees min(i + 1, window) keys.
  double seen = 0;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const int64_t most = spec.has_window(layer) ? std::min(*spec.window, length) : length;
    seen += static_cast<double>(most) * static_cast<double>(most + 1) / 2 +
            static_cast<double>(length - most) * static_cast<double>(most);
  }
  return total + 4 * static_cast<double>(spec.heads * spec.head_dim) * seen *
                     static_cast<double>(sequences);
}

}  // namespace sinter
