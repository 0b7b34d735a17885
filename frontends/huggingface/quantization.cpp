#include "frontends/huggingface/quantization.h"

#include "ir/never_destroyed.h"

namespace sinter {
namespace {

constexpr std::string_view kOtherCheckpoint =
    "give a checkpoint of another format, or an unquantized one";

/// Groups whose codes the formats of weights have (ir/code_format.h), or a multiple of the largest.
Status check_group(const JsonView& view, int64_t group) {
  if (group == 16 || group == 32 || group == 64 || (group > 0 && group % 128 == 0)) return {};
  return view.fail(fmt::format("groups of {} inputs are not supported", group),
                   "supported: 16, 32, 64 and multiples of 128, or -1 for whole rows");
}

/// Sets strategy and group; -1 means whole rows.
Status read_group(HfConfig& config, std::string_view key, WeightScheme& scheme) {
  SINTER_LET(view, config.find(key, {key}));
  SINTER_LET(group, view.integer());
  scheme.strategy = group == -1 ? ScaleStrategy::channel : ScaleStrategy::group;
  if (group == -1) return {};
  SINTER_TRY(check_group(view, group));
  scheme.group = group;
  return {};
}

Status read_bits(HfConfig& config, bool eight, WeightScheme& scheme) {
  SINTER_LET(view, config.find("bits", {"bits"}));
  SINTER_LET(bits, view.integer());
  if (bits != 4 && !(bits == 8 && eight))
    return view.fail(fmt::format("weights of {} bits are not supported", bits),
                     fmt::format("supported: {}", eight ? "4 and 8 bits" : "4 bits"));
  scheme.bits = static_cast<int>(bits);
  return {};
}

/// A key that must say `expected` where it is there.
Status expect(HfConfig& config, std::string_view key, std::string_view expected) {
  SINTER_LET(view, config.find(key, {key}));
  SINTER_LET(text, view.string_or(std::string(expected)));
  return text == expected ? Status() : view.mismatch(expected, std::string(kOtherCheckpoint));
}

/// Modules that are left as they are: those with one of the texts in their names.
Status read_unconverted(HfConfig& config, ModuleNames& names) {
  SINTER_LET(view, config.find("modules_to_not_convert", {"modules_to_not_convert"}));
  if (!view.present()) return {};
  SINTER_LET(list, view.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(part, view[i].string());
    if (part.empty()) return view[i].mismatch("the name of a module", "remove it");
    names.add_part(std::move(part));
  }
  return {};
}

Quantization one_scheme(std::string method, const WeightScheme& scheme) {
  Quantization result;
  result.method = std::move(method);
  result.groups.push_back({scheme, ModuleNames::linears()});
  result.ignored.add_name("lm_head");
  result.files_decide = true;
  return result;
}

Result<Quantization> read_gptq(HfConfig& config) {
  WeightScheme scheme{.layout = WeightLayout::gptq};
  SINTER_TRY(read_bits(config, true, scheme));
  SINTER_TRY(read_group(config, "group_size", scheme));
  SINTER_TRY(config.flag(scheme.symmetric, "sym", {"sym"}, true));
  SINTER_TRY(config.flag(scheme.act_order, "desc_act", {"desc_act"}, false));
  SINTER_LET(said, config.find("checkpoint_format", {"checkpoint_format"}));
  SINTER_LET(format, said.string_or("gptq"));
  if (format != "gptq" && format != "gptq_v2")
    return said.fail(fmt::format("checkpoint_format '{}' is not supported", printable(format)),
                     "supported: gptq, gptq_v2");
  scheme.zeros_less_one = format == "gptq";
  SINTER_TRY(expect(config, "pack_dtype", "int32"));
  bool marlin = false;
  SINTER_TRY(config.flag(marlin, "is_marlin_format", {"is_marlin_format"}, false));
  SINTER_LET(marlin_view, config.find("is_marlin_format", {"is_marlin_format"}));
  if (marlin) return marlin_view.mismatch("false", std::string(kOtherCheckpoint));
  SINTER_LET(dynamic, config.find("dynamic", {"dynamic"}));
  if (dynamic.present()) {
    SINTER_LET(members, dynamic.object());
    if (!members->empty())
      return dynamic.fail("settings of single modules are not supported",
                          std::string(kOtherCheckpoint));
  }
  SINTER_LET(adapter, config.find("adapter", {"adapter"}));
  if (adapter.present())
    return adapter.fail("a LoRA adapter is not supported", "merge it into the model's weights");
  return one_scheme("gptq", scheme);
}

Result<Quantization> read_awq(HfConfig& config) {
  WeightScheme scheme{.layout = WeightLayout::awq};
  SINTER_LET(version, config.find("version", {"version"}));
  SINTER_LET(name, version.string_or("gemm"));
  // transformers wrote the name of an enumeration once.
  if (name != "gemm" && name != "GEMM")
    return version.fail(fmt::format("version '{}' of AWQ is not supported", printable(name)),
                        "supported: gemm");
  SINTER_TRY(read_bits(config, false, scheme));
  SINTER_TRY(read_group(config, "group_size", scheme));
  bool zeros = true;
  SINTER_TRY(config.flag(zeros, "zero_point", {"zero_point"}, true));
  scheme.symmetric = false;  // the layout has zero points in any case
  Quantization result = one_scheme("awq", scheme);
  SINTER_TRY(read_unconverted(config, result.ignored));
  return result;
}

Result<Quantization> read_fp8(HfConfig& config) {
  WeightScheme scheme{
      .layout = WeightLayout::inverse, .is_float = true, .strategy = ScaleStrategy::block};
  SINTER_TRY(expect(config, "fmt", "e4m3"));
  SINTER_LET(block, config.find("weight_block_size", {"weight_block_size"}));
  SINTER_TRY(block.array());
  for (size_t i = 0; i < 2; ++i) {
    SINTER_LET(size, block[i].integer());
    if (size != kScaleBlock)
      return block[i].mismatch(std::to_string(kScaleBlock), "other blocks are not supported");
  }
  if (block[2].present()) return block.mismatch("two numbers", "correct this value");
  bool dequantized = false;
  SINTER_TRY(config.flag(dequantized, "dequantize", {"dequantize"}, false));
  Quantization result = one_scheme("fp8", scheme);
  SINTER_TRY(read_unconverted(config, result.ignored));
  return result;
}

/// Files of NVIDIA's Model Optimizer.
Result<Quantization> read_modelopt(HfConfig& config) {
  for (const std::string_view key : {"kv_cache_quant_algo", "kv_cache_scheme"}) {
    SINTER_LET(cache, config.find(key, {key}));
    if (cache.present())
      return cache.fail("quantized caches are not supported",
                        "give a checkpoint without a quantized cache");
  }
  SINTER_LET(view, config.find("quant_algo", {"quant_algo"}));
  SINTER_LET(algorithm, view.string());
  WeightScheme scheme{.is_float = true, .strategy = ScaleStrategy::tensor};
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4") {
    scheme.layout = WeightLayout::modelopt;
    scheme.bits = 4;
    scheme.strategy = ScaleStrategy::group;
    scheme.group = 16;
    SINTER_LET(group_view, config.find("group_size", {"group_size"}));
    SINTER_LET(group, group_view.integer_or(scheme.group));
    if (group != scheme.group) return group_view.mismatch("16", std::string(kOtherCheckpoint));
  } else if (algorithm != "FP8") {
    return view.fail(fmt::format("quant_algo '{}' is not supported", printable(algorithm)),
                     "supported: FP8, NVFP4, W4A16_NVFP4");
  }
  Quantization result = one_scheme("modelopt", scheme);
  SINTER_LET(ignored, config.find("ignore", {"ignore", "exclude_modules"}));
  if (!ignored.present()) return result;
  SINTER_LET(list, ignored.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(name, ignored[i].string());
    // "model.layers.0*": all modules whose names begin so.
    if (name.ends_with('*')) name.pop_back();
    if (name.empty()) return ignored[i].mismatch("the name of a module", "remove it");
    result.ignored.add_part(std::move(name));
  }
  return result;
}

struct Method {
  std::string_view name;
  Result<Quantization> (*read)(const JsonDocument&, HfConfig&, const IgnoredKeys&);
  /// Keys that say how codes were found, or how other programs compute with them.
  std::vector<std::string_view> harmless;
};

llvm::ArrayRef<Method> methods() {
  static const auto& methods = never_destroyed([] {
    return std::vector<Method>{
        {"gptq",
         [](const JsonDocument&, HfConfig& config, const IgnoredKeys&) {
           return read_gptq(config);
         },
         {"act_group_aware",
          "backend",
          "batch_size",
          "block_name_to_quantize",
          "cache_block_outputs",
          "damp_auto_increment",
          "damp_percent",
          "dataset",
          "exllama_config",
          "failsafe",
          "lm_head",
          "max_input_length",
          "meta",
          "model_file_base_name",
          "model_name_or_path",
          "model_seqlen",
          "module_name_preceding_first_block",
          "modules_in_block_to_quantize",
          "mse",
          "pad_token_id",
          "parallel_packing",
          "quantizer",
          "static_groups",
          "tokenizer",
          "true_sequential",
          "use_cuda_fp16",
          "use_exllama",
          "v2"}},
        {"awq",
         [](const JsonDocument&, HfConfig& config, const IgnoredKeys&) { return read_awq(config); },
         {"backend", "do_fuse", "exllama_config", "fuse_max_seq_len", "modules_to_fuse"}},
        {"compressed-tensors",
         read_compressed_tensors,
         {"global_compression_ratio", "quantization_status", "run_compressed", "version"}},
        {"fp8",
         [](const JsonDocument&, HfConfig& config, const IgnoredKeys&) { return read_fp8(config); },
         {"activation_scheme", "scale_fmt"}},
        {"modelopt",
         [](const JsonDocument&, HfConfig& config, const IgnoredKeys&) {
           return read_modelopt(config);
         },
         {"config_groups", "group_size", "producer"}},
    };
  });
  return methods;
}

/// Removes members of these names, at any depth.
void drop_members(JsonValue& value, llvm::ArrayRef<std::string> names) {
  auto* members = std::get_if<JsonValue::Object>(&value.data);
  if (!members) return;
  llvm::erase_if(*members,
                 [&](const JsonMember& member) { return llvm::is_contained(names, member.key); });
  for (JsonMember& member : *members) drop_members(member.value, names);
}

}  // namespace

