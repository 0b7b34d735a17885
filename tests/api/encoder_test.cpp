// Texts to vectors through the interface: as in `sinter embed`, cut, and refused.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>

#include "sinter.h"

using namespace sinter;

namespace {

template <typename T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

/// A small BERT with a tokenizer.
struct Folder {
  Folder() {
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    for (const char* name : {"config.json", "model.safetensors"})
      std::filesystem::copy(SINTER_TESTS_DIR "/golden/bert_post_ln/" + std::string(name), path);
    std::filesystem::copy(SINTER_TESTS_DIR "/golden/tokenizers/wordpiece_bert/tokenizer.json",
                          path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;

  std::string path = (std::filesystem::temp_directory_path() / "sinter-encoder-XXXXXX").string();
};

}  // namespace

TEST_CASE("a text has the same vector alone and among others") {
  const Folder folder;
  const Device cpu = take(Device::open("cpu"));
  Encoder encoder = take(Encoder::open(folder.path, cpu, {"", true}));
  CHECK(encoder.width() == 64);
  const TextVectors both = take(encoder.encode({"a b", "c"}));
  const TextVectors alone = take(encoder.encode({"c"}));
  REQUIRE(both.values.size() == 128);
  double squares = 0;
  for (size_t i = 0; i < 64; ++i) {
    squares += std::pow(both.values[64 + i], 2);
    CHECK(std::abs(both.values[64 + i] - alone.values[i]) < 1e-5f);
  }
  CHECK(squares == doctest::Approx(1.0));
  CHECK(take(encoder.encode({})).values.empty());
  Encoder first = take(Encoder::open(folder.path, cpu, {"cls", {}}));
  CHECK(take(first.encode({"c"})).values != alone.values);
}

TEST_CASE("texts that are too long are cut where that is asked for") {
  const Folder folder;
  Encoder encoder = take(Encoder::open(folder.path, take(Device::open("cpu"))));
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a ";
  const Error refused = encoder.encode({"b", text}).error();
  CHECK(refused.code == Code::bad_input);
  CHECK(refused.message.find("text 2 has 202 tokens, 1 to 128 are possible") != std::string::npos);
  CHECK(refused.message.find("option truncate") != std::string::npos);
  const TextVectors cut = take(encoder.encode({"b", text}, true));
  CHECK(cut.cut == 1);
  CHECK(cut.values.size() == 128);
}

TEST_CASE("what an encoder refuses") {
  const Folder folder;
  const Device cpu = take(Device::open("cpu"));
  CHECK(Encoder::open(SINTER_SAMPLES_DIR "/tiny-llama", cpu).error().code == Code::usage);
  CHECK(Encoder::open(folder.path, cpu, {"most", {}}).error().code == Code::usage);
  Encoder encoder = take(Encoder::open(folder.path, cpu));
  CHECK(encoder.encode({"\xff"}).error().code == Code::bad_input);
  CHECK(sinter_encoder_encode(nullptr, nullptr, 0, nullptr, nullptr, nullptr) != nullptr);
}
