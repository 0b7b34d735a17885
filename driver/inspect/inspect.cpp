#include "driver/inspect/inspect.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "driver/compile/plan_summary.h"
#include "driver/explain/ledger_report.h"
#include "ir/decompose.h"
#include "ir/grouping.h"

namespace sinter {
namespace {

/// Costs of single ops at given sizes.
class OpCosts {
 public:
  OpCosts(llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> sizes)
      : symbols_(symbols), sizes_(sizes) {}

  double extent(Dim dim) const {
    return static_cast<double>(dim.is_constant() ? dim.constant() : sizes_[dim.symbol().index]);
  }
  double elements(const TensorType& type) const {
    double product = 1;
    for (Dim dim : type.dims) product *= extent(dim);
    return product;
  }
  double bytes(const TensorType& type) const {
    return static_cast<double>(size_bytes(type.dtype)) * elements(type);
  }

  double flops(const Graph& graph, const Op& op) const {
    const auto operand = [&](size_t i) -> const TensorType& { return graph[op.operands[i]].type; };
    switch (op_class(op)) {
      case OpClass::elementwise:
        return elements(op.type);
      case OpClass::reduce:
        return elements(operand(0));
      case OpClass::composite:
        return composite_flops(graph, op);
      case OpClass::contraction:
      case OpClass::anchor:
      case OpClass::opaque:
        break;
      default:
        return 0;
    }
    if (op.kind == OpKind::linear || op.kind == OpKind::matvec)
      return 2 * elements(op.type) * extent(operand(0).dims.back());
    if (op.kind == OpKind::einsum) return einsum_flops(graph, op);
    if (op.kind == OpKind::sample) return elements(operand(0));
    // Attention: scores, then the sum of values; every token against all visible rows.
    const int64_t kv_heads = op.attrs.get<int64_t>(AttrName::kv_heads);
    const int64_t group = op.attrs.get<int64_t>(AttrName::heads) / kv_heads;
    const double sums =
        extent(operand(0).dims[0]) * extent(operand(2).dims[1]) * static_cast<double>(group);
    return 2 * extent(operand(1).dims[0]) * (elements(operand(0)) + sums);
  }

  /// What the op reads and writes, once. Of a table only the rows that a gather reads count, of a
  /// state only the rows that an append writes.
  double traffic(const Graph& graph, const Op& op) const {
    if (op_class(op) == OpClass::append) return 2 * bytes(graph[op.operands[1]].type);
    double total = bytes(op.type);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (llvm::is_contained(llvm::ArrayRef(op.operands).take_front(i), op.operands[i])) continue;
      total += op_class(op) == OpClass::gather && i == 0 ? bytes(op.type)
                                                         : bytes(graph[op.operands[i]].type);
    }
    return total;
  }

 private:
  double composite_flops(const Graph& graph, const Op& op) const {
    Graph body;
    Builder builder(body, symbols_);
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId id : op.operands)
      operands.push_back(
          builder.leaf(OpKind::input, graph[id].type, fmt::format("x{}", operands.size())));
    decompose(builder, op.kind, operands, op.attrs);
    double total = 0;
    for (const Op& part : body.ops()) total += flops(body, part);
    return total;
  }

  double einsum_flops(const Graph& graph, const Op& op) const {
    const std::string& spec = op.attrs.get<std::string>(AttrName::spec);
    const std::string_view letters[] = {std::string_view(spec).substr(0, spec.find(',')),
                                        std::string_view(spec).substr(spec.find(',') + 1)};
    std::string seen;
    double product = 2;
    for (size_t i = 0; i < 2; ++i)
      for (size_t k = 0; k < graph[op.operands[i]].type.dims.size(); ++k) {
        if (seen.find(letters[i][k]) != std::string::npos) continue;
        seen += letters[i][k];
        product *= extent(graph[op.operands[i]].type.dims[k]);
      }
    return product;
  }

  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<int64_t> sizes_;
};

std::string class_of(const Op& op) {
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::matvec:
    case OpKind::einsum: {
      const size_t dot = op.name.find('.');
      return layer_of(op.name) < 0 ? op.name : op.name.substr(dot + 1);
    }
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      return "norms";
    default:
      return op_class(op) == OpClass::elementwise ? "elementwise"
                                                  : std::string(op_info(op.kind).name);
  }
}

EntryCosts entry_costs(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                       llvm::ArrayRef<int64_t> sizes) {
  EntryCosts costs;
  costs.name = entry.name;
  costs.total.name = "total";
  const OpCosts cost(symbols, sizes);
  std::vector<bool> used(symbols.size(), false);
  for (const Op& op : entry.graph.ops()) {
    if (op.kind == OpKind::state) continue;
    for (Dim dim : op.kind == OpKind::kv_append ? Dims{} : op.type.dims)
      if (!dim.is_constant()) used[dim.symbol().index] = true;
    if (!computes(op)) continue;
    const std::string name = class_of(op);
    auto at = llvm::find_if(costs.classes, [&](const NodeClass& c) { return c.name == name; });
    if (at == costs.classes.end()) at = costs.classes.insert(at, NodeClass{name});
    const double flops = cost.flops(entry.graph, op), bytes = cost.traffic(entry.graph, op);
    for (NodeClass* c : {&*at, &costs.total}) {
      ++c->count;
      c->flops += flops;
      c->bytes += bytes;
    }
  }
  for (size_t i = 0; i < symbols.size(); ++i)
    if (used[i])
      costs.sizes +=
          fmt::format("{}{}={}", costs.sizes.empty() ? "" : " ", symbols[i].name, sizes[i]);
  return costs;
}

