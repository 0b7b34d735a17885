// Broken and hostile tokenizer files: an error of one line that names the file, or a tokenizer
// that works; never a crash.
#include <nlohmann/json.hpp>

#include "frontends/files/json.h"
#include "frontends/small_files.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter::tokenizer_hostile_test {
namespace {

using nlohmann::json;

constexpr std::string_view sample =
    "Hello <s>  world, 123 na\xc3\xafve\t\xe6\xbc\xa2 \xef\xac\x81 x\n";

std::string golden(const std::string& name) {
  return fmt::format("{}/golden/tokenizers/{}", SINTER_TESTS_DIR, name);
}

/// Opens a file of these bytes; whatever opens must give ids of its own vocabulary, and text.
/// True if it opens.
bool open_or_error(const ScratchFolder& folder, const std::string& name, const std::string& bytes) {
  const std::string path = folder.write(name, bytes);
  const auto tokenizer = Tokenizer::open(path);
  if (!tokenizer) {
    check_message(tokenizer.error(), {path});
    return false;
  }
  const auto ids = tokenizer->encode(sample, true);
  if (!ids) {
    check_message(ids.error(), {});
    return true;
  }
  for (int32_t id : *ids) CHECK(tokenizer->piece(id).has_value());
  const auto text = tokenizer->decode(*ids, false);
  CHECK(text.has_value());
  return true;
}

/// Positions spread over a file, the same in every run.
std::vector<size_t> places(size_t size, size_t count) {
  std::vector<size_t> result;
  uint64_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    result.push_back((state >> 20) % size);
  }
  return result;
}

struct Golden {
  const char* folder;
  const char* file;
};
constexpr Golden goldens[] = {
    {"bytelevel_gpt2", "tokenizer.json"},
    {"split_llama3", "tokenizer.json"},
    {"bytefallback_llama2", "tokenizer.json"},
    {"wordpiece_bert", "tokenizer.json"},
    {"unigram_t5", "tokenizer.json"},
    {"sentencepiece_bpe", "tokenizer.model"},
    {"sentencepiece_unigram", "tokenizer.model"},
    {"llama2c", "tokenizer.bin"},
};

TEST_CASE("a file that is cut short") {
  const ScratchFolder folder;
  for (const Golden& row : goldens) {
    const std::string bytes = bytes_of(golden(row.folder) + "/" + row.file);
    CAPTURE(row.folder);
    size_t opened = 0;
    for (size_t size : places(bytes.size(), 60))
      opened += open_or_error(folder, row.file, bytes.substr(0, size));
    // tokenizer.bin has no count: it can end after any piece.
    if (std::string_view(row.file) != "tokenizer.bin") CHECK(opened == 0);
  }
}

