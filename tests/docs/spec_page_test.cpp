// docs/spec.md and docs/schemas/spec.schema.json are made here from the reader's table of keys, and
// the reader is held to the table: keys, types, defaults and allowed values. Longer than most
// files, since page and schema say the same of each kind of value.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "docs/json_schema.h"
#include "frontends/load_model.h"
#include "frontends/model/spec_json.h"
#include "frontends/model/spec_keys.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::spec_page_test {
namespace {

using test::Json;

constexpr const char* kExample = R"({
  "sinter_spec": 1,
  "name": "small",
  "dtype": "f16",
  "vocabulary": 1000, "hidden": 128, "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 256,
  "max_positions": 512,
  "norm": "rms_norm", "norm_eps": 1e-5,
  "rope": {"theta": 10000},
  "activation": "silu", "gated": true
}
)";

/// Without keys that have a default.
Json least() {
  Json spec = Json::parse(kExample);
  for (const SpecKey& key : spec_keys())
    if (!key.fallback.empty()) spec.erase(std::string(key.name));
  return spec;
}

Result<ModelSpec> read(const Json& spec) {
  const std::string text = spec.dump();
  SINTER_LET(document, parse_json(text, "s.json"));
  return read_spec(document);
}

/// A value of each key that is not the default's, with the members that it needs beside it.
const std::map<std::string, std::string> kUses = {
    {"sinter_spec", "{}"},
    {"name", R"({"name": "other"})"},
    {"dtype", R"({"dtype": "bf16"})"},
    {"vocabulary", R"({"vocabulary": 99})"},
    {"hidden", R"({"hidden": 256})"},
    {"layers", R"({"layers": 3})"},
    {"heads", R"({"heads": 8})"},
    {"kv_heads", R"({"kv_heads": 2})"},
    {"head_dim", R"({"head_dim": 64})"},
    {"ffn", R"({"ffn": 300})"},
    {"max_positions", R"({"max_positions": 64})"},
    {"encoder", R"({"encoder": true})"},
    {"embed_width", R"({"embed_width": 64})"},
    {"embed_scale", R"({"embed_scale": 2})"},
    {"token_types", R"({"token_types": 2, "encoder": true, "rope": null})"},
    {"embed_norm", R"({"embed_norm": true, "encoder": true, "rope": null})"},
    {"final_norm", R"({"final_norm": false})"},
    {"tied", R"({"tied": true})"},
    {"head_bias", R"({"head_bias": true})"},
    {"logit_divisor", R"({"logit_divisor": 8})"},
    {"logit_softcap", R"({"logit_softcap": 30})"},
    {"norm", R"({"norm": "layer_norm"})"},
    {"norm_bias", R"({"norm_bias": false, "norm": "layer_norm"})"},
    {"norm_eps", R"({"norm_eps": 1e-6})"},
    {"norm_place", R"({"norm_place": "both"})"},
    {"first_norm", R"({"first_norm": false})"},
    {"residual", R"({"residual": "parallel"})"},
    {"residual_scale", R"({"residual_scale": 0.25})"},
    {"shared_norm", R"({"shared_norm": true, "residual": "parallel"})"},
    {"qk_norm", R"({"qk_norm": "head"})"},
    {"rope", R"({"rope": null})"},
    {"local_rope", R"({"local_rope": {"theta": 500}, "window": 8})"},
    {"rotated", R"({"rotated": [true, false]})"},
    {"qkv_bias", R"({"qkv_bias": true})"},
    {"attention_out_bias", R"({"attention_out_bias": true})"},
    {"attention_scale", R"({"attention_scale": 0.5})"},
    {"scale_by_inverse_layer", R"({"scale_by_inverse_layer": true})"},
    {"attention_softcap", R"({"attention_softcap": 50})"},
    {"window", R"({"window": 64})"},
    {"windowed", R"({"windowed": [true, false], "window": 64})"},
    {"bias_distance", R"({"bias_distance": 64, "encoder": true, "kv_heads": 4})"},
    {"activation", R"({"activation": "gelu"})"},
    {"gated", R"({"gated": true})"},
    {"mlp_bias", R"({"mlp_bias": true})"},
    {"experts", R"({"experts": {"count": 8, "chosen": 2}, "gated": true})"},
    {"eos", R"({"eos": [2, 3]})"},
};

