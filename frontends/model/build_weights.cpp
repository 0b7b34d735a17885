#include "frontends/model/build_weights.h"

#include <set>

#include "ir/builder.h"
#include "ir/sym_expr.h"

namespace sinter {

namespace {

/// Replaces every `marker` in `text`.
std::string replaced(std::string text, std::string_view marker, std::string_view with) {
  for (size_t at = text.find(marker); at != std::string::npos;
       at = text.find(marker, at + with.size()))
    text.replace(at, marker.size(), with);
  return text;
}

class Lister {
 public:
  explicit Lister(const ModelSpec& spec) : spec_(spec) {}

  std::vector<LogicalWeight> run() {
    table("embed.weight", {spec_.vocabulary, spec_.table_width()});
    if (spec_.embed_width) add("embed.in.weight", {spec_.hidden, *spec_.embed_width});
    if (!spec_.rope) table("embed.pos.weight", {spec_.max_positions, spec_.hidden});
    if (spec_.token_types != 0) table("embed.type.weight", {spec_.token_types, spec_.hidden});
    if (spec_.embed_norm) norm("embed.norm");
    if (spec_.bias_distance != 0)
      table("position_bias.weight", {2 * spec_.bias_distance + 1, spec_.heads});
    for (layer_ = 0; layer_ < spec_.layers; ++layer_) block();
    if (spec_.final_norm) norm("final_norm");
    if (spec_.embed_width) add("embed.out.weight", {*spec_.embed_width, spec_.hidden});
    if (spec_.encoder) return std::move(list_);
    if (!spec_.tied) add("lm_head.weight", {spec_.vocabulary, spec_.table_width()});
    if (spec_.head_bias) add("lm_head.bias", {spec_.vocabulary});
    return std::move(list_);
  }

 private:
  void add(std::string key, Dims dims) {
    std::string name = replaced(key, "{i}", std::to_string(layer_));
    list_.push_back({std::move(name), std::move(key), layer_, std::move(dims)});
  }

  void table(const std::string& key, Dims dims) {
    add(key, std::move(dims));
    list_.back().table = true;
  }

  void norm(const std::string& key) { norm(key, spec_.hidden); }
  void norm(const std::string& key, int64_t width) {
    add(key + ".weight", {width});
    list_.back().wide = spec_.wide_norm();
    list_.back().plus_one = spec_.norm == NormKind::rms_norm_plus_one;
    if (spec_.norm == NormKind::layer_norm && spec_.norm_bias) add(key + ".bias", {width});
  }

  void linear(const std::string& key, int64_t out, int64_t in, bool bias) {
    add(key + ".weight", {out, in});
    if (bias) add(key + ".bias", {out});
  }

  /// A norm of its own for each of q and k.
  void qk_norms(int64_t q_width, int64_t kv_width) {
    if (spec_.qk_norm == QkNorm::none) return;
    const bool head = spec_.qk_norm == QkNorm::head;
    norm("l{i}.q_norm", head ? spec_.head_dim : q_width);
    norm("l{i}.k_norm", head ? spec_.head_dim : kv_width);
  }

  void block() {
    const int64_t q_width = spec_.heads * spec_.head_dim;
    const int64_t kv_width = spec_.kv_heads * spec_.head_dim;
    const bool inner = spec_.norm_place != NormPlace::branch;
    const bool outer = spec_.norm_place == NormPlace::branch || spec_.norm_place == NormPlace::both;
    if (inner && spec_.has_first_norm(layer_)) norm("l{i}.norm1");
    linear("l{i}.q", q_width, spec_.hidden, spec_.qkv_bias);
    linear("l{i}.k", kv_width, spec_.hidden, spec_.qkv_bias);
    linear("l{i}.v", kv_width, spec_.hidden, spec_.qkv_bias);
    qk_norms(q_width, kv_width);
    linear("l{i}.attn_out", spec_.hidden, q_width, spec_.attention_out_bias);
    if (outer) norm("l{i}.post_norm1");
    if (inner && !spec_.shared_norm) norm("l{i}.norm2");
    if (spec_.has_experts(layer_))
      experts(*spec_.experts);
    else
      mlp("l{i}.mlp", spec_.ffn);
    if (outer) norm("l{i}.post_norm2");
  }

