// Configs of compressed-tensors: groups of modules, each with a scheme of its own.
#include "frontends/huggingface/quantization.h"

namespace sinter {
namespace {

/// A layout of compressed-tensors, and which codes it has.
struct Format {
  std::string_view name;
  WeightLayout layout;
  std::string_view type;  // of the codes; empty: as the scheme says
  bool four, eight;       // bits
  int64_t group = 0;      // the only size of groups; 0: any
  bool exponents = false;
};
constexpr Format kFormats[] = {
    {"pack-quantized", WeightLayout::packed, "int", true, true},
    {"int-quantized", WeightLayout::plain, "int", false, true},
    {"float-quantized", WeightLayout::plain, "float", false, true},
    {"naive-quantized", WeightLayout::plain, "", false, true},
    {"nvfp4-pack-quantized", WeightLayout::pairs, "float", true, false, 16},
    {"mxfp4-pack-quantized", WeightLayout::pairs, "float", true, false, 32, true},
};

/// A key that is there and switched on.
Status refuse_object(HfConfig& config, std::string_view key, std::string_view what,
                     std::string_view hint) {
  SINTER_LET(view, config.find(key, {key}));
  if (!view.present()) return {};
  SINTER_LET(members, view.object());
  return members->empty() ? Status() : view.fail(std::string(what), std::string(hint));
}

Result<const Format*> read_format(const JsonView& view) {
  SINTER_LET(name, view.string());
  std::string known;
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  }
  return view.fail(fmt::format("weights of format '{}' are not supported", printable(name)),
                   fmt::format("supported: {}", known));
}

class SchemeReader {
 public:
  SchemeReader(const JsonDocument& document, const JsonView& view, const Format& format,
               const IgnoredKeys& ignored)
      : config_(document, view), view_(view), format_(format), ignored_(ignored) {
    scheme_.layout = format.layout;
    scheme_.exponents = format.exponents;
  }

  Result<WeightScheme> run() {
    SINTER_TRY(read_type());
    SINTER_TRY(read_strategy());
    SINTER_TRY(config_.flag(scheme_.symmetric, "symmetric", {"symmetric"}, true));
    if (scheme_.is_float && !scheme_.symmetric)
      return view_["symmetric"].mismatch("true", "floating-point codes have no zero points");
    SINTER_TRY(read_act_order());
    bool dynamic = false;
    SINTER_TRY(config_.flag(dynamic, "dynamic", {"dynamic"}, false));
    if (dynamic) return view_["dynamic"].mismatch("false", "scales of weights are stored");
    SINTER_TRY(config_.refuse_unread(ignored_,
                                     {"observer", "observer_kwargs", "scale_dtype", "zp_dtype"}));
    return scheme_;
  }

 private:
  Status read_type() {
    SINTER_LET(type_view, config_.find("type", {"type"}));
    SINTER_LET(type, type_view.string_or("int"));
    if (type != "int" && type != "float") return type_view.mismatch("int or float");
    SINTER_LET(bits_view, config_.find("num_bits", {"num_bits"}));
    SINTER_LET(bits, bits_view.integer());
    if (!(bits == 4 && format_.four) && !(bits == 8 && format_.eight))
      return bits_view.fail(
          fmt::format("weights of {} bits are not supported in format {}", bits, format_.name),
          fmt::format("supported: {}", !format_.eight  ? "4 bits"
                                       : !format_.four ? "8 bits"
                                                       : "4 and 8 bits"));
    scheme_.bits = static_cast<int>(bits);
    scheme_.is_float = type == "float";
    if (!format_.type.empty() && type != format_.type)
      return type_view.mismatch(format_.type,
                                fmt::format("format {} has such codes", format_.name));
    return {};
  }

