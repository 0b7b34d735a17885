// The model type BPE of a tokenizer.json.
#include <algorithm>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/merges.h"
#include "frontends/tokenizer/model.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

struct BpeOptions {
  std::optional<int32_t> unknown;  // for characters without a piece; without it they vanish
  std::string prefix;              // of a piece that does not start its word
  std::string suffix;              // of a piece that ends its word
  bool fuse_unknown = false;       // neighbouring unknown characters are one
  bool byte_fallback = false;      // characters without a piece become byte pieces
  bool ignore_merges = false;      // a word that is a piece needs no merges
};

class Bpe final : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
      : TokenModel(std::move(vocabulary)),
        merges_(std::move(merges)),
        options_(std::move(options)),
        bytes_(byte_pieces(this->vocabulary())) {}

  bool merges_pairs() const override { return true; }
  Status encode(std::string_view word, std::vector<int32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (auto id = vocabulary().find(word)) {
        ids.push_back(*id);
        return {};
      }
    }
    std::vector<int32_t> symbols = characters(word);
    merges_.apply(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    return {};
  }

 private:
  std::vector<int32_t> characters(std::string_view word) const {
    std::vector<int32_t> symbols;
    symbols.reserve(word.size());
    bool unknown_waits = false;  // as in the reference, one waits until a known character comes
    const auto flush = [&] {
      if (unknown_waits) symbols.push_back(*options_.unknown);
      unknown_waits = false;
    };
    std::string decorated;
    for (size_t at = 0; at < word.size();) {
      const size_t bytes = code_point_at(word, at).bytes;
      std::string_view piece = word.substr(at, bytes);
      const bool first = at == 0, last = at + bytes == word.size();
      at += bytes;
      if ((!first && !options_.prefix.empty()) || (last && !options_.suffix.empty())) {
        decorated = first ? "" : options_.prefix;
        decorated += piece;
        if (last) decorated += options_.suffix;
        piece = decorated;
      }
      if (auto id = vocabulary().find(piece)) {
        flush();
        symbols.push_back(*id);
      } else if (options_.byte_fallback && has_bytes(piece)) {
        for (char byte : piece) symbols.push_back(bytes_[static_cast<unsigned char>(byte)]);
      } else if (options_.unknown) {
        if (!options_.fuse_unknown) flush();
        unknown_waits = true;
      }
    }
    flush();
    return symbols;
  }

  bool has_bytes(std::string_view piece) const {
    return std::all_of(piece.begin(), piece.end(),
                       [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; });
  }

  MergeTable merges_;
  BpeOptions options_;
  std::vector<int32_t> bytes_;
};

/// The two pieces of a merge: "a b" in old files, ["a", "b"] in new ones.
std::optional<std::pair<std::string_view, std::string_view>> halves(const JsonValue& merge) {
  if (const std::string* line = merge.string()) {
    const std::string_view text = *line;
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) return std::nullopt;
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  const JsonValue::Array* pair = merge.array();
  if (!pair || pair->size() != 2 || !(*pair)[0].string() || !(*pair)[1].string())
    return std::nullopt;
  return std::pair<std::string_view, std::string_view>(*(*pair)[0].string(), *(*pair)[1].string());
}

Result<MergeTable> read_merges(const JsonView& view, const Vocabulary& vocabulary,
                               std::string_view prefix) {
  SINTER_LET(list, view.array());
  std::vector<MergeTable::Merge> merges;
  merges.reserve(list->size());
  const Trie& trie = vocabulary.trie();
  for (size_t i = 0; i < list->size(); ++i) {
    const auto pair = halves((*list)[i]);
    if (!pair) return view[i].mismatch("two pieces with a space between, or an array of the two");
    const auto [left, right] = *pair;
    const std::string_view tail = right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const auto unknown = [&](const std::string& piece) {
      return view[i].fail(
          fmt::format("the piece \"{}\" of a merge is not in the vocabulary", printable(piece, 60)),
          "download the tokenizer again");
    };
    // The merged piece is found from where the left one ends.
    const Trie::Node end_of_left = trie.walk(Trie::root, left);
    const auto left_id = trie.key_at(end_of_left), right_id = trie.find(right);
    if (!left_id) return unknown(std::string(left));
    if (!right_id) return unknown(std::string(right));
    const auto merged_id = trie.key_at(trie.walk(end_of_left, tail));
    if (!merged_id) return unknown(std::string(left) + std::string(tail));
    merges.push_back({*left_id, *right_id, *merged_id, static_cast<int32_t>(i)});
  }
  return MergeTable(std::move(merges), vocabulary.size());
}

}  // namespace

std::vector<int32_t> byte_pieces(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int byte = 0; byte < 256; ++byte)
    ids.push_back(vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  return ids;
}

Result<TokenModelPtr> read_bpe(const JsonView& view) {
  SINTER_TRY(
      allow_keys(view, {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  SINTER_LET(dropout, view["dropout"].number_or(0));
  if (dropout != 0) return view["dropout"].mismatch("null or 0: encoding is not random here");
  SINTER_LET(vocabulary, read_vocabulary(view["vocab"]));
  BpeOptions options;
  SINTER_LET(prefix, view["continuing_subword_prefix"].string_or(""));
  SINTER_LET(suffix, view["end_of_word_suffix"].string_or(""));
  SINTER_LET(fuse_unknown, view["fuse_unk"].boolean_or(false));
  SINTER_LET(byte_fallback, view["byte_fallback"].boolean_or(false));
  SINTER_LET(ignore_merges, view["ignore_merges"].boolean_or(false));
  options = {std::nullopt, prefix, suffix, fuse_unknown, byte_fallback, ignore_merges};
  SINTER_LET(unknown, view["unk_token"].string_or(""));
  if (!unknown.empty()) {
    options.unknown = vocabulary.find(unknown);
    if (!options.unknown) return view["unk_token"].mismatch("a piece of the vocabulary");
  }
  SINTER_LET(merges, read_merges(view["merges"], vocabulary, prefix));
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(options));
}

}  // namespace sinter
