#include "frontends/tokenizer/character_map.h"

#include <cstring>

#include "frontends/files/json.h"

namespace sinter {
namespace {

// A unit of the trie: the byte that leads to it, whether a value hangs on it, and where, relative
// to it, its children are. A value's unit has the top bit set.
constexpr uint32_t value_bit = uint32_t{1} << 31;
bool has_value(uint32_t unit) { return unit >> 8 & 1; }
uint32_t label(uint32_t unit) { return unit & (value_bit | 0xff); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1 << 9) >> 6); }

}  // namespace

Result<CharacterMap> CharacterMap::create(std::string_view blob) {
  uint32_t bytes = 0;
  if (blob.size() < sizeof bytes) return fail("the character map is cut short");
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  blob.remove_prefix(sizeof bytes);
  if (bytes > blob.size() || bytes % sizeof(uint32_t) != 0)
    return fail(fmt::format("the character map has a trie of {} bytes in {}", bytes, blob.size()));
  CharacterMap map;
  map.units_.resize(bytes / sizeof(uint32_t));
  if (bytes > 0) std::memcpy(map.units_.data(), blob.data(), bytes);
  map.replacements_ = blob.substr(bytes);
  if (!is_utf8(map.replacements_)) return fail("the character map's replacements are not UTF-8");
  return map;
}

std::optional<CharacterMap::Match> CharacterMap::find(std::string_view text,
                                                      bool stop_at_first) const {
  std::optional<Match> match;
  if (units_.empty()) return match;
  uint32_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if (!has_value(unit)) continue;
    const auto value = replacement(units_[node] & ~value_bit);
    if (!value) break;
    match = Match{i + 1, *value};
    if (stop_at_first) break;
  }
  return match;
}

std::optional<std::string_view> CharacterMap::replacement(size_t at) const {
  const std::string_view all = replacements_;
  if (at > all.size()) return std::nullopt;
  if (at < all.size() && (static_cast<unsigned char>(all[at]) & 0xc0) == 0x80) return std::nullopt;
  return all.substr(at, all.find('\0', at) - at);
}

}  // namespace sinter