/// The keys that each scaling of rotary positions needs.
const std::map<std::string, std::string> kScalings = {
    {"none", "{}"},
    {"linear", R"({"factor": 2})"},
    {"llama3",
     R"({"factor": 8, "original_max_positions": 64, "low_freq_factor": 1, "high_freq_factor": 4})"},
    {"yarn", R"({"factor": 8, "original_max_positions": 64})"},
    {"longrope", R"({"original_max_positions": 64, "short_factors": [], "long_factors": []})"},
};

Json rope_of(const std::string& scaling) {
  Json rope = Json::parse(kScalings.at(scaling));
  rope["theta"] = 10000;
  rope["scaling"] = scaling;
  for (const char* factors : {"short_factors", "long_factors"})
    if (rope.contains(factors)) rope[factors] = std::vector<double>(16, 1.5);
  return rope;
}

bool takes(const SpecKey& key, const std::string& scaling) {
  return key.scalings.empty() ||
         (", " + std::string(key.scalings) + ",").find(", " + scaling + ",") != std::string::npos;
}

/// Written where a string stands, it fits no key.
void check_choices(const SpecKey& key, const Json& spec, const std::string& pointer) {
  const auto bad = read(spec);
  REQUIRE_FALSE(bad);
  const std::string message = bad.error().message();
  CHECK_MESSAGE(message.find(pointer) != std::string::npos, message);
  if (key.name != "pairing")
    CHECK_MESSAGE(message.ends_with(" " + std::string(key.choices)), message);
}

std::string value_text(const SpecKey& key) {
  switch (key.value) {
    case SpecValue::version:
      return "1";
    case SpecValue::text:
      return "text";
    case SpecValue::choice: {
      std::string text = "`";
      for (char c : key.choices) text += c == ',' ? std::string("`,") : std::string(1, c);
      for (size_t at = 0; (at = text.find(", ", at)) != std::string::npos; at += 3)
        text.insert(at + 2, "`");
      return text + "`";
    }
    case SpecValue::flag:
      return "true or false";
    case SpecValue::size:
      return "size";
    case SpecValue::count:
      return "size or 0";
    case SpecValue::number:
      return "number";
    case SpecValue::flags:
      return "list of true and false";
    case SpecValue::numbers:
      return "list of numbers";
    case SpecValue::ids:
      return "list of integers";
    case SpecValue::rope:
    case SpecValue::experts:
      return "object, see below, or null";
  }
  return "";
}

bool is_json(std::string_view text) { return Json::accept(text); }

std::string table(llvm::ArrayRef<SpecKey> keys) {
  std::string text = "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const SpecKey& key : keys) {
    std::string fallback = key.fallback.empty()    ? "required"
                           : is_json(key.fallback) ? fmt::format("`{}`", key.fallback)
                                                   : std::string(key.fallback);
    if (!key.scalings.empty()) fallback += fmt::format("; only with scaling {}", key.scalings);
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", key.name, value_text(key), fallback, key.meaning);
  }
  return text;
}