  Status read_strategy() {
    SINTER_LET(view, config_.find("strategy", {"strategy"}));
    SINTER_LET(group_view, config_.find("group_size", {"group_size"}));
    SINTER_LET(group, group_view.integer_or(-1));
    SINTER_LET(block, config_.find("block_structure", {"block_structure"}));
    // Where none is named, a size of groups says it, as in compressed-tensors.
    const std::string usual = group > 0 ? "group" : group_view.present() ? "channel" : "tensor";
    SINTER_LET(name, view.string_or(usual));
    if (name == "tensor") {
      scheme_.strategy = ScaleStrategy::tensor;
    } else if (name == "channel") {
      scheme_.strategy = ScaleStrategy::channel;
    } else if (name == "group" || (name == "tensor_group" && format_.group != 0)) {
      scheme_.strategy = ScaleStrategy::group;
      if (format_.group != 0 && group != format_.group)
        return group_view.mismatch(std::to_string(format_.group),
                                   fmt::format("format {} has such groups", format_.name));
      if (group != 16 && group != 32 && group != 64 && (group <= 0 || group % 128 != 0))
        return group_view.fail(fmt::format("groups of {} inputs are not supported", group),
                               "supported: 16, 32, 64 and multiples of 128");
      scheme_.group = group;
    } else if (name == "block") {
      scheme_.strategy = ScaleStrategy::block;
      SINTER_TRY(block.array());
      for (size_t i = 0; i < 2; ++i) {
        SINTER_LET(size, block[i].integer());
        if (size != kScaleBlock)
          return block[i].mismatch(std::to_string(kScaleBlock), "other blocks are not supported");
      }
      if (!scheme_.is_float)
        return view.fail("integer weights in blocks are not supported",
                         "supported: tensor, channel and group");
    } else {
      return view.fail(fmt::format("strategy '{}' of weights is not supported", printable(name)),
                       "supported: tensor, channel, group, block");
    }
    if (scheme_.strategy != ScaleStrategy::group && format_.group != 0)
      return view.mismatch("group", fmt::format("format {} has groups", format_.name));
    if (scheme_.strategy != ScaleStrategy::group && group > 0)
      return group_view.fail(
          fmt::format("groups of {} inputs, but the strategy is {}", group, printable(name)),
          "correct one of the two");
    return {};
  }

  Status read_act_order() {
    SINTER_LET(view, config_.find("actorder", {"actorder"}));
    if (!view.present()) return {};
    if (const bool* on = view.value()->boolean()) {
      scheme_.act_order = *on;
      return {};
    }
    SINTER_LET(name, view.string());
    // "weight" only says in which order codes were found.
    if (name != "group" && name != "weight" && name != "static" && name != "dynamic")
      return view.mismatch("group, weight, static or dynamic");
    scheme_.act_order = name == "group" || name == "dynamic";
    return {};
  }

  HfConfig config_;
  JsonView view_;
  const Format& format_;
  const IgnoredKeys& ignored_;
  WeightScheme scheme_;
};

Status read_targets(const JsonView& view, ModuleNames& targets) {
  SINTER_LET(list, view.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(name, view[i].string());
    if (name == "Linear") {
      targets.add_class(ModuleClass::linear);
    } else if (name == "Embedding") {
      targets.add_class(ModuleClass::embedding);
    } else if (name.starts_with("re:")) {
      if (auto added = targets.add_pattern(std::string_view(name).substr(3)); !added)
        return view[i].fail(added.error().what, "correct the expression");
    } else if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z') {
      return view[i].fail(
          fmt::format("quantized modules of class '{}' are not supported", printable(name)),
          "supported: Linear, Embedding, names, and patterns that begin with re:");
    } else {
      targets.add_name(std::move(name));
    }
  }
  return {};
}

Status read_ignored(const JsonView& view, ModuleNames& ignored) {
  if (!view.present()) return {};
  SINTER_LET(list, view.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(name, view[i].string());
    if (!name.starts_with("re:")) {
      ignored.add_name(std::move(name));
      continue;
    }
    if (auto added = ignored.add_pattern(std::string_view(name).substr(3)); !added)
      return view[i].fail(added.error().what, "correct the expression");
  }
  return {};
}

