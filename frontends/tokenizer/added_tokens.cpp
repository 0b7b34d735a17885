#include "frontends/tokenizer/added_tokens.h"

#include <algorithm>
#include <set>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

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

Result<AddedTokens> AddedTokens::read(const JsonView& view, const FolderTokens& folder,
                                      const Vocabulary& model, const Normalize& normalize) {
  AddedTokens made;
  made.splits_special_ = folder.splits_special;
  std::map<std::string, int32_t, std::less<>> ids;
  const JsonValue::Array none;
  const JsonValue::Array* list = &none;
  if (view.present()) {
    SINTER_LET(listed, view.array());
    list = listed;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(id, view[i]["id"].integer(0, Vocabulary::max_ids - 1));
    SINTER_LET(token, read_added_token(view[i]));
    token.id = static_cast<int32_t>(id);
    const auto in_model = model.find(token.content);
    if (in_model && *in_model != token.id)
      return view[i]["id"].mismatch(fmt::format("{}, as in the model's vocabulary", *in_model));
    const auto taken = model.piece(token.id);
    if (taken && *taken != token.content)
      return view[i]["id"].fail(fmt::format("the id {} stands for \"{}\" in the vocabulary",
                                            token.id, printable(*taken, 60)));
    ids.insert_or_assign(token.content, token.id);
    if (!made.tokens_.emplace(token.id, Token(std::move(token))).second)
      return view[i]["id"].fail(fmt::format("the id {} stands here twice", id));
  }
  for (const FolderTokens::Added& added : folder.added) SINTER_TRY(made.add(added, model, ids));
  SINTER_TRY(made.finish(normalize));
  return made;
}

Status AddedTokens::add(const FolderTokens::Added& added, const Vocabulary& model,
                        std::map<std::string, int32_t, std::less<>>& ids) {
  Token token(added.token);
  const auto refuse = [&](int64_t id, std::string what) {
    return fail(fmt::format("the token \"{}\" would get the id {}, {}",
                            printable(token.content, 60), id, what),
                added.place, "give it in tokenizer.json too, with its id");
  };
  const int32_t said = token.id;
  if (const auto known = ids.find(token.content); known != ids.end())
    token.id = known->second;
  else if (const auto in_model = model.find(token.content))
    token.id = *in_model;
  else
    token.id = std::max(size(), model.count());  // as Hugging Face's library numbers tokens
  if (said >= 0 && said != token.id)
    return refuse(token.id, fmt::format("but the file says {}", said));
  if (token.id >= Vocabulary::max_ids)
    return refuse(token.id, fmt::format("the largest is {}", Vocabulary::max_ids - 1));
  const auto taken = model.piece(token.id);
  if (taken && *taken != token.content)
    return refuse(token.id, fmt::format("which stands for \"{}\"", printable(*taken, 60)));
  const auto [place, fresh] = tokens_.try_emplace(token.id, token);
  if (!fresh) {
    // Hugging Face's library keeps what it once knew: that a token is special, and how it decodes a
    // normalized one.
    token.special = token.special || place->second.special;
    token.decodes_normalized = token.normalized || place->second.decodes_normalized;
    place->second = std::move(token);
  }
  ids.insert_or_assign(added.token.content, place->first);
  return {};
}

Status AddedTokens::finish(const Normalize& normalize) {
  std::set<std::string_view> special;
  for (const auto& [id, token] : tokens_)
    if (token.special) special.insert(token.content);
  std::vector<Trie::Entry> contents, before, after;
  for (auto& [id, token] : tokens_) {
    token.piece = token.content;
    if (token.decodes_normalized) {
      SINTER_LET(normal, normalize(token.content));
      token.piece = std::move(normal);
    }
    token.skipped = special.contains(token.piece);
    contents.push_back({token.content, id});
    if (token.content.empty()) continue;
    if (token.normalized)
      after.push_back({token.piece, id});
    else
      before.push_back({token.content, id});
  }
  contents_ = Trie(contents);
  before_ = Trie(before);
  after_ = Trie(after);
  return {};
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
    if (splits_special_ && token.special) continue;
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

std::optional<std::string_view> AddedTokens::piece(int32_t id) const {
  const auto at = tokens_.find(id);
  if (at == tokens_.end()) return std::nullopt;
  return at->second.piece;
}

bool AddedTokens::is_special(int32_t id) const {
  const auto at = tokens_.find(id);
  return at != tokens_.end() && at->second.skipped;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  return contents_.find(content);
}

int32_t AddedTokens::size() const { return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1; }

}  // namespace sinter
