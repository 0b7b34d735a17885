#include "driver/inspect/inspect.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>

#include "driver/explain/layers.h"
#include "driver/routing.h"
#include "driver/text_table.h"
#include "frontends/huggingface/folder_files.h"
#include "ir/grouping.h"
#include "ir/op_flops.h"
#include "ir/op_roles.h"
#include "ir/type_sizes.h"
#include "passes/fusion/fusion_costs.h"

namespace sinter {
namespace {

std::string class_of(const Op& op) {
  if (has_matrix(op))
    return layer_of(op.name) < 0 ? op.name : op.name.substr(op.name.find('.') + 1);
  if (op.attrs.has(AttrName::eps)) return "norms";
  return op_class(op) == OpClass::elementwise ? "elementwise" : std::string(algorithm_name(op));
}

/// The costs of an entry of a plan with a kernel for each op.
EntryCosts entry_costs(const Compiled& unfused, size_t index) {
  const Entry& entry = unfused.module.entries[index];
  const Fusion& fusion = unfused.fusions[index];
  const std::vector<int64_t> sizes = unfused.sizes_of(index);
  EntryCosts costs;
  costs.name = unfused.title_of(index);
  costs.sizes = show_sizes(*unfused.program, unfused.program->entries[index], sizes);
  costs.total.name = "total";
  const FusionCosts kernels(fusion, sizes);
  for (const Group& group : fusion.grouping.groups) {
    const Op& op = entry.graph[group.members[0]];
    const std::string name = class_of(op);
    auto at = llvm::find_if(costs.classes, [&](const NodeClass& c) { return c.name == name; });
    if (at == costs.classes.end()) at = costs.classes.insert(at, NodeClass{name});
    const double operations = flops(entry.graph, op, {unfused.module.symbols, sizes});
    for (NodeClass* c : {&*at, &costs.total}) {
      ++c->count;
      c->flops += operations;
      c->bytes += kernels.bytes(group).total();
      c->predicted_s += kernels.seconds(group);
    }
  }
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
             ? counted(static_cast<uint64_t>(*spec.window), "token")
             : fmt::format("{} in {} of {}", counted(static_cast<uint64_t>(*spec.window), "token"),
                           layers, counted(static_cast<uint64_t>(spec.layers), "layer"));
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
      text += ", after each branch";
      break;
    case NormPlace::both:
      text += ", before and after each branch";
      break;
  }
  if (spec.qk_norm != QkNorm::none)
    text += spec.qk_norm == QkNorm::head ? "; of q and k by head" : "; of q and k as a whole";
  return text;
}

std::string mlp(const ModelSpec& spec, int64_t width) {
  return fmt::format("{} wide, {}{}", width, op_info(spec.activation).name,
                     spec.gated ? ", gated" : "");
}

std::string experts_text(const ModelSpec& spec) {
  const Experts& experts = *spec.experts;
  std::string text =
      fmt::format("{} of {}, each {}", experts.chosen, experts.count, mlp(spec, experts.ffn));
  if (experts.shared_ffn != 0) text += fmt::format("; a shared one {} wide", experts.shared_ffn);
  if (!experts.sparse.empty())
    text += fmt::format("; in {} of {} layers",
                        std::count(experts.sparse.begin(), experts.sparse.end(), true),
                        experts.sparse.size());
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
  if (!spec.experts || !spec.experts->sparse.empty()) fact("mlp", mlp(spec, spec.ffn));
  if (spec.experts) fact("experts", experts_text(spec));
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

struct PackedWeight {
  TensorType type;  // dequantized
  std::string format;
};

/// The weights that entries dequantize or give to experts as codes, by name.
std::map<std::string, PackedWeight> packed_weights(const Module& module) {
  std::map<std::string, PackedWeight> packed;
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (op.kind == OpKind::dequantize || op.kind == OpKind::expert_linear) {
        const Op& weight = entry.graph[op.operands[op.kind == OpKind::dequantize ? 0 : 1]];
        if (weight.kind != OpKind::weight || !op.attrs.has(AttrName::codes)) continue;
        TensorType type{DType::f32, weight.type.dims};
        type.dims.back() = op.attrs.get<Dim>(AttrName::size);
        packed[weight.name] = {type, op.attrs.get<std::string>(AttrName::codes)};
      }
  return packed;
}

/// The share of each weight that one token reads: of a table a row, of the matrices of experts
/// those that are chosen.
std::map<std::string, double> read_shares(const Module& module) {
  std::map<std::string, double> shares;
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const Op& weight = entry.graph[op.operands[i]];
        if (weight.kind != OpKind::weight || weight.type.rank() == 0) continue;
        double share = 1;
        if (operand_role(op, i).kind == OperandRole::table && weight.type.dims[0].is_constant()) {
          const int64_t rows = op.kind == OpKind::expert_linear ? op.type.dims[1].constant() : 1;
          share = static_cast<double>(rows) / static_cast<double>(weight.type.dims[0].constant());
        }
        double& most = shares[weight.name];
        most = std::min(1.0, std::max(most, share));
      }
  return shares;
}

/// The weights that one token reads, and how many experts of a layer several tokens read.
std::string active_text(const Experts& experts, double elements, double bytes) {
  const auto read_by = [&](int tokens) {
    return step_experts(experts, ExpertRouting::random, 0, tokens).read;
  };
  return fmt::format(
      "{} parameters, {}; 8 tokens {:.0f} of a layer's {} experts, 32 tokens {:.0f}, where all "
      "experts are as likely",
      with_unit(elements, ""), with_unit(bytes, "B"), read_by(8), experts.count, read_by(32));
}

}  // namespace

