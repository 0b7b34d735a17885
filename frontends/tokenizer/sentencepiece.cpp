// tokenizer.model of SentencePiece. Encoding adds BOS where the model has one. libsentencepiece is
// not used: it follows a broken character map out of its memory, and no static library of it comes
// with Linux.
#include <algorithm>
#include <filesystem>

#include "frontends/tokenizer/format.h"
#include "frontends/tokenizer/model.h"
#include "frontends/tokenizer/sentencepiece_segment.h"
#include "frontends/tokenizer/sentencepiece_text.h"

namespace sinter {
namespace {

using Type = SentencePieceModel::Type;

class SentencePieceTokenizer final : public TokenizerFormat {
 public:
  static Result<TokenizerFormatPtr> create(const SentencePieceModel& model) {
    SINTER_TRY(refuse_unsupported(model));
    std::vector<Vocabulary::Entry> entries;
    for (size_t id = 0; id < model.pieces.size(); ++id)
      entries.push_back({model.pieces[id].text, static_cast<int32_t>(id)});
    SINTER_LET(vocabulary, Vocabulary::create(entries));
    for (const Vocabulary::Entry& entry : entries)
      if (vocabulary.find(entry.piece) != entry.id)
        return fail(fmt::format("piece {} (\"{}\") stands here twice", entry.id,
                                printable(entry.piece, 60)));
    auto made = std::make_shared<SentencePieceTokenizer>();
    made->unknown_ = pieces_of(model, {Type::unknown}).front().id;
    for (const Trie::Entry& piece : pieces_of(model, {Type::control}))
      made->control_.push_back(piece.id);
    if (model.bos >= 0) {
      if (!made->is_special(static_cast<int32_t>(model.bos)))
        return fail(fmt::format("BOS has the id {}, which is no control piece", model.bos));
      made->bos_ = static_cast<int32_t>(model.bos);
    }
    SINTER_LET(normalizer, SentencePieceNormalizer::create(
                               model, Trie(pieces_of(model, {Type::user_defined}))));
    made->normalizer_ = std::move(normalizer);
    SINTER_LET(segmenter, create_segmenter(model, made->unknown_));
    made->segmenter_ = std::move(segmenter);
    if (model.byte_fallback) {
      made->bytes_ = byte_pieces(vocabulary);
      const auto absent = std::find(made->bytes_.begin(), made->bytes_.end(), -1);
      if (absent != made->bytes_.end())
        return fail(fmt::format("characters fall back to bytes, but there is no piece <0x{:02X}>",
                                absent - made->bytes_.begin()));
    }
    made->vocabulary_.emplace(std::move(vocabulary));
    made->decoder_ = sentencepiece_decoder(model);
    return made;
  }

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const override {
    std::vector<int32_t> ids;
    if (add_special && bos_) ids.push_back(*bos_);
    SINTER_LET(normalized, normalizer_.normalize(text));
    size_t begin = 0;
    bool after_unknown = false;
    for (const PathPiece& piece : segmenter_->segment(normalized)) {
      const bool unknown = piece.id == unknown_;
      if (unknown && !bytes_.empty()) {
        for (size_t i = begin; i < piece.end; ++i)
          ids.push_back(bytes_[static_cast<unsigned char>(normalized[i])]);
      } else if (!unknown || !after_unknown) {  // unknown characters in a row are one piece
        ids.push_back(piece.id);
      }
      after_unknown = unknown;
      begin = piece.end;
    }
    return ids;
  }

  int32_t vocabulary_size() const override { return vocabulary_->size(); }
  std::optional<int32_t> token_id(std::string_view piece) const override {
    return vocabulary_->find(piece);
  }
  std::optional<std::string_view> piece(int32_t id) const override {
    return vocabulary_->piece(id);
  }
  bool is_special(int32_t id) const override {
    return std::binary_search(control_.begin(), control_.end(), id);
  }
  DecoderChain decoder() const override { return decoder_; }

 private:
  static Status refuse_unsupported(const SentencePieceModel& model) {
    if (model.spaces_as_suffix) return fail("spaces after words are not supported");
    if (!model.escape_whitespaces) return fail("spaces that are not escaped are not supported");
    if (model.has_denormalizer) return fail("a map for decoding is not supported");
    return {};
  }

  std::optional<Vocabulary> vocabulary_;
  SentencePieceNormalizer normalizer_;
  SegmenterPtr segmenter_;
  DecoderChain decoder_;
  int32_t unknown_ = 0;
  std::optional<int32_t> bos_;
  std::vector<int32_t> control_;  // ids, ascending
  std::vector<int32_t> bytes_;    // ids of bytes; empty without byte fallback
};

/// Tokens that the other files of the folder add would be cut into pieces.
Status refuse_further_tokens(const TokenizerFormat& format, const std::string& folder) {
  SINTER_LET(tokens, read_folder_tokens(folder, JsonView(folder, nullptr)));
  for (const FolderTokens::Added& added : tokens.added)
    if (!format.token_id(added.token.content))
      return fail(
          fmt::format("tokenizer.model lacks the token \"{}\"", printable(added.token.content, 60)),
          added.place,
          "give tokenizer.json: "
          "`AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`");
  return {};
}

}  // namespace

Result<TokenizerFormatPtr> open_tokenizer_sentencepiece(const std::string& path) {
  SINTER_LET(model, read_sentencepiece_model(path));
  auto format = SentencePieceTokenizer::create(model);
  if (!format) return fail(format.error().what, path, "use the model's tokenizer.json");
  const std::filesystem::path file(path);
  if (file.filename() == "tokenizer.model")
    SINTER_TRY(refuse_further_tokens(**format, file.parent_path().string()));
  return format;
}

}  // namespace sinter
