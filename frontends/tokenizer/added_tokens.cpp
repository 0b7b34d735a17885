#include "frontends/tokenizer/added_tokens.h"

#include <algorithm>
#include <deque>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

Result<AddedToken> read_token(const JsonView& view) {
  SINTER_TRY(allow_keys(
      view, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  SINTER_LET(id, view["id"].integer(0, Vocabulary::max_ids - 1));
  SINTER_LET(content, view["content"].string());
  if (content.size() > Vocabulary::longest_piece)
    return view["content"].mismatch(fmt::format("at most {} bytes", Vocabulary::longest_piece));
  SINTER_LET(special, view["special"].boolean_or(false));
  SINTER_LET(single_word, view["single_word"].boolean_or(false));
  SINTER_LET(left_strip, view["lstrip"].boolean_or(false));
  SINTER_LET(right_strip, view["rstrip"].boolean_or(false));
  SINTER_LET(normalized, view["normalized"].boolean_or(!special));
  return AddedToken{
      static_cast<int32_t>(id), content, single_word, left_strip, right_strip, normalized, special};
}

/// Whether a token at `range` has a word's character at its side.
bool within_word(std::string_view text, TextRange range) {
  const bool before =
      range.begin > 0 && is_word(code_point_at(text, code_point_before(text, range.begin)).value);
  return before || (range.end < text.size() && is_word(code_point_at(text, range.end).value));
}

size_t white_space_before(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const size_t last = code_point_before(text, end);
    if (!is_white_space(code_point_at(text, last).value)) break;
    end = last;
  }
  return end;
}

size_t white_space_after(std::string_view text, size_t begin) {
  while (begin < text.size() && is_white_space(code_point_at(text, begin).value))
    begin += code_point_at(text, begin).bytes;
  return begin;
}

}  // namespace

Result<AddedTokens> AddedTokens::read(const JsonView& view, const Vocabulary& model,
                                      const Normalize& normalize) {
  AddedTokens made;
  if (!view.present()) return made;
  SINTER_LET(list, view.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(token, read_token(view[i]));
    const auto in_model = model.find(token.content);
    if (in_model && *in_model != token.id)
      return view[i]["id"].mismatch(fmt::format("{}, as in the model's vocabulary", *in_model));
    const auto taken = model.piece(token.id);
    if (taken && *taken != token.content)
      return view[i]["id"].fail(fmt::format("the id {} stands for \"{}\" in the vocabulary",
                                            token.id, printable(*taken, 60)));
    if (!made.tokens_.emplace(token.id, token).second)
      return view[i]["id"].fail(fmt::format("the id {} stands here twice", token.id));
  }
  std::vector<Trie::Entry> contents, before, after;
  std::deque<std::string> normal_contents;
  for (const auto& [id, token] : made.tokens_) {
    contents.push_back({token.content, id});
    if (token.content.empty()) continue;
    if (!token.normalized) {
      before.push_back({token.content, id});
      continue;
    }
    SINTER_LET(normal, normalize(token.content));
    after.push_back({normal_contents.emplace_back(std::move(normal)), id});
  }
  made.contents_ = Trie(contents);
  made.before_ = Trie(before);
  made.after_ = Trie(after);
  return made;
}

std::vector<Segment> AddedTokens::split(std::string_view text, bool normalized) const {
  const Trie& trie = normalized ? after_ : before_;
  std::vector<Segment> segments;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto match = trie.longest_prefix(text.substr(at));
    if (!match) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_.at(match->id);
    TextRange range{at, at + match->bytes};
    at = range.end;
    if (token.single_word && within_word(text, range)) continue;
    // White space that the token before has taken stays with it, and is not looked at again.
    if (token.left_strip) range.begin = std::max(white_space_before(text, range.begin, done), done);
    if (token.right_strip) range.end = white_space_after(text, std::max(range.end, done));
    if (done < range.begin) segments.push_back({{done, range.begin}, -1});
    segments.push_back({range, token.id});
    done = range.end;
  }
  if (done < text.size()) segments.push_back({{done, text.size()}, -1});
  return segments;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto at = tokens_.find(id);
  return at == tokens_.end() ? nullptr : &at->second;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  return contents_.find(content);
}

int32_t AddedTokens::size() const { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }

}  // namespace sinter