TEST_CASE("flipped bits") {
  const ScratchFolder folder;
  for (const Golden& row : goldens) {
    const std::string bytes = bytes_of(golden(row.folder) + "/" + row.file);
    CAPTURE(row.folder);
    size_t refused = 0, tried = 0;
    for (size_t place : places(bytes.size(), 150)) {
      std::string flipped = bytes;
      flipped[place] = static_cast<char>(flipped[place] ^ 1 << (place + tried) % 8);
      refused += !open_or_error(folder, row.file, flipped);
      ++tried;
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("a character map of garbage") {
  const ScratchFolder folder;
  json file = json::parse(bytes_of(golden("unigram_t5/tokenizer.json")));
  json& map = file["normalizer"]["normalizers"][0]["precompiled_charsmap"];
  const std::string encoded = map;
  for (size_t seed = 0; seed < 40; ++seed) {
    std::string garbage = encoded;
    // The first 8 letters hold the trie's size.
    for (size_t place : places(encoded.size() - 16, 1 + seed * 20))
      garbage[8 + place] = encoded[8 + (place * (seed + 3)) % (encoded.size() - 16)];
    map = garbage;
    open_or_error(folder, "tokenizer.json", file.dump());
  }
}

/// The error of bytelevel_gpt2 with `member` (a JSON pointer) set to `value`.
void check_refused(const std::string& pointer, const json& value,
                   std::initializer_list<std::string_view> parts,
                   const std::string& base = "bytelevel_gpt2") {
  const ScratchFolder folder;
  json file = json::parse(bytes_of(golden(base + "/tokenizer.json")));
  file[json::json_pointer(pointer)] = value;
  CAPTURE(pointer);
  check_error(Tokenizer::open(folder.write("tokenizer.json", file.dump())), parts);
}

TEST_CASE("unknown components are named with their place") {
  const json unknown = {{"type", "Frobnicate"}};
  check_refused("/normalizer", unknown, {"/normalizer/type", "Frobnicate"});
  check_refused("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {unknown}}},
                {"/pre_tokenizer/pretokenizers/0/type", "Frobnicate"});
  check_refused("/post_processor", unknown, {"/post_processor/type", "Frobnicate"});
  check_refused("/decoder", unknown, {"/decoder/type", "Frobnicate"});
  check_refused("/model/type", "WordLevel", {"/model/type", "WordLevel"});
  check_refused("/pre_tokenizer/new_setting", true, {"/pre_tokenizer/new_setting"});
  check_refused("/model/dropout", 0.1, {"/model/dropout", "0.1"});
}

TEST_CASE("vocabularies and merges that cannot be") {
  check_refused("/model/merges/3", {"zzz", "a"}, {"/model/merges/3", "zzz"});
  check_refused("/model/merges/3", {"!", "\""}, {"/model/merges/3", "not in the vocabulary"});
  check_refused("/model/merges/3", "a b c", {"/model/merges/3"});
  check_refused("/model/vocab/!", 2147483647, {"/model/vocab/!", "2147483647"});
  check_refused("/model/vocab/!", -1, {"/model/vocab/!", "-1"});
  check_refused("/model/vocab/!", 2, {"/model/vocab", "2"});
  check_refused("/model/vocab", json::object(), {"/model/vocab", "empty"});
  check_refused("/model/unk_token", "none such", {"/model/unk_token", "none such"});
  check_refused("/added_tokens/0/id", 7, {"/added_tokens/0/id", "7"});
  check_refused("/model/vocab", json::array(), {"/model/vocab", "empty"}, "unigram_t5");
  check_refused("/model/unk_id", 100000, {"/model/unk_id", "100000"}, "unigram_t5");
}

TEST_CASE("special tokens that do not exist") {
  check_refused("/post_processor/single/0/SpecialToken/id", "<none>",
                {"/post_processor/special_tokens/<none>"}, "bytefallback_llama2");
  check_refused("/post_processor/special_tokens/<s>/ids", {99999}, {"/post_processor", "99999"},
                "bytefallback_llama2");
}

TEST_CASE("too many components") {
  json parts = json::array();
  for (int i = 0; i < 65; ++i) parts.push_back({{"type", "Fuse"}});
  check_refused("/decoder", {{"type", "Sequence"}, {"decoders", parts}}, {"/decoder", "64"});
}

TEST_CASE("a regular expression without end") {
  const ScratchFolder folder;
  json file = json::parse(bytes_of(golden("bytelevel_gpt2/tokenizer.json")));
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(a+)+[bc]"}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const auto tokenizer = Tokenizer::open(folder.write("tokenizer.json", file.dump()));
  REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
  check_error(tokenizer->encode(std::string(64, 'a'), true), {"regular expression", "limit"});
}

TEST_CASE("long texts of one character") {
  for (const Golden& row : goldens) {
    const auto tokenizer = Tokenizer::open(golden(row.folder));
    REQUIRE(tokenizer);
    CAPTURE(row.folder);
    for (char c : {'a', ' '}) {
      const auto ids = tokenizer->encode(std::string(1 << 20, c), false);
      REQUIRE(ids);
      CHECK(tokenizer->decode(*ids, true).has_value());
    }
  }
}

TEST_CASE("a SentencePiece model that falls back to bytes has all of them") {
  const ScratchFolder folder;
  std::string bytes = bytes_of(golden("sentencepiece_bpe/tokenizer.model"));
  const size_t at = bytes.find("<0x4A>");
  REQUIRE(at != bytes.npos);
  bytes[at + 4] = 'a';  // a byte all the same, but none that anybody looks for
  check_error(Tokenizer::open(folder.write("tokenizer.model", bytes)),
              {"tokenizer.model", "no piece <0x4A>"});
}

TEST_CASE("what is no tokenizer") {
  const ScratchFolder folder;
  check_error(Tokenizer::open(folder.path()), {folder.path(), "tokenizer.json"});
  check_error(Tokenizer::open(folder.path("none.json")), {"none.json"});
  check_error(Tokenizer::open(folder.write("tokenizer.txt", "x")), {"tokenizer.txt"});
  check_error(Tokenizer::open(folder.write("a.json", "<!DOCTYPE html>")), {"a.json", "web page"});
  check_error(Tokenizer::open(folder.write("b.model", "version https://git-lfs.github.com")),
              {"b.model", "git-lfs"});
  check_error(Tokenizer::open(folder.write("c.bin", "")), {"c.bin", "empty"});
  check_error(Tokenizer::open(folder.write("d.json", "[]")), {"d.json"});
}

TEST_CASE("texts that are not UTF-8, and ids that are not there") {
  const auto tokenizer = Tokenizer::open(golden("bytelevel_gpt2"));
  REQUIRE(tokenizer);
  check_error(tokenizer->encode("a\xff", true), {"UTF-8"});
  for (int32_t id : {-1, 1500, 2147483647})
    check_error(tokenizer->decode(std::vector<int32_t>{id}, false),
                {fmt::format("{}", id), "1500"});
}

TEST_CASE("a stream shows an id that is not there as U+FFFD and goes on") {
  for (const Golden& row : goldens) {
    CAPTURE(row.folder);
    const auto tokenizer = Tokenizer::open(golden(row.folder));
    REQUIRE(tokenizer);
    const auto ids = tokenizer->encode("a\xe6\xbc\xa2", false).value();
    // Between any two ids: inside a character too, whose bytes then stand alone.
    for (size_t at = 0; at <= ids.size(); ++at) {
      std::vector<int32_t> broken = ids;
      broken.insert(broken.begin() + static_cast<std::ptrdiff_t>(at),
                    tokenizer->vocabulary_size() + 7);
      TextStream stream(*tokenizer, false);
      std::string text;
      for (int32_t id : broken) {
        const std::string part = stream.push(id).value();
        CHECK(is_utf8(part));
        text += part;
      }
      text += stream.finish().value();
      CHECK(text.find("\xef\xbf\xbd") != std::string::npos);
      if (at == 0 || at == ids.size()) CHECK(text.find('a') != std::string::npos);
    }
  }
}

/// A tokenizer of single characters with these components beside its model.
json small_tokenizer(const json& components) {
  json tokenizer = {{"version", "1.0"},
                    {"model",
                     {{"type", "BPE"},
                      {"vocab", {{"a", 0}, {"b", 1}, {"<unk>", 2}}},
                      {"merges", json::array()},
                      {"unk_token", "<unk>"}}}};
  tokenizer.update(components);
  return tokenizer;
}

TEST_CASE("rules that multiply a text are stopped") {
  const ScratchFolder folder;
  const json replace = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(4096, 'a')}};
  const json thrice = json::array({replace, replace, replace});
  const auto open = [&](const char* name, const json& components) {
    auto tokenizer = Tokenizer::open(folder.write(name, small_tokenizer(components).dump()));
    REQUIRE_MESSAGE(tokenizer, tokenizer.error().message());
    return std::move(*tokenizer);
  };
  const std::initializer_list<std::string_view> message = {
      "the tokenizer's rules make more than 1048576 bytes of a text of"};

  const auto normalizing =
      open("n.json", {{"normalizer", {{"type", "Sequence"}, {"normalizers", thrice}}}});
  check_error(normalizing.encode("a", true), message);
  CHECK(normalizing.encode("b", true).value() == std::vector<int32_t>{1});
  // A single rule that makes much of a text which is long already.
  const auto once = open("o.json", {{"normalizer", replace}});
  CHECK(once.encode("a", true).value().size() == 4096);
  check_error(once.encode(std::string(100'000, 'a'), true),
              {"the tokenizer's rules make more than 6400000 bytes of a text of 100000"});

  const auto decoding = open("d.json", {{"decoder", {{"type", "Sequence"}, {"decoders", thrice}}}});
  check_error(decoding.decode(std::vector<int32_t>{0}, false), message);
  CHECK(decoding.decode(std::vector<int32_t>{1}, false).value() == "b");
}

}  // namespace
}  // namespace sinter::tokenizer_hostile_test
