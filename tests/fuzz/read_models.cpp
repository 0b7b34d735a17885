// Descriptions of models: config.json, a spec, text IR.
#include "frontends/huggingface/config.h"
#include "frontends/model/build_model.h"
#include "frontends/model/spec_json.h"
#include "fuzz/reading.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter::fuzz {
namespace {

constexpr int64_t kMaxLayers = 16;  // built ones; of deeper models the spec is enough

Outcome built(const ModelSpec& spec, WeightNames names, std::string_view place) {
  std::string read = print_spec(spec);
  if (spec.layers > kMaxLayers) return read_as(std::move(read));
  auto module = build_model(spec, names, nullptr, place);
  if (!module) return refused(std::move(module.error()));
  if (const Status valid = verify(*module); !valid)
    return {std::move(read), valid.error().message()};
  return read_as(std::move(read));
}

std::vector<std::string> goldens(std::initializer_list<const char*> names) {
  std::vector<std::string> files;
  for (const char* name : names) files.push_back(golden(name));
  return files;
}

}  // namespace

Outcome read_config(std::string_view bytes) {
  auto document = parse_json(bytes, "config.json");
  if (!document) return refused(std::move(document.error()));
  auto model = read_hf_config(*document, nullptr, "m");
  if (!model) return refused(std::move(model.error()));
  WeightNames names{std::move(model->map), {}};
  names.prefix = names.map.prefixes.front();
  return built(model->spec, std::move(names), "config.json");
}

std::vector<std::string> config_seeds() {
  return goldens({"golden/gpt2/config.json", "golden/gpt_neox_parallel/config.json",
                  "golden/gpt_neox_sequential/config.json", "golden/llama/config.json",
                  "golden/llama3_gqa_scaled_rope/config.json"});
}

Outcome read_spec_json(std::string_view bytes) {
  auto document = parse_json(bytes, "spec.json");
  if (!document) return refused(std::move(document.error()));
  auto spec = read_spec(*document);
  if (!spec) return refused(std::move(spec.error()));
  return built(*spec, {WeightMap::identity(), {}}, "spec.json");
}

std::vector<std::string> spec_seeds() {
  return goldens(
      {"../samples/gpt2-124m.json", "../samples/llama-3.2-1b.json", "../samples/pythia-2.8b.json"});
}

Outcome read_module_text(std::string_view bytes) {
  auto module = parse_module(bytes, "m.sir");
  if (!module) return refused(std::move(module.error()));
  std::string read = print_module(*module);
  const auto again = parse_module(read, "printed.sir");
  if (!again) return {std::move(read), again.error().message()};
  if (print_module(*again) != read) return {std::move(read), "a printed module prints otherwise"};
  return read_as(std::move(read));
}

std::vector<std::string> module_seeds() { return goldens({"ir/every_op.sir", "ir/decompose.sir"}); }

}  // namespace sinter::fuzz