Result<Inspection> inspect(const OpenedModel& model, const InspectOptions& asked) {
  Inspection result;
  SINTER_LET(description, find_device(asked.device));
  result.device = description;
  const Module& module = model.module;
  result.name = module.name;
  if (model.spec) add_facts(*model.spec, result);
  if (const std::vector<std::string> names = ignored_files(model.origin); !names.empty())
    result.facts.emplace_back("files ignored", fmt::format("{}", fmt::join(names, ", ")));
  SINTER_LET(sizes, stated_sizes(module.symbols, asked.sizes));
  const TypeSizes type_sizes(sizes);
  const std::map<std::string, PackedWeight> packed = packed_weights(module);
  const std::map<std::string, double> shares = read_shares(module);
  double packed_elements = 0, packed_bytes = 0, active_elements = 0, active_bytes = 0;
  for (const Weight& weight : module.weights) {
    // A weight that reads no file is a constant of the architecture, not a parameter.
    if (llvm::none_of(weight.init.ops(), [](const Op& op) { return op.kind == OpKind::file; }))
      continue;
    const auto codes = packed.find(weight.name);
    const bool is_packed = codes != packed.end();
    const double elements = type_sizes.elements(is_packed ? codes->second.type : weight.type);
    const double bytes = type_sizes.bytes(weight.type);
    result.parameters += static_cast<int64_t>(elements);
    const std::string form =
        is_packed ? codes->second.format : std::string(to_string(weight.type.dtype));
    auto at = llvm::find_if(result.weight_bytes, [&](auto& w) { return w.first == form; });
    if (at == result.weight_bytes.end()) at = result.weight_bytes.insert(at, {form, 0.0});
    at->second += bytes;
    if (is_packed) packed_elements += elements, packed_bytes += bytes;
    const auto found = shares.find(weight.name);
    const double share = found == shares.end() ? 1 : found->second;
    active_elements += share * elements, active_bytes += share * bytes;
  }
  if (model.spec && model.spec->experts)
    result.facts.emplace_back("a token reads",
                              active_text(*model.spec->experts, active_elements, active_bytes));
  if (packed_elements > 0)
    result.facts.emplace_back(
        "quantized", fmt::format("{} matrices, {:.3g} bits a weight, {} less than in 16 bits",
                                 packed.size(), 8 * packed_bytes / packed_elements,
                                 with_unit(2 * packed_elements - packed_bytes, "B")));
  for (const State& state : module.states)
    if (state.type.rank() > 0)
      result.cache_bytes_per_token +=
          type_sizes.bytes(state.type) / type_sizes.extent(state.type.dims[0]);
  CompileOptions options;
  options.target = asked.device;
  options.sizes = asked.sizes;
  SINTER_LET(frozen, frozen_module(model, options));
  std::shared_ptr<const Program> fused = model.plan ? model.plan->program() : nullptr;
  if (!fused) {
    SINTER_LET(compiled, compile(frozen, options));
    fused = std::move(compiled.program);
  }
  options.fusion.enabled = false;
  SINTER_LET(unfused, compile(std::move(frozen), options));
  for (size_t i = 0; i < unfused.fusions.size(); ++i) {
    EntryCosts& costs = result.entries.emplace_back(entry_costs(unfused, i));
    SINTER_LET(arena, arena_bytes(fused->entries[i], unfused.sizes_of(i)));
    SINTER_LET(apart, arena_bytes(unfused.program->entries[i], unfused.sizes_of(i)));
    costs.arena_bytes = arena;
    costs.unfused_arena_bytes = apart;
  }
  if (asked.prompts) {
    SINTER_LET(memory, prompt_memory(*fused, *asked.prompts, asked.prefill));
    result.prompts = memory;
  }
  return result;
}

}  // namespace sinter
