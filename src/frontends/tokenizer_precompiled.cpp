// The normalizer type Precompiled: a map from byte strings to byte strings that SentencePiece
// compiled into its model. The blob, base64 in the file, holds the bytes of a double-array trie
// (u32), the trie (u32 units, as Darts lays them out), and zero-terminated replacements, which the
// trie's values are offsets into.
#include <llvm/Support/Base64.h>
#include <llvm/Support/Error.h>

#include <cstring>
#include <memory>

#include "frontends/tokenizer_normalizer.h"
#include "frontends/tokenizer_unicode.h"

namespace sinter {
namespace {

// As in the reference: longer graphemes are looked up character by character.
constexpr size_t longest_grapheme = 5;  // bytes

class CharacterMap {
 public:
  static Result<CharacterMap> create(std::string_view blob) {
    uint32_t bytes = 0;
    if (blob.size() < sizeof bytes) return fail("the character map is cut short");
    std::memcpy(&bytes, blob.data(), sizeof bytes);
    blob.remove_prefix(sizeof bytes);
    if (bytes > blob.size() || bytes % sizeof(uint32_t) != 0)
      return fail(
          fmt::format("the character map has a trie of {} bytes in {}", bytes, blob.size()));
    CharacterMap map;
    map.units_.resize(bytes / sizeof(uint32_t));
    if (bytes > 0) std::memcpy(map.units_.data(), blob.data(), bytes);
    map.replacements_ = blob.substr(bytes);
    if (!is_utf8(map.replacements_)) return fail("the character map's replacements are not UTF-8");
    return map;
  }

  /// What stands for the shortest key that `text` starts with, or nothing.
  std::optional<std::string_view> find(std::string_view text) const {
    uint32_t node = 0;
    if (units_.empty()) return std::nullopt;
    node ^= offset(units_[node]);
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (node >= units_.size() || label(units_[node]) != byte) return std::nullopt;
      const uint32_t unit = units_[node];
      node ^= offset(unit);
      if (node >= units_.size()) return std::nullopt;
      if (has_leaf(unit)) return replacement(units_[node] & ~leaf_bit);
    }
    return std::nullopt;
  }

 private:
  static constexpr uint32_t leaf_bit = uint32_t{1} << 31;
  static bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
  static uint32_t label(uint32_t unit) { return unit & (leaf_bit | 0xff); }
  static uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1 << 9) >> 6); }

  std::optional<std::string_view> replacement(size_t at) const {
    const std::string_view all = replacements_;
    if (at > all.size()) return std::nullopt;
    // An offset into the middle of a character can only come from a broken file.
    if (at < all.size() && (static_cast<unsigned char>(all[at]) & 0xc0) == 0x80)
      return std::nullopt;
    return all.substr(at, all.find('\0', at) - at);
  }

  std::vector<uint32_t> units_;
  std::string replacements_;
};

void normalize(const CharacterMap& map, NormalizedText& text) {
  std::string result;
  const std::string_view all = text.text;
  const auto replace = [&](std::string_view part) {
    const auto replacement = map.find(part);
    if (replacement) result += *replacement;
    return replacement.has_value();
  };
  for (size_t at = 0; at < all.size();) {
    const size_t end = grapheme_end(all, at);
    const std::string_view grapheme = all.substr(at, end - at);
    if (grapheme.size() > longest_grapheme || !replace(grapheme)) {
      for (size_t bytes; at < end; at += bytes) {
        bytes = code_point_at(all, at).bytes;
        if (!replace(all.substr(at, bytes))) result += all.substr(at, bytes);
      }
    }
    if (result.empty()) text.starts_input = false;
    at = end;
  }
  text.text = std::move(result);
}

}  // namespace

Result<Normalizer> read_precompiled(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"precompiled_charsmap"}));
  const JsonView place = view["precompiled_charsmap"];
  if (!place.present()) return [](NormalizedText&) -> Status { return {}; };
  SINTER_LET(encoded, place.string());
  std::vector<char> blob;
  if (auto error = llvm::decodeBase64(encoded, blob)) {
    llvm::consumeError(std::move(error));
    return place.fail("not base64", "download the tokenizer again");
  }
  auto map = CharacterMap::create(std::string_view(blob.data(), blob.size()));
  if (!map) return place.fail(map.error().what, "download the tokenizer again");
  return [shared = std::make_shared<const CharacterMap>(std::move(*map))](
             NormalizedText& text) -> Status {
    normalize(*shared, text);
    return {};
  };
}

}  // namespace sinter