Json value_schema(const SpecKey& key) {
  const auto size = [](int64_t low) {
    return Json{{"type", "integer"}, {"minimum", low}, {"maximum", kLargestSize}};
  };
  const Json number = {{"type", "number"}, {"exclusiveMinimum", 0}};
  switch (key.value) {
    case SpecValue::version:
      return {{"const", 1}};
    case SpecValue::text:
      return {{"type", "string"}};
    case SpecValue::choice: {
      Json choices = Json::array();
      for (size_t at = 0; at < key.choices.size();) {
        const size_t end = std::min(key.choices.find(", ", at), key.choices.size());
        choices.push_back(key.choices.substr(at, end - at));
        at = end + 2;
      }
      return {{"enum", choices}};
    }
    case SpecValue::flag:
      return {{"type", "boolean"}};
    case SpecValue::size:
      return size(1);
    case SpecValue::count:
      return size(0);
    case SpecValue::number:
      return number;
    case SpecValue::flags:
      return {{"type", "array"}, {"items", {{"type", "boolean"}}}};
    case SpecValue::numbers:
      return {{"type", "array"}, {"items", number}};
    case SpecValue::ids:
      return {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}};
    case SpecValue::rope:
      return {{"oneOf", {{{"type", "null"}}, {{"$ref", "#/$defs/rope"}}}}};
    case SpecValue::experts:
      return {{"oneOf", {{{"type", "null"}}, {{"$ref", "#/$defs/experts"}}}}};
  }
  return {};
}