std::string heads(const ModelSpec& spec) {
  const std::string size = fmt::format(", each of size {}", spec.head_dim);
  if (spec.kv_heads == spec.heads) return fmt::format("{}{}", spec.heads, size);
  return fmt::format("{}, {} for keys and values{}", spec.heads, spec.kv_heads, size);
}

std::string rope_text(const ModelSpec& spec, const Rope& rope) {
  std::string text =
      fmt::format("rotary ({} of {}, theta {:g}", rope.rotary, spec.head_dim, rope.theta);
  if (rope.scaling == RopeScaling::longrope)
    text += spec.max_positions <= rope.original_max_positions
                ? ", short factors of longrope"
                : fmt::format(", longrope: short factors for texts up to {}, long ones beyond",
                              rope.original_max_positions);
  else if (rope.scaling != RopeScaling::none)
    text += fmt::format(", {} scaling by {:g}", to_string(rope.scaling), rope.factor);
  return text + ")";
}

std::string positions(const ModelSpec& spec) {
  std::string text = spec.rope ? rope_text(spec, *spec.rope) : "learned";
  if (spec.local_rope) text += "; with a window " + rope_text(spec, *spec.local_rope);
  return text + fmt::format(", up to {}", spec.max_positions);
}

std::string window(const ModelSpec& spec) {
  const auto layers = std::count(spec.windowed.begin(), spec.windowed.end(), true);
  return spec.windowed.empty()
             ? fmt::format("{} tokens", *spec.window)
             : fmt::format("{} tokens in {} of {} layers", *spec.window, layers, spec.layers);
}

std::string norms(const ModelSpec& spec) {
  std::string text = fmt::format("{}, eps {:g}", to_string(spec.norm), spec.norm_eps);
  switch (spec.norm_place) {
    case NormPlace::before:
      text += spec.shared_norm ? ", one before both branches" : ", before each branch";
      break;
    case NormPlace::after:
      text += ", after each addition";
      break;
    case NormPlace::branch:
      text += ", behind each branch";
      break;
    case NormPlace::both:
      text += ", before and behind each branch";
      break;
  }
  if (spec.qk_norm != QkNorm::none)
    text += spec.qk_norm == QkNorm::head ? "; of q and k by head" : "; of q and k as a whole";
  return text;
}

void add_facts(const ModelSpec& spec, Inspection& result) {
  const auto fact = [&](std::string what, std::string value) {
    result.facts.emplace_back(std::move(what), std::move(value));
  };
  fact("computes in", std::string(to_string(spec.dtype)));
  fact("layers", fmt::format("{}, hidden size {}", spec.layers, spec.hidden));
  fact("heads", heads(spec));
  fact("positions", positions(spec));
  if (spec.window) fact("attention window", window(spec));
  if (spec.attention_softcap) fact("scores capped", fmt::format("{:g}", *spec.attention_softcap));
  if (spec.logit_softcap) fact("logits capped", fmt::format("{:g}", *spec.logit_softcap));
  fact("norm", norms(spec));
  fact("residual", std::string(to_string(spec.residual)));
  fact("mlp", fmt::format("{} wide, {}{}", spec.ffn, op_info(spec.activation).name,
                          spec.gated ? ", gated" : ""));
  std::string biases;
  for (const auto& [has, name] : {std::pair(spec.qkv_bias, "qkv"),
                                  {spec.attention_out_bias, "attention output"},
                                  {spec.mlp_bias, "mlp"},
                                  {spec.head_bias, "logits"}})
    if (has) biases += (biases.empty() ? "" : ", ") + std::string(name);
  fact("biases", biases.empty() ? "none" : biases);
  fact("vocabulary",
       fmt::format("{}{}", spec.vocabulary, spec.tied ? ", output tied to the embedding" : ""));
}

}  // namespace

Result<Inspection> inspect(const LoadedModel& model, const std::string& device) {
  Inspection result;
  SINTER_LET(description, find_device(device));
  result.device = description;
  const Module& module = model.module;
  result.name = module.name;
  if (model.spec) add_facts(*model.spec, result);
  const std::vector<int64_t> sizes = usual_sizes(module.symbols);
  const OpCosts cost(module.symbols, sizes);
  for (const Weight& weight : module.weights) {
    // A weight that reads no file is a constant of the architecture, not a parameter.
    if (llvm::none_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; }))
      continue;
    result.parameters += static_cast<int64_t>(cost.elements(weight.type));
    auto at =
        llvm::find_if(result.weight_bytes, [&](auto& w) { return w.first == weight.type.dtype; });
    if (at == result.weight_bytes.end())
      at = result.weight_bytes.insert(at, {weight.type.dtype, 0.0});
    at->second += cost.bytes(weight.type);
  }
  for (const State& state : module.states)
    if (state.type.rank() > 0)
      result.cache_bytes_per_token += cost.bytes(state.type) / cost.extent(state.type.dims[0]);
  for (const Entry& entry : module.entries)
    result.entries.push_back(entry_costs(entry, module.symbols, sizes));
  return result;
}

}  // namespace sinter