  void mlp(const std::string& key, int64_t width) {
    if (spec_.gated) linear(key + ".gate", width, spec_.hidden, spec_.mlp_bias);
    linear(key + ".up", width, spec_.hidden, spec_.mlp_bias);
    linear(key + ".down", spec_.hidden, width, spec_.mlp_bias);
  }

  void experts(const Experts& experts) {
    linear("l{i}.router", experts.count, spec_.hidden, false);
    add("l{i}.experts.gate_up.weight", {experts.count, 2 * experts.ffn, spec_.hidden});
    add("l{i}.experts.down.weight", {experts.count, spec_.hidden, experts.ffn});
    if (experts.shared_ffn != 0) mlp("l{i}.shared", experts.shared_ffn);
    if (experts.shared_gate) linear("l{i}.shared_gate", 1, spec_.hidden, false);
  }

  const ModelSpec& spec_;
  int64_t layer_ = 0;
  std::vector<LogicalWeight> list_;
};

/// The rule of a weight. A model without files has an empty map: each weight is a tensor.
TensorRule rule_of(const LogicalWeight& weight, const WeightMap& map) {
  if (map.rules.empty()) return TensorRule{.tensor = weight.key};
  const auto at = map.rules.find(weight.key);
  SINTER_CHECK(at != map.rules.end(), "no tensor for weight {}", weight.key);
  return at->second;
}

/// A rule's name of a tensor, with prefix and layer.
std::string in_layer(const std::string& name, const LogicalWeight& weight,
                     const WeightNames& names) {
  return replaced(replaced(name, "{p}", names.prefix), "{i}", std::to_string(weight.layer));
}

/// The rows of a tensor that a weight takes; axes behind the first stay.
ValueId cut_rows(Builder& builder, ValueId value, const LogicalWeight& weight,
                 const TensorRule& rule) {
  Dims dims = builder.type(value).dims;
  dims[0] = weight.dims[0];
  if (!rule.rows.empty()) {
    const ValueId ids = builder.op(
        OpKind::literal, {},
        Attributes()
            .set(AttrName::dims, Dims{weight.dims[0]})
            .set(AttrName::dtype, DType::i32)
            .set(AttrName::values, std::vector<double>(rule.rows.begin(), rule.rows.end())));
    return builder.op(OpKind::embedding, {value, ids}, {});
  }
  if (rule.group_rows == 0) return value;
  const int64_t rows = weight.dims[0].constant() / rule.groups;
  Dims grouped{rule.groups, rule.group_rows};
  grouped.append(dims.begin() + 1, dims.end());
  // A single group is a plain block of rows; the reshapes would say nothing.
  if (rule.groups > 1) value = builder.reshape(value, grouped);
  value = builder.slice(value, rule.groups > 1 ? 1 : 0, rule.begin, rows);
  return rule.groups > 1 ? builder.reshape(value, dims) : value;
}

ValueId file_tensor(Builder& builder, std::string tensor, const TensorType& type) {
  return builder.op(OpKind::file, {},
                    Attributes()
                        .set(AttrName::dims, type.dims)
                        .set(AttrName::dtype, type.dtype)
                        .set(AttrName::tensor, std::move(tensor)));
}

/// The tensor that a weight is cut from, as the spec asks for it.
Dims tensor_dims(const LogicalWeight& weight, const WeightNames& names) {
  const TensorRule rule = rule_of(weight, names.map);
  Dims dims = weight.dims;
  if (rule.group_rows != 0) dims[0] = rule.groups * rule.group_rows;
  if (rule.transposed) std::swap(dims[0], dims[1]);
  return dims;
}

bool one_for_each_expert(const TensorRule& rule) {
  return rule.tensor.find("{e}") != std::string::npos;
}

/// The rows of all tensors, one tensor behind the other. A tensor's memory is free once the concat
/// that reads it is done.
ValueId stacked_rows(Builder& builder, llvm::ArrayRef<SourceTensor> tensors, DType dtype) {
  constexpr size_t kMaxOperands = 64;  // of concat
  const auto concat = [&](llvm::ArrayRef<ValueId> parts) {
    return parts.size() == 1
               ? parts.front()
               : builder.op(OpKind::concat, parts, Attributes().set(AttrName::axis, int64_t{0}));
  };
  llvm::SmallVector<ValueId, 32> blocks;
  for (; !tensors.empty(); tensors = tensors.drop_front(std::min(kMaxOperands, tensors.size()))) {
    llvm::SmallVector<ValueId, kMaxOperands> parts;
    for (const SourceTensor& tensor : tensors.take_front(std::min(kMaxOperands, tensors.size())))
      parts.push_back(builder.cast(file_tensor(builder, tensor.name, tensor.type), dtype));
    blocks.push_back(concat(parts));
  }
  return concat(blocks);
}

/// The packed rows of a weight whose tensors are codes and scales of one format.
Weight packed_weight(const LogicalWeight& weight, const TensorRule& rule,
                     llvm::ArrayRef<SourceTensor> tensors, const CodedTensor& coded) {
  Graph graph;
  Builder builder(graph, {});
  const auto part = [&](const char* end, const TensorType& type) {
    std::vector<SourceTensor> parts;
    for (const SourceTensor& tensor : tensors) parts.push_back({tensor.name + end, type});
    return cut_rows(builder, stacked_rows(builder, parts, type.dtype), weight, rule);
  };
  llvm::SmallVector<ValueId, 4> operands{part(".codes", coded.codes_type()),
                                         part(".scales", coded.scales_type())};
  if (coded.has_zeros()) operands.push_back(part(".zeros", coded.zeros_type()));
  if (coded.has_minima()) operands.push_back(part(".minima", coded.scales_type()));
  if (coded.has_parts()) operands.push_back(part(".parts", coded.parts_type()));
  ValueId packed = builder.op(
      OpKind::pack_codes, operands,
      Attributes().set(AttrName::size, Dim(coded.in)).set(AttrName::codes, coded.format()));
  if (weight.dims.size() == 3) {
    Dims dims = weight.dims;
    dims.back() = builder.type(packed).dims.back();
    packed = builder.reshape(packed, dims);
  }
  graph[packed].name = weight.name;
  graph.outputs.push_back(packed);
  return {weight.name, builder.type(packed), std::move(graph)};
}

Graph weight_function(const LogicalWeight& weight, const TensorRule& rule,
                      llvm::ArrayRef<SourceTensor> tensors, DType dtype) {
  Graph graph;
  Builder builder(graph, {});
  ValueId value;
  if (one_for_each_expert(rule))
    value = builder.reshape(stacked_rows(builder, tensors, dtype), weight.dims);
  else
    value = file_tensor(builder, tensors[0].name, tensors[0].type);
  if (rule.transposed) value = builder.transpose(value, {1, 0});
  value = cut_rows(builder, value, weight, rule);
  value = builder.cast(value, dtype);
  if (weight.wide) value = builder.cast(value, DType::f32);
  if (weight.plus_one) value = builder.add(builder.constant(1.0, DType::f32), value);
  graph[value].name = weight.name;
  graph.outputs.push_back(value);
  return graph;
}

}  // namespace

std::vector<LogicalWeight> logical_weights(const ModelSpec& spec) { return Lister(spec).run(); }

std::string tensor_name(const LogicalWeight& weight, const WeightNames& names) {
  return in_layer(rule_of(weight, names.map).tensor, weight, names);
}

std::vector<SourceTensor> source_tensors(const LogicalWeight& weight, const WeightNames& names,
                                         DType dtype) {
  const TensorRule rule = rule_of(weight, names.map);
  if (!one_for_each_expert(rule))
    return {{tensor_name(weight, names), {dtype, tensor_dims(weight, names)}}};
  std::vector<std::string> parts{in_layer(rule.tensor, weight, names)};
  if (!rule.second.empty()) parts.push_back(in_layer(rule.second, weight, names));
  const int64_t rows = weight.dims[1].constant() / static_cast<int64_t>(parts.size());
  std::vector<SourceTensor> tensors;
  for (int64_t expert = 0; expert < weight.dims[0].constant(); ++expert)
    for (const std::string& part : parts)
      tensors.push_back(
          {replaced(part, "{e}", std::to_string(expert)), {dtype, {rows, weight.dims[2]}}});
  return tensors;
}

const CodedTensor* WeightNames::codes_of(std::string_view tensor) const {
  const auto at = coded.find(tensor);
  return at == coded.end() ? nullptr : &at->second;
}

CodedTensor codes_of_dims(DimsRef dims) {
  std::vector<int64_t> extents;
  for (Dim dim : dims) extents.push_back(dim.constant());
  CodedTensor codes;
  codes.set_extents(extents);
  return codes;
}

OrderWeights order_weights(const ModelSpec& spec, const WeightNames& names) {
  OrderWeights of_tensors, of_weights;
  if (names.coded.empty()) return of_weights;
  for (const LogicalWeight& weight : logical_weights(spec)) {
    const CodedTensor* coded = names.codes_of(tensor_name(weight, names));
    if (!coded || coded->order.empty()) continue;
    of_weights[weight.name] =
        of_tensors.emplace(coded->order, replaced(weight.name, ".weight", ".order")).first->second;
  }
  return of_weights;
}

namespace {

/// The codes of a weight's tensor have the sizes that the spec asks for.
Status check_coded(const LogicalWeight& weight, const SourceTensor& tensor, bool transposed,
                   const CodedTensor& coded, std::string_view place) {
  const auto refuse = [&](std::string what, std::string how) -> Status {
    return fail(fmt::format("the codes of tensor {} {} (weight {})", printable(tensor.name), what,
                            weight.name),
                std::string(place), std::move(how));
  };
  const bool of_experts = weight.dims.size() == 3;
  if (weight.dims.size() < 2)
    return refuse("are no matrix", "give a checkpoint whose matrices alone are quantized");
  if ((weight.table || of_experts) && !coded.order.empty())
    return refuse(fmt::format("are sorted by group, which those of {} cannot be",
                              of_experts ? "experts" : "a table"),
                  "give a checkpoint whose linears alone are so");
  Dims dims = tensor.type.dims;
  if (transposed) std::swap(dims[0], dims[1]);
  const CodedTensor asked = codes_of_dims(dims);
  const auto text = [](const CodedTensor& codes) {
    return fmt::format("[{}]", fmt::join(codes.row_dims(codes.in), ", "));
  };
  if (text(coded) == text(asked)) return {};
  return refuse(fmt::format("are {}, but the model's sizes ask for {}", text(coded), text(asked)),
                "correct the config's sizes or give the weights that belong to them");
}

/// "codes int4 g128 f16", or "elements".
std::string format_text(const CodedTensor* coded) {
  return coded ? "codes " + coded->format() : "elements";
}

/// The type of a file's tensor that a weight is made of.
Result<DType> float_type_of(const LogicalWeight& weight, const SourceTensor& file,
                            const TensorSource& source, std::string_view place) {
  const std::optional<TensorType> found = source.find(file.name);
  if (!found) {
    Error error = source.missing(file.name);
    if (error.where.empty()) error.where = place;
    error.what += fmt::format(", which weight {} needs as {}", weight.name,
                              to_string(TensorType{DType::f32, file.type.dims}, {}).substr(3));
    return tl::make_unexpected(std::move(error));
  }
  if (found->dims != file.type.dims)
    return fail(fmt::format("tensor {} is {}, but the model's sizes ask for {} (weight {})",
                            printable(file.name), to_string(*found, {}),
                            to_string(TensorType{found->dtype, file.type.dims}, {}), weight.name),
                std::string(place),
                "correct the config's sizes or give the weights that belong to them");
  if (!is_float(found->dtype))
    return fail(fmt::format("tensor {} is {}, expected a float type (weight {})",
                            printable(file.name), to_string(*found, {}), weight.name),
                std::string(place), "give f32, f16 or bf16 weights");
  return found->dtype;
}

}  // namespace

Result<std::vector<Weight>> build_weights(const ModelSpec& spec, const WeightNames& names,
                                          const TensorSource* source, std::string_view place) {
  std::vector<Weight> weights;
  std::set<std::string, std::less<>> orders;
  for (const LogicalWeight& weight : logical_weights(spec)) {
    const TensorRule rule = rule_of(weight, names.map);
    std::vector<SourceTensor> tensors = source_tensors(weight, names, spec.dtype);
    const CodedTensor* coded = names.codes_of(tensors.front().name);
    for (SourceTensor& file : tensors) {
      const CodedTensor* own = names.codes_of(file.name);
      if (own) {
        SINTER_TRY(check_coded(weight, file, rule.transposed, *own, place));
      } else if (source) {
        SINTER_LET(dtype, float_type_of(weight, file, *source, place));
        file.type.dtype = dtype;
      }
      if (format_text(own) != format_text(coded))
        return fail(fmt::format("tensor {} has {} and tensor {} {}, but a weight has one format "
                                "(weight {})",
                                printable(tensors.front().name), format_text(coded),
                                printable(file.name), format_text(own), weight.name),
                    std::string(place), "give a checkpoint that quantizes a layer's experts alike");
    }
    if (coded) {
      weights.push_back(packed_weight(weight, rule, tensors, *coded));
      if (coded->order.empty() || !orders.insert(coded->order).second) continue;
      Graph graph;
      Builder builder(graph, {});
      const ValueId order = file_tensor(builder, coded->order, coded->order_type());
      graph[order].name = replaced(weight.name, ".weight", ".order");
      graph.outputs.push_back(order);
      weights.push_back({graph[order].name, coded->order_type(), std::move(graph)});
      continue;
    }
    weights.push_back({weight.name,
                       {weight.wide ? DType::f32 : spec.dtype, weight.dims},
                       weight_function(weight, rule, tensors, spec.dtype)});
  }
  return weights;
}

namespace {

/// A bias of zeros beside codes, which AutoGPTQ writes for each linear. Fails if the tensor cannot
/// be read.
Result<bool> is_zero_bias(const std::string& tensor, const WeightNames& names,
                          const TensorSource& source) {
  constexpr std::string_view kEnd = ".bias";
  if (!tensor.ends_with(kEnd)) return false;
  const std::string module = tensor.substr(0, tensor.size() - kEnd.size());
  const auto coded = names.coded.find(module + ".weight");
  const std::optional<TensorType> type = source.find(tensor);
  if (coded == names.coded.end() || !type || !is_float(type->dtype) ||
      type->dims != Dims{coded->second.out})
    return false;
  std::vector<std::byte> bytes(static_cast<size_t>(storage_bytes(*type).constant()));
  SINTER_TRY(source.read(tensor, bytes));
  return llvm::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

Status refuse_unused_tensors(const ModelSpec& spec, const WeightNames& names,
                             const TensorSource& source, std::string_view place) {
  std::set<std::string, std::less<>> used;
  for (const LogicalWeight& weight : logical_weights(spec)) {
    for (const auto& [tensor, type] : source_tensors(weight, names, spec.dtype)) {
      used.insert(tensor);
      if (!names.coded.contains(tensor)) continue;
      for (const std::string_view end : kCodedParts) used.insert(tensor + std::string(end));
    }
  }
  if (!spec.encoder) used.insert(tensor_name({"lm_head.weight", "lm_head.weight", 0, {}}, names));
  for (const std::string& tensor : source.names()) {
    const auto ends = [&](const std::string& end) { return tensor.ends_with(end); };
    const auto begins = [&](const std::string& begin) { return tensor.starts_with(begin); };
    if (used.contains(tensor) || llvm::any_of(names.map.ignorable, ends) ||
        llvm::any_of(names.map.foreign, begins))
      continue;
    SINTER_LET(zero, is_zero_bias(tensor, names, source));
    if (zero) continue;
    return fail(fmt::format("tensor {} is no part of the model that the config describes",
                            printable(tensor)),
                std::string(place), "give a config and weights that belong together");
  }
  return {};
}

}  // namespace sinter