Json object_schema(llvm::ArrayRef<SpecKey> keys) {
  Json schema = {{"type", "object"}, {"required", Json::array()}, {"properties", Json::object()}};
  for (const SpecKey& key : keys) {
    Json member = {{"description", key.meaning}};
    Json value = value_schema(key);
    // Null means the default.
    if (value.contains("type") && !key.fallback.empty())
      value["type"] = Json::array({value["type"], "null"});
    if (value.contains("enum") && !key.fallback.empty()) value["enum"].push_back(nullptr);
    member.update(value);
    if (key.fallback.empty() && key.scalings.empty())
      schema["required"].push_back(key.name);
    else if (is_json(key.fallback))
      member["default"] = Json::parse(key.fallback);
    schema["properties"][std::string(key.name)] = member;
  }
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

TEST_CASE("every key is read, has its default, and refuses another type") {
  const ModelSpec plain = value(read(least()));
  CHECK(kUses.size() == spec_keys().size());
  for (const SpecKey& key : spec_keys()) {
    const std::string name(key.name);
    CAPTURE(name);
    REQUIRE(kUses.contains(name));
    Json used = least();
    used.update(Json::parse(kUses.at(name)));
    const ModelSpec other = value(read(used));
    CHECK((other == plain) == (key.value == SpecValue::version));
    for (const std::string& violation : test::schema_violations("spec", used))
      FAIL_CHECK(violation);

    Json spec = least();
    if (key.fallback.empty()) {
      spec.erase(name);
      CHECK_FALSE(read(spec));
    } else {
      spec[name] = nullptr;
      CHECK(value(read(spec)) == plain);
      if (is_json(key.fallback)) {
        spec[name] = Json::parse(key.fallback);
        CHECK(value(read(spec)) == plain);
      }
    }
    spec = least();
    spec[name] = key.value == SpecValue::text ? Json(1) : Json("nonsense");
    if (key.value == SpecValue::choice) check_choices(key, spec, "/" + name);
    CHECK_FALSE(read(spec));
    CHECK(!test::schema_violations("spec", spec).empty());
  }
  Json unknown = least();
  unknown["hiden"] = 1;
  CHECK_FALSE(read(unknown));
  CHECK(!test::schema_violations("spec", unknown).empty());
}

TEST_CASE("every key of rotary positions is read by the scalings that the table names") {
  for (const auto& [scaling, needs] : kScalings) {
    CAPTURE(scaling);
    Json spec = least();
    spec["rope"] = rope_of(scaling);
    const ModelSpec plain = value(read(spec));
    for (const std::string& violation : test::schema_violations("spec", spec))
      FAIL_CHECK(violation);
    for (const SpecKey& key : rope_keys()) {
      const std::string name(key.name);
      CAPTURE(name);
      const auto with = [&](const Json& value) {
        Json other = spec;
        other["rope"][name] = value;
        return other;
      };
      Json without = spec;
      without["rope"].erase(name);
      if (!takes(key, scaling)) {
        CHECK_FALSE(read(with(2)));
      } else if (key.fallback.empty()) {
        CHECK_FALSE(read(without));
      } else {
        if (is_json(key.fallback) && name != "scaling")
          CHECK(value(read(with(Json::parse(key.fallback)))) == plain);
        CHECK_FALSE(read(with("nonsense")));
      }
      if (key.value == SpecValue::choice) check_choices(key, with("nonsense"), "/rope/" + name);
    }
  }
  Json spec = least();
  spec["rope"]["pairing"] = "interleaved";
  spec["rope"]["rotary"] = 16;
  const ModelSpec read_back = value(read(spec));
  CHECK(read_back.rope->pairing == "interleaved");
  CHECK(read_back.rope->rotary == 16);
}

TEST_CASE("every key of experts is read, has its default, and refuses another type") {
  Json spec = least();
  spec["gated"] = true;
  spec["experts"] = {{"count", 8}, {"chosen", 2}};
  const ModelSpec plain = value(read(spec));
  const std::map<std::string, Json> uses = {{"count", 9},
                                            {"chosen", 3},
                                            {"ffn", 31},
                                            {"routing", "choice_first"},
                                            {"normalized", true},
                                            {"wide_weights", true},
                                            {"shared_ffn", 16},
                                            {"shared_gate", true},
                                            {"sparse", {true, false}}};
  CHECK(uses.size() == experts_keys().size());
  for (const SpecKey& key : experts_keys()) {
    const std::string name(key.name);
    CAPTURE(name);
    const auto with = [&](const Json& value) {
      Json other = spec;
      other["experts"][name] = value;
      return other;
    };
    Json used = with(uses.at(name));
    if (name == "shared_gate") used["experts"]["shared_ffn"] = 16;
    CHECK(value(read(used)) != plain);
    for (const std::string& violation : test::schema_violations("spec", used))
      FAIL_CHECK(violation);
    if (is_json(key.fallback)) CHECK(value(read(with(Json::parse(key.fallback)))) == plain);
    CHECK_FALSE(read(with("nonsense")));
    CHECK(!test::schema_violations("spec", with("nonsense")).empty());
    if (key.value == SpecValue::choice) check_choices(key, with("nonsense"), "/experts/" + name);
    Json without = spec;
    without["experts"].erase(name);
    CHECK(read(without).has_value() == !key.fallback.empty());
  }
}

TEST_CASE("specifications of the samples and of Hugging Face models fit the schema") {
  const auto check_fits = [](const std::string& text) {
    for (const std::string& violation : test::schema_violations("spec", Json::parse(text)))
      FAIL_CHECK(violation);
  };
  size_t specs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SINTER_SAMPLES_DIR))
    if (entry.path().extension() == ".json") {
      check_fits(test::read_text(entry.path().string()));
      ++specs;
    }
  CHECK(specs >= 5);
  for (const auto& entry : std::filesystem::directory_iterator(SINTER_TESTS_DIR "/golden")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const auto model = value(load_model(entry.path().string()));
    REQUIRE(model.spec);
    check_fits(print_spec(*model.spec));
  }
}

TEST_CASE("docs/spec.md and its schema are made from the table") {
  value(read(Json::parse(kExample)));
  std::string page = test::read_text(SINTER_TESTS_DIR "/docs/spec_head.md");
  const size_t at = page.find("@EXAMPLE@");
  REQUIRE(at != std::string::npos);
  page.replace(at, 9, kExample);
  page += "\n## Keys\n\n" + table(spec_keys()) + "\n## Keys of `rope` and `local_rope`\n\n" +
          table(rope_keys()) + "\n## Keys of `experts`\n\n" + table(experts_keys());
  test::check_text_file(page, "../docs/spec.md", "spec_page");

  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Model specification"},
                 {"description", "A transformer by its sizes and forms (docs/spec.md)."}};
  schema.update(object_schema(spec_keys()));
  schema["$defs"]["rope"] = object_schema(rope_keys());
  schema["$defs"]["experts"] = object_schema(experts_keys());
  test::check_text_file(schema.dump(2) + "\n", "../docs/schemas/spec.schema.json", "spec_page");
}

}  // namespace sinter::spec_page_test
