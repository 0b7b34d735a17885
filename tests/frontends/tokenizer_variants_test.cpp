// Every type of component with its settings: a golden tokenizer with some members replaced gives
// the ids and texts of the reference library.
#include <nlohmann/json.hpp>

#include "frontends/small_files.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter::tokenizer_variants_test {
namespace {

using nlohmann::json;

const std::string folder = std::string(SINTER_TESTS_DIR) + "/golden/tokenizers/";

json changed(const json& variant) {
  json file =
      json::parse(bytes_of(folder + variant["base"].get<std::string>() + "/tokenizer.json"));
  for (const auto& [key, value] : variant["change"].items()) {
    if (key == "model")
      file["model"].update(value);
    else
      file[key] = value;
  }
  return file;
}

TEST_CASE("every component, as the reference library") {
  const ScratchFolder temporary;
  const json golden = json::parse(bytes_of(folder + "variants.json"));
  CHECK(golden["variants"].size() > 90);
  for (const json& variant : golden["variants"]) {
    const std::string name = variant["name"];
    CAPTURE(name);
    const auto tokenizer =
        Tokenizer::open(temporary.write("tokenizer.json", changed(variant).dump()));
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
    for (size_t i = 0; i < golden["texts"].size(); ++i) {
      const std::string text = golden["texts"][i];
      CAPTURE(text);
      const auto ids = tokenizer->encode(text, true).value();
      CHECK(ids == variant["ids"][i].get<std::vector<int32_t>>());
      const json decoded = variant.contains("decoded") ? variant["decoded"][i] : json(text);
      // Null: the reference library panics.
      if (!decoded.is_null())
        CHECK(tokenizer->decode(ids, false).value() == decoded.get<std::string>());
    }
  }
}

TEST_CASE("models that do not say their type") {
  const ScratchFolder temporary;
  for (const char* base : {"bytelevel_gpt2", "wordpiece_bert", "unigram_t5"}) {
    CAPTURE(base);
    json file = json::parse(bytes_of(folder + base + "/tokenizer.json"));
    const std::string named = temporary.write("named.json", file.dump());
    REQUIRE(file["model"].erase("type") == 1);
    const auto tokenizer = Tokenizer::open(temporary.write("unnamed.json", file.dump()));
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
    const std::string text = "What 123 words don't say";
    CHECK(tokenizer->encode(text, true) == Tokenizer::open(named)->encode(text, true).value());
  }
}

}  // namespace
}  // namespace sinter::tokenizer_variants_test