Result<Quantization> read_quantization(const JsonDocument& document, const JsonView& view,
                                       const IgnoredKeys& ignored, std::string_view method) {
  SINTER_TRY(view.object());
  HfConfig config(document, view);
  SINTER_LET(method_view, config.find("quant_method", {"quant_method"}));
  SINTER_LET(name,
             method.empty() ? method_view.string() : method_view.string_or(std::string(method)));
  std::vector<std::string_view> known;
  for (const Method& row : methods()) {
    known.push_back(row.name);
    if (row.name != name) continue;
    SINTER_LET(result, row.read(document, config, ignored));
    SINTER_TRY(config.refuse_unread(ignored, row.harmless));
    return std::move(result);
  }
  return method_view.fail(
      fmt::format("weights quantized by '{}' are not supported", printable(name)),
      fmt::format("supported: {}", fmt::join(known, ", ")));
}

std::string quantization_text(JsonValue object, const IgnoredKeys& ignored,
                              std::string_view method) {
  drop_members(object, ignored.names);
  auto& members = std::get<JsonValue::Object>(object.data);
  if (!object.find("quant_method"))
    members.push_back({"quant_method", JsonValue(std::string(method))});
  return to_text(object);
}

Result<Quantization> read_quantization_text(std::string_view text, std::string file) {
  SINTER_LET(document, parse_json(text, std::move(file)));
  return read_quantization(document, document.view(), {});
}

}  // namespace sinter