Result<Quantization::Group> read_group_of(const JsonDocument& document, const JsonView& view,
                                          const JsonView& outer_format,
                                          const IgnoredKeys& ignored) {
  SINTER_TRY(view.object());
  HfConfig config(document, view);
  SINTER_LET(own, config.find("format", {"format"}));
  const JsonView format = own.present() ? own : outer_format;
  SINTER_LET(known, read_format(format));
  SINTER_LET(weights, config.find("weights", {"weights"}));
  SINTER_TRY(weights.object());
  SINTER_LET(scheme, SchemeReader(document, weights, *known, ignored).run());
  Quantization::Group group{scheme, {}};
  SINTER_LET(targets, config.find("targets", {"targets"}));
  SINTER_TRY(read_targets(targets, group.targets));
  SINTER_LET(results, config.find("output_activations", {"output_activations"}));
  if (results.present())
    return results.fail("quantized results of linears are not supported",
                        "give a checkpoint with quantized weights alone");
  SINTER_TRY(config.refuse_unread(ignored, {"input_activations"}));
  return group;
}

}  // namespace

namespace {

std::string_view format_name(const WeightScheme& scheme) {
  return scheme.layout == WeightLayout::packed ? "pack-quantized"
         : scheme.is_float                     ? "float-quantized"
                                               : "int-quantized";
}

/// `format`: the group's own, as text of a member, or nothing.
std::string group_text(const WeightScheme& scheme, std::string_view target,
                       std::string_view format) {
  const bool grouped = scheme.strategy == ScaleStrategy::group;
  const std::string weights = fmt::format(
      R"({{"num_bits": {}, "type": "{}", "strategy": "{}", "group_size": {}, "symmetric": true, "dynamic": false}})",
      scheme.bits, scheme.is_float ? "float" : "int", grouped ? "group" : "channel",
      grouped ? std::to_string(scheme.group) : "null");
  return fmt::format(
      R"({{"targets": ["{}"], "weights": {}, "input_activations": null, "output_activations": null{}}})",
      target, weights, format);
}

}  // namespace

std::string compressed_tensors_text(const WeightScheme& linears, const WeightScheme* tables,
                                    llvm::ArrayRef<std::string> ignored) {
  const auto own = [&](const WeightScheme& scheme) {
    return tables ? fmt::format(R"(, "format": "{}")", format_name(scheme)) : std::string();
  };
  std::string groups = fmt::format(R"("group_0": {})", group_text(linears, "Linear", own(linears)));
  if (tables)
    groups += fmt::format(R"(, "group_1": {})", group_text(*tables, "Embedding", own(*tables)));
  std::string names;
  for (const std::string& name : ignored)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", json_quoted(name));
  const bool mixed = tables && format_name(linears) != format_name(*tables);
  return fmt::format(
      R"({{"quant_method": "compressed-tensors", "format": "{}", "quantization_status": "compressed", )"
      R"("config_groups": {{{}}}, "ignore": [{}], "kv_cache_scheme": null}})",
      mixed ? "mixed-precision" : format_name(linears), groups, names);
}

Result<Quantization> read_compressed_tensors(const JsonDocument& document, HfConfig& config,
                                             const IgnoredKeys& ignored) {
  Quantization result;
  result.method = "compressed-tensors";
  SINTER_TRY(refuse_object(config, "kv_cache_scheme", "quantized caches are not supported",
                           "give a checkpoint without kv_cache_scheme"));
  SINTER_TRY(refuse_object(config, "transform_config",
                           "transforms of weights or activations are not supported",
                           "give a checkpoint without them"));
  SINTER_LET(sparsity, config.find("sparsity_config", {"sparsity_config"}));
  if (sparsity.present()) {
    SINTER_TRY(sparsity.object());
    SINTER_LET(format, sparsity["format"].string_or("dense"));
    if (format != "dense")
      return sparsity["format"].fail(
          fmt::format("sparse weights of format '{}' are not supported", printable(format)),
          "give a dense checkpoint");
  }
  SINTER_LET(format, config.find("format", {"format"}));
  SINTER_LET(groups, config.find("config_groups", {"config_groups"}));
  SINTER_LET(members, groups.object());
  if (members->empty()) return groups.mismatch("at least one group", "give the whole config");
  for (const JsonMember& member : *members) {
    SINTER_LET(group, read_group_of(document, groups[member.key], format, ignored));
    result.groups.push_back(std::move(group));
  }
  SINTER_LET(ignore, config.find("ignore", {"ignore"}));
  SINTER_TRY(read_ignored(ignore, result.ignored));
  return result;
}

}  // namespace sinter
