// tokenizer.json: added tokens, normalizers, pre-tokenizers, model, post-processors, decoders; and
// what the other files of its folder say. The file's truncation and padding are for batches and not
// applied.
#include <algorithm>
#include <filesystem>

#include "frontends/tokenizer/added_tokens.h"
#include "frontends/tokenizer/class_settings.h"
#include "frontends/tokenizer/format.h"
#include "frontends/tokenizer/model.h"
#include "frontends/tokenizer/normalizer.h"
#include "frontends/tokenizer/post_processor.h"
#include "frontends/tokenizer/pre_tokenizer.h"
#include "frontends/tokenizer/text_growth.h"
#include "frontends/tokenizer/word_cache.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxJsonFileBytes = 64 << 20;  // the largest vocabularies have 35 MB

class JsonTokenizer final : public TokenizerFormat {
 public:
  static Result<TokenizerFormatPtr> read(const JsonView& view, const FolderTokens& folder) {
    SINTER_TRY(allow_keys(view, {"version", "truncation", "padding", "added_tokens", "normalizer",
                                 "pre_tokenizer", "post_processor", "decoder", "model"}));
    auto made = std::make_shared<JsonTokenizer>();
    SINTER_LET(model, read_token_model(view["model"]));
    made->model_ = std::move(model);
    SINTER_LET(normalizers, read_normalizers(view["normalizer"]));
    made->normalizers_ = std::move(normalizers);
    const auto normalize = [&](std::string_view text) -> Result<std::string> {
      SINTER_LET(normalized, made->normalize(text, false));
      return std::move(normalized.text);
    };
    SINTER_LET(added, AddedTokens::read(view["added_tokens"], folder, made->model_->vocabulary(),
                                        normalize));
    made->added_ = std::move(added);
    SINTER_LET(pre_tokenizers, read_pre_tokenizers(view["pre_tokenizer"]));
    made->pre_tokenizers_ = std::move(pre_tokenizers);
    SINTER_LET(around, read_post_processors(view["post_processor"], [&](int32_t id) {
                 return made->piece(id).has_value();
               }));
    made->around_ = std::move(around);
    SINTER_LET(decoder, read_decoder(view["decoder"]));
    if (folder.cleans_up && (folder.cleans_up_pairs || !made->model_->merges_pairs()))
      add_cleaning(decoder);
    made->decoder_ = std::move(decoder);
    return made;
  }

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const override {
    std::vector<int32_t> ids;
    if (add_special) ids = around_.before;
    WordCache cache(text.size());
    for (const Segment& segment : added_.split(text, false)) {
      if (segment.id >= 0)
        ids.push_back(segment.id);
      else
        SINTER_TRY(encode_text(segment.range.of(text), segment.range.begin == 0, cache, ids));
    }
    if (add_special) ids.insert(ids.end(), around_.after.begin(), around_.after.end());
    return ids;
  }

  int32_t vocabulary_size() const override {
    return std::max(model_->vocabulary().size(), added_.size());
  }
  std::optional<int32_t> token_id(std::string_view piece) const override {
    const auto added = added_.find(piece);
    return added ? added : model_->vocabulary().find(piece);
  }
  std::optional<std::string_view> piece(int32_t id) const override {
    const auto added = added_.piece(id);
    return added ? added : model_->vocabulary().piece(id);
  }
  bool is_special(int32_t id) const override { return added_.is_special(id); }
  DecoderChain decoder() const override { return decoder_; }

 private:
  Result<NormalizedText> normalize(std::string_view text, bool starts_input) const {
    NormalizedText normalized{std::string(text), starts_input};
    for (const Normalizer& stage : normalizers_) {
      SINTER_TRY(stage(normalized));
      SINTER_TRY(check_growth(text.size(), normalized.text.size()));
    }
    return normalized;
  }

  /// Text without the added tokens that are looked for before normalization.
  Status encode_text(std::string_view text, bool starts_input, WordCache& cache,
                     std::vector<int32_t>& ids) const {
    SINTER_LET(normalized, normalize(text, starts_input));
    for (const Segment& segment : added_.split(normalized.text, true)) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      const bool first = normalized.starts_input && segment.range.begin == 0;
      Words words{std::string(segment.range.of(normalized.text)), {}, first};
      words.ranges.push_back({0, words.text.size()});
      for (const PreTokenizer& stage : pre_tokenizers_) SINTER_TRY(stage(words));
      SINTER_TRY(encode_words(words, cache, ids));
    }
    return {};
  }

  Status encode_words(const Words& words, WordCache& cache, std::vector<int32_t>& ids) const {
    for (const TextRange& range : words.ranges) {
      const std::string_view word = range.of(words.text);
      WordCache::Slot* slot = cache.slot(word);
      if (const WordCache::Ids* known = slot ? slot->find(word) : nullptr) {
        for (uint64_t i = 0; i < known->count; ++i) ids.push_back(ids[known->begin + i]);
        continue;
      }
      const size_t begin = ids.size();
      SINTER_TRY(model_->encode(word, ids));
      if (slot) slot->set(word, {begin, ids.size() - begin});
    }
    return {};
  }

  TokenModelPtr model_;
  AddedTokens added_;
  std::vector<Normalizer> normalizers_;
  std::vector<PreTokenizer> pre_tokenizers_;
  SpecialTokens around_;
  DecoderChain decoder_;
};

}  // namespace

Result<TokenizerFormatPtr> open_tokenizer_json(const std::string& path) {
  SINTER_LET(document, read_json(path, kMaxJsonFileBytes));
  const std::filesystem::path file(path);
  // A file of another name is not the tokenizer of its folder.
  if (file.filename() != "tokenizer.json") return read_tokenizer_json(document.view(), {});
  const std::string folder = file.parent_path().string();
  SINTER_LET(tokens, read_folder_tokens(folder, document.view()));
  SINTER_LET(config, read_folder_json(folder, "tokenizer_config.json"));
  SINTER_TRY(apply_class_settings(document.root, config.view()));
  return read_tokenizer_json(document.view(), tokens);
}

Result<TokenizerFormatPtr> read_tokenizer_json(const JsonView& view, const FolderTokens& folder) {
  return JsonTokenizer::read(view, folder);
}

}  // namespace sinter
