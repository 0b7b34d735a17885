// The normalizer type Precompiled: the character map of a SentencePiece model, in base64.
#include <llvm/Support/Base64.h>
#include <llvm/Support/Error.h>

#include <memory>

#include "frontends/tokenizer/character_map.h"
#include "frontends/tokenizer/normalizer.h"
#include "frontends/tokenizer/text_growth.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

// As in the reference: longer graphemes are looked up character by character.
constexpr size_t longest_grapheme = 5;  // bytes

Status normalize(const CharacterMap& map, NormalizedText& text) {
  std::string result;
  const std::string_view all = text.text;
  const auto replace = [&](std::string_view part) {
    const auto match = map.shortest(part);  // stands for all of the part
    if (match) result += match->replacement;
    return match.has_value();
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
    SINTER_TRY(check_growth(all.size(), result.size()));
    if (result.empty()) text.starts_input = false;
    at = end;
  }
  text.text = std::move(result);
  return {};
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
             NormalizedText& text) -> Status { return normalize(*shared, text); };
}

}  // namespace sinter
