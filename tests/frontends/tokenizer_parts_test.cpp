// The parts that all tokenizers are made of, and what the goldens do not show of them.
#include <doctest/doctest.h>

#include <numeric>

#include "frontends/tokenizer/merges.h"
#include "frontends/tokenizer/regex.h"
#include "frontends/tokenizer/tokenizer.h"
#include "frontends/tokenizer/trie.h"
#include "frontends/tokenizer/unicode.h"
#include "frontends/tokenizer/word_cache.h"

namespace sinter::tokenizer_parts_test {
namespace {

TEST_CASE("patterns mean in PCRE2 what they mean in Oniguruma") {
  const auto same = [](std::string_view from, std::string_view to) {
    CAPTURE(from);
    const auto pattern = pcre2_pattern(from);
    REQUIRE_MESSAGE(pattern, pattern.error().message());
    CHECK(*pattern == to);
    CHECK(Regex::compile(from).has_value());
  };
  same(R"(\s+(?!\S))", R"(\p{White_Space}+(?!\P{White_Space}))");
  same(R"([^\s\p{L}])", R"([^\p{White_Space}\p{L}])");
  same(R"(\d\D\h\v)", R"(\p{Nd}\P{Nd}\p{ASCII_Hex_Digit}\x{b})");
  same(R"(\p{^Han}\P{Lu}\p{Letter})", R"(\P{sc:Han}\P{Lu}\p{L})");
  same(R"(\p{N}{1,3}+)", R"((?:\p{N}{1,3})+)");
  same(R"((ab){2}?x{,3}[a-c]{2}*)", R"((?:(ab){2})?x{0,3}(?:[a-c]{2})*)");
  same(R"(a{1,2}?b++c?+)", R"(a{1,2}?b++c?+)");
  same(R"((?m:.)(?i:'s)(?<n>x))", R"((?s:.)(?i:'s)(x))");
  same("(?i)a{x}", "(?i)a{x}");
  same(R"(\x41\u00e9\x{1F600}\#)", R"(\x{41}\x{00e9}\x{1F600}\#)");
}

TEST_CASE("patterns that have no equal are refused") {
  for (const char* pattern : {"[[a]]",    "[[:alpha:]]", "[a&&b]",
                              "[]a]",     "[a",          R"((a)\1)",
                              R"(\G)",    R"(\K)",       R"(\X)",
                              R"(\R)",    R"([\W])",     R"(\xe3)",
                              "a(?i)b",   "(?x)a",       "(?#c)",
                              "(*FAIL)",  "a)",          R"(\p{)",
                              R"(\pL)",   R"(\p{L&})",   R"(\p{NoSuchScript})",
                              "(?<=a*)b", R"(\)",        R"(\u12)",
                              "(a"}) {
    CAPTURE(pattern);
    const auto regex = Regex::compile(pattern);
    REQUIRE_FALSE(regex.has_value());
    CHECK(regex.error().what.find("regular expression") != std::string::npos);
  }
}

TEST_CASE("patterns that would grow without bound are refused") {
  CHECK_FALSE(Regex::compile("((((a{1,999}){1,999}){1,999}){1,999})").has_value());
  CHECK_FALSE(Regex::compile(std::string(100'000, '(')).has_value());
  CHECK_FALSE(Regex::compile(std::string(10'000, '(') + std::string(10'000, ')')).has_value());
}

TEST_CASE("UTF-8 that is not: maximal subparts") {
  const auto text_of = [](std::string bytes) {
    std::string text;
    take_utf8(bytes, true, text);
    return text;
  };
  const std::string bad = "\xef\xbf\xbd";
  CHECK(text_of("a\xe6\xbc\xa2") == "a\xe6\xbc\xa2");
  CHECK(text_of("\xe6\xbcz") == bad + "z");  // a cut character is one
  CHECK(text_of("\xf0\x9f\x99") == bad);
  CHECK(text_of("\xc0\xaf") == bad + bad);            // overlong
  CHECK(text_of("\xed\xa0\x80") == bad + bad + bad);  // a surrogate
  CHECK(text_of("\xf4\x90\x80\x80") == bad + bad + bad + bad);
  std::string text, bytes = "a\xe6\xbc";
  take_utf8(bytes, false, text);
  CHECK(text == "a");
  CHECK(bytes == "\xe6\xbc");
}

TEST_CASE("normal forms") {
  CHECK(normal_form("e\xcc\x81", NormalForm::nfc) == "\xc3\xa9");
  CHECK(normal_form("\xc3\xa9", NormalForm::nfd) == "e\xcc\x81");
  CHECK(normal_form("\xef\xac\x81\xef\xbc\xa6", NormalForm::nfkc) == "fiF");
  // Marks are sorted by class, marks of one class keep their order: dot above, dot below, acute.
  CHECK(normal_form("q\xcc\x87\xcc\xa3\xcc\x81", NormalForm::nfd) == "q\xcc\xa3\xcc\x87\xcc\x81");
  // In a time that does not grow with the square of the marks.
  std::string marks = "q", below, above;
  for (int i = 0; i < 200'000; ++i) {
    marks += "\xcc\x87\xcc\xa3";
    below += "\xcc\xa3";
    above += "\xcc\x87";
  }
  CHECK(normal_form(marks, NormalForm::nfc) == "q" + below + above);
}

TEST_CASE("trie") {
  const std::vector<Trie::Entry> entries{{"a", 1}, {"abc", 2}, {"b", 3}, {"", 4}, {"a", 5}};
  const Trie trie(entries);
  CHECK(trie.find("a") == 5);
  CHECK(trie.find("") == 4);
  CHECK_FALSE(trie.find("ab").has_value());
  CHECK_FALSE(trie.find("abcd").has_value());
  CHECK(trie.longest_prefix("abcd")->bytes == 3);
  CHECK(trie.longest_prefix("abd")->id == 5);
  CHECK_FALSE(trie.longest_prefix("x").has_value());
  CHECK_FALSE(Trie().find("x").has_value());
}

/// The rule itself: the best pair, leftmost of equals, again and again.
std::vector<int32_t> merged(std::vector<int32_t> symbols, const MergeTable& table) {
  for (;;) {
    const MergeTable::Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto* merge = table.find(symbols[i], symbols[i + 1]);
      if (merge && (!best || merge->rank < best->rank)) best = merge, at = i;
    }
    if (!best) return symbols;
    symbols[at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST_CASE("merging follows the rule, short and long words alike") {
  uint64_t state = 7;
  const auto random = [&](int32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(bound));
  };
  for (int round = 0; round < 200; ++round) {
    const int32_t letters = 2 + random(3);
    std::vector<MergeTable::Merge> merges;
    int32_t ids = letters;
    for (; ids < letters + 12; ++ids) merges.push_back({random(ids), random(ids), ids, random(8)});
    const MergeTable table(merges, ids);
    for (size_t size : {0, 1, 2, 5, 24, 25, 40, 300}) {
      std::vector<int32_t> symbols(size);
      for (int32_t& symbol : symbols) symbol = random(letters);
      const auto expected = merged(symbols, table);
      table.apply(symbols);
      CHECK(symbols == expected);
    }
  }
}

TEST_CASE("the word cache finds what it was given, or nothing") {
  WordCache cache(1000);
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) words.push_back(std::string(1 + i % 30, 'a' + i % 26));
  size_t found = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    WordCache::Slot* slot = cache.slot(words[i]);
    CHECK((slot == nullptr) == (words[i].size() > 23));
    if (!slot) continue;
    if (const auto* ids = slot->find(words[i])) {
      CHECK(words[ids->begin] == words[i]);
      ++found;
    }
    slot->set(words[i], {i, 1});
    CHECK(slot->find(words[i])->begin == i);
  }
  CHECK(found > 0);
}

TEST_CASE("a stream gives characters when they are whole") {
  const auto tokenizer =
      Tokenizer::open(std::string(SINTER_TESTS_DIR) + "/golden/tokenizers/bytelevel_gpt2");
  REQUIRE(tokenizer);
  // One token for each byte of a character.
  const auto ids = tokenizer->encode("\xe3\x82\xba", false).value();
  REQUIRE(ids.size() > 1);
  TextStream stream(*tokenizer, true);
  for (size_t i = 0; i + 1 < ids.size(); ++i) CHECK(stream.push(ids[i]).value().empty());
  CHECK(stream.push(ids.back()).value() == "\xe3\x82\xba");
  CHECK(stream.push(ids.front()).value().empty());
  CHECK(stream.finish().value() == "\xef\xbf\xbd");
}

TEST_CASE("a stream holds a row of byte tokens until it ends") {
  const auto tokenizer =
      Tokenizer::open(std::string(SINTER_TESTS_DIR) + "/golden/tokenizers/bytefallback_llama2");
  REQUIRE(tokenizer);
  const auto byte = [&](std::string_view name) { return tokenizer->token_id(name).value(); };
  const int32_t letter = tokenizer->token_id("a").value();
  TextStream stream(*tokenizer, true);
  CHECK(stream.push(letter).value() == "a");
  CHECK(stream.push(byte("<0xC3>")).value().empty());
  CHECK(stream.push(byte("<0xA9>")).value().empty());
  CHECK(stream.push(letter).value() ==
        "\xc3\xa9"
        "a");
  CHECK(stream.push(byte("<0xC3>")).value().empty());
  CHECK(stream.push(byte("<0x28>")).value().empty());
  CHECK(stream.push(letter).value() ==
        "\xef\xbf\xbd\xef\xbf\xbd"
        "a");
}

TEST_CASE("facts of a vocabulary") {
  const auto tokenizer =
      Tokenizer::open(std::string(SINTER_TESTS_DIR) + "/golden/tokenizers/split_llama3");
  REQUIRE(tokenizer);
  CHECK(tokenizer->vocabulary_size() == 1500);
  CHECK(tokenizer->token_id("</s>") == 2);
  CHECK(tokenizer->piece(2) == "</s>");
  CHECK_FALSE(tokenizer->token_id("</t>").has_value());
  CHECK_FALSE(tokenizer->piece(1500).has_value());
}

}  // namespace
}  // namespace sinter::tokenizer_parts_test
